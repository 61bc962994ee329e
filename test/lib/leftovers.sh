#!/usr/bin/env bash
# Lists, sorted, what a podd or a containerd leaves on a host when it isn't cleaned up: processes, mounts,
# network namespaces, links, firewall chains, cgroups, folders. test/run.sh takes the list before and
# after: what is only in the second one was left behind by a test.
set -uo pipefail
export LC_ALL=C

{
  for dir in /proc/[0-9]*; do
    name=$(cat "$dir/comm" 2>/dev/null) || continue
    line=$({ tr '\0' ' ' <"$dir/cmdline" | cut -c 1-160; } 2>/dev/null) || continue
    [ -n "$line" ] || continue # a kernel thread, or one that has ended
    case "$name $line" in
      containerd* | runc* | docker-registry* | podd* | *'/main.js run'* | *'/main.ts run'*)
        printf 'process %s %s\n' "${dir#/proc/}" "$line"
        ;;
    esac
  done
  awk '$5 ~ /podd|containerd|kubelet|\/pods\/|\/netns\// { print "mount", $5 }' /proc/self/mountinfo
  for file in /run/netns/*; do
    [ -e "$file" ] && printf 'network namespace %s\n' "$file"
  done
  for link in /sys/class/net/*; do
    printf 'link %s\n' "${link##*/}"
  done
  # CNI-HOSTPORT-… are the portmap plugin's own, one set for all networks of a host. A chain that holds nothing
  # and that nothing leads to is what the bridge plugin makes and drops within one call, killed in between.
  for save in iptables-save ip6tables-save; do
    command -v $save >/dev/null && $save 2>/dev/null | awk -v save=$save '
      /CNI-HOSTPORT-/ { next }
      /^:(CNI-|[^ ]*podd)/ { chains[substr($1, 2)] = 1 }
      /^-A/ { for (field = 2; field <= NF; field++) used[$field] = 1 }
      END { for (chain in chains) if (chain in used) print save, "chain", chain }'
  done
  find /sys/fs/cgroup -type d \( -name '*podd*' -o -name 'kubepods*' -o -name 'cri-containerd*' \) \
    -prune -printf 'cgroup %p\n' 2>/dev/null
  for path in /tmp/podd-* /run/podd* /var/lib/podd* /var/log/pods/* /var/lib/cni/networks/*; do
    [ -e "$path" ] && printf 'path %s\n' "$path"
  done
} | sort -u
