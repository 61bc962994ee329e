#!/usr/bin/env bash
# test/vm/machine.sh: the virtual machine of `npm run vm`, as test/vm/machine.ts calls it: qemu, with the distribution that
# the host has. It has systemd as its first process, cgroup v2 and a kernel of its own, and no Node and no containerd.
#
#   machine.sh up NAME               boots a fresh machine, and returns once it is ready
#   machine.sh ssh NAME -- COMMAND   runs a line of shell in it as root
#   machine.sh reboot NAME           shuts it down in order, boots it, and returns once it is ready
#   machine.sh powercut NAME         kills it, boots the same disk, and returns once it is ready
#   machine.sh down NAME             ends it and deletes its disk
#
#   PODD_TEST_CACHE=DIR    below which, in vm/, it keeps the image of which each machine is a copy (/var/cache/podd-test)
#   PODD_VM_SUITE=SUITE    another release of the distribution than the host's, as trixie; its image is kept in vm-SUITE/
#   PODD_VM_CPUS=2, PODD_VM_MEMORY_MIB=3072, PODD_VM_BOOT_SECONDS=840 (until it gives a shutdown and boot up)
#
# It needs root for the image, on Debian or Ubuntu for amd64. qemu and mmdebstrap, where the host lacks them, are unpacked in
# the cache and not installed. With /dev/kvm it is quick; without, the processors are emulated, some ten times slower.
#
# The image is made of the packages of the host's own sources, and gets of the host: apt's settings, keyrings, proxies, and
# the certificate authorities that it trusts beyond those of the distribution.
#
# The power cut: the disk is opened with cache=none, so the guest sees a disk with a volatile cache, whose flush (fsync, a
# commit of the journal) becomes an fdatasync here. SIGKILL loses what was not flushed. With writethrough each write would be
# flushed, which would hide that an fsync is missing; with writeback the host would still have what the guest never synced.
set -euo pipefail

cache=${PODD_TEST_CACHE:-/var/cache/podd-test}
dir=$cache/vm${PODD_VM_SUITE:+-$PODD_VM_SUITE}
cpus=${PODD_VM_CPUS:-2}
memory=${PODD_VM_MEMORY_MIB:-3072}
boot_seconds=${PODD_VM_BOOT_SECONDS:-840}
tools=$cache/vm/tools
base=$dir/base.qcow2

die() { echo "machine.sh: $*" >&2; exit 1; }

# ------------------------------------------------------------------ programs of the host

# What reaches the mirror, without the host's hooks.
apt_settings() { apt-config dump | grep -E '^Acquire::(http|https|ForceIPv[46]|Check-Valid-Until|Check-Date|Retries)\b' || true; }

fetch_tools() {
  local missing=() deb apt=$dir/apt
  has qemu-system-x86_64 || missing+=(qemu-system-x86)
  has qemu-img || missing+=(qemu-utils)
  has mmdebstrap || missing+=(mmdebstrap)
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "unpacking ${missing[*]} in $tools" >&2
  # Lists and archives of its own; the host's sources and keyrings.
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$tools"
  { apt_settings; printf 'Dir::State::Lists "%s";\nDir::Cache "%s";\nAPT::Sandbox::User "root";\n' "$apt/lists" "$apt/cache"; } >"$apt/conf"
  APT_CONFIG=$apt/conf apt-get -qq update >&2
  APT_CONFIG=$apt/conf apt-get -qq -y --no-install-recommends --download-only install "${missing[@]}" >&2
  for deb in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$tools"; done
  rm -rf "$apt"
}
has() { command -v "$1" >/dev/null || [ -x "$tools/usr/bin/$1" ]; }

program() { # NAME : sets `run` to the host's, or the unpacked one with its libraries
  run=("$1")
  command -v "$1" >/dev/null || run=(
    env "LD_LIBRARY_PATH=$tools/usr/lib/x86_64-linux-gnu:$tools/lib/x86_64-linux-gnu"
    "QEMU_MODULE_DIR=$tools/usr/lib/x86_64-linux-gnu/qemu" "$tools/usr/bin/$1"
  )
}

# ------------------------------------------------------------------ the image

# One file for each authority that the host was told to trust.
copy_authorities() { # ROOT
  local file count=0
  for file in "${NODE_EXTRA_CA_CERTS:-}" "${SSL_CERT_FILE:-}" "${CURL_CA_BUNDLE:-}" /usr/local/share/ca-certificates/*.crt; do
    [ -f "$file" ] || continue
    awk -v to="$1/usr/local/share/ca-certificates/host-$((count += 1))" \
      '/BEGIN CERT/ { at += 1 } at { print >(to "-" at ".crt") }' "$file"
  done
  chroot "$1" update-ca-certificates >/dev/null 2>&1
}

build() {
  local root=$dir/build/root own suite kernel version sources=() file
  exec 9>"$dir/lock"
  flock 9
  if [ -f "$base" ]; then exec 9>&-; return; fi
  [ "$(id -u)" = 0 ] || die 'it needs root to make the image of the machine'
  [ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || die 'it makes machines of Debian or Ubuntu for amd64, on such a host'
  fetch_tools
  rm -rf --one-file-system "$dir/build"
  mkdir -p "$dir/build"
  apt_settings >"$dir/build/apt.conf"
  # shellcheck disable=SC1091 # the host's
  own=$(. /etc/os-release && echo "$VERSION_CODENAME")
  suite=${PODD_VM_SUITE:-$own}
  # shellcheck disable=SC1091
  kernel=$(. /etc/os-release && [ "$ID" = ubuntu ] && echo linux-image-virtual || echo linux-image-cloud-amd64)
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -s "$file" ] || continue
    # Another vendor's sources may know nothing of another release.
    if [ "$suite" != "$own" ]; then
      grep -qE "(^| )$own( |\$)" "$file" || continue
      mkdir -p "$dir/build/sources"
      sed "s/\b$own\b/$suite/g" "$file" >"$dir/build/sources/${file##*/}"
      file=$dir/build/sources/${file##*/}
    fi
    sources+=("$file")
  done
  echo "making the image of the machine, of $suite" >&2
  # A script of perl, which takes no library of those that were unpacked.
  perl "$(command -v mmdebstrap || echo "$tools/usr/bin/mmdebstrap")" --quiet --mode=root --variant=minbase --format=directory --aptopt="$dir/build/apt.conf" \
    --include="systemd,systemd-sysv,dbus,udev,kmod,apparmor,libnss-myhostname,openssh-server,ca-certificates,curl,iproute2,procps,initramfs-tools,zstd,$kernel" \
    "$suite" "$root" "${sources[@]}" </dev/null >&2

  mkdir -p "$root/etc/apt/sources.list.d" "$root/etc/apt/keyrings" "$root/usr/local/share/ca-certificates"
  rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
  for file in "${sources[@]}"; do cp "$file" "$root/etc/apt/sources.list.d/"; done
  for file in /etc/apt/keyrings /usr/share/keyrings; do [ ! -d "$file" ] || cp -n "$file"/* "$root$file/" 2>/dev/null || true; done
  cp "$dir/build/apt.conf" "$root/etc/apt/apt.conf.d/99host"
  copy_authorities "$root"
  env | grep -iE '^(https?|no|all)_proxy=' >"$root/etc/environment" || true
  # Names that the host knows by a file; the loopback's would be another machine's there.
  { printf '127.0.0.1 localhost\n127.0.1.1 podd-vm\n::1 localhost\n'; awk '$1 !~ /^(127\.|::1|#|$|fe00|ff0)/' /etc/hosts; } >"$root/etc/hosts"
  echo podd-vm >"$root/etc/hostname"
  rm -f "$root/etc/resolv.conf"
  echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
  : >"$root/etc/machine-id"
  echo '/dev/vda / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"
  printf '[Match]\nName=en* eth0\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n' \
    >"$root/etc/systemd/network/10-uplink.network"
  chmod 644 "$root"/etc/{hostname,resolv.conf,fstab,hosts,environment} "$root/etc/systemd/network/10-uplink.network"
  chroot "$root" systemctl -q enable systemd-networkd.service ssh.service
  chroot "$root" systemctl -q mask apt-daily.timer apt-daily-upgrade.timer getty@tty1.service serial-getty@ttyS0.service \
    systemd-networkd-wait-online.service
  rm -f "$dir/key" "$dir/key.pub" "$root"/etc/ssh/ssh_host_*
  ssh-keygen -q -t ed25519 -N '' -C podd-vm -f "$dir/key"
  install -D -m 600 "$dir/key.pub" "$root/root/.ssh/authorized_keys"
  ssh-keygen -q -t ed25519 -N '' -C '' -f "$root/etc/ssh/ssh_host_ed25519_key"
  echo "podd-vm $(cut -d' ' -f1,2 "$root/etc/ssh/ssh_host_ed25519_key.pub")" >"$dir/known_hosts"
  # A small initrd, with what this disk needs: the kernel is started without a boot loader.
  printf 'MODULES=list\nCOMPRESS=zstd\nFSTYPE=ext4\n' >"$root/etc/initramfs-tools/conf.d/podd-vm"
  printf 'virtio_pci\nvirtio_blk\next4\n' >>"$root/etc/initramfs-tools/modules"
  chroot "$root" update-initramfs -u >/dev/null
  version=$(find "$root/boot" -name 'vmlinuz-*' -printf '%f\n' | sed 's/^vmlinuz-//' | sort -V | tail -n 1)
  cp "$root/boot/vmlinuz-$version" "$dir/vmlinuz"
  cp "$root/boot/initrd.img-$version" "$dir/initrd"
  rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*

  truncate -s 16G "$dir/build/disk"
  mkfs.ext4 -q -F -d "$root" "$dir/build/disk"
  local run
  program qemu-img
  "${run[@]}" convert -f raw -O qcow2 "$dir/build/disk" "$dir/build/base.qcow2"
  mv "$dir/build/base.qcow2" "$base"
  rm -rf --one-file-system "$dir/build"
  exec 9>&-
}

# ------------------------------------------------------------------ machines

start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
# The process that was started for the machine, and no other that got its number since.
pid_of() {
  local pid
  [ -f "$at/started" ] && pid=$(cat "$at/pid") && [ "$(start_time "$pid")" = "$(cat "$at/started")" ] && echo "$pid"
}
end_machine() {
  local pid
  if pid=$(pid_of); then
    kill -9 "$pid"
    # It lets go of the disk when its last thread is gone, whether or not anybody has waited for it.
    for _ in {1..1200}; do
      if ! pid_of >/dev/null || { grep -q '^State:[[:space:]]*Z' "/proc/$pid/status" && [ "$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l)" -le 1 ]; } 2>/dev/null; then break; fi
      sleep 0.05
    done
  fi
  rm -f "$at/pid" "$at/started"
}

in_machine() {
  ssh -F /dev/null -i "$dir/key" -p "$(cat "$at/port")" -o IdentitiesOnly=yes -o UserKnownHostsFile="$dir/known_hosts" \
    -o HostKeyAlias=podd-vm -o StrictHostKeyChecking=yes -o BatchMode=yes -o LogLevel=ERROR -o ConnectTimeout=60 \
    -o ServerAliveInterval=20 -o ServerAliveCountMax=6 -o GSSAPIAuthentication=no root@127.0.0.1 "$@"
}

boot() {
  local port error run accel=tcg,thread=multi cpu=max
  [ ! -w /dev/kvm ] || { accel=kvm cpu=host; }
  program qemu-system-x86_64
  for _ in {1..20}; do
    port=$((20000 + RANDOM % 12000))
    if error=$("${run[@]}" -name "podd-$name" -nodefaults -no-user-config -machine q35,usb=off,vmport=off,hpet=off \
      -accel "$accel" -cpu "$cpu" -smp "$cpus" -m "$memory" -kernel "$dir/vmlinuz" -initrd "$dir/initrd" \
      -append 'root=/dev/vda rw console=ttyS0 quiet mitigations=off' \
      -drive "file=$at/disk.qcow2,if=none,id=d0,format=qcow2,cache=none,aio=threads,discard=unmap" \
      -device virtio-blk-pci,drive=d0 -device virtio-rng-pci \
      -netdev "user,id=n0,ipv6=off,hostfwd=tcp:127.0.0.1:$port-:22" -device virtio-net-pci,netdev=n0,romfile= \
      -display none -vga none -chardev "file,id=c0,path=$at/console.log,append=on" -serial chardev:c0 \
      -daemonize -pidfile "$at/pid" 2>&1 </dev/null); then
      echo "$port" >"$at/port"
      start_time "$(cat "$at/pid")" >"$at/started"
      return
    fi
    case $error in
      *'host forwarding'*) ;;
      # Such as in a machine that is virtual itself.
      *kvm*) accel=tcg,thread=multi cpu=max ;;
      *) die "qemu: $error" ;;
    esac
  done
  die 'there is no free port for ssh'
}

# Until it takes commands, in another boot than the one before, and systemd has started what it starts.
wait_until_ready() { # BOOT_ID_BEFORE
  local began=$SECONDS id
  until id=$(timeout 60 "$0" ssh "$name" -- cat /proc/sys/kernel/random/boot_id 2>/dev/null) && [ "$id" != "$1" ]; do
    pid_of >/dev/null || die "qemu has ended while $name booted; $at/console.log has what it said"
    [ $((SECONDS - began)) -lt "$boot_seconds" ] || die "$name is not ready after $boot_seconds s; $at/console.log has what it said"
    sleep 0.5
  done
  in_machine 'timeout 300 systemctl is-system-running --wait' >/dev/null || true
  echo "$name is ready after $((SECONDS - began)) s"
}

verb=${1-} name=${2-}
[[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,40}$ ]] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
at=$dir/machines/$name
[ "$verb" = up ] || [ "$verb" = down ] || [ -f "$at/disk.qcow2" ] || die "there is no machine $name"
case $verb in
  up)
    mkdir -p "$dir"
    chmod 700 "$dir"
    [ -f "$base" ] || build
    ! pid_of >/dev/null || die "$name is up already"
    rm -rf "$at"
    mkdir -p "$at"
    program qemu-img
    "${run[@]}" create -q -f qcow2 -F qcow2 -b "$base" "$at/disk.qcow2"
    boot
    wait_until_ready ''
    ;;
  ssh)
    shift 2
    [ "${1-}" != -- ] || shift
    in_machine "$@"
    ;;
  reboot)
    id=$(in_machine cat /proc/sys/kernel/random/boot_id)
    in_machine 'systemctl reboot' >/dev/null 2>&1 || true
    wait_until_ready "$id"
    ;;
  powercut)
    end_machine
    boot
    wait_until_ready ''
    ;;
  down)
    end_machine
    rm -rf "$at"
    ;;
  *) die "it knows no $verb" ;;
esac
