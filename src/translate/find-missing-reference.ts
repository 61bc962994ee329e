import { missingObject, MissingReference } from './spec/missing-reference.ts'
import type { ObjectReader } from '../pod/objects/local-object.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import type { ResourceList } from '../pod/schema/pod-resources.ts'
import type { SourceName } from '../pod/values/ids.ts'
import { ArgumentsTooLarge, expandCommand } from './environment/exec-limits.ts'
import type { ExecLimits } from './environment/exec-limits.ts'
import { resolveEnvironment } from './environment/resolve-environment.ts'
import { computeVolumeFiles } from './volumes/volume-files.ts'

/** The readers for a pod's references. */
export interface ReferenceHost {
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
      const known = { fields, capacity, objects, limits: execLimits, fileValue: () => '' }
      expandCommand(container, resolveEnvironment({ container, ...known }), execLimits)
    }
    return undefined
  } catch (error) {
    if (error instanceof MissingReference || error instanceof ArgumentsTooLarge) return error.message
    throw error
  }
}
