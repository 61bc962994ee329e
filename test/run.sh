#!/usr/bin/env bash
# sudo ./test/run.sh: every test of podd but the long ones (npm run soak). npm test and .ci/run call it.
#
# From a fresh clone, on a machine without Node too, it gets what it lacks by itself: the npm packages, among
# them the pinned Node; containerd, runc, CNI plugins and what else the tests use, from the distribution; a
# second, newer containerd, unpacked beside the host's. Then: the unit and component tests, and the contract, e2e and
# fault suites on the host's, and on the second what its version may change (test/lib/slow-suites.ts), with the rest of
# npm run check beside them. Without root what needs root is skipped, and counted (the tests see to that themselves).
#
# Its last line is `N passed, N failed, N skipped`; its status is 0 only if nothing failed.
#
#   PODD_TEST_SLOWNESS=N   how many times longer than usual tests wait before they give up (else measured)
#   PODD_TEST_CACHE=DIR    where other versions of containerd are kept (/var/cache/podd-test)
set -uo pipefail
cd "$(dirname "$0")/.." || exit
case ${1-} in
  '') ;;
  -h | --help)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' test/run.sh
    exit
    ;;
  *)
    echo "test/run.sh: takes no argument $1; it runs every test. --help tells more." >&2
    exit 2
    ;;
esac
export DEBIAN_FRONTEND=noninteractive

results=$(mktemp -d)
# What the tests make bears marks, by which test/lib/leftovers.sh knows it.
export PODD_TEST_MARKS=$results/marks
scratch=$(mktemp -d /tmp/podd-run-XXXXXX)
chmod 1777 "$scratch"
echo "tmp $scratch" >"$PODD_TEST_MARKS"
cache=${PODD_TEST_CACHE:-/var/cache/podd-test}
fetch_pid=
kubectl_pid=
suites_pid=
code_pid=

# The tests start what they use; a package's own service would only be in the way. A policy that a killed run left is
# known by its mark; any other stays.
policy=/usr/sbin/policy-rc.d
policy_mark="# Of podd's test/run.sh, while it installs packages."
keep_services_down() {
  let_services_start
  [ ! -e $policy ] || return 0
  printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" >$policy
  chmod 755 $policy
}
let_services_start() { ! grep -qsxF "$policy_mark" $policy || rm -f $policy; }

stop_code() { # with the program that it waits for
  local below
  read -r -a below <"/proc/$code_pid/task/$code_pid/children"
  kill "$code_pid" "${below[@]}"
}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  [ -z "$fetch_pid" ] || kill "$fetch_pid" 2>/dev/null
  [ -z "$kubectl_pid" ] || kill "$kubectl_pid" 2>/dev/null
  # Interrupted in the middle: the tests end with it. What they leave, the next ones clear up.
  [ -z "$code_pid" ] || stop_code 2>/dev/null
  [ -z "$suites_pid" ] || { kill "$suites_pid" && wait "$suites_pid"; } 2>/dev/null
  ! is_root || let_services_start
  rm -rf "$results"
  # What is still mounted there is not the tests' to empty.
  rm -rf --one-file-system "$scratch"
}
trap clean_up EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 141' PIPE; trap 'exit 143' TERM

say() { printf '\n== %s\n' "$*"; }
is_root() { [ "$(id -u)" = 0 ]; }
passed() { echo "passed $*" >>"$results/checks"; }
failed() { echo "failed $*" >>"$results/checks"; echo "FAILED: $*"; }
skipped() { echo "skipped $*" >>"$results/checks"; }
finish() {
  say 'check of the code'
  wait "$code_pid"
  code_pid=
  cat "$results/code.log"
  say 'summary'
  node test/lib/summary.ts "$results"
  exit
}

# ------------------------------------------------------------------ what the tests need

apt_install() {
  local log=$results/apt.log
  for _ in 1 2; do
    apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 install "$@" >"$log" 2>&1 && return
    apt-get -qq update >>"$log" 2>&1
  done
  cat "$log"
  return 1
}

. packaging/node-modules.sh
say 'npm packages'
mapfile -t libraries < <(missing_node_libraries)
if [ ${#libraries[@]} -gt 0 ] && is_root; then apt_install "${libraries[@]}"; fi
if ! need_node_modules; then
  echo 'the npm packages could not be installed; nothing was tested'
  echo '0 passed, 1 failed, 0 skipped'
  exit 1
fi
# An emulated or very small machine is many times slower than those that the tests are meant for, in JavaScript or
# in starting processes: three of node (the first one of all not counted) and a hundred small ones take 170 ms there.
measure_slowness() {
  node -e 0
  local start=${EPOCHREALTIME/./}
  for _ in 1 2 3; do node -e 0; done
  for _ in {1..100}; do /bin/true; done
  echo $(((${EPOCHREALTIME/./} - start) / 170000))
}
if [ -z "${PODD_TEST_SLOWNESS:-}" ]; then
  PODD_TEST_SLOWNESS=$(measure_slowness)
  # Measured alone, where the tests run several at a time.
  PODD_TEST_SLOWNESS=$((PODD_TEST_SLOWNESS > 1 ? 2 * PODD_TEST_SLOWNESS : 1))
fi
export PODD_TEST_SLOWNESS
echo "node $(node --version)$([ "$PODD_TEST_SLOWNESS" = 1 ] || echo ", on a machine $PODD_TEST_SLOWNESS times slower than usual")"

# Debian packages for the programs that are missing; a containerd that is there is left as it is.
missing_packages() {
  command -v containerd >/dev/null || echo containerd
  command -v runc >/dev/null || echo runc
  command -v crun >/dev/null || echo crun
  [ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || echo containernetworking-plugins
  command -v iptables >/dev/null || echo iptables
  command -v ip >/dev/null || echo iproute2
  command -v busybox >/dev/null || echo busybox-static
  command -v catatonit >/dev/null || echo catatonit
  command -v docker-registry >/dev/null || echo docker-registry
  command -v git >/dev/null || echo git
  command -v nano >/dev/null || echo nano
  command -v rsync >/dev/null || echo rsync
  command -v vim >/dev/null || echo vim
}

install_missing_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || { echo "no apt-get to install: ${missing[*]}"; return 1; }
  echo "installing ${missing[*]}"
  keep_services_down
  apt_install "${missing[@]}"
  local status=$?
  let_services_start
  return $status
}

host_ready=
if is_root; then
  say 'runtime packages'
  if install_missing_packages; then host_ready=1; else failed 'the packages that the tests need'; fi
  test/lib/containerd-versions.sh forky "$cache/containerd-2" >"$results/fetched" 2>"$results/fetch-error" &
  fetch_pid=$!
  for suite in trixie forky; do
    test/lib/debian-packages.sh "$suite" "$cache/kubectl-$suite" kubectl || break
  done >"$results/kubectl" 2>&1 &
  kubectl_pid=$!
fi

say 'build'
if node --run build >"$results/build.log" 2>&1; then
  passed build
else
  cat "$results/build.log"
  failed build
fi

# ------------------------------------------------------------------ without a runtime

export TMPDIR=$scratch

# A host that is busy can make a timing miss its bound. Test files that failed run once more when nothing else
# does, one after the other; what fails twice has failed. Where much has failed, the machine is not to blame.
failed_files() { # REPORT
  local files
  mapfile -t files < <(node test/lib/failed-files.ts "$results/$1")
  [ ${#files[@]} -gt 8 ] || printf '%s\n' "${files[@]}"
}

say 'unit and component tests'
PODD_TEST_RESULTS=$results test/check.sh tests
mapfile -t files < <(failed_files check.json)
if [ -n "${files[0]-}" ]; then
  say 'once more'
  vitest run --project unit --project component "${files[@]}" --maxWorkers=1 \
    --reporter=default --reporter=json --outputFile.json="$results/second-check.json"
fi

# Nothing in them depends on time: they take what the suites below leave of the processors, which wait much.
PODD_TEST_RESULTS=$results nice -n 19 test/check.sh code >"$results/code.log" 2>&1 &
code_pid=$!

# ------------------------------------------------------------------ on real containerd

suites=(--project 'containerd*')

skip_suites() { # REASON : counts the tests of the slow suites as skipped
  local count
  count=$(vitest list --json "${suites[@]}" 2>/dev/null | node -e '
    let text = ""
    process.stdin.on("data", (data) => (text += data)).on("end", () => console.log(JSON.parse(text).length))
  ' 2>/dev/null)
  skipped "${count:-1} contract, e2e and fault tests: $1"
  echo "skipped: $1"
}

run_suites() { # REPORT SECONDS FILES... : the slow suites, or some files of them. Waited for, so that signals are heard.
  local report=$1 limit=$2 status=0
  shift 2
  PODD_TEST_UNHANDLED=$results/unhandled timeout --kill-after=20 $((limit * ${PODD_TEST_SLOWNESS%%.*})) \
    vitest run "${suites[@]}" "$@" --reporter=default --reporter=./test/lib/unhandled-errors.ts \
    --reporter=json --outputFile.json="$results/$report" &
  suites_pid=$!
  wait "$suites_pid" || status=$?
  suites_pid=
  return $status
}

run_all_suites() { # NAME
  local status=0
  say "$1"
  run_suites suites.json 5400 || status=$?
  echo "$status suites.json $1" >>"$results/runs"
}

second_try() { # each with a fresh podd
  local files
  mapfile -t files < <(failed_files suites.json)
  [ -n "${files[0]-}" ] || return 0
  say 'once more'
  run_suites second-suites.json 1800 "${files[@]}" --maxWorkers=1
}

if ! is_root; then
  run_all_suites 'contract, e2e and fault tests on no containerd: it needs root'
  finish
fi
[ -n "$host_ready" ] || finish

wait "$fetch_pid"
fetch_status=$?
fetch_pid=
# Where it fails, the test that needs it says why.
wait "$kubectl_pid"
kubectl_pid=

# Files beside each other, also those of both containerds: much of what they do is waiting.
# Both, whatever the environment names: the host's and the newer one.
PODD_TEST_CONTAINERD=$(dirname "$(command -v containerd)")
versions="containerd $(containerd --version | awk '{ print $3 }')"
if [ $fetch_status = 0 ]; then
  PODD_TEST_CONTAINERD+=,$cache/containerd-2/usr/bin
  versions+=" and $(cat "$results/fetched")"
else
  skip_suites "no second containerd: $(tail -n 1 "$results/fetch-error")"
fi
export PODD_TEST_CONTAINERD
run_all_suites "contract, e2e and fault tests on $versions"
second_try

# ------------------------------------------------------------------ nothing left behind

say 'leftovers'
for _ in 1 2 3 4 5 6 7 8 9 10; do
  env -u PODD_TEST_MARKS test/lib/leftovers.sh "$PODD_TEST_MARKS" >"$results/left"
  [ -s "$results/left" ] || break
  sleep 1
done
if [ -s "$results/left" ]; then
  cat "$results/left"
  failed "the tests left $(wc -l <"$results/left") things behind, the first: $(head -n 1 "$results/left")"
else
  echo none
  passed 'nothing left behind'
fi
finish
