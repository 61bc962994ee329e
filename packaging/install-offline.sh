#!/bin/bash
# Installs podd, and what it needs of the distribution, from this directory alone, without a network.
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
cd "$(dirname "$0")"
[ "$(id -u)" = 0 ] || { echo 'install.sh: needs root' >&2; exit 1; }
sha256sum --strict --quiet -c SHA256SUMS || { echo 'install.sh: the files here are not those of the bundle; copy it anew' >&2; exit 1; }

work=$(mktemp -d /var/tmp/podd-offline.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial"
# Its files were compared above. A name with a space would be two words of a source.
ln -s "$PWD" "$work/bundle"
echo "deb [trusted=yes] file:$work/bundle ./" >"$work/sources.list"
apt() {
  apt-get -qq -y --no-install-recommends -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=- \
    -o "Dir::State::Lists=$work/lists" -o "Dir::Cache::archives=$work/archives" -o APT::Sandbox::User=root \
    -o DPkg::Lock::Timeout=300 "$@"
}
# A containerd that comes with podd is podd's alone to run, without the distribution's service beside it. A run that fails
# may have brought it: the next one knows by this file.
brings_containerd=/var/lib/podd/.brings-containerd
if ! command -v containerd >/dev/null; then
  mkdir -p /var/lib/podd
  : >"$brings_containerd"
fi
# podd imports what lies there when it starts.
if ls images/*.tar >/dev/null 2>&1; then
  mkdir -p /var/lib/podd/images
  cp images/*.tar /var/lib/podd/images/
fi
apt update
apt install podd
if [ -e "$brings_containerd" ]; then
  [ ! -d /run/systemd/system ] || systemctl --quiet disable --now containerd.service || true
  rm -f "$brings_containerd"
fi
