# shellcheck shell=bash
# What podd made on this machine, and its removal: sourced by install.sh, and part of the package's postrm. Both have $config,
# $manifests and $state: the settings, the usual directory of manifests, and podd's root directory.

# Places that the settings name and that are not the usual ones, as `rootDir /data/podd`. What can't be read here (a
# value on the next line, say) counts as one of them: podd may then be elsewhere.
moved_places() {
  local field usual place
  [ -f "$config" ] || return 0
  while read -r field usual; do
    sed -E 's/(^|[[:space:]])#.*//' "$config" | grep -oE "(^|[^[:alnum:]])${field}[\"']?[[:space:]]*:.*" |
      sed -E "s/^[^:]*:[[:space:]]*//; s|/*[[:space:]\"'},]*\$||; s/^[\"']//" |
      while IFS= read -r place; do [ "$place" = "$usual" ] || printf '%s\n' "$field $place"; done
  done <<'END' || true
staticPodPath /etc/pods
rootDir /var/lib/podd
runDir /run/podd
podLogsDir /var/log/pods
containerLogsDir /var/log/containers
END
}

is_moved() { # FIELD
  moved_places | grep "^$1 " >/dev/null
}

mounts_in() { # PATHS... : what is mounted at or below them
  local path place
  for path; do
    path=$(realpath -m -- "$path")
    while read -r _ _ _ _ place _; do
      printf -v place %b "$place" # the kernel writes a space as \040
      case $place in "$path" | "$path"/*) printf '%s\n' "$place" ;; esac
    done </proc/self/mountinfo
  done
}

# What a purge removes, with all that is in it, one path a line. Where the settings name another place, neither that one nor
# the usual one is taken for podd's, and the settings stay to tell of it.
purged_paths() {
  local path uid owner
  printf '%s\n' /run/podd /var/cache/podd
  is_moved staticPodPath || printf '%s\n' "$manifests"
  [ -n "$(moved_places)" ] || dirname "$config"
  ! is_moved rootDir || return 0
  printf '%s\n' "$state"
  ! is_moved podLogsDir || return 0
  # Logs of podd's pods only: another kubelet may have its own there. Those of pods that were removed are known by podd's
  # mark alone, which a power cut may have left empty.
  for path in "$state"/pods/* "$state"/records/*.json "$state"/records/*.json.unreadable; do
    [ -e "$path" ] || continue
    uid=${path##*/}
    for path in /var/log/pods/*_"${uid%%.json*}"; do printf '%s\n' "$path"; done
  done
  for path in /var/log/pods/*/.podd-owner; do
    [ -f "$path" ] || continue
    owner=$(tr -d '\0' <"$path")
    [ "${owner%/}" != "$state" ] || printf '%s\n' "${path%/*}"
  done
}

# Whether a claim has data, or had: its directory is there.
has_claims() { [ -n "$(find "$state/claims" -mindepth 2 -maxdepth 2 -type d -print -quit 2>/dev/null)" ]; }

# A purge removes these, but the data of claims only where somebody does so by hand.
remove_paths() { # PATHS...
  local path
  for path; do
    if [ "$path" = "$state" ] && has_claims; then
      find "$state" -mindepth 1 -maxdepth 1 ! -name claims -exec rm -rf {} +
    else
      rm -rf "$path"
    fi
  done
}

# Links to logs that are gone, and directories that are empty then.
remove_log_links() {
  find /var/log/containers -xtype l -lname '/var/log/pods/*' -delete 2>/dev/null || true
  rmdir /var/log/pods /var/log/containers 2>/dev/null || true
}

# An example that is as it was placed holds no work of the user's.
remove_untouched_example() { # THE EXAMPLE
  if [ -f "$manifests/hello.yaml" ] && sed 's/hostPort: .*/hostPort: 8080/' "$manifests/hello.yaml" | cmp -s - "$1"; then
    rm -f "$manifests/hello.yaml"
  fi
}
