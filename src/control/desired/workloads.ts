import { PacedWork } from '../../base/clock.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import { objectOrEmpty, sameData } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import {
  expandReplicas,
  isReplicaDocument,
  isWorkloadDocument,
  WorkloadTargets,
} from '../../decide/workloads/replica-pods.ts'
import type { Expansion, WorkloadPod } from '../../decide/workloads/replica-pods.ts'
import type { ObjectDocument, PodDocument, SourceSnapshot } from '../../pod/objects/document.ts'
import { keyOfObject } from '../../pod/objects/local-object.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { SourceName } from '../../pod/values/ids.ts'
import type { PodWorker } from '../pod/worker.ts'
import type { StatusStore } from '../serving/status-store.ts'
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
  /** Workloads of this source are to have other pods than before. */
  readonly onChange: (source: SourceName) => void
}

/** The workloads of a source, and what they were to have when that was last decided. */
interface SourceWorkloads {
  readonly documents: readonly ObjectDocument[]
  readonly pods: readonly PodDocument[]
  wakeAtMs: number | undefined
}

/**
 * Makes pods from workloads, between what the sources give and the desired pods. What a workload is to have depends on how
 * its pods do: it is decided again with each of their changes, and where time alone makes a difference.
 */
export class Workloads {
  readonly #env: WorkloadEnv
  readonly #targets = new WorkloadTargets()
  readonly #sources = new Map<SourceName, SourceWorkloads>()
  readonly #due = new Set<SourceName>()
  readonly #reviews: PacedWork
  #timer: Timer | undefined
  #unsubscribe: (() => void) | undefined

  constructor(env: WorkloadEnv) {
    this.#env = env
    this.#reviews = new PacedWork(env.clock, () => this.#tryToReview())
  }

  stop(): void {
    this.#reviews.stop()
    this.#timer?.cancel()
    this.#unsubscribe?.()
  }

  /** A snapshot with the pods and claims of its workloads. */
  expand(snapshot: SourceSnapshot): SourceSnapshot {
    const { source } = snapshot
    const documents = snapshot.objects.filter((document) => isWorkloadDocument(document))
    if (documents.length === 0) {
      this.#sources.delete(source)
      return snapshot
    }
    this.#unsubscribe ??= this.#env.statuses.subscribe(({ object }) => this.#note(object.metadata.uid))
    const { pods, wakeAtMs } = this.#decide(source, documents)
    this.#sources.set(source, { documents, pods, wakeAtMs })
    this.#startTimer()
    const claims = documents.flatMap((document) => this.#targets.claimsOf(document))
    return {
      ...snapshot,
      pods: [...snapshot.pods, ...pods],
      ...(claims.length > 0 && { objects: [...snapshot.objects, ...claims] }),
    }
  }

  /** Whether a pod of a workload is to be as this document says, but not yet: others come first. */
  awaitsTurn(source: SourceName, { pod: { metadata }, manifest, owner }: PodDocument): boolean {
    if (owner === undefined) return false
    const name = this.#ownName(metadata.name)
    const key = podKey({ namespace: metadata.namespace, name })
    const wanted = this.#sources.get(source)?.pods.find((document) => podKey(document.pod.metadata) === key)
    return wanted === undefined || !sameData(wanted.manifest, renamed(manifest, name))
  }

  /** As its workload calls it. */
  #ownName(name: string): string {
    const { podNameSuffix: suffix } = this.#env
    return suffix !== '' && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name
  }

  /** A pod reached another stage. */
  noteStage({ state }: PodWorker): void {
    if (state.record.owner !== undefined) this.#ask(state.record.source)
  }

  #note(uid: string): void {
    const record = this.#env.workers.get(uid)?.state.record
    if (record?.owner !== undefined) this.#ask(record.source)
  }

  #ask(source: SourceName): void {
    if (!this.#sources.has(source)) return
    this.#due.add(source)
    this.#reviews.ask()
  }

  #startTimer(): void {
    this.#timer?.cancel()
    const soonest = Math.min(...[...this.#sources.values()].map(({ wakeAtMs }) => wakeAtMs ?? Infinity))
    if (!Number.isFinite(soonest)) return
    const { clock } = this.#env
    // The wall clock may be set meanwhile.
    const waitMs = Math.min(Math.max(0, soonest - clock.wallMs()), longestWaitMs)
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
    const { pods, wakeAtMs } = this.#decide(source, known.documents)
    known.wakeAtMs = wakeAtMs
    const isSame = pods.length === known.pods.length && pods.every((pod, at) => pod === known.pods[at])
    if (!isSame) this.#env.onChange(source)
  }

  #decide(source: SourceName, documents: readonly ObjectDocument[]): Expansion {
    const known = this.#podsOf(source)
    const before = new Map(
      this.#sources.get(source)?.pods.map((document) => [podKey(document.pod.metadata), document]),
    )
    const expansions = documents.flatMap((document) => {
      if (!isReplicaDocument(document)) return []
      const pods = known.get(keyOfObject(document.object)) ?? []
      const time = { nowMs: this.#env.clock.wallMs(), proofMs: this.#env.proofMs }
      return expandReplicas(document, this.#targets.podsOf(document), pods, time)
    })
    const pods = expansions.flatMap((each) =>
      each.pods.map((pod) => sameAs(before.get(podKey(pod.pod.metadata)), pod)),
    )
    const wakes = expansions.flatMap(({ wakeAtMs }) => wakeAtMs ?? [])
    return { pods, wakeAtMs: wakes.length === 0 ? undefined : Math.min(...wakes) }
  }

  /** The pods that there are, by their workload. */
  #podsOf(source: SourceName): ReadonlyMap<string, readonly WorkloadPod[]> {
    const { workers } = this.#env
    const found = new Map<string, Map<string, WorkloadPod>>()
    for (const worker of workers.all()) {
      const { owner, namespace, source: from } = worker.state.record
      if (owner === undefined || from !== source) continue
      const key = `${owner.kind}/${namespace}/${owner.name}`
      const pods = found.get(key) ?? new Map<string, WorkloadPod>()
      found.set(key, pods)
      const pod = this.#factsOf(worker)
      // One that is leaving may have a successor of its name.
      if (pod.state !== 'leaving' || !pods.has(pod.name)) pods.set(pod.name, pod)
    }
    return new Map([...found].map(([key, pods]) => [key, [...pods.values()]]))
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
      const sinceMs = Date.parse(ready.lastTransitionTime ?? '')
      return { name, manifest, state: 'ready', ...(!Number.isNaN(sinceMs) && { readySinceMs: sinceMs }) }
    }
    const isKnown = status !== undefined && worker.state.stage !== 'adopted' && isRuntimeKnown()
    return { name, manifest, state: isKnown ? 'unready' : 'unknown' }
  }
}

const longestWaitMs = 3_600_000

function renamed(manifest: JsonObject, name: string): JsonObject {
  return { ...manifest, metadata: { ...objectOrEmpty(manifest['metadata']), name } }
}

/** The document of before where nothing differs: what didn't change is the same object. */
function sameAs(before: PodDocument | undefined, after: PodDocument): PodDocument {
  return before !== undefined && sameData(documentData(before), documentData(after)) ? before : after
}

function documentData({ manifest, place, owner, progress }: PodDocument): object {
  return { manifest, place, owner, progress }
}
