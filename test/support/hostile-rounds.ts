import { mkdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { fillDisk, makeRoom } from './full-disk.ts'
import { hostileManifest, hostilePods } from './hostile-pods.ts'
import type { HostilePod } from './hostile-pods.ts'
import { conditionOf, containerOf } from './podd-rig.ts'
import type { PoddRig } from './podd-rig.ts'
import { ProcessLedger } from './process-ledger.ts'
import type { ProcessLife } from './process-ledger.ts'
import { wordsOf } from './shell-pods.ts'
import { slowness } from './slowness.ts'
import { pick, RandomSteps } from './seeded-random.ts'

const steps = [
  ['fill-disk', 5],
  ['make-room', 3],
  ['freeze-containerd', 4],
  ['thaw-containerd', 2],
  ['kill-containerd', 5],
  ['kill-podd', 5],
  ['replace', 4],
  ['kill-container', 2],
] as const

type Step = (typeof steps)[number][0]

/** How long a freeze lasts at least: longer than three exec probes of hostile-pods.ts take to fail. */
const freezeMs = 9000
/** Long enough for a double or a loss that a worker does later. */
const calmMs = 1500
const settleMs = 90_000 * slowness

/** What happened in a round that explains starts of containers. */
interface Causes {
  /** Pods whose manifest was changed. */
  readonly replaced: Set<string>
  /** `pod/container`, by how often its process was killed. */
  readonly killed: Map<string, number>
  /** How often podd or containerd was killed: a start that this cancels is begun again. */
  disturbances: number
}

/**
 * Seeded rounds of what befalls an edge host: a full disk, a containerd that is frozen or killed, a podd that is
 * killed, new manifests and dying containers meanwhile. After each round the trouble is taken away, and what runs is
 * counted from /proc: no container lost, none doubled at any time, none started again without a cause, and each start
 * told by its restart count.
 */
export class HostileRounds {
  readonly #rig: PoddRig
  readonly #ledger: ProcessLedger
  #pods: HostilePod[] = [...hostilePods()]
  #hostPort = 0
  #failed: number | undefined
  #frozen = 0
  /** Restart counts before the round, by pod's UID and container. */
  #restarts = new Map<string, number>()
  #lines = new Map<string, number>()

  constructor(rig: PoddRig) {
    this.#rig = rig
    this.#ledger = new ProcessLedger(rig.cgroupRoot)
  }

  /** Starts the pods, and waits until they run. */
  async open(): Promise<void> {
    mkdirSync(this.#rig.shared, { recursive: true })
    this.#hostPort = await freePort()
    this.#ledger.open()
    for (const pod of this.#pods) this.#drop(pod)
    await this.#settle()
    await this.#remember()
  }

  close(): void {
    this.#ledger.close()
    this.#endTrouble()
  }

  /** Throws where anything isn't as it shall be; else tells what was done. */
  async round(seed: number): Promise<string> {
    if (this.#failed !== undefined)
      throw new Error(`not run: seed ${this.#failed} left pods that aren't as they shall be`)
    const round = new RandomSteps(seed, steps)
    const { random } = round
    const causes: Causes = { replaced: new Set(), killed: new Map(), disturbances: 0 }
    const before = this.#ledger.sample()
    this.#ledger.forget()
    this.#ledger.sample()
    this.#failed = seed
    await round.explain(async () => {
      const count = 3 + Math.floor(random() * 4)
      for (let turn = 0; turn < count; turn += 1) {
        await round.step((step) => this.#do(step, random, causes))
        await sleep(random() < 0.5 ? random() * 200 : random() * 2500)
      }
      if (this.#frozen !== 0) await sleep(freezeMs)
      this.#endTrouble()
      await this.#rig.ensureDaemon()
      await this.#settle()
      await sleep(calmMs)
      await this.#settle()
      const problems = [...this.#ledger.overlaps, ...(await this.#judge(before, causes))]
      if (problems.length > 0) throw new Error(problems.join('\n'))
    })
    this.#failed = undefined
    await this.#remember()
    return round.summary
  }

  async #do(step: Step, random: () => number, causes: Causes): Promise<string> {
    const rig = this.#rig
    switch (step) {
      case 'fill-disk':
        fillDisk(rig.rootDir)
        return ''
      case 'make-room':
        makeRoom(rig.rootDir)
        return ''
      case 'freeze-containerd':
        this.#frozen ||= rig.containerdPid
        return signal(this.#frozen, 'SIGSTOP')
      case 'thaw-containerd':
        if (this.#frozen !== 0) await sleep(freezeMs)
        return this.#thaw()
      case 'kill-containerd':
        causes.disturbances += 1
        this.#frozen = 0
        return signal(rig.containerdPid, 'SIGKILL')
      case 'kill-podd':
        causes.disturbances += 1
        await rig.stopDaemon('SIGKILL')
        await sleep(random() < 0.5 ? 0 : random() * 1500)
        rig.launch()
        return ''
      case 'replace': {
        const pod = pick(random, this.#pods)
        const next = { ...pod, version: pod.version + 1 }
        this.#pods = this.#pods.map((each) => (each === pod ? next : each))
        causes.replaced.add(pod.name)
        this.#drop(next)
        return `${pod.name} by version ${next.version}`
      }
      case 'kill-container': {
        const lives = this.#ledger.sample()
        if (lives.length === 0) return 'none runs'
        const { key, id } = pick(random, lives)
        causes.killed.set(key, (causes.killed.get(key) ?? 0) + 1)
        return `${key} ${signal(Number(id.split(':')[0]), 'SIGKILL')}`
      }
    }
  }

  #drop(pod: HostilePod): void {
    this.#rig.drop(pod.name, hostileManifest(pod, this.#rig.shared, this.#hostPort))
  }

  #thaw(): string {
    const pid = this.#frozen
    this.#frozen = 0
    return signal(pid, 'SIGCONT')
  }

  #endTrouble(): void {
    this.#thaw()
    makeRoom(this.#rig.rootDir)
  }

  /** Until podd shows what is wanted, and /proc has each container of it once. */
  async #settle(): Promise<void> {
    let problems: readonly string[] = []
    const look = async (): Promise<boolean> => {
      problems = [...this.#processProblems(), ...(await this.#podProblems())]
      return problems.length === 0
    }
    await this.#rig.until('what shall run', look, settleMs).catch((error: unknown) => {
      throw new Error(`not as desired:\n${problems.join('\n')}\n${String(error)}`, { cause: error })
    })
  }

  #processProblems(): string[] {
    const lives = this.#ledger.sample()
    const wanted = this.#pods.flatMap(({ name, containers, version }) =>
      containers.map((container) => ({ key: `${name}/${container}`, version })),
    )
    const missing = wanted.filter(({ key, version }) => {
      const running = lives.filter((life) => life.key === key)
      return running.length !== 1 || running[0]?.version !== version
    })
    return missing.map(({ key, version }) => {
      const running = lives.filter((life) => life.key === key).map((life) => `${life.id}@${life.version}`)
      return `${key}@${version} runs as ${running.join(', ') || 'nothing'}`
    })
  }

  async #podProblems(): Promise<string[]> {
    const pods = await this.#rig.pods()
    return this.#pods.flatMap(({ name, version }) => {
      const named = pods.filter(({ metadata }) => metadata.name === name)
      const [pod] = named
      if (pod === undefined || named.length > 1) return [`${name}: there are ${named.length}`]
      const isWanted = JSON.stringify(pod.spec).includes(`@${version};`)
      if (!isWanted) return [`${name} is shown in another version than ${version}`]
      return conditionOf(pod, 'Ready') === 'True' ? [] : [`${name} is not ready`]
    })
  }

  /** What no cause explains. */
  async #judge(before: readonly ProcessLife[], causes: Causes): Promise<string[]> {
    const pods = await this.#rig.pods()
    return this.#pods.flatMap(({ name, containers, version }) => {
      const pod = pods.find(({ metadata }) => metadata.name === name)
      if (pod === undefined) return [`${name} is gone`]
      return containers.flatMap((container) => {
        const key = `${name}/${container}`
        const kills = causes.killed.get(key) ?? 0
        const words = wordsOf(this.#rig.lines(`${name}.${container}`)).slice(this.#lines.get(key))
        const starts = words.filter((word) => word === `start ${version}`).length
        const restarts = containerOf(pod, container).restartCount
        const told = restarts - (this.#restarts.get(`${pod.metadata.uid} ${container}`) ?? -1)
        const problems: string[] = []
        if (!causes.replaced.has(name) && kills === 0) {
          const ids = before.filter((life) => life.key === key).map(({ id }) => id)
          const seen = this.#ledger.seen.filter((life) => life.key === key).map(({ id }) => id)
          if (seen.join() !== ids.join() || starts > 0)
            problems.push(`${key}: restarted without a cause: ${ids.join()} before, ${seen.join()} seen`)
          if (told !== 0) problems.push(`${key}: ${told} restarts are reported of one that ran on`)
        }
        // A pod that has just been replaced has started once without a restart.
        if (starts > told)
          problems.push(`${key}: ${starts} starts of version ${version}, but ${told} are told`)
        if (starts > 1 + kills + causes.disturbances)
          problems.push(`${key}: ${starts} starts, ${kills} kills, ${causes.disturbances} disturbances`)
        return problems
      })
    })
  }

  async #remember(): Promise<void> {
    this.#restarts = new Map(
      (await this.#rig.pods()).flatMap((pod) => {
        const { containers = [] } = this.#pods.find(({ name }) => name === pod.metadata.name) ?? {}
        return containers.map((name) => [`${pod.metadata.uid} ${name}`, containerOf(pod, name).restartCount])
      }),
    )
    this.#lines = new Map(
      this.#pods.flatMap(({ name, containers }) =>
        containers.map((container) => [
          `${name}/${container}`,
          this.#rig.lines(`${name}.${container}`).length,
        ]),
      ),
    )
  }
}

function signal(pid: number, name: NodeJS.Signals): string {
  if (pid <= 1) return '(none)'
  try {
    process.kill(pid, name)
    return `pid ${pid}`
  } catch {
    return `pid ${pid} was gone`
  }
}
