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
  podd.service, podd-containerd.service

What podd needs and this machine lacks comes from the distribution: containerd, runc, CNI plugins, iptables,
catatonit. A containerd or Docker that is here stays as it is. Nothing that is only needed to build podd
(npm, a compiler) stays behind.

  --no-hello    leave out the example pod
  --stage DIR   lay the files out under DIR and touch nothing else: no packages, nothing is started
  --uninstall   end the pods and remove podd, but neither manifests, settings nor data
  --purge       remove those too, with the packages that came with podd
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
      [ $# -gt 1 ] || { usage >&2; exit 2; }
      stage=${2%/}
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
units=$stage/etc/systemd/system
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
clean_up() {
  local status=$?
  trap - EXIT
  if [ -n "$old_put_aside" ]; then
    say 'putting the previous version back' >&2
    rm -rf "$opt"
    mv "$opt.old" "$opt"
    put_units
    start_daemon || true
  fi
  rm -rf "$opt.new"
  [ -z "$work" ] || rm -rf "$work"
  [ -n "$stage" ] || rm -f "$lock"
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
  local folder found=
  for folder in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do
    [ -x $folder/bridge ] && [ -x $folder/host-local ] && [ -x $folder/portmap ] && found=yes
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

# A package's service must not start by itself: podd runs the containerd that it needs.
without_services() {
  local policy=/usr/sbin/policy-rc.d status=0
  if [ -e $policy ]; then
    "$@" || status=$?
  else
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
    "$@" || status=$?
    rm -f $policy
  fi
  return $status
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
  dpkg-query -W -f '${Package}\n' | sort >"$work/packages-before"
  quietly without_services apt_install "${missing[@]}" ||
    fail 'the packages could not be installed' "Install them by hand (apt-get install ${missing[*]}), and start again."
  mkdir -p "$(dirname "$packages_record")"
  dpkg-query -W -f '${Package}\n' | sort | comm -13 "$work/packages-before" - >>"$packages_record"
  case " ${missing[*]} " in
    *' containerd '*) ! has_systemd || systemctl --quiet disable --now containerd.service 2>/dev/null || true ;;
  esac
}

# ------------------------------------------------------------------ the program

build() { # into $work/podd, from a copy of this folder, so that nothing is written into it
  local node
  mkdir "$work/source"
  tar -C "$here" -cf - --exclude=./node_modules --exclude=./dist --exclude=./.git --exclude=./test . |
    tar -C "$work/source" --no-same-owner -xf -
  if (cd "$here" && node_modules_match); then
    step 'npm packages: those of this folder'
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
  cp packaging/*.service packaging/config.yaml "$work/podd/packaging/"
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
  if [ -d "$opt" ]; then
    mv "$opt" "$opt.old"
    old_put_aside=yes
  fi
  mv "$opt.new" "$opt"
  ln -sfn /opt/podd/bin/podd "$command_link"
  [ -e "$config" ] || cp "$opt/packaging/config.yaml" "$config"
  put_units
}

put_units() {
  if has_systemd || [ -n "$stage" ]; then
    mkdir -p "$units"
    cp "$opt"/packaging/*.service "$units/"
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

start_daemon() { # and if one runs, the new one takes over: the pods run on
  if has_systemd; then
    systemctl daemon-reload
    systemctl --quiet enable podd.service
    systemctl restart podd.service
    return
  fi
  stop_daemon
  setsid "$opt/bin/podd" run >>/var/log/podd.log 2>&1 </dev/null 9>&- &
}

stop_daemon() { # the daemon alone
  local pid
  if has_systemd; then
    systemctl --quiet disable --now podd.service 2>/dev/null || true
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
  if has_systemd; then journalctl --no-pager --quiet -n 15 -u podd.service; else tail -n 15 /var/log/podd.log; fi
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

place_hello() { # with the first free port from 8080 on
  local port=8080
  while in_use $port && [ $port -lt 8099 ]; do port=$((port + 1)); done
  sed "s/hostPort: 8080/hostPort: $port/" "$opt/manifests/hello.yaml" >"$manifests/.hello.yaml.new"
  mv "$manifests/.hello.yaml.new" "$manifests/hello.yaml"
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
    [ -z "$hello" ] || cp "$opt/manifests/hello.yaml" "$manifests/hello.yaml"
    done_with_old
    say "podd is laid out under $stage"
    return
  fi
  step 'Starting podd'
  start_daemon
  wait_for_daemon
  done_with_old
  if [ -n "$first" ] && [ -n "$hello" ]; then
    if [ -f "$opt/busybox-image.tar" ]; then
      step 'Starting the example pod, /etc/pods/hello.yaml'
      quietly podd images import "$opt/busybox-image.tar" || fail "the example's image could not be imported"
      place_hello
    else
      say 'no static busybox is to be had here, so there is no example pod'
      hello=
    fi
  fi
  say
  if [ -n "$hello" ] && [ -f "$manifests/hello.yaml" ]; then show_hello; else podd get pods; fi
  say
  say 'podd runs. Drop Pods into /etc/pods; podd --help tells the rest.'
  has_systemd || say 'There is no systemd here: after a reboot, start it with: podd run'
}

done_with_old() {
  old_put_aside=
  rm -rf "$opt.old"
}

uninstall_podd() {
  if [ ! -e "$opt" ] && [ ! -e "$units/podd.service" ] && [ $action = uninstall ]; then
    say 'podd is not installed here'
    return
  fi
  if [ -x "$opt/bin/podd" ]; then
    step 'Ending the pods'
    stop_daemon
    podd down ||
      fail 'the pods could not be ended; podd is still here' 'See what podd said, and start again.'
  fi
  step 'Removing podd'
  if has_systemd; then
    systemctl --quiet stop podd.service podd-containerd.service 2>/dev/null || true
    systemctl --quiet disable podd.service 2>/dev/null || true
  fi
  # What is still as it was installed is no one's work.
  if [ -f "$manifests/hello.yaml" ] && sed 's/hostPort: .*/hostPort: 8080/' "$manifests/hello.yaml" | cmp -s - "$opt/manifests/hello.yaml"; then
    rm -f "$manifests/hello.yaml"
  fi
  if [ -f "$config" ] && cmp -s "$config" "$opt/packaging/config.yaml"; then rm -f "$config"; fi
  rm -f "$units/podd.service" "$units/podd-containerd.service" /var/log/podd.log
  ! has_systemd || systemctl daemon-reload
  if [ "$(readlink "$command_link" 2>/dev/null)" = /opt/podd/bin/podd ]; then rm -f "$command_link"; fi
  rm -rf "$opt" "$opt.new" "$opt.old" /run/podd
  if [ $action = purge ]; then purge_data; else tell_what_stays; fi
  rmdir "$manifests" "$(dirname "$config")" 2>/dev/null || true
}

# Packages that came with podd, unless by now others need one of them.
removable_packages() {
  local recorded going
  [ -s "$packages_record" ] && command -v apt-get >/dev/null || return 0
  mapfile -t recorded < <(sort -u "$packages_record")
  going=$(apt-get -s purge "${recorded[@]}" 2>/dev/null | sed -n 's/^\(Purg\|Remv\) \([^ ]*\) .*/\2/p' | sort -u)
  if [ -z "$(comm -13 <(printf '%s\n' "${recorded[@]}") <(say "$going"))" ]; then say "$going"; fi
}

purge_data() {
  local packages path
  mapfile -t packages < <(removable_packages)
  if [ ${#packages[@]} -gt 0 ] && [ -n "${packages[0]}" ]; then
    step "Removing the packages that came with podd: ${packages[*]}"
    quietly apt purge "${packages[@]}" || say 'they could not be removed' >&2
  fi
  step 'Removing manifests, settings and data'
  # Logs of podd's pods only: another kubelet may have its own there.
  for path in /var/lib/podd/pods/*; do
    [ -d "$path" ] && rm -rf /var/log/pods/*_"${path##*/}"
  done
  find /var/log/containers -xtype l -lname '/var/log/pods/*' -delete 2>/dev/null || true
  rmdir /var/log/pods /var/log/containers 2>/dev/null || true
  rm -rf /var/lib/podd /etc/podd "$manifests"
  say 'podd is gone'
}

tell_what_stays() {
  local path packages
  say 'podd is gone. What stays:'
  for path in "$manifests"/* /etc/podd/* /var/lib/podd; do
    [ ! -e "$path" ] || say "  $path"
  done
  packages=$(removable_packages | paste -sd' ')
  [ -z "$packages" ] || say "  the packages that came with podd: $packages"
  say 'install.sh --purge removes these too.'
}

here=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && pwd)
[ "$(id -u)" = 0 ] || [ -n "$stage" ] || fail 'needs root' "Run: sudo ./install.sh"
if [ -z "$stage" ]; then
  exec 9>"$lock"
  flock -n 9 || fail 'another install.sh is running'
fi
work=$(mktemp -d /var/tmp/podd-install.XXXXXX)
trap clean_up EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
case $action in
  install) install_podd ;;
  *) uninstall_podd ;;
esac
