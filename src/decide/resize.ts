import type { ObservedContainer, ObservedPod } from '../pod/observed.ts'
import { isSidecar, resizableNames, resizableResources } from '../pod/pod-resources.ts'
import type { ResourceList, ResourceLists } from '../pod/pod-resources.ts'
import type { PodRecord } from '../pod/pod-record.ts'
import { compareQuantities } from '../pod/quantity.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import { viewContainer } from './container-view.ts'

/** The key under which a hold on the pod's resize stands; no container can be called so. */
export const resizeHold = '/resize'

/** One running container that shall have other resources than it has. */
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

/** Where a pod's resize stands; Kubernetes' conditions PodResizePending and PodResizeInProgress. */
export type ResizeState =
  | (ResizeRefusal & { readonly kind: 'pending' })
  /** It is being made; `error` says why it could not be, the last time. */
  | { readonly kind: 'in-progress'; readonly error: string | undefined }

type Facts = {
  readonly pod: Pod
  readonly observed: ObservedPod
  readonly history: PodRecord['containers']
}

/** What a container has: as it was made, or as it was resized since; undefined where nothing tells. */
export function appliedResources(
  container: ObservedContainer,
  history: PodRecord['containers'],
): ResourceLists | undefined {
  const resized = history[container.name]?.resized
  return resized?.containerId === container.id ? resized.resources : container.resources
}

/** The running containers whose resources aren't what the pod asks for, init containers that run once left out. */
export function selectResizes(facts: Facts): readonly ContainerResize[] {
  const { spec: podSpec } = facts.pod
  const candidates = [
    ...podSpec.initContainers.filter((spec) => isSidecar(podSpec, spec)),
    ...podSpec.containers,
  ]
  return candidates.flatMap((spec) => {
    const { observed, history } = facts
    const view = viewContainer({ name: spec.name, observed, history: history[spec.name] })
    if (view.kind !== 'live' || view.container.state !== 'running') return []
    const { container } = view
    const from = appliedResources(container, history)
    const to = resizableResources(spec.resources)
    return from === undefined || changedResources(from, to).length === 0
      ? []
      : [{ container, spec, from, to }]
  })
}

/** Which of cpu and memory differ. */
export function changedResources(from: ResourceLists, to: ResourceLists): readonly ('cpu' | 'memory')[] {
  const same = (a: string | undefined, b: string | undefined): boolean =>
    a === b || (a !== undefined && b !== undefined && compareQuantities(a, b) === 0)
  return resizableNames.filter(
    (name) => !same(from.limits[name], to.limits[name]) || !same(from.requests[name], to.requests[name]),
  )
}

/** Whether the container wants to be restarted for this (`resizePolicy`). */
export function needsRestart({ spec, from, to }: ContainerResize): boolean {
  const changed = changedResources(from, to)
  return spec.resizePolicy.some(
    ({ resourceName, restartPolicy }) =>
      restartPolicy === 'RestartContainer' && changed.includes(resourceName),
  )
}

/** Whether it asks for more of anything than it has: only then does the host need room for it. */
export function growsRequests({ from, to }: ContainerResize): boolean {
  return resizableNames.some(
    (name) => compareQuantities(to.requests[name] ?? '0', from.requests[name] ?? '0') > 0,
  )
}

/** Whether its memory limit goes down, or comes into being. */
export function lowersMemoryLimit({ from, to }: ContainerResize): boolean {
  const [before, after] = [from.limits['memory'], to.limits['memory']]
  if (after === undefined) return false
  return before === undefined || compareQuantities(after, before) < 0
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

/** The pod with the resources that its running containers have now. */
export function podAsApplied(facts: Facts): Pod {
  const resizes = new Map(selectResizes(facts).map((resize) => [resize.spec.name, resize.from]))
  if (resizes.size === 0) return facts.pod
  const asApplied = (spec: ContainerSpec): ContainerSpec => {
    const from = resizes.get(spec.name)
    return from === undefined ? spec : { ...spec, resources: withResizable(spec.resources, from) }
  }
  const { spec } = facts.pod
  return {
    ...facts.pod,
    spec: {
      ...spec,
      initContainers: spec.initContainers.map((container) => asApplied(container)),
      containers: spec.containers.map((container) => asApplied(container)),
    },
  }
}
