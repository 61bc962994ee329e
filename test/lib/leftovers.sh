#!/usr/bin/env bash
# test/lib/leftovers.sh MARKS: lists, sorted, what is on this host and bears a mark of the tests: processes, mounts,
# links, firewall rules, cgroups, directories. What others have or start here meanwhile is none of it.
#
# MARKS is the file that PODD_TEST_MARKS named for the tests. Each line is a mark that a rig gave away
# (test/support/test-marks.ts):
#   directory /tmp/podd-e2e-…   processes with it in their arguments, mounts below it, the directory itself
#   tmp /tmp/podd-run-…      the same, but of the directory what is in it and is called podd-…
#   cgroup /podd-e2e-…       cgroups of that path, and the processes in them
#   name podd-01234567       bridges, CNI networks, and the firewall rules that speak of them
# All that the tests start has PODD_TEST_MARKS=MARKS in its environment, too: this script must not.
set -uo pipefail
export LC_ALL=C
marks=${1:?}

# Not where the tests have their temporary files: the programs below would be among what is looked for.
lists=$(TMPDIR=/tmp mktemp -d)
trap 'rm -rf "$lists"' EXIT
marks_of() { sed -n "s/^$1 \(..*\)$/\1/p" "$marks" 2>/dev/null | sort -u; } # KIND
marks_of directory >"$lists/directories"
marks_of tmp >"$lists/tmp"
sed 's|$|/|' "$lists/directories" "$lists/tmp" >"$lists/inside"
marks_of cgroup >"$lists/cgroups"
# A path ends where a line or the next name begins.
sed 's|^|:|; s#$#(/|$)#' "$lists/cgroups" >"$lists/in-cgroups"
marks_of name >"$lists/names"

# The files of /proc that tell: what a process was started with, its arguments, its cgroups.
list_processes() {
  grep -lszxF "PODD_TEST_MARKS=$marks" /proc/[0-9]*/environ
  grep -lsaF -f "$lists/inside" /proc/[0-9]*/cmdline
  grep -lsE -f "$lists/in-cgroups" /proc/[0-9]*/cgroup
}

{
  list_processes | cut -d/ -f3 | sort -u | while read -r pid; do
    [ "$pid" != $$ ] || continue
    line=$({ tr '\0\n' '  ' <"/proc/$pid/cmdline" | cut -c 1-160; } 2>/dev/null) || continue
    # A kernel thread, or one that has ended, has none.
    [ -z "$line" ] || printf 'process %s %s\n' "$pid" "$line"
  done
  awk '{ print "mount " $5 }' /proc/self/mountinfo | grep -F -f "$lists/inside"
  ip -o link show 2>/dev/null | awk -F': ' '{ sub(/@.*/, "", $2); print $2 }' |
    grep -xF -f "$lists/names" | sed 's/^/link /'
  for save in iptables-save ip6tables-save; do
    command -v $save >/dev/null && $save 2>/dev/null | grep '^-A' | grep -F -f "$lists/names" |
      sed "s/^/$save rule /"
  done
  while read -r cgroup; do
    for path in "/sys/fs/cgroup$cgroup" /sys/fs/cgroup/*"$cgroup"; do
      [ -d "$path" ] && printf 'cgroup %s\n' "$path"
    done
  done <"$lists/cgroups"
  while read -r name; do
    for path in "/var/lib/cni/networks/$name" /var/lib/cni/results/"$name"-*; do
      [ -e "$path" ] && printf 'path %s\n' "$path"
    done
  done <"$lists/names"
  # Of sandboxes whose network namespaces lie in those directories; each has one of the loopback network, too.
  grep -rlF -f "$lists/inside" /var/lib/cni/results 2>/dev/null | sed 's/^/path /'
  {
    cat "$lists/directories"
    while read -r directory; do printf '%s\n' "$directory"/podd-*; done <"$lists/tmp"
  } | while read -r path; do [ -e "$path" ] && printf 'path %s\n' "$path"; done
  :
} | sort -u
