import type { Json } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldPath } from '../schema/field-path.ts'
import { compareQuantities } from '../values/quantity.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
import type { Issues } from './issues.ts'
import { noBacksteps } from './path-rules.ts'
import { isRefusedVolume, validateRefusedVolume } from './validate-refused-volumes.ts'
import { validateVolumeFiles } from './validate-volume-files.ts'
import { dnsLabel } from './name-rules.ts'

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
