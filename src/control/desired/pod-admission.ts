import type { PoddConfig } from '../../config/options.ts'
import {
  admitPod,
  claimsOf,
  computeAllocatable,
  exclusiveClaimProblem,
} from '../../decide/admission/admit-pod.ts'
import type { Admission, HostLimits, HostTally, Neighbour } from '../../decide/admission/admit-pod.ts'
import { podSecurityProblem } from '../../decide/admission/pod-security.ts'
import { preflightPod } from '../../decide/admission/preflight-pod.ts'
import { resolveClasses } from '../../decide/admission/resolve-classes.ts'
import type { ClassFacts, RuntimeClassFacts } from '../../decide/admission/resolve-classes.ts'
import type { NodeRefusal } from '../../decide/node/judge-pressure.ts'
import type { ResizeRefusal } from '../../decide/plan/resize.ts'
import type { ObjectRules } from '../../decide/sources/merge-snapshots.ts'
import type { HostInfo } from '../../host/facts/host-info.ts'
import { withClasses } from '../../pod/schema/pod-resources.ts'
import type { PodClasses, ResourceList } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { RuntimeFeatures } from '../../pod/state/observed.ts'
import type { SecurityPolicy } from '../../pod/validation/security-policy.ts'
import { configNames, kindOfSource, policySettings, sourceKinds } from '../../pod/values/ids.ts'
import type { SourceKind, SourceName } from '../../pod/values/ids.ts'
import type { ObjectViews, SourcedPod } from '../serving/object-store.ts'

/** What the config and the machine say about which pods may run. */
export interface AdmissionRules {
  readonly limits: HostLimits
  /** The extended resources of the node, which clients write. */
  readonly extended?: () => ResourceList
  readonly allowedUnsafeSysctls: readonly string[]
  readonly appArmor: boolean
  /** RuntimeClasses by name; those of documents come after them. */
  readonly runtimeClasses: ReadonlyMap<string, RuntimeClassFacts>
  readonly policies: Readonly<Record<SourceKind, SecurityPolicy>>
}

/** Why the host admits no such pod now, because it is short of something or shuts down; undefined where it does. */
export type RefuseByNode = (pod: Pod) => NodeRefusal | undefined

export interface Candidate {
  readonly pod: Pod
  readonly source: SourceName
  /** Gathered where they are asked for. */
  readonly neighbours: Iterable<Neighbour>
  /** Of these neighbours. */
  readonly tally: HostTally
  /** It was admitted before and has been started: it keeps its resources, whatever the host has now. */
  readonly isAccepted: boolean
  /** The earlier result of resolving its classes; undefined where unknown. */
  readonly classes: PodClasses | undefined
}

/** Why a pod may not run here, or what it needs beside room. */
export type Examination =
  | Exclude<Admission, { readonly kind: 'admitted' }>
  | {
      readonly kind: 'fits'
      readonly classes: PodClasses
      /** Names of those of its claims that are for one pod alone. */
      readonly exclusiveClaims: readonly string[]
    }

/** Checks whether pods may run here: gathers the facts for the pure deciders. */
export class PodAdmission {
  readonly #rules: AdmissionRules
  readonly #objects: ObjectViews
  readonly #features: () => RuntimeFeatures | 'any' | undefined
  readonly #nodeRefusal: RefuseByNode

  /** @param features the runtime's; `any` for no particular runtime */
  constructor(
    rules: AdmissionRules,
    objects: ObjectViews,
    features: () => RuntimeFeatures | 'any' | undefined,
    nodeRefusal: RefuseByNode = () => undefined,
  ) {
    this.#rules = rules
    this.#objects = objects
    this.#features = features
    this.#nodeRefusal = nodeRefusal
  }

  get limits(): HostLimits {
    const { limits, extended } = this.#rules
    const { allocatable } = limits
    if (extended === undefined || allocatable === undefined) return limits
    return { ...limits, allocatable: { ...allocatable, ...extended() } }
  }

  admit(candidate: Candidate): Admission {
    const { pod, source, neighbours, tally } = candidate
    if (candidate.isAccepted) return this.#readmit(candidate)
    const found = this.examine(pod, source)
    if (found.kind !== 'fits') return found
    const { classes, exclusiveClaims } = found
    const taken = exclusiveClaimProblem(pod, neighbours, (name) => exclusiveClaims.includes(name))
    if (taken !== undefined) return taken
    const admission = admitPod(withClasses(pod, classes), neighbours, this.limits, tally)
    return admission.kind === 'admitted' ? { kind: 'admitted', classes } : admission
  }

  /** The checks of a pod that don't depend on other pods. */
  examine(pod: Pod, source: SourceName): Examination {
    const refusal = this.#forbidden(pod, source)
    if (refusal !== undefined) return refusal
    const resolved = resolveClasses(pod.spec, this.#classFacts(source))
    if (resolved.kind === 'refused') return { ...resolved, kind: 'blocked' }
    const { classes } = resolved
    const problem = this.#preflight(pod, classes.runtimeHandler)
    if (problem !== undefined) {
      // As in a cluster, whoever wrote the pod over the API decides; other sources have no controller.
      const isFinal = problem.kind === 'blocked' && problem.isForbidden && kindOfSource(source) === 'api'
      const { reason, message, at } = problem
      return isFinal ? { kind: 'rejected', reason, message, at } : problem
    }
    const node = this.#nodeRefusal(withClasses(pod, classes))
    if (node !== undefined) return { ...node, kind: 'blocked' }
    const exclusiveClaims = claimsOf(pod.spec).filter((name) => this.#isExclusive({ pod, source }, name))
    return { kind: 'fits', classes, exclusiveClaims }
  }

  /**
   * Why the host has no room for the resize of a running pod (`pkg/kubelet/allocation/allocation_manager.go`
   * canResizePod, Kubernetes 1.36).
   */
  refuseResize(pod: Pod, neighbours: readonly Neighbour[]): ResizeRefusal | undefined {
    const limits = { ...this.limits, maxPods: Infinity }
    const alone = admitPod(pod, [], limits)
    if (alone.kind !== 'admitted') return { reason: 'Infeasible', message: alone.message }
    const beside = admitPod(pod, neighbours, limits)
    return beside.kind === 'admitted' ? undefined : { reason: 'Deferred', message: beside.message }
  }

  /** Why the policy of its source forbids a pod. */
  refusal(pod: Pod, source: SourceName): ReturnType<typeof podSecurityProblem> {
    const policy = this.#rules.policies[kindOfSource(source)]
    return podSecurityProblem(pod.spec, policy, policySettings(source))
  }

  #forbidden(pod: Pod, source: SourceName): Exclude<Examination, { readonly kind: 'fits' }> | undefined {
    const refusal = this.refusal(pod, source)
    return refusal && { kind: 'blocked', reason: 'PodSecurity', ...refusal, isForbidden: true }
  }

  /**
   * A pod that has run keeps its resources, but not what it may no longer do (`pkg/kubelet/kubelet.go`, canRunPod, 1.36);
   * features that the runtime has lost can't be provided. If its record was lost, its classes are resolved again: it must
   * not get another runtime handler than it requests.
   */
  #readmit({ pod, source, neighbours, tally, classes: before }: Candidate): Admission {
    const refusal = this.#forbidden(pod, source)
    if (refusal !== undefined) return refusal
    const resolved =
      before === undefined
        ? resolveClasses(pod.spec, this.#classFacts(source))
        : { kind: 'resolved' as const, classes: before }
    if (resolved.kind === 'refused') return { ...resolved, kind: 'blocked' }
    const { classes } = resolved
    const problem = this.#preflight(pod, classes.runtimeHandler)
    if (problem?.kind === 'blocked') return problem
    const admission = admitPod(pod, neighbours, { maxPods: Infinity }, tally)
    return admission.kind === 'admitted' ? { ...admission, classes } : admission
  }

  #preflight(pod: Pod, runtimeHandler: string) {
    const { allowedUnsafeSysctls, appArmor } = this.#rules
    return preflightPod(pod.spec, {
      runtime: this.#features(),
      runtimeHandler,
      allowedUnsafeSysctls,
      appArmor,
    })
  }

  #isExclusive({ pod, source }: SourcedPod, name: string): boolean {
    const claim = this.#objects.seenBy(source).get('PersistentVolumeClaim', pod.metadata.namespace, name)
    return claim?.spec.accessModes.includes('ReadWriteOncePod') === true
  }

  #classFacts(source: SourceName): ClassFacts {
    const objects = this.#objects.seenBy(source)
    const features = this.#features()
    return {
      runtimeClasses: new Map([
        ...objects
          .list('RuntimeClass')
          .map(({ metadata, handler, overhead }): [string, RuntimeClassFacts] => [
            metadata.name,
            { handler, overhead: overhead?.podFixed },
          ]),
        ...this.#rules.runtimeClasses,
      ]),
      priorityClasses: new Map(objects.list('PriorityClass').map((found) => [found.metadata.name, found])),
      handlers: features === 'any' ? undefined : features?.handlers,
    }
  }
}

/** Which pods may run here, by the config and the machine. */
export function admissionRules(
  config: PoddConfig,
  hostInfo: Pick<HostInfo, 'cpus' | 'memoryBytes' | 'hugePagesBytes' | 'appArmor'>,
  /** Of the disk that pods write to; undefined where that is unknown. */
  diskBytes: number | undefined,
): AdmissionRules {
  const { cpus, memoryBytes, hugePagesBytes, appArmor } = hostInfo
  return {
    limits: {
      maxPods: config.maxPods,
      allocatable: {
        ...computeAllocatable({ cpus, memoryBytes, hugePagesBytes }, [
          config.systemReserved,
          config.kubeReserved,
        ]),
        ...(diskBytes !== undefined && { 'ephemeral-storage': String(diskBytes) }),
      },
    },
    allowedUnsafeSysctls: config.allowedUnsafeSysctls,
    appArmor,
    runtimeClasses: new Map(Object.entries(config.runtimeClasses)),
    policies: {
      file: policyOf(config, 'directory'),
      http: policyOf(config, 'url'),
      api: policyOf(config, 'api'),
    },
  }
}

function policyOf(config: PoddConfig, of: 'directory' | 'url' | 'api'): SecurityPolicy {
  return {
    level: config[`${of}SecurityLevel`],
    allowedHostPaths: config[`${of}AllowedHostPaths`],
    allowedCapabilities: config[`${of}AllowedCapabilities`],
    allowedHostPorts: config[`${of}AllowedHostPorts`],
    allowedRegistries: config[`${of}AllowedRegistries`],
  }
}

/** Which objects count, and for whose pods, by the config. */
export function objectRules(config: PoddConfig): ObjectRules {
  return {
    runtimeClasses: new Map(Object.entries(config.runtimeClasses)),
    policies: {
      file: { readsObjectsOf: toSources(config.directoryReadsObjectsOf), givesClusterObjects: true },
      http: {
        readsObjectsOf: toSources(config.urlReadsObjectsOf),
        givesClusterObjects: config.urlGivesClusterObjects,
      },
      api: { readsObjectsOf: toSources(config.apiReadsObjectsOf), givesClusterObjects: true },
    },
  }
}

function toSources(named: readonly string[]): readonly SourceKind[] {
  return sourceKinds.filter((kind) => named.includes(configNames[kind]))
}
