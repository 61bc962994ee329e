#!/usr/bin/env bash
# Another Debian release's containerd and CNI plugins, unpacked into a directory of their own beside the
# installed ones, to test against newer runtimes than the host's. runc stays the host's (a newer one wants a
# newer C library).
#
#   containerd-versions.sh trixie DIR    containerd 1.7
#   containerd-versions.sh forky DIR     containerd 2.x
#
# Prints the version; DIR/usr/bin/containerd and DIR/usr/lib/cni are what it is about. A second call is free.
# Exit status 69, with the reason on stderr, when this machine can't get it.
set -euo pipefail

suite=${1:?a Debian release, please: trixie or forky}
directory=${2:?a directory, please}
"$(dirname "$0")/debian-packages.sh" "$suite" "$directory" containerd containernetworking-plugins
"$directory/usr/bin/containerd" --version | awk '{ print $3 }'
