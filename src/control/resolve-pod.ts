import { PoddError, errorMessage } from '../base/errors.ts'
import type { SourceName } from '../pod/document.ts'
import type { PodUid } from '../pod/ids.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import { readEnvFile } from '../translate/env-file.ts'
import type { Environment } from '../translate/environment.ts'
import { MissingReference, missingObject } from '../translate/missing-reference.ts'
import type { HostVolume } from '../translate/mounts.ts'
import { resolveEnvironment } from '../translate/resolve-environment.ts'
import { computeSubPath } from '../translate/sub-paths.ts'
import { computeVolumeFiles } from '../translate/volume-files.ts'
import type { SourcedPod } from './object-store.ts'
import type { PodHost } from './pod-host.ts'

/** What resolving a pod needs of the host. */
export type ResolveHost = Pick<PodHost, 'objects' | 'capacity' | 'hostName' | 'hostIps'> & {
  readonly volumes: Pick<PodHost['volumes'], 'readFile'>
}

export interface ResolvedFor {
  readonly pod: Pod
  readonly source: SourceName
  readonly uid: PodUid
  readonly container: ContainerSpec
  /** The sandbox's addresses, the primary one first. */
  readonly podIps: readonly string[]
  /** Of the pod, prepared. */
  readonly volumes: ReadonlyMap<string, HostVolume>
}

/**
 * Gathers what a container's environment refers to: objects, fields, files in volumes.
 * @throws MissingReference where something is missing that isn't optional
 */
export async function gatherEnvironment(host: ResolveHost, input: ResolvedFor): Promise<Environment> {
  const { pod, source, uid, container, podIps } = input
  const files = await readFiles(host, input)
  return resolveEnvironment({
    container,
    fields: { pod, uid, nodeName: host.hostName, hostIps: host.hostIps(), podIps },
    capacity: host.capacity,
    objects: host.objects.seenBy(source),
    fileValue: ({ volumeName, path, key }) => {
      const text = files.get(fileKey(volumeName, path))
      if (text === undefined) return undefined
      try {
        return readEnvFile(text, key)
      } catch (error) {
        throw new MissingReference(`couldn't parse env file ${path}: ${errorMessage(error)}`)
      }
    },
  })
}

async function readFiles(
  host: ResolveHost,
  { container, volumes }: ResolvedFor,
): Promise<ReadonlyMap<string, string | undefined>> {
  const references = container.env.flatMap(({ valueFrom }) => valueFrom?.fileKeyRef ?? [])
  const texts = references.map(async ({ volumeName, path }) => {
    const volume = volumes.get(volumeName)
    const text = volume === undefined ? undefined : await host.volumes.readFile(volume.hostPath, path)
    return [fileKey(volumeName, path), text] as const
  })
  return new Map(await Promise.all(texts))
}

function fileKey(volumeName: string, path: string): string {
  return `${volumeName}\0${path}`
}

/**
 * Binds the parts of volumes that a container's mounts show, by the mount's index.
 * @throws PoddError where one can't be: it leads out of its volume, or its expression has no value
 */
export async function bindSubPaths(
  host: { readonly volumes: Pick<PodHost['volumes'], 'bindSubPath'> },
  { uid, container, volumes }: Pick<ResolvedFor, 'uid' | 'container' | 'volumes'>,
  environment: Environment,
): Promise<ReadonlyMap<number, string>> {
  const bound = new Map<number, string>()
  for (const [index, mount] of container.volumeMounts.entries()) {
    const subPath = computeSubPath(mount, environment)
    const volume = volumes.get(mount.name)
    // The runtime finds its way in an image itself.
    if (subPath === undefined || volume === undefined || volume.image !== undefined) continue
    const volumePath = volume.hostPath
    const place = { uid, container: container.name, volume: mount.name, index, volumePath, subPath }
    try {
      bound.set(index, await host.volumes.bindSubPath(place))
    } catch (error) {
      const message = `failed to prepare subPath for volumeMount "${mount.name}" of container "${container.name}": ${errorMessage(error)}`
      throw new PoddError('SUB_PATH', message, { cause: error })
    }
  }
  return bound
}

/** What tells whether a pod's references are there. */
export type ReferenceHost = Pick<PodHost, 'objects' | 'capacity' | 'hostName'>

/**
 * Why a pod could not start, or one container of it could not: the first thing it refers to that is missing;
 * undefined where all is there. Files that it makes itself are taken to be there.
 */
export function findMissingReference(
  { objects: views, capacity, hostName }: ReferenceHost,
  { pod, source }: SourcedPod,
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
    for (const container of only === undefined ? [...spec.initContainers, ...spec.containers] : [only])
      resolveEnvironment({ container, fields, capacity, objects, fileValue: () => '' })
    return undefined
  } catch (error) {
    if (error instanceof MissingReference) return error.message
    throw error
  }
}
