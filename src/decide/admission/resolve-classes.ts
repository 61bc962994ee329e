import { systemPriorities } from '../../pod/schema/pod-resources.ts'
import { sameData } from '../../base/json.ts'
import type { PodClasses, ResourceList } from '../../pod/schema/pod-resources.ts'
import type { HandlerFeatures } from '../../pod/state/observed.ts'
import type { FieldPath } from '../../pod/schema/issues.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'

/** A RuntimeClass, from a document or the config. */
export interface RuntimeClassFacts {
  readonly handler: string
  readonly overhead?: ResourceList | undefined
}

/** A PriorityClass of a document. */
export interface PriorityClassFacts {
  readonly value: number
  readonly globalDefault: boolean
  readonly preemptionPolicy: string
}

/** The known classes. */
export interface ClassFacts {
  readonly runtimeClasses: ReadonlyMap<string, RuntimeClassFacts>
  readonly priorityClasses: ReadonlyMap<string, PriorityClassFacts>
  /** Undefined where the runtime doesn't report its handlers. */
  readonly handlers: ReadonlyMap<string, HandlerFeatures> | undefined
}

export type ResolvedClasses = { readonly kind: 'resolved'; readonly classes: PodClasses } | ClassRefusal

interface ClassRefusal {
  readonly kind: 'refused'
  /**
   * `FailedCreate`: the API server would not take the pod. `FailedCreatePodSandBox`: the runtime can't make its sandbox
   * (`pkg/kubelet/events/event.go`, 1.36).
   */
  readonly reason: 'FailedCreate' | 'FailedCreatePodSandBox'
  readonly message: string
  /** The field of the pod. */
  readonly at: FieldPath
}

/**
 * Resolves the classes that a pod names, as the API server's admission does (`plugin/pkg/admission/runtimeclass` and
 * `…/priority`, 1.36). Without a class a pod may set its priority itself, as static pods' manifests do.
 */
export function resolveClasses(
  spec: Pick<
    PodSpec,
    'runtimeClassName' | 'priorityClassName' | 'overhead' | 'priority' | 'preemptionPolicy'
  >,
  facts: ClassFacts,
): ResolvedClasses {
  const runtime = resolveRuntimeClass(spec, facts)
  if ('kind' in runtime) return runtime
  const priority = resolvePriority(spec, facts)
  if (typeof priority === 'object') return priority
  return {
    kind: 'resolved',
    classes: {
      runtimeHandler: runtime.handler,
      ...(runtime.overhead === undefined ? {} : { overhead: runtime.overhead }),
      ...(priority === undefined ? {} : { priority }),
    },
  }
}

function resolveRuntimeClass(
  { runtimeClassName = '', overhead }: Pick<PodSpec, 'runtimeClassName' | 'overhead'>,
  { runtimeClasses, handlers }: ClassFacts,
): RuntimeClassFacts | ClassRefusal {
  if (runtimeClassName === '') {
    if (overhead === undefined || Object.keys(overhead).length === 0) return { handler: '' }
    return notTaken(
      'overhead',
      'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead',
    )
  }
  const found = runtimeClasses.get(runtimeClassName)
  if (found === undefined) {
    return notTaken(
      'runtimeClassName',
      `RuntimeClass ${JSON.stringify(runtimeClassName)} not found; ${listNames(runtimeClasses)}. Add a RuntimeClass document, or name it in runtimeClasses of the config`,
    )
  }
  if (handlers !== undefined && !handlers.has(found.handler)) {
    const names = [...handlers.keys()].filter((name) => name !== '')
    const message = `Failed to create pod sandbox: the container runtime has no handler ${JSON.stringify(found.handler)} of RuntimeClass ${JSON.stringify(runtimeClassName)}; it has ${names.join(', ')}`
    return { kind: 'refused', reason: 'FailedCreatePodSandBox', message, at: ['spec', 'runtimeClassName'] }
  }
  if (overhead !== undefined && !sameData(overhead, found.overhead ?? {})) {
    return notTaken('overhead', "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
  }
  return found
}

function resolvePriority(
  {
    priorityClassName = '',
    priority,
    preemptionPolicy,
  }: Pick<PodSpec, 'priorityClassName' | 'priority' | 'preemptionPolicy'>,
  { priorityClasses }: ClassFacts,
): number | undefined | ClassRefusal {
  if (priorityClassName === '') {
    const fallback = [...priorityClasses.values()].find(({ globalDefault }) => globalDefault)
    const refusal = refusePreemption(preemptionPolicy, fallback?.preemptionPolicy)
    if (refusal !== undefined) return notTaken('preemptionPolicy', refusal)
    return priority ?? fallback?.value
  }
  const known = new Map<string, Pick<PriorityClassFacts, 'value' | 'preemptionPolicy'>>([
    ...priorityClasses,
    ...[...systemPriorities].map(
      ([name, { value }]) => [name, { value, preemptionPolicy: preempting }] as const,
    ),
  ])
  const found = known.get(priorityClassName)
  if (found === undefined) {
    const message = `no PriorityClass with name ${priorityClassName} was found; ${listNames(known)}`
    return notTaken('priorityClassName', message)
  }
  const { value } = found
  if (priority !== undefined && priority !== value) {
    const message = `the integer value of priority (${priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`
    return notTaken('priority', message)
  }
  const refusal = refusePreemption(preemptionPolicy, found.preemptionPolicy)
  return refusal === undefined ? value : notTaken('preemptionPolicy', refusal)
}

/** The policy of the system's classes, and of pods without a class. */
const preempting = 'PreemptLowerPriority'

/** Why a pod may not have this policy beside that of its class; undefined where it may. */
export function refusePreemption(given: string | undefined, ofClass = preempting): string | undefined {
  if (given === undefined || given === ofClass) return undefined
  return `the string value of PreemptionPolicy (${given}) must not be provided in pod spec; priority admission controller computed ${ofClass} from the given PriorityClass name`
}

function notTaken(field: keyof PodSpec, message: string): ClassRefusal {
  return { kind: 'refused', reason: 'FailedCreate', message, at: ['spec', field] }
}

function listNames(known: ReadonlyMap<string, unknown>): string {
  return known.size === 0 ? 'there are none' : `there are ${[...known.keys()].sort().join(', ')}`
}
