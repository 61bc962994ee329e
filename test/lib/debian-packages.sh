#!/usr/bin/env bash
# Packages of another Debian release, unpacked into a directory of their own beside the installed ones. Nothing
# on the host changes. Which version of each it is, and its checksum, is in debian-packages.txt: a release that moves on
# changes nothing, and no keyring of Debian's is needed. The mirror that the host uses is asked first, then Debian's own,
# and the archive of all that ever was in Debian.
#
#   debian-packages.sh SUITE DIR PACKAGE...
#   debian-packages.sh --pin          prints debian-packages.txt anew, with the versions that the releases have now; on Debian
#
# A second call is free. Exit status 69, with the reason on stderr, when this machine can't get them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
pins=$here/debian-packages.txt

give_up() { printf '%s\n' "$1" >&2; exit 69; }

private_apt() { # PROGRAM ARGUMENTS... : apt with lists of its own, in $work
  "$@" -q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$work/lists" \
    -o "Dir::Cache=$work/cache" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Acquire::Languages=none \
    -o APT::Sandbox::User=root -o "APT::Architecture=$arch" -o "APT::Architectures::=$arch"
}

pin() {
  sed '/^#/!d' "$pins"
  echo "snapshot $(date -u +%Y%m%dT000000Z)"
  sed '/^#/d; /^snapshot /d' "$pins" | cut -d' ' -f1-3 | while read -r suite arch package; do
    work=$(mktemp -d)
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    echo "deb [arch=$arch] http://deb.debian.org/debian $suite main" >"$work/sources.list"
    private_apt apt-get update >"$work/log" 2>&1 || give_up "$(grep -m1 '^[EW]:' "$work/log")"
    private_apt apt-cache show "$package" | awk -v key="$suite $arch $package" '
      $1 == "Filename:" { file = $2 } $1 == "SHA256:" { print key, $2, file; exit }'
    rm -rf "$work"
  done
}

if [ "${1-}" = --pin ]; then
  pin
  exit
fi

suite=${1:?a Debian release, please: trixie or forky}
directory=${2:?a directory, please}
shift 2
arch=$(dpkg --print-architecture 2>/dev/null) || give_up 'no dpkg here: the packages come from Debian'
helper=/usr/lib/apt/apt-helper
[ -x $helper ] || give_up "no $helper here: the packages come from Debian"

wanted=$(for package; do awk -v key="$suite $arch $package" '$1 " " $2 " " $3 == key { print $4, $5 }' "$pins"; done)
[ "$(grep -c . <<<"$wanted")" = $# ] || give_up "$pins names no $* of Debian $suite for $arch"
if [ "$(cat "$directory/.complete" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

mirrors=$(
  awk '/^URIs:/ { print $2 } $1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) print $i }' \
    /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
    grep -E '/debian/?$' | head -n 1 || true
  echo http://deb.debian.org/debian
  echo "http://snapshot.debian.org/archive/debian/$(awk '$1 == "snapshot" { print $2 }' "$pins")"
)

mkdir -p "$(dirname "$directory")"
work=$(mktemp -d "$directory.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
mkdir "$work/root"

fetch() { # SHA256 PATH : into $work/deb
  local mirror
  for mirror in $mirrors; do
    if $helper -o APT::Sandbox::User=root download-file "${mirror%/}/$2" "$work/deb" "SHA256:$1" >"$work/log" 2>&1; then return; fi
  done
  give_up "$(basename "$2") is on none of $(tr '\n' ' ' <<<"$mirrors"): $(grep -m1 '^[EW]:' "$work/log" || tail -n 1 "$work/log")"
}
while read -r sha256 path; do
  fetch "$sha256" "$path"
  dpkg-deb -x "$work/deb" "$work/root"
done <<<"$wanted"
echo "$wanted" >"$work/root/.complete"
rm -rf "$directory"
mv "$work/root" "$directory"
