# shellcheck shell=bash
# Sourced by install.sh: the removal of what it installed.

uninstall_podd() {
  local doomed=() moved=() mounted ran='' scope link all='' home
  if [ ! -e "$opt" ] && [ ! -e "$units/podd.service" ]; then
    if [ $action = uninstall ] || { [ ! -e "$state" ] && [ ! -e /etc/podd ]; }; then
      say 'podd is not installed here'
      return
    fi
  fi
  if [ -x "$opt/bin/podd" ]; then
    step 'Ending the pods'
    ! daemon_runs || ran=yes
    stop_daemon
    stopped_daemon=$ran
    # A podd of an older version doesn't know the flag.
    if [ $action = purge ] && podd down --help | grep -E '^ *--all( |$)' >/dev/null; then all=--all; fi
    PODD_SOCKET='' podd down $all || fail 'the pods could not be ended; podd is still here' 'See what podd said, and start again.'
  elif [ -e /run/podd/containerd ]; then
    fail "the program is gone, but podd's containerd was not ended" 'Run install.sh without an option, and then this again.'
  fi
  mapfile -t moved < <(moved_places)
  doomed=("$opt" "$opt.new" "$opt.old" "$previous" "$previous.gone" /run/podd)
  [ $action = uninstall ] || mapfile -t -O ${#doomed[@]} doomed < <(purged_paths)
  mounted=$(mounts_in "${doomed[@]}" | paste -sd' ')
  [ -z "$mounted" ] || fail "something is mounted in what is to be removed: $mounted" 'Nothing was removed. Unmount it, and start again.'
  step 'Removing podd'
  stopped_daemon=
  if has_systemd; then
    systemctl --quiet stop podd-drain.service podd.service podd-containerd.service 2>/dev/null || true
    systemctl --quiet disable podd.service 2>/dev/null || true
  fi
  remove_untouched_example "$opt/manifests/hello.yaml"
  if [ -f "$config" ] && cmp -s "$config" "$opt/packaging/config.yaml"; then rm -f "$config"; fi
  for scope in $scopes; do
    rm -f "$units/$scope.d/podd.conf"
    rmdir "$units/$scope.d" 2>/dev/null || true
  done
  rm -f "$units/podd.service" "$units/podd-drain.service" "$units/podd-containerd.service" $daemon_log_file $daemon_log_file.1
  ! has_systemd || systemctl daemon-reload
  for link in $links; do
    home=/usr/local/${link%:*}
    [ "$(readlink "$home" 2>/dev/null)" != "/opt/podd/${link#*:}" ] || rm -f "$home"
    case $link in
      bin/*) ;;
      # Debian has share/man from the beginning: /usr/local/man leads to it.
      share/man/*) rmdir "$(dirname "$home")" 2>/dev/null || true ;;
      *) (cd /usr/local/share && rmdir -p --ignore-fail-on-non-empty "$(dirname "${home#/usr/local/share/}")" 2>/dev/null) || true ;;
    esac
  done
  [ $action = uninstall ] || remove_packages
  remove_paths "${doomed[@]}"
  [ $action = uninstall ] || remove_log_links
  rmdir "$manifests" "$(dirname "$config")" 2>/dev/null || true
  tell_what_stays
}

tell_what_stays() {
  local path packages staying=()
  for path in "$manifests"/* "$(dirname "$config")"/* "$state" "${moved[@]#* }"; do
    [ ! -e "$path" ] || staying+=("  $path")
  done
  packages=$(removable_packages | paste -sd' ')
  [ -z "$packages" ] || staying+=("  the packages that came with podd: $packages")
  if [ ${#staying[@]} = 0 ]; then say 'podd is gone'; return; fi
  say 'podd is gone. What stays:'
  printf '%s\n' "${staying[@]}"
  if [ ${#moved[@]} -gt 0 ]; then
    say "install.sh --purge removes nothing of what $config names elsewhere, nor that file."
  elif [ $action = purge ] && has_claims; then
    say "The data of PersistentVolumeClaims is in $state/claims; remove it by hand where nothing needs it."
  elif [ $action = uninstall ]; then
    say 'install.sh --purge removes these too.'
  fi
}
