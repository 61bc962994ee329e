import type { FieldPath } from '../schema/field-path.ts'
import { compareQuantities } from '../values/quantity.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
import type { Issues } from './issues.ts'
import { noBacksteps } from './path-rules.ts'
import { validateVolumeFiles } from './validate-volume-files.ts'
import { dnsLabel } from './name-rules.ts'

/**
 * Gives the volumes that nothing is wrong with: a mount of any other one has no volume, as the API server sees it.
 * Source: pkg/apis/core/validation (ValidateVolumes, validateVolumeSource), 1.36.
 */
export function validateVolumes(
  volumes: readonly VolumeSpec[],
  path: FieldPath,
  issues: Issues,
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
    const [first, ...extra] = sources.filter((source) => volume[source] !== undefined)
    for (const source of extra) {
      issues.forbidden([...at, source], 'may not specify more than 1 volume type')
    }
    if (first !== undefined) {
      const { name } = volume
      validateSource({ name, [first]: volume[first] }, at, issues)
      validateVolumeFiles({ name, [first]: volume[first] }, at, issues)
    }
    const isGood = issues.problems
      .slice(before)
      .every(({ severity, reason }) => severity === 'warning' || reason === 'RefusedHere')
    if (isGood) good.set(volume.name, volume)
  }
  return good
}

/** In the order in which the API server looks at them; of more than one it validates the first. */
const sources = [
  'emptyDir',
  'hostPath',
  'secret',
  'persistentVolumeClaim',
  'downwardAPI',
  'configMap',
  'projected',
  'image',
] as const

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
