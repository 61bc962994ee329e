import { objectOrEmpty } from '../../base/json.ts'
import type { Json } from '../../base/json.ts'
import { cleanPath } from '../../base/text.ts'
import type { keyToPathSchema } from '../schema/container-schema.ts'
import type { Issues } from '../schema/issues.ts'
import { isPositive } from '../schema/pod-resources.ts'
import type { Infer } from '../schema/types.ts'
import { refusedVolumeFields } from '../schema/volume-schema.ts'
import type { ClaimSpec, downwardAPIFileSchema, VolumeSpec } from '../schema/volume-schema.ts'
import { compareQuantities } from '../values/quantity.ts'
import { dnsLabel, dnsSubdomain } from './name-rules.ts'
import { filePathInVolume, noBacksteps } from './path-rules.ts'
import { validateVolumeFieldRef, validateVolumeResourceRef } from './validate-env.ts'

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
  issues: Issues,
  { given = [], faulty = new Set() }: AsGiven = {},
): ReadonlyMap<string, VolumeSpec> {
  const good = new Map<string, VolumeSpec>()
  const seen = new Set<string>()
  for (const [index, volume] of volumes.entries()) {
    const at = issues.of(index)
    const before = issues.problems.length
    if (seen.has(volume.name) && volume.name !== '') at.of('name').duplicate(volume.name)
    seen.add(volume.name)
    at.of('name').requiredName(volume.name, dnsLabel)
    const written = objectOrEmpty(given[index])
    const isAny = sources.some((source) => source in written)
    const [first, ...extra] = sources.filter((source) => source in (isAny ? written : volume))
    for (const source of extra) {
      const named = Object.hasOwn(misnamed, source) ? misnamed[source] : source
      at.of(named ?? source).oneTooMany('volume type', at.of(source))
    }
    if (first !== undefined && isSupported(first)) {
      const only = { name: volume.name, [first]: volume[first] }
      validateSource(only, at)
      validateVolumeFiles(only, at)
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

type Source = (typeof sources)[number]

function isSupported(source: Source): source is Exclude<Source, keyof typeof refusedVolumeFields> {
  return !Object.hasOwn(refusedVolumeFields, source)
}

/** As the API server calls them where they are one too many. */
const misnamed: Readonly<Record<string, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' }

function validateSource(
  { hostPath, emptyDir, image, persistentVolumeClaim }: VolumeSpec,
  issues: Issues,
): void {
  if (hostPath !== undefined) {
    const at = issues.of('hostPath', 'path')
    if (hostPath.path === '') at.required()
    else if (!hostPath.path.startsWith('/'))
      at.refused(`${JSON.stringify(hostPath.path)} is no absolute path`)
    else noBacksteps(hostPath.path, at)
  }
  if (image !== undefined && (image.reference ?? '') === '') issues.of('image', 'reference').required()
  if (persistentVolumeClaim !== undefined) {
    const at = issues.of('persistentVolumeClaim', 'claimName')
    if (persistentVolumeClaim.claimName === '') at.required()
  }
  if (emptyDir !== undefined) {
    const at = issues.of('emptyDir', 'medium')
    if (/^HugePages(?:-|$)/.test(emptyDir.medium)) {
      at.refused('podd mounts no huge pages; hugepages-<size> limits work with mmap and shmget')
    } else if (!['', 'Memory'].includes(emptyDir.medium)) {
      at.refused(`unknown medium ${JSON.stringify(emptyDir.medium)}; known are "" and "Memory"`)
    }
    const { sizeLimit } = emptyDir
    issues.of('emptyDir', 'sizeLimit').wholeBytes(sizeLimit)
    if (sizeLimit !== undefined && compareQuantities(sizeLimit, '0') < 0) {
      const detail = 'SizeLimit field must be a valid resource quantity'
      issues.of('emptyDir', 'sizeLimit').forbidden(detail)
    }
  }
}

type ProjectedVolume = NonNullable<VolumeSpec['projected']>

const maxMode = 0o777

/**
 * Volumes that podd fills with files: configMap, secret, downwardAPI, projected. Source: pkg/apis/core/validation
 * (validateConfigMapVolumeSource and its neighbours), 1.36.
 */
function validateVolumeFiles(
  { configMap, secret, downwardAPI: downward, projected }: VolumeSpec,
  issues: Issues,
): void {
  if (configMap !== undefined) validateKeys(configMap, configMap.name, 'name', issues.of('configMap'))
  if (secret !== undefined) {
    validateKeys(secret, secret.secretName, 'secretName', issues.of('secret'))
  }
  if (downward !== undefined) {
    const at = issues.of('downwardAPI')
    validateMode(downward.defaultMode, at.of('defaultMode'))
    validateDownwardFiles(downward.items, at)
  }
  if (projected !== undefined) validateProjected(projected, issues.of('projected'))
}

function validateProjected({ sources, defaultMode }: ProjectedVolume, issues: Issues): void {
  validateMode(defaultMode, issues.of('defaultMode'))
  validatePlaces(sources, issues)
  for (const [index, source] of sources.entries()) {
    const at = issues.of('sources', index)
    if (Object.keys(source).length > 1) at.forbidden('may not specify more than 1 volume type per source')
    for (const kind of ['configMap', 'secret'] as const) {
      const keys = source[kind]
      if (keys !== undefined) validateKeys(keys, keys.name, 'name', at.of(kind))
    }
    if (source.downwardAPI !== undefined) {
      validateDownwardFiles(source.downwardAPI.items, at.of('downwardAPI'))
    }
  }
}

/** No two sources write the same file, or a file where the other needs a directory. */
function validatePlaces(sources: ProjectedVolume['sources'], issues: Issues): void {
  const places = new FilePlaces()
  const written = new Set<string>()
  for (const [index, source] of sources.entries()) {
    for (const kind of ['secret', 'configMap', 'downwardAPI'] as const) {
      for (const [position, item] of (source[kind]?.items ?? []).entries()) {
        if (item.path === '') continue
        const at = issues.of('sources', index, kind, 'items', position, 'path')
        const other = places.take(cleanPath(item.path))
        if (written.has(item.path)) {
          const value = kind === 'downwardAPI' ? item.path : source[kind]?.name
          issues.invalid(value, 'conflicting duplicate paths', at)
        } else if (other !== undefined) {
          at.refused(`${JSON.stringify(item.path)} is in the way of ${JSON.stringify(other)}`)
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
  nameField: string,
  issues: Issues,
): void {
  if (name === '') issues.of(nameField).required()
  validateMode(source.defaultMode, issues.of('defaultMode'))
  for (const [index, item] of source.items.entries()) {
    const at = issues.of('items', index)
    if (item.key === '') at.of('key').required()
    filePathInVolume(item.path, at.of('path'))
    validateMode(item.mode, at.of('mode'))
  }
}

/** `path` is that of the source: the API server names no item. */
function validateDownwardFiles(files: readonly Infer<typeof downwardAPIFileSchema>[], issues: Issues): void {
  for (const [index, { path: filePath, fieldRef, resourceFieldRef, mode }] of files.entries()) {
    const near = issues.of('items', index)
    filePathInVolume(filePath, issues.of('path'), near.of('path'))
    validateMode(mode, issues.of('mode'), near.of('mode'))
    if (fieldRef !== undefined && resourceFieldRef !== undefined) {
      const detail = 'fieldRef and resourceFieldRef can not be specified simultaneously'
      issues.invalid('resource', detail, near)
    }
    if (fieldRef !== undefined) {
      validateVolumeFieldRef(fieldRef, issues.of('fieldRef'), near.of('fieldRef'))
    } else if (resourceFieldRef === undefined) {
      issues.required('one of fieldRef and resourceFieldRef is required', near)
    } else {
      validateVolumeResourceRef(resourceFieldRef, issues.of('resourceFieldRef'), near.of('resourceFieldRef'))
    }
  }
}

function validateMode(mode: number | undefined, issues: Issues, near?: Issues): void {
  if (mode !== undefined && (mode < 0 || mode > maxMode)) {
    issues.invalid(mode, 'must be a number between 0 and 0777 (octal), both inclusive', near)
  }
}

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** The storage class whose volumes are directories below podd's root. */
const localStorageClass = 'podd-local'

/** Source: ValidatePersistentVolumeClaimSpec in pkg/apis/core/validation, 1.36. */
export function validateClaimSpec(spec: ClaimSpec, issues: Issues): void {
  const modes = issues.of('accessModes')
  if (spec.accessModes.length === 0) modes.required('at least 1 access mode is required')
  for (const [index, mode] of spec.accessModes.entries()) {
    if (!accessModes.includes(mode)) modes.unsupported(mode, accessModes, modes.of(index))
  }
  const known = new Set(spec.accessModes.filter((mode) => accessModes.includes(mode)))
  if (known.size > 1 && known.has('ReadWriteOncePod')) {
    modes.forbidden('may not use ReadWriteOncePod with other access modes')
  }
  const { storage } = spec.resources.requests
  const at = issues.of('resources', 'requests', 'storage')
  const field = issues.of('resources', '[storage]')
  if (storage === undefined) field.required(undefined, at)
  else if (!isPositive(storage)) field.invalid(storage, 'must be greater than zero', at)
  at.wholeBytes(storage)
  issues.of('resources', 'limits', 'storage').wholeBytes(spec.resources.limits['storage'])
  const { storageClassName = '' } = spec
  if (storageClassName !== '' && storageClassName !== localStorageClass) {
    issues.of('storageClassName').name(storageClassName, dnsSubdomain)
    issues
      .of('storageClassName')
      .warn(
        `storage class ${JSON.stringify(storageClassName)} has no effect: claims are directories of this host`,
      )
  }
  if (spec.volumeMode === 'Block') {
    issues.of('volumeMode').refused('a claim is a directory of this host, and no block device')
  }
}
