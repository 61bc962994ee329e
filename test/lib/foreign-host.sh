#!/usr/bin/env bash
# test/lib/foreign-host.sh COMMAND...: runs a command as on a host where somebody else's podd is installed, configured and
# running: at all of podd's default places are files that no test may read, need or change, and at its socket a server that
# refuses everything. In a mount namespace of its own, so the host sees nothing of it. Needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo 'foreign-host: needs root' >&2; exit 1; }
if [ "${1-}" != --inside ]; then exec unshare --mount --propagation private "$0" --inside "$@"; fi
shift

layers=$(mktemp -d)
mount -t tmpfs podd-foreign "$layers"
for place in /etc /var/lib /run; do
  mkdir -p "$layers$place/upper" "$layers$place/work"
  mount -t overlay podd-foreign -o "lowerdir=$place,upperdir=$layers$place/upper,workdir=$layers$place/work" "$place"
done
mkdir -p /etc/podd /etc/pods /var/lib/podd/records /run/podd
printf 'apiVersion: podd.dev/v1\nkind: PoddConfiguration\npodManifestPath: /srv/foreign\ncgroupRoot: /foreign\nmaxPods: [\n' \
  >/etc/podd/config.yaml
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: foreign}\nspec: {containers: [{name: main, image: foreign:1}]}\n' \
  >/etc/pods/foreign.yaml
echo '{' >/var/lib/podd/records/foreign.json
node -e 'require("http").createServer((_, answer) => answer.writeHead(500).end("{}")).listen("/run/podd/podd.sock")' &
server=$!
find_all() { find /etc/podd /etc/pods /var/lib/podd /run/podd -type f -exec sha256sum {} +; }
before=$(find_all)

status=0
"$@" || status=$?
kill "$server"
if [ "$(find_all)" != "$before" ]; then
  echo "foreign-host: the command changed what is at podd's default places:"
  diff <(echo "$before") <(find_all) || status=1
fi
exit $status
