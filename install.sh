#!/usr/bin/env bash
# Installs podd on this machine; see --help.
set -euo pipefail
umask 022
export LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1

usage() {
  cat <<'END'
usage: sudo ./install.sh [--no-hello]
       sudo ./install.sh --uninstall | --purge

Installs podd on this machine and starts it, or upgrades the one that is here: running pods run on.

  /opt/podd               the program, with a Node of its own
  /usr/local/bin/podd     the command
  /etc/podd/config.yaml   the settings
  /etc/pods               the manifests: drop Pods here
  podd.service, podd-containerd.service, podd-drain.service

What podd needs and this machine lacks comes from the distribution: containerd, runc, CNI plugins, iptables,
catatonit. A containerd or Docker that is here stays as it is. Nothing that is only needed to build podd
(npm, a compiler) stays behind.

  --no-hello    leave out the example pod
  --stage DIR   lay the files out under DIR and touch nothing else: no packages, nothing is started
  --uninstall   end the pods and remove podd, but neither manifests, settings nor data
  --purge       remove those too, with the packages that came with podd; what the settings put elsewhere stays
  --help        this text
END
}

# ------------------------------------------------------------------ what is asked

action=install hello=yes stage=
while [ $# -gt 0 ]; do
  case $1 in
    --uninstall) action=uninstall ;;
    --purge) action=purge ;;
    --no-hello) hello= ;;
    --stage)
      case ${2-} in '' | -*) stage=/ ;; *) stage=$(realpath -m -- "$2") ;; esac
      if [ "$stage" = / ]; then
        printf 'install.sh: --stage needs a directory, and not /\n' >&2
        exit 2
      fi
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      printf 'install.sh: unknown argument %s\n\n' "$1" >&2
      usage >&2
      exit 2
      ;;
  esac
  shift
done
if [ -n "$stage" ] && [ $action != install ]; then
  printf 'install.sh: --stage goes with installing only\n' >&2
  exit 2
fi

opt=$stage/opt/podd
command_link=$stage/usr/local/bin/podd
config=$stage/etc/podd/config.yaml
manifests=$stage/etc/pods
state=/var/lib/podd
units=$stage/etc/systemd/system
# Those of containers, by their prefix, with the systemd cgroup driver.
scopes='cri-containerd-.scope crio-.scope'
# Which packages came with podd. Kept apart from the program, which is replaced as a whole.
packages_record=$stage/etc/podd/.installed-packages

# ------------------------------------------------------------------ telling, and failing well

podd() { "$opt/bin/podd" "$@"; }
say() { printf '%s\n' "$*"; }
step() { printf '==> %s\n' "$*"; }
fail() { # MESSAGE [HINT]
  printf 'install.sh: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf '            %s\n' "$2" >&2
  exit 1
}

lock=/run/podd-install.lock
work=
old_put_aside=
stopped_daemon=
clean_up() { # on every way out, and to its end
  local status=$?
  trap - EXIT
  trap : HUP INT TERM PIPE
  set +e
  if [ -z "$stage" ]; then
    let_services_start
    record_packages
  fi
  if [ -n "$old_put_aside" ]; then
    say 'putting the previous version back' >&2
    rm -rf "$opt"
    mv "$opt.old" "$opt"
    put_units
    sync --file-system "$opt" "$(units_directory)"
  fi
  rm -rf "$opt.new"
  [ -z "$work" ] || rm -rf "$work"
  [ -n "$stage" ] || rm -f "$lock"
  if [ -z "$stage" ] && [ -n "$old_put_aside$stopped_daemon" ]; then
    say 'starting podd again' >&2
    start_daemon
  fi
  exit "$status"
}

quietly() { # COMMAND... : its output only if it fails
  if ! "$@" >"$work/log" 2>&1 </dev/null; then
    awk '{ line[NR] = $0 } END { for (i = 1; i <= NR; i++) if (NR < 30 || i < 10 || i > NR - 20) print "    " line[i] }' \
      "$work/log" >&2
    return 1
  fi
}

has_systemd() { [ -z "$stage" ] && [ -d /run/systemd/system ]; }

# ------------------------------------------------------------------ packages

missing_packages() { # what podd needs, by the programs and not by the packages' names
  { command -v containerd && command -v ctr; } >/dev/null || say containerd
  command -v runc >/dev/null || say runc
  local directory found=
  for directory in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do
    [ -x $directory/bridge ] && [ -x $directory/host-local ] && [ -x $directory/portmap ] && found=yes
  done
  [ -n "$found" ] || say containernetworking-plugins
  command -v iptables >/dev/null || say iptables
  command -v ip >/dev/null || say iproute2
  command -v catatonit >/dev/null || say catatonit
  missing_node_libraries
}

apt() { apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"; }

apt_install() {
  apt install "$@" && return
  apt update || true
  apt install "$@"
}

# A package's service must not start by itself: podd runs the containerd that it needs. A policy that a killed run left is
# known by its mark; any other stays.
policy=/usr/sbin/policy-rc.d
policy_mark="# Of podd's install.sh, while it installs packages."
keep_services_down() {
  let_services_start
  [ ! -e $policy ] || return 0
  printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" >$policy
  chmod 755 $policy
}
let_services_start() { ! grep -qsxF "$policy_mark" $policy || rm -f $policy; }

known_packages() { dpkg-query -W -f '${Package}\n' | sort; }

# Those that came since packages-before was written, all or the first ones.
record_packages() {
  local came
  [ -e "$work/packages-before" ] || return 0
  came=$(known_packages | comm -13 "$work/packages-before" -)
  rm "$work/packages-before"
  [ -n "$came" ] || return 0
  mkdir -p "$(dirname "$packages_record")"
  say "$came" >>"$packages_record"
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} = 0 ]; then
    step 'Packages: all there'
    return
  fi
  step "Packages: ${missing[*]}"
  command -v apt-get >/dev/null ||
    fail "this machine lacks ${missing[*]}, and has no apt-get to install them" 'Install them, and start again.'
  known_packages >"$work/packages-before"
  keep_services_down
  quietly apt_install "${missing[@]}" ||
    fail 'the packages could not be installed' "Install them by hand (apt-get install ${missing[*]}), and start again."
  let_services_start
  record_packages
  case " ${missing[*]} " in
    *' containerd '*) ! has_systemd || systemctl --quiet disable --now containerd.service 2>/dev/null || true ;;
  esac
}

# ------------------------------------------------------------------ the program

build() { # into $work/podd, from a copy of this directory, so that nothing is written into it
  local node
  mkdir "$work/source"
  tar -C "$here" -cf - --exclude=./node_modules --exclude=./dist --exclude=./.git --exclude=./test . |
    tar -C "$work/source" --no-same-owner -xf -
  if (cd "$here" && node_modules_match); then
    step 'npm packages: those of this directory'
    ln -s "$here/node_modules" "$work/source/node_modules"
  else
    step 'npm packages: downloading'
  fi
  cd "$work/source"
  quietly need_node_modules ||
    fail 'the npm packages could not be installed' 'Is the network there? Then start again; nothing was changed.'
  step 'Building podd'
  quietly node --run build || fail 'podd could not be built; this is a bug'
  node=$(pinned_node)
  mkdir -p "$work/podd/node/bin"
  cp -L "$node" "$work/podd/node/bin/node"
  cp -R dist bin manifests LICENSE README.md install.sh "$work/podd/"
  mkdir "$work/podd/packaging"
  cp packaging/*.service packaging/container-scope.conf packaging/config.yaml "$work/podd/packaging/"
  make_example_image
  cd /
  "$work/podd/bin/podd" version >/dev/null || fail 'the built podd does not run; this is a bug'
}

# The image of the example pods: a static busybox, of this machine, or out of the distribution's package, which
# isn't installed (it would take the place of another busybox). Without either there is no example.
make_example_image() {
  local image=$work/podd/busybox-image.tar own
  own=$(command -v busybox || true)
  if [ -n "$own" ] && node packaging/busybox-image.ts "$own" "$image" >/dev/null 2>&1; then return; fi
  mkdir "$work/busybox"
  (cd "$work/busybox" && apt -o APT::Sandbox::User=root download busybox-static && dpkg-deb -x ./*.deb .) >/dev/null 2>&1 || return 0
  own=$(find "$work/busybox" -name busybox -type f -perm -1 | head -n 1)
  [ -z "$own" ] || quietly node packaging/busybox-image.ts "$own" "$image" || true
}

put_in_place() {
  step "Installing $("$work/podd/bin/podd" version | head -n 1) in $opt"
  mkdir -p "$(dirname "$opt")" "$(dirname "$command_link")" "$(dirname "$config")" "$manifests"
  rm -rf "$opt.new" "$opt.old"
  cp -R "$work/podd" "$opt.new"
  # A checkout has the modes that its owner's umask left.
  chmod -R u=rwX,go=rX "$opt.new"
  on_disk "$opt.new"
  if [ -d "$opt" ]; then
    mv "$opt" "$opt.old"
    old_put_aside=yes
  fi
  mv "$opt.new" "$opt"
  ln -sfn /opt/podd/bin/podd "$command_link"
  [ -e "$config" ] || cp "$opt/packaging/config.yaml" "$config"
  put_units
  on_disk "$opt" "$(dirname "$command_link")" "$(dirname "$config")" "$(units_directory)"
}

# A new appliance is soon unplugged: files that the kernel has not written yet are empty after that.
on_disk() { # PATHS... : their file systems
  quietly sync --file-system "$@" || fail "the disk does not take what was installed"
}

units_directory() { if [ -d "$units" ]; then say "$units"; else dirname "$config"; fi; }

put_units() {
  local scope
  if has_systemd || [ -n "$stage" ]; then
    mkdir -p "$units"
    cp "$opt"/packaging/*.service "$units/"
    for scope in $scopes; do
      mkdir -p "$units/$scope.d"
      cp "$opt/packaging/container-scope.conf" "$units/$scope.d/podd.conf"
    done
  fi
  if has_systemd; then
    systemctl daemon-reload
    systemctl --quiet enable podd.service
  fi
}

# ------------------------------------------------------------------ the daemon

# The daemon's process, where no systemd keeps it.
daemon_pid() {
  local dir line
  for dir in /proc/[0-9]*; do
    line=$({ tr '\0' ' ' <"$dir/cmdline"; } 2>/dev/null) || continue
    case $line in
      /opt/podd/node/bin/node\ */opt/podd/dist/main.js\ run*)
        say "${dir#/proc/}"
        return
        ;;
    esac
  done
  return 1
}

daemon_log_file=/var/log/podd.log

start_daemon() { # and if one runs, the new one takes over: the pods run on
  if has_systemd; then
    systemctl restart podd.service
    return
  fi
  stop_daemon
  # Nobody else rotates it.
  if [ "$(stat -c %s $daemon_log_file 2>/dev/null || echo 0)" -gt $((10 << 20)) ]; then
    mv -f $daemon_log_file $daemon_log_file.1
  fi
  setsid "$opt/bin/podd" run >>$daemon_log_file 2>&1 </dev/null 9>&- &
}

daemon_runs() { # or is meant to: systemd may be about to restart it
  if ! has_systemd; then
    daemon_pid >/dev/null
    return
  fi
  case $(systemctl is-active podd.service) in active | activating | reloading) ;; *) return 1 ;; esac
}

stop_daemon() { # the daemon only
  local pid
  if has_systemd; then
    systemctl --quiet stop podd.service 2>/dev/null || true
    return
  fi
  pid=$(daemon_pid) || return 0
  kill "$pid" 2>/dev/null || return 0
  for _ in $(seq 300); do
    [ -e "/proc/$pid" ] || return 0
    sleep 0.1
  done
  fail "podd (process $pid) does not stop"
}

daemon_log() {
  if has_systemd; then journalctl --no-pager --quiet -n 15 -u podd.service; else tail -n 15 $daemon_log_file; fi
}

wait_for_daemon() { # until it answers, and has its runtime
  for _ in $(seq 120); do
    podd images >/dev/null 2>"$work/answer" && return
    sleep 0.5
  done
  { cat "$work/answer"; say 'what podd said last:'; daemon_log; } 2>/dev/null | sed 's/^/    /' >&2
  [ -z "$old_put_aside" ] || fail 'the new podd does not come up'
  fail 'podd was installed, but does not come up' 'podd doctor says what this machine lacks.'
}

# ------------------------------------------------------------------ the example

in_use() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

placed_hello=
place_hello() { # with the first free port from 8080 on, unless there is one already, or nobody would read it
  local port=8080 file=$manifests/hello.yaml
  if [ -e "$file" ] || [ -L "$file" ] || is_moved staticPodPath; then return; fi
  if [ ! -f "$opt/busybox-image.tar" ]; then
    say 'no static busybox is to be had here, so there is no example pod'
    return
  fi
  step "Starting the example pod, $file"
  quietly podd images import "$opt/busybox-image.tar" || fail "the example's image could not be imported"
  while in_use $port && [ $port -lt 8099 ]; do port=$((port + 1)); done
  sed "s/hostPort: 8080/hostPort: $port/" "$opt/manifests/hello.yaml" >"$manifests/.hello.yaml.new"
  mv "$manifests/.hello.yaml.new" "$file"
  placed_hello=yes
}

hello_is_running() { podd get pods 2>/dev/null | grep -q '^hello .* Running '; }

show_hello() {
  local port url
  for _ in $(seq 240); do
    hello_is_running && break
    sleep 0.5
  done
  if ! hello_is_running; then
    podd get pods >&2 || true
    podd describe pod hello >&2 || true
    fail 'the example pod does not run' 'podd doctor says what this machine lacks.'
  fi
  port=$(sed -n 's/.*hostPort: *\([0-9]*\).*/\1/p' "$manifests/hello.yaml")
  url=http://127.0.0.1:$port/
  say '$ podd get pods'
  podd get pods
  say
  say "\$ curl $url"
  "$opt/node/bin/node" -e '
    const deadline = Date.now() + 20_000
    const get = async () => {
      try {
        process.stdout.write(await (await fetch(process.argv[1])).text())
      } catch (error) {
        if (Date.now() > deadline) throw error.cause ?? error
        await new Promise((resolve) => setTimeout(resolve, 200))
        await get()
      }
    }
    get().catch((error) => { console.error(error.message); process.exitCode = 1 })
  ' "$url" || fail "the example pod runs, but its page $url does not answer" 'Does a firewall stand between? podd doctor says more.'
}

# ------------------------------------------------------------------ where things are

# Places that the settings name and that are not the usual ones, as `rootDir /data/podd`. What can't be read here (a
# value on the next line, say) counts as one of them: podd may then be elsewhere.
moved_places() {
  local field usual place
  [ -f "$config" ] || return 0
  while read -r field usual; do
    sed -E 's/(^|[[:space:]])#.*//' "$config" | grep -oE "(^|[^[:alnum:]])${field}[\"']?[[:space:]]*:.*" |
      sed -E "s/^[^:]*:[[:space:]]*//; s|/*[[:space:]\"'},]*\$||; s/^[\"']//" |
      while IFS= read -r place; do [ "$place" = "$usual" ] || say "$field $place"; done
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
      case $place in "$path" | "$path"/*) say "$place" ;; esac
    done </proc/self/mountinfo
  done
}

# ------------------------------------------------------------------ the actions

install_podd() {
  local first=
  [ -e "$opt" ] || first=yes
  case $(uname -m) in
    x86_64 | aarch64) ;;
    *) fail "no podd for $(uname -m): only for x86_64 and aarch64" ;;
  esac
  [ -d "$here/src" ] ||
    fail "$here holds no podd to install" 'Run install.sh from a clone of the repository.'
  . "$here/packaging/node-modules.sh"
  [ -n "$stage" ] || install_packages
  build
  put_in_place
  if [ -n "$stage" ]; then
    [ -z "$hello" ] || [ -e "$manifests/hello.yaml" ] || cp "$opt/manifests/hello.yaml" "$manifests/hello.yaml"
    done_with_old
    say "podd is laid out under $stage"
    return
  fi
  step 'Starting podd'
  start_daemon
  wait_for_daemon
  done_with_old
  if [ -n "$first" ] && [ -n "$hello" ]; then place_hello; fi
  on_disk "$opt" "$manifests"
  say
  if [ -n "$placed_hello" ]; then show_hello; else podd get pods; fi
  say
  say 'podd runs. Drop Pods into /etc/pods; podd --help tells the rest.'
  has_systemd || say 'There is no systemd here: after a reboot, start it with: podd run'
}

done_with_old() {
  old_put_aside=
  rm -rf "$opt.old"
}

end_pods() {
  local all=
  # A podd of an older version doesn't know the flag.
  if [ $action = purge ] && podd down --help | grep -E '^ *--all( |$)' >/dev/null; then all=--all; fi
  PODD_SOCKET='' podd down $all
}

uninstall_podd() {
  local doomed=() moved=() mounted ran= scope
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
    end_pods ||
      fail 'the pods could not be ended; podd is still here' 'See what podd said, and start again.'
  elif [ -e /run/podd/containerd ]; then
    fail "the program is gone, but podd's containerd was not ended" 'Run install.sh without an option, and then this again.'
  fi
  choose_doomed
  mounted=$(mounts_in "${doomed[@]}" | paste -sd' ')
  [ -z "$mounted" ] ||
    fail "something is mounted in what is to be removed: $mounted" 'Nothing was removed. Unmount it, and start again.'
  step 'Removing podd'
  stopped_daemon=
  if has_systemd; then
    systemctl --quiet stop podd-drain.service podd.service podd-containerd.service 2>/dev/null || true
    systemctl --quiet disable podd.service 2>/dev/null || true
  fi
  # Files that are as they were installed hold no work of the user's.
  if [ -f "$manifests/hello.yaml" ] && sed 's/hostPort: .*/hostPort: 8080/' "$manifests/hello.yaml" | cmp -s - "$opt/manifests/hello.yaml"; then
    rm -f "$manifests/hello.yaml"
  fi
  if [ -f "$config" ] && cmp -s "$config" "$opt/packaging/config.yaml"; then rm -f "$config"; fi
  for scope in $scopes; do
    rm -f "$units/$scope.d/podd.conf"
    rmdir "$units/$scope.d" 2>/dev/null || true
  done
  rm -f "$units/podd.service" "$units/podd-drain.service" "$units/podd-containerd.service" $daemon_log_file $daemon_log_file.1
  ! has_systemd || systemctl daemon-reload
  if [ "$(readlink "$command_link" 2>/dev/null)" = /opt/podd/bin/podd ]; then rm -f "$command_link"; fi
  [ $action = uninstall ] || remove_packages
  rm -rf "${doomed[@]}"
  if [ $action = purge ]; then
    # Links to logs that are gone.
    find /var/log/containers -xtype l -lname '/var/log/pods/*' -delete 2>/dev/null || true
    rmdir /var/log/pods /var/log/containers 2>/dev/null || true
  fi
  rmdir "$manifests" "$(dirname "$config")" 2>/dev/null || true
  tell_what_stays
}

# The directories that go, with all that is in them. Where the settings name another place, neither that one nor the usual
# one is taken for podd's, and the settings stay to tell of it.
choose_doomed() {
  local path uid owner
  mapfile -t moved < <(moved_places)
  doomed=("$opt" "$opt.new" "$opt.old" /run/podd)
  [ $action = purge ] || return 0
  is_moved staticPodPath || doomed+=("$manifests")
  [ ${#moved[@]} -gt 0 ] || doomed+=("$(dirname "$config")")
  ! is_moved rootDir || return 0
  doomed+=("$state")
  ! is_moved podLogsDir || return 0
  # Logs of podd's pods only: another kubelet may have its own there. Those of pods that were removed are known by podd's
  # mark alone, which a power cut may have left empty.
  for path in "$state"/pods/* "$state"/records/*.json "$state"/records/*.json.unreadable; do
    [ -e "$path" ] || continue
    uid=${path##*/}
    doomed+=(/var/log/pods/*_"${uid%%.json*}")
  done
  for path in /var/log/pods/*/.podd-owner; do
    [ -f "$path" ] || continue
    owner=$(tr -d '\0' <"$path")
    [ "${owner%/}" != "$state" ] || doomed+=("${path%/*}")
  done
}

# Packages that came with podd, unless by now others need one of them.
removable_packages() {
  local recorded going
  [ -s "$packages_record" ] && command -v apt-get >/dev/null || return 0
  mapfile -t recorded < <(sort -u "$packages_record")
  going=$(apt-get -s purge "${recorded[@]}" 2>/dev/null | sed -n 's/^\(Purg\|Remv\) \([^ ]*\) .*/\2/p' | sort -u)
  if [ -z "$(comm -13 <(printf '%s\n' "${recorded[@]}") <(say "$going"))" ]; then say "$going"; fi
}

remove_packages() {
  local packages
  mapfile -t packages < <(removable_packages)
  if [ ${#packages[@]} -gt 0 ] && [ -n "${packages[0]}" ]; then
    step "Removing the packages that came with podd: ${packages[*]}"
    quietly apt purge "${packages[@]}" || say 'they could not be removed' >&2
  fi
  rm -f "$packages_record"
}

tell_what_stays() {
  local path packages staying=()
  for path in "$manifests"/* "$(dirname "$config")"/* "$state" "${moved[@]#* }"; do
    [ ! -e "$path" ] || staying+=("  $path")
  done
  packages=$(removable_packages | paste -sd' ')
  [ -z "$packages" ] || staying+=("  the packages that came with podd: $packages")
  if [ ${#staying[@]} = 0 ]; then
    say 'podd is gone'
    return
  fi
  say 'podd is gone. What stays:'
  printf '%s\n' "${staying[@]}"
  if [ ${#moved[@]} -gt 0 ]; then
    say "install.sh --purge removes nothing of what $config names elsewhere, nor that file."
  elif [ $action = uninstall ]; then
    say 'install.sh --purge removes these too.'
  fi
}

here=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && pwd)
[ "$(id -u)" = 0 ] || [ -n "$stage" ] || fail 'needs root' "Run: sudo ./install.sh"
if [ -z "$stage" ]; then
  exec 9>"$lock"
  flock -n 9 || fail 'another install.sh is running'
fi
work=$(mktemp -d /var/tmp/podd-install.XXXXXX)
trap clean_up EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 141' PIPE; trap 'exit 143' TERM
case $action in
  install) install_podd ;;
  *) uninstall_podd ;;
esac
