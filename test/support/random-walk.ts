import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isJsonObject } from '../../src/base/json.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { labelKeys } from '../../src/translate/identity.ts'
import { shell, otherShell } from './podd-program.ts'
import { conditionOf } from './podd-rig.ts'
import type { PoddRig } from './podd-rig.ts'
import { StartLedger } from './start-ledger.ts'
import { pick, RandomSteps } from './seeded-random.ts'
import { containerNames, randomPod, walkManifest } from './walk-pods.ts'
import type { WalkPod } from './walk-pods.ts'
import { slowness } from './slowness.ts'

export interface WalkOptions {
  /** The same seed gives the same operations in the same order. */
  readonly seed: number
  readonly operations: number
  /** How many pods at most; 8 unless told. */
  readonly mostPods?: number
  /** Whether containerd is killed too, now and then. */
  readonly killContainerd?: boolean
  /** Whether half of those times it is stopped for a while instead. */
  readonly freezeContainerd?: boolean
}

const operations = [
  ['add', 18],
  ['replace', 14],
  ['change-image', 9],
  ['change-label', 4],
  ['remove', 12],
  ['flip', 8],
  ['kill-container', 18],
  ['kill-sandbox', 7],
  ['kill-podd', 5],
  ['stop-podd', 3],
  ['kill-containerd', 2],
  ['rest', 7],
] as const

type Operation = (typeof operations)[number][0]

/** How long a rest in the middle may take; what isn't well then need not be. */
const restMs = 8000

/**
 * Does at random what users, kernels and power supplies do to pods, then looks whether what runs is what
 * shall run, that nothing ever ran twice, and, once all is taken away, that nothing is left.
 */
export class RandomWalk {
  readonly #rig: PoddRig
  readonly #options: WalkOptions
  readonly #steps: RandomSteps<Operation>
  readonly #random: () => number
  readonly #desired = new Map<string, WalkPod>()
  readonly #ledger: StartLedger
  readonly #thaws = new Set<Promise<void>>()
  #generation = 0

  constructor(rig: PoddRig, options: WalkOptions) {
    this.#rig = rig
    this.#options = options
    this.#steps = new RandomSteps(options.seed, operations)
    this.#random = this.#steps.random
    this.#ledger = new StartLedger(`unix://${join(rig.runDir, 'containerd/containerd.sock')}`)
  }

  /** Throws where anything isn't as it shall be; else tells what was done. */
  async run(): Promise<string> {
    await this.#ledger.open()
    await this.#steps.explain(() => this.#walk())
    return `${this.#steps.summary}, ${this.#ledger.summary}, ${this.#runs()} scripts ran`
  }

  async #walk(): Promise<void> {
    let overlaps: readonly string[] = []
    try {
      for (let turn = 0; turn < this.#options.operations; turn += 1) {
        await this.#steps.step(
          (operation) => this.#do(operation),
          (drawn) => this.#adapt(drawn),
        )
        await sleep(this.#pauseMs())
      }
      await Promise.all(this.#thaws)
      await this.#settle()
      await this.#takeAllAway()
    } finally {
      await Promise.all(this.#thaws)
      overlaps = [...(await this.#ledger.close()), ...this.#rig.lines('violations')]
    }
    if (overlaps.length > 0) throw new Error(`two at a time:\n${overlaps.join('\n')}`)
  }

  /** How many containers got as far as to say so. */
  #runs(): number {
    const files = readdirSync(this.#rig.shared).filter((name) => name.startsWith('runs.'))
    return files.reduce((sum, name) => sum + this.#rig.lines(name).length, 0)
  }

  /** Mostly one upon the other, sometimes with time for things to come to rest. */
  #pauseMs(): number {
    const kind = this.#random()
    const length = this.#random()
    return kind < 0.5 ? length * 50 : kind < 0.9 ? length * 300 : length * 1500
  }

  #adapt(chosen: Operation): Operation {
    if (chosen === 'kill-containerd' && this.#options.killContainerd !== true) return 'kill-container'
    if (chosen === 'add' && this.#desired.size >= (this.#options.mostPods ?? 8)) return 'replace'
    const needsPod = !['add', 'kill-podd', 'stop-podd', 'kill-containerd', 'rest'].includes(chosen)
    return needsPod && this.#desired.size === 0 ? 'add' : chosen
  }

  async #do(operation: Operation): Promise<string> {
    switch (operation) {
      case 'add':
        return this.#add()
      case 'replace':
        return this.#put(this.#another(this.#anyPod()))
      case 'change-image': {
        const pod = this.#anyPod()
        const images = pod.images.map((image) => (image === shell ? otherShell : shell))
        return this.#put({ ...pod, images })
      }
      case 'change-label': {
        const pod = this.#anyPod()
        return this.#put({ ...pod, label: pod.label + 1 })
      }
      case 'remove':
        return this.#remove(this.#anyPod())
      case 'flip':
        return this.#flip()
      case 'kill-container':
        return this.#killContainer()
      case 'kill-sandbox':
        return this.#killSandbox()
      case 'kill-podd':
        return this.#restartPodd('SIGKILL')
      case 'stop-podd':
        return this.#restartPodd('SIGTERM')
      case 'kill-containerd':
        return this.#options.freezeContainerd === true && this.#random() < 0.5
          ? this.#freezeContainerd()
          : kill(this.#rig.containerdPid)
      case 'rest':
        return this.#rest()
    }
  }

  #anyPod(): WalkPod {
    return pick(this.#random, [...this.#desired.values()])
  }

  #add(): string {
    const most = this.#options.mostPods ?? 8
    const names = Array.from({ length: most }, (_, index) => `walk-${index}`)
    const name = pick(
      this.#random,
      names.filter((candidate) => !this.#desired.has(candidate)),
    )
    return this.#put(this.#fresh(name))
  }

  #fresh(name: string): WalkPod {
    this.#generation += 1
    const hostPort = 21_000 + (process.pid % 500) * 20 + Number(name.split('-')[1])
    return randomPod(name, { random: this.#random, generation: this.#generation, hostPort })
  }

  #another(pod: WalkPod): WalkPod {
    if (this.#random() < 0.3) return this.#fresh(pod.name)
    this.#generation += 1
    return { ...pod, generation: this.#generation }
  }

  #put(pod: WalkPod): string {
    this.#desired.set(pod.name, pod)
    this.#rig.drop(pod.name, walkManifest(pod, this.#rig.shared))
    return `${pod.name} ${pod.generation} ${pod.manner} ${pod.restartPolicy}`
  }

  #remove(pod: WalkPod): string {
    this.#desired.delete(pod.name)
    this.#rig.removeManifest(pod.name)
    return pod.name
  }

  /** Things that take each other back, with next to no time between. */
  async #flip(): Promise<string> {
    const pod = this.#anyPod()
    const kind = pick(this.#random, ['there-and-back', 'remove-and-add', 'twice'] as const)
    const pauseMs = this.#random() * 120
    if (kind === 'remove-and-add') this.#remove(pod)
    else this.#put(this.#another(pod))
    await sleep(pauseMs)
    this.#put(kind === 'twice' ? this.#another(pod) : pod)
    return `${pod.name} ${kind} after ${pauseMs.toFixed(0)} ms`
  }

  async #killContainer(): Promise<string> {
    const pod = this.#anyPod()
    const name = pick(this.#random, containerNames(pod))
    const labelSelector = { [labelKeys.podName]: pod.name, [labelKeys.containerName]: name }
    try {
      const { runtime } = this.#ledger.client
      const { containers } = await runtime.listContainers({ filter: { labelSelector } })
      const running = containers.find(({ state }) => state === 'CONTAINER_RUNNING')
      if (running === undefined) return `${pod.name}/${name}: not running`
      const { info } = await runtime.containerStatus({ containerId: running.id, verbose: true })
      return `${pod.name}/${name} ${running.id.slice(0, 12)} ${killPid(info)}`
    } catch (error) {
      return `${pod.name}/${name}: ${String(error)}`
    }
  }

  async #killSandbox(): Promise<string> {
    const pod = this.#anyPod()
    try {
      const { runtime } = this.#ledger.client
      const filter = { labelSelector: { [labelKeys.podName]: pod.name } }
      const { items } = await runtime.listPodSandbox({ filter })
      const ready = items.find(({ state }) => state === 'SANDBOX_READY')
      if (ready === undefined) return `${pod.name}: no sandbox`
      const { info } = await runtime.podSandboxStatus({ podSandboxId: ready.id, verbose: true })
      return `${pod.name} ${ready.id.slice(0, 12)} ${killPid(info)}`
    } catch (error) {
      return `${pod.name}: ${String(error)}`
    }
  }

  async #restartPodd(signal: 'SIGKILL' | 'SIGTERM'): Promise<string> {
    const code = await this.#rig.stopDaemon(signal)
    if (signal === 'SIGTERM' && code !== 0 && code !== null) throw new Error(`podd exited with ${code}`)
    const awayMs = this.#random() < 0.5 ? 0 : this.#random() * 800
    await sleep(awayMs)
    if (this.#random() < 0.5) {
      await this.#rig.startDaemon()
      return 'and waited'
    }
    this.#rig.launch()
    return ''
  }

  /** Stops containerd; the walk goes on meanwhile. */
  #freezeContainerd(): string {
    const pid = this.#rig.containerdPid
    const forMs = 2000 + this.#random() * 38_000
    if (pid === 0) return 'there was none'
    process.kill(pid, 'SIGSTOP')
    const thaw = sleep(forMs).then(() => {
      this.#thaws.delete(thaw)
      // podd may have killed it by then.
      if (this.#rig.containerdPid === pid) process.kill(pid, 'SIGCONT')
    })
    this.#thaws.add(thaw)
    return `${pid} for ${forMs.toFixed(0)} ms`
  }

  /** Lets things come to rest, so that the next blow meets pods that run. */
  async #rest(): Promise<string> {
    const giveUpAtMs = performance.now() + restMs
    while (performance.now() < giveUpAtMs) {
      const problems = await this.#problems().catch(() => ['podd or containerd is away'])
      if (problems.length === 0) return 'all well'
      await sleep(100)
    }
    return 'not yet'
  }

  /** Until what runs is what shall run. */
  async #settle(): Promise<void> {
    let problems: readonly string[] = []
    await this.#rig
      .until(
        'what shall run',
        async () => {
          problems = await this.#problems()
          return problems.length === 0
        },
        45_000 * slowness,
      )
      .catch((error: unknown) => {
        throw new Error(`not as desired:\n${problems.join('\n')}\n${String(error)}`, { cause: error })
      })
  }

  async #problems(): Promise<readonly string[]> {
    const pods = await this.#rig.pods()
    const problems: string[] = []
    for (const pod of pods)
      if (!this.#desired.has(pod.metadata.name)) problems.push(`${pod.metadata.name} is still there`)
    for (const want of this.#desired.values()) {
      const named = pods.filter(({ metadata }) => metadata.name === want.name)
      const [pod] = named
      if (pod === undefined || named.length > 1) {
        problems.push(`${want.name}: there are ${named.length}`)
        continue
      }
      if (pod.metadata.deletionTimestamp !== undefined) problems.push(`${want.name} is ending`)
      const generation = /"name":"GENERATION","value":"(\d+)"/u.exec(JSON.stringify(pod.spec))?.[1]
      if (generation !== String(want.generation))
        problems.push(`${want.name} is of generation ${generation}, not ${want.generation}`)
      if (pod.metadata.labels?.['turn'] !== String(want.label))
        problems.push(`${want.name} has an older label`)
      if (want.restartPolicy !== 'Never' && conditionOf(pod, 'Ready') !== 'True')
        problems.push(`${want.name} is not ready: ${JSON.stringify(pod.status)}`)
      problems.push(...(await this.#runtimeProblems(want, pod.metadata.uid)))
    }
    const { items } = await this.#ledger.client.runtime.listPodSandbox({})
    for (const { metadata } of items)
      if (!pods.some((pod) => pod.metadata.uid === metadata?.uid))
        problems.push(`a sandbox of ${metadata?.name} ${metadata?.uid} is left`)
    return problems
  }

  /** One ready sandbox, and in it each container once, with the image and environment of its manifest. */
  async #runtimeProblems(want: WalkPod, uid: string): Promise<readonly string[]> {
    const { runtime } = this.#ledger.client
    const filter = { labelSelector: { [labelKeys.podUid]: uid } }
    const { items } = await runtime.listPodSandbox({ filter })
    const { containers } = await runtime.listContainers({ filter })
    const running = containers.filter(({ state }) => state === 'CONTAINER_RUNNING')
    const ready = items.filter(({ state }) => state === 'SANDBOX_READY')
    const problems: string[] = []
    if (ready.length > 1) problems.push(`${want.name} has ${ready.length} sandboxes`)
    const names = running.map(({ metadata }) => metadata?.name ?? '').sort()
    const wanted = containerNames(want).sort()
    const once = new Set(names).size === names.length && names.every((name) => wanted.includes(name))
    if (!once || (want.restartPolicy !== 'Never' && names.join() !== wanted.join()))
      problems.push(`${want.name} runs ${names.join()}, not ${wanted.join()}`)
    for (const container of running) {
      const spec = want.images[Number(container.metadata?.name.replace('main-', ''))]
      const image = container.annotations['podd.dev/image']
      if (spec !== undefined && image !== spec) problems.push(`${want.name} runs ${image}, not ${spec}`)
    }
    return problems
  }

  async #takeAllAway(): Promise<void> {
    for (const pod of this.#desired.values()) this.#remove(pod)
    let left: readonly string[] = []
    await this.#rig
      .until(
        'the end of all',
        async () => {
          left = await this.#leftovers()
          return left.length === 0
        },
        45_000 * slowness,
      )
      .catch((error: unknown) => {
        throw new Error(`left:\n${left.join('\n')}\n${String(error)}`)
      })
  }

  async #leftovers(): Promise<readonly string[]> {
    const { runtime } = this.#ledger.client
    const { items } = await runtime.listPodSandbox({})
    const { containers } = await runtime.listContainers({})
    const pods = await this.#rig.pods()
    return [
      ...pods.map(({ metadata }) => `pod ${metadata.name}`),
      ...items.map(({ id, metadata }) => `sandbox ${id} of ${metadata?.name}`),
      ...containers.map(({ id, metadata }) => `container ${id} ${metadata?.name}`),
      ...leftBehind(this.#rig),
    ]
  }
}

/** What pods that are gone left of files, cgroups, addresses and mounts. */
function leftBehind(rig: PoddRig): string[] {
  const { cniDataDir, networkName } = containerdPlaces(rig.rootDir, rig.runDir)
  const directories = [join(rig.rootDir, 'pods'), join(rig.rootDir, 'records'), rig.logsDir, rig.linksDir]
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  return [
    ...directories.flatMap((directory) => filesIn(directory).map((name) => join(directory, name))),
    ...filesIn(join(cniDataDir, networkName))
      .filter((name) => /^\d+\.\d+\.\d+\.\d+$/u.test(name))
      .map((name) => `address ${name}`),
    ...podCgroups(rig.cgroupRoot).map((path) => `cgroup ${path}`),
    ...mounts.filter((line) => line.includes(rig.directory)).map((line) => `mount ${line}`),
    ...shims(rig.runDir).map((pid) => `shim ${pid}`),
  ]
}

function filesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : []
}

function podCgroups(root: string): string[] {
  const base = '/sys/fs/cgroup'
  return ['', ...readdirSync(base)]
    .map((controller) => join(base, controller, root, 'kubepods'))
    .filter((path) => existsSync(path))
    .flatMap((path) =>
      readdirSync(path, { recursive: true, encoding: 'utf8' })
        .filter((name) => /(?:^|\/)pod[^/]+$/u.test(name))
        .map((name) => join(path, name)),
    )
}

function shims(runDir: string): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/u.test(pid)) return []
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      if (words[0]?.includes('containerd-shim') !== true || !words.some((word) => word.startsWith(runDir)))
        return []
      const id = words[words.indexOf('-id') + 1] ?? ''
      const bundles = join(runDir, 'containerd/state/io.containerd.runtime.v2.task/k8s.io')
      return [`${pid} of ${id}, ${existsSync(join(bundles, id)) ? 'with a bundle' : 'without a bundle'}`]
    } catch {
      return []
    }
  })
}

/** Kills the first process, as CRI's verbose status tells it. */
function killPid(info: Readonly<Record<string, string>>): string {
  const parsed: unknown = JSON.parse(info['info'] ?? '{}')
  const pid = isJsonObject(parsed) ? parsed['pid'] : undefined
  return kill(typeof pid === 'number' ? pid : 0)
}

function kill(pid: number): string {
  if (pid <= 1) return 'no process'
  try {
    process.kill(pid, 'SIGKILL')
    return `pid ${pid}`
  } catch {
    return `pid ${pid} was gone`
  }
}
