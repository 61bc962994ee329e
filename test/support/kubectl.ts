import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isNightly } from './nightly.ts'
import type { PoddRig } from './podd-rig.ts'

export type KubectlSuite = 'trixie' | 'forky'

/** The newest kubectl of those that podd is tested with, and in the nightly run the oldest one, by the Debian release that has it. */
export const kubectlSuites: readonly KubectlSuite[] = isNightly ? ['forky', 'trixie'] : ['forky']

export interface KubectlResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const cache = process.env['PODD_TEST_CACHE'] ?? '/var/cache/podd-test'

/** Fetches a kubectl where it isn't there yet; gives the program's path. */
export function fetchKubectl(suite: KubectlSuite): string {
  const directory = join(cache, `kubectl-${suite}`)
  const script = new URL('../lib/debian-packages.sh', import.meta.url).pathname
  execFileSync(script, [suite, directory, 'kubectl'], { stdio: ['ignore', 'ignore', 'inherit'] })
  return join(directory, 'usr/bin/kubectl')
}

/** What a call is given beside its words. */
export interface KubectlCall {
  /** On standard input, which ends then. */
  readonly input?: string
  /** Whether it has a terminal. */
  readonly tty?: boolean
  readonly env?: Readonly<Record<string, string>>
}

/** kubectl as somebody with a kubeconfig and a cache of their own; the exit code is the caller's to judge. */
export type Kubectl = (args: readonly string[], call?: KubectlCall) => Promise<KubectlResult>

/** kubectl of that release as somebody whom the daemon gave a kubeconfig. */
export async function loginKubectl(
  rig: PoddRig,
  suite: KubectlSuite,
  { user, role }: { readonly user: string; readonly role: string },
): Promise<Kubectl> {
  const program = fetchKubectl(suite)
  const kubeconfig = join(rig.directory, `${user}.conf`)
  writeFileSync(kubeconfig, await rig.cliOk('kubeconfig', '--user', user, '--role', role), { mode: 0o600 })
  const cacheDirectory = join(rig.directory, `kube-${user}`)
  mkdirSync(cacheDirectory, { recursive: true })
  return (args, { input = '', tty = false, env: more = {} } = {}) => {
    const env = { PATH: process.env['PATH'], HOME: cacheDirectory, KUBECACHEDIR: cacheDirectory, ...more }
    const words = [program, '--kubeconfig', kubeconfig, ...args]
    const quoted = words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
    const [file = '', ...rest] = tty ? ['script', '-qec', quoted, '/dev/null'] : words
    return new Promise((resolve) => {
      const options = { env, maxBuffer: 16 * 1024 * 1024 }
      const child = execFile(file, rest, options, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
        resolve({ code, stdout, stderr })
      })
      // It may end without reading.
      child.stdin?.on('error', () => {})
      child.stdin?.end(input)
    })
  }
}
