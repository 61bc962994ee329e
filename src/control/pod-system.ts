import { pollUntil, sleepUnlessAborted } from '../base/clock.ts'
import type { AppliedReply } from '../api/sources.ts'
import { PoddError } from '../base/errors.ts'
import { newUuid } from '../base/random.ts'
import type { HealthFacts } from '../decide/node/judge-health.ts'
import { newPodRecord } from '../decide/sources/new-pod-record.ts'
import type { PodDocument, Problem, SourceName, SourceSnapshot } from '../pod/objects/document.ts'
import type { PodStatus } from '../pod/state/status.ts'
import type { PodKey, PodUid } from '../pod/values/ids.ts'
import { podKey } from '../pod/values/ids.ts'
import type { EndedByDown } from '../store/pod-records.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import { computeQosClass } from '../pod/schema/pod-resources.ts'
import { endPods } from './desired/end-pods.ts'
import type { PresentImage, PullRequest } from './images/image-request.ts'
import type { ObjectStore } from './objects/object-store.ts'
import type { Eviction, PodWorker } from './worker/pod-worker.ts'
import type { ProbeReport } from './probing/prober-worker.ts'
import { toPodObject } from './worker/pod-display.ts'
import type { StatusStore } from './status/status-store.ts'
import { listAppliedObjects, listAppliedPods } from './serving/list-applied.ts'
import type { NodeWork } from './node/node-work.ts'
import type { PodSystemOptions } from './pod-system-options.ts'
import { createLoops } from './create-loops.ts'
import type { Loops } from './create-loops.ts'

/** How long the runtime may take to answer the first question: as long as a call may take. */
const firstListMs = 120_000
/** After how long the pods of an earlier podd are shown although the runtime was not listed yet. */
const slowListMs = 5000
/** How long the pods' workers may take to stop when podd stops. */
const stopMs = 3000

/** The control loops, as the rest of podd uses them: started, asked and stopped. Knows no sockets, no watched files and no flags. */
export class PodSystem {
  readonly statuses: StatusStore
  readonly objects: ObjectStore
  readonly #options: PodSystemOptions
  readonly #loops: Loops
  /** The work about the host as a whole. */
  readonly node: NodeWork

  constructor(options: PodSystemOptions) {
    this.#options = options
    this.objects = options.objects
    this.#loops = createLoops(options)
    this.statuses = this.#loops.statuses
    this.node = this.#loops.node
  }

  /** Whether there is a record of the pod, readable or not, or the runtime has something of it; true while that is unknown. */
  knowsPod(uid: PodUid): boolean {
    return (
      !this.#loops.reconciler.listed ||
      this.#loops.desired.workers.isRecorded(uid) ||
      this.#loops.observer.pods().has(uid)
    )
  }

  /**
   * Terminates a pod for the sake of the node: it fails with this reason and message, and its status stays. False where
   * there is no such pod, or it has ended or is ending already.
   */
  evict(uid: PodUid, eviction: Eviction): boolean {
    return this.findPod(uid)?.evict(eviction) ?? false
  }

  /** Documents that are not followed, and why; warnings too. */
  problems(): readonly Problem[] {
    const archives = this.#options.archives?.problems() ?? []
    return [
      ...this.#loops.snapshots.problems(),
      ...this.objects.problems(),
      ...this.#loops.desired.problems(),
      ...archives,
    ]
  }

  /** Why the runtime can't be used for now. */
  get runtimeProblem(): string | undefined {
    return this.#loops.reconciler.runtimeProblem
  }

  /** Why the runtime can't make pods with a network of their own, and what to do; undefined where it can. */
  get networkProblem(): string | undefined {
    return this.#loops.knowledge.networkProblem
  }

  /** What podd knows of its own work. */
  get healthFacts(): HealthFacts {
    const { clock, settings } = this.#options
    return {
      nowMs: clock.monotonicMs(),
      eventWaitsSinceMs: this.#loops.loop.waitsSinceMs,
      relistPeriodMs: settings.syncFrequencyMs,
      listedAtMs: this.#loops.observer.listedAtMs,
      blocked: this.node.jobs.blocked,
      isRuntimeDown: this.#loops.reconciler.runtimeProblem !== undefined,
      isNetworkDown: this.#loops.knowledge.networkProblem !== undefined,
    }
  }

  /** What the sources gave last. */
  snapshots(): readonly SourceSnapshot[] {
    return this.#loops.snapshots.all()
  }

  /** The pod's worker; also undefined while it is not known what runs of the pod. */
  findPod(uid: PodUid): PodWorker | undefined {
    return this.#loops.reconciler.listed ? this.#loops.desired.workers.get(uid) : undefined
  }

  /** The results of a pod's probes. */
  probes(uid: PodUid): readonly ProbeReport[] {
    return this.#loops.prober.reports(uid)
  }

  /** What pods run by, and the objects that they refer to. */
  applied(): Pick<AppliedReply, 'pods' | 'objects'> {
    return {
      pods: listAppliedPods(this.#loops.desired.workers.all()),
      objects: listAppliedObjects(this.objects),
    }
  }

  /** The pods that are not removed yet, with their manifests. */
  allPods(): readonly Pod[] {
    return [
      ...this.#loops.awaited.pods(),
      ...[...this.#loops.desired.workers.all()].map(({ state }) => state.pod),
    ]
  }

  /** The pods that hold resources, as they were admitted. */
  *livePods(): Generator<readonly [PodUid, Pod], void> {
    for (const { ref, state } of this.#loops.desired.workers.all())
      if (state.holdsResources) yield [ref.uid, state.allocatedPod]
  }

  /** Resolves when the pods of an earlier podd are among the statuses, after some seconds at the latest. */
  get whenShown(): Promise<void> {
    return this.#loops.awaited.allShown
  }

  /** Resolves when the runtime was listed for the first time; never where it isn't. */
  get whenListed(): Promise<void> {
    return this.#loops.reconciler.whenListed
  }

  offerSnapshot(snapshot: SourceSnapshot): void {
    this.#loops.loop.post({ kind: 'snapshot', snapshot })
  }

  /** Resolves when the loop has taken the snapshot, or has ended. */
  takeSnapshot(snapshot: SourceSnapshot): Promise<void> {
    return new Promise((resolve) => this.#loops.loop.post({ kind: 'snapshot', snapshot, onTaken: resolve }))
  }

  /**
   * Shows a pod that a source is about to give, until its worker says how it is.
   * @param last how it was when it ended, of one that no source gives any more
   */
  showNew(document: PodDocument, source: SourceName, last?: PodStatus): void {
    const { clock, host } = this.#options
    const uid = document.kept?.uid ?? newUuid()
    const nowMs = document.kept?.createdAtMs ?? clock.wallMs()
    const record = newPodRecord({ uid, document, source, nowMs, createdAtMs: undefined })
    const qosClass = computeQosClass(document.pod.spec)
    const status = last ?? ({ phase: 'Pending', conditions: [], qosClass } as const)
    const object = toPodObject(document.pod, record, { status, nodeName: host.hostName })
    this.statuses.publishProvisional(uid, object)
  }

  /** Ends a pod for good; its source gives it no more. */
  endPod(uid: PodUid, graceSeconds: number): void {
    const worker = this.#loops.desired.workers.get(uid)
    if (worker === undefined) this.statuses.removeProvisional(uid)
    else
      worker.end({
        cause: 'removed',
        reason: 'Killing',
        message: 'The pod was deleted over the API',
        graceSeconds,
      })
  }

  /** Pulls an image for no pod, with the node's credentials. Throws the runtime's error, or the signal's reason. */
  pullImage(request: PullRequest): Promise<PresentImage> {
    return this.#loops.images.pull(request)
  }

  /** These images (complete names) are there now: pods that lacked one of them try again at once. */
  reviewImages(names: readonly string[]): void {
    const present = new Set(names)
    for (const worker of this.#loops.desired.workers.all()) worker.reviewImages(present)
  }

  /** The runtime became unavailable or available, as another part found; undefined: check. */
  reportRuntime(problem: string | undefined): void {
    if (problem === undefined) this.#loops.observer.requestRelist()
    else this.#loops.observer.reportGone(problem)
  }

  /**
   * Runs until the signal is aborted, then stops the loops; the pods keep running.
   * @param opened resolves when it makes sense to ask the runtime; pods are shown before
   */
  async run(signal: AbortSignal, opened: Promise<unknown> = Promise.resolve()): Promise<void> {
    const { host, clock } = this.#options
    const { records, unreadable } = await this.#options.records.load()
    this.#loops.desired.noteEndedByDown(await this.#options.records.loadEndedByDown())
    await this.#loops.snapshots.loadClaimOwners()
    await this.#loops.desired.adopt(records, unreadable)
    const following = host.followResolver?.(() => this.node.followHost(), signal)
    this.#loops.awaited.begin()
    const late = clock.startTimer(slowListMs, () =>
      this.#loops.awaited.hurry(
        this.#loops.reconciler.listed ? undefined : this.#loops.reconciler.runtimeProblem,
      ),
    )
    const observing = opened.then(() =>
      signal.aborted
        ? undefined
        : Promise.all([this.#loops.observer.run(signal), this.#loops.watch.run(signal)]),
    )
    const importing = this.#options.archives?.run(signal)
    await Promise.all([
      following,
      importing,
      this.node.jobs.run(signal),
      this.#loops.loop.run(signal),
      observing,
    ])
    late.cancel()
    await this.#saveEndedByDown()
    this.#loops.prober.stop()
    this.#loops.knowledge.stop()
    const stopped = this.#loops.desired.stop()
    const done = new AbortController()
    await Promise.race([stopped, sleepUnlessAborted(clock, stopMs, done.signal)])
    done.abort()
  }

  /** The list is for the next start: those that have started since are in their records. */
  async #saveEndedByDown(): Promise<void> {
    const { desired, reconciler, snapshots } = this.#loops
    if (!reconciler.knowsAllPods) return
    const left = desired.reviewEndedByDown((source) => snapshots.isSilent(source))
    await this.#writeEndedByDown(left)
  }

  /** Their records go with them: the next podd takes from this who ran. */
  async #noteRunning(): Promise<void> {
    const earlier = await this.#options.records.loadEndedByDown()
    const running = [...this.#loops.desired.workers.all()].flatMap(({ state: { record, hasEnded } }) => {
      const { startedAtMs, ending, failed, namespace, name, source, path, manifest } = record
      const ran = failed === undefined ? !hasEnded : failed.until === 'shutdown-ends'
      const isListed = ran && startedAtMs !== undefined && ending === undefined
      return isListed ? [{ namespace, name, source, path, manifest }] : []
    })
    const keys = new Set(running.map((pod) => podKey(pod)))
    await this.#writeEndedByDown([...running, ...earlier.filter((pod) => !keys.has(podKey(pod)))])
  }

  async #writeEndedByDown(pods: readonly EndedByDown[]): Promise<void> {
    try {
      await this.#options.records.saveEndedByDown(pods)
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'cannot record which pods ran')
    }
  }

  /**
   * Terminates every pod; resolves when all are removed. For `podd down`: `run` continues meanwhile.
   * @param options.removesEnded whether pods of the API that have ended for good are removed too
   */
  async endAll(options: {
    readonly graceSeconds: number | undefined
    readonly removesEnded?: boolean
    readonly signal: AbortSignal
  }): Promise<{ readonly ended: number; readonly stuck: readonly PodKey[] }> {
    const { clock } = this.#options
    const isListed = await pollUntil(clock, () => this.#loops.reconciler.listed, {
      periodMs: 20,
      timeoutMs: firstListMs,
      signal: options.signal,
    })
    if (!isListed)
      throw new PoddError(
        'RUNTIME_UNAVAILABLE',
        this.#loops.reconciler.runtimeProblem ?? 'cannot list the containers of the runtime',
      )
    this.#loops.desired.workers.endUnrecorded()
    await this.#noteRunning()
    const { graceSeconds, removesEnded = false, signal } = options
    const runtimeProblem = (): string | undefined => this.#loops.reconciler.runtimeProblem
    return endPods([...this.#loops.desired.workers.all()], {
      graceSeconds,
      removesEnded,
      clock,
      runtimeProblem,
      signal,
    })
  }
}
