import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe } from 'vitest'
import type { EventObject, PodListObject, PodObject } from '../../src/api/resource.ts'
import type { DaemonStatus } from '../../src/api/routes.ts'
import type { ContainerStatus } from '../../src/pod/state/status.ts'
import { containerdPlaces, findContainerd } from '../../src/runtime/containerd/process.ts'
import { callCli } from './cli-rig.ts'
import { chooseContainerds } from './containerd-versions.ts'
import type { ContainerdInstall } from './containerd-versions.ts'
import { findLeftovers, removeLeftovers } from './leftovers.ts'
import type { PoddPlaces } from './leftovers.ts'
import { mountSmallDisk } from './full-disk.ts'
import { freeSubnet } from './free-subnet.ts'
import { placeOciRuntime, testOciRuntime } from './oci-runtime.ts'
import { poddProgram, rigImages } from './podd-program.ts'
import { wordsOf } from './shell-pods.ts'
import { slowness } from './slowness.ts'
import { writeTestMarks } from './test-marks.ts'
import { watchUntil } from './watch-until.ts'

export interface PoddRigOptions {
  /** Fields of the config file, beside what the rig itself sets by flags. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Puts the root directory on a disk of its own: in memory, or an ext4 in a file. */
  readonly rootDisk?: { readonly sizeMiB: number; readonly ext4?: boolean }
  /** What the shell has that podd is started from: `077`. */
  readonly umask?: string
  /** Runs the pods that name no RuntimeClass, in place of runc: `crun`. */
  readonly ociRuntime?: string
  /** How much longer runc takes for what `slowDown` names. */
  readonly slowRuncSeconds?: number
  /** Has the programs of containerd stand where `installContainerd` can replace them. */
  readonly ownPrograms?: boolean
}

/** How a call of the command line ended. */
export interface CliResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

const rigsDir = '/tmp'
const directoryPrefix = 'podd-e2e-'

/** Far longer than anything takes here: other work may load the machine. */
const patienceMs = 60_000 * Math.min(slowness, 8)
/**
 * Quick at first: much of what is waited for is there at once, and asking again and again takes the time of who works.
 * After so many milliseconds (of an ordinary machine) it asks that often.
 */
const polls = [
  { untilMs: 500, everyMs: 15 },
  { untilMs: 5000, everyMs: 60 },
  { untilMs: Infinity, everyMs: 250 },
]

function pollMs(waitedMs: number): number {
  const { everyMs = 250 } = polls.find(({ untilMs }) => waitedMs < untilMs) ?? {}
  return everyMs * slowness
}

/**
 * A podd as users have it, with a containerd, directories, a cgroup and a network of its own: started as a
 * process, fed with files, asked by its command line and its API. `remove` ends it by `podd down` and
 * fails where anything is left on the host.
 */
export class PoddRig {
  readonly install: ContainerdInstall
  readonly directory: string
  readonly manifests: string
  /** A directory of the host's for pods to write to. */
  readonly shared: string
  readonly socketPath: string
  readonly cgroupRoot: string
  readonly #options: PoddRigOptions
  readonly #program: string
  #child: ChildProcess | undefined
  /** What daemons are run by: a program with arguments. */
  boots: readonly string[] = []

  constructor(install: ContainerdInstall, options: PoddRigOptions = {}) {
    this.install = install
    this.#options = options
    this.#program = poddProgram()
    this.directory = mkdtempSync(join(rigsDir, `${directoryPrefix}${process.pid}-`))
    this.manifests = join(this.directory, 'pods')
    this.shared = join(this.directory, 'shared')
    this.socketPath = join(this.runDir, 'podd.sock')
    this.cgroupRoot = `/podd-e2e-${randomBytes(4).toString('hex')}`
    const { networkName, bridgeName } = containerdPlaces(this.rootDir, this.runDir)
    writeTestMarks({ directory: this.directory, cgroup: this.cgroupRoot, names: [networkName, bridgeName] })
  }

  get rootDir(): string {
    return join(this.directory, 'root')
  }

  /** Its own from the start: podds that choose at the same moment may choose the same. */
  readonly #podCidr = freeSubnet()

  get runDir(): string {
    return join(this.directory, 'run')
  }

  get logsDir(): string {
    return join(this.directory, 'logs')
  }

  get linksDir(): string {
    return join(this.directory, 'links')
  }

  get places(): PoddPlaces {
    const { directory, rootDir, runDir, cgroupRoot } = this
    return { directory, rootDir, runDir, cgroupRoot }
  }

  /** Everything that a user would have set up: directories, a running podd, images. */
  async start(): Promise<void> {
    for (const path of [this.manifests, this.shared, this.rootDir]) mkdirSync(path, { recursive: true })
    const { rootDisk } = this.#options
    if (rootDisk?.ext4 === true)
      mountSmallDisk(join(this.directory, 'root.ext4'), this.rootDir, rootDisk.sizeMiB)
    else if (rootDisk !== undefined)
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${rootDisk.sizeMiB}m`, 'podd-e2e', this.rootDir])
    const ociRuntime = this.#ociRuntime()
    writeFileSync(
      join(this.directory, 'config.yaml'),
      JSON.stringify({
        ...configHead,
        podCIDR: this.#podCidr,
        ...(ociRuntime !== undefined && { ociRuntimes: [ociRuntime, 'runc'] }),
        // How full the disk of the tests' host is must not matter.
        evictionHard: {},
        // A kubelet would wait 10 s before the second restart.
        crashLoopBackOff: { maxContainerRestartPeriod: '1s' },
        ...this.#options.config,
      }),
    )
    const { slowRuncSeconds, ownPrograms } = this.#options
    if (slowRuncSeconds !== undefined || ownPrograms === true) this.installContainerd(this.install)
    if (slowRuncSeconds !== undefined) this.#wrapRunc(slowRuncSeconds)
    await this.startDaemon()
    const archive = join(this.directory, 'images.tar')
    writeFileSync(archive, rigImages())
    const path = `/podd/v1/images/import?path=${encodeURIComponent(archive)}`
    const answer = await this.#send('POST', path)
    if (!answer.includes('"images"')) throw new Error(`the images of the rig were not imported: ${answer}`)
  }

  #ociRuntime(): string | undefined {
    const { ociRuntime, slowRuncSeconds } = this.#options
    if (ociRuntime !== undefined) return placeOciRuntime(ociRuntime, this.directory)
    // What is slowed down is runc.
    return slowRuncSeconds === undefined ? testOciRuntime(this.directory) : undefined
  }

  /** Starts the daemon and waits until pods can run. */
  async startDaemon(): Promise<void> {
    const child = this.launch()
    const hasEnded = (): boolean => child.exitCode !== null
    await this.until('the daemon', async () => hasEnded() || (await this.status()).runtime.healthy)
    if (hasEnded()) throw new Error(`the daemon ended with ${child.exitCode}\n${await this.#story()}`)
  }

  #command(...args: readonly string[]): readonly string[] {
    const { umask } = this.#options
    const shell = umask === undefined ? [] : ['sh', '-c', `umask ${umask}; exec "$@"`, 'sh']
    return [...shell, this.#program, ...args]
  }

  /** Starts the daemon and returns at once; `wrapper` is a program with arguments that runs it. */
  launch(wrapper: readonly string[] = this.boots): ChildProcess {
    const log = openSync(join(this.directory, 'podd.log'), 'a')
    const [program = '', ...args] = [...wrapper, ...this.#command('run', ...this.flags())]
    const child = spawn(program, args, {
      stdio: ['ignore', log, log],
      env: this.env,
    })
    closeSync(log)
    this.#child = child
    return child
  }

  /** Ends the daemon alone and waits for its end; gives its exit code, null for one that was killed. */
  async stopDaemon(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<number | null> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return null
    const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
    child.kill(signal)
    return ended
  }

  async restartDaemon(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    await this.stopDaemon(signal)
    await this.startDaemon()
  }

  /** Starts the daemon where a failed test left none. */
  async ensureDaemon(): Promise<void> {
    if (this.#child?.exitCode !== null || this.#child.signalCode !== null) await this.startDaemon()
  }

  get daemonPid(): number {
    return this.#child?.pid ?? 0
  }

  get containerdPid(): number {
    return findContainerd(containerdPlaces(this.rootDir, this.runDir))?.pid ?? 0
  }

  /** Ends everything with `podd down` and fails when something is left on the host; then removes its directory. */
  async remove(): Promise<void> {
    const down = await this.cli('down', '--grace-period', '0', ...this.flags())
    await this.stopDaemon('SIGKILL')
    if (this.#options.rootDisk !== undefined) execFileSync('umount', [this.rootDir])
    const left = await settle(() => findLeftovers(this.places))
    await removeLeftovers(this.places)
    rmSync(this.directory, { recursive: true, force: true })
    if (down.code !== 0 || left.length > 0)
      throw new Error(`podd down (exit code ${down.code}) left:\n${left.join('\n')}\n${down.stderr}`)
  }

  get env(): NodeJS.ProcessEnv {
    const { slowRuncSeconds, ownPrograms } = this.#options
    const isOwn = slowRuncSeconds !== undefined || ownPrograms === true
    const programs = isOwn ? join(this.directory, 'bin') : this.install.binDir
    return {
      ...process.env,
      // Whoever asks for Node's inspector gets a port of its own.
      NODE_OPTIONS: '--inspect-port=0',
      PATH: `${programs}:${this.install.binDir}:${process.env['PATH'] ?? ''}`,
    }
  }

  /** Puts another containerd in the place of the installed one, as a package's upgrade does; what runs runs on. */
  installContainerd(install: ContainerdInstall): void {
    const directory = join(this.directory, 'bin')
    mkdirSync(directory, { recursive: true })
    for (const name of readdirSync(install.binDir)) {
      if (!/^(containerd|ctr)/u.test(name)) continue
      symlinkSync(join(install.binDir, name), join(directory, `.${name}`))
      renameSync(join(directory, `.${name}`), join(directory, name))
    }
  }

  /** Has a runc stand beside containerd that takes its time. */
  #wrapRunc(seconds: number): void {
    const directory = join(this.directory, 'bin')
    const real = execFileSync('sh', ['-c', 'command -v runc'], { encoding: 'utf8' }).trim()
    const script = `#!/bin/sh
${real} "$@"
code=$?
for verb in $(cat ${this.directory}/slow-runc); do
  case " $* " in *" $verb "*) sleep ${seconds} ;; esac
done
exit $code
`
    writeFileSync(join(directory, 'runc'), script, { mode: 0o755 })
    this.slowDown()
  }

  /** Has runc return late from these of its commands, after they are done. */
  slowDown(...commands: readonly ('create' | 'start')[]): void {
    writeFileSync(join(this.directory, 'slow-runc'), commands.join(' '))
  }

  flags(): string[] {
    return Object.entries({
      config: join(this.directory, 'config.yaml'),
      'root-dir': this.rootDir,
      'run-dir': this.runDir,
      'pod-logs-dir': this.logsDir,
      'container-logs-dir': this.linksDir,
      'pod-manifest-path': this.manifests,
      'cgroup-root': this.cgroupRoot,
      'hostname-override': 'box',
    }).flatMap(([flag, value]) => [`--${flag}`, value])
  }

  // ------------------------------------------------------------------ manifests

  /** Puts a file of one or more documents in place at once, as `mv` does. */
  drop(name: string, ...documents: readonly object[]): void {
    this.dropText(`${name}.yaml`, documents.map((document) => JSON.stringify(document)).join('\n---\n'))
  }

  dropText(fileName: string, text: string): void {
    const temporary = join(this.directory, `dropped-${randomBytes(4).toString('hex')}`)
    writeFileSync(temporary, text)
    renameSync(temporary, join(this.manifests, fileName))
  }

  removeManifest(name: string): void {
    rmSync(join(this.manifests, `${name}.yaml`), { force: true })
  }

  /** What pods wrote to a file of the shared directory, in lines; none where there is no file. */
  lines(name: string): string[] {
    return readOr(join(this.shared, name))
      .split('\n')
      .filter((line) => line !== '')
  }

  /** Puts an empty file where pods see it: the word they wait for. */
  touchShared(name: string): void {
    writeFileSync(join(this.shared, name), '')
  }

  removeShared(name: string): void {
    rmSync(join(this.shared, name))
  }

  // ------------------------------------------------------------------ asking

  /** Runs the command line; never fails by itself. */
  async cli(...args: readonly string[]): Promise<CliResult> {
    const takesSocket = args[0] !== 'down' && args[0] !== 'run'
    const [program = '', ...words] = this.#command(
      ...(takesSocket ? ['--socket', this.socketPath, ...args] : args),
    )
    const child = spawn(program, words, {
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return finish(child)
  }

  /** What a call printed; one that failed is an error. */
  async cliOk(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.cli(...args)
    if (code !== 0) throw new Error(`podd ${args.join(' ')} exited with ${code}:\n${stdout}${stderr}`)
    return stdout
  }

  /**
   * The command line within this process: for what is asked again and again, where a process of its own would prove
   * nothing and cost most of the time.
   */
  async ask(...args: readonly string[]): Promise<CliResult> {
    const { exitCode, ...printed } = await callCli(['--socket', this.socketPath, ...args])
    return { code: exitCode, ...printed }
  }

  /** Starts a call that goes on (`-f`, `-w`); the caller kills it. */
  spawnCli(...args: readonly string[]): { readonly child: ChildProcess; output(): string } {
    const child = spawn(this.#program, ['--socket', this.socketPath, ...args], {
      env: this.env,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    return { child, output: () => Buffer.concat(chunks).toString('utf8') }
  }

  async status(): Promise<DaemonStatus> {
    return this.get<DaemonStatus>('/podd/v1/status')
  }

  async pods(): Promise<readonly PodObject[]> {
    return (await this.get<PodListObject>('/api/v1/pods')).items
  }

  async findPod(name: string, namespace = 'default'): Promise<PodObject | undefined> {
    const pods = await this.pods()
    return pods.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)
  }

  async events(pod: string): Promise<readonly EventObject[]> {
    const { items } = await this.get<{ readonly items: readonly EventObject[] }>('/api/v1/events')
    return items.filter(({ involvedObject }) => involvedObject.name === pod)
  }

  async get<T>(path: string): Promise<T> {
    return JSON.parse(await this.getText(path))
  }

  getText(path: string): Promise<string> {
    return this.#send('GET', path)
  }

  #send(method: string, path: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const call = request({ socketPath: this.socketPath, method, path, agent: false }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
      })
      call.on('error', reject)
      call.end()
    })
  }

  /** Runs ctr in the namespace of CRI's containers. */
  ctr(...args: readonly string[]): string {
    const address = join(this.runDir, 'containerd/containerd.sock')
    const program = join(this.install.binDir, 'ctr')
    return execFileSync(program, ['--address', address, '--namespace', 'k8s.io', ...args], {
      encoding: 'utf8',
    })
  }

  /** What the runtime holds of a pod, sandboxes among them. */
  containerIds(uid: string): string[] {
    const listed = this.ctr('containers', 'ls', '-q', `labels."io.kubernetes.pod.uid"==${uid}`)
    return listed.split('\n').filter((id) => id !== '')
  }

  /** The first process of a container or sandbox; 0 where none runs. */
  pidOf(containerId: string): number {
    const id = containerId.replace('containerd://', '')
    for (let looks = 1; ; looks += 1) {
      const row = this.ctr('tasks', 'ls')
        .split('\n')
        .find((line) => line.startsWith(id))
      const [, pid, state] = row?.split(/\s+/u) ?? []
      // Of a shim that has not answered within 2 s, containerd lists the task without its process.
      if (state !== 'UNKNOWN' || looks === 10) return Number(pid ?? 0)
    }
  }

  // ------------------------------------------------------------------ waiting

  /** Polls until `look` gives something true, and gives that; a look that throws counts as no. */
  async until<T>(
    what: string,
    look: () => Promise<T> | T,
    timeoutMs = patienceMs,
  ): Promise<Exclude<T, false | undefined | null>> {
    const beganMs = performance.now()
    const giveUpAtMs = beganMs + timeoutMs
    for (;;) {
      const found = await Promise.resolve()
        .then(look)
        .catch(() => undefined)
      if (found) return found as Exclude<T, false | undefined | null>
      if (performance.now() > giveUpAtMs)
        throw new Error(`waited in vain for ${what}\n${await this.#story()}`)
      await sleep(pollMs(performance.now() - beganMs))
    }
  }

  /** Looks each millisecond: for what has to be met while it lasts. */
  async untilSpotted(what: string, look: () => boolean): Promise<void> {
    const untilMs = performance.now() + 60_000 * slowness
    while (!look()) {
      if (performance.now() > untilMs) throw new Error(`waited in vain for ${what}\n${await this.#story()}`)
      await sleep(1)
    }
  }

  /**
   * The objects of a list, once that `holds`. The daemon tells of changes: it isn't asked again and again, which costs it
   * more than the work that is waited for.
   */
  async #untilListed<T extends PodObject | EventObject>(
    what: string,
    path: string,
    holds: (objects: readonly T[]) => boolean,
  ): Promise<readonly T[]> {
    const signal = AbortSignal.timeout(patienceMs)
    for (;;) {
      const found = await watchUntil(this.socketPath, path, holds, signal).catch(() => undefined)
      if (found !== undefined) return found
      if (signal.aborted) throw new Error(`waited in vain for ${what}\n${await this.#story()}`)
      await sleep(60 * slowness)
    }
  }

  /** The pod, once it is there and `holds`; a look that throws counts as no. */
  async untilPod(name: string, what: string, holds: (pod: PodObject) => boolean): Promise<PodObject> {
    const [pod] = await this.#untilListed<PodObject>(`pod ${name}: ${what}`, pathOfPod(name), ([found]) => {
      try {
        return found !== undefined && holds(found)
      } catch {
        return false
      }
    })
    if (pod === undefined) throw new Error(`there is no pod ${name}`)
    return pod
  }

  /** The pod, once all its containers are ready. */
  async untilReady(name: string): Promise<PodObject> {
    return this.untilPod(name, 'ready', (pod) => conditionOf(pod, 'Ready') === 'True')
  }

  async untilPhase(name: string, phase: string): Promise<PodObject> {
    return this.untilPod(name, phase, (pod) => pod.status.phase === phase)
  }

  async untilGone(name: string): Promise<void> {
    await this.#untilListed<PodObject>(`the end of pod ${name}`, pathOfPod(name), (pods) => pods.length === 0)
  }

  async untilEvent(pod: string, reason: string, message = /(?:)/u): Promise<EventObject> {
    const path = `/api/v1/events?fieldSelector=involvedObject.name=${pod}`
    const isIt = (event: EventObject) => event.reason === reason && message.test(event.message)
    const events = await this.#untilListed<EventObject>(`event ${reason} of ${pod}`, path, (all) =>
      all.some(isIt),
    )
    const event = events.find(isIt)
    if (event === undefined) throw new Error(`there is no event ${reason} of ${pod}`)
    return event
  }

  /** The lines of a shared file, once one of them `matches`. */
  async untilLine(name: string, matches: RegExp): Promise<readonly string[]> {
    return this.until(`a line like ${String(matches)} in ${name}`, () => {
      const lines = this.lines(name)
      return lines.some((line) => matches.test(line)) ? lines : undefined
    })
  }

  /** What was said to a shared file (see shell-pods.ts), once that is at least so much: a container runs before it speaks. */
  async untilWords(name: string, atLeast: number): Promise<readonly string[]> {
    return this.until(`${atLeast} lines in ${name}`, () => {
      const words = wordsOf(this.lines(name))
      return words.length >= atLeast ? words : undefined
    })
  }

  /** The errors and warnings that `podd status` lists: beside pods several are only counted. */
  async notes(): Promise<string> {
    const { stdout } = await this.ask('status')
    return stdout
      .split('\n')
      .filter((line) => /^(?:error|warning): /u.test(line))
      .map((line) => `${line}\n`)
      .join('')
  }

  /** Those notes, once something in them is `like` this. */
  async untilNote(like: RegExp): Promise<string> {
    return this.until(`a note like ${String(like)}`, async () => {
      const text = await this.notes()
      return like.test(text) ? text : undefined
    })
  }

  async #story(): Promise<string> {
    const table = await this.cli('get', 'pods', '-A', '-o', 'wide')
    const events = await this.cli('events', '-A')
    const log = readOr(join(this.directory, 'podd.log')).slice(-3000)
    return `${table.stdout}${table.stderr}\n${events.stdout.slice(-4000)}\n${log}`
  }
}

function pathOfPod(name: string): string {
  return `/api/v1/namespaces/default/pods?fieldSelector=metadata.name=${name}`
}

const configHead = { apiVersion: 'podd.dev/v1', kind: 'PoddConfiguration' }

/** The suites of the file that runs, in its order, and their podd while it runs. */
const suites: SuiteOfPodd[] = []

class SuiteOfPodd {
  readonly #install: ContainerdInstall
  readonly #options: PoddRigOptions
  #rig: PoddRig | undefined

  constructor(install: ContainerdInstall, options: PoddRigOptions) {
    this.#install = install
    this.#options = options
    suites.push(this)
  }

  get rig(): PoddRig {
    if (this.#rig === undefined) throw new Error('podd is started before the tests')
    return this.#rig
  }

  /** Takes the podd of a suite before it, or starts one. */
  async begin(): Promise<void> {
    if (this.#rig !== undefined) return
    this.#rig = new PoddRig(this.#install, this.#options)
    await this.#rig.start()
  }

  /** Leaves its podd to the next suite, where that is the same. */
  async end(): Promise<void> {
    const rig = this.#rig
    if (rig === undefined) return
    this.#rig = undefined
    const next = suites[suites.indexOf(this) + 1]
    if (next !== undefined && next.#key === this.#key) next.#rig = rig
    else await rig.remove()
  }

  get #key(): string {
    return JSON.stringify([this.#install, this.#options])
  }
}

/**
 * A suite on one podd, which is shared by its tests, for each containerd under test. Suites of a file with the same
 * options, one after the other, share one as well. Without root or a containerd its tests are skipped, and counted.
 */
export function describePodd(
  title: string,
  options: PoddRigOptions,
  body: (rig: () => PoddRig) => void,
): void {
  const choice = chooseContainerds()
  const installs: readonly ContainerdInstall[] = choice.kind === 'use' ? choice.installs : [noInstall]
  // Suites whose tests were not asked for leave what they were given.
  afterAll(async () => {
    for (const suite of suites) await suite.end()
  })
  describe.skipIf(choice.kind === 'skip').each(installs)(`${title}, containerd $version`, (install) => {
    const suite = new SuiteOfPodd(install, options)
    beforeAll(() => suite.begin())
    afterAll(() => suite.end())
    body(() => suite.rig)
  })
}

const noInstall: ContainerdInstall = { version: 'none', release: 'none', binDir: '', cniBinDir: '' }

/** What `look` finds when it has had a moment to find nothing. */
async function settle(look: () => readonly string[]): Promise<readonly string[]> {
  for (let round = 0; round < 100; round += 1) {
    if (look().length === 0) return []
    await sleep(30)
  }
  return look()
}

function finish(child: ChildProcess): Promise<CliResult> {
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      const text = (chunks: readonly Buffer[]) => Buffer.concat(chunks).toString('utf8')
      resolve({ code: code ?? -1, stdout: text(stdout), stderr: text(stderr) })
    })
  })
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** `True`, `False`, `Unknown`; undefined where the pod has no such condition. */
export function conditionOf(pod: PodObject, type: string): string | undefined {
  return pod.status.conditions.find((condition) => condition.type === type)?.status
}

/** The status of a container of the pod, init containers among them. */
export function containerOf(pod: PodObject, name: string): ContainerStatus {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status
  const found = [...containerStatuses, ...initContainerStatuses].find((container) => container.name === name)
  if (found === undefined) throw new Error(`pod ${pod.metadata.name} has no container ${name}`)
  return found
}
