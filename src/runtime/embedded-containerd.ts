import { sleepUnlessAborted } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { errorMessage, PoddError } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { OrphanCollector } from '../decide/node/plan-orphans.ts'
import { signalProcess } from '../host/processes.ts'
import { errorAt } from '../pod/objects/document.ts'
import type { Problem } from '../pod/objects/document.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import {
  ContainerdInventory,
  containerOrphans,
  leaseOrphans,
  shimOrphans,
  snapshotOrphans,
  taskOrphans,
} from './containerd/leaks.ts'
import type { CriKnowledge, RuntimeRecords } from './containerd/leaks.ts'
import {
  containerdPlaces,
  detectLaunchMode,
  EmbeddedContainerdError,
  endContainerd,
  findContainerd,
  isStillContainerd,
} from './containerd/process.ts'
import type { ContainerdPlaces, LaunchMode } from './containerd/process.ts'
import {
  adoptContainerd,
  LongestStart,
  SilentContainerd,
  startContainerd,
  watchContainerd,
  workOf,
} from './containerd/start.ts'
import type { ContainerdHome } from './containerd/start.ts'
import type { UnpackedImagesOptions } from './containerd/unpacked-images.ts'
import { InstalledProgram, recordVersion } from './containerd/version.ts'
import type { ContainerdVersion } from './containerd/version.ts'
import { EmbeddedImages } from './embedded-images.ts'
import type { ImageImportTarget, OpenImageRecords } from './embedded-images.ts'
import { checkVerifiers, findPrograms, writeContainerdFiles } from './embedded-setup.ts'
import type { ContainerdFileOptions, ProgramOptions } from './embedded-setup.ts'
import { removeTornCniResults } from './network/cni-results.ts'
import {
  addressOrphans,
  cniResultOrphans,
  firewallOrphans,
  interfaceOrphans,
  namespaceOrphans,
} from './network/leaks.ts'
import { openFirewall } from './network/network-rules.ts'

export interface EmbeddedContainerdOptions extends ProgramOptions, ContainerdFileOptions {
  readonly rootDir: string
  readonly runDir: string
  readonly known: CriKnowledge
  readonly openImageRecords: OpenImageRecords
  /** Left out, images that a power cut may have damaged are kept. */
  readonly unpacks?: Omit<UnpackedImagesOptions, 'file' | 'logger'>
  /** Left out, what happens to containerd is only logged. */
  readonly events?: NodeEventRecorder | undefined
  readonly clock: Clock
  readonly logger: Logger
  /** Overrides what the host's init implies. */
  readonly launchMode?: LaunchMode | undefined
}

const firstRetryMs = 1_000
const longestRetryMs = 30_000
/** After running for this long it is restarted at once, without backoff. */
const stableMs = 60_000

/**
 * A containerd of podd's own, in processes of its own: started or adopted by `start`, watched by `supervise`. It keeps
 * running when podd ends; `removeEmbeddedContainerd` ends it for good.
 */
export class EmbeddedContainerd {
  readonly places: ContainerdPlaces
  readonly images: EmbeddedImages
  readonly #options: EmbeddedContainerdOptions
  readonly #home: ContainerdHome
  readonly #state: ContainerdStateStore
  /** The running one was told to end, so that another takes its place. */
  #isRestarting = false
  readonly #program: InstalledProgram
  /** `supervise` is starting the next one. */
  #isStarting = false
  readonly #silent = new SilentContainerd(workOf)
  /** Why no image is pulled. */
  #verifiersProblem: Problem | undefined

  constructor(options: EmbeddedContainerdOptions) {
    this.#options = options
    this.places = containerdPlaces(options.rootDir, options.runDir)
    const { clock, logger, launchMode, unpacks, sandboxImage } = options
    this.#state = new ContainerdStateStore(clock)
    const tell = (reason: string, message: string): void => this.#tell(reason, message)
    this.#program = new InstalledProgram(this.places, tell, logger)
    this.images = new EmbeddedImages({
      places: this.places,
      sandboxImage,
      unpacks,
      whenRunning: async () => (await this.#state.whenRunning()).importTarget,
      running: () => this.#state.running?.importTarget,
      openRecords: options.openImageRecords,
      logger,
    })
    this.#home = {
      places: this.places,
      mode: launchMode ?? detectLaunchMode(),
      clock,
      logger,
      longestStart: new LongestStart(),
      onRestart: (reason) => this.#tellRestart(reason),
    }
  }

  /** The socket for the CRI client; valid whether containerd runs or not. */
  get socketPath(): string {
    return this.places.socketPath
  }

  get state(): ContainerdState {
    return this.#state.current
  }

  /** Problems that need an operator although containerd runs. */
  problems(): readonly Problem[] {
    return [this.#program.problem, this.#verifiersProblem].filter((problem) => problem !== undefined)
  }

  /**
   * Call it before each pull.
   * @throws EmbeddedContainerdError where image verifiers are configured that would not be asked
   */
  async checkVerifiers(): Promise<void> {
    const { imageVerifiers } = this.#options
    if (imageVerifiers === undefined) return
    const { version } = await this.#state.whenRunning()
    try {
      await checkVerifiers(imageVerifiers, version)
      this.#verifiersProblem = undefined
    } catch (error) {
      const hint = error instanceof PoddError ? error.hint : undefined
      this.#verifiersProblem = errorAt(imageVerifiers, `no image is pulled: ${errorMessage(error)}`, hint)
      throw error
    }
  }

  onChange(listener: (state: ContainerdState) => void): () => void {
    return this.#state.onChange(listener)
  }

  /**
   * Adopts the containerd that runs with this instance's config, or starts one, and resolves when CRI answers and the
   * sandbox image is present. A running one whose config is out of date is restarted; its containers keep running
   * meanwhile.
   *
   * @throws PoddError (EmbeddedContainerdError where it is about containerd) with what to do about it
   */
  async start(signal?: AbortSignal): Promise<RunningContainerd> {
    const { places } = this
    const installed = await findPrograms(this.#options)
    const newer = await this.#program.findNewer(installed)
    const programs = { ...installed, version: newer ?? installed.version }
    const files = await writeContainerdFiles(places, programs, this.#options)
    const { network, snapshotter, configChanged } = files
    if (network.awaited !== undefined) this.#tellAwaited(network.subnets, network.awaited)
    const adopted = await adoptContainerd(this.#home, { configChanged, isKept: newer !== undefined })
    if (adopted === undefined) await removeTornCniResults(places.networkName)
    const process = adopted ?? (await startContainerd(this.#home, programs.containerdPath, signal))
    const importTarget: ImageImportTarget = {
      ctrPath: programs.ctrPath,
      socketPath: places.socketPath,
      version: programs.version,
      rootDir: places.rootDir,
      snapshotter,
      hasVerifiers: this.#options.imageVerifiers !== undefined,
    }
    await recordVersion(places, programs.version)
    await this.images.prepare(importTarget)
    await openFirewall(places, network.subnets, this.#options.logger)
    const running: RunningContainerd = {
      pid: process.pid,
      version: programs.version,
      socketPath: places.socketPath,
      adopted: adopted !== undefined,
      podCidrs: network.subnets,
      importTarget,
    }
    this.#options.logger.info(
      { id: String(running.pid), reason: running.version.text },
      running.adopted ? 'adopted the running containerd' : 'started containerd',
    )
    this.#state.set({ kind: 'running', running })
    // Its problem is shown; each pull meets it again.
    await this.checkVerifiers().catch(() => undefined)
    return running
  }

  /**
   * To be called every few seconds while containerd does not answer. Kills one that hangs, but none of its containers;
   * `supervise` starts the next one. One that works, or waits for a processor, is given time: the next one would have no
   * more of either.
   */
  noteSilence(silentMs: number): void {
    const pid = this.#pidOfRunning()
    const itsSilentMs = this.#silent.note(silentMs, pid)
    if (itsSilentMs === undefined) return
    const found = findContainerd(this.places)
    if (found === undefined || found.pid !== pid) return
    this.#options.logger.warn({ id: String(found.pid) }, 'containerd does not answer, killing it')
    const seconds = Math.round(itsSilentMs / 1000)
    this.#tell(
      'ContainerdFrozen',
      `containerd has not answered for ${seconds} s: podd kills it and starts another`,
    )
    signalProcess(found, 'SIGKILL')
  }

  /** Starts containerd again whenever it died or failed to start, with backoff, until aborted. Never throws. */
  async supervise(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options
    let retryMs = firstRetryMs
    let reported = ''
    const pause = async (message: string): Promise<void> => {
      this.#state.set({ kind: 'down', message, retryAtMs: clock.wallMs() + retryMs })
      await sleepUnlessAborted(clock, retryMs, signal)
      retryMs = Math.min(retryMs * 2, longestRetryMs)
    }
    while (!signal.aborted) {
      const { running } = this.#state
      if (running !== undefined) {
        const since = clock.monotonicMs()
        const watched = {
          pid: running.pid,
          programPath: this.#program.path,
          onProgramReplaced: () => this.#lookAtProgram(),
          onSocketLost: (how: 'removed' | 'replaced') => this.#restartWithoutSocket(how),
        }
        await watchContainerd(this.#home, watched, signal)
        if (signal.aborted) return
        const wasAsked = this.#isRestarting
        this.#isRestarting = false
        if (!wasAsked) {
          logger.warn({}, 'containerd exited, restarting it')
          this.#tell('ContainerdExited', 'containerd exited: podd starts it again; running containers run on')
        }
        if (wasAsked || clock.monotonicMs() - since > stableMs) retryMs = firstRetryMs
        else await pause('containerd exited')
        if (signal.aborted) return
      }
      this.#isStarting = true
      try {
        await this.start(signal)
        reported = ''
      } catch (error) {
        if (signal.aborted) return
        const message = errorMessage(error)
        if (message !== reported) logger.error({ err: error }, 'containerd does not start, retrying')
        reported = message
        await pause(message)
      } finally {
        this.#isStarting = false
      }
    }
  }

  /**
   * Ends the running containerd, by SIGTERM or SIGKILL, also a frozen one; `supervise` starts the next one at once.
   * Containers keep running. Does nothing where none runs.
   *
   * @throws EmbeddedContainerdError where it does not end, or must keep running
   */
  async restart(reason: string): Promise<void> {
    const containerd = findContainerd(this.places)
    if (containerd === undefined) return
    if (this.#program.problem !== undefined)
      throw new EmbeddedContainerdError(`containerd must not be restarted (${reason}): no other would start`)
    this.#options.logger.warn({ id: String(containerd.pid), reason }, 'restarting containerd')
    this.#tellRestart(reason)
    this.#isRestarting = true
    try {
      await endContainerd(containerd, this.#home)
    } catch (error) {
      this.#isRestarting = false
      throw error
    }
  }

  /** Collectors of what containerd leaked of pods that are gone; they find nothing while it does not run. */
  orphanCollectors(records: RuntimeRecords): readonly OrphanCollector[] {
    const { clock, known } = this.#options
    const tools = () => {
      const { running } = this.#state
      if (running === undefined) return undefined
      const { importTarget, podCidrs } = running
      return { ctrPath: importTarget.ctrPath, snapshotter: importTarget.snapshotter, podCidrs }
    }
    const inventory = new ContainerdInventory(this.places, tools, known, records)
    // In the order in which they are removed.
    return [
      shimOrphans(inventory, clock),
      taskOrphans(inventory),
      containerOrphans(inventory),
      snapshotOrphans(inventory),
      leaseOrphans(inventory),
      namespaceOrphans(inventory),
      interfaceOrphans(inventory),
      addressOrphans(inventory),
      cniResultOrphans(inventory),
      firewallOrphans(inventory),
    ]
  }

  /** Undefined while one starts, which has the patience of `start`. systemd may have started another in its place. */
  #pidOfRunning(): number | undefined {
    const { running } = this.#state
    if (running === undefined || this.#isStarting) return undefined
    return isStillContainerd(running.pid, this.places) ? running.pid : findContainerd(this.places)?.pid
  }

  #tellRestart(reason: string): void {
    this.#tell('ContainerdRestarted', `podd restarts containerd: ${reason}; running containers run on`)
  }

  #tell(reason: string, message: string): void {
    this.#options.events?.recordNode({ type: 'Warning', reason, message })
  }

  /** The program has been replaced. */
  async #lookAtProgram(): Promise<void> {
    try {
      if (this.#state.running !== undefined) await this.#program.findNewer(await findPrograms(this.#options))
    } catch (error) {
      // An upgrade may be in progress.
      this.#options.logger.debug({ err: error }, 'cannot look at the installed containerd')
    }
  }

  #tellAwaited(subnets: readonly string[], awaited: readonly string[]): void {
    this.#options.logger.warn(
      { reason: `${awaited.join(',')} is pending, ${subnets.join(',')} is kept` },
      'pods use the old pod network: the new podCIDR takes effect when podd starts without pods on it, after a reboot at the latest',
    )
  }

  async #restartWithoutSocket(how: 'removed' | 'replaced'): Promise<void> {
    try {
      if (this.#state.running !== undefined) await this.restart(`its socket has been ${how}`)
    } catch (error) {
      this.#options.logger.error({ err: error }, 'cannot restart containerd')
    }
  }
}

/** The containerd that `start` adopted or started. */
export interface RunningContainerd {
  readonly pid: number
  readonly version: ContainerdVersion
  readonly socketPath: string
  /** It was adopted: it ran before podd started. */
  readonly adopted: boolean
  /** The subnets that pods get their addresses from. */
  readonly podCidrs: readonly string[]
  readonly importTarget: ImageImportTarget
}

type ContainerdState =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'running'; readonly running: RunningContainerd }
  /** It exited, or does not start; the next attempt is at `retryAtMs` (wall time). */
  | { readonly kind: 'down'; readonly message: string; readonly retryAtMs: number }

/** How long a call waits for a containerd that is still starting. */
const startPatienceMs = 30_000

/** The state of the embedded containerd, and the listeners for its changes. */
class ContainerdStateStore {
  readonly #clock: Clock
  readonly #listeners = new Set<(state: ContainerdState) => void>()
  #state: ContainerdState = { kind: 'stopped' }

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get current(): ContainerdState {
    return this.#state
  }

  get running(): RunningContainerd | undefined {
    return this.#state.kind === 'running' ? this.#state.running : undefined
  }

  set(state: ContainerdState): void {
    this.#state = state
    for (const listener of this.#listeners) listener(state)
  }

  onChange(listener: (state: ContainerdState) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Throws PoddError where containerd is down, or has not started within half a minute. */
  async whenRunning(): Promise<RunningContainerd> {
    if (this.#state.kind === 'stopped') {
      const changed = new AbortController()
      const stop = this.onChange(() => changed.abort())
      await sleepUnlessAborted(this.#clock, startPatienceMs, changed.signal)
      stop()
    }
    const state = this.#state
    if (state.kind === 'running') return state.running
    const reason = state.kind === 'down' ? state.message : 'it is still starting'
    throw new PoddError('RUNTIME_UNAVAILABLE', `containerd is not ready: ${reason}`, {
      hint: 'Try again when it runs; `podd get pods` and `podd doctor` say what is wrong with it.',
    })
  }
}
