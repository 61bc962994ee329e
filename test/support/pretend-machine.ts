import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { slowness } from './slowness.ts'

const root = new URL('../../', import.meta.url).pathname

/**
 * A machine to install podd on and to remove it from: a directory that is the root of processes with mounts, processes
 * and a network of their own. It has the host's programs and libraries, which can't be written to there; nothing
 * else of the host is in reach. What install.sh calls and builds are stand-ins that note their calls in /calls:
 * podd, Node, apt-get, dpkg-query, sync and systemctl. All of it goes with the processes but the directory.
 */
export class PretendMachine implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'podd-machine-'))

  constructor() {
    for (const name of ['bin', 'lib', 'lib64'].filter((name) => existsSync(`/usr/${name}`)))
      mkdirSync(this.#at(`usr/${name}`), { recursive: true })
    for (const name of ['bin', 'sbin', 'lib', 'lib64'].filter((name) => isLink(`/${name}`)))
      symlinkSync(readlinkSync(`/${name}`), this.#at(name))
    for (const name of ['usr/sbin', 'etc', 'opt', 'proc', 'run', 'tmp', 'var/tmp', 'var/log'])
      mkdirSync(this.#at(name), { recursive: true })
    this.write('/dev/null', '')
    symlinkSync('/proc/self/fd', this.#at('dev/fd'))
    for (const [name, script] of Object.entries(programs)) this.#program(`/stand-ins/${name}`, script)
    for (const name of ['bridge', 'host-local', 'portmap']) this.#program(`/opt/cni/bin/${name}`, '')
    // Programs such as awk are links to there.
    if (existsSync('/etc/alternatives'))
      cpSync('/etc/alternatives', this.#at('etc/alternatives'), { recursive: true, verbatimSymlinks: true })
    this.write('/packages', 'bash\n')
    this.write('/pods', '')
    this.#clone()
  }

  /** A clone of the repository, with a podd that is built at once. */
  #clone(): void {
    for (const name of ['install.sh', 'packaging', 'manifests', 'docs', 'LICENSE', 'README.md'])
      cpSync(join(root, name), this.#at(`clone/${name}`), { recursive: true })
    for (const name of ['src', 'node_modules/.bin']) mkdirSync(this.#at(`clone/${name}`), { recursive: true })
    this.#program('/clone/bin/podd', podd)
    for (const arch of ['x64', 'arm64'])
      this.#program(`/clone/node_modules/node-linux-${arch}/bin/node`, node)
  }

  /** Runs lines of bash as root of the machine, `install` among its commands; what runs still at their end is killed. */
  run(script: string): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
    return spawnSync('bash', ['-c', apart, 'bash', enter, this.#directory, script], {
      // bash takes a socket there for a remote shell's, and reads the host's settings.
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
      timeout: 60_000 * slowness,
      killSignal: 'SIGKILL',
    })
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(this.#at(path)), { recursive: true })
    writeFileSync(this.#at(path), text)
  }

  /** Undefined where there is no such file. */
  read(path: string): string | undefined {
    return this.has(path) ? readFileSync(this.#at(path), 'utf8') : undefined
  }

  has(path: string): boolean {
    return existsSync(this.#at(path))
  }

  /** What the stand-ins were called with, one line each; since the last look. */
  takeCalls(): readonly string[] {
    const calls = this.read('/calls') ?? ''
    this.write('/calls', '')
    return calls.split('\n').filter((line) => line !== '')
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #program(path: string, script: string): void {
    this.write(path, `#!/bin/sh\n${script}\n`)
    chmodSync(this.#at(path), 0o755)
  }

  #at(path: string): string {
    return join(this.#directory, path)
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
}

const apart = 'exec unshare --mount --pid --net --fork --kill-child bash -euc "$@"'

/** Makes the directory $0 the root, and runs $1 in it. The mounts are seen by nobody else, and go with the last process. */
const enter = `
mount --make-rprivate /
cd "$0"
for name in bin lib lib64; do
  [ -d usr/$name ] || continue
  mount --bind /usr/$name usr/$name
  mount -o remount,bind,ro usr/$name
done
mount --bind /dev/null dev/null
mount -t proc proc proc
exec chroot . /usr/bin/env -i HOME=/ PATH=/stand-ins:/usr/bin:/bin:/usr/sbin /bin/bash -c 'install() { /clone/install.sh "$@"; }
'"$1"
`

/** /down-fails makes `podd down` fail, /down-knows is its help; /pods is what `podd get pods` prints. The daemon is known by its command line. */
const podd = `echo "podd $*" >>/calls
case $1 in
version) echo 'podd 0.0.0 (a stand-in)' ;;
get) cat /pods ;;
down)
  case $* in
  *--help) [ ! -e /down-knows ] || cat /down-knows ;;
  *) [ ! -e /down-fails ] ;;
  esac ;;
run) exec bash -c 'exec -a /opt/podd/node/bin/node bash -c "sleep 1000; :" x /opt/podd/dist/main.js run' ;;
esac`

const node = `case $1 in
--run) mkdir -p dist && : >dist/main.js ;;
packaging/busybox-image.ts) : >"$3" ;;
packaging/strip-elf.ts) cp -p "$2" "$3" ;;
esac`

const nothing = 'exit 0'

/** /apt runs in the middle of an installation, by the shell that has install.sh as $PPID; /sync when the disk is to take what was written. */
const programs: Readonly<Record<string, string>> = {
  busybox: nothing,
  containerd: nothing,
  ctr: nothing,
  runc: nothing,
  ip: nothing,
  catatonit: nothing,
  iptables: nothing,
  ldconfig: 'echo libatomic.so.1 libstdc++.so.6',
  'dpkg-query': 'for word; do :; done; ! grep -qx "$word" /packages || printf installed',
  'apt-get': `echo "apt-get $*" >>/calls
case " $* " in
*' -s '*' install '*) for word; do :; done; echo "Inst $word (1.0 here [all])"; echo "Conf $word (1.0 here [all])" ;;
*' install '*) for word; do :; done; echo "$word" >>/packages; [ ! -e /apt ] || . /apt ;;
esac`,
  sync: 'echo "sync $*" >>/calls; [ ! -e /sync ] || . /sync; [ ! -e /sync-fails ]',
  systemctl: `echo "systemctl $*" >>/calls
case $1 in is-active) cat /podd-is ;; esac`,
}
