import type {
  ClaimObject,
  ConfigObject,
  EndpointSliceObject,
  IdleObject,
  LeaseObject,
  NamespaceObject,
  NodeObject,
  PodTemplateObject,
  PriorityClassObject,
  RuntimeClassObject,
  ServiceAccountObject,
  ServiceObject,
  WorkloadObject,
  WorkloadRevisionObject,
} from '../../api/cluster-objects.ts'
import type { EventObject, PodObject, ResourceChange, ResourceObject } from '../../api/resource.ts'
import { sameData } from '../../base/json.ts'

/**
 * Gives each change of any kind its revision: one counter, which only rises, also across restarts of podd. It starts from
 * the wall time in microseconds, beyond what an earlier podd reached as long as that made fewer than a thousand changes in
 * a millisecond; where the clock was set back, `continueAfter` helps.
 */
export class Revisions {
  #latest: number
  #unknownUntil: number

  constructor(wallMs: number) {
    this.#latest = Math.max(1, Math.floor(wallMs)) * 1000
    this.#unknownUntil = this.#latest
  }

  get latest(): number {
    return this.#latest
  }

  next(): number {
    this.#latest += 1
    return this.#latest
  }

  /**
   * Continues after an earlier podd, which has reached this revision and may have gone somewhat further. Its changes
   * are unknown.
   */
  continueAfter(revision: number): void {
    if (revision + unrecorded <= this.#latest) return
    this.#latest = revision + unrecorded
    this.#unknownUntil = this.#latest
  }

  /** The changes up to this revision are those of an earlier podd. */
  get unknownUntil(): number {
    return this.#unknownUntil
  }
}

/** More changes than a podd makes between two writes of its newest revision. */
const unrecorded = 1_000_000

/** How many changes a kind's store remembers; older ones are `Expired` for a watch. */
const maxChanges = 512
const maxHistoryBytes = 512 * 1024

interface Remembered<T> {
  readonly key: string
  readonly change: ResourceChange<T>
  readonly sizeBytes: number
}

/**
 * The objects of one kind as the API shows them, and their newest changes. It has one writer. Readers list, read the
 * changes after a revision, and subscribe to changes in the order of the revisions.
 */
export class ResourceStore<T extends ResourceObject> {
  readonly #revisions: Revisions
  readonly #compare: ((a: T, b: T) => number) | undefined
  readonly #objects = new Map<string, T>()
  readonly #history: Remembered<T>[] = []
  readonly #subscribers = new Set<(change: ResourceChange<T>) => void>()
  #historyBytes = 0
  /** The changes up to this revision are forgotten. */
  #forgotten: number

  /** @param compare the order of lists; by default that of the last changes */
  constructor(revisions: Revisions, compare?: (a: T, b: T) => number) {
    this.#revisions = revisions
    this.#compare = compare
    this.#forgotten = revisions.latest
  }

  /** The revision of a list made now. */
  get revision(): number {
    return this.#revisions.latest
  }

  /** Shows the object and returns it with its revision. An equal object is no change. */
  put(key: string, object: T): T {
    const previous = this.#objects.get(key)
    if (
      previous !== undefined &&
      sameData(withRevision(object, previous.metadata.resourceVersion ?? ''), previous)
    )
      return previous
    const revision = this.#revisions.next()
    const shown = withRevision(object, String(revision))
    if (this.#compare === undefined) this.#objects.delete(key)
    this.#objects.set(key, shown)
    const type = previous === undefined ? 'ADDED' : 'MODIFIED'
    this.#tell(key, { type, object: shown, revision, previous })
    return shown
  }

  remove(key: string): void {
    const previous = this.#objects.get(key)
    if (previous === undefined) return
    this.#objects.delete(key)
    const revision = this.#revisions.next()
    const object = withRevision(previous, String(revision))
    this.#tell(key, { type: 'DELETED', object, revision, previous })
  }

  /** Replaces the content: puts each of these, and removes all others. */
  replaceAll(objects: ReadonlyMap<string, T>): void {
    for (const key of this.#objects.keys()) if (!objects.has(key)) this.remove(key)
    for (const [key, object] of objects) this.put(key, object)
  }

  get(key: string): T | undefined {
    return this.#objects.get(key)
  }

  list(): readonly T[] {
    return this.#sorted(this.#objects)
  }

  /** The objects of `list`, in no order. */
  values(): Iterable<T> {
    return this.#objects.values()
  }

  #isForgotten(revision: number): boolean {
    return revision < Math.max(this.#forgotten, this.#revisions.unknownUntil)
  }

  /** The list at a revision; undefined where that is forgotten or in the future. */
  listAt(revision: number): readonly T[] | undefined {
    if (this.#isForgotten(revision) || revision > this.revision) return undefined
    const objects = new Map(this.#objects)
    for (const { key, change } of this.#history.toReversed()) {
      if (change.revision <= revision) break
      objects.delete(key)
      if (change.previous !== undefined) objects.set(key, change.previous)
    }
    return this.#sorted(objects)
  }

  /** The changes after a revision, in their order; undefined where some of them are forgotten. */
  changesAfter(revision: number): readonly ResourceChange<T>[] | undefined {
    if (this.#isForgotten(revision)) return undefined
    return this.#history.flatMap(({ change }) => (change.revision > revision ? [change] : []))
  }

  /** Calls `listener` for each change from now on, in order; all listeners get the same objects. It never throws. */
  subscribe(listener: (change: ResourceChange<T>) => void): () => void {
    this.#subscribers.add(listener)
    return () => {
      this.#subscribers.delete(listener)
    }
  }

  #sorted(objects: ReadonlyMap<string, T>): readonly T[] {
    const compare = this.#compare ?? byRevision
    return [...objects.values()].sort(compare)
  }

  #tell(key: string, change: ResourceChange<T>): void {
    const sizeBytes = JSON.stringify(change.object).length
    this.#history.push({ key, change, sizeBytes })
    this.#historyBytes += sizeBytes
    while (this.#history.length > maxChanges || this.#historyBytes > maxHistoryBytes) {
      const oldest = this.#history.shift()
      if (oldest === undefined) break
      this.#historyBytes -= oldest.sizeBytes
      this.#forgotten = oldest.change.revision
    }
    for (const subscriber of this.#subscribers) subscriber(change)
  }
}

/** As an API server lists: by namespace, then by name; of two with the same name the older one first. */
export function byName(a: ResourceObject, b: ResourceObject): number {
  return (
    compareTexts(a.metadata.namespace ?? '', b.metadata.namespace ?? '') ||
    compareTexts(a.metadata.name, b.metadata.name) ||
    compareTexts(a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? '')
  )
}

function byRevision(a: ResourceObject, b: ResourceObject): number {
  return Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion)
}

function compareTexts(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}

function withRevision<T extends ResourceObject>(object: T, resourceVersion: string): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion } }
}

export type ShownResources = ReturnType<typeof createShown>

/**
 * Everything that the API shows, kind by kind, all on one counter of revisions.
 * @param wallMs now
 */
export function createShown(wallMs: number) {
  const revisions = new Revisions(wallMs)
  const byNames = <T extends ResourceObject>() => new ResourceStore<T>(revisions, byName)
  return {
    revisions,
    /** Written by StatusStore. */
    pods: byNames<PodObject>(),
    /** Written by RingEventRecorder, ordered by the last occurrence. */
    events: new ResourceStore<EventObject>(revisions),
    /** These three are written by LocalObjects. */
    configmaps: byNames<ConfigObject>(),
    secrets: byNames<ConfigObject>(),
    persistentvolumeclaims: byNames<ClaimObject>(),
    /** These are written by ClusterObjects. */
    namespaces: byNames<NamespaceObject>(),
    serviceaccounts: byNames<ServiceAccountObject>(),
    nodes: byNames<NodeObject>(),
    priorityclasses: byNames<PriorityClassObject>(),
    runtimeclasses: byNames<RuntimeClassObject>(),
    /** These are written by `showKept`. */
    leases: byNames<LeaseObject>(),
    podtemplates: byNames<PodTemplateObject>(),
    roles: byNames<IdleObject>(),
    rolebindings: byNames<IdleObject>(),
    clusterroles: byNames<IdleObject>(),
    clusterrolebindings: byNames<IdleObject>(),
    poddisruptionbudgets: byNames<IdleObject>(),
    storageclasses: byNames<IdleObject>(),
    ingressclasses: byNames<IdleObject>(),
    customresourcedefinitions: byNames<IdleObject>(),
    /** Written by LocalObjects. */
    services: byNames<ServiceObject>(),
    /** These five are written by Workloads. */
    deployments: byNames<WorkloadObject>(),
    statefulsets: byNames<WorkloadObject>(),
    daemonsets: byNames<WorkloadObject>(),
    jobs: byNames<WorkloadObject>(),
    cronjobs: byNames<WorkloadObject>(),
    /** These two are written when they are asked for (`showRevisions`). */
    replicasets: byNames<WorkloadRevisionObject>(),
    controllerrevisions: byNames<WorkloadRevisionObject>(),
    /** Written by ServiceNames. */
    endpointslices: byNames<EndpointSliceObject>(),
  }
}
