import { podAsApplied } from '../../decide/plan/resize.ts'
import type { ContainerResize } from '../../decide/plan/resize.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodContext } from './pod-context.ts'

/** The pod with the resources that its running containers have, those of the resizes made in this pass included. */
export function appliedPod(
  { pod, observed, record }: Pick<PodContext, 'pod' | 'observed' | 'record'>,
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
