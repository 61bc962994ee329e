import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { Histogram } from '../../base/histogram.ts'
import { waitInQueue } from '../../base/waits.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { OrphanCollector } from '../../decide/node/plan-orphans.ts'
import { chooseCgroupDriver } from '../../host/cgroups/layout.ts'
import type { CgroupDriver } from '../../host/cgroups/layout.ts'
import { keepConnection } from '../../host/keep-connection.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { RuntimeOperation } from '../../pod/state/usage.ts'
import type { RuntimeConnection } from '../../runtime/connection.ts'
import { ContentStore } from '../../runtime/containerd/image-records.ts'
import { containerdPlaces, findContainerd, findShims } from '../../runtime/containerd/process.ts'
import { ContainerdRecords } from '../../runtime/containerd/records.ts'
import { askCgroupDriver, callDeadlineMs, CriClient } from '../../runtime/cri-client.ts'
import type { CallOptions, ImageService, RuntimeService } from '../../runtime/cri-runtime.ts'
import type { EmbeddedContainerd } from '../../runtime/embedded-containerd.ts'
import {
  createEmbedded,
  createEventSource,
  createPodNetworkKeeper,
  listSandboxIds,
  writeOutPulled,
} from './embedded-runtime.ts'
import type { PodNetworkKeeper, RuntimeEnv } from './embedded-runtime.ts'
import { compareContainerd } from './runtime-comparison.ts'
import type { RuntimeComparison } from './runtime-comparison.ts'
import { createRuntimeImages } from './runtime-images.ts'
import type { RuntimeImages } from './runtime-images.ts'
import type { RuntimeEventSource } from './runtime-observer.ts'
import { RuntimeStats } from './runtime-stats.ts'
import { RuntimePulse } from './runtime-watch.ts'

/** How long podd waits for the runtime at its start before it goes on without one for the time being. */
const firstAnswerMs = 5000
const meetAgainMs = 2000
/** How many creating calls the runtime has at a time, for each processor, and how many removing ones (docs/PERFORMANCE.md). */
const callsPerProcessor = 4

/** The bounds of `kubelet_runtime_operations_duration_seconds` (`pkg/kubelet/metrics/metrics.go`, 1.36). */
const callBounds = Array.from({ length: 14 }, (_, power) => 0.005 * 2.5 ** power)

/**
 * The container runtime, whichever it is: the embedded one, started and watched, or one behind a socket. It may be
 * unavailable when podd starts.
 */
export class RuntimeAccess {
  /** Every call about sandboxes and containers goes through it, so that creating calls are tracked. */
  readonly runtime: RuntimeService
  /** Images that it has pulled survive a power cut. */
  readonly images: ImageService
  readonly imageStore: RuntimeImages
  readonly stats: RuntimeStats
  /** For containerd's own services on the same socket. */
  readonly connection: RuntimeConnection
  readonly pulse: RuntimePulse
  readonly #client: CriClient
  readonly #making: MakingCalls
  readonly endpoint: string
  /** The label under which this podd's pods are found where a runtime serves several; empty for an embedded one. */
  readonly instance: string
  readonly #env: RuntimeEnv
  readonly #embedded: EmbeddedContainerd | undefined
  readonly #comparison: RuntimeComparison
  /** By RPC. */
  readonly #calls = new Map<string, { errors: number; readonly durations: Histogram }>()
  #name = 'containerd'
  #version: string | undefined
  #keeper: PodNetworkKeeper | undefined
  /** End the processes that hold connections for starts. */
  readonly #keepers = new Set<() => void>()
  /** How often the embedded containerd was started or adopted. */
  #starts = 0

  constructor(env: RuntimeEnv) {
    const { config, clock, logger } = env
    this.#env = env
    const places = containerdPlaces(config.rootDir, config.runDir)
    const isEmbedded = config.containerRuntimeEndpoint === 'embedded'
    this.endpoint = isEmbedded ? `unix://${places.socketPath}` : config.containerRuntimeEndpoint
    this.instance = isEmbedded ? '' : places.unitName
    this.#embedded = isEmbedded
      ? createEmbedded(env, this.cgroupDriver(), () => ({
          runtime: this.runtime,
          images: this.#client.images,
        }))
      : undefined
    this.#client = new CriClient({
      endpoint: this.endpoint,
      imageEndpoint: config.imageServiceEndpoint,
      clock,
      keep: (socket) => {
        const release = keepConnection(socket, {
          lingerSeconds: callDeadlineMs / 1000,
          onFailure: (error) =>
            logger.warn(
              { err: error },
              'the runtime will cancel the start of a container if podd is killed during it',
            ),
        })
        this.#keepers.add(release)
        return () => {
          this.#keepers.delete(release)
          release()
        }
      },
      onCall: (method, durationMs, ok) => {
        const counted = this.#calls.get(method) ?? { errors: 0, durations: new Histogram(callBounds) }
        this.#calls.set(method, counted)
        counted.durations.observe(durationMs / 1000)
        if (!ok) counted.errors += 1
      },
    })
    this.connection = this.#client.connection
    this.#making = new MakingCalls(this.#client.runtime, {
      clock,
      limit: callsPerProcessor * availableParallelism(),
    })
    const calls = this.#making.runtime
    this.runtime = {
      ...calls,
      version: async (...args) => {
        const reply = await calls.version(...args)
        this.#noteVersion(reply)
        return reply
      },
      runPodSandbox: async (...args) => {
        await this.#keeper?.reserveAddresses()
        return calls.runPodSandbox(...args)
      },
    }
    const { runtime, connection, instance } = this
    const embedded = this.#embedded
    this.#comparison = compareContainerd({ ...env, runtime, connection, embedded, instance })
    this.#client.gateWith(this.#comparison)
    this.pulse = new RuntimePulse(clock, () => runtime.version({}))
    const { images } = this.#client
    const pullImage: typeof images.pullImage = async (...call) => {
      await embedded?.checkVerifiers()
      return await images.pullImage(...call)
    }
    this.images = writeOutPulled(
      { ...images, pullImage },
      () => embedded?.images.unpacking,
      (error) => logger.warn({ err: error }, 'a pulled image may be lost in a power cut'),
    )
    this.stats = new RuntimeStats(runtime)
    this.imageStore = createRuntimeImages(runtime, this.images, embedded)
  }

  /** Where the embedded containerd has what it pulls; undefined where another runtime has the images. */
  get content(): ContentStore | undefined {
    const { config, clock } = this.#env
    if (this.#embedded === undefined || config.imageServiceEndpoint !== undefined) return undefined
    return new ContentStore(this.connection, clock)
  }

  /**
   * Path of the seccomp profile that sandboxes get; undefined where they get the runtime's default one: the runtime isn't podd's
   * own, or the file is gone.
   */
  sandboxSeccompPath(): string | undefined {
    const path = this.#embedded?.places.sandboxSeccompPath
    return path !== undefined && existsSync(path) ? path : undefined
  }

  /** The runtime's name for itself; `containerd` until it is known. */
  get name(): string {
    return this.#name
  }

  /** Whether the runtime serves containerd's own API; another one, and a containerd that hides it, serves CRI alone. */
  get isContainerd(): boolean {
    return this.#comparison.isContainerd
  }

  get calls(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#calls].map(([rpc, { durations }]) => [rpc, durations.count]))
  }

  /** The same with how many of them failed, and how long they took (seconds). */
  operations(): readonly RuntimeOperation[] {
    return [...this.#calls].map(([rpc, { errors, durations }]) => ({
      rpc,
      errors,
      durations: durations.read(),
    }))
  }

  get version(): string | undefined {
    return this.#version
  }

  /** The cgroup driver, as far as it is known before the runtime is asked. */
  cgroupDriver(runtime?: CgroupDriver): CgroupDriver {
    const { config, hostInfo } = this.#env
    return chooseCgroupDriver({
      configured: config.cgroupDriver,
      runtime,
      systemd: hostInfo.systemd,
      version: hostInfo.cgroups?.version ?? 1,
    })
  }

  /**
   * Starts or adopts the embedded containerd, and asks the runtime for its version. Returns what is wrong, if anything
   * is.
   */
  async open(signal: AbortSignal): Promise<string | undefined> {
    try {
      await this.#embedded?.start(signal)
      await this.#meet(signal)
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      this.#env.logger.error({ err: error }, 'the container runtime is unavailable')
      return withHint(error)
    }
  }

  /** Asks the runtime for its name and version, and passes it the pods' network. */
  async #meet(signal: AbortSignal): Promise<void> {
    const { podCidrs } = this.#env.config
    const version = await this.#client.connect(AbortSignal.any([signal, AbortSignal.timeout(firstAnswerMs)]))
    if (this.#embedded === undefined && podCidrs.length > 0) {
      const networkConfig = { podCidr: podCidrs.join(',') }
      await this.runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig } })
    }
    this.#noteVersion(version)
  }

  /** Each answer counts: the runtime may be replaced by another release, or by another runtime, while podd runs. */
  #noteVersion({ runtimeName, runtimeVersion }: cri.VersionResponse): void {
    this.#name = runtimeName
    this.#version = runtimeVersion
  }

  /** Asks a runtime that was unavailable at the start for its version, as soon as it answers. */
  async #meetLater(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#env
    while (this.#version === undefined && !signal.aborted) {
      await sleepUnlessAborted(clock, meetAgainMs, signal)
      if (signal.aborted) return
      try {
        await this.#meet(signal)
        logger.info({}, 'the container runtime is available')
      } catch (error) {
        logger.debug({ err: error }, 'the container runtime is not available yet')
      }
    }
  }

  /**
   * Opens the runtime if it may have something to end. An embedded containerd that neither runs nor left a container
   * behind isn't started for that.
   */
  async isThere(signal: AbortSignal): Promise<boolean> {
    if (this.#embedded !== undefined) {
      const { places } = this.#embedded
      if (findContainerd(places) === undefined && findShims(places).length === 0) return false
    }
    const problem = await this.open(signal)
    if (problem === undefined) return true
    throw new PoddError('RUNTIME_UNAVAILABLE', problem)
  }

  /**
   * The cgroup driver to use: the configured one, else the one that an external runtime reports. A runtime that reports
   * none must use the one that podd would choose. Throws what its calls throw.
   */
  async askCgroupDriver(): Promise<CgroupDriver> {
    if (this.#embedded !== undefined || this.#env.config.cgroupDriver !== 'auto') return this.cgroupDriver()
    return this.cgroupDriver(await askCgroupDriver(this.runtime))
  }

  /** Kills the embedded containerd where it hangs; `watch` starts it again. Undefined without one. */
  get noteSilence(): ((silentMs: number) => void) | undefined {
    const embedded = this.#embedded
    return embedded === undefined ? undefined : (silentMs) => embedded.noteSilence(silentMs)
  }

  /**
   * Until the signal is aborted: compares what CRI lists with what containerd has, supervises an embedded containerd, and
   * reports when the runtime becomes unavailable (why) and available (undefined).
   */
  async watch(onProblem: (problem: string | undefined) => void, signal: AbortSignal): Promise<void> {
    const watching = Promise.all([this.#meetLater(signal), this.#comparison.run(onProblem, signal)])
    if (this.#embedded === undefined) return void (await watching)
    const stop = this.#embedded.onChange((state) => {
      if (state.kind === 'running') {
        this.#starts += 1
        onProblem(undefined)
      }
      if (state.kind === 'down') onProblem(state.message)
    })
    await Promise.all([watching, this.#embedded.supervise(signal)])
    stop()
  }

  /** Calls back whenever podd's own containerd has been adopted or started. */
  onStart(listener: () => void): void {
    this.#embedded?.onChange(({ kind }) => {
      if (kind === 'running') listener()
    })
  }

  /** Keeps the pods' network; undefined where podd doesn't own it. */
  podNetworkKeeper(): PodNetworkKeeper | undefined {
    if (this.#embedded === undefined) return undefined
    const filter: cri.Sent<cri.PodSandboxFilter> = { state: { state: 'SANDBOX_READY' } }
    const listReady = () => listSandboxIds(this.runtime, filter)
    this.#keeper ??= createPodNetworkKeeper(this.#embedded, listReady, this.#env)
    return this.#keeper
  }

  /** Problems that need an operator although the runtime works. */
  problems(): readonly Problem[] {
    return this.#embedded?.problems() ?? []
  }

  /** The collectors of orphans in the runtime; none for an external one. */
  orphanCollectors(): readonly OrphanCollector[] {
    return this.#embedded?.orphanCollectors(new ContainerdRecords(this.connection, this.#env.clock)) ?? []
  }

  /** When the oldest creating call in flight was sent (monotonic milliseconds). */
  get makingSinceMs(): number | undefined {
    return this.#making.sinceMs
  }

  /** How many events so far may have left something behind in the runtime. */
  get disturbances(): number {
    return this.#making.failures + (this.#calls.get('RemovePodSandbox')?.durations.count ?? 0) + this.#starts
  }

  events(): RuntimeEventSource {
    return createEventSource(this.connection, this.#env.clock, this.#env.logger)
  }

  close(): void {
    // A start in flight is completed for the next podd.
    if (this.makingSinceMs === undefined) for (const release of this.#keepers) release()
    this.#client.close()
  }
}

export function withHint(error: unknown): string {
  const hint = error instanceof PoddError ? error.hint : undefined
  return hint === undefined ? errorMessage(error) : `${errorMessage(error)}. ${hint}`
}

/**
 * Tracks and bounds the calls in flight that create something which the runtime lists only afterwards: a sandbox, a container,
 * a container's process. Bounds those that take such a thing down, too; StopContainer, which waits for a grace period, isn't
 * among them.
 */
export class MakingCalls {
  /**
   * The service with tracked calls; use it in place of the service itself. The signal of a call that creates something ends
   * the wait for its turn alone: once it was sent, its result is awaited.
   */
  readonly runtime: RuntimeService
  readonly #inFlight = new Set<{ readonly sinceMs: number }>()
  readonly #clock: Clock
  readonly #gate: StartGate
  readonly #removals: StartGate
  #failures = 0

  /** @param limit how many of each sort the runtime has at a time; further ones wait */
  constructor(runtime: RuntimeService, { clock, limit }: { readonly clock: Clock; readonly limit: number }) {
    this.#clock = clock
    this.#gate = new StartGate(limit, clock)
    this.#removals = new StartGate(limit, clock)
    const remove = <Request, Reply>(
      send: (request: Request, options?: CallOptions) => Promise<Reply>,
    ): typeof send => {
      return (request, options) =>
        this.#removals.run('sandbox', () => send(request, options), options?.signal)
    }
    this.runtime = {
      ...runtime,
      stopPodSandbox: remove(runtime.stopPodSandbox),
      removePodSandbox: remove(runtime.removePodSandbox),
      removeContainer: remove(runtime.removeContainer),
      runPodSandbox: (request, options) =>
        this.#make('sandbox', (bound) => runtime.runPodSandbox(request, bound), options),
      createContainer: (request, options) =>
        this.#make('container', (bound) => runtime.createContainer(request, bound), options),
      startContainer: (request, options) =>
        this.#make('start', (bound) => runtime.startContainer(request, bound), options),
    }
  }

  /** When the oldest one in flight was sent (monotonic time); undefined where none is. */
  get sinceMs(): number | undefined {
    const [oldest] = this.#inFlight
    return oldest?.sinceMs
  }

  /** How many have failed or were cancelled: each may have created something nevertheless. */
  get failures(): number {
    return this.#failures
  }

  #make<Reply>(
    stage: StartStage,
    send: (options: CallOptions) => Promise<Reply>,
    options: CallOptions = {},
  ): Promise<Reply> {
    return this.#gate.run(stage, () => this.#track(send, options), options.signal)
  }

  async #track<Reply>(send: (options: CallOptions) => Promise<Reply>, options: CallOptions): Promise<Reply> {
    const { signal } = options
    const call = { sinceMs: this.#clock.monotonicMs() }
    const unsent = new AbortController()
    const leave = (): void => unsent.abort(signal?.reason)
    const stay = (): void => signal?.removeEventListener('abort', leave)
    signal?.addEventListener('abort', leave, { once: true })
    const onSent = (): void => {
      stay()
      options.onSent?.()
    }
    this.#inFlight.add(call)
    try {
      return await send({ ...options, signal: unsent.signal, onSent })
    } catch (error) {
      if (!unsent.signal.aborted) this.#failures += 1
      throw error
    } finally {
      stay()
      this.#inFlight.delete(call)
    }
  }
}

/** What creating calls make, in the order in which waiting ones are sent: pods that were begun are completed before more are begun. */
const stages = ['start', 'container', 'sandbox'] as const
export type StartStage = (typeof stages)[number]

/**
 * How long a call counts (milliseconds). One that takes longer is stuck or waits for something other than the processor: it must
 * not hold up those of other pods.
 */
const countsForMs = 5000

interface Call {
  readonly sinceMs: number
}

/**
 * Bounds how many creating or removing calls the runtime has at a time. Each runs programs (shim, runc, network plugins), and with
 * more of them at once than the processors can carry all take longer than one after another would. A runtime that answers
 * thousands of them at once would hold the event loop, too.
 */
export class StartGate {
  readonly #limit: number
  readonly #clock: Clock
  readonly #counted = new Set<Call>()
  readonly #waiting: Readonly<Record<StartStage, Set<(call: Call) => void>>> = {
    start: new Set(),
    container: new Set(),
    sandbox: new Set(),
  }
  #timer: Timer | undefined

  constructor(limit: number, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
  }

  /**
   * Sends when fewer than `limit` calls count, at once where that is so already; those of one stage in the order they came.
   * Throws the signal's reason where it is aborted before that, and nothing is sent.
   */
  async run<Reply>(stage: StartStage, send: () => Promise<Reply>, signal?: AbortSignal): Promise<Reply> {
    signal?.throwIfAborted()
    const call = this.#counted.size < this.#limit ? this.#enter() : await this.#wait(stage, signal)
    try {
      signal?.throwIfAborted()
      return await send()
    } finally {
      this.#counted.delete(call)
      this.#admit()
    }
  }

  #enter(): Call {
    const call = { sinceMs: this.#clock.monotonicMs() }
    this.#counted.add(call)
    return call
  }

  #wait(stage: StartStage, signal: AbortSignal | undefined): Promise<Call> {
    const turn = waitInQueue(this.#waiting[stage], signal)
    this.#watchOldest()
    return turn
  }

  #admit(): void {
    while (this.#counted.size < this.#limit) {
      const queue = this.#firstWaiting()
      const [next] = queue ?? []
      if (queue === undefined || next === undefined) break
      queue.delete(next)
      next(this.#enter())
    }
    if (this.#firstWaiting() !== undefined) return
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #firstWaiting(): Set<(call: Call) => void> | undefined {
    return stages.map((stage) => this.#waiting[stage]).find(({ size }) => size > 0)
  }

  /** One timer for all, and only while somebody waits. */
  #watchOldest(): void {
    const [oldest] = this.#counted
    if (this.#timer !== undefined || oldest === undefined) return
    const now = this.#clock.monotonicMs()
    this.#timer = this.#clock.startTimer(oldest.sinceMs + countsForMs - now, () => {
      this.#timer = undefined
      const before = this.#clock.monotonicMs() - countsForMs
      for (const call of this.#counted) if (call.sinceMs <= before) this.#counted.delete(call)
      this.#admit()
      if (this.#firstWaiting() !== undefined) this.#watchOldest()
    })
  }
}
