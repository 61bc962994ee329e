#!/usr/bin/env bash
# packaging/build.sh [--built] DIR [NODE BUSYBOX [OWN]]: lays podd out in DIR, as packages and install.sh install it: the program
# with a Node of its own, the units, settings, manuals and completions, and the image of the example pods.
#
#   --built   dist/ is there already
#   NODE      the Node that goes with it; by default this machine's, of the npm packages
#   BUSYBOX   a static busybox for the image; by default one of this machine, or none
#   OWN       one that runs here, where BUSYBOX doesn't
#
# The npm packages have to be there (packaging/node-modules.sh). What is only needed to build is not in DIR.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."

built=
if [ "${1-}" = --built ]; then built=yes; shift; fi
target=$(realpath -m -- "${1:?DIR is missing}")
. packaging/node-modules.sh
own=$(pinned_node)
node=${2:-$own} busybox=${3-$(command -v busybox || true)}

[ -n "$built" ] || "$own" --run build
mkdir -p "$target/node/bin" "$target/packaging" "$target/share/man/man1" "$target/share/man/man5" "$target/share/completions"
"$own" packaging/strip-elf.ts "$node" "$target/node/bin/node"
cp -R bin dist manifests LICENSE ./*.md install.sh "$target/"
rm -rf "$target/dist/cache"
cp -R docs "$target/"
cp packaging/*.service packaging/{container-scope.conf,config.yaml,node-modules.sh,distribution.sh,daemon.sh,remove.sh,uninstall.sh} "$target/packaging/"
"$own" packaging/documents.ts "$target"
# The same bytes for the same text: without a time.
find "$target/share/man" -type f -exec gzip -n -9 {} +
for shell in bash zsh fish; do "$own" dist/main.js completion $shell >"$target/share/completions/podd.$shell"; done
rm -rf dist/cache
if [ -n "$busybox" ]; then
  "$own" packaging/busybox-image.ts "$busybox" "$target/busybox-image.tar" "${4-$busybox}" >/dev/null || echo 'there is no image for the example pods' >&2
fi
# A checkout has the modes that its owner's umask left.
chmod -R u=rwX,go=rX "$target"
