import { isJsonObject } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { fieldOf, Issues } from '../schema/issues.ts'
import type { FieldPath } from '../schema/issues.ts'
import { isPositive } from '../schema/pod-resources.ts'
import { labelSelectorSchema } from '../schema/scheduling-schema.ts'
import { fillDefaults, object, optional, string } from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
import { claimTemplateSchema, dataSourceRefSchema, dataSourceSchema } from '../schema/volume-schema.ts'
import type { ClaimSpec, refusedVolumeFields } from '../schema/volume-schema.ts'
import { dnsLabel, dnsSubdomain } from './name-rules.ts'
import { localPath } from './path-rules.ts'
import { validateLabels, validateLabelSelector } from './validate-metadata.ts'

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

export type RefusedVolume = keyof typeof refusedVolumeFields

interface Rule {
  /** What must be there. */
  readonly required?: readonly string[]
  /** `at`: of the source; the volume's is above it. */
  readonly check?: (given: JsonObject, at: FieldPath, issues: Issues) => void
}

/**
 * The API server's validation of volumes that podd doesn't support. Source: pkg/apis/core/validation
 * (validateVolumeSource and what it calls), 1.36.
 */
const rules: Readonly<Record<RefusedVolume, Rule>> = {
  gitRepo: {
    required: ['repository'],
    check: (given, at, issues) => localPath(text(given, 'directory'), [...at, 'directory'], issues),
  },
  gcePersistentDisk: {
    check: (given, at, issues) => {
      // It calls the field by another name.
      const disk = [...at.slice(0, -1), 'persistentDisk']
      if (text(given, 'pdName') === '') issues.required([...disk, 'pdName'], undefined, at)
      issues.range([...disk, 'partition'], number(given, 'partition'), 0, 255)
    },
  },
  awsElasticBlockStore: {
    required: ['volumeID'],
    check: (given, at, issues) => issues.range([...at, 'partition'], number(given, 'partition'), 0, 255),
  },
  nfs: {
    required: ['server', 'path'],
    check: (given, at, issues) => {
      const path = text(given, 'path')
      if (!path.startsWith('/')) issues.invalid([...at, 'path'], path, 'must be an absolute path')
    },
  },
  iscsi: {
    required: ['targetPortal', 'iqn'],
    check: (given, at, issues) => {
      const iqn = text(given, 'iqn')
      if (iqn !== '') validateQualifiedIscsi(iqn, [...at, 'iqn'], issues)
      issues.range([...at, 'lun'], number(given, 'lun'), 0, 255)
      const asks = given['chapAuthDiscovery'] === true || given['chapAuthSession'] === true
      if (asks && given['secretRef'] === undefined) issues.required([...at, 'secretRef'])
      if (given['initiatorName'] === undefined) return
      validateQualifiedIscsi(text(given, 'initiatorName'), [...at, 'initiatorname'], issues)
    },
  },
  glusterfs: { required: ['endpoints', 'path'] },
  flocker: { check: validateFlocker },
  rbd: { required: ['monitors', 'image'] },
  cinder: { required: ['volumeID'], check: validateSecretName },
  cephfs: { required: ['monitors'] },
  quobyte: { required: ['registry', 'volume'] },
  fc: { check: validateFibreChannel },
  flexVolume: { required: ['driver'] },
  azureFile: { required: ['secretName', 'shareName'] },
  vsphereVolume: { required: ['volumePath'] },
  photonPersistentDisk: { required: ['pdID'] },
  portworxVolume: { required: ['volumeID'] },
  azureDisk: { required: ['diskName', 'diskURI'], check: validateAzureDisk },
  storageos: {
    required: ['volumeName'],
    check: (given, at, issues) => {
      for (const field of ['volumeName', 'volumeNamespace']) {
        if (text(given, field) !== '') issues.name([...at, field], text(given, field), dnsLabel)
      }
      validateSecretName(given, at, issues)
    },
  },
  scaleIO: { required: ['gateway', 'system', 'volumeName'] },
  csi: {
    required: ['driver'],
    check: (given, at, issues) => {
      const driver = text(given, 'driver')
      if (Buffer.byteLength(driver) > 63) issues.tooLong([...at, 'driver'], 63)
      if (driver !== '') issues.name([...at, 'driver'], driver.toLowerCase(), dnsSubdomain)
      validateSecretName(given, at, issues, 'nodePublishSecretRef')
    },
  },
  ephemeral: { required: ['volumeClaimTemplate'], check: validateClaimTemplate },
}

/** In the order in which the API server looks at them. */
export function isRefusedVolume(source: string): source is RefusedVolume {
  return Object.hasOwn(rules, source)
}

/** `path` is the volume's; the lack of support is reported elsewhere. */
export function validateRefusedVolume(
  kind: RefusedVolume,
  given: Json | undefined,
  path: FieldPath,
  issues: Issues,
): void {
  if (!isJsonObject(given)) return
  const at = [...path, kind]
  const { required = [], check } = rules[kind]
  for (const field of required) if (isEmpty(given[field])) issues.required([...at, field])
  const found = new Issues()
  check?.(given, at, found)
  for (const problem of found.problems) {
    if (problem.severity === 'error' && problem.reason !== 'RefusedHere') issues.problems.push(problem)
  }
}

function text(given: JsonObject, field: string): string {
  const value = given[field]
  return typeof value === 'string' ? value : ''
}

function number(given: JsonObject, field: string): number | undefined {
  const value = given[field]
  return typeof value === 'number' ? value : undefined
}

function isEmpty(value: Json | undefined): boolean {
  return (value ?? '') === '' || (Array.isArray(value) && value.length === 0)
}

function validateSecretName(given: JsonObject, at: FieldPath, issues: Issues, field = 'secretRef'): void {
  const secret = given[field]
  if (!isJsonObject(secret)) return
  const name = text(secret, 'name')
  if (name === '') issues.required([...at, field, 'name'])
  else if (field !== 'secretRef') issues.name([...at, 'name'], name, dnsSubdomain, [...at, field, 'name'])
}

function validateQualifiedIscsi(name: string, path: FieldPath, issues: Issues): void {
  const form = iscsiForms.find(({ begin }) => name.startsWith(begin))
  if (form === undefined) issues.invalid(path, name, 'must be valid format starting with iqn, eui, or naa')
  else if (!form.pattern.test(name)) issues.invalid(path, name, 'must be valid format')
}

const iscsiForms = [
  { begin: 'iqn', pattern: /iqn\.\d{4}-\d{2}\.[\dA-Za-z.-]+:[^\s$&*,;|]+$/ },
  { begin: 'eui', pattern: /^eui.[\dA-Za-z]{16}$/ },
  { begin: 'naa', pattern: /^naa.[\dA-Za-z]{32}$/ },
] as const

function validateFlocker(given: JsonObject, at: FieldPath, issues: Issues): void {
  const name = text(given, 'datasetName')
  const uuid = text(given, 'datasetUUID')
  if (name === '' && uuid === '') issues.required(at, 'one of datasetName and datasetUUID is required')
  if (name !== '' && uuid !== '') {
    issues.invalid(at, 'resource', 'datasetName and datasetUUID can not be specified simultaneously')
  }
  if (name.includes('/')) issues.invalid([...at, 'datasetName'], name, "must not contain '/'")
}

function validateFibreChannel(given: JsonObject, at: FieldPath, issues: Issues): void {
  const hasTargets = !isEmpty(given['targetWWNs'])
  const hasIds = !isEmpty(given['wwids'])
  const field = [...at, 'targetWWNs']
  if (!hasTargets && !hasIds) {
    issues.required(field, 'must specify either targetWWNs or wwids, but not both')
  }
  if (hasTargets && hasIds) {
    issues.invalid(field, given['targetWWNs'], 'targetWWNs and wwids can not be specified simultaneously')
  }
  if (!hasTargets) return
  const lun = number(given, 'lun')
  if (lun === undefined) issues.required([...at, 'lun'], 'lun is required if targetWWNs is specified')
  issues.range([...at, 'lun'], lun, 0, 255)
}

function validateAzureDisk(given: JsonObject, at: FieldPath, issues: Issues): void {
  for (const [field, words] of [
    ['cachingMode', ['None', 'ReadOnly', 'ReadWrite']],
    ['kind', ['Dedicated', 'Managed', 'Shared']],
  ] as const) {
    const word = given[field]
    if (typeof word === 'string' && !words.some((known) => known === word)) {
      issues.unsupported([...at, field], word, words)
    }
  }
  const kind = given['kind'] ?? 'Shared'
  const begin = kind === 'Managed' ? '/subscriptions/' : 'https://'
  const uri = text(given, 'diskURI')
  if (!uri.startsWith(begin)) issues.unsupported([...at, 'diskURI'], uri, [`${begin}…`])
}

function validateClaimTemplate(given: JsonObject, at: FieldPath, issues: Issues): void {
  if (given['volumeClaimTemplate'] === undefined) return
  const filled = { template: fillDefaults(claimTemplateSchema, given['volumeClaimTemplate']) }
  const template = fieldOf(filled, 'template', claimTemplateSchema)
  if (template === undefined) return
  const path = [...at, 'volumeClaimTemplate']
  validateLabels(template.metadata?.labels ?? {}, [...path, 'metadata', 'labels'], issues)
  const own = isJsonObject(given['volumeClaimTemplate']) ? given['volumeClaimTemplate']['spec'] : undefined
  validateClaimSpec(template.spec, own, [...path, 'spec'], issues)
}
