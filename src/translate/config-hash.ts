/* By which hash a changed container is known, and what is missing before it could start. */
import { canonicalJson } from '../base/json.ts'
import { containerReferences, objectData } from '../pod/objects/local-object.ts'
import type { ObjectReader } from '../pod/objects/local-object.ts'
import type { LocalObject } from '../pod/objects/object-kinds.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { ResourceList } from '../pod/schema/pod-resources.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import { containerSpecHash, digestText } from '../pod/values/hash.ts'
import type { SourceName } from '../pod/values/ids.ts'
import { ArgumentsTooLarge, expandCommand } from './environment.ts'
import type { ExecLimits } from './environment.ts'
import { missingObject, MissingReference } from './references.ts'
import { resolveEnvironment } from './resolve-environment.ts'
import { computeVolumeFiles } from './volume-files.ts'

/** The annotation on a pod that has its containers restarted when a ConfigMap or Secret that they consume changes. */
export const restartAnnotation = 'podd.dev/restart-on-config-change'

export interface ConfigHashInput {
  readonly host: ReferenceHost
  readonly pod: Pod
  readonly source: SourceName
  readonly container: ContainerSpec
  /** The hash of the running container; undefined for a new one. */
  readonly running: string | undefined
  /** Whether all objects are known, so that an absent one is missing rather than not read yet. */
  readonly objectsKnown?: boolean
}

/**
 * The hash of a container: of its name and image, and where the pod has the annotation, `.` and a hash of its
 * ConfigMaps and Secrets. A running container keeps its hash where the annotation was added or removed, where it could
 * not start again because an object is missing, and while the sources have not given all objects.
 */
export function computeSpecHash(input: ConfigHashInput): string {
  const { container, running, objectsKnown = true } = input
  const base = containerSpecHash(container)
  const config = configHash(input)
  const known = running?.split('.')[1]
  if (running === undefined) return config === undefined ? base : `${base}.${config}`
  if (known === undefined) return base
  return `${base}.${objectsKnown ? (config ?? known) : known}`
}

function configHash({ host, pod, source, container }: ConfigHashInput): string | undefined {
  if (pod.metadata.annotations[restartAnnotation] !== 'true') return undefined
  if (findMissingReference(host, { pod, source }, container) !== undefined) return undefined
  const { namespace } = pod.metadata
  const objects = host.objects.seenBy(source)
  const held: [string, unknown][] = []
  for (const { kind, name } of containerReferences(container, pod)) {
    held.push([`${kind}/${name}`, contentOf(objects.get(kind, namespace, name))])
  }
  return digestText(canonicalJson(held.toSorted(([a], [b]) => (a < b ? -1 : 1))))
}

function contentOf(object: LocalObject | undefined): unknown {
  if (object?.kind !== 'ConfigMap' && object?.kind !== 'Secret') return null
  return Object.fromEntries([...objectData(object)].map(([key, data]) => [key, data.toString('base64')]))
}

/** The readers for a pod's references. */
interface ReferenceHost {
  readonly objects: { seenBy(source: SourceName): ObjectReader }
  readonly capacity: ResourceList
  readonly hostName: string
  readonly execLimits: ExecLimits
}

/**
 * Why a pod, or one of its containers, could not start: the first missing reference, or an environment too large for a
 * process; undefined where nothing is missing. Files that the pod makes itself count as present.
 */
export function findMissingReference(
  { objects: views, capacity, hostName, execLimits }: ReferenceHost,
  { pod, source }: { readonly pod: Pod; readonly source: SourceName },
  only?: ContainerSpec,
): string | undefined {
  const { spec, metadata } = pod
  const objects = views.seenBy(source)
  const fields = { pod, uid: '', nodeName: hostName, hostIps: [], podIps: [] }
  const isMounted = (name: string): boolean => only?.volumeMounts.some((mount) => mount.name === name) ?? true
  const volumes = spec.volumes.filter(({ name }) => isMounted(name))
  try {
    for (const volume of volumes) {
      computeVolumeFiles(volume, { fields, capacity, objects })
      const claim = volume.persistentVolumeClaim?.claimName
      if (claim === undefined) continue
      const wanted = { kind: 'PersistentVolumeClaim' as const, namespace: metadata.namespace, name: claim }
      if (objects.get(wanted.kind, wanted.namespace, wanted.name) === undefined)
        throw missingObject(objects, wanted)
    }
    for (const container of only === undefined ? [...spec.initContainers, ...spec.containers] : [only]) {
      const known = {
        fields,
        capacity,
        objects,
        limits: execLimits,
        services: new Map(),
        fileValue: () => '',
      }
      expandCommand(container, resolveEnvironment({ container, ...known }), execLimits)
    }
    return undefined
  } catch (error) {
    if (error instanceof MissingReference || error instanceof ArgumentsTooLarge) return error.message
    throw error
  }
}
