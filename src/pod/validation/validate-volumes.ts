import { cleanPath } from '../values/clean-path.ts'
import type { FieldPath } from '../schema/field-path.ts'
import { compareQuantities } from '../values/quantity.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
import type { Issues } from './issues.ts'
import { dnsLabel, dnsSubdomain } from './name-rules.ts'

/** Source: pkg/apis/core/validation (ValidateVolumes, validateVolumeSource), 1.36. */
export function validateVolumes(volumes: readonly VolumeSpec[], path: FieldPath, issues: Issues): void {
  issues.unique(
    volumes,
    (volume) => volume.name,
    (index) => [...path, index, 'name'],
  )
  for (const [index, volume] of volumes.entries()) {
    const at = [...path, index]
    if (volume.name === '') issues.required([...at, 'name'])
    else issues.name([...at, 'name'], volume.name, dnsLabel)
    const sources = Object.keys(volume).filter((key) => key !== 'name')
    for (const extra of sources.slice(1)) {
      issues.forbidden([...at, extra], 'may not specify more than 1 volume type')
    }
    validateSource(volume, at, issues)
  }
}

function validateSource(
  { hostPath, emptyDir, image, persistentVolumeClaim }: VolumeSpec,
  path: FieldPath,
  issues: Issues,
): void {
  if (hostPath !== undefined) {
    const at = [...path, 'hostPath', 'path']
    if (hostPath.path === '') issues.required(at)
    else if (!hostPath.path.startsWith('/')) issues.invalid(at, hostPath.path, 'must be an absolute path')
    else noBacksteps(hostPath.path, at, issues)
  }
  if (image !== undefined && (image.reference ?? '') === '') issues.required([...path, 'image', 'reference'])
  if (persistentVolumeClaim !== undefined) {
    const at = [...path, 'persistentVolumeClaim', 'claimName']
    if (persistentVolumeClaim.claimName === '') issues.required(at)
    else issues.name(at, persistentVolumeClaim.claimName, dnsSubdomain)
  }
  if (emptyDir !== undefined) {
    const at = [...path, 'emptyDir', 'medium']
    if (/^HugePages(?:-|$)/.test(emptyDir.medium)) {
      issues.refused(at, 'podd mounts no huge pages; hugepages-<size> limits work with mmap and shmget')
    } else if (!['', 'Memory'].includes(emptyDir.medium)) {
      issues.unsupported(at, emptyDir.medium, ['', 'Memory'])
    }
    const { sizeLimit } = emptyDir
    issues.wholeBytes([...path, 'emptyDir', 'sizeLimit'], sizeLimit)
    if (sizeLimit !== undefined && compareQuantities(sizeLimit, '0') < 0) {
      const detail = 'SizeLimit field must be a valid resource quantity'
      issues.forbidden([...path, 'emptyDir', 'sizeLimit'], detail)
    }
  }
}

/** No step of the path leads back up. */
export function noBacksteps(value: string, path: FieldPath, issues: Issues): void {
  if (value.split('/').includes('..')) issues.invalid(path, value, "must not contain '..'")
}

/** A path inside a volume. */
export function localPath(value: string, path: FieldPath, issues: Issues): void {
  if (value.startsWith('/')) issues.invalid(path, value, 'must be a relative path')
  else noBacksteps(value, path, issues)
}

/** Where a file of a volume stands. Source: pkg/apis/core/validation (validateLocalNonReservedPath), 1.36. */
export function filePathInVolume(value: string, path: FieldPath, issues: Issues): void {
  if (value === '') issues.required(path)
  else if (value.startsWith('..')) issues.invalid(path, value, "must not start with '..'")
  else if (cleanPath(value) === '.') issues.invalid(path, value, 'must name a file')
  else localPath(value, path, issues)
}
