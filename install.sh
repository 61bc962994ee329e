#!/usr/bin/env bash
# Installs podd on this machine, from a clone or from the archive of a release; see --help.
set -euo pipefail
umask 022
export LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1

usage() {
  cat <<'END'
usage: sudo ./install.sh [--no-hello]
       sudo ./install.sh --rollback | --uninstall | --purge

Installs podd on this machine and starts it, or upgrades the one that is here: running pods run on.

  /opt/podd               the program, with a Node of its own; /opt/podd.previous is the version before
  /usr/local              links to the command, manuals and completions
  /etc/podd/config.yaml   the settings
  /etc/pods               the manifests: drop Pods here
  podd.service, podd-containerd.service, podd-drain.service

What podd needs and this machine lacks comes from the distribution: containerd, runc, CNI plugins, iptables,
catatonit. A containerd or Docker that is here stays as it is. Nothing that is only needed to build podd
(npm, a compiler) stays behind.

  --no-hello    leave out the example pod
  --stage DIR   lay the files out under DIR and touch nothing else: no packages, nothing is started
  --rollback    go back to the version before; pods run on
  --uninstall   end the pods and remove podd, but neither manifests, settings nor data
  --purge       remove those too, with the packages that came with podd; what stays is the data of claims, and what the
                settings put elsewhere
  --help        this text
END
}

wrong_usage() { printf 'install.sh: %s\n' "$1" >&2; exit 2; }
action=install hello=yes stage=
while [ $# -gt 0 ]; do
  case $1 in
    --uninstall | --purge | --rollback) action=${1#--} ;;
    --no-hello) hello= ;;
    --stage)
      case ${2-} in '' | -*) stage=/ ;; *) stage=$(realpath -m -- "$2") ;; esac
      [ "$stage" != / ] || wrong_usage '--stage needs a directory, and not /'
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; wrong_usage "unknown argument $1" ;;
  esac
  shift
done
[ -z "$stage" ] || [ $action = install ] || wrong_usage '--stage goes with installing only'

here=$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && pwd)
opt=$stage/opt/podd previous=$stage/opt/podd.previous
config=$stage/etc/podd/config.yaml manifests=$stage/etc/pods state=/var/lib/podd
units=$stage/etc/systemd/system
# Those of containers, by their prefix, with the systemd cgroup driver.
scopes='cri-containerd-.scope crio-.scope'
# Which packages came with podd. Kept apart from the program, which is replaced as a whole.
packages_record=$stage/etc/podd/.installed-packages
daemon_log_file=/var/log/podd.log
# Below /usr/local, and where each leads in the program.
links='bin/podd:bin/podd share/man/man1/podd.1.gz:share/man/man1/podd.1.gz
share/man/man5/podd.yaml.5.gz:share/man/man5/podd.yaml.5.gz share/bash-completion/completions/podd:share/completions/podd.bash
share/zsh/site-functions/_podd:share/completions/podd.zsh share/fish/vendor_completions.d/podd.fish:share/completions/podd.fish'

podd() { "$opt/bin/podd" "$@"; }
say() { printf '%s\n' "$*"; }
step() { printf '==> %s\n' "$*"; }
fail() { # MESSAGE [HINT]
  printf 'install.sh: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf '            %s\n' "$2" >&2
  exit 1
}
quietly() { # COMMAND... : its output only if it fails
  "$@" >"$work/log" 2>&1 </dev/null && return
  awk '{ line[NR] = $0 } END { for (i = 1; i <= NR; i++) if (NR < 30 || i < 10 || i > NR - 20) print "    " line[i] }' "$work/log" >&2
  return 1
}
has_systemd() { [ -z "$stage" ] && [ -d /run/systemd/system ]; }

work='' replaced='' stopped_daemon=''
clean_up() { # on every way out, and to its end
  local status=$?
  trap - EXIT
  trap : HUP INT TERM PIPE
  set +e
  [ -n "$stage" ] || end_package_run
  if [ -n "$replaced" ] && [ -e "$previous" ]; then
    say 'putting the previous version back' >&2
    [ ! -e "$opt" ] || mv "$opt" "$opt.new"
    mv "$previous" "$opt" && put_units
    if [ $action = rollback ]; then mv "$opt.new" "$previous"; elif [ -e "$previous.gone" ]; then mv "$previous.gone" "$previous"; fi
    sync --file-system "$opt" "$(units_directory)"
  fi
  rm -rf "$opt.new" "$previous.gone" ${work:+"$work"}
  if [ -z "$stage" ] && [ -n "$replaced$stopped_daemon" ]; then
    say 'starting podd again' >&2
    start_daemon
  fi
  exit "$status"
}

take_program() { # into $work/podd: this directory, if it is an archive of a release, or what is built of the clone
  if [ ! -d "$here/src" ]; then
    [ -x "$here/node/bin/node" ] || fail "$here holds no podd to install" 'Run install.sh from a clone of the repository, or from an unpacked archive.'
    (cd "$here" && quietly sha256sum --strict --quiet -c SHA256SUMS) || fail "the files in $here are not those of the release" 'Unpack the archive anew.'
    cp -R "$here" "$work/podd"
  else
    mkdir "$work/source"
    tar -C "$here" -cf - --exclude=./node_modules --exclude=./dist --exclude=./packages --exclude=./.git --exclude=./test . |
      tar -C "$work/source" --no-same-owner -xf -
    # What is run as root here is what others can't have written, or what npm compares with package-lock.json.
    if (cd "$here" && node_modules_match) && [ -z "$(find "$here/node_modules/" ! -type l \( -perm -2 -o ! -uid 0 ! -uid "$(stat -c %u "$here")" \) -print -quit)" ]; then
      step 'npm packages: those of this directory'
      ln -s "$here/node_modules" "$work/source/node_modules"
    else
      step 'npm packages: downloading'
    fi
    cd "$work/source"
    quietly need_node_modules || fail 'the npm packages could not be installed' 'Is the network there? Then start again; nothing was changed.'
    step 'Building podd'
    find_busybox
    quietly packaging/build.sh "$work/podd" "$(pinned_node)" "$busybox" || fail 'podd could not be built; this is a bug'
  fi
  cd /
  "$work/podd/bin/podd" version >/dev/null || fail "podd does not run on this machine: $("$work/podd/bin/podd" version 2>&1 | head -n 1)"
}

# A static one of this machine for the example's image, or out of the distribution's package, which isn't installed: it would
# take the place of another busybox.
find_busybox() {
  busybox=$(command -v busybox || true)
  if [ -n "$busybox" ] && node packaging/busybox-image.ts "$busybox" /dev/null >/dev/null 2>&1; then return; fi
  mkdir "$work/busybox"
  (cd "$work/busybox" && apt -o APT::Sandbox::User=root download busybox-static && dpkg-deb -x ./*.deb .) >/dev/null 2>&1 || true
  busybox=$(find "$work/busybox" -name busybox -type f -perm -1 | head -n 1)
}

put_in_place() {
  local link
  step "Installing $("$work/podd/bin/podd" version | head -n 1) in $opt"
  mkdir -p "$(dirname "$opt")" "$(dirname "$config")" "$manifests"
  rm -rf "$opt.new"
  cp -R "$work/podd" "$opt.new"
  rm -rf "$opt.new/dist/cache"
  on_disk "$opt.new"
  put_program "$opt.new"
  for link in $links; do
    mkdir -p "$(dirname "$stage/usr/local/${link%:*}")"
    ln -sfn "/opt/podd/${link#*:}" "$stage/usr/local/${link%:*}"
  done
  [ -e "$config" ] || cp "$opt/packaging/config.yaml" "$config"
  put_units
  on_disk "$opt" "$stage/usr/local/bin" "$(dirname "$config")" "$(units_directory)"
}

put_program() { # DIRECTORY : in the place of the one that is there, which is then the previous one
  rm -rf "$previous.gone"
  if [ -d "$opt" ]; then
    [ "$1" = "$previous" ] || [ ! -e "$previous" ] || mv "$previous" "$previous.gone"
    [ "$1" != "$previous" ] || mv "$previous" "$opt.new"
    replaced=yes
    mv "$opt" "$previous"
  fi
  mv "$opt.new" "$opt"
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
  ! has_systemd || { systemctl daemon-reload && systemctl --quiet enable podd.service; }
}

install_podd() {
  local first=
  [ -e "$opt" ] || first=yes
  case $(uname -m) in x86_64 | aarch64) ;; *) fail "no podd for $(uname -m): only for x86_64 and aarch64" ;; esac
  [ -n "$stage" ] || ! is_installed podd || fail 'podd is installed here as a package' 'podd upgrade, or apt-get, upgrades and removes it.'
  [ -n "$stage" ] || install_packages
  take_program
  put_in_place
  if [ -n "$stage" ]; then
    [ -z "$hello" ] || [ -e "$manifests/hello.yaml" ] || cp "$opt/manifests/hello.yaml" "$manifests/hello.yaml"
    replaced=
    say "podd is laid out under $stage"
    return
  fi
  step 'Starting podd'
  start_daemon
  wait_for_daemon
  replaced=
  if [ -n "$first" ] && [ -n "$hello" ]; then place_hello; fi
  on_disk "$opt" "$manifests"
  say
  if [ -n "$placed_hello" ]; then show_hello; else podd get pods; fi
  say
  say 'podd runs. Drop Pods into /etc/pods; podd --help tells the rest.'
  has_systemd || say 'There is no systemd here: after a reboot, start it with: podd run'
}

roll_back() {
  [ -x "$previous/bin/podd" ] || fail "there is no version before: $previous is not there"
  step "Going back to $("$previous/bin/podd" version | head -n 1)"
  put_program "$previous"
  put_units
  on_disk "$opt" "$(units_directory)"
  start_daemon
  wait_for_daemon
  replaced=
  podd get pods
}

[ "$(id -u)" = 0 ] || [ -n "$stage" ] || fail 'needs root' "Run: sudo ./install.sh"
for part in node-modules distribution daemon remove uninstall; do
  [ -e "$here/packaging/$part.sh" ] || fail "$here is incomplete: packaging/$part.sh is missing"
  # shellcheck disable=SC1090
  . "$here/packaging/$part.sh"
done
if [ -z "$stage" ]; then
  # A directory that is there whatever happens, so that none can lock another file of the same name; until this process ends.
  mkdir -p /opt
  exec 9</opt
  flock -n 9 || fail 'another install.sh is running'
fi
work=$(mktemp -d /var/tmp/podd-install.XXXXXX)
trap clean_up EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 141' PIPE; trap 'exit 143' TERM
case $action in
  install) install_podd ;;
  rollback) roll_back ;;
  *) uninstall_podd ;;
esac
