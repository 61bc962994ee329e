import { PacedWork, TurnPace } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { sameData } from '../../base/json.ts'
import { newUuid } from '../../base/random.ts'
import { trace } from '../../base/trace.ts'
import type { Neighbour } from '../../decide/admission/admit-pod.ts'
import { inOrderOfAdmission, newPodRecord } from '../../decide/sources/new-pod-record.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { podFromManifest } from '../../pod/schema/default-pod.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { podRecordVersion } from '../../pod/state/pod-record.ts'
import type { EvictionEnd, PodRecord } from '../../pod/state/pod-record.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey, PodUid, SourceName } from '../../pod/values/ids.ts'
import type { EndedByDown, UnreadableRecord } from '../../store/pod-records.ts'
import { orphanManifest } from '../../translate/identity.ts'
import type { PodEnv } from '../pod/env.ts'
import type { NewWorker } from '../pod/state.ts'
import { PodWorker } from '../pod/worker.ts'
import type { ChangedObjects } from '../serving/object-store.ts'
import type { AwaitedPods } from './awaited-pods.ts'
import type { PodAdmission } from './pod-admission.ts'
import { AdmissionQueue } from './pod-workers.ts'
import type { EndedPods, PodWorkers } from './pod-workers.ts'
import { ReplacementQueue } from './replacements.ts'
import {
  asksForNewPod,
  changesHands,
  comesBack,
  isLeaving,
  isOfDocument,
  keepsResources,
  leftAloneProblem,
  newEntry,
  notAppliedProblem,
  readmission,
} from './source-snapshots.ts'
import type { PodEntry, WantedPod } from './source-snapshots.ts'

/** The desired pods: one pod per name. Nothing else creates and ends workers. */
export class DesiredPods {
  /** Including those of pods that no source wants any more. */
  readonly workers: PodWorkers
  readonly #env: PodEnv
  readonly #admission: PodAdmission
  readonly #awaited: AwaitedPods
  readonly #onStage: (worker: PodWorker) => void
  /** The names of the desired pods: which pod holds each one, and which one waits for it. */
  readonly #names = new Map<PodKey, PodEntry>()
  readonly #queue: AdmissionQueue
  readonly #replacements: ReplacementQueue
  readonly #endedByDown: EndedPods
  /** Each looks at every pod. */
  readonly #reviews: PacedWork
  /** Before that it is not known which pods hold which resources. */
  #isObserved = false

  /**
   * @param awaited those that were shown before their workers began
   * @param endedByDown empty; it is written here alone
   * @param onStage a worker reached another stage, settled, or is over or no longer so
   */
  constructor(
    env: PodEnv,
    workers: PodWorkers,
    admission: PodAdmission,
    awaited: AwaitedPods,
    endedByDown: EndedPods,
    onStage: (worker: PodWorker) => void,
  ) {
    this.#env = env
    this.#reviews = new PacedWork(env.clock, () => this.#tryToReview())
    this.workers = workers
    this.#admission = admission
    this.#awaited = awaited
    this.#endedByDown = endedByDown
    this.#onStage = onStage
    this.#replacements = new ReplacementQueue(env, admission, {
      neighbours: () => [...this.workers.neighbours(), ...this.#promises()],
      growing: () =>
        [...this.workers.all()]
          .filter(({ state }) => state.wantsToGrow)
          .map((worker) => ({ worker, pod: worker.state.classedPod })),
      onChange: () => this.#reviews.ask(),
    })
    this.#queue = new AdmissionQueue(
      workers,
      admission,
      () => this.#promises(),
      (key) => this.#replacements.waitingFor(key),
    )
  }

  /** These objects came, changed or went: new versions whose pulls use them are tried again at once. */
  reviewPullSecrets(changed: ChangedObjects): void {
    this.#replacements.reviewPullSecrets(changed)
  }

  /** New versions that cannot replace their pod now, and why. */
  problems(): readonly Problem[] {
    const notApplied = [...this.#names].flatMap(
      ([key, entry]) => notAppliedProblem(key, entry, this.#replacements.problem(key)) ?? [],
    )
    const leftAlone = this.workers.leftAlone().map(({ key, record }) => leftAloneProblem(key, record))
    return [...notApplied, ...leftAlone]
  }

  /** Takes up the pods of an earlier podd, until a source confirms them (`reconcile`), or `confirmAdopted`. */
  async adopt(records: readonly PodRecord[], unreadable: readonly UnreadableRecord[]): Promise<void> {
    this.workers.noteUnreadable(unreadable)
    const pace = new TurnPace(this.#env.clock)
    for (const saved of inOrderOfAdmission(records)) {
      const worker = this.#restore(saved)
      if (worker !== undefined) this.#adopt(worker)
      if (pace.isOver) await pace.next()
    }
    // Whether there is room for those that never ran depends on what has ended meanwhile.
    this.#queue.reviewStarted()
  }

  /** The worker of an earlier podd's pod; undefined where its record can't be used, which is noted. */
  #restore(saved: PodRecord): PodWorker | undefined {
    // A pod that was rejected before may be admitted by this podd, with its config.
    const isRejected = saved.failed?.admission === true && saved.failed.until === undefined
    const record = isRejected ? { ...saved, failed: undefined } : saved
    const { uid, name, path, manifest } = record
    try {
      return this.#begin({ record, pod: podFromManifest(manifest), saved: true, adopted: true })
    } catch (error) {
      this.#env.logger.error({ uid, pod: name, err: error }, 'cannot use a pod record')
      this.workers.noteUnreadable([{ uid, path, message: errorMessage(error) }])
      return undefined
    }
  }

  /** Of two records of one name, the one that isn't ending holds it; of two such, the newer one. */
  #adopt(worker: PodWorker): void {
    const entry = this.#entry(podKey(worker.ref))
    const before = entry.worker
    if (before === undefined || !isLeaving(worker)) entry.worker = worker
    if (before === undefined || isLeaving(before) || isLeaving(worker)) return
    before.endWithOwnGrace('replaced', 'Another pod has its name')
  }

  /** @throws where another worker has its UID */
  #begin(input: NewWorker): PodWorker {
    return this.workers.add(
      input.record.uid,
      () => new PodWorker(this.#env, input, this.#onStage, () => this.reviewAdmission()),
    )
  }

  /** These ran when `podd down` ended them. To be called before anything is wanted. */
  noteEndedByDown(ended: readonly EndedByDown[]): void {
    for (const each of ended) {
      try {
        const pod = podFromManifest(each.manifest)
        this.#endedByDown.set(podKey(each), { ended: each, pod })
      } catch (error) {
        this.#env.logger.warn({ pod: each.name, err: error }, 'cannot use what is known of an ended pod')
      }
    }
  }

  /** The pod that has this name. */
  holder(key: PodKey): PodWorker | undefined {
    return this.#names.get(key)?.worker
  }

  /** Why the newest version of the pod of this name is not applied. */
  updateProblem(key: PodKey): string | undefined {
    const entry = this.#names.get(key)
    return this.#replacements.problem(key) ?? entry?.refused?.message ?? entry?.worker?.state.updateProblem
  }

  /** Of those that ran when `podd down` ended them: those that are still to start. Forgets the others. */
  reviewEndedByDown(isSilent: (source: SourceName) => boolean): readonly EndedByDown[] {
    let hasForgotten = false
    for (const [key, { ended }] of this.#endedByDown) {
      const worker = this.#names.get(key)?.worker
      const isToStart =
        worker !== undefined && worker.state.record.startedAtMs === undefined && !isLeaving(worker)
      if (isToStart || isSilent(ended.source)) continue
      this.#endedByDown.delete(key)
      hasForgotten = true
    }
    if (hasForgotten) this.reviewAdmission()
    return [...this.#endedByDown.values()].map(({ ended }) => ended)
  }

  /** The runtime was listed for the first time: from now on it is known what runs of the adopted pods. */
  takeObserved(): void {
    this.#isObserved = true
    this.workers.takeObserved()
    this.reviewAdmission()
  }

  /** Confirms the adopted pods of the sources that `isSilent` names, which have not spoken yet. */
  confirmAdopted(isSilent: (source: SourceName) => boolean): void {
    for (const worker of this.workers.all()) if (isSilent(worker.state.record.source)) worker.confirm()
  }

  /**
   * Reconciles the pods with what is wanted. Others may look at the pods between its turns.
   * @param mayRemove whether a pod that isn't wanted may go
   */
  async reconcile(
    wanted: ReadonlyMap<PodKey, WantedPod>,
    mayRemove: (record: PodRecord, key: PodKey) => boolean,
  ): Promise<void> {
    const pace = new TurnPace(this.#env.clock)
    for (const [key, entry] of this.#names) {
      if (wanted.has(key)) continue
      if (pace.isOver) await pace.next()
      const { worker } = entry
      entry.held = undefined
      if (worker === undefined) continue
      worker.confirm()
      if (!mayRemove(worker.state.record, key)) continue
      this.#dropNext(key, entry)
      // Whoever deletes it over the API may give it more time than its manifest does.
      if (worker.state.record.ending?.cause === 'removed') continue
      worker.endWithOwnGrace('removed', 'The manifest was removed')
    }
    // What goes or gets smaller makes room for what is new.
    const isKnown = ([key]: readonly [PodKey, WantedPod]): boolean =>
      this.#names.get(key)?.worker !== undefined
    const known = [...wanted].filter((each) => isKnown(each))
    const ranks = new Map([...this.#endedByDown.keys()].map((key, at) => [key, at]))
    const rank = (key: PodKey): number => ranks.get(key) ?? ranks.size
    const fresh = [...wanted].filter((each) => !isKnown(each)).toSorted(([a], [b]) => rank(a) - rank(b))
    for (const [key, pod] of known) {
      if (pace.isOver) await pace.next()
      this.#tryToWant(key, pod)
    }
    for (const left = fresh.values(); ;) {
      let isDone = false
      this.#queue.together(() => {
        do {
          const { value, done = false } = left.next()
          if (value !== undefined) this.#tryToWant(...value)
          isDone = done
        } while (!isDone && !pace.isOver)
      })
      if (isDone) break
      await pace.next()
    }
    this.reviewAdmission()
  }

  /** Starts the pods that were evicted until now, as new pods. */
  readmitEvicted(now: EvictionEnd): void {
    for (const [, entry] of this.#names) {
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

  /** Terminates this pod where it is an orphan: one in the runtime without a record or a manifest. */
  endIfOrphan(uid: PodUid): void {
    const observed = this.#env.observer.pods().get(uid)
    if (observed === undefined || this.workers.get(uid) !== undefined) return
    if (this.workers.fateOf(observed, false) === 'end') this.#endOrphan(observed)
  }

  endOrphans(): void {
    for (const observed of this.workers.unrecorded())
      if (this.workers.fateOf(observed, false) === 'end') this.#endOrphan(observed)
  }

  /** Ends all that the runtime holds without a record that can be read. */
  endUnrecorded(): void {
    for (const observed of this.workers.unrecorded()) this.#endOrphan(observed)
  }

  #endOrphan(observed: ObservedPod): PodWorker {
    const manifest = orphanManifest(observed)
    const pod = podFromManifest(manifest)
    const { uid, namespace, name, sandboxes } = observed
    const acceptedAtMs = sandboxes.at(-1)?.createdAtMs ?? this.#env.clock.wallMs()
    const found = { version: podRecordVersion, uid, namespace, name, source: 'file', path: '' } as const
    const record = { ...found, manifest, acceptedAtMs, conditions: {}, containers: {} }
    const worker = this.#begin({ record, pod, saved: true, observed })
    worker.endWithOwnGrace('orphaned', 'The pod is not wanted and podd has no record of it')
    return worker
  }

  /** Stops all workers and leaves the pods running; resolves when every pass in flight has stopped too. */
  async stop(): Promise<void> {
    this.#reviews.stop()
    this.#replacements.cancelAll()
    await this.workers.stop()
  }

  /** The runtime reported a change of a pod without a worker: its name may be free. */
  reviewHeld(): void {
    if (!this.workers.leavesAny) return
    for (const [key, { held }] of this.#names) if (held !== undefined) this.#tryToWant(key, held)
  }

  /** A worker reached another stage. */
  onStage(worker: PodWorker): void {
    if (worker.state.stage === 'gone') this.workers.forget(worker)
    if (worker.state.stage === 'stopped' || worker.state.stage === 'gone') this.#release(worker)
    if (worker.state.isSettled) for (const before of this.workers.predecessors(worker)) before.cleanUp()
    this.#reviews.ask()
  }

  /** A failing review keeps nothing else from being done. */
  #tryToReview(): void {
    try {
      this.reviewAdmission()
    } catch (error) {
      this.#env.logger.error({ err: error }, 'cannot review which pods wait')
    }
  }

  /** Admits waiting pods; called whenever resources may have become free. */
  reviewAdmission(): void {
    if (!this.#isObserved) return
    this.#replacements.dropUnkept((key) => this.#isKept(key))
    this.#queue.review()
    this.#replacements.review()
  }

  /** The runtime has told what it can do: pods that run may need what it can't do any more. */
  reviewFeatures(): void {
    if (!this.#isObserved) return
    this.#queue.reviewStarted()
    this.reviewAdmission()
  }

  /** A failing pod keeps no other from being reconciled. */
  #tryToWant(key: PodKey, wanted: WantedPod): void {
    try {
      this.#want(key, wanted)
    } catch (error) {
      this.#queue.noteChange()
      this.#env.logger.error({ pod: key, err: error }, 'cannot sync a pod')
    }
  }

  #want(key: PodKey, wanted: WantedPod): void {
    const entry = this.#entry(key)
    const { worker } = entry
    if (worker === undefined) return this.#start(key, entry, wanted)
    // What was prepared for this version can still be used.
    const ready = sameData(entry.next?.wanted.document.manifest, wanted.document.manifest)
      ? entry.next
      : undefined
    if (isLeaving(worker)) {
      if (ready === undefined) this.#dropNext(key, entry)
      entry.next = { wanted, replacement: ready?.replacement }
      return
    }
    const { document, source } = wanted
    if (!changesHands(worker.state.record, wanted) && !asksForNewPod(worker, document)) {
      this.#dropNext(key, entry)
      const refusal = this.#admission.refusal(document.pod, source)
      const isNew = !sameData(worker.state.record.manifest, document.manifest)
      entry.refused = refusal === undefined || !isNew ? undefined : { wanted, message: refusal.message }
      if (entry.refused !== undefined) return worker.confirm()
      const place = { source, path: document.place.path, owner: document.owner }
      worker.update({ pod: document.pod, manifest: document.manifest, place })
      this.#queue.reviewResize(worker)
      worker.confirm()
      return
    }
    if (ready !== undefined) return
    this.#dropNext(key, entry)
    worker.confirm()
    entry.next = { wanted, replacement: this.#replacements.add(worker, document.pod, source) }
  }

  /**
   * What is kept, until they are admitted: for versions whose pods were told to end, and for pods that ran when the
   * host was shut down or podd was taken down.
   */
  #promises(): readonly Neighbour[] {
    return [...this.#replacements.promises((key) => this.#isKept(key)), ...this.#incumbents()]
  }

  /** Whether resources are kept for the new version of this name. */
  #isKept(key: PodKey): boolean {
    const entry = this.#names.get(key)
    return entry !== undefined && keepsResources(entry)
  }

  /** The pods that come back: the incumbents of what they had, whoever asks for it meanwhile. */
  *#incumbents(): Iterable<Neighbour> {
    for (const [key, entry] of this.#names)
      if (entry.worker !== undefined && comesBack(entry.worker, entry))
        yield { key, pod: entry.next?.wanted.document.pod ?? entry.worker.state.classedPod, isPromised: true }
    for (const [key, { pod }] of this.#endedByDown)
      if (this.#names.get(key)?.worker === undefined) yield { key, pod, isPromised: true }
  }

  #entry(key: PodKey): PodEntry {
    const entry = this.#names.get(key) ?? newEntry()
    this.#names.set(key, entry)
    return entry
  }

  /** Forgets the version that waits for the name. */
  #dropNext(key: PodKey, entry: PodEntry): void {
    if (entry.next?.replacement !== undefined) this.#replacements.cancel(key)
    entry.next = undefined
    entry.refused = undefined
  }

  /**
   * Starts a pod under a name that no worker holds.
   * @param pulled the images that were pulled for it already
   */
  #start(key: PodKey, entry: PodEntry, wanted: WantedPod, pulled?: ReadonlySet<string>): void {
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
      entry.worker = this.#endOrphan(found)
      this.#queue.noteChange()
      entry.next = { wanted, replacement: undefined }
      return
    }
    const { kept } = document
    const taken = this.#awaited.take(key)
    const shown = kept === undefined || kept.uid === taken?.uid ? taken : undefined
    const record = newPodRecord({
      uid: kept?.uid ?? found?.uid ?? shown?.uid ?? newUuid(),
      document,
      source,
      nowMs: shown?.acceptedAtMs ?? kept?.createdAtMs ?? this.#env.clock.wallMs(),
      createdAtMs: found?.sandboxes[0]?.createdAtMs,
    })
    const worker = this.#begin({
      record,
      pod: document.pod,
      saved: false,
      ...(found !== undefined && { observed: found }),
      ...(pulled !== undefined && { pulled }),
    })
    entry.worker = worker
    trace?.('desired', worker.ref.name)
    this.#queue.admit(worker)
  }

  /** The name is free: what was waiting for it starts. */
  #release(worker: PodWorker): void {
    const key = podKey(worker.ref)
    const entry = this.#names.get(key)
    if (entry === undefined || entry.worker !== worker) {
      if (entry?.worker?.state.isSettled !== false) worker.cleanUp()
      return
    }
    const { next } = entry
    // Records, sandboxes and volumes are named after the UID: a pod that keeps it starts once nothing is left of the old one.
    if (next?.wanted.document.kept?.uid === worker.ref.uid && worker.state.stage !== 'gone') {
      worker.cleanUp()
      return
    }
    entry.worker = undefined
    entry.next = undefined
    if (next === undefined) {
      this.#names.delete(key)
      worker.cleanUp()
      return
    }
    worker.supersede()
    this.#start(key, entry, next.wanted, next.replacement?.pulled)
  }
}
