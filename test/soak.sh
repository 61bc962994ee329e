#!/usr/bin/env bash
# npm run soak: the long runs, on real containerd. Takes hours and needs root. Arguments go to vitest,
# as in `test/soak.sh -t walk`.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo 'soak: needs root' >&2; exit 1; }
. packaging/node-modules.sh
need_node_modules
node --run build
# What test/run.sh has unpacked, to upgrade to.
newer=/var/cache/podd-test/containerd-2
if [ -d $newer ]; then export PODD_CONTAINERD_DIRS=${PODD_CONTAINERD_DIRS-$newer}; fi
# What test/run.sh does fewer times.
if [ $# = 0 ]; then
  PODD_SWAP_ROUNDS=20 PODD_ALL_CUTS=1 PODD_LISTS=10000 vitest run --project unit --project component \
    test/component/volumes test/unit/store/state-files.test.ts test/component/server/crowd.test.ts
fi
exec vitest run --project soak --passWithNoTests "$@"
