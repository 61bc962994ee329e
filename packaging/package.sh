#!/usr/bin/env bash
# npm run package: makes what is released, in packages/: for each architecture a Debian package and an archive with an
# install.sh, and for all SHA256SUMS, an SBOM and, with --offline, a bundle that installs without a network.
#
#   --arch LIST       amd64,arm64; by default both
#   --out DIR         by default packages
#   --key FILE        minisign's secret key: signs SHA256SUMS. FILE.pub, or --public-key, goes into the packages: by it
#   --public-key FILE `podd upgrade` knows the next version
#   --offline         also the bundle: the package and all that it depends on, of the distribution of this machine
#   --images DIR      archives of images for the bundle
#   --built           dist/ is there already
#   --fast            compress little: to try a package out
#
# Two runs of one commit give the same bytes: no file has another time than the commit (SOURCE_DATE_EPOCH) or another owner
# than root. What busybox and the bundle's packages are, the distribution says. Nothing is installed on this machine; another
# architecture's Node comes from npm and is compared with package-lock.json, the rest from apt, with lists of its own.
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$(dirname "$0")/.."

archs=amd64,arm64 out=packages key='' public_key='' offline='' images='' built='' fast=''
fail() { printf 'package: %s\n' "$1" >&2; exit 1; }
while [ $# -gt 0 ]; do
  case $1 in
    --arch) archs=$2; shift ;;
    --out) out=$2; shift ;;
    --key) key=$2; shift ;;
    --public-key) public_key=$2; shift ;;
    --images) images=$2; shift ;;
    --offline) offline=yes ;;
    --built) built=yes ;;
    --fast) fast=yes ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
. packaging/node-modules.sh
node=$(pinned_node)
version=$("$node" -p 'require("./package.json").version')
out=$(realpath -m -- "$out") cache=$PWD/node_modules/.cache/podd-package
[ -z "$key" ] || public_key=${public_key:-${key%.key}.pub}
[ -z "$key" ] || command -v minisign >/dev/null || fail 'signing needs minisign'
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y package.json)}"
export SOURCE_DATE_EPOCH
work=$(mktemp -d /var/tmp/podd-package.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$cache"
say() { printf '==> %s\n' "$*"; }
level=-9 deb=(-Zxz --threads-max=1)
[ -z "$fast" ] || level=-1 deb=(-Zgzip -z1)

node_of() { # ARCH : the path of its Node
  local name=node-linux-${1/amd64/x64} file
  if [ -x "node_modules/$name/bin/node" ]; then echo "node_modules/$name/bin/node"; return; fi
  file=$cache/$name-$("$node" -p "require('./package-lock.json').packages['node_modules/$name'].version")
  if [ ! -e "$file" ]; then
    npm pack --silent --pack-destination "$work" "${name}@${file##*-}" >/dev/null
    "$node" -e '
      const [name, file] = process.argv.slice(1)
      const { integrity } = require("./package-lock.json").packages[`node_modules/${name}`]
      const found = "sha512-" + require("node:crypto").createHash("sha512").update(require("node:fs").readFileSync(file)).digest("base64")
      if (found !== integrity) throw new Error(`${file} is not what package-lock.json says`)
    ' "$name" "$work"/"$name"-*.tgz
    tar -xzf "$work"/"$name"-*.tgz -C "$work" package/bin/node
    mv "$work/package/bin/node" "$file"
  fi
  echo "$file"
}

apt_of() { # ARCH ARGUMENTS... : apt-get of this machine's distribution, as if nothing were installed
  local dir=$cache/apt-$1 arch=$1 sources=()
  shift
  mkdir -p "$dir/lists/partial" "$dir/archives/partial"
  : >"$dir/status"
  if other_archive "$arch" >"$dir/sources.list"; then
    sources=(-o "Dir::Etc::SourceList=$dir/sources.list" -o Dir::Etc::SourceParts=-)
  fi
  (cd "$dir" && apt-get -qq -y --no-install-recommends -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::State=$dir" \
    -o "Dir::State::Lists=$dir/lists" -o "Dir::State::status=$dir/status" -o "Dir::Cache=$dir" -o APT::Sandbox::User=root "${sources[@]}" "$@")
}

# Ubuntu has amd64 on one server and the other architectures on another one: sources of the one that this machine doesn't use.
other_archive() ( # ARCH
  # shellcheck disable=SC1091
  . /etc/os-release
  [ "$ID" = ubuntu ] && [ "$1" != "$(dpkg --print-architecture)" ] || return 1
  server=http://ports.ubuntu.com/ubuntu-ports
  [ "$1" != amd64 ] || server=http://archive.ubuntu.com/ubuntu
  for pocket in '' -updates -security; do echo "deb $server $VERSION_CODENAME$pocket main universe"; done
)

# With the lists of an earlier run, or with new ones where these don't do.
from_archive() { apt_of "$@" 2>/dev/null || { apt_of "$1" update && apt_of "$@"; }; }

busybox_of() { # ARCH : the path of a static busybox
  local dir=$work/busybox-$1
  # The package's own file, where it is installed.
  if [ "$1" = "$(dpkg --print-architecture)" ] && dpkg -V busybox-static >/dev/null 2>&1; then command -v busybox; return; fi
  rm -f "$cache/apt-$1"/busybox-static*.deb
  from_archive "$1" download busybox-static >&2
  dpkg-deb -x "$cache/apt-$1"/busybox-static*.deb "$dir"
  find "$dir" -name busybox -type f -perm -1 | head -n 1
}

# Nobody's time or umask is in what is packed.
settle() { # DIRECTORY
  chmod -R u=rwX,go=rX "$1"
  find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}
pack() { # FILE DIRECTORY NAMES...
  tar -C "$2" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf - "${@:3}" | gzip -n "$level" >"$1"
}
sums() { (cd "$1" && find . -type f ! -name SHA256SUMS ! -path ./DEBIAN/\* -printf '%P\n' | sort | xargs -d '\n' "${2:-sha256sum}"); }

make_archive() { # ARCH TREE
  local directory=$work/archive-$1
  mkdir "$directory"
  cp -R "$2" "$directory/podd-$version"
  sums "$directory/podd-$version" >"$directory/podd-$version/SHA256SUMS"
  settle "$directory"
  pack "$out/podd_${version}_linux_$1.tar.gz" "$directory" "podd-$version"
}

make_deb() { # ARCH TREE
  local root=$work/deb-$1 name share
  share=$root/usr/share
  mkdir -p "$root"/{DEBIAN,etc/podd,etc/pods,usr/bin,usr/lib/podd,usr/lib/systemd/system} \
    "$share"/{doc/podd,man,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d,lintian/overrides}
  cp -R "$2"/{bin,dist,node,manifests} "$root/usr/lib/podd/"
  for name in busybox-image.tar release.pub; do [ ! -e "$2/$name" ] || cp "$2/$name" "$root/usr/lib/podd/"; done
  ln -s ../lib/podd/bin/podd "$root/usr/bin/podd"
  cp "$2"/packaging/*.service "$root/usr/lib/systemd/system/"
  for name in cri-containerd-.scope crio-.scope; do
    mkdir "$root/usr/lib/systemd/system/$name.d"
    cp "$2/packaging/container-scope.conf" "$root/usr/lib/systemd/system/$name.d/podd.conf"
  done
  cp "$2/packaging/config.yaml" "$root/etc/podd/"
  cp -R "$2"/share/man/man[15] "$share/man/"
  cp "$2/share/completions/podd.bash" "$share/bash-completion/completions/podd"
  cp "$2/share/completions/podd.zsh" "$share/zsh/vendor-completions/_podd"
  cp "$2/share/completions/podd.fish" "$share/fish/vendor_completions.d/"
  cp -R "$2"/{*.md,docs,sbom.cdx.json} "$share/doc/podd/"
  ln -s ../../../lib/podd/manifests "$share/doc/podd/manifests"
  gzip -n -9 <"$2/NOTICES" >"$share/doc/podd/NOTICES.gz"
  printf 'podd (%s) stable; urgency=medium\n\n  * podd %s; CHANGELOG.md of its repository says what is new.\n\n -- The podd developers <podd@podd.dev>  %s\n' \
    "$version" "$version" "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -n -9 >"$share/doc/podd/changelog.gz"
  printf 'podd is under the Apache License, version 2.0; see /usr/share/common-licenses/Apache-2.0.\n\nCopyright 2026 The podd developers\n\nWhat it contains of others: NOTICES.gz beside this file.\n' >"$share/doc/podd/copyright"
  # Node as Node.js releases it: with libraries of its own, at an address that is its own.
  printf 'podd: embedded-library *\npodd: hardening-no-pie *\n' >"$share/lintian/overrides/podd"
  sums "$root" md5sum >"$root/DEBIAN/md5sums"
  echo /etc/podd/config.yaml >"$root/DEBIAN/conffiles"
  cp packaging/debian/{postinst,prerm} "$root/DEBIAN/"
  sed -e '/^@remove.sh@$/{r packaging/remove.sh' -e 'd}' packaging/debian/postrm >"$root/DEBIAN/postrm"
  sed -e "s/@VERSION@/$version/; s/@ARCH@/$1/; s/@SIZE@/$(du -k -s --apparent-size "$root" | cut -f1)/" packaging/debian/control >"$root/DEBIAN/control"
  settle "$root"
  chmod 755 "$root"/DEBIAN/{postinst,prerm,postrm}
  dpkg-deb --root-owner-group "${deb[@]}" --build "$root" "$out/podd_${version}_$1.deb" >/dev/null
}

make_bundle() { # ARCH
  local name directory file release
  # shellcheck disable=SC1091
  release=$(. /etc/os-release && echo "$ID$VERSION_ID")
  name=podd-offline_${version}_${release}_$1
  directory=$work/bundle-$1/$name
  mkdir -p "$directory/packages" "$directory/images"
  rm -f "$cache/apt-$1"/archives/*.deb
  from_archive "$1" --download-only install "$out/podd_${version}_$1.deb"
  cp "$out/podd_${version}_$1.deb" "$cache/apt-$1"/archives/*.deb "$directory/packages/"
  for file in "$directory"/packages/*.deb; do
    # What every system has already.
    case $(dpkg-deb -f "$file" Essential Priority) in *'Essential: yes'* | *'Priority: required'*) rm "$file"; continue ;; esac
    dpkg-deb -f "$file"
    printf 'Filename: ./packages/%s\nSize: %s\nSHA256: %s\n\n' "${file##*/}" "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -d' ' -f1)"
  done >"$directory/Packages"
  [ -z "$images" ] || cp "$images"/*.tar "$directory/images/"
  cp packaging/install-offline.sh "$directory/install.sh"
  sums "$directory" >"$directory/SHA256SUMS"
  settle "$directory"
  tar -C "$work/bundle-$1" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf "$out/$name.tar" "$name"
}

[ -n "$built" ] || { say 'building'; "$node" --run build; }
# Without --omit, which leaves out packages that others need only for development, too.
npm sbom --sbom-format cyclonedx --package-lock-only >"$work/sbom.json"
"$node" -e '
  const bom = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"))
  bom.metadata.timestamp = new Date(process.env.SOURCE_DATE_EPOCH * 1000).toISOString()
  delete bom.serialNumber
  // Its name is that of this directory.
  Object.assign(bom.metadata.component, { name: "podd", type: "application" })
  bom.components = bom.components.filter(({ properties }) => !properties.some(({ name }) => name === "cdx:npm:package:development"))
  const refs = new Set([bom.metadata.component, ...bom.components].map((component) => component["bom-ref"]))
  bom.dependencies = bom.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) }))
  process.stdout.write(JSON.stringify(bom, undefined, 1) + "\n")
' "$work/sbom.json" >"$out/podd_$version.cdx.json"
for arch in ${archs//,/ }; do
  say "packing for $arch"
  own=${own:-$(busybox_of "$(dpkg --print-architecture)")}
  packaging/build.sh --built "$work/tree-$arch" "$(node_of "$arch")" "$(busybox_of "$arch")" "$own"
  [ -s "$work/tree-$arch/busybox-image.tar" ] || fail 'there is no image for the example pods'
  cp "$out/podd_$version.cdx.json" "$work/tree-$arch/sbom.cdx.json"
  [ -z "$public_key" ] || cp "$public_key" "$work/tree-$arch/release.pub"
  make_archive "$arch" "$work/tree-$arch"
  make_deb "$arch" "$work/tree-$arch"
  [ -z "$offline" ] || make_bundle "$arch"
done
(cd "$out" && find . -maxdepth 1 -type f -name "podd*_${version}[_.]*" -printf '%P\n' | sort | xargs -d '\n' sha256sum >SHA256SUMS)
[ -z "$key" ] || minisign -S -s "$key" -m "$out/SHA256SUMS" -t "podd $version" </dev/null
say "in $out:"
(cd "$out" && du -h --apparent-size -- * | sort -k2)
