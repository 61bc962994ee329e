# shellcheck shell=bash
# Sourced by install.sh and test/run.sh, in the directory that holds package.json: the npm packages, as
# package-lock.json names them, and the Node that is among them.

# The distribution's packages that Node itself needs and this machine lacks.
missing_node_libraries() {
  local known
  known=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null) || return 0
  case $known in *libatomic.so.1*) ;; *) echo libatomic1 ;; esac
  case $known in *libstdc++.so.6*) ;; *) echo libstdc++6 ;; esac
}

# The pinned Node under ./node_modules, by its path; fails, and says why, when it isn't there or doesn't run.
pinned_node() {
  local arch
  case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64) arch=arm64 ;;
    *)
      echo "there is no Node for $(uname -m) among the npm packages" >&2
      return 1
      ;;
  esac
  local node=$PWD/node_modules/node-linux-$arch/bin/node
  "$node" --version >/dev/null && printf '%s\n' "$node"
}

# Whether ./node_modules is what package-lock.json says (packages for other platforms may be absent).
node_modules_match() {
  local node
  node=$(pinned_node 2>/dev/null) || return 1
  "$node" -e '
    const { readFileSync } = require("node:fs")
    const read = (file) => JSON.parse(readFileSync(file, "utf8")).packages
    const want = read("package-lock.json"), have = read("node_modules/.package-lock.json")
    for (const [path, { version, optional }] of Object.entries(want))
      if (path !== "" && have[path]?.version !== version && !(optional && !have[path])) process.exit(1)
  ' 2>/dev/null
}

# npm ci, unless it has been done; then puts the pinned Node first on PATH.
need_node_modules() {
  local node
  node_modules_match || packaging/npm.sh ci --ignore-scripts --no-audit --no-fund --loglevel=error || return
  node=$(pinned_node) || return
  # npm 9 installs the package and leaves out the link.
  [ -e node_modules/.bin/node ] || ln -sf "../${node#"$PWD/node_modules/"}" node_modules/.bin/node
  PATH=$PWD/node_modules/.bin:$PATH
  export PATH
}
