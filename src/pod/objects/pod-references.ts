import type { ObjectKey } from './local-object.ts'
import { objectKey } from './local-object.ts'
import type { ContainerSpec } from '../schema/container-schema.ts'
import type { Pod } from '../schema/pod-schema.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
import type { SourceName } from '../values/source-name.ts'

/** A ConfigMap or Secret that something refers to; its namespace is the pod's. */
export interface ConfigReference {
  readonly kind: 'ConfigMap' | 'Secret'
  readonly name: string
  readonly optional: boolean
}

/** The pod whose pull secrets are used. */
export interface PullSecrets {
  readonly source: SourceName
  readonly namespace: string
  /** `imagePullSecrets` of the pod. */
  readonly names: readonly string[]
}

/** The Secrets that a pod names for its pulls; undefined where it names none. */
export function pullSecretsOf(pod: Pod, source: SourceName): PullSecrets | undefined {
  const names = pod.spec.imagePullSecrets.map(({ name }) => name)
  return names.length === 0 ? undefined : { source, namespace: pod.metadata.namespace, names }
}

/** The Secrets that a pod names for its image pulls; missing ones are skipped. */
export function pullSecretReferences({ spec, metadata }: Pod): readonly ObjectKey[] {
  const names = spec.imagePullSecrets.map(({ name }) => name).filter((name) => name !== '')
  return names.map((name) => objectKey('Secret', metadata.namespace, name))
}

/** All objects that a pod refers to, including optional ones. */
export function podReferences(pod: Pod): ReadonlySet<ObjectKey> {
  const { spec, metadata } = pod
  const { runtimeClassName, priorityClassName } = spec
  const containers = [...spec.initContainers, ...spec.containers, ...spec.ephemeralContainers]
  const configs = [
    ...containers.flatMap((container) => environmentReferences(container)),
    ...spec.volumes.flatMap((volume) => volumeReferences(volume)),
  ]
  return new Set([
    ...pullSecretReferences(pod),
    ...configs.map(({ kind, name }) => objectKey(kind, metadata.namespace, name)),
    ...spec.volumes.flatMap(({ persistentVolumeClaim: claim }) =>
      claim === undefined ? [] : objectKey('PersistentVolumeClaim', metadata.namespace, claim.claimName),
    ),
    ...(runtimeClassName === undefined ? [] : [objectKey('RuntimeClass', '', runtimeClassName)]),
    ...(priorityClassName === undefined ? [] : [objectKey('PriorityClass', '', priorityClassName)]),
  ])
}

/** The ConfigMaps and Secrets that a container consumes: in its environment or a mounted volume. */
export function containerReferences(container: ContainerSpec, { spec }: Pod): readonly ConfigReference[] {
  const mounted = new Set(container.volumeMounts.map(({ name }) => name))
  const volumes = spec.volumes.filter(({ name }) => mounted.has(name))
  return [...environmentReferences(container), ...volumes.flatMap((volume) => volumeReferences(volume))]
}

function environmentReferences(container: ContainerSpec): readonly ConfigReference[] {
  return [
    ...container.envFrom.flatMap(({ configMapRef, secretRef }) => pair(configMapRef, secretRef)),
    ...container.env.flatMap(({ valueFrom }) => pair(valueFrom?.configMapKeyRef, valueFrom?.secretKeyRef)),
  ]
}

function volumeReferences({ configMap, secret, projected }: VolumeSpec): readonly ConfigReference[] {
  return [
    ...pair(configMap, secret && { name: secret.secretName, optional: secret.optional }),
    ...(projected?.sources ?? []).flatMap((source) => pair(source.configMap, source.secret)),
  ]
}

type Named = { readonly name: string; readonly optional: boolean } | undefined

function pair(configMap: Named, secret: Named): readonly ConfigReference[] {
  const references: ConfigReference[] = []
  if (configMap !== undefined) references.push({ kind: 'ConfigMap', ...nameOf(configMap) })
  if (secret !== undefined) references.push({ kind: 'Secret', ...nameOf(secret) })
  return references
}

function nameOf({ name, optional }: NonNullable<Named>): NonNullable<Named> {
  return { name, optional }
}
