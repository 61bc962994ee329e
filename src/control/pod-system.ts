import type { AppliedObjectEntry, AppliedPodEntry, AppliedReply } from '../api/sources.ts'
import { readClocks, sleepUnlessAborted } from '../base/clock.ts'
import { PoddError } from '../base/errors.ts'
import { canonicalJson } from '../base/json.ts'
import type { JsonObject } from '../base/json.ts'
import { newUuid } from '../base/random.ts'
import { goesAwayAfter } from '../decide/plan/ending.ts'
import type { HealthFacts } from '../decide/node/judge-health.ts'
import { newPodRecord } from '../decide/sources/new-pod-record.ts'
import type { PodDocument, Problem, SourceSnapshot } from '../pod/objects/document.ts'
import { keyOfObject } from '../pod/objects/local-object.ts'
import { computeQosClass } from '../pod/schema/pod-resources.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import type { AskedEnd } from '../pod/state/pod-record.ts'
import type { PodStatus } from '../pod/state/status.ts'
import type { PodCounts } from '../pod/state/usage.ts'
import { digestText } from '../pod/values/hash.ts'
import { podKey } from '../pod/values/ids.ts'
import type { PodKey, PodUid, SourceName } from '../pod/values/ids.ts'
import type { EndedByDown } from '../store/pod-records.ts'
import { endPods } from './desired/end-pods.ts'
import type { UpdateGate } from './desired/update-gate.ts'
import type { Workloads } from './desired/workloads.ts'
import type { PresentImage, PullRequest } from './images/image-request.ts'
import { createLoops, Reconciler } from './loops.ts'
import type { Loops, SystemEnv } from './loops.ts'
import type { NodeWork } from './node/node-work.ts'
import { toPodObject } from './pod/display.ts'
import type { ProbeReport } from './pod/prober-worker.ts'
import type { PodWorker } from './pod/worker.ts'
import type { ObjectStore } from './serving/object-store.ts'
import type { StatusStore } from './serving/status-store.ts'

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
  readonly #env: SystemEnv
  readonly #loops: Loops
  readonly node: NodeWork

  constructor(env: SystemEnv) {
    this.#env = env
    this.objects = env.objects
    this.#loops = createLoops(env)
    this.statuses = this.#loops.statuses
    this.node = this.#loops.node
  }

  /** Whether there is a record of the pod, readable or not, or the runtime has something of it; true while that is unknown. */
  knowsPod(uid: PodUid): boolean {
    const { state, workers, observer } = this.#loops
    return !state.isListed || workers.isRecorded(uid) || observer.pods().has(uid)
  }

  /** Documents that are not followed, and why; warnings too. */
  problems(): readonly Problem[] {
    const { snapshots, gate, desired, services } = this.#loops
    const { objects, archives } = this.#env
    return [snapshots, gate, objects, desired, services, archives].flatMap((each) => each.problems())
  }

  /** Why the runtime can't be used for now. */
  get runtimeProblem(): string | undefined {
    return this.#loops.knowledge.runtimeProblem
  }

  /** Why the runtime can't make pods with a network of their own, and what to do; undefined where it can. */
  get networkProblem(): string | undefined {
    return this.#loops.knowledge.networkProblem
  }

  /** Of pods and containers since podd started. */
  counts(): PodCounts {
    return this.#loops.counters.counts()
  }

  get healthFacts(): HealthFacts {
    const { clock, settings } = this.#env
    return {
      nowMs: clock.monotonicMs(),
      eventWaitsSinceMs: this.#loops.loop.waitsSinceMs,
      relistPeriodMs: settings.syncFrequencyMs,
      listedAtMs: this.#loops.observer.listedAtMs,
      blocked: this.node.jobs.blocked,
      isRuntimeDown: this.#loops.knowledge.runtimeProblem !== undefined,
      isNetworkDown: this.#loops.knowledge.networkProblem !== undefined,
    }
  }

  snapshots(): readonly SourceSnapshot[] {
    return this.#loops.snapshots.all()
  }

  /** The revisions of what sources give, and which of them count. */
  get gate(): UpdateGate {
    return this.#loops.gate
  }

  /** The pod's worker; also undefined while it is not known what runs of the pod. */
  findPod(uid: PodUid): PodWorker | undefined {
    return this.#loops.state.isListed ? this.#loops.workers.get(uid) : undefined
  }

  probes(uid: PodUid): readonly ProbeReport[] {
    return this.#loops.prober.reports(uid)
  }

  applied(): Pick<AppliedReply, 'pods' | 'objects'> {
    return {
      pods: listAppliedPods(this.#loops.workers.all(), (key) => this.#loops.desired.updateProblem(key)),
      objects: listAppliedObjects(this.objects, this.#loops.workloads),
    }
  }

  /** The pods that are not removed yet, with their manifests. */
  allPods(): readonly Pod[] {
    return [...this.#loops.awaited.pods(), ...[...this.#loops.workers.all()].map(({ state }) => state.pod)]
  }

  /** The pods that hold resources, as they were admitted. */
  *livePods(): Generator<readonly [PodUid, Pod], void> {
    for (const { ref, state } of this.#loops.workers.all())
      if (state.holdsResources) yield [ref.uid, state.allocatedPod]
  }

  /** Resolves when the pods of an earlier podd are among the statuses, after some seconds at the latest. */
  get whenShown(): Promise<void> {
    return this.#loops.awaited.allShown
  }

  /** Resolves when the runtime was listed for the first time; never where it isn't. */
  get whenListed(): Promise<void> {
    return this.#loops.state.whenListed
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
    const { clock, host } = this.#env
    const uid = document.kept?.uid ?? newUuid()
    const nowMs = document.kept?.createdAtMs ?? clock.wallMs()
    const record = newPodRecord({ uid, document, source, nowMs, createdAtMs: undefined })
    const qosClass = computeQosClass(document.pod.spec)
    const status = last ?? ({ phase: 'Pending', conditions: [], qosClass } as const)
    const object = toPodObject(document.pod, record, {
      status,
      nodeName: host.hostName,
      clock: readClocks(clock),
    })
    this.statuses.publishProvisional(uid, object)
  }

  /**
   * Ends a pod for good: its source gives it no more, or its workload makes another one in its place. False where it is not
   * known yet what runs of it.
   */
  endPod(uid: PodUid, graceSeconds: number, asked: AskedEnd): boolean {
    const { workers, loop } = this.#loops
    const worker = workers.get(uid)
    if (worker === undefined) return false
    worker.end({
      cause: 'removed',
      reason: 'Killing',
      message: 'The pod was deleted over the API',
      graceSeconds,
      asked,
    })
    const { owner, source } = worker.state.record
    if (owner !== undefined) loop.post({ kind: 'update', source })
    return true
  }

  /** Adds ephemeral containers to a pod, which go with it. Throws PoddError POD_GONE or RECORD_WRITE. */
  async addDebuggers(uid: PodUid, added: readonly JsonObject[]): Promise<void> {
    const worker = this.findPod(uid)
    if (worker === undefined) throw new PoddError('POD_GONE', 'the pod was removed in the meantime')
    await worker.addDebuggers(added)
  }

  /** Ends a pod that terminates within this time, if it had longer. Whether it terminates. */
  shortenGrace(uid: PodUid, graceSeconds: number): boolean {
    const worker = this.#loops.workers.get(uid)
    const { ending } = worker?.state.record ?? {}
    if (worker === undefined || ending === undefined || !goesAwayAfter(ending)) return false
    worker.end({ ...ending, graceSeconds })
    return true
  }

  /** Pulls an image for no pod, with the node's credentials. Throws the runtime's error, or the signal's reason. */
  pullImage(request: PullRequest): Promise<PresentImage> {
    return this.#loops.images.pull(request)
  }

  /** These images (complete names) are there now: pods that lacked one of them try again at once. */
  reviewImages(names: readonly string[]): void {
    const present = new Set(names)
    for (const worker of this.#loops.workers.all()) worker.reviewImages(present)
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
    const { host, clock, logger, archives } = this.#env
    const { observer, watch, loop, knowledge, state, awaited } = this.#loops
    const { records, unreadable } = await this.#env.records.load()
    this.#loops.desired.noteEndedByDown(await this.#env.records.loadEndedByDown())
    try {
      this.#loops.snapshots.takeClaimOwners(await host.volumes.listClaimOwners())
    } catch (error) {
      logger.error({ err: error }, 'cannot read which source owns the data of claims')
    }
    await this.#loops.gate.begin()
    await this.#loops.desired.adopt(records, unreadable)
    const following = host.followResolver(() => this.node.followHost(), signal)
    awaited.begin()
    const late = clock.startTimer(slowListMs, () =>
      awaited.hurry(state.isListed ? undefined : knowledge.runtimeProblem),
    )
    const observing = opened.then(() =>
      signal.aborted ? undefined : Promise.all([observer.run(signal), watch.run(signal)]),
    )
    const importing = archives.run(signal)
    const handling = loop.run(new Reconciler(this.#env, this.#loops), signal)
    await Promise.all([following, importing, this.node.jobs.run(signal), handling, observing])
    late.cancel()
    await this.#saveEndedByDown()
    this.#loops.gate.stop()
    this.#loops.workloads.stop()
    this.#loops.services.stop()
    this.#loops.prober.stop()
    knowledge.stop()
    const stopped = this.#loops.desired.stop()
    const done = new AbortController()
    await Promise.race([stopped, sleepUnlessAborted(clock, stopMs, done.signal)])
    done.abort()
  }

  /** The list is for the next start: those that have started since are in their records. */
  async #saveEndedByDown(): Promise<void> {
    const { desired, state, snapshots } = this.#loops
    if (!state.isListed || !snapshots.areReady) return
    const left = desired.reviewEndedByDown((source) => snapshots.isSilent(source))
    await this.#writeEndedByDown(left)
  }

  /** Their records go with them: the next podd takes from this who ran. */
  async #noteRunning(): Promise<void> {
    const earlier = await this.#env.records.loadEndedByDown()
    const running = [...this.#loops.workers.all()].flatMap(({ state: { record, hasEnded } }) => {
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
      await this.#env.records.saveEndedByDown(pods)
    } catch (error) {
      this.#env.logger.warn({ err: error }, 'cannot record which pods ran')
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
    const { clock } = this.#env
    const { changes, knowledge, state, workers, desired } = this.#loops
    const { graceSeconds, removesEnded = false, signal } = options
    const isListed = await changes.until(() => state.isListed, clock, firstListMs, signal)
    if (!isListed)
      throw new PoddError(
        'RUNTIME_UNAVAILABLE',
        knowledge.runtimeProblem ?? 'cannot list the containers of the runtime',
      )
    desired.endUnrecorded()
    await this.#noteRunning()
    const watch = { changes, clock, runtimeProblem: () => knowledge.runtimeProblem }
    return endPods([...workers.all()], graceSeconds, removesEnded, watch, signal)
  }
}

/** The manifests that the pods currently run by; of a pod that is being replaced, the old one until it is gone. */
function listAppliedPods(
  workers: Iterable<PodWorker>,
  problemOf: (key: PodKey) => string | undefined,
): readonly AppliedPodEntry[] {
  return [...workers]
    .filter(({ state }) => state.stage !== 'stopped' && state.stage !== 'gone')
    .map(({ ref, state }) => ({
      key: podKey(ref),
      problem: problemOf(podKey(ref)),
      path: state.record.path,
      source: state.record.source,
      owner: state.record.owner,
      manifest: state.record.manifest,
      isPastChange: state.isPastChange,
      isUpToDate: state.pod.spec.containers.every(({ name, image }) => {
        const newest = state.observed.containers.find((container) => container.name === name)
        return newest === undefined || newest.image === image
      }),
    }))
}

/** The objects that pods refer to, by a hash of their manifests: they may be secret. */
function listAppliedObjects(
  objects: Pick<ObjectStore, 'documents'>,
  workloads: Pick<Workloads, 'endOf'>,
): readonly AppliedObjectEntry[] {
  return objects.documents().map(({ document, source }) => {
    const { object, manifest, place, owner } = document
    const end = workloads.endOf(source, document)
    return {
      key: keyOfObject(object),
      path: place.path,
      source,
      owner,
      hash: digestText(canonicalJson(manifest)),
      end: end && { type: end.type, reason: end.reason, message: end.message },
    }
  })
}
