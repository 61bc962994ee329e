import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** A containerd that tests may start, and the CNI plugins that came with it. */
export interface ContainerdInstall {
  /** `1.6.20` */
  readonly version: string
  /** `1.6`: what `PODD_TEST_CONTAINERD` may name it by. */
  readonly release: string
  readonly binDir: string
  readonly cniBinDir: string
}

const cniDirs = ['usr/lib/cni', 'opt/cni/bin']

/** By program: each suite of a worker asks, and a program of containerd takes 50 ms to tell. */
const versions = new Map<string, string | undefined>()

function readVersion(binDir: string): string | undefined {
  const program = join(binDir, 'containerd')
  if (!existsSync(program)) return undefined
  if (!versions.has(program)) {
    const text = execFileSync(program, ['--version'], { encoding: 'utf8' })
    versions.set(program, /\bv?(\d+\.\d+\.\d+)/.exec(text)?.[1])
  }
  return versions.get(program)
}

function installAt(binDir: string, root: string): ContainerdInstall | undefined {
  const version = readVersion(binDir)
  const cniBinDir = [root, '/'].flatMap((base) => cniDirs.map((dir) => join(base, dir))).find(existsSync)
  if (version === undefined || cniBinDir === undefined) return undefined
  return { version, release: version.split('.').slice(0, 2).join('.'), binDir, cniBinDir }
}

/** Every containerd here, the host's first: those on the usual path, and those under `PODD_CONTAINERD_DIRS` (`:` between). */
export function findContainerds(): ContainerdInstall[] {
  const dirs = process.env['PODD_CONTAINERD_DIRS']?.split(':').filter((dir) => dir !== '') ?? []
  return [
    installAt('/usr/bin', '/'),
    installAt('/usr/local/bin', '/'),
    ...dirs.map((dir) => installAt(join(dir, 'usr/bin'), dir)),
  ].filter((install) => install !== undefined)
}

/** Which of them to test against, or why none. */
export type ContainerdChoice =
  | { readonly kind: 'use'; readonly installs: readonly ContainerdInstall[] }
  | { readonly kind: 'skip'; readonly reason: string }

/**
 * `PODD_TEST_CONTAINERD` picks, by comma-separated releases (`1.6,2.1`) or directories of programs; unset,
 * the host's own is taken. Throws for one that isn't there: a test asked for must not vanish.
 */
export function chooseContainerds(): ContainerdChoice {
  if (process.getuid?.() !== 0) return { kind: 'skip', reason: 'containerd needs root' }
  const wanted = (process.env['PODD_TEST_CONTAINERD'] ?? '').split(',').filter((name) => name !== '')
  const found = findContainerds()
  if (wanted.length > 0) {
    const installs = wanted.map((name) => {
      const install = name.startsWith('/')
        ? installAt(name, join(name, '../..'))
        : found.find(({ release, version }) => release === name || version === name)
      if (install === undefined) throw new Error(`PODD_TEST_CONTAINERD names ${name}, which is not here`)
      return install
    })
    return { kind: 'use', installs }
  }
  const [host] = found
  return host === undefined
    ? { kind: 'skip', reason: 'no containerd with CNI plugins is installed' }
    : { kind: 'use', installs: [host] }
}
