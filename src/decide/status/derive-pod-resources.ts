import type { ObservedPod } from '../../pod/state/observed.ts'
import {
  withClasses,
  isPodLimited,
  isPositive,
  podLimits,
  podRequests,
  resizableNames,
  computeQosClass,
} from '../../pod/schema/pod-resources.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { ResourceList } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodPhase, PodStatus } from '../../pod/state/status.ts'
import { podAsAllocated, podAsApplied } from '../plan/resize.ts'

/**
 * The pod-level resources: allocated and actual. While it runs, a limit is shown where its cgroup has one; before and
 * after, all that its spec implies (`pkg/kubelet/kubelet_pods.go` convertToAPIPodLevelResourcesStatus, 1.36; exact,
 * where the kubelet reads rounded values back from the cgroup).
 */
export function derivePodResources({
  pod,
  record,
  observed,
  phase,
}: {
  readonly pod: Pod
  readonly record: PodRecord
  readonly observed: ObservedPod
  readonly phase: PodPhase
}): Pick<PodStatus, 'allocatedResources' | 'resources'> {
  const allocated = podAsAllocated(withClasses(pod, record.classes), record.allocated)
  const { containers: history, podResources } = record
  const lists =
    phase === 'Running'
      ? runningResources(podAsApplied({ pod: allocated, observed, history, podResources }))
      : {
          requests: podRequests(allocated.spec, 'with-overhead'),
          limits: podLimits(allocated.spec, 'with-overhead'),
        }
  const resources = { ...filled('limits', lists.limits), ...filled('requests', lists.requests) }
  return {
    ...filled('allocatedResources', podRequests(allocated.spec, 'with-overhead')),
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
  }
}

function runningResources({ spec }: Pod): { readonly requests: ResourceList; readonly limits: ResourceList } {
  const [requests, limits] = [podRequests(spec, 'with-overhead'), podLimits(spec, 'with-overhead')]
  const isBestEffort = computeQosClass(spec) === 'BestEffort'
  const limited = resizableNames.filter(
    (name) => !isBestEffort && isPositive(limits[name]) && isPodLimited(spec, name),
  )
  return {
    requests: { ...only(requests, resizableNames), ...spec.resources?.requests },
    limits: { ...spec.resources?.limits, ...only(limits, limited) },
  }
}

function only(list: ResourceList, names: readonly string[]): ResourceList {
  return Object.fromEntries(names.flatMap((name) => (isPositive(list[name]) ? [[name, list[name]]] : [])))
}

function filled<Name extends string>(
  name: Name,
  list: ResourceList,
): { readonly [_ in Name]?: ResourceList } {
  const entry: { [_ in Name]?: ResourceList } = {}
  if (Object.keys(list).length > 0) entry[name] = list
  return entry
}
