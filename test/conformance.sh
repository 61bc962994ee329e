#!/usr/bin/env bash
# npm run conformance: Kubernetes' own specs of a node against podd's API, on real containerd; writes docs/CONFORMANCE.md.
# Takes about an hour and needs root.
#
#   PODD_CONFORMANCE_PROGRAMS=DIR   where e2e.test and agnhost are, built of Kubernetes' sources
#   PODD_CONFORMANCE_FILES=LIST     these files of specs alone, as in common/node/pods.go,node/pods.go; the docs stay
#   PODD_CONFORMANCE_FOCUS=REGEX    these specs alone; the docs stay
#   PODD_CONFORMANCE_SKIP=REGEX     not these specs, as in '\[Slow\]'; the docs say so
#   PODD_CONFORMANCE_PARALLEL=COUNT so many specs at once; most of their time they wait
#   PODD_CONFORMANCE_REPORTS=DIR    where the suite's logs and reports stay
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1-} in
  '') ;;
  -h | --help)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' test/conformance.sh
    exit
    ;;
  *)
    echo "conformance: takes no argument $1; --help tells more." >&2
    exit 2
    ;;
esac
[ "$(id -u)" = 0 ] || { echo 'conformance: needs root' >&2; exit 1; }
programs=${PODD_CONFORMANCE_PROGRAMS-}
if [ ! -x "$programs/e2e.test" ] || [ ! -x "$programs/agnhost" ]; then
  echo "conformance: e2e.test and agnhost of Kubernetes are missing${programs:+ in $programs}." >&2
  echo 'In a checkout of Kubernetes 1.36, with CGO_ENABLED=0:' >&2
  echo '  go test -c -o DIR/e2e.test ./test/e2e && go build -o DIR/agnhost ./test/images/agnhost' >&2
  echo 'Then: PODD_CONFORMANCE_PROGRAMS=DIR npm run conformance' >&2
  exit 1
fi
for path in /bin/bash-static /usr/bin/busybox /usr/bin/cc; do
  [ -x "$path" ] || { echo "conformance: $path is missing (Debian: bash-static, busybox-static, gcc libc6-dev)" >&2; exit 1; }
done
. packaging/node-modules.sh
need_node_modules
node --run build
exec vitest run --project conformance
