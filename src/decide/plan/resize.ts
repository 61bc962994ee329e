/*
 * Changes of cpu and memory in place: which containers get others, what a pod keeps until the host has room for more, and
 * the pod as it was admitted and as it runs.
 */
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import {
  boundLimits,
  isResizableInit,
  resizableNames,
  resizableResources,
} from '../../pod/schema/pod-resources.ts'
import type { ResourceList, ResourceLists } from '../../pod/schema/pod-resources.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import { compareQuantities } from '../../pod/values/quantity.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { Pod, PodSpec } from '../../pod/schema/pod-schema.ts'
import { viewContainer } from './container-view.ts'

/** One running container whose resources are to be changed. The pod's own limits count where the container has none. */
export interface ContainerResize {
  readonly container: ObservedContainer
  readonly spec: ContainerSpec
  readonly from: ResourceLists
  readonly to: ResourceLists
}

/** Why the host has no room for a resize: never (`Infeasible`), or not now (`Deferred`). */
export interface ResizeRefusal {
  readonly reason: 'Infeasible' | 'Deferred'
  readonly message: string
}

/** The state of a pod's resize: Kubernetes' conditions PodResizePending and PodResizeInProgress. */
export type ResizeState =
  | (ResizeRefusal & { readonly kind: 'pending' })
  /** It is in progress; `error` is the reason of the last failure. */
  | { readonly kind: 'in-progress'; readonly error: string | undefined }

type Facts = {
  readonly pod: Pod
  readonly observed: ObservedPod
  readonly history: PodRecord['containers']
  /** The pod-level cpu and memory applied to its cgroup; undefined where they never changed. */
  readonly podResources?: ResourceLists | undefined
}

/** The running containers whose resources aren't what the pod asks for. */
export function selectResizes(facts: Facts): readonly ContainerResize[] {
  return resizableContainers(facts.pod.spec).flatMap((spec) => {
    const { observed, history } = facts
    const view = viewContainer({ name: spec.name, observed, history: history[spec.name] })
    if (view.kind !== 'live' || view.container.state !== 'running') return []
    const { container } = view
    const from = boundResources(container, facts)
    const own = resizableResources(spec.resources)
    const to = { ...own, limits: boundLimits(own.limits, facts.pod.spec.resources?.limits ?? {}) }
    return from === undefined || changedResources(from, to).length === 0
      ? []
      : [{ container, spec, from, to }]
  })
}

/** Whether the container has to be restarted for this (`resizePolicy`). */
export function needsRestart({ spec, from, to }: ContainerResize): boolean {
  const changed = changedResources(from, to)
  return spec.resizePolicy.some(
    ({ resourceName, restartPolicy }) =>
      restartPolicy === 'RestartContainer' && changed.some((name) => name === resourceName),
  )
}

/** Whether the memory limit decreases, or is added. */
export function lowersMemoryLimit({ from, to }: Pick<ContainerResize, 'from' | 'to'>): boolean {
  const [before, after] = [from.limits['memory'], to.limits['memory']]
  if (after === undefined) return false
  return before === undefined || compareQuantities(after, before) < 0
}

/** Whether the pod-level cpu or memory differs from the request. */
export function changesPodLevel(facts: Pick<Facts, 'pod' | 'podResources'>): boolean {
  return changedResources(appliedPodLevel(facts), podLevelResources(facts.pod.spec)).length > 0
}

/** The applied resources of a container: from its creation, or from a later resize; undefined where unknown. */
export function appliedResources(
  container: ObservedContainer,
  history: PodRecord['containers'],
): ResourceLists | undefined {
  const resized = history[container.name]?.resized
  return resized?.containerId === container.id ? resized.resources : container.resources
}

/** As appliedResources, with the limits of the pod that bind the container. */
function boundResources(container: ObservedContainer, facts: Facts): ResourceLists | undefined {
  const applied = appliedResources(container, facts.history)
  if (applied === undefined) return undefined
  const podLimits = container.podLimits ?? appliedPodLevel(facts).limits
  return { ...applied, limits: boundLimits(applied.limits, podLimits) }
}

/** The applied pod-level cpu and memory. */
function appliedPodLevel({ pod, podResources }: Pick<Facts, 'pod' | 'podResources'>): ResourceLists {
  return podResources ?? podLevelResources(pod.spec)
}

/** The requested pod-level cpu and memory. */
export function podLevelResources({ resources }: Pick<PodSpec, 'resources'>): ResourceLists {
  return resizableResources(resources ?? { limits: {}, requests: {} })
}

/** Which of cpu and memory differ. */
export function changedResources(from: ResourceLists, to: ResourceLists): readonly ('cpu' | 'memory')[] {
  const same = (a: string | undefined, b: string | undefined): boolean =>
    a === b || (a !== undefined && b !== undefined && compareQuantities(a, b) === 0)
  return resizableNames.filter(
    (name) => !same(from.limits[name], to.limits[name]) || !same(from.requests[name], to.requests[name]),
  )
}

/** The containers whose cpu and memory may change in place. */
function resizableContainers(spec: PodSpec): readonly ContainerSpec[] {
  return [...spec.initContainers.filter((container) => isResizableInit(container)), ...spec.containers]
}

/**
 * The resources with which containers, by name, and the pod itself were admitted, where their manifest requests others.
 */
export type Allocations = NonNullable<PodRecord['allocated']>

/**
 * The resources that a pod and its containers keep while the host's room for a new manifest is unchecked; undefined
 * where it requests no more than before, so that no check is needed.
 * @param open resources held back from earlier manifests
 */
export function computeHeldBack(
  before: PodSpec,
  after: PodSpec,
  open: Allocations = {},
): Allocations | undefined {
  const listed = (spec: PodSpec): readonly (readonly [string, ResourceLists])[] => [
    [podLevel, podLevelResources(spec)],
    ...resizableContainers(spec).map(({ name, resources }) => [name, resizableResources(resources)] as const),
  ]
  const had = new Map(listed(before).map(([name, lists]) => [name, open[name] ?? lists]))
  const changes = listed(after).flatMap(([name, to]) => {
    const from = had.get(name)
    return from === undefined || changedResources(from, to).length === 0 ? [] : [{ name, from, to }]
  })
  if (!changes.some((change) => growsRequests(change))) return undefined
  return Object.fromEntries(changes.map(({ name, from }) => [name, from]))
}

/** Whether it requests more of any resource than before: only then does the host need room for it. */
function growsRequests({ from, to }: { readonly from: ResourceLists; readonly to: ResourceLists }): boolean {
  return resizableNames.some(
    (name) => compareQuantities(to.requests[name] ?? '0', from.requests[name] ?? '0') > 0,
  )
}

/** The pod as it was admitted: with its containers' current resources while its manifest requests more. */
export function podAsAllocated(pod: Pod, allocated: Allocations | undefined): Pod {
  return allocated === undefined ? pod : withResources(pod, new Map(Object.entries(allocated)))
}

/** The pod with the current resources of itself and its running containers. */
export function podAsApplied(facts: Facts): Pod {
  const own = new Map(selectResizes(facts).map((resize) => [resize.spec.name, resize.from]))
  if (changesPodLevel(facts)) own.set(podLevel, appliedPodLevel(facts))
  return own.size === 0 ? facts.pod : withResources(facts.pod, own)
}

/** The pod with the current resources of its running containers, including resizes of this pass. */
export function appliedPod(
  { pod, observed, record }: Pick<Facts, 'pod' | 'observed'> & { readonly record: PodRecord },
  done: readonly ContainerResize[] = [],
): Pod {
  const { containers: history, podResources } = record
  const resized = done.map(({ container: { id, name }, to }) => [
    name,
    { ...history[name], resized: { containerId: id, resources: to } },
  ])
  return podAsApplied({
    pod,
    observed,
    history: { ...history, ...Object.fromEntries(resized) },
    podResources,
  })
}

/** The pod with the pod-level cpu and memory of another version of it. */
export function withPodLevel(pod: Pod, other: Pod): Pod {
  return withResources(pod, new Map([[podLevel, podLevelResources(other.spec)]]))
}

/** The key of the pod itself among container names; no container can have this name. */
const podLevel = '/pod'

/** The pod with other cpu and memory for the containers named, and for itself. */
function withResources(pod: Pod, own: ReadonlyMap<string, ResourceLists>): Pod {
  const changed = (container: ContainerSpec): ContainerSpec => {
    const resources = own.get(container.name)
    return resources === undefined
      ? container
      : { ...container, resources: withResizable(container.resources, resources) }
  }
  const ofPod = own.get(podLevel)
  const spec = ofPod === undefined ? pod.spec : withPodResources(pod.spec, ofPod)
  return {
    ...pod,
    spec: {
      ...spec,
      initContainers: spec.initContainers.map((container) => changed(container)),
      containers: spec.containers.map((container) => changed(container)),
    },
  }
}

/**
 * The spec with other cpu and memory for the pod itself; without `resources` where nothing remains of them, since an
 * absent field differs from an empty one.
 */
export function withPodResources({ resources, ...spec }: PodSpec, own: ResourceLists): PodSpec {
  const all = resources ?? { limits: {}, requests: {} }
  const changed = { ...all, ...withResizable(all, own) }
  const isEmpty = [changed.limits, changed.requests].every((list) => Object.keys(list).length === 0)
  return isEmpty ? spec : { ...spec, resources: changed }
}

/** `all` with the cpu and memory of `from`. */
export function withResizable(all: ResourceLists, from: ResourceLists): ResourceLists {
  const merge = (list: ResourceList, own: ResourceList): ResourceList => ({
    ...Object.fromEntries(
      Object.entries(list).filter(([name]) => !resizableNames.some((each) => each === name)),
    ),
    ...own,
  })
  return { limits: merge(all.limits, from.limits), requests: merge(all.requests, from.requests) }
}
