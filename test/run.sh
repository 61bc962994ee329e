#!/usr/bin/env bash
# sudo ./test/run.sh [--quick] [--nightly] [FILE...]: podd's tests. npm test and .ci/run call it.
#
# From a fresh clone, on a machine without Node too, it gets what it lacks by itself: the npm packages, among
# them the pinned Node; containerd, runc, CNI plugins and what else the tests use, from the distribution, which it removes at
# its end unless told to keep them; a second, newer containerd, unpacked in a cache. Then: the unit and component tests, and the contract, e2e and
# fault suites on the host's, and some of them on the second, with the rest of npm run check beside them. Without root what
# needs root is skipped, and counted (the tests see to that themselves).
#
#   --quick     what needs no root and no containerd: npm run check, with the npm packages fetched before it
#   --nightly   also what a change seldom breaks and what takes long: the tests with the tag `nightly`, on the second
#               containerd all that its version may change (test/lib/slow-suites.ts), and a second kubectl
#   FILE...     of all these only the test files named, or those of a directory: test/e2e/probes.test.ts, test/unit/cli
#
# Not among them, each with a command of its own (docs/TESTING.md): the status page in a browser, podd in a virtual machine,
# Kubernetes' conformance tests, the soak, the benches.
#
# Its last line is `N passed, N failed, N skipped`; its status is 0 only if nothing failed.
#
#   PODD_TEST_SLOWNESS=N   how many times longer than usual tests wait before they give up (else measured)
#   PODD_TEST_CACHE=DIR    where other versions of containerd and kubectl are kept (/var/cache/podd-test)
#   PODD_TEST_PACKAGES=W   what becomes of packages of the distribution that are missing: `keep` installs them for good,
#                          `remove` for this run alone, `none` not at all. Unset, it asks where there is a terminal, and
#                          removes them where there is none
#   PODD_TEST_REPORTS=DIR  where the JSON reports are kept, of which test/lib/order-files.ts makes the order of the files
set -uo pipefail
usage() {
  echo "test/run.sh: $1; --help tells more." >&2
  exit 2
}
quick=
quick_files=()
slow_files=()
for word; do
  case $word in
    -h | --help)
      sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
      exit
      ;;
    --quick) quick=1 ;;
    --nightly) export PODD_TEST_NIGHTLY=1 ;;
    -*) usage "there is no option $word" ;;
    *)
      [ -e "$word" ] || usage "there is no test file $word"
      path=$(realpath -s --relative-to="$(dirname "$0")/.." "$word")
      case $path in
        test/unit | test/unit/* | test/component | test/component/*) quick_files+=("$path") ;;
        test/contract | test/contract/* | test/e2e | test/e2e/* | test/fault | test/fault/*) slow_files+=("$path") ;;
        *) usage "$word is in none of test/unit, test/component, test/contract, test/e2e and test/fault" ;;
      esac
      ;;
  esac
done
[ -z "$quick" ] || [ ${#slow_files[@]} = 0 ] || usage "--quick runs no containerd, which ${slow_files[0]} needs"
runs_all=1
[ ${#quick_files[@]} = 0 ] && [ ${#slow_files[@]} = 0 ] || runs_all=
# Whether anything is to run without a containerd, or on one.
runs_quick=$runs_all
[ ${#quick_files[@]} = 0 ] || runs_quick=1
runs_slow=$runs_all
[ ${#slow_files[@]} = 0 ] || runs_slow=1
[ -z "$quick" ] || runs_slow=
cd "$(dirname "$0")/.." || exit
export DEBIAN_FRONTEND=noninteractive

results=$(mktemp -d)
# What the tests make bears marks, by which test/lib/leftovers.sh knows it. Named so that the next run finds it and clears up
# where this one is killed (test/support/global-setup.ts).
PODD_TEST_MARKS=/tmp/podd-test-marks-$$-$(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)
export PODD_TEST_MARKS
scratch=$(mktemp -d /tmp/podd-run-XXXXXX)
chmod 1777 "$scratch"
(set -C && echo "tmp $scratch" >"$PODD_TEST_MARKS") || exit
cache=${PODD_TEST_CACHE:-/var/cache/podd-test}
fetch_pid=
kubectl_pid=
suites_pid=
code_pid=

. packaging/distribution.sh

stop_code() { # with the program that it waits for
  local below
  read -r -a below <"/proc/$code_pid/task/$code_pid/children"
  kill "$code_pid" "${below[@]}"
}

sweep() { # removes what the tests left
  [ ! -x node_modules/.bin/node ] || env -u PODD_TEST_MARKS -u TMPDIR node_modules/.bin/node test/lib/sweep.ts "$PODD_TEST_MARKS"
}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
  [ -z "$fetch_pid" ] || kill "$fetch_pid" 2>/dev/null
  [ -z "$kubectl_pid" ] || kill "$kubectl_pid" 2>/dev/null
  # Interrupted in the middle: the tests end with it.
  [ -z "$code_pid" ] || stop_code 2>/dev/null
  [ -z "$suites_pid" ] || { kill "$suites_pid" && wait "$suites_pid"; } 2>/dev/null
  sweep
  if is_root; then
    let_services_start
    remove_test_packages
  fi
  rm -rf "$results" "$PODD_TEST_MARKS"
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
look_for_leftovers() {
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
}

finish() {
  ! is_root || look_for_leftovers
  if [ -n "$code_pid" ]; then
    say 'check of the code'
    wait "$code_pid"
    code_pid=
    cat "$results/code.log"
  fi
  if [ -n "${PODD_TEST_REPORTS-}" ]; then
    mkdir -p "$PODD_TEST_REPORTS"
    cp "$results"/*.json "$PODD_TEST_REPORTS"
  fi
  say 'summary'
  node test/lib/summary.ts "$results"
  exit
}

# ------------------------------------------------------------------ what the tests need

list_packages() { dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^ii *//p' | sort -u; }

# Notes what comes with them, too, for remove_test_packages: also that of the next run, where this one is killed.
install_for_tests() {
  local log=$results/apt.log status=1
  if [ -z "${PODD_TEST_PACKAGES-}" ]; then
    PODD_TEST_PACKAGES=remove
    ! [ -t 0 ] || read -r -p "The tests need packages of the distribution: $*. Install them? [k]eep, [r]emove at the end, [n]one: "
    case ${REPLY-} in k*) PODD_TEST_PACKAGES=keep ;; n*) PODD_TEST_PACKAGES=none ;; esac
  fi
  [ "$PODD_TEST_PACKAGES" != none ] || { echo "not installed, as PODD_TEST_PACKAGES=none says: $*"; return 1; }
  list_packages >"$results/packages-before"
  for _ in 1 2; do
    if apt install "$@" >"$log" 2>&1; then
      status=0
      break
    fi
    apt-get -qq update >>"$log" 2>&1
  done
  if [ "$PODD_TEST_PACKAGES" = remove ]; then
    mkdir -p "$cache"
    list_packages | comm -13 "$results/packages-before" - >>"$cache/packages-to-remove"
  fi
  [ $status = 0 ] || cat "$log"
  return $status
}

remove_test_packages() {
  local list=$cache/packages-to-remove names
  [ -s "$list" ] || return 0
  mapfile -t names < <(sort -u "$list")
  if apt-get -s purge "${names[@]}" 2>/dev/null | awk '$1 == "Purg" || $1 == "Remv" { print $2 }' | grep -qvxFf "$list"; then
    echo "These packages were installed for the tests, and others need them now, so they stay: ${names[*]}"
  elif ! apt-get -qq -y -o DPkg::Lock::Timeout=300 purge "${names[@]}" >"$results/apt.log" 2>&1; then
    cat "$results/apt.log"
    return
  fi
  rm -f "$list"
}

. packaging/node-modules.sh
say 'npm packages'
mapfile -t libraries < <(missing_node_libraries)
if [ ${#libraries[@]} -gt 0 ] && is_root; then install_for_tests "${libraries[@]}"; fi
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
missing_for_tests() {
  missing_packages
  command -v crun >/dev/null || echo crun
  command -v busybox >/dev/null || echo busybox-static
  command -v docker-registry >/dev/null || echo docker-registry
  command -v git >/dev/null || echo git
  command -v minisign >/dev/null || echo minisign
  command -v nano >/dev/null || echo nano
  command -v rsync >/dev/null || echo rsync
  command -v vim >/dev/null || echo vim
}

install_missing_packages() {
  local missing
  mapfile -t missing < <(missing_for_tests)
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || { echo "no apt-get to install: ${missing[*]}"; return 1; }
  echo "installing ${missing[*]}"
  keep_services_down
  install_for_tests "${missing[@]}"
  local status=$?
  let_services_start
  return $status
}

host_ready=
if is_root && [ -n "$runs_slow" ]; then
  say 'runtime packages'
  if install_missing_packages; then host_ready=1; else failed 'the packages that the tests need'; fi
  test/lib/containerd-versions.sh forky "$cache/containerd-2" >"$results/fetched" 2>"$results/fetch-error" &
  fetch_pid=$!
  kubectls=(forky)
  [ -z "${PODD_TEST_NIGHTLY-}" ] || kubectls+=(trixie)
  for suite in "${kubectls[@]}"; do
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

export TMPDIR=$scratch PODD_TEST_UNHANDLED=$results/unhandled

if [ -n "$runs_all" ] && [ -z "$runs_slow" ]; then
  say 'unit and component tests, and the check of the code'
  PODD_TEST_RESULTS=$results test/check.sh
elif [ -n "$runs_quick" ]; then
  say 'unit and component tests'
  # They read nothing of a podd that the host has.
  beside=()
  if [ -n "${PODD_TEST_NIGHTLY-}" ] && is_root; then beside=(test/lib/foreign-host.sh); fi
  PODD_TEST_RESULTS=$results "${beside[@]}" test/check.sh tests "${quick_files[@]}"
fi
[ -n "$runs_slow" ] || finish

if [ -n "$runs_all" ]; then
  # Nothing in it depends on time: it takes what the suites below leave of the processors, which wait much.
  PODD_TEST_RESULTS=$results nice -n 19 env -u PODD_TEST_MARKS test/check.sh code >"$results/code.log" 2>&1 &
  code_pid=$!
fi

# ------------------------------------------------------------------ on real containerd

skip_second() { # CONTAINERD REASON : counts the tests of the second containerd as skipped
  local count
  # It lists the same tests on whatever is there.
  count=$(PODD_TEST_CONTAINERD=$1,$1 vitest list --json --project containerd-2 "${slow_files[@]}" 2>/dev/null | node -e '
    let text = ""
    process.stdin.on("data", (data) => (text += data)).on("end", () => console.log(JSON.parse(text).length))
  ' 2>/dev/null)
  skipped "${count:-1} contract, e2e and fault tests: $2"
  echo "skipped: $2"
}

run_suites() { # REPORT SECONDS FILES... : the slow suites, or some files of them. Waited for, so that signals are heard.
  local report=$1 limit=$2 status=0
  shift 2
  timeout --kill-after=20 $((limit * ${PODD_TEST_SLOWNESS%%.*})) \
    vitest run --project 'containerd*' "$@" --reporter=default --reporter=./test/lib/unhandled-errors.ts \
    --reporter=json --outputFile.json="$results/$report" &
  suites_pid=$!
  wait "$suites_pid" || status=$?
  suites_pid=
  # It was cut off: vitest ends its workers without their hooks.
  if [ $status -gt 1 ] && sweep; then
    mkdir -m 1777 "$scratch"
    echo "tmp $scratch" >"$PODD_TEST_MARKS"
  fi
  return $status
}

run_all_suites() { # NAME
  local status=0
  say "$1"
  run_suites suites.json 5400 "${slow_files[@]}" || status=$?
  echo "$status suites.json $1" >>"$results/runs"
}

# A host that is busy can make a timing miss its bound. Test files that failed run once more when nothing else
# does, one after the other, each with a fresh podd; what fails twice has failed. Where much has failed, the machine is not
# to blame.
second_try() {
  local files status=0
  mapfile -t files < <(node test/lib/failed-files.ts "$results/suites.json")
  if [ ${#files[@]} = 0 ] || [ ${#files[@]} -gt 8 ]; then return; fi
  say 'once more'
  run_suites second-suites.json 1800 "${files[@]}" --maxWorkers=1 || status=$?
  echo "$status second-suites.json" >>"$results/runs"
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
  skip_second "$PODD_TEST_CONTAINERD" "no second containerd: $(tail -n 1 "$results/fetch-error")"
fi
export PODD_TEST_CONTAINERD
[ -n "${PODD_TEST_NIGHTLY-}" ] ||
  versions+=", of which the second runs a few files, and with one kubectl (--nightly runs all)"
run_all_suites "contract, e2e and fault tests on $versions"
second_try
finish
