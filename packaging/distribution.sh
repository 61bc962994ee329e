# shellcheck shell=bash
# Sourced by install.sh and test/run.sh: what podd needs of the distribution. $packages_record names the packages that came
# with install.sh.

missing_packages() { # what podd needs, by the programs and not by the packages' names
  { command -v containerd && command -v ctr; } >/dev/null || echo containerd
  command -v runc >/dev/null || echo runc
  local directory found=
  for directory in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do
    [ -x $directory/bridge ] && [ -x $directory/host-local ] && [ -x $directory/portmap ] && found=yes
  done
  [ -n "$found" ] || echo containernetworking-plugins
  command -v iptables >/dev/null || echo iptables
  command -v ip >/dev/null || echo iproute2
  command -v catatonit >/dev/null || echo catatonit
  missing_node_libraries
}

apt() { apt-get -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"; }

# A package's service must not start by itself: podd runs the containerd that it needs, and so do the tests. A policy that a
# killed run left is known by its mark; any other stays.
policy=/usr/sbin/policy-rc.d
policy_mark='# Of podd, while it installs packages.'
keep_services_down() {
  let_services_start
  [ ! -e $policy ] || return 0
  printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" >$policy
  chmod 755 $policy
}
let_services_start() { ! grep -qsxF "$policy_mark" $policy || rm -f $policy; }

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# What somebody else's installation left unpacked, which any apt configures: noted before the first run that installs packages,
# as a run that fails leaves some too. By both names that apt may give them.
unfinished_record() { say "${packages_record%/*}/.unfinished-packages"; }
note_unfinished() {
  local record
  record=$(unfinished_record)
  [ ! -e "$record" ] || return 0
  mkdir -p "${record%/*}"
  dpkg-query -W -f '${db:Status-Status} ${Package}\n${db:Status-Status} ${Package}:${Architecture}\n' 2>/dev/null |
    sed -nE 's/^(half-installed|unpacked|half-configured|triggers-[a-z]+) //p' >"$record.new" || true
  mv "$record.new" "$record"
}

# What apt says that it would add for these, or would configure that a run which failed unpacked: what others install meanwhile
# is none of it.
coming_packages() {
  local package
  apt-get -s --no-install-recommends install "$@" 2>/dev/null | sed -n 's/^Conf \([^ ]*\) (.*/\1/p' |
    while read -r package; do is_installed "$package" || grep -qxF -e "$package" "$(unfinished_record)" || say "$package"; done
}

# Of those that were to come, the ones that are here; also where the run was broken off.
end_package_run() {
  local package
  let_services_start
  [ -e "$work/coming" ] || return 0
  mkdir -p "$(dirname "$packages_record")"
  while read -r package; do ! is_installed "$package" || say "$package"; done <"$work/coming" >>"$packages_record"
  # A containerd that comes with podd is podd's alone to run.
  if grep -qx containerd "$work/coming" && is_installed containerd && has_systemd; then
    systemctl --quiet disable --now containerd.service 2>/dev/null || true
  fi
  rm "$work/coming"
  [ -s "$packages_record" ] || rm "$packages_record"
}

apt_install() {
  note_unfinished
  coming_packages "$@" >"$work/coming"
  apt install "$@" && return
  apt update || true
  coming_packages "$@" | sort -u - "$work/coming" -o "$work/coming"
  apt install "$@"
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} = 0 ]; then
    step 'Packages: all there'
    rm -f "$(unfinished_record)"
    return
  fi
  step "Packages: ${missing[*]}"
  command -v apt-get >/dev/null ||
    fail "this machine lacks ${missing[*]}, and has no apt-get to install them" 'Install them, and start again.'
  keep_services_down
  quietly apt_install "${missing[@]}" ||
    fail 'the packages could not be installed' "Install them by hand (apt-get install ${missing[*]}), and start again."
  end_package_run
  rm -f "$(unfinished_record)"
}

# Packages that came with podd, unless by now others need one of them.
removable_packages() {
  local recorded going
  [ -s "$packages_record" ] && command -v apt-get >/dev/null || return 0
  mapfile -t recorded < <(sort -u "$packages_record")
  going=$(apt-get -s purge "${recorded[@]}" 2>/dev/null | sed -n 's/^\(Purg\|Remv\) \([^ ]*\) .*/\2/p' | sort -u)
  if [ -z "$(comm -13 <(printf '%s\n' "${recorded[@]}") <(say "$going"))" ]; then say "$going"; fi
}

remove_packages() {
  local packages
  mapfile -t packages < <(removable_packages)
  if [ ${#packages[@]} -gt 0 ] && [ -n "${packages[0]}" ]; then
    step "Removing the packages that came with podd: ${packages[*]}"
    quietly apt purge "${packages[@]}" || say 'they could not be removed' >&2
  fi
  rm -f "$packages_record" "$(unfinished_record)"
}
