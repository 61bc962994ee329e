#!/bin/sh
# The pinned Node among the npm packages, whatever Node the machine has: `packaging/node.sh FILE ARGUMENTS…`.
# Scripts that npm may start on its own (prepare) use it, for npm then runs on the machine's Node.
set -eu
cd "$(dirname "$0")/.."
case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
node=node_modules/node-linux-$arch/bin/node
if [ ! -x "$node" ]; then
  echo "the pinned Node is not there ($node); run: npm ci" >&2
  exit 1
fi
# npm 9 installs the package and leaves out the link, on which the other programs of the directory rely.
[ -e node_modules/.bin/node ] || ln -sf "../node-linux-$arch/bin/node" node_modules/.bin/node
exec "$node" "$@"
