#!/usr/bin/env bash
# Packages of another Debian release, unpacked into a directory of their own beside the installed ones. Nothing
# on the host changes: apt runs with private lists and caches, from the mirror that the host already uses.
#
#   debian-packages.sh SUITE DIR PACKAGE…
#
# A second call is free. Exit status 69, with the reason on stderr, when this machine can't get them.
set -euo pipefail

suite=${1:?a Debian release, please: trixie or forky}
directory=${2:?a directory, please}
shift 2

give_up() { printf '%s\n' "$1" >&2; exit 69; }

if [ -e "$directory/.complete" ]; then exit 0; fi

command -v apt-get >/dev/null || give_up 'no apt-get here'
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || give_up "no $keyring here: not a Debian host"
mirror=$(
  awk '/^URIs:/ { print $2; exit }' /etc/apt/sources.list.d/debian.sources 2>/dev/null || true
)
[ -n "$mirror" ] || mirror=$(
  awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) { print $i; exit } }' \
    /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null || true
)
[ -n "$mirror" ] || give_up 'no Debian mirror in the apt sources of this host'

mkdir -p "$(dirname "$directory")"
work=$(mktemp -d "$directory.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs" "$work/root"
printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$mirror" "$suite" >"$work/sources.list"
private_apt() {
  apt-get -q \
    -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Acquire::Languages=none \
    -o APT::Sandbox::User=root "$@" >"$work/apt.log" 2>&1 ||
    give_up "apt-get $1 of Debian $suite failed: $(grep -m1 '^[EW]:' "$work/apt.log" || tail -n 1 "$work/apt.log")"
}
private_apt update
cd "$work/debs"
private_apt download "${@/%//$suite}"
for deb in *.deb; do dpkg-deb -x "$deb" "$work/root"; done
touch "$work/root/.complete"
rm -rf "$directory"
mv "$work/root" "$directory"
