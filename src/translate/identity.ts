/*
 * All that podd stores on sandboxes and containers, written and read here alone. The io.kubernetes.* keys
 * are the kubelet's (`pkg/kubelet/types/labels.go`, `pkg/kubelet/kuberuntime/labels.go`, 1.36), so that
 * crictl, log shippers and metric collectors recognise the pods.
 */
import { listOrEmpty, parseJson } from '../base/json.ts'
import type { JsonObject } from '../base/json.ts'
import {
  containerPortSchema,
  lifecycleHandlerSchema,
  resourceListSchema,
  resourceRequirementsSchema,
} from '../pod/schema/container-schema.ts'
import type { ContainerPort, ContainerSpec, LifecycleHandler } from '../pod/schema/container-schema.ts'
import { resizableResources } from '../pod/schema/pod-resources.ts'
import type { ResourceList, ResourceLists } from '../pod/schema/pod-resources.ts'
import { readAs } from '../pod/schema/types.ts'
import type { ObservedPod } from '../pod/state/observed.ts'
import type { ContainerId, PodRef, PodUid } from '../pod/values/ids.ts'
import type { Pod, PodSpec } from '../pod/schema/pod-schema.ts'

export const labelKeys = {
  podName: 'io.kubernetes.pod.name',
  podNamespace: 'io.kubernetes.pod.namespace',
  podUid: 'io.kubernetes.pod.uid',
  containerName: 'io.kubernetes.container.name',
  /** The podd instance of a sandbox or container, where several use one runtime. */
  instance: 'podd.dev/instance',
} as const

export const annotationKeys = {
  hash: 'io.kubernetes.container.hash',
  restartCount: 'io.kubernetes.container.restartCount',
  terminationMessagePath: 'io.kubernetes.container.terminationMessagePath',
  terminationMessagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
  preStopHandler: 'io.kubernetes.container.preStopHandler',
  ports: 'io.kubernetes.container.ports',
  terminationGracePeriod: 'io.kubernetes.pod.terminationGracePeriod',
  /** The image's name in the manifest: runtimes return another name of the resolved image. */
  image: 'podd.dev/image',
  /** The cpu and memory of the container at its creation, by which a later change is recognized. */
  resources: 'podd.dev/resources',
  /** The pod's own limits of cpu and memory that the container was made with, where there are any. */
  podLimits: 'podd.dev/pod-limits',
  /** On the sandbox: the hash of the applied manifest, in case the pod's record is lost. */
  manifestHash: 'podd.dev/manifest-hash',
} as const

type StringMap = Readonly<Record<string, string>>

interface Owner {
  readonly pod: Pod
  readonly uid: PodUid
  /** The podd instance's name; empty where the runtime serves one podd alone. */
  readonly instance: string
}

function identityLabels({ pod, uid, instance }: Owner): StringMap {
  return {
    [labelKeys.podName]: pod.metadata.name,
    [labelKeys.podNamespace]: pod.metadata.namespace,
    [labelKeys.podUid]: uid,
    ...(instance === '' ? {} : { [labelKeys.instance]: instance }),
  }
}

/** The pod's own labels, then podd's, which win. */
export function sandboxLabels(owner: Owner): StringMap {
  return { ...owner.pod.metadata.labels, ...identityLabels(owner) }
}

/** The pod's own annotations and the hash of the manifest it came from. */
export function sandboxAnnotations({ metadata }: Pod, manifestHash: string): StringMap {
  return { ...metadata.annotations, [annotationKeys.manifestHash]: manifestHash }
}

export function containerLabels(owner: Owner & { readonly container: ContainerSpec }): StringMap {
  return { ...identityLabels(owner), [labelKeys.containerName]: owner.container.name }
}

/** What a podd without a record needs to stop this container as its pod requests. */
export function containerAnnotations(
  spec: PodSpec,
  container: ContainerSpec,
  specHash: string,
  restartCount: number,
): StringMap {
  const preStop = container.lifecycle?.preStop
  const { limits: podLimits } = resizableResources(spec.resources ?? { limits: {}, requests: {} })
  return {
    [annotationKeys.hash]: specHash,
    [annotationKeys.restartCount]: String(restartCount),
    [annotationKeys.terminationMessagePath]: container.terminationMessagePath,
    [annotationKeys.terminationMessagePolicy]: container.terminationMessagePolicy,
    [annotationKeys.terminationGracePeriod]: String(spec.terminationGracePeriodSeconds),
    ...(preStop && { [annotationKeys.preStopHandler]: JSON.stringify(preStop) }),
    ...(container.ports.length > 0 && { [annotationKeys.ports]: JSON.stringify(container.ports) }),
    [annotationKeys.image]: container.image,
    [annotationKeys.resources]: JSON.stringify(resizableResources(container.resources)),
    ...(Object.keys(podLimits).length > 0 && { [annotationKeys.podLimits]: JSON.stringify(podLimits) }),
  }
}

/** The pod of a sandbox or container; undefined for one that neither a kubelet nor podd made. */
export function readPodRef(labels: StringMap): PodRef | undefined {
  const name = labels[labelKeys.podName]
  const namespace = labels[labelKeys.podNamespace]
  const uid = labels[labelKeys.podUid]
  if (name === undefined || namespace === undefined || uid === undefined || uid === '') return undefined
  return { name, namespace, uid }
}

/** The label selector that lists this instance's sandboxes and containers alone. */
export function instanceSelector(instance: string): StringMap {
  return instance === '' ? {} : { [labelKeys.instance]: instance }
}

/** The hash of the manifest that a sandbox was made from; undefined where it has none. */
export function readManifestHash(annotations: StringMap): string | undefined {
  return annotations[annotationKeys.manifestHash]
}

/** How a container is to be stopped, from its annotations. */
export interface ContainerFacts {
  /** Empty where there is none. */
  readonly specHash: string
  readonly restartCount: number | undefined
  readonly image: string | undefined
  readonly resources: ResourceLists | undefined
  readonly podLimits: ResourceList | undefined
  readonly terminationMessagePath: string
  readonly terminationMessagePolicy: 'File' | 'FallbackToLogsOnError'
  readonly terminationGraceSeconds: number | undefined
  readonly preStop: LifecycleHandler | undefined
  readonly ports: readonly ContainerPort[]
}

/** Reads what containerAnnotations wrote; what is missing or garbled counts as absent. */
export function readContainerFacts(annotations: StringMap): ContainerFacts {
  const policy = annotations[annotationKeys.terminationMessagePolicy]
  return {
    specHash: annotations[annotationKeys.hash] ?? '',
    restartCount: readCount(annotations[annotationKeys.restartCount]),
    image: annotations[annotationKeys.image],
    resources: readAs(resourceRequirementsSchema, parseJson(annotations[annotationKeys.resources])),
    podLimits: readAs(resourceListSchema, parseJson(annotations[annotationKeys.podLimits])),
    terminationMessagePath: annotations[annotationKeys.terminationMessagePath] ?? '',
    terminationMessagePolicy: policy === 'FallbackToLogsOnError' ? policy : 'File',
    terminationGraceSeconds: readCount(annotations[annotationKeys.terminationGracePeriod]),
    preStop: readAs(lifecycleHandlerSchema, parseJson(annotations[annotationKeys.preStopHandler])),
    ports: listOrEmpty(parseJson(annotations[annotationKeys.ports])).flatMap(
      (port) => readAs(containerPortSchema, port) ?? [],
    ),
  }
}

function readCount(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
}

/** The longest file name that Linux allows, in bytes. */
const longestNameBytes = 255

/**
 * `<podLogsDir>/<namespace>_<name>_<uid>`: a pod's logs, what CRI calls `log_directory` (kubelet's
 * kuberuntime/legacy.go).
 */
export function podLogDirectory(podLogsDir: string, pod: PodRef): string {
  return `${podLogsDir}/${pod.namespace}_${pod.name}_${pod.uid}`
}

/** `<container>/<restart>.log`: relative to the pod's log directory, as CRI's `log_path` wants it. */
export function containerLogPath(container: string, restartCount: number): string {
  return `${container}/${restartCount}.log`
}

/** The restart count of a container's log file, rotated ones included; undefined for other names. */
export function parseLogFileName(fileName: string): number | undefined {
  const match = /^(\d+)\.log(?:\.\d{8}-\d{6}(?:\.\d+)?(?:\.gz)?)?$/u.exec(fileName)
  return match === null ? undefined : Number(match[1])
}

/**
 * `<containerLogsDir>/<pod>_<namespace>_<container>-<id>.log`, the link that log shippers look for. The name
 * keeps to 255 characters by shortening what stands before the id, as the kubelet does (kuberuntime/legacy.go).
 */
export function containerLogSymlink(
  containerLogsDir: string,
  pod: PodRef,
  container: string,
  containerId: ContainerId,
): string {
  const suffix = `-${containerId}.log`
  const head = `${pod.name}_${pod.namespace}_${container}`
  return `${containerLogsDir}/${head.slice(0, longestNameBytes - suffix.length)}${suffix}`
}

/**
 * Whether the name of a link is one that `containerLogSymlink` gives for a container of this pod, or of one with such a
 * name.
 */
export function mayLinkToLogOf(pod: PodRef, linkName: string): boolean {
  const prefix = `${pod.name}_${pod.namespace}_`
  if (linkName.startsWith(prefix)) return true
  const isShortened = linkName.length === longestNameBytes
  return isShortened && prefix.startsWith(linkName.slice(0, linkName.lastIndexOf('-')))
}

/** The kubelet's default grace period (`minimumGracePeriodInSeconds`). */
const leastGraceSeconds = 2

/**
 * A minimal manifest for a pod whose record and manifest are lost: enough to terminate it. Grace, preStop and ports
 * come from its containers' annotations.
 */
export function orphanManifest(observed: ObservedPod): JsonObject {
  const graces = observed.containers.map(
    ({ annotations }) => readContainerFacts(annotations).terminationGraceSeconds ?? 0,
  )
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: observed.name, namespace: observed.namespace },
    spec: {
      terminationGracePeriodSeconds: Math.max(leastGraceSeconds, ...graces),
      hostNetwork: observed.sandboxes[0]?.hostNetwork ?? false,
      containers: [],
    },
  }
}
