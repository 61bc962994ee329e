#!/usr/bin/env bash
# npm, on a machine with or without it: `packaging/npm.sh ci --ignore-scripts` is `npm ci --ignore-scripts`.
#
# Where there is no npm, the distribution's own is borrowed: apt downloads nodejs and npm with what they
# need, they are unpacked into a temporary directory, and npm runs in a mount namespace of its own in which
# that directory lies over /usr. Nothing is installed, and when npm ends nothing of it is left.
# Needs root, unless npm is there. Exit status: npm's; 69 when there is no npm and none can be borrowed.
set -euo pipefail

command -v npm >/dev/null 2>&1 && exec npm "$@"

give_up() { printf 'npm: %s\n' "$1" >&2; exit 69; }

[ "$(id -u)" = 0 ] || give_up 'there is no npm here, and borrowing one takes root; run with sudo, or install npm'
command -v apt-get >/dev/null 2>&1 || give_up 'there is no npm here, and no apt-get to borrow one with; install npm'

directory=$(mktemp -d /var/tmp/podd-npm.XXXXXX)
trap 'rm -rf "$directory"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
mkdir -p "$directory/archives/partial" "$directory/root/usr"

fetch() {
  apt-get -qq -y --no-install-recommends -o "Dir::Cache::archives=$directory/archives" -o APT::Sandbox::User=root \
    --download-only install npm >"$directory/apt.log" 2>&1
}
if ! fetch; then
  apt-get -qq update >"$directory/apt.log" 2>&1 || true
  fetch || { cat "$directory/apt.log" >&2; give_up 'apt could not download npm'; }
fi

# shellcheck disable=SC2016 # expanded by the inner shell
find "$directory/archives" -maxdepth 1 -name '*.deb' -print0 |
  xargs -0 -P "$(nproc)" -n 1 sh -c 'exec dpkg-deb -x "$1" "$0"' "$directory/root"

# shellcheck disable=SC2016 # expanded by the inner shell
unshare --mount bash -euc '
  mount -t overlay overlay -o "lowerdir=$0/root/usr:/usr" /usr
  exec npm "$@"
' "$directory" --cache "$directory/cache" "$@"
