/* Defaults of a pod that depend on other fields; the others stand in the schema. */
import { PoddError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { parseImageName } from '../values/image-name.ts'
import { normalCapability } from '../values/kernel-names.ts'
import type { ContainerSpec, Probe, ResourceRequirements, SecurityContext } from './container-schema.ts'
import { podRequests } from './pod-resources.ts'
import { podSchema } from './pod-schema.ts'
import type { Pod, PodSpec } from './pod-schema.ts'
import { readAs } from './types.ts'
import type { VolumeSpec } from './volume-schema.ts'

/**
 * The API's defaults that depend on other fields, which the schema can't express. Idempotent. Source:
 * pkg/apis/core/v1/defaults.go, 1.36.
 */
export function defaultPod(pod: Pod): Pod {
  // `hostUsers: true` is the default.
  const { hostUsers, ...spec } = pod.spec
  const containers = spec.containers.map((container) => defaultContainer(container, spec))
  const initContainers = spec.initContainers.map((container) => defaultContainer(container, spec))
  return {
    ...pod,
    metadata: { ...pod.metadata, namespace: pod.metadata.namespace || 'default' },
    spec: {
      ...spec,
      ...(hostUsers === false && { hostUsers }),
      volumes: spec.volumes.map((volume) => defaultVolume(volume)),
      containers,
      initContainers,
      ...(spec.resources && {
        resources: defaultPodRequests(spec.resources, { containers, initContainers }),
      }),
      ephemeralContainers: spec.ephemeralContainers.map((container) => defaultContainer(container, spec)),
    },
  }
}

/** A volume without a source is an emptyDir. */
function defaultVolume(volume: VolumeSpec): VolumeSpec {
  const hasSource = Object.keys(volume).some((key) => key !== 'name')
  return hasSource ? volume : { ...volume, emptyDir: { medium: '' } }
}

function defaultContainer<C extends ContainerSpec>(container: C, spec: PodSpec): C {
  return {
    ...container,
    imagePullPolicy: container.imagePullPolicy ?? imagePullPolicyOf(container.image),
    terminationMessagePath: container.terminationMessagePath || '/dev/termination-log',
    ports: spec.hostNetwork
      ? container.ports.map((port) => ({ ...port, hostPort: port.hostPort || port.containerPort }))
      : container.ports,
    volumeMounts: container.volumeMounts.map((mount) => ({
      ...mount,
      mountPath: absolutePath(mount.mountPath),
    })),
    resources: defaultRequests(container.resources),
    ...(container.securityContext && { securityContext: normalCapabilities(container.securityContext) }),
    ...(container.livenessProbe && { livenessProbe: defaultProbe(container.livenessProbe) }),
    ...(container.readinessProbe && { readinessProbe: defaultProbe(container.readinessProbe) }),
    ...(container.startupProbe && { startupProbe: defaultProbe(container.startupProbe) }),
  }
}

/** Normalizes capability names, which are then validated, admitted, compared and passed to the runtime. */
function normalCapabilities(context: SecurityContext): SecurityContext {
  const { capabilities } = context
  if (capabilities === undefined) return context
  const normal = (names: readonly string[]): readonly string[] => names.map((name) => normalCapability(name))
  return { ...context, capabilities: { add: normal(capabilities.add), drop: normal(capabilities.drop) } }
}

/**
 * Always for `:latest`, explicit or implied; IfNotPresent for any other tag, and (unlike in Kubernetes) for any digest.
 */
export function imagePullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  const name = parseImageName(image)
  if (name === undefined || name.digest !== undefined) return 'IfNotPresent'
  return name.tag === undefined || name.tag === 'latest' ? 'Always' : 'IfNotPresent'
}

/** The kubelet takes a relative mount path from the root (pkg/kubelet/kubelet_pods.go, makeMounts). */
function absolutePath(path: string): string {
  return path === '' || path.startsWith('/') ? path : `/${path}`
}

/** A resource with a limit and no request is requested up to its limit. */
function defaultRequests(resources: ResourceRequirements): ResourceRequirements {
  return { ...resources, requests: { ...resources.limits, ...resources.requests } }
}

/** The pod-level requests: the sum of its containers', or else the limit. */
function defaultPodRequests(
  resources: ResourceRequirements,
  containers: Pick<PodSpec, 'containers' | 'initContainers'>,
): ResourceRequirements {
  const asked = Object.entries(podRequests(containers, 'without-overhead')).filter(
    ([name]) => name === 'cpu' || name === 'memory',
  )
  return {
    ...resources,
    requests: { ...resources.limits, ...Object.fromEntries(asked), ...resources.requests },
  }
}

/** Zero means the default, as Kubernetes' fields are plain numbers. */
function defaultProbe(probe: Probe): Probe {
  return {
    ...probe,
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
    ...(probe.httpGet && { httpGet: { ...probe.httpGet, path: probe.httpGet.path || '/' } }),
  }
}

/** An image that is mounted as a volume, as what is pulled for a container. */
export type VolumeImage = Pick<ContainerSpec, 'name' | 'image' | 'imagePullPolicy'>

/** The images among these volumes; with a container, only those that it mounts. */
export function selectVolumeImages(
  volumes: readonly VolumeSpec[],
  container?: Pick<ContainerSpec, 'name' | 'volumeMounts'>,
): readonly VolumeImage[] {
  const mounted = container && new Set(container.volumeMounts.map((mount) => mount.name))
  return volumes.flatMap(({ name, image }) => {
    const reference = image?.reference
    if (reference === undefined || mounted?.has(name) === false) return []
    const imagePullPolicy = image?.pullPolicy ?? imagePullPolicyOf(reference)
    return [{ name: container?.name ?? name, image: reference, imagePullPolicy }]
  })
}

/**
 * A pod with ephemeral containers that were added to it while it runs.
 * @throws PoddError MANIFEST_UNREADABLE where they are none that this version can read
 */
export function withDebuggers(pod: Pod, debuggers: readonly JsonObject[] = []): Pod {
  const { ephemeralContainers: own } = pod.spec
  const added = debuggers.filter(({ name }) => own.every((container) => container.name !== name))
  if (added.length === 0) return pod
  const metadata = { name: pod.metadata.name, namespace: pod.metadata.namespace }
  const spec = { containers: [], ephemeralContainers: added }
  const { ephemeralContainers } = podFromManifest({ apiVersion: 'v1', kind: 'Pod', metadata, spec }).spec
  return { ...pod, spec: { ...pod.spec, ephemeralContainers: [...own, ...ephemeralContainers] } }
}

/**
 * The typed, defaulted Pod of a manifest that was checked when it was accepted: one that was just decoded, or that is
 * in a pod's record. Fields this version doesn't know are left out.
 *
 * @throws PoddError MANIFEST_UNREADABLE where it isn't such a manifest.
 */
export function podFromManifest(manifest: JsonObject): Pod {
  const pod = readAs(podSchema, manifest)
  if (pod === undefined) {
    throw new PoddError(
      'MANIFEST_UNREADABLE',
      'the recorded manifest is not a Pod that this version can read',
    )
  }
  return defaultPod(pod)
}
