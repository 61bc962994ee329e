import { execFileSync, spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PodListObject } from '../src/api/resource.ts'
import type { ProbeReportObject } from '../src/api/usage.ts'
import type { DaemonStatus } from '../src/api/routes.ts'
import type { UnitObject } from '../src/api/sources.ts'
import { systemClock } from '../src/base/clock.ts'
import { testOciRuntime } from '../test/support/oci-runtime.ts'

const main = new URL('../dist/main.js', import.meta.url).pathname
const makeImage = new URL('../packaging/busybox-image.ts', import.meta.url).pathname

/** Linux' USER_HZ. */
const ticksPerSecond = 100

export interface Memory {
  readonly rssMiB: number
  readonly anonymousMiB: number
  readonly peakMiB: number
}

function memoryOf(pid: number): Memory {
  const read = (file: string, key: string): number => {
    const text = readFileSync(`/proc/${pid}/${file}`, 'utf8')
    return Number(new RegExp(String.raw`^${key}:\s+(\d+) kB`, 'mu').exec(text)?.[1]) / 1024
  }
  return {
    rssMiB: read('smaps_rollup', 'Rss'),
    anonymousMiB: read('smaps_rollup', 'Anonymous'),
    peakMiB: read('status', 'VmHWM'),
  }
}

export const benchImage = 'localhost/podd-busybox:1'

/** A podd of its own, built and run as users have it, with everything it makes below one directory. */
export class PoddUnderTest {
  readonly directory = mkdtempSync(join(tmpdir(), 'podd-bench-'))
  readonly manifests = join(this.directory, 'pods')
  readonly runDir = join(this.directory, 'run')
  readonly socketPath = join(this.runDir, 'podd.sock')
  readonly cgroupRoot = `/podd-bench-${process.pid}`
  #child: ChildProcess | undefined
  /** Another runtime than the embedded containerd. */
  readonly #endpoint: string | undefined

  constructor(endpoint?: string) {
    this.#endpoint = endpoint
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error('podd does not run')
    return this.#child.pid
  }

  /** What the daemon has used since it was started. */
  cpuSeconds(): number {
    const fields = readFileSync(`/proc/${this.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  }

  /** What the daemon's threads and the programs that it ran have used since it was started, in milliseconds. */
  cpuMs(): number {
    const tasks = `/proc/${this.pid}/task`
    const own = readdirSync(tasks).map((task) =>
      Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]),
    )
    const fields = readFileSync(`/proc/${this.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    const programs = ((Number(fields[13]) + Number(fields[14])) / ticksPerSecond) * 1000
    return own.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e6 + programs
  }

  memory(): Memory {
    return memoryOf(this.pid)
  }

  /** The same of another process with podd's Node and V8's settings, which has loaded these modules and waits. */
  async memoryOfNode(modules: readonly string[]): Promise<Memory> {
    const argv = readFileSync(`/proc/${this.pid}/cmdline`, 'utf8').split('\0')
    const [node = process.execPath, ...flags] = argv.slice(
      0,
      argv.findIndex((each) => each.endsWith('main.js')),
    )
    const names = JSON.stringify(modules)
    const code = `for (const name of ${names}) process.getBuiltinModule(name); setTimeout(() => {}, 1e6); console.log()`
    const idle = spawn(node, [...flags, '-e', code], { stdio: ['ignore', 'pipe', 'ignore'] })
    await once(idle.stdout, 'data')
    await systemClock.sleep(1000)
    const memory = memoryOf(idle.pid ?? 0)
    idle.kill()
    return memory
  }

  get containerdEndpoint(): string {
    return `unix://${join(this.runDir, 'containerd/containerd.sock')}`
  }

  get logPath(): string {
    return join(this.directory, 'podd.log')
  }

  /** Starts it and waits until pods can run; brings the image in at the first start. */
  async start(
    more: { readonly flags?: readonly string[]; readonly env?: NodeJS.ProcessEnv } = {},
  ): Promise<void> {
    this.launch(more)
    await this.until(async () => (await this.status()).runtime.healthy, 60_000)
  }

  /** Starts it and returns at once. */
  launch(more: { readonly flags?: readonly string[]; readonly env?: NodeJS.ProcessEnv } = {}): void {
    mkdirSync(this.manifests, { recursive: true })
    const log = openSync(this.logPath, 'a')
    const ociRuntime = testOciRuntime(this.directory)
    const runtimes = ociRuntime === undefined ? [] : ['--oci-runtimes', `${ociRuntime},runc`]
    this.#child = spawn(
      this.launcher(),
      ['run', ...this.flags(), '--max-pods', '2000', ...runtimes, ...(more.flags ?? [])],
      { stdio: ['ignore', log, log], env: { ...process.env, ...more.env } },
    )
    closeSync(log)
  }

  importImage(): void {
    const archive = join(this.directory, 'image.tar')
    execFileSync(process.execPath, [makeImage, '/bin/busybox', archive])
    execFileSync(process.execPath, [main, '--socket', this.socketPath, 'images', 'import', archive])
  }

  drop(name: string, manifest: object): void {
    writeFileSync(join(this.manifests, `${name}.json`), `${JSON.stringify(manifest)}\n`)
  }

  remove(name: string): void {
    rmSync(join(this.manifests, `${name}.json`))
  }

  async status(): Promise<DaemonStatus> {
    return this.#get('/podd/v1/status')
  }

  async pods(): Promise<PodListObject['items']> {
    return (await this.#get<PodListObject>('/api/v1/pods')).items
  }

  async units(): Promise<readonly UnitObject[]> {
    return this.#get('/podd/v1/units')
  }

  async probes(pod: string): Promise<readonly ProbeReportObject[]> {
    return this.#get(`/podd/v1/namespaces/default/pods/${pod}/probes`)
  }

  /** What the API answers, as it stands there. */
  text(path: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const call = request({ socketPath: this.socketPath, path }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
      })
      call.on('error', reject)
      call.end()
    })
  }

  /** Watches all pods until so many lines have come. */
  watchPods(lines: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = request({ socketPath: this.socketPath, path: '/api/v1/pods?watch=true' }, (response) => {
        let seen = 0
        response.on('data', (chunk: Buffer) => {
          for (const byte of chunk) if (byte === 10) seen += 1
          if (seen < lines) return
          resolve()
          call.destroy()
        })
      })
      call.on('error', reject)
      call.end()
    })
  }

  async untilRunning(count: number): Promise<void> {
    await this.until(async () => {
      const pods = await this.pods()
      return pods.length === count && pods.every(({ status }) => status.phase === 'Running')
    }, 600_000)
  }

  async untilGone(): Promise<void> {
    await this.until(async () => (await this.pods()).length === 0, 600_000)
  }

  async until(holds: () => Promise<boolean>, timeoutMs: number): Promise<void> {
    const giveUpAtMs = performance.now() + timeoutMs
    for (;;) {
      if (await holds().catch(() => false)) return
      if (performance.now() > giveUpAtMs) {
        throw new Error(
          `timed out; podd said:\n${readFileSync(join(this.directory, 'podd.log'), 'utf8').slice(-2000)}`,
        )
      }
      await systemClock.sleep(20)
    }
  }

  /** Ends podd alone. */
  async stop(): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    const ended = once(child, 'exit')
    child.kill()
    await ended
    this.#child = undefined
  }

  /** Ends podd, its pods and its containerd, and removes the directory. */
  async down(): Promise<void> {
    execFileSync(process.execPath, [main, 'down', '--grace-period', '0', ...this.flags()], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    this.#child = undefined
    rmSync(this.directory, { recursive: true, force: true })
    this.#removeBareCgroups()
  }

  /** Ends podd alone and removes the directory, where its runtime is another one and has no pods. */
  async discard(): Promise<void> {
    await this.stop()
    rmSync(this.directory, { recursive: true, force: true })
    this.#removeBareCgroups()
  }

  /** Those of the bare calls, which podd knows nothing of. */
  #removeBareCgroups(): void {
    const args = [
      '/sys/fs/cgroup',
      '-depth',
      '-type',
      'd',
      '-path',
      `*${this.cgroupRoot}*`,
      '-exec',
      'rmdir',
      '{}',
      ';',
    ]
    spawnSync('find', args, { stdio: 'ignore' })
  }

  launcher(): string {
    return new URL('../bin/podd', import.meta.url).pathname
  }

  flags(): string[] {
    return Object.entries({
      'root-dir': join(this.directory, 'root'),
      'run-dir': this.runDir,
      'pod-logs-dir': join(this.directory, 'logs'),
      'container-logs-dir': join(this.directory, 'links'),
      'pod-manifest-path': this.manifests,
      'cgroup-root': this.cgroupRoot,
      ...(this.#endpoint !== undefined && { 'container-runtime-endpoint': this.#endpoint }),
    }).flatMap(([flag, value]) => [`--${flag}`, value])
  }

  async #get<T>(path: string): Promise<T> {
    return JSON.parse(await this.text(path))
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
