import { isJsonObject } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { cleanPath } from '../../base/text.ts'
import type { keyToPathSchema } from '../schema/container-schema.ts'
import { fieldOf } from '../schema/issues.ts'
import type { FieldPath, Issues } from '../schema/issues.ts'
import type { Infer } from '../schema/types.ts'
import {
  configMapVolumeSchema,
  downwardAPIVolumeSchema,
  projectedVolumeSchema,
  secretVolumeSchema,
} from '../schema/volume-schema.ts'
import type { downwardAPIFileSchema, VolumeSpec } from '../schema/volume-schema.ts'
import { compareQuantities } from '../values/quantity.ts'
import { dnsLabel } from './name-rules.ts'
import { filePathInVolume, noBacksteps } from './path-rules.ts'
import { validateVolumeFieldRef, validateVolumeResourceRef } from './validate-env.ts'
import { isRefusedVolume, validateRefusedVolume } from './validate-refused-volumes.ts'

interface AsGiven {
  /** The volumes as written, with sources that podd doesn't support. */
  readonly given?: readonly Json[]
  /** Indexes of volumes that are already known to be invalid. */
  readonly faulty?: ReadonlySet<string | number | undefined>
}

/**
 * Returns the valid volumes: for the API server a mount of any other one has no volume. Source:
 * pkg/apis/core/validation (ValidateVolumes, validateVolumeSource), 1.36.
 */
export function validateVolumes(
  volumes: readonly VolumeSpec[],
  path: FieldPath,
  issues: Issues,
  { given = [], faulty = new Set() }: AsGiven = {},
): ReadonlyMap<string, VolumeSpec> {
  const good = new Map<string, VolumeSpec>()
  const seen = new Set<string>()
  for (const [index, volume] of volumes.entries()) {
    const at = [...path, index]
    const before = issues.problems.length
    if (seen.has(volume.name) && volume.name !== '') issues.duplicate([...at, 'name'], volume.name)
    seen.add(volume.name)
    if (volume.name === '') issues.required([...at, 'name'])
    else issues.name([...at, 'name'], volume.name, dnsLabel)
    const own = given[index]
    const written = isJsonObject(own) ? own : {}
    const isAny = sources.some((source) => source in written)
    const [first, ...extra] = sources.filter((source) => source in (isAny ? written : volume))
    for (const source of extra) {
      const named = Object.hasOwn(misnamed, source) ? misnamed[source] : source
      issues.oneTooMany([...at, named ?? source], 'volume type', [...at, source])
    }
    if (first !== undefined && isRefusedVolume(first)) {
      validateRefusedVolume(first, written[first], at, issues)
    } else if (first !== undefined) {
      const { name } = volume
      validateSource({ name, [first]: volume[first] }, at, issues)
      validateVolumeFiles({ name, [first]: volume[first] }, at, issues, written['projected'])
    }
    const isGood = issues.problems
      .slice(before)
      .every(({ severity, reason }) => severity === 'warning' || reason === 'RefusedHere')
    if (isGood && !faulty.has(index)) good.set(volume.name, volume)
  }
  return good
}

/** In the order in which the API server looks at them; of more than one it validates the first. */
const sources = [
  'emptyDir',
  'hostPath',
  'gitRepo',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'secret',
  'nfs',
  'iscsi',
  'glusterfs',
  'flocker',
  'persistentVolumeClaim',
  'rbd',
  'cinder',
  'cephfs',
  'quobyte',
  'downwardAPI',
  'fc',
  'flexVolume',
  'configMap',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'storageos',
  'projected',
  'scaleIO',
  'csi',
  'ephemeral',
  'image',
] as const

/** As the API server calls them where they are one too many. */
const misnamed: Readonly<Record<string, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' }

function validateSource(
  { hostPath, emptyDir, image, persistentVolumeClaim }: VolumeSpec,
  path: FieldPath,
  issues: Issues,
): void {
  if (hostPath !== undefined) {
    const at = [...path, 'hostPath', 'path']
    if (hostPath.path === '') issues.required(at)
    else if (!hostPath.path.startsWith('/'))
      issues.refused(at, `${JSON.stringify(hostPath.path)} is no absolute path`)
    else noBacksteps(hostPath.path, at, issues)
  }
  if (image !== undefined && (image.reference ?? '') === '') issues.required([...path, 'image', 'reference'])
  if (persistentVolumeClaim !== undefined) {
    const at = [...path, 'persistentVolumeClaim', 'claimName']
    if (persistentVolumeClaim.claimName === '') issues.required(at)
  }
  if (emptyDir !== undefined) {
    const at = [...path, 'emptyDir', 'medium']
    if (/^HugePages(?:-|$)/.test(emptyDir.medium)) {
      issues.refused(at, 'podd mounts no huge pages; hugepages-<size> limits work with mmap and shmget')
    } else if (!['', 'Memory'].includes(emptyDir.medium)) {
      issues.refused(at, `unknown medium ${JSON.stringify(emptyDir.medium)}; known are "" and "Memory"`)
    }
    const { sizeLimit } = emptyDir
    issues.wholeBytes([...path, 'emptyDir', 'sizeLimit'], sizeLimit)
    if (sizeLimit !== undefined && compareQuantities(sizeLimit, '0') < 0) {
      const detail = 'SizeLimit field must be a valid resource quantity'
      issues.forbidden([...path, 'emptyDir', 'sizeLimit'], detail)
    }
  }
}

type Projection = Infer<typeof projectedVolumeSchema>['sources'][number]

const maxMode = 0o777

/**
 * Volumes that podd fills with files: configMap, secret, downwardAPI, projected. `given`: a projected volume as it was
 * written, with the sources that podd has none of. Source: pkg/apis/core/validation (validateConfigMapVolumeSource and
 * its neighbours), 1.36.
 */
function validateVolumeFiles(volume: VolumeSpec, path: FieldPath, issues: Issues, given?: Json): void {
  const configMap = fieldOf(volume, 'configMap', configMapVolumeSchema)
  if (configMap !== undefined) validateKeys(configMap, configMap.name, [...path, 'configMap'], 'name', issues)
  const secret = fieldOf(volume, 'secret', secretVolumeSchema)
  if (secret !== undefined) {
    validateKeys(secret, secret.secretName, [...path, 'secret'], 'secretName', issues)
  }
  const downward = fieldOf(volume, 'downwardAPI', downwardAPIVolumeSchema)
  if (downward !== undefined) {
    const at = [...path, 'downwardAPI']
    validateMode(downward.defaultMode, [...at, 'defaultMode'], issues)
    validateDownwardFiles(downward.items, at, issues)
  }
  const projected = fieldOf(volume, 'projected', projectedVolumeSchema)
  if (projected !== undefined) validateProjected(projected, [...path, 'projected'], issues, given)
}

function validateProjected(
  { sources, defaultMode }: Infer<typeof projectedVolumeSchema>,
  path: FieldPath,
  issues: Issues,
  given: Json | undefined,
): void {
  validateMode(defaultMode, [...path, 'defaultMode'], issues)
  validatePlaces(sources, path, issues)
  const all = isJsonObject(given) && Array.isArray(given['sources']) ? given['sources'] : []
  for (const [index, source] of sources.entries()) {
    const at = [...path, 'sources', index]
    const written = all[index]
    const token = isJsonObject(written) ? written['serviceAccountToken'] : undefined
    if (isJsonObject(token)) validateToken(token, path, at, issues)
    if (Object.keys(source).length + (token === undefined ? 0 : 1) > 1) {
      issues.forbidden(at, 'may not specify more than 1 volume type per source')
    }
    for (const kind of ['configMap', 'secret'] as const) {
      const keys = source[kind]
      if (keys !== undefined) validateKeys(keys, keys.name, [...at, kind], 'name', issues)
    }
    if (source.downwardAPI !== undefined) {
      validateDownwardFiles(source.downwardAPI.items, [...at, 'downwardAPI'], issues)
    }
  }
}

/** The API server names the path of a token after the volume. */
function validateToken(token: JsonObject, volume: FieldPath, source: FieldPath, issues: Issues): void {
  const near = [...source, 'serviceAccountToken']
  const { expirationSeconds = 3600, path = '' } = token
  if (typeof expirationSeconds === 'number') {
    const at = [...near, 'expirationSeconds']
    if (expirationSeconds < 600) {
      issues.invalid(at, expirationSeconds, 'may not specify a duration less than 10 minutes')
    } else if (expirationSeconds > 2 ** 32) {
      issues.invalid(at, expirationSeconds, 'may not specify a duration larger than 2^32 seconds')
    }
  }
  if (typeof path === 'string') filePathInVolume(path, [...volume, 'path'], issues, near)
}

/** No two sources write the same file, or a file where the other needs a directory. */
function validatePlaces(sources: readonly Projection[], path: FieldPath, issues: Issues): void {
  const places = new FilePlaces()
  const written = new Set<string>()
  for (const [index, source] of sources.entries()) {
    for (const kind of ['secret', 'configMap', 'downwardAPI'] as const) {
      for (const [position, item] of (source[kind]?.items ?? []).entries()) {
        if (item.path === '') continue
        const at = [...path, 'sources', index, kind, 'items', position, 'path']
        const other = places.take(cleanPath(item.path))
        if (written.has(item.path)) {
          const value = kind === 'downwardAPI' ? item.path : source[kind]?.name
          issues.invalid(path, value, 'conflicting duplicate paths', at)
        } else if (other !== undefined) {
          issues.refused(at, `${JSON.stringify(item.path)} is in the way of ${JSON.stringify(other)}`)
        }
        written.add(item.path)
      }
    }
  }
}

interface PlaceNode {
  /** The first file that was put here or below. */
  readonly first: string
  isFile: boolean
  readonly below: Map<string, PlaceNode>
}

/** A tree of file paths, in which each step of a path is examined once. */
class FilePlaces {
  readonly #top = new Map<string, PlaceNode>()

  /** Adds a file; returns the conflicting file, if any. */
  take(place: string): string | undefined {
    const names = place.split('/')
    let level = this.#top
    for (const [index, name] of names.entries()) {
      const isLast = index === names.length - 1
      let node = level.get(name)
      if (node !== undefined && (node.isFile || isLast)) return node.first
      node ??= { first: place, isFile: isLast, below: new Map() }
      level.set(name, node)
      level = node.below
    }
    return undefined
  }
}

function validateKeys(
  source: {
    readonly items: readonly Infer<typeof keyToPathSchema>[]
    readonly defaultMode?: number
  },
  name: string,
  path: FieldPath,
  nameField: string,
  issues: Issues,
): void {
  if (name === '') issues.required([...path, nameField])
  validateMode(source.defaultMode, [...path, 'defaultMode'], issues)
  for (const [index, item] of source.items.entries()) {
    const at = [...path, 'items', index]
    if (item.key === '') issues.required([...at, 'key'])
    filePathInVolume(item.path, [...at, 'path'], issues)
    validateMode(item.mode, [...at, 'mode'], issues)
  }
}

/** `path` is that of the source: the API server names no item. */
function validateDownwardFiles(
  files: readonly Infer<typeof downwardAPIFileSchema>[],
  path: FieldPath,
  issues: Issues,
): void {
  for (const [index, { path: filePath, fieldRef, resourceFieldRef, mode }] of files.entries()) {
    const near = [...path, 'items', index]
    filePathInVolume(filePath, [...path, 'path'], issues, [...near, 'path'])
    validateMode(mode, [...path, 'mode'], issues, [...near, 'mode'])
    if (fieldRef !== undefined && resourceFieldRef !== undefined) {
      const detail = 'fieldRef and resourceFieldRef can not be specified simultaneously'
      issues.invalid(path, 'resource', detail, near)
    }
    if (fieldRef !== undefined) {
      validateVolumeFieldRef(fieldRef, [...path, 'fieldRef'], issues, [...near, 'fieldRef'])
    } else if (resourceFieldRef === undefined) {
      issues.required(path, 'one of fieldRef and resourceFieldRef is required', near)
    } else {
      validateVolumeResourceRef(resourceFieldRef, [...path, 'resourceFieldRef'], issues, [
        ...near,
        'resourceFieldRef',
      ])
    }
  }
}

function validateMode(mode: number | undefined, path: FieldPath, issues: Issues, near?: FieldPath): void {
  if (mode !== undefined && (mode < 0 || mode > maxMode)) {
    issues.invalid(path, mode, 'must be a number between 0 and 0777 (octal), both inclusive', near)
  }
}
