import type { Json } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { ClaimSpec } from '../schema/claim-schema.ts'
import { dataSourceRefSchema, dataSourceSchema } from '../schema/claim-schema.ts'
import type { FieldPath } from '../schema/field-path.ts'
import { fillDefaults } from '../schema/fill-defaults.ts'
import { labelSelectorSchema } from '../schema/scheduling-schema.ts'
import type { Infer } from '../schema/types.ts'
import { object, optional, string } from '../schema/types.ts'
import { isPositive } from '../spec/pod-resources.ts'
import type { Issues } from './issues.ts'
import { fieldOf } from './issues.ts'
import { dnsLabel, dnsSubdomain } from './name-rules.ts'
import { validateLabelSelector } from './validate-selectors.ts'

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

/** The storage class whose volumes are directories below podd's root. */
const localStorageClass = 'podd-local'

/**
 * A claim's, or that of a volume which makes one for its pod. Fields that podd refuses stand in `given` alone.
 * Source: ValidatePersistentVolumeClaimSpec in pkg/apis/core/validation, 1.36.
 */
export function validateClaimSpec(
  spec: ClaimSpec,
  given: Json | undefined,
  path: FieldPath,
  issues: Issues,
): void {
  const modes = [...path, 'accessModes']
  if (spec.accessModes.length === 0) issues.required(modes, 'at least 1 access mode is required')
  for (const [index, mode] of spec.accessModes.entries()) {
    if (!accessModes.includes(mode)) issues.unsupported(modes, mode, accessModes, [...modes, index])
  }
  const known = new Set(spec.accessModes.filter((mode) => accessModes.includes(mode)))
  if (known.size > 1 && known.has('ReadWriteOncePod')) {
    issues.forbidden(modes, 'may not use ReadWriteOncePod with other access modes')
  }
  const { storage } = spec.resources.requests
  const at = [...path, 'resources', 'requests', 'storage']
  const field = [...path, 'resources', '[storage]']
  if (storage === undefined) issues.required(field, undefined, at)
  else if (!isPositive(storage)) issues.invalid(field, storage, 'must be greater than zero', at)
  issues.wholeBytes(at, storage)
  issues.wholeBytes([...path, 'resources', 'limits', 'storage'], spec.resources.limits['storage'])
  const { storageClassName = '' } = spec
  if (storageClassName !== '' && storageClassName !== localStorageClass) {
    issues.name([...path, 'storageClassName'], storageClassName, dnsSubdomain)
    issues.warn(
      [...path, 'storageClassName'],
      `storage class ${JSON.stringify(storageClassName)} has no effect: claims are directories of this host`,
    )
  }
  if (spec.volumeMode === 'Block') {
    issues.refused([...path, 'volumeMode'], 'a claim is a directory of this host, and no block device')
  }
  validateSources(given, path, issues)
}

const sourcesSchema = object('PersistentVolumeClaimSpec', {
  selector: optional(labelSelectorSchema),
  dataSource: optional(dataSourceSchema),
  dataSourceRef: optional(dataSourceRefSchema),
  volumeAttributesClassName: optional(string),
})

type Sources = Pick<Infer<typeof sourcesSchema>, 'dataSource' | 'dataSourceRef'>
type DataSource = Infer<typeof dataSourceSchema>

/** Where a claim's volume comes from. Source: validateDataSource, validateDataSourceRef, 1.36. */
function validateSources(given: Json | undefined, path: FieldPath, issues: Issues): void {
  if (!isJsonObject(given)) return
  const spec = fieldOf({ spec: fillDefaults(sourcesSchema, given) }, 'spec', sourcesSchema)
  if (spec === undefined) return
  const { dataSource, dataSourceRef } = sameSources(spec)
  const { volumeAttributesClassName = '' } = spec
  validateLabelSelector(spec.selector, [...path, 'selector'], issues)
  if (volumeAttributesClassName !== '')
    issues.name([...path, 'volumeAttributesClassName'], volumeAttributesClassName, dnsSubdomain)
  if (dataSource !== undefined) validateDataSource(dataSource, [...path, 'dataSource'], issues)
  if (dataSourceRef === undefined) return
  validateDataSource(dataSourceRef, [...path, 'dataSourceRef'], issues)
  const { namespace = '' } = dataSourceRef
  if (namespace !== '') issues.name([...path, 'dataSourceRef', 'namespace'], namespace, dnsLabel)
  if (dataSource === undefined) return
  const near = [...path, 'dataSource']
  if (namespace !== '')
    issues.invalid(path, 'dataSource', 'may not be specified when dataSourceRef.namespace is specified', near)
  else if (!isSame(dataSource, dataSourceRef))
    issues.invalid(path, 'dataSource', 'must match dataSourceRef', near)
}

/**
 * One of the two stands for the other that isn't there; a `dataSource` that is neither a claim nor a snapshot is dropped.
 * Source: pkg/api/persistentvolumeclaim/util.go (EnforceDataSourceBackwardsCompatibility, NormalizeDataSources), 1.36.
 */
function sameSources({ dataSource: given, dataSourceRef }: Sources): Sources {
  const isKept = originals.some(
    ({ apiGroup, kind }) => (given?.apiGroup ?? '') === apiGroup && given?.kind === kind,
  )
  const dataSource = isKept ? given : undefined
  if (dataSourceRef === undefined)
    return dataSource === undefined ? {} : { dataSource, dataSourceRef: dataSource }
  const isElsewhere = (dataSourceRef.namespace ?? '') !== ''
  const own = dataSource ?? (isElsewhere ? undefined : dataSourceRef)
  return own === undefined ? { dataSourceRef } : { dataSource: own, dataSourceRef }
}

const originals = [
  { apiGroup: '', kind: 'PersistentVolumeClaim' },
  { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot' },
] as const

function validateDataSource(
  { apiGroup = '', kind, name }: DataSource,
  path: FieldPath,
  issues: Issues,
): void {
  if (name === '') issues.required([...path, 'name'])
  if (kind === '') issues.required([...path, 'kind'])
  if (apiGroup !== '') issues.name([...path, 'apiGroup'], apiGroup, dnsSubdomain)
  else if (kind !== 'PersistentVolumeClaim')
    issues.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
}

function isSame(one: DataSource, other: DataSource): boolean {
  return one.apiGroup === other.apiGroup && one.kind === other.kind && one.name === other.name
}
