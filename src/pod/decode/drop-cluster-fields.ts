import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldPath } from '../schema/field-path.ts'

const tokenMountPath = '/var/run/secrets/kubernetes.io/serviceaccount'
const containerLists = ['initContainers', 'containers', 'ephemeralContainers'] as const

/** A Pod's manifest without fields that a cluster injected. */
export interface WithoutClusterFields {
  readonly manifest: JsonObject
  /** The removed fields, for a warning. */
  readonly dropped: readonly string[]
  /** Whether it is a dump of a live pod, so that its ignored fields may be a cluster's and not a user's. */
  readonly isDump: boolean
  /** Maps the path of a field of `manifest` to its path in the original manifest. */
  readonly originalPath: (path: FieldPath) => FieldPath
}

/**
 * Takes out the service account's token volume with its mounts, which a cluster injects into every pod, and the name's
 * template where there is a name. (The schema ignores a dump's other fields.)
 */
export function dropClusterFields(manifest: JsonObject): WithoutClusterFields {
  const lists = new ListCutter()
  const dropped: string[] = []
  const metadata = isJsonObject(manifest['metadata']) ? manifest['metadata'] : {}
  const isDump = ['uid', 'resourceVersion', 'managedFields'].some((key) => hasValue(metadata[key]))
  const hasTemplate =
    hasValue(metadata['name']) &&
    typeof metadata['generateName'] === 'string' &&
    metadata['generateName'] !== ''
  if (hasTemplate) dropped.push('metadata.generateName')
  const spec = manifest['spec']
  return {
    manifest: {
      ...manifest,
      ...(hasTemplate && { metadata: { ...metadata, generateName: null } }),
      ...(isJsonObject(spec) && { spec: dropTokenVolume(spec, lists, dropped) }),
    },
    dropped,
    isDump,
    originalPath: (path) => lists.originalPath(path),
  }
}

function hasValue(value: Json | undefined): boolean {
  return value !== undefined && value !== null && value !== ''
}

function dropTokenVolume(spec: JsonObject, lists: ListCutter, dropped: string[]): JsonObject {
  let tokenMounts: ReadonlySet<Json | undefined> | undefined
  const isToken = (volume: Json): boolean => {
    const name = isJsonObject(volume) ? volume['name'] : undefined
    if (!isJsonObject(volume) || typeof name !== 'string') return false
    const isInjected = name.startsWith('kube-api-access-') && 'projected' in volume
    const isOldStyle = /-token-[a-z0-9]{5}$/.test(name) && 'secret' in volume
    if (isInjected || !isOldStyle) return isInjected
    tokenMounts ??= namesMountedAsToken(spec)
    return tokenMounts.has(name)
  }
  const volumes = spec['volumes']
  const tokens = Array.isArray(volumes) ? volumes.filter((volume) => isToken(volume)) : []
  if (tokens.length === 0) return spec
  const names = new Set(tokens.map((volume) => (isJsonObject(volume) ? volume['name'] : undefined)))
  dropped.push('the volume of the service account token')
  const isTokenMount = (mount: Json): boolean => isJsonObject(mount) && names.has(mount['name'])
  const without: Record<string, Json> = {
    ...spec,
    volumes: lists.cut(volumes, ['spec', 'volumes'], isToken),
  }
  for (const listName of containerLists) {
    const containers = spec[listName]
    if (!Array.isArray(containers)) continue
    without[listName] = containers.map((container: Json, index) => {
      const mounts = isJsonObject(container) ? container['volumeMounts'] : undefined
      if (!isJsonObject(container) || mounts === undefined) return container
      const path = ['spec', listName, index, 'volumeMounts']
      const kept = lists.cut(mounts, path, isTokenMount)
      return Object.fromEntries([...Object.entries(container), ['volumeMounts', kept]])
    })
  }
  return without
}

/** Volumes that are mounted where the token is, and nowhere else. */
function namesMountedAsToken(spec: JsonObject): ReadonlySet<Json | undefined> {
  const mounts = containerLists
    .flatMap((listName) => listOf(spec[listName]))
    .flatMap((container) => (isJsonObject(container) ? listOf(container['volumeMounts']) : []))
    .filter((mount) => isJsonObject(mount))
  const names = new Set(mounts.map(({ name }) => name))
  for (const { name, mountPath } of mounts) if (mountPath !== tokenMountPath) names.delete(name)
  return names
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}

/** Removes items from lists and remembers the others' indexes. */
class ListCutter {
  readonly #kept = new Map<string, readonly number[]>()

  cut(list: Json | undefined, path: FieldPath, isOut: (item: Json) => boolean): Json {
    if (!Array.isArray(list)) return list ?? null
    const kept = [...list.keys()].filter((index) => !isOut(list[index] ?? null))
    this.#kept.set(path.join('/'), kept)
    return kept.map((index) => list[index] ?? null)
  }

  originalPath(path: FieldPath): FieldPath {
    return path.map((step, index) => {
      if (typeof step === 'string') return step
      return this.#kept.get(path.slice(0, index).join('/'))?.[step] ?? step
    })
  }
}
