import type { WorkloadObject } from '../../api/cluster-objects.ts'
import { PacedWork, readClocks } from '../../base/clock.ts'
import type { Clock, ClockReading, Timer } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { sameData } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { ImageUse } from '../../decide/node/plan-image-garbage.ts'
import { clockStep, moveTime, showTime } from '../../decide/plan/clock-set.ts'
import type { ClockStep } from '../../decide/plan/clock-set.ts'
import {
  expandReplicas,
  isReplicaDocument,
  podOf,
  renamed,
  soonest,
  WorkloadTargets,
} from '../../decide/workloads/replica-pods.ts'
import type { Expansion, WorkloadPod } from '../../decide/workloads/replica-pods.ts'
import type { JobEnd, JobPod } from '../../decide/workloads/run-job.ts'
import { showWorkload } from '../../decide/workloads/workload-status.ts'
import { keyOfOwner } from '../../pod/objects/document.ts'
import type { ObjectDocument, PodDocument, Problem, SourceSnapshot } from '../../pod/objects/document.ts'
import { keyOfObject } from '../../pod/objects/local-object.ts'
import type { LocalObject } from '../../pod/objects/local-object.ts'
import { isBatchKind, isWorkloadKind } from '../../pod/objects/workload-kinds.ts'
import type { WorkloadKind } from '../../pod/objects/workload-kinds.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import { podFromManifest } from '../../pod/schema/default-pod.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey, SourceName } from '../../pod/values/ids.ts'
import type { SmallFile, StateReport } from '../../store/state-report.ts'
import { listPodImages } from '../images/image-uses.ts'
import type { PodWorker } from '../pod/worker.ts'
import { ownerReference, toObjectMeta } from '../../translate/volume-files.ts'
import type { StatusStore } from '../serving/status-store.ts'
import type { ShownResources } from '../serving/resource-store.ts'
import type { BatchJobs, BatchStep } from './batch-jobs.ts'
import type { PodWorkers } from './pod-workers.ts'
import { isLeaving } from './source-snapshots.ts'

/** What pods are made by, and who is told of changes. */
interface WorkloadEnv {
  readonly clock: Clock
  readonly logger: Logger
  readonly statuses: Pick<StatusStore, 'find' | 'subscribe'>
  readonly workers: PodWorkers
  /** What the names of pods are given in addition. */
  readonly podNameSuffix: string
  /** How long a replaced pod has to be Ready before the next one is replaced, where its workload doesn't say. */
  readonly proofMs: number
  /** Whether it is known what runs. */
  readonly isRuntimeKnown: () => boolean
  readonly events: EventRecorder
  /** Where it is kept what Jobs have done. */
  readonly batch: { readonly file: SmallFile; readonly report: StateReport }
  /** What the API shows of them. */
  readonly shown: Pick<ShownResources, 'deployments' | 'statefulsets' | 'daemonsets' | 'jobs' | 'cronjobs'>
  /** Why this document failed in the revision in effect that has it; undefined where it did not. */
  readonly failureOf: (source: SourceName, document: ObjectDocument) => string | undefined
  /** Workloads of this source are to have other pods than before. */
  readonly onChange: (source: SourceName) => void
}

interface Workloaded {
  readonly documents: readonly ObjectDocument[]
  /** There are Jobs or CronJobs among them. */
  readonly hasBatch: boolean
  /** They are all that the source gives. */
  readonly isComplete: boolean
}

/** The workloads of a source, and what they were to have when that was last decided. */
interface SourceWorkloads extends Workloaded {
  readonly pods: readonly PodDocument[]
  /** The last of each name. */
  readonly byKey: ReadonlyMap<PodKey, PodDocument>
  readonly broken: Broken
  wakeAtMs: number | undefined
}

/** Workloads for which it can't be decided what they are to have, and what was thrown. */
type Broken = ReadonlyMap<ObjectDocument, unknown>

/** What workloads are to have: nothing follows from that of Jobs before it is recorded. */
interface Decision {
  readonly replicas: readonly Expansion[]
  readonly batch: BatchStep | undefined
  readonly broken: Broken
}

/**
 * Makes pods from workloads, between what the sources give and the desired pods. What a workload is to have depends on how
 * its pods do: it is decided again with each of their changes, and where time alone makes a difference.
 */
export class Workloads {
  readonly #env: WorkloadEnv
  /** By which what is shown stands. */
  #clocks: ClockReading
  readonly #targets = new WorkloadTargets()
  readonly #sources = new Map<SourceName, SourceWorkloads>()
  /** Undefined where there never was a Job. */
  #batch: BatchJobs | undefined
  /** It was logged that what Jobs have done can't be read. */
  #isUnread = false
  #recorded: Promise<boolean> | undefined
  /** When the time since which a pod is Ready was first seen to lie in the future. */
  readonly #seenAhead = new WeakMap<PodWorker, { readonly statedMs: number; readonly atMs: number }>()
  /** Those that can't be shown: that was logged. */
  #unshown: ReadonlySet<string> = new Set()
  readonly #due = new Set<SourceName>()
  readonly #reviews: PacedWork
  #timer: Timer | undefined
  #unsubscribe: (() => void) | undefined

  constructor(env: WorkloadEnv) {
    this.#env = env
    this.#clocks = readClocks(this.#env.clock)
    this.#reviews = new PacedWork(env.clock, () => this.#tryToReview())
  }

  stop(): void {
    this.#reviews.stop()
    this.#timer?.cancel()
    this.#unsubscribe?.()
  }

  /** A snapshot with the pods and claims of its workloads. */
  async expand(snapshot: SourceSnapshot): Promise<SourceSnapshot> {
    const { source } = snapshot
    const documents = snapshot.objects.filter(({ object }) => isWorkloadKind(object.kind))
    const hasBatch = documents.some(({ object }) => isBatchKind(object.kind))
    const known = this.#sources.get(source)
    const wasBatch = known?.hasBatch ?? (await this.#hasRecords())
    if (documents.length === 0 && !wasBatch) {
      const hadSome = known !== undefined && known.documents.length > 0
      this.#sources.set(source, nothing)
      if (hadSome) this.#show()
      return snapshot
    }
    const needsBatch = hasBatch || wasBatch
    if (needsBatch) this.#batch ??= await this.#tryToLoadBatch()
    const isUnknown = needsBatch && this.#batch === undefined
    this.#unsubscribe ??= this.#env.statuses.subscribe(({ object }) => this.#note(object.metadata.uid))
    const isComplete =
      snapshot.ready &&
      snapshot.isAnswer !== false &&
      snapshot.standsIn !== 'crashed' &&
      (snapshot.unreadable ?? []).length === 0
    const staysBatch = wasBatch && (!isComplete || isUnknown)
    const workloads = { documents, hasBatch: hasBatch || staysBatch, isComplete }
    const decision = this.#decide(source, { ...workloads, hasBatch: needsBatch })
    const { broken } = decision
    const { pods: wanted, wakeAtMs: dueAtMs } = await this.#commit(source, workloads, decision)
    this.#logBroken(source, broken, known?.broken)
    const isAwaited = isUnknown || broken.size > 0
    const wakeAtMs = soonest(dueAtMs, isAwaited ? this.#env.clock.wallMs() + retryMs : undefined)
    // What didn't change is the same object.
    const pods = wanted.map((document) => {
      const same = known?.byKey.get(podKey(document.pod.metadata))
      return same !== undefined && isSameDocument(same, document) ? same : document
    })
    const byKey = new Map(pods.map((document) => [podKey(document.pod.metadata), document]))
    this.#sources.set(source, { ...workloads, pods, byKey, broken, wakeAtMs })
    this.#show()
    this.#startTimer()
    const claims = documents.flatMap((document) =>
      broken.has(document) ? [] : this.#targets.claimsOf(document),
    )
    // Those that run of them stay as they are.
    const unknown = documents.filter(
      (document) => broken.has(document) || (isUnknown && isBatchKind(document.object.kind)),
    )
    return {
      ...snapshot,
      ...(unknown.length > 0 && {
        unreadable: [...(snapshot.unreadable ?? []), ...unknown.map(({ place }) => place.path)],
      }),
      ...(broken.size > 0 && {
        problems: [
          ...snapshot.problems,
          ...[...broken].map(([document, error]) => toProblem(document, error)),
        ],
      }),
      pods: [...snapshot.pods, ...pods],
      ...(claims.length > 0 && { objects: [...snapshot.objects, ...claims] }),
    }
  }

  /** What Jobs have done is recorded before anything follows from it; where that can't be, they stay as they are. */
  async #commit(
    source: SourceName,
    { documents }: Pick<SourceWorkloads, 'documents'>,
    { replicas, batch, broken }: Decision,
  ): Promise<Expansion> {
    if (batch === undefined || this.#batch === undefined) return joined(replicas)
    try {
      for (const event of await this.#batch.save(batch)) this.#env.events.record(event)
      return joined([...replicas, batch])
    } catch (error) {
      const { clock, logger } = this.#env
      logger.error(
        { reason: source, err: error },
        'cannot record what Jobs have done: none goes on until that is possible',
      )
      return joined([
        ...replicas,
        { pods: this.#batch.keep(source, without(documents, broken)), wakeAtMs: clock.wallMs() + retryMs },
      ])
    }
  }

  /** Whether an earlier podd left a record of what Jobs have done; it is looked for once. */
  #hasRecords(): Promise<boolean> {
    const { file } = this.#env.batch
    this.#recorded ??= file.read().then(
      (text) => text !== undefined,
      // Whoever needs it reads it again, and reports why it can't be.
      () => true,
    )
    return this.#recorded
  }

  /**
   * Loaded here, as few hosts have Jobs. Where what they have done is spoiled, nothing is known of it. Undefined where the
   * disk can't be read now: it is tried again, and until then no Job's pod is started, and those in the files of Jobs stay.
   */
  async #tryToLoadBatch(): Promise<BatchJobs | undefined> {
    const { logger, batch } = this.#env
    const { file, report } = batch
    try {
      const { BatchJobs, readBatchState } = await import('./batch-jobs.ts')
      return new BatchJobs(file, await readBatchState(file, report), readClocks(this.#env.clock))
    } catch (error) {
      const log = { path: file.path, err: error }
      if (!this.#isUnread)
        logger.error(log, 'cannot read what Jobs have done: none goes on until that is possible')
      this.#isUnread = true
      return undefined
    }
  }

  /** Whether a pod of a workload is to be as this document says, but not yet: others come first. */
  awaitsTurn(source: SourceName, { pod: { metadata }, manifest, owner }: PodDocument): boolean {
    if (owner === undefined) return false
    const name = this.#ownName(metadata.name)
    const wanted = this.#sources.get(source)?.byKey.get(podKey({ namespace: metadata.namespace, name }))
    if (wanted === undefined) return true
    return !sameData(wanted.manifest, name === metadata.name ? manifest : renamed(manifest, name))
  }

  /** As its workload calls it. */
  #ownName(name: string): string {
    const { podNameSuffix: suffix } = this.#env
    return suffix !== '' && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name
  }

  /** The images of templates: of CronJobs between their times, of Jobs that wait, of what has no replicas now. */
  imagesToCome(): readonly ImageUse[] {
    return [...this.#sources].flatMap(([source, { documents, broken }]) =>
      without(documents, broken).flatMap((document) => {
        const { object } = document
        if (!isWorkload(object) || this.#batch?.factsOf(source, object).job?.finished !== undefined) return []
        const by = `${object.kind.toLowerCase()} ${podKey(object.metadata)}`
        const pod = podFromManifest(podOf(document, object.metadata.name))
        return listPodImages(pod).map((image) => ({ image, by, isLater: true as const }))
      }),
    )
  }

  /** How a Job ended, also one that is not shown any more; undefined where it has not, or is no Job. */
  endOf(source: SourceName, document: ObjectDocument): JobEnd | undefined {
    return document.object.kind === 'Job' ? this.#batch?.endOf(source, document) : undefined
  }

  /** The wall clock may have been set, and the pods know it. */
  reviewClock(): void {
    const now = readClocks(this.#env.clock)
    const step = clockStep(this.#clocks, now)
    if (step === undefined) return
    this.#clocks = now
    this.#show(step)
    for (const source of this.#sources.keys()) this.#ask(source)
  }

  /** A revision of this source was found healthy, or to have failed. */
  noteVerdict(source: SourceName): void {
    this.#ask(source)
  }

  /** A pod reached another stage. */
  noteStage({ state }: PodWorker): void {
    if (state.record.owner !== undefined) this.#ask(state.record.source)
  }

  #note(uid: string): void {
    const worker = this.#env.workers.get(uid)
    if (worker !== undefined) this.noteStage(worker)
  }

  #ask(source: SourceName): void {
    const known = this.#sources.get(source)
    if (known?.documents.length === 0 && !known.hasBatch) return
    this.#due.add(source)
    this.#reviews.ask()
  }

  #startTimer(): void {
    this.#timer?.cancel()
    const dueAtMs = soonest(...[...this.#sources.values()].map(({ wakeAtMs }) => wakeAtMs))
    if (dueAtMs === undefined) return
    const { clock } = this.#env
    // The wall clock may be set meanwhile.
    const waitMs = Math.min(Math.max(0, dueAtMs - clock.wallMs()), longestWaitMs)
    this.#timer = clock.startTimer(waitMs, () => {
      for (const [source] of this.#sources) this.#ask(source)
    })
  }

  #tryToReview(): void {
    const due = [...this.#due]
    this.#due.clear()
    for (const source of due) {
      try {
        this.#review(source)
      } catch (error) {
        this.#env.logger.error(
          { reason: source, err: error },
          'cannot decide which pods workloads are to have',
        )
      }
    }
    this.#startTimer()
  }

  #review(source: SourceName): void {
    const known = this.#sources.get(source)
    if (known === undefined) return
    if (known.hasBatch && this.#batch === undefined) return this.#env.onChange(source)
    const { replicas, batch, broken } = this.#decide(source, known)
    if (broken.size > 0 || known.broken.size > 0) {
      const isSame =
        broken.size === known.broken.size && [...broken.keys()].every((each) => known.broken.has(each))
      if (!isSame) return this.#env.onChange(source)
    }
    const { pods, wakeAtMs: dueAtMs } = joined(batch === undefined ? replicas : [...replicas, batch])
    const wakeAtMs = soonest(dueAtMs, broken.size > 0 ? this.#env.clock.wallMs() + retryMs : undefined)
    known.wakeAtMs = wakeAtMs
    const isSame =
      pods.length === known.pods.length && pods.every((pod, at) => isSameDocument(known.pods[at], pod))
    const isCounted = batch === undefined || sameData(batch.state, this.#batch?.state)
    if (!isSame || !isCounted) this.#env.onChange(source)
    else this.#show()
  }

  /**
   * Shows the workloads of all sources, and the Jobs that CronJobs have started, as they are now.
   * @param step the wall clock was set since they were shown
   */
  #show(step?: ClockStep): void {
    const { shown, clock, logger } = this.#env
    const nowMs = clock.wallMs()
    const clocks = { wallMs: nowMs, uptimeMs: nowMs - this.#clocks.wallMs + this.#clocks.uptimeMs }
    const kinds = {
      Deployment: { store: shown.deployments, objects: new Map<string, WorkloadObject>() },
      StatefulSet: { store: shown.statefulsets, objects: new Map<string, WorkloadObject>() },
      DaemonSet: { store: shown.daemonsets, objects: new Map<string, WorkloadObject>() },
      Job: { store: shown.jobs, objects: new Map<string, WorkloadObject>() },
      CronJob: { store: shown.cronjobs, objects: new Map<string, WorkloadObject>() },
    }
    const unshown = new Set<string>()
    // One that can't be shown hides no other.
    const attempt = ({ object, place }: ObjectDocument, show: () => void): void => {
      try {
        show()
      } catch (error) {
        const reason = keyOfObject(object)
        if (!this.#unshown.has(reason) && !unshown.has(reason))
          logger.error({ path: place.path, reason, err: error }, 'cannot show how a workload does')
        unshown.add(reason)
      }
    }
    for (const [source, { documents: given, broken }] of this.#sources) {
      const documents = without(given, broken)
      if (documents.length === 0) continue
      const owned = this.#workersOf(source)
      const show = (document: ObjectDocument): void => {
        const { object, place, kept } = document
        if (!isWorkload(object)) return
        const metadata = toObjectMeta(object, { source, place, kept })
        const { namespace } = metadata
        const owner = document.owner && ownerReference(document.owner, { namespace, source })
        const workers = owned.get(keyOfObject(object)) ?? []
        const { job, cronJob, activeJobs } = this.#batch?.factsOf(source, object) ?? noBatch
        const before = kinds[object.kind].store.get(metadata.uid)?.metadata.creationTimestamp
        const shownMs = before === undefined ? nowMs : Date.parse(before)
        // Of a workload from a file nothing is kept: it is as old as its oldest pod, and as it was shown, at least.
        const oldestMs = Math.min(
          nowMs,
          step === undefined ? shownMs : moveTime(shownMs, step),
          ...workers.map(({ state }) => state.record.acceptedAtMs),
        )
        const sinceMs = cronJob?.createdAtMs ?? job?.createdAtMs ?? oldestMs
        const shownObject = showWorkload(document, {
          metadata: {
            creationTimestamp: showTime(sinceMs, clocks),
            ...metadata,
            ...(owner !== undefined && { ownerReferences: [owner] }),
          },
          targets: this.#targets.podsOf(document),
          pods: workers.map((worker) => this.#factsOf(worker)),
          job: job && {
            record: job,
            pods: new Map(workers.map((worker) => [this.#ownName(worker.ref.name), this.#jobPodOf(worker)])),
          },
          cronJob,
          activeJobs,
          failure: this.#env.failureOf(source, document),
          nowMs,
        })
        if (shownObject !== undefined && job?.isExpired !== true)
          kinds[object.kind].objects.set(metadata.uid, shownObject)
      }
      for (const document of documents) {
        attempt(document, () => show(document))
        attempt(document, () => {
          for (const job of this.#batch?.startedJobs(source, [document]) ?? []) attempt(job, () => show(job))
        })
      }
    }
    this.#unshown = unshown
    for (const { store, objects } of Object.values(kinds)) store.replaceAll(objects)
  }

  #decide(source: SourceName, { documents, hasBatch, isComplete }: Workloaded): Decision {
    const { proofMs } = this.#env
    const now = readClocks(this.#env.clock)
    const nowMs = now.wallMs
    const owned = this.#workersOf(source)
    const broken = new Map<ObjectDocument, unknown>()
    const expand = (document: ObjectDocument): readonly Expansion[] => {
      if (!isReplicaDocument(document)) return []
      const pods = new Map<string, WorkloadPod>()
      for (const worker of owned.get(keyOfObject(document.object)) ?? []) {
        const pod = this.#factsOf(worker)
        // One that is leaving may have a successor of its name.
        if (pod.state !== 'leaving' || !pods.has(pod.name)) pods.set(pod.name, pod)
      }
      // Claims that can't be made are found here, too.
      this.#targets.claimsOf(document)
      return [
        expandReplicas(document, this.#targets.podsOf(document), [...pods.values()], { nowMs, proofMs }),
      ]
    }
    const replicas = documents.flatMap((document) => {
      try {
        return expand(document)
      } catch (error) {
        broken.set(document, error)
        return []
      }
    })
    const jobs = this.#batch
    if (jobs === undefined || !hasBatch) return { replicas, batch: undefined, broken }
    const pods = new Map(
      [...owned].map(([key, workers]) => [
        key,
        new Map(
          workers.flatMap((worker) =>
            isLeaving(worker) && !isBeingDeleted(worker)
              ? []
              : [[this.#ownName(worker.ref.name), this.#jobPodOf(worker)] as const],
          ),
        ),
      ]),
    )
    const step = (some: readonly ObjectDocument[], areAll: boolean): BatchStep =>
      jobs.step(source, some, pods, areAll, now)
    try {
      return { replicas, batch: step(documents, isComplete), broken }
    } catch {
      // One of them spoils it: which one is found out by each for itself. What is known of that one is not forgotten.
      for (const document of documents) {
        if (!isBatchKind(document.object.kind)) continue
        try {
          step([document], false)
        } catch (error) {
          broken.set(document, error)
        }
      }
      return { replicas, batch: step(without(documents, broken), false), broken }
    }
  }

  /** Once for each. */
  #logBroken(source: SourceName, broken: Broken, before: Broken | undefined): void {
    for (const [{ object, place }, error] of broken) {
      const isKnown = [...(before?.keys() ?? [])].some(
        (each) => keyOfObject(each.object) === keyOfObject(object),
      )
      if (!isKnown)
        this.#env.logger.error(
          { source, path: place.path, reason: keyOfObject(object), err: error },
          'cannot decide which pods a workload is to have: those that it has stay',
        )
    }
  }

  /** The pods that there are, by their workload. */
  #workersOf(source: SourceName): ReadonlyMap<string, readonly PodWorker[]> {
    const found = new Map<string, PodWorker[]>()
    for (const worker of this.#env.workers.all()) {
      const { owner, namespace, source: from } = worker.state.record
      if (owner === undefined || from !== source) continue
      const key = keyOfOwner(owner, namespace)
      const workers = found.get(key)
      if (workers === undefined) found.set(key, [worker])
      else workers.push(worker)
    }
    return found
  }

  #jobPodOf(worker: PodWorker): JobPod {
    const { statuses, isRuntimeKnown } = this.#env
    const name = this.#ownName(worker.ref.name)
    const status = statuses.find(worker.ref.uid)?.status
    const { record } = worker.state
    const containers = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
    const conditions = Object.fromEntries(
      (status?.conditions ?? []).map(({ type, status: is }) => [type, is]),
    )
    const isDeleted = isBeingDeleted(worker)
    if (record.ending?.asked === 'evicted') conditions['DisruptionTarget'] = 'True'
    // One that was evicted for a time, or is ended for another one, comes back.
    const isOver = record.failed?.until === undefined && (isDeleted || !isLeaving(worker)) && isRuntimeKnown()
    const { phase } = status ?? {}
    return {
      name,
      isDeleted,
      state:
        isOver && phase === 'Succeeded' ? 'succeeded' : isOver && phase === 'Failed' ? 'failed' : 'active',
      isReady: conditions['Ready'] === 'True',
      restarts: containers.reduce((sum, { restartCount }) => sum + restartCount, 0),
      exitCodes: Object.fromEntries(
        containers.flatMap(({ name: container, state }) =>
          state.terminated === undefined ? [] : [[container, state.terminated.exitCode] as const],
        ),
      ),
      conditions,
    }
  }

  /** A time in the future, of a clock that was set back since, counts from when it is seen first. */
  #readySince(worker: PodWorker, statedMs: number): number {
    const nowMs = this.#env.clock.wallMs()
    if (!(statedMs > nowMs)) return statedMs
    const seen = this.#seenAhead.get(worker)
    if (seen?.statedMs === statedMs && seen.atMs <= nowMs) return seen.atMs
    this.#seenAhead.set(worker, { statedMs, atMs: nowMs })
    return nowMs
  }

  #factsOf(worker: PodWorker): WorkloadPod {
    const { statuses, isRuntimeKnown } = this.#env
    const { record } = worker.state
    const name = this.#ownName(record.name)
    const manifest = name === record.name ? record.manifest : renamed(record.manifest, name)
    if (isLeaving(worker)) return { name, manifest, state: 'leaving' }
    const status = statuses.find(worker.ref.uid)?.status
    const ready = status?.conditions.find(({ type }) => type === 'Ready')
    if (ready?.status === 'True') {
      // What is shown of a time in the future is none.
      const stamp = record.conditions['Ready']
      const statedMs = stamp?.status === 'True' ? stamp.atMs : Date.parse(ready.lastTransitionTime ?? '')
      const sinceMs = this.#readySince(worker, statedMs)
      return { name, manifest, state: 'ready', ...(!Number.isNaN(sinceMs) && { readySinceMs: sinceMs }) }
    }
    const isKnown = status !== undefined && worker.state.stage !== 'adopted' && isRuntimeKnown()
    return { name, manifest, state: isKnown ? 'unready' : 'unknown' }
  }
}

const nothing = {
  documents: [],
  hasBatch: false,
  isComplete: true,
  pods: [],
  byKey: new Map<PodKey, PodDocument>(),
  broken: new Map<ObjectDocument, unknown>(),
  wakeAtMs: undefined,
}
/** Times of the wall clock are looked at this often, as it may be set. */
const longestWaitMs = 60_000
const retryMs = 30_000

/** All together. */
function joined(expansions: readonly Expansion[]): Expansion {
  return {
    pods: expansions.flatMap(({ pods }) => pods),
    wakeAtMs: soonest(...expansions.map(({ wakeAtMs }) => wakeAtMs)),
  }
}

function without(documents: readonly ObjectDocument[], broken: Broken): readonly ObjectDocument[] {
  return broken.size === 0 ? documents : documents.filter((document) => !broken.has(document))
}

function toProblem({ object, place }: ObjectDocument, error: unknown): Problem {
  const { metadata } = object
  const name = 'namespace' in metadata ? podKey(metadata) : metadata.name
  return {
    severity: 'error',
    place,
    object: name,
    message: `${object.kind} ${name}: podd can't decide which pods it is to have, and leaves those that it has: ${errorMessage(error)}`,
    hint: 'Change what the message names in its manifest; where nothing is wrong with that, please report it.',
  }
}

/** Somebody asked for its end over the API, and something of it may run. */
function isBeingDeleted({ state: { stage, record } }: PodWorker): boolean {
  return stage === 'ending' && record.ending?.asked !== undefined
}

const noBatch = { job: undefined, cronJob: undefined, activeJobs: [] }

function isWorkload(object: LocalObject): object is Extract<LocalObject, { readonly kind: WorkloadKind }> {
  return isWorkloadKind(object.kind)
}
function isSameDocument(before: PodDocument | undefined, after: PodDocument): boolean {
  return before !== undefined && sameData({ ...before, pod: null }, { ...after, pod: null })
}
