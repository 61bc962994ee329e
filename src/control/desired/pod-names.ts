import type { Clock } from '../../base/clock.ts'
import { newUuid } from '../../base/random.ts'
import { trace } from '../../base/trace.ts'
import { newPodRecord } from '../../decide/sources/new-pod-record.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodWorker } from '../worker/pod-worker.ts'
import type { AdmissionQueue } from './admission-queue.ts'
import { endAsSpecified, isLeaving, isOfDocument, newEntry } from './pod-entry.ts'
import type { PodEntry, WantedPod } from './pod-entry.ts'
import type { PodWorkers } from './pod-workers.ts'
import type { ReplacementQueue } from './replacement-queue.ts'

export interface PodNamesDeps {
  /** The identity under which a pod was shown before its worker began; can be taken once. */
  readonly takeShown: (key: PodKey) => Pick<PodRecord, 'uid' | 'acceptedAtMs'> | undefined
  readonly clock: Clock
  readonly workers: PodWorkers
  readonly queue: Pick<AdmissionQueue, 'admit' | 'noteChange'>
  readonly replacements: Pick<ReplacementQueue, 'cancel'>
}

/** The names of the desired pods: which pod holds each one, and which one waits for it. */
export class PodNames {
  readonly #deps: PodNamesDeps
  readonly #entries = new Map<PodKey, PodEntry>()

  constructor(deps: PodNamesDeps) {
    this.#deps = deps
  }

  [Symbol.iterator](): IterableIterator<[PodKey, PodEntry]> {
    return this.#entries[Symbol.iterator]()
  }

  find(key: PodKey): PodEntry | undefined {
    return this.#entries.get(key)
  }

  /** Creates it where there is none. */
  entry(key: PodKey): PodEntry {
    const entry = this.#entries.get(key) ?? newEntry()
    this.#entries.set(key, entry)
    return entry
  }

  /** Of two records of one name, the one that isn't ending holds it; of two such, the newer one. */
  adopt(worker: PodWorker): void {
    const entry = this.entry(podKey(worker.ref))
    const before = entry.worker
    if (before === undefined || !isLeaving(worker)) entry.worker = worker
    if (before === undefined || isLeaving(before) || isLeaving(worker)) return
    endAsSpecified(before, 'replaced', 'Another pod has its name')
  }

  /** Forgets the version that waits for the name. */
  dropNext(key: PodKey, entry: PodEntry): void {
    if (entry.next?.replacement !== undefined) this.#deps.replacements.cancel(key)
    entry.next = undefined
    entry.refused = undefined
  }

  /**
   * Starts a pod under a name that no worker holds.
   * @param pulled the images that were pulled for it already
   */
  start(key: PodKey, entry: PodEntry, wanted: WantedPod, pulled?: ReadonlySet<string>): void {
    const { takeShown, clock, workers, queue } = this.#deps
    const { document, source } = wanted
    const found = workers.findUnrecorded(key)
    const fate = found && workers.fateOf(found, isOfDocument(found, document))
    // It holds the name for as long as it runs.
    if (fate === 'leave') {
      entry.held = wanted
      return
    }
    entry.held = undefined
    if (found !== undefined && fate === 'end') {
      entry.worker = workers.endOrphan(found)
      queue.noteChange()
      entry.next = { wanted, replacement: undefined }
      return
    }
    const shown = takeShown(key)
    const record = newPodRecord({
      uid: document.kept?.uid ?? found?.uid ?? shown?.uid ?? newUuid(),
      document,
      source,
      nowMs: document.kept?.createdAtMs ?? shown?.acceptedAtMs ?? clock.wallMs(),
      createdAtMs: found?.sandboxes[0]?.createdAtMs,
    })
    const worker = workers.add({
      record,
      pod: document.pod,
      saved: false,
      ...(found === undefined ? {} : { observed: found }),
      ...(pulled === undefined ? {} : { pulled }),
    })
    entry.worker = worker
    trace?.('desired', worker.ref.name)
    queue.admit(worker)
  }

  /** The name is free: what was waiting for it starts. */
  release(worker: PodWorker): void {
    const key = podKey(worker.ref)
    const entry = this.#entries.get(key)
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
      this.#entries.delete(key)
      worker.cleanUp()
      return
    }
    worker.supersede()
    this.start(key, entry, next.wanted, next.replacement?.pulled)
  }
}
