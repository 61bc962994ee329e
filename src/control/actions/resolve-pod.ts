import { PoddError, errorMessage } from '../../base/errors.ts'
import type { SourceName } from '../../pod/objects/document.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { EnvFile } from '../../translate/resolve-environment.ts'
import { envFileValue, parseEnvFile, resolveEnvironment } from '../../translate/resolve-environment.ts'
import type { Environment } from '../../translate/environment.ts'
import { MissingReference } from '../../translate/references.ts'
import type { HostVolume } from '../../translate/mounts.ts'
import { computeSubPath, whenSubPathMissing } from '../../translate/mounts.ts'
import type { PodHost } from './pod-host.ts'

/** What resolving a pod needs of the host. */
export type ResolveHost = Pick<PodHost, 'objects' | 'capacity' | 'hostName' | 'hostIps' | 'execLimits'> & {
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
 * @throws ArgumentsTooLarge where no process could have it
 */
export async function gatherEnvironment(host: ResolveHost, input: ResolvedFor): Promise<Environment> {
  const { pod, source, uid, container, podIps } = input
  const files = await readFiles(host, input)
  return resolveEnvironment({
    container,
    fields: { pod, uid, nodeName: host.hostName, hostIps: host.hostIps(), podIps },
    capacity: host.capacity,
    objects: host.objects.seenBy(source),
    limits: host.execLimits,
    fileValue: ({ volumeName, path, key }) => {
      const file = files.get(fileKey(volumeName, path))
      if (file === undefined) return undefined
      try {
        return envFileValue(file, key)
      } catch (error) {
        throw new MissingReference(`couldn't parse env file ${path}: ${errorMessage(error)}`)
      }
    },
  })
}

async function readFiles(
  host: ResolveHost,
  { container, volumes }: ResolvedFor,
): Promise<ReadonlyMap<string, EnvFile | undefined>> {
  const references = container.env.flatMap(({ valueFrom }) => valueFrom?.fileKeyRef ?? [])
  const files = new Map<string, EnvFile | undefined>()
  // Each file once, and one after the other: many keys may stand in it, and it may be large.
  for (const { volumeName, path } of references) {
    const key = fileKey(volumeName, path)
    if (files.has(key)) continue
    const volume = volumes.get(volumeName)
    const text = volume === undefined ? undefined : await host.volumes.readFile(volume.hostPath, path)
    files.set(key, text === undefined ? undefined : parseEnvFile(text))
  }
  return files
}

function fileKey(volumeName: string, path: string): string {
  return `${volumeName}\0${path}`
}

/**
 * Binds the parts of volumes that a container's mounts show, by the mount's index.
 * @throws PoddError where one can't be: it leads out of its volume, its expression has no value, or it is no file of
 * those that podd writes
 */
export async function bindSubPaths(
  host: { readonly volumes: Pick<PodHost['volumes'], 'bindSubPath'> },
  { pod, uid, container, volumes }: Pick<ResolvedFor, 'pod' | 'uid' | 'container' | 'volumes'>,
  environment: Environment,
): Promise<ReadonlyMap<number, string>> {
  const bound = new Map<number, string>()
  for (const [index, mount] of container.volumeMounts.entries()) {
    const subPath = computeSubPath(mount, environment)
    const volume = volumes.get(mount.name)
    const volumeSpec = pod.spec.volumes.find(({ name }) => name === mount.name)
    if (subPath === undefined || volume === undefined || volumeSpec === undefined) continue
    if (volume.image !== undefined) {
      // The runtime finds its way in an image itself.
      bound.set(index, subPath)
      continue
    }
    const volumePath = volume.hostPath
    const place = { uid, container: container.name, volume: mount.name, index, volumePath, subPath }
    const whenMissing = whenSubPathMissing(volumeSpec, subPath)
    try {
      bound.set(index, await host.volumes.bindSubPath({ ...place, whenMissing }))
    } catch (error) {
      const message = `failed to prepare subPath for volumeMount "${mount.name}" of container "${container.name}": ${errorMessage(error)}`
      throw new PoddError('SUB_PATH', message, { cause: error })
    }
  }
  return bound
}
