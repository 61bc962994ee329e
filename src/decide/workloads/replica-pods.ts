/*
 * Workloads whose pods run on: which pods a Deployment, StatefulSet or DaemonSet is to have, and which of them, of those
 * that there are, has its turn to be replaced.
 */
import { jsonAt, objectOrEmpty, sameData, textAt } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { ObjectDocument, PodDocument } from '../../pod/objects/document.ts'
import { objectFromManifest } from '../../pod/objects/local-object.ts'
import type { LocalObject } from '../../pod/objects/local-object.ts'
import { isReplicaKind, templatePath } from '../../pod/objects/workload-kinds.ts'
import type { DaemonSet, Deployment, StatefulSet } from '../../pod/objects/workload-kinds.ts'
import { podFromManifest } from '../../pod/schema/default-pod.ts'

/** A pod of a workload, as far as its turn depends on it. */
export interface WorkloadPod {
  /** As its workload calls it. */
  readonly name: string
  /** What it was made from, under that name. */
  readonly manifest: JsonObject
  /** `unknown`: what runs of it is not known yet. `leaving`: it is ending, and its name will be free. */
  readonly state: 'unknown' | 'unready' | 'ready' | 'leaving'
  /** Since when it is Ready; wall time. */
  readonly readySinceMs?: number | undefined
}

/** What a workload is to have now. */
export interface Expansion {
  readonly pods: readonly PodDocument[]
  /** When time alone may change it; wall time. */
  readonly wakeAtMs: number | undefined
}

export type ReplicaWorkload = Deployment | StatefulSet | DaemonSet
export interface ReplicaDocument extends ObjectDocument {
  readonly object: ReplicaWorkload
}

export function isReplicaDocument(document: ObjectDocument): document is ReplicaDocument {
  return isReplicaKind(document.object.kind)
}

/** Makes what documents of workloads say: once for each document, so that it is known again by identity. */
export class WorkloadTargets {
  readonly #pods = new WeakMap<ObjectDocument, readonly PodDocument[]>()
  readonly #claims = new WeakMap<ObjectDocument, readonly ObjectDocument[]>()

  /** Each pod by the newest template; of other documents none. */
  podsOf(document: ObjectDocument): readonly PodDocument[] {
    if (!isReplicaDocument(document)) return none
    const known = this.#pods.get(document)
    if (known !== undefined) return known
    const pods = makePods(document)
    this.#pods.set(document, pods)
    return pods
  }

  /** The claims of each pod of a StatefulSet; of other documents none. */
  claimsOf(document: ObjectDocument): readonly ObjectDocument[] {
    const { object } = document
    if (object.kind !== 'StatefulSet' || object.spec.volumeClaimTemplates.length === 0) return none
    const known = this.#claims.get(document)
    if (known !== undefined) return known
    const claims = ordinalsOf(object).flatMap((ordinal) =>
      makeClaims(document, `${object.metadata.name}-${ordinal}`),
    )
    this.#claims.set(document, claims)
    return claims
  }
}

const none: readonly never[] = []

/** The first of these times; undefined where there is none, or it never comes. */
export function soonest(...times: readonly (number | undefined)[]): number | undefined {
  const first = Math.min(...times.map((time) => time ?? Infinity))
  return Number.isFinite(first) ? first : undefined
}

export function ordinalsOf({ kind, spec }: ReplicaWorkload): readonly number[] {
  if (kind === 'DaemonSet') return [0]
  const start = kind === 'StatefulSet' ? (spec.ordinals?.start ?? 0) : 0
  return Array.from({ length: spec.replicas }, (_, index) => start + index)
}

/** How long each of its pods has to be Ready, and may take for that; what is left out follows podd's settings. */
function progressOf({ kind, spec }: ReplicaWorkload): PodDocument['progress'] {
  const deadline = kind === 'Deployment' ? spec.progressDeadlineSeconds : undefined
  if (spec.minReadySeconds === 0 && deadline === undefined) return undefined
  return {
    ...(spec.minReadySeconds > 0 && { minReadyMs: spec.minReadySeconds * 1000 }),
    ...(deadline !== undefined && { deadlineMs: deadline * 1000 }),
  }
}

function makePods(document: ReplicaDocument): readonly PodDocument[] {
  const { object } = document
  const progress = progressOf(object)
  return ordinalsOf(object).map((ordinal) => {
    const name = `${object.metadata.name}-${ordinal}`
    const made = podOf(document, name)
    const manifest = object.kind === 'StatefulSet' ? asMember(made, object, { name, ordinal }) : made
    return toDocument(document, manifest, progress)
  })
}

/** A pod's manifest by a workload's template. */
export function podOf({ object, manifest }: ObjectDocument, name: string): JsonObject {
  const template = objectOrEmpty(jsonAt(manifest, ...(templatePath(object.kind) ?? [])))
  const namespace = 'namespace' in object.metadata ? object.metadata.namespace : 'default'
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...objectOrEmpty(template['metadata']), name, namespace },
    spec: template['spec'] ?? {},
  }
}

export function toDocument(
  { object, place, kept }: ObjectDocument,
  manifest: JsonObject,
  progress?: PodDocument['progress'],
): PodDocument {
  const owner = { kind: object.kind, name: object.metadata.name, ...(kept && { uid: kept.uid }) }
  return { pod: podFromManifest(manifest), manifest, place, owner, ...(progress && { progress }) }
}

/** The identity of a pod of a StatefulSet (`pkg/controller/statefulset/stateful_set_utils.go`, 1.36). */
function asMember(
  pod: JsonObject,
  { spec: { serviceName, volumeClaimTemplates } }: StatefulSet,
  { name, ordinal }: { readonly name: string; readonly ordinal: number },
): JsonObject {
  const metadata = objectOrEmpty(pod['metadata'])
  const spec = objectOrEmpty(pod['spec'])
  const claims = volumeClaimTemplates.map(({ metadata: { name: claim } }): JsonObject => ({
    name: claim,
    persistentVolumeClaim: { claimName: `${claim}-${name}` },
  }))
  const given: readonly Json[] = Array.isArray(spec['volumes']) ? spec['volumes'] : []
  const others = given.filter((volume) => !claims.some((claim) => claim['name'] === jsonAt(volume, 'name')))
  return {
    ...pod,
    metadata: {
      ...metadata,
      labels: {
        ...objectOrEmpty(metadata['labels']),
        'statefulset.kubernetes.io/pod-name': name,
        'apps.kubernetes.io/pod-index': String(ordinal),
      },
    },
    spec: {
      ...spec,
      hostname: name,
      ...(serviceName !== '' && { subdomain: serviceName }),
      ...(claims.length + others.length > 0 && { volumes: [...claims, ...others] }),
    },
  }
}

function makeClaims({ object, manifest, place }: ObjectDocument, podName: string): readonly ObjectDocument[] {
  const templates = jsonAt(manifest, 'spec', 'volumeClaimTemplates')
  const namespace = 'namespace' in object.metadata ? object.metadata.namespace : 'default'
  const given: readonly Json[] = Array.isArray(templates) ? templates : []
  return given.map((template) => {
    const metadata = objectOrEmpty(jsonAt(template, 'metadata'))
    const claimName = textAt(metadata, 'name') ?? ''
    const claim: JsonObject = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { ...metadata, name: `${claimName}-${podName}`, namespace },
      spec: jsonAt(template, 'spec') ?? {},
    }
    const owner = { kind: object.kind, name: object.metadata.name }
    return { object: objectFromManifest(claim), manifest: claim, place, owner }
  })
}

/**
 * The pods that a workload is to have now: those that wait for their turn stay as they are. A pod whose template changed
 * is replaced by one of its own name; of those that are available only as many at a time as may be missing. So a
 * template that doesn't work stops at the first ones (`pkg/controller/deployment/rolling.go`,
 * `pkg/controller/statefulset/stateful_set_control.go`, 1.36).
 * @param targets its pods by the newest template
 * @param pods those that there are
 * @param time.proofMs how long a replaced pod has to be Ready before the next one is replaced, where its workload doesn't say
 */
export function expandReplicas(
  document: ReplicaDocument,
  targets: readonly PodDocument[],
  pods: readonly WorkloadPod[],
  { nowMs, proofMs }: { readonly nowMs: number; readonly proofMs: number },
): Expansion {
  const { object } = document
  const known = new Map(pods.map((pod) => [pod.name, pod]))
  const minReadyMs = object.spec.minReadySeconds * 1000
  const provenMs = minReadyMs > 0 ? minReadyMs : proofMs
  const isReadyFor = (pod: WorkloadPod | undefined, ms: number): boolean =>
    pod?.state === 'ready' && nowMs - (pod.readySinceMs ?? nowMs) >= ms
  const slots = targets.map((target): Slot => {
    const pod = known.get(target.pod.metadata.name)
    const isStale = pod !== undefined && !sameData(pod.manifest, target.manifest)
    const isProven = isReadyFor(pod, isStale ? minReadyMs : provenMs)
    return { target, pod, isStale, isAvailable: isReadyFor(pod, minReadyMs), isProven }
  })
  const dueMs = pods.flatMap(({ state, readySinceMs = nowMs }) =>
    state === 'ready' ? [readySinceMs + minReadyMs, readySinceMs + provenMs] : [],
  )
  const extra = selectSurplus(document, targets, pods)
  return {
    pods: [...selectPods(document, slots), ...extra],
    wakeAtMs: soonest(...dueMs.filter((atMs) => atMs > nowMs)),
  }
}

interface Slot {
  readonly target: PodDocument
  readonly pod: WorkloadPod | undefined
  /** It was made from another template. */
  readonly isStale: boolean
  /** It is Ready for as long as its workload says. */
  readonly isAvailable: boolean
  /** It may count as one by whose template others are replaced. */
  readonly isProven: boolean
}

function selectPods(document: ReplicaDocument, slots: readonly Slot[]): readonly PodDocument[] {
  const { object } = document
  const isPaused = object.kind === 'Deployment' && object.spec.paused
  if (object.kind === 'Deployment' && object.spec.strategy?.type === 'Recreate' && !isPaused) {
    // None of the old ones runs beside a new one.
    const isOver = slots.every(({ isStale }) => !isStale)
    return slots.flatMap(({ pod, isStale, target }) =>
      isOver || (pod !== undefined && !isStale) ? [target] : [],
    )
  }
  const turns = isPaused ? new Set<Slot>() : selectTurns(object, slots)
  const old = isPaused ? slots.find(({ isStale }) => isStale)?.pod : undefined
  const wanted: PodDocument[] = []
  let mayMake = true
  for (const slot of slots) {
    const { pod, target, isStale } = slot
    if (pod === undefined) {
      const { name } = target.pod.metadata
      if (mayMake)
        wanted.push(
          old === undefined ? target : toDocument(document, renamed(old.manifest, name), target.progress),
        )
    } else
      wanted.push(isStale && !turns.has(slot) ? toDocument(document, pod.manifest, target.progress) : target)
    if (isOrdered(object) && !slot.isAvailable) mayMake = false
  }
  return wanted
}

/** Whether none of its pods is replaced before somebody deletes it. */
export function isOnDelete(object: LocalObject): boolean {
  return (
    (object.kind === 'StatefulSet' || object.kind === 'DaemonSet') &&
    object.spec.updateStrategy?.type === 'OnDelete'
  )
}

function isOrdered(object: ReplicaWorkload): boolean {
  return object.kind === 'StatefulSet' && object.spec.podManagementPolicy === 'OrderedReady'
}

export function renamed(manifest: JsonObject, name: string): JsonObject {
  return { ...manifest, metadata: { ...objectOrEmpty(manifest['metadata']), name } }
}

/** The pods whose turn it is to be replaced: what doesn't work first, then as many as may be missing. */
function selectTurns(object: ReplicaWorkload, slots: readonly Slot[]): ReadonlySet<Slot> {
  const stale = slots.filter(({ isStale }) => isStale)
  if (isOnDelete(object)) return new Set(stale.filter(({ pod }) => pod?.state === 'leaving'))
  // The highest ordinal comes first.
  const inOrder = object.kind === 'StatefulSet' ? stale.toReversed() : stale
  const isDown = ({ pod }: Slot): boolean => pod?.state === 'unready' || pod?.state === 'leaving'
  const down = inOrder.filter((slot) => isDown(slot))
  const room = maxUnavailable(object) - slots.filter(({ isProven }) => !isProven).length
  const others = inOrder.filter((slot) => !isDown(slot) && slot.pod?.state === 'ready')
  return new Set([...down, ...others.slice(0, Math.max(0, room))])
}

/** How many pods may be missing while they are replaced: at least one, as there is no pod beside. */
export function maxUnavailable(object: ReplicaWorkload): number {
  if (object.kind === 'DaemonSet') return 1
  const share =
    object.kind === 'Deployment'
      ? (object.spec.strategy?.rollingUpdate?.maxUnavailable ?? '25%')
      : (object.spec.updateStrategy?.rollingUpdate?.maxUnavailable ?? 1)
  const { replicas } = object.spec
  const count = typeof share === 'number' ? share : Math.floor((replicas * Number.parseInt(share, 10)) / 100)
  return Math.max(1, count)
}

/** Pods beyond the replicas that stay for now: those of an ordered StatefulSet end one after the other, the highest first. */
function selectSurplus(
  document: ReplicaDocument,
  targets: readonly PodDocument[],
  pods: readonly WorkloadPod[],
): readonly PodDocument[] {
  if (!isOrdered(document.object)) return []
  const names = new Set(targets.map(({ pod }) => pod.metadata.name))
  const surplus = pods.filter(({ name }) => !names.has(name))
  const ordinal = ({ name }: WorkloadPod): number => Number(name.slice(name.lastIndexOf('-') + 1))
  const staying = surplus
    .filter(({ state }) => state !== 'leaving')
    .toSorted((a, b) => ordinal(a) - ordinal(b))
  const isEnding = staying.length < surplus.length
  return staying.slice(0, isEnding ? undefined : -1).map(({ manifest }) => toDocument(document, manifest))
}
