import { execFile, execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** The oldest and the newest kubectl of those that podd is tested with, by the Debian release that has it. */
export const kubectlSuites = ['trixie', 'forky'] as const

export type KubectlSuite = (typeof kubectlSuites)[number]

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

/** Runs kubectl with a kubeconfig and a cache of its own; its exit code is the caller's to judge. */
export function runKubectl(
  program: string,
  { kubeconfig, cacheDirectory }: { readonly kubeconfig: string; readonly cacheDirectory: string },
  args: readonly string[],
): Promise<KubectlResult> {
  const env = { PATH: process.env['PATH'], HOME: cacheDirectory, KUBECACHEDIR: cacheDirectory }
  return new Promise((resolve) => {
    const options = { env, maxBuffer: 16 * 1024 * 1024 }
    execFile(program, ['--kubeconfig', kubeconfig, ...args], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
      resolve({ code, stdout, stderr })
    })
  })
}
