#!/usr/bin/env bash
# npm run check: types, lint with the floors, format, dead code, unit and component tests, in about a minute.
# Needs no root and no containerd, and only `npm ci` before it.
#
# test/check.sh code runs all but the tests, test/check.sh tests [FILE...] those alone; test/run.sh calls them apart.
#
# PODD_TEST_RESULTS=DIR keeps what the steps said, for test/lib/summary.ts: DIR/checks, DIR/runs, and the logs.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
PATH=$PWD/node_modules/.bin:$PATH
export NO_COLOR=1
# A gain in speed for which knip asks for 6 GiB of address space, which a small machine refuses.
export KNIP_DISABLE_RAW_TRANSFER=1

results=${PODD_TEST_RESULTS:-}
if [ -z "$results" ]; then
  results=$(mktemp -d)
  trap 'rm -rf "$results"' EXIT
fi
failures=$results/check-failed-${1:-all}
if [ ! -x node_modules/.bin/vitest ]; then
  echo "check: the packages are missing; run 'npm ci' first" >&2
  exit 1
fi

step() { # NAME COMMAND... : runs it, tells how it went, shows the output of a failure
  local name=$1 log=$results/check-$1.log status=0 start=$SECONDS
  shift
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ $status = 0 ]; then
    printf '  ok    %s (%s s)\n' "$name" $((SECONDS - start))
  else
    printf '  FAIL  %s (%s s)\n' "$name" $((SECONDS - start))
    sed 's/^/    /' "$log"
    printf '%s\n' "$name" >>"$failures"
  fi
  return $status
}

check() { # NAME COMMAND... : a step that counts as one test
  if step "$@"; then echo "passed $1" >>"$results/checks"; else echo "failed $1" >>"$results/checks"; fi
}

tests() { # FILE...
  local status=0 order=()
  # Each file's tests in another order each night.
  [ -z "${PODD_TEST_NIGHTLY-}" ] || order=(--sequence.shuffle.tests "--sequence.seed=$(date +%Y%m%d)")
  step tests vitest run --project unit --project component "${order[@]}" "$@" --reporter=dot \
    --reporter=./test/lib/unhandled-errors.ts --reporter=json --outputFile.json="$results/check.json" || status=$?
  echo "$status check.json unit and component tests" >>"$results/runs"
}

scripts() { # whether bash can read them, and what shellcheck says where it is installed
  local files=(.ci/run packaging/*.sh test/*.sh test/lib/*.sh test/vm/*.sh) file
  [ ! -f install.sh ] || files+=(install.sh)
  for file in "${files[@]}"; do bash -n "$file" || return; done
  ! command -v shellcheck >/dev/null || shellcheck -x "${files[@]}"
}

types() { # by what the last run kept of files that are as they were then
  local kept=()
  [ ! -w node_modules ] || kept=(--incremental --tsBuildInfoFile node_modules/.cache/podd-types.json)
  tsc --noEmit "${kept[@]}"
}

code() { # everything that reads the code
  check types types
  check page-types tsc --noEmit --project src/page
  check lint oxlint --type-aware --deny-warnings
  check format oxfmt --check
  check unused knip --no-progress
  check scripts scripts
}

case ${1-} in
  # Two lanes for two cores.
  '')
    tests &
    code
    wait
    ;;
  tests | code) "$@" ;;
  *)
    echo "test/check.sh: runs \`tests\`, \`code\` or, without an argument, both" >&2
    exit 2
    ;;
esac

if [ -s "$failures" ]; then
  echo "check: FAILED: $(paste -sd' ' "$failures") ($SECONDS s)"
  exit 1
fi
echo "check: all well ($SECONDS s)"
