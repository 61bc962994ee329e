import type { Logger } from '../../base/logger.ts'
import { newUuid } from '../../base/random.ts'
import { sameData } from '../../base/json.ts'
import { trace } from '../../base/trace.ts'
import type { Neighbour } from '../../decide/admission/admit-pod.ts'
import { inOrderOfAdmission, newPodRecord } from '../../decide/sources/new-pod-record.ts'
import type { Problem, SourceName } from '../../pod/objects/document.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { EvictionEnd, PodRecord } from '../../pod/state/pod-record.ts'
import { AdmissionQueue } from './admission-queue.ts'
import type { PodAdmission } from './pod-admission.ts'
import type { ChangedObjects } from '../objects/object-store.ts'
import type { PodWorker } from '../worker/pod-worker.ts'
import type { UnreadableRecord } from '../../store/pod-records.ts'
import {
  asksForNewPod,
  changesHands,
  endAsSpecified,
  isLeaving,
  isOfDocument,
  keepsResources,
  leftAloneProblem,
  newEntry,
  notAppliedProblem,
  readmission,
} from './pod-entry.ts'
import type { PodEntry, WantedPod } from './pod-entry.ts'
import { PodWorkers } from './pod-workers.ts'
import type { PodWorkersDeps } from './pod-workers.ts'
import { ReplacementQueue } from './replacement-queue.ts'
import type { ReplacementQueueDeps } from './replacement-queue.ts'

export interface DesiredPodsDeps
  extends PodWorkersDeps, Pick<ReplacementQueueDeps, 'images' | 'foreseeStart' | 'missingReference'> {
  /** The identity under which a pod was shown before its worker began; can be taken once. */
  readonly takeShown: (key: PodKey) => Pick<PodRecord, 'uid' | 'acceptedAtMs'> | undefined
  readonly logger: Logger
  readonly admission: PodAdmission
}

/** The desired pods: one pod per name. Nothing else creates and ends workers. */
export class DesiredPods {
  /** Including those of pods that no source wants any more. */
  readonly workers: PodWorkers
  readonly #deps: DesiredPodsDeps
  readonly #entries = new Map<PodKey, PodEntry>()
  readonly #queue: AdmissionQueue
  readonly #replacements: ReplacementQueue
  /** Before that it is not known which pods hold which resources. */
  #isObserved = false

  constructor(deps: DesiredPodsDeps) {
    this.#deps = deps
    this.workers = new PodWorkers(deps)
    this.#replacements = new ReplacementQueue({
      ...deps,
      neighbours: () => [...this.workers.neighbours(), ...this.#promises()],
      growing: () =>
        [...this.workers.all()]
          .filter(({ state }) => state.wantsToGrow)
          .map((worker) => ({ worker, pod: worker.state.classedPod })),
      onChange: () => this.reviewAdmission(),
    })
    this.#queue = new AdmissionQueue(this.workers, deps.admission, {
      promises: () => this.#promises(),
      nextOf: (key) => this.#replacements.waitingFor(key),
    })
  }

  /** These objects came, changed or went: new versions whose pulls use them are tried again at once. */
  reviewPullSecrets(changed: ChangedObjects): void {
    this.#replacements.reviewPullSecrets(changed)
  }

  /** New versions that cannot replace their pod now, and why. */
  problems(): readonly Problem[] {
    const notApplied = [...this.#entries].flatMap(
      ([key, entry]) => notAppliedProblem(key, entry, this.#replacements.problem(key)) ?? [],
    )
    const leftAlone = this.workers.leftAlone().map(({ key, record }) => leftAloneProblem(key, record))
    return [...notApplied, ...leftAlone]
  }

  /** Takes up the pods of an earlier podd, until a source confirms them (`reconcile`), or `confirmAdopted`. */
  adopt(records: readonly PodRecord[], unreadable: readonly UnreadableRecord[]): void {
    this.workers.noteUnreadable(unreadable)
    for (const saved of inOrderOfAdmission(records)) {
      const worker = this.workers.restore(saved)
      if (worker !== undefined) this.#adoptInto(this.#entry(podKey(worker.ref)), worker)
    }
    // Whether there is room for those that never ran depends on what has ended meanwhile.
    this.#queue.reviewStarted()
  }

  /** The runtime was listed for the first time: from now on it is known what runs of the adopted pods. */
  takeObserved(): void {
    this.#isObserved = true
    this.workers.takeObserved()
    this.reviewAdmission()
  }

  /** Of two records of one name, the one that isn't ending holds it; of two such, the newer one. */
  #adoptInto(entry: PodEntry, worker: PodWorker): void {
    const before = entry.worker
    if (before === undefined || !isLeaving(worker)) entry.worker = worker
    if (before === undefined || isLeaving(before) || isLeaving(worker)) return
    endAsSpecified(before, 'replaced', 'Another pod has its name')
  }

  /** Confirms the adopted pods of the sources that `isSilent` names, which have not spoken yet. */
  confirmAdopted(isSilent: (source: SourceName) => boolean): void {
    for (const worker of this.workers.all()) if (isSilent(worker.state.record.source)) worker.confirm()
  }

  /**
   * Reconciles the pods with what is wanted.
   * @param mayRemove whether a pod that isn't wanted may go: the sources have spoken
   */
  reconcile(wanted: ReadonlyMap<PodKey, WantedPod>, mayRemove: (record: PodRecord) => boolean): void {
    for (const [key, entry] of this.#entries) {
      if (wanted.has(key)) continue
      const { worker } = entry
      entry.held = undefined
      if (worker === undefined) continue
      worker.confirm()
      if (!mayRemove(worker.state.record)) continue
      this.#dropNext(key, entry)
      // Whoever deletes it over the API may give it more time than its manifest does.
      if (worker.state.record.ending?.cause === 'removed') continue
      endAsSpecified(worker, 'removed', 'The manifest was removed')
    }
    // What goes or gets smaller makes room for what is new.
    const isKnown = ([key]: readonly [PodKey, WantedPod]): boolean =>
      this.#entries.get(key)?.worker !== undefined
    const known = [...wanted].filter((each) => isKnown(each))
    const fresh = [...wanted].filter((each) => !isKnown(each))
    for (const [key, pod] of [...known, ...fresh]) this.#tryToWant(key, pod)
    this.reviewAdmission()
  }

  /** Starts the pods that were evicted until now, as new pods. */
  readmitEvicted(now: EvictionEnd): void {
    for (const entry of this.#entries.values()) {
      const wanted = readmission(entry, now)
      if (wanted === undefined) continue
      entry.next = { wanted, replacement: undefined }
      entry.worker?.end({
        cause: 'replaced',
        reason: 'Killing',
        message: 'The node has room for the pod again',
        graceSeconds: 0,
      })
    }
  }

  /** Stops all workers and leaves the pods running; resolves when every pass in flight has stopped too. */
  async stop(): Promise<void> {
    this.#replacements.cancelAll()
    await this.workers.stop()
  }

  /** The runtime reported a change of a pod without a worker: its name may be free. */
  reviewHeld(): void {
    for (const [key, { held }] of this.#entries) if (held !== undefined) this.#tryToWant(key, held)
  }

  /** A worker reached another stage. */
  onStage(worker: PodWorker): void {
    if (worker.state.stage === 'gone') this.workers.forget(worker)
    if (worker.state.stage === 'stopped' || worker.state.stage === 'gone') this.#releaseName(worker)
    if (worker.state.isSettled) for (const before of this.workers.predecessors(worker)) before.cleanUp()
    this.reviewAdmission()
  }

  /** Admits waiting pods; called whenever resources may have become free. */
  reviewAdmission(): void {
    if (!this.#isObserved) return
    this.#queue.review()
    this.#replacements.review()
  }

  /** A failing pod keeps no other from being reconciled. */
  #tryToWant(key: PodKey, wanted: WantedPod): void {
    try {
      this.#want(key, wanted)
    } catch (error) {
      this.#deps.logger.error({ pod: key, err: error }, 'cannot sync a pod')
    }
  }

  #want(key: PodKey, wanted: WantedPod): void {
    const entry = this.#entry(key)
    const { worker } = entry
    if (worker === undefined) return this.#startNew(key, entry, wanted)
    // What was prepared for this version can still be used.
    const ready = sameData(entry.next?.wanted.document.manifest, wanted.document.manifest)
      ? entry.next
      : undefined
    if (isLeaving(worker)) {
      if (ready === undefined) this.#dropNext(key, entry)
      entry.next = { wanted, replacement: ready?.replacement }
      return undefined
    }
    const { document, source } = wanted
    if (!changesHands(worker.state.record, wanted) && !asksForNewPod(worker, document)) {
      this.#dropNext(key, entry)
      const refusal = this.#deps.admission.refusal(document.pod, source)
      const isNew = !sameData(worker.state.record.manifest, document.manifest)
      entry.refused = refusal === undefined || !isNew ? undefined : { wanted, message: refusal }
      if (entry.refused !== undefined) return worker.confirm()
      const place = { source, path: document.place.path, owner: document.owner }
      worker.update({ pod: document.pod, manifest: document.manifest, place })
      this.#queue.judgeResize(worker)
      worker.confirm()
      return undefined
    }
    if (ready !== undefined) return undefined
    this.#dropNext(key, entry)
    worker.confirm()
    entry.next = { wanted, replacement: this.#replacements.add(worker, document.pod, source) }
    return undefined
  }

  /** What is kept for versions whose pods were told to end, until they are admitted. */
  #promises(): readonly Neighbour[] {
    return this.#replacements.promises((key) => {
      const entry = this.#entries.get(key)
      return entry !== undefined && keepsResources(entry)
    })
  }

  #startNew(key: PodKey, entry: PodEntry, wanted: WantedPod, pulled?: ReadonlySet<string>): void {
    const { document, source } = wanted
    const found = this.workers.findUnrecorded(key)
    const fate = found && this.workers.fateOf(found, isOfDocument(found, document))
    // It holds the name for as long as it runs.
    if (fate === 'leave') {
      entry.held = wanted
      return
    }
    entry.held = undefined
    if (found !== undefined && fate === 'end') {
      entry.worker = this.workers.endOrphan(found)
      entry.next = { wanted, replacement: undefined }
      return
    }
    const shown = this.#deps.takeShown(key)
    const record = newPodRecord({
      uid: document.kept?.uid ?? found?.uid ?? shown?.uid ?? newUuid(),
      document,
      source,
      nowMs: document.kept?.createdAtMs ?? shown?.acceptedAtMs ?? this.#deps.clock.wallMs(),
      createdAtMs: found?.sandboxes[0]?.createdAtMs,
    })
    const worker = this.workers.add({
      record,
      pod: document.pod,
      saved: false,
      ...(found === undefined ? {} : { observed: found }),
      ...(pulled === undefined ? {} : { pulled }),
    })
    entry.worker = worker
    trace?.('desired', worker.ref.name)
    this.#queue.admit(worker)
  }

  /** The name is free: what was waiting for it starts. */
  #releaseName(worker: PodWorker): void {
    const key = podKey(worker.ref)
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.worker !== worker) {
      if (entry?.worker?.state.isSettled !== false) worker.cleanUp()
      return
    }
    const { next } = entry
    entry.worker = undefined
    entry.next = undefined
    if (next === undefined) {
      this.#entries.delete(key)
      worker.cleanUp()
      return
    }
    worker.supersede()
    this.#startNew(key, entry, next.wanted, next.replacement?.pulled)
  }

  #entry(key: PodKey): PodEntry {
    const entry = this.#entries.get(key) ?? newEntry()
    this.#entries.set(key, entry)
    return entry
  }

  #dropNext(key: PodKey, entry: PodEntry): void {
    if (entry.next?.replacement !== undefined) this.#replacements.cancel(key)
    entry.next = undefined
    entry.refused = undefined
  }
}
