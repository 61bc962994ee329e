import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { newUuid } from '../base/random.ts'
import { sameData } from '../base/json.ts'
import type { Admission, Neighbour } from '../decide/admit-pod.ts'
import { makesNewPod } from '../decide/diff-pod.ts'
import type { PodDocument, Problem, SourceName } from '../pod/document.ts'
import { podManifestHash } from '../pod/hash.ts'
import type { PodKey, PodUid } from '../pod/ids.ts'
import { podKey } from '../pod/ids.ts'
import type { ObservedPod } from '../pod/observed.ts'
import type { PodRecord } from '../pod/pod-record.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import { readManifestHash } from '../translate/labels.ts'
import { orphanManifest } from '../translate/orphan-manifest.ts'
import type { NewWorker } from './pod-state.ts'
import type { PodWorker } from './pod-worker.ts'
import type { PodAdmission } from './pod-admission.ts'
import { Replacement } from './replacement.ts'
import type { ReplacementDeps } from './replacement.ts'

/** A document and the source that gave it. */
export interface WantedPod {
  readonly document: PodDocument
  readonly source: SourceName
}

export interface DesiredPodsDeps extends Pick<ReplacementDeps, 'images'> {
  readonly makeWorker: (input: NewWorker) => PodWorker
  /** What a pod refers to and isn't there; undefined: all is. */
  readonly missingReference: (pod: Pod) => string | undefined
  readonly podFromManifest: (manifest: PodRecord['manifest']) => Pod
  readonly clock: Clock
  readonly logger: Logger
  readonly admission: PodAdmission
  /** What the newest relist found, by UID. */
  readonly observedPods: () => ReadonlyMap<PodUid, ObservedPod>
}

interface Entry {
  /** The pod that holds the name; absent while none does. */
  worker: PodWorker | undefined
  /** What takes its place when it is gone; absent when nothing does. */
  next: { readonly wanted: WantedPod; readonly replacement: Replacement | undefined } | undefined
  /** What could change in place and may not, and why. */
  refused: { readonly wanted: WantedPod; readonly message: string } | undefined
}

/**
 * The pods that shall be: one name, one pod. It alone makes and ends workers, and admits pods one at
 * a time, so that two never both believe to have got the last port.
 */
export class DesiredPods {
  readonly #deps: DesiredPodsDeps
  readonly #entries = new Map<PodKey, Entry>()
  /** All workers that aren't gone, those that are being replaced included, in the order they came. */
  readonly #workers = new Map<PodUid, PodWorker>()

  constructor(deps: DesiredPodsDeps) {
    this.#deps = deps
  }

  worker(uid: PodUid): PodWorker | undefined {
    return this.#workers.get(uid)
  }

  workers(): Iterable<PodWorker> {
    return this.#workers.values()
  }

  /** New versions that can't take their pod's place for now, and why. */
  problems(): readonly Problem[] {
    return [...this.#entries].flatMap(([object, { worker, next, refused }]) => {
      const message = next?.replacement?.problem ?? refused?.message ?? worker?.state.updateProblem
      if (worker === undefined || message === undefined) return []
      const place = (next?.wanted ?? refused?.wanted)?.document.place ?? { path: worker.state.record.path }
      return [
        {
          severity: 'error',
          place,
          object,
          message: `the new version is not applied and the old one keeps running: ${message}`,
        },
      ]
    })
  }

  /** Takes up the pods of an earlier podd. They start when a source confirms them (`reconcile`) or `startAdopted` says so. */
  adopt(records: readonly PodRecord[]): void {
    for (const saved of inOrderOfAdmission(records)) {
      // What was refused before may be welcome to this podd, with its config.
      const record = saved.failed?.admission === true ? { ...saved, failed: undefined } : saved
      try {
        const pod = this.#deps.podFromManifest(record.manifest)
        const worker = this.#add({ record, pod, saved: true })
        if (record.ending !== undefined) worker.start()
        this.#adoptInto(this.#entry(podKey(record)), worker)
      } catch (error) {
        this.#deps.logger.error(
          { uid: record.uid, pod: record.name, err: error },
          'a pod record cannot be used',
        )
      }
    }
    // Whether there is room for those that never ran depends on what has ended meanwhile.
    this.#admitWaiting((worker) => worker.state.record.startedAtMs !== undefined)
  }

  /** The runtime was listed for the first time: from now on it is known what runs of the adopted pods. */
  takeObserved(): void {
    const observed = this.#deps.observedPods()
    for (const worker of this.#workers.values()) {
      const seen = observed.get(worker.ref.uid)
      if (seen !== undefined) worker.takeObserved(seen)
    }
    this.reviewAdmission()
  }

  /** Of two records of one name, the one that isn't ending holds it; of two such, the newer one. */
  #adoptInto(entry: Entry, worker: PodWorker): void {
    const before = entry.worker
    if (before === undefined || !isLeaving(worker)) entry.worker = worker
    if (before === undefined || isLeaving(before) || isLeaving(worker)) return
    before.start()
    before.end({
      cause: 'replaced',
      reason: 'Killing',
      message: 'Another pod bears its name',
      graceSeconds: before.state.pod.spec.terminationGracePeriodSeconds,
    })
  }

  /** Starts adopted pods that no source has spoken of yet, for the sources that `isSilent` names. */
  startAdopted(isSilent: (source: SourceName) => boolean): void {
    for (const worker of this.#workers.values()) if (isSilent(worker.state.record.source)) worker.start()
  }

  /**
   * Brings the pods in line with what is wanted.
   * @param mayRemove whether a pod of this source that isn't wanted may go: its source has spoken
   */
  reconcile(wanted: ReadonlyMap<PodKey, WantedPod>, mayRemove: (source: string) => boolean): void {
    for (const [key, pod] of wanted) this.#tryToWant(key, pod)
    for (const [key, entry] of this.#entries) {
      if (wanted.has(key)) continue
      const { worker } = entry
      if (worker === undefined) continue
      worker.start()
      if (!mayRemove(worker.state.record.source)) continue
      this.#dropNext(entry)
      worker.end({
        cause: 'removed',
        reason: 'Killing',
        message: 'The manifest was removed',
        graceSeconds: worker.state.pod.spec.terminationGracePeriodSeconds,
      })
    }
    this.reviewAdmission()
  }

  /** Ends what the runtime holds and nobody knows; only once every source has spoken. */
  endOrphans(): void {
    for (const observed of this.#deps.observedPods().values()) {
      if (this.#workers.has(observed.uid)) continue
      this.#endOrphan(observed)
    }
  }

  /** Lets go of all: resolves when every pass under way has let go too. */
  async stop(): Promise<void> {
    for (const { next } of this.#entries.values()) next?.replacement?.cancel()
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop()))
  }

  /** A worker reached another stage. */
  onStage(worker: PodWorker): void {
    if (worker.state.stage === 'gone') this.#workers.delete(worker.ref.uid)
    if (worker.state.stage === 'stopped' || worker.state.stage === 'gone') this.#releaseName(worker)
    if (worker.state.isSettled) for (const before of this.#predecessors(worker)) before.cleanUp()
    this.reviewAdmission()
  }

  /** Admits what waits, one by one; called whenever room may have been made. */
  reviewAdmission(): void {
    this.#admitWaiting(() => true)
    for (const worker of this.#workers.values()) this.#judgeResize(worker)
    for (const { next } of this.#entries.values()) next?.replacement?.review()
  }

  /** Before anybody else is let in: what it is given, others can't have. */
  #judgeResize(worker: PodWorker): void {
    if (!worker.state.wantsToGrow) return
    worker.judgeResize(this.#deps.admission.refuseResize(worker.state.classedPod, this.#neighbours(worker)))
  }

  #admitWaiting(isMeant: (worker: PodWorker) => boolean): void {
    for (const worker of this.#workers.values()) {
      const decided =
        worker.state.admission?.kind === 'admitted' || worker.state.admission?.kind === 'rejected'
      if (decided || worker.state.stage !== 'waiting' || worker.state.record.failed !== undefined) continue
      if (isMeant(worker)) worker.admit(this.#admissionOf(worker))
    }
  }

  /** No pod's trouble keeps the others from being brought in line. */
  #tryToWant(key: PodKey, wanted: WantedPod): void {
    try {
      this.#want(key, wanted)
    } catch (error) {
      this.#deps.logger.error({ pod: key, err: error }, 'a pod cannot be brought in line')
    }
  }

  #want(key: PodKey, wanted: WantedPod): void {
    const entry = this.#entry(key)
    const { worker } = entry
    if (worker === undefined) return this.#startNew(key, entry, wanted)
    // What was made ready for this very version is of use still.
    const ready = sameData(entry.next?.wanted.document.manifest, wanted.document.manifest)
      ? entry.next
      : undefined
    if (isLeaving(worker)) {
      if (ready !== undefined) {
        entry.next = { wanted, replacement: ready.replacement }
        return undefined
      }
      this.#dropNext(entry)
      entry.next = { wanted, replacement: undefined }
      return undefined
    }
    const { document, source } = wanted
    if (!makesNewPod(worker.state.pod, document.pod, worker.state.isPastChange)) {
      this.#dropNext(entry)
      const refusal = this.#deps.admission.refusal(document.pod, source)
      const isNew = !sameData(worker.state.record.manifest, document.manifest)
      entry.refused = refusal === undefined || !isNew ? undefined : { wanted, message: refusal }
      if (entry.refused !== undefined) return worker.start()
      const place = { source, path: document.place.path }
      worker.update({ pod: document.pod, manifest: document.manifest, place })
      this.#judgeResize(worker)
      worker.start()
      return undefined
    }
    if (ready !== undefined) return undefined
    this.#dropNext(entry)
    worker.start()
    entry.next = { wanted, replacement: this.#replace(worker, wanted) }
    return undefined
  }

  /** Make before break: the old pod ends only when the new one could start. */
  #replace(worker: PodWorker, { document: { pod }, source }: WantedPod): Replacement {
    const replacement = new Replacement({
      pod,
      ref: worker.ref,
      images: this.#deps.images,
      clock: this.#deps.clock,
      admit: () => {
        const missing = this.#deps.missingReference(pod)
        if (missing !== undefined)
          return { kind: 'blocked', reason: 'CreateContainerConfigError', message: missing }
        return this.#deps.admission.admit({
          pod,
          source,
          neighbours: this.#neighbours(worker),
          isAccepted: false,
          classes: undefined,
        })
      },
      // What doesn't run has nothing to lose.
      needsCare: () => worker.state.hasRunning,
      onReady: () => {
        worker.end({
          cause: 'replaced',
          reason: 'Killing',
          message: 'The manifest was changed',
          graceSeconds: worker.state.pod.spec.terminationGracePeriodSeconds,
        })
      },
    })
    replacement.begin()
    return replacement
  }

  #startNew(key: PodKey, entry: Entry, wanted: WantedPod, pulled?: ReadonlySet<string>): void {
    const { document, source } = wanted
    const found = this.#findUnrecorded(key)
    if (found !== undefined && !this.#matches(found, document)) {
      entry.worker = this.#endOrphan(found)
      entry.next = { wanted, replacement: undefined }
      return
    }
    const nowMs = this.#deps.clock.wallMs()
    const createdAtMs = found?.sandboxes[0]?.createdAtMs
    const record: PodRecord = {
      version: 1,
      uid: found?.uid ?? newUuid(),
      namespace: document.pod.metadata.namespace,
      name: document.pod.metadata.name,
      source,
      path: document.place.path,
      manifest: document.manifest,
      acceptedAtMs: createdAtMs ?? nowMs,
      ...(createdAtMs === undefined ? {} : { startedAtMs: createdAtMs }),
      conditions: {},
      containers: {},
    }
    const worker = this.#add({
      record,
      pod: document.pod,
      saved: false,
      ...(found === undefined ? {} : { observed: found }),
      ...(pulled === undefined ? {} : { pulled }),
    })
    entry.worker = worker
    worker.admit(this.#admissionOf(worker))
    worker.start()
  }

  /** A pod of this name that the runtime holds although its record is lost. */
  #findUnrecorded(key: PodKey): ObservedPod | undefined {
    const known = this.#workers
    return [...this.#deps.observedPods().values()].find((pod) => podKey(pod) === key && !known.has(pod.uid))
  }

  #matches(observed: ObservedPod, document: PodDocument): boolean {
    const [sandbox] = observed.sandboxes
    return (
      sandbox !== undefined && readManifestHash(sandbox.annotations) === podManifestHash(document.manifest)
    )
  }

  #endOrphan(observed: ObservedPod): PodWorker {
    const nowMs = this.#deps.clock.wallMs()
    const manifest = orphanManifest(observed)
    const pod = this.#deps.podFromManifest(manifest)
    const worker = this.#add({
      record: {
        version: 1,
        uid: observed.uid,
        namespace: observed.namespace,
        name: observed.name,
        source: 'file',
        path: '',
        manifest,
        acceptedAtMs: observed.sandboxes.at(-1)?.createdAtMs ?? nowMs,
        conditions: {},
        containers: {},
      },
      pod,
      saved: true,
      observed,
    })
    worker.end({
      cause: 'orphaned',
      reason: 'Killing',
      message: 'The pod is not wanted and podd has no record of it',
      graceSeconds: pod.spec.terminationGracePeriodSeconds,
    })
    worker.start()
    return worker
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

  /** Pods of the same name that were stopped and not yet cleared away. */
  #predecessors({ ref }: PodWorker): PodWorker[] {
    const key = podKey(ref)
    return [...this.#workers.values()].filter(
      (worker) =>
        worker.state.stage === 'stopped' && worker.ref.uid !== ref.uid && podKey(worker.ref) === key,
    )
  }

  #neighbours(self: PodWorker): Neighbour[] {
    return [...this.#workers.values()]
      .filter((worker) => worker !== self && worker.state.holdsResources)
      .map(({ ref, state }) => ({ key: podKey(ref), pod: state.allocatedPod, hasEnded: state.hasEnded }))
  }

  #admissionOf(worker: PodWorker): Admission {
    const { pod, record } = worker.state
    return this.#deps.admission.admit({
      pod,
      source: record.source,
      neighbours: this.#neighbours(worker),
      isAccepted: record.startedAtMs !== undefined,
      classes: record.classes,
    })
  }

  #add(input: NewWorker): PodWorker {
    const worker = this.#deps.makeWorker(input)
    this.#workers.set(worker.ref.uid, worker)
    return worker
  }

  #entry(key: PodKey): Entry {
    const known = this.#entries.get(key)
    if (known !== undefined) return known
    const fresh: Entry = { worker: undefined, next: undefined, refused: undefined }
    this.#entries.set(key, fresh)
    return fresh
  }

  #dropNext(entry: Entry): void {
    entry.next?.replacement?.cancel()
    entry.next = undefined
    entry.refused = undefined
  }
}

/** Who was let in before has what those wait for who were not, whatever the clock said when they came. */
function inOrderOfAdmission(records: readonly PodRecord[]): readonly PodRecord[] {
  const waits = (record: PodRecord): number => (record.startedAtMs === undefined ? 1 : 0)
  return records.toSorted((a, b) => waits(a) - waits(b) || a.acceptedAtMs - b.acceptedAtMs)
}

/** On its way out for good: its name will be free. */
function isLeaving(worker: PodWorker): boolean {
  return (
    worker.state.stage === 'stopped' ||
    worker.state.stage === 'gone' ||
    (worker.state.stage === 'ending' && worker.state.goesAway)
  )
}
