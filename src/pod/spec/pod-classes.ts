import type { ResourceList } from './pod-resources.ts'
import type { Pod } from '../schema/pod-schema.ts'

/**
 * What a pod took from its RuntimeClass and PriorityClass when it was admitted. As in Kubernetes, a class that changes
 * later changes no existing pod.
 */
export interface PodClasses {
  /** The runtime's handler; empty for its default. */
  readonly runtimeHandler: string
  readonly overhead?: ResourceList | undefined
  readonly priority?: number | undefined
}

/** The pod with what its classes add, as in an API server. */
export function withClasses(pod: Pod, classes: PodClasses | undefined): Pod {
  const { overhead, priority } = classes ?? {}
  if (overhead === undefined && priority === undefined) return pod
  return {
    ...pod,
    spec: {
      ...pod.spec,
      ...(overhead === undefined ? {} : { overhead }),
      ...(priority === undefined ? {} : { priority }),
    },
  }
}
