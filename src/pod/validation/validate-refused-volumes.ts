import { isJsonObject, jsonAt } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { fieldOf, Issues } from '../schema/issues.ts'
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
export function validateClaimSpec(spec: ClaimSpec, given: Json | undefined, issues: Issues): void {
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
  validateSources(given, issues)
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
function validateSources(given: Json | undefined, issues: Issues): void {
  if (!isJsonObject(given)) return
  const spec = fieldOf({ spec: fillDefaults(sourcesSchema, given) }, 'spec', sourcesSchema)
  if (spec === undefined) return
  const { dataSource, dataSourceRef } = sameSources(spec)
  const { volumeAttributesClassName = '' } = spec
  validateLabelSelector(spec.selector, issues.of('selector'))
  issues.of('volumeAttributesClassName').optionalName(volumeAttributesClassName, dnsSubdomain)
  if (dataSource !== undefined) validateDataSource(dataSource, issues.of('dataSource'))
  if (dataSourceRef === undefined) return
  validateDataSource(dataSourceRef, issues.of('dataSourceRef'))
  const { namespace = '' } = dataSourceRef
  issues.of('dataSourceRef', 'namespace').optionalName(namespace, dnsLabel)
  if (dataSource === undefined) return
  const near = issues.of('dataSource')
  if (namespace !== '')
    issues.invalid('dataSource', 'may not be specified when dataSourceRef.namespace is specified', near)
  else if (!isSame(dataSource, dataSourceRef)) issues.invalid('dataSource', 'must match dataSourceRef', near)
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

function validateDataSource({ apiGroup = '', kind, name }: DataSource, issues: Issues): void {
  if (name === '') issues.of('name').required()
  if (kind === '') issues.of('kind').required()
  if (apiGroup !== '') issues.of('apiGroup').name(apiGroup, dnsSubdomain)
  else if (kind !== 'PersistentVolumeClaim')
    issues.invalid(kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
}

function isSame(one: DataSource, other: DataSource): boolean {
  return one.apiGroup === other.apiGroup && one.kind === other.kind && one.name === other.name
}

export type RefusedVolume = keyof typeof refusedVolumeFields

interface Rule {
  /** What must be there. */
  readonly required?: readonly string[]
  /** `at`: of the source; `volume`: of the volume. */
  readonly check?: (given: JsonObject, at: Issues, volume: Issues) => void
}

/**
 * The API server's validation of volumes that podd doesn't support. Source: pkg/apis/core/validation
 * (validateVolumeSource and what it calls), 1.36.
 */
const rules: Readonly<Record<RefusedVolume, Rule>> = {
  gitRepo: {
    required: ['repository'],
    check: (given, at) => localPath(text(given, 'directory'), at.of('directory')),
  },
  gcePersistentDisk: {
    check: (given, at, volume) => {
      // It calls the field by another name.
      const disk = volume.of('persistentDisk')
      if (text(given, 'pdName') === '') disk.of('pdName').required(undefined, at)
      disk.of('partition').range(number(given, 'partition'), 0, 255)
    },
  },
  awsElasticBlockStore: {
    required: ['volumeID'],
    check: (given, at) => at.of('partition').range(number(given, 'partition'), 0, 255),
  },
  nfs: {
    required: ['server', 'path'],
    check: (given, at) => {
      const path = text(given, 'path')
      if (!path.startsWith('/')) at.of('path').invalid(path, 'must be an absolute path')
    },
  },
  iscsi: {
    required: ['targetPortal', 'iqn'],
    check: (given, at) => {
      const iqn = text(given, 'iqn')
      if (iqn !== '') validateQualifiedIscsi(iqn, at.of('iqn'))
      at.of('lun').range(number(given, 'lun'), 0, 255)
      const asks = given['chapAuthDiscovery'] === true || given['chapAuthSession'] === true
      if (asks && given['secretRef'] === undefined) at.of('secretRef').required()
      if (given['initiatorName'] === undefined) return
      validateQualifiedIscsi(text(given, 'initiatorName'), at.of('initiatorname'))
    },
  },
  glusterfs: { required: ['endpoints', 'path'] },
  flocker: { check: validateFlocker },
  rbd: { required: ['monitors', 'image'] },
  cinder: { required: ['volumeID'], check: (given, at) => validateSecretName(given, at) },
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
    check: (given, at) => {
      for (const field of ['volumeName', 'volumeNamespace']) {
        if (text(given, field) !== '') at.of(field).name(text(given, field), dnsLabel)
      }
      validateSecretName(given, at)
    },
  },
  scaleIO: { required: ['gateway', 'system', 'volumeName'] },
  csi: {
    required: ['driver'],
    check: (given, at) => {
      const driver = text(given, 'driver')
      if (Buffer.byteLength(driver) > 63) at.of('driver').tooLong(63)
      if (driver !== '') at.of('driver').name(driver.toLowerCase(), dnsSubdomain)
      validateSecretName(given, at, 'nodePublishSecretRef')
    },
  },
  ephemeral: { required: ['volumeClaimTemplate'], check: validateClaimTemplate },
}

/** In the order in which the API server looks at them. */
export function isRefusedVolume(source: string): source is RefusedVolume {
  return Object.hasOwn(rules, source)
}

/** `issues` are the volume's; that podd doesn't support it is reported elsewhere. */
export function validateRefusedVolume(kind: RefusedVolume, given: Json | undefined, issues: Issues): void {
  if (!isJsonObject(given)) return
  const { required = [], check } = rules[kind]
  for (const field of required) if (isEmpty(given[field])) issues.of(kind, field).required()
  const found = new Issues(issues.path)
  check?.(given, found.of(kind), found)
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

function validateSecretName(given: JsonObject, at: Issues, field = 'secretRef'): void {
  const secret = given[field]
  if (!isJsonObject(secret)) return
  const name = text(secret, 'name')
  if (name === '') at.of(field, 'name').required()
  else if (field !== 'secretRef') at.of('name').name(name, dnsSubdomain, at.of(field, 'name'))
}

function validateQualifiedIscsi(name: string, issues: Issues): void {
  const form = iscsiForms.find(({ begin }) => name.startsWith(begin))
  if (form === undefined) issues.invalid(name, 'must be valid format starting with iqn, eui, or naa')
  else if (!form.pattern.test(name)) issues.invalid(name, 'must be valid format')
}

const iscsiForms = [
  { begin: 'iqn', pattern: /iqn\.\d{4}-\d{2}\.[\dA-Za-z.-]+:[^\s$&*,;|]+$/ },
  { begin: 'eui', pattern: /^eui.[\dA-Za-z]{16}$/ },
  { begin: 'naa', pattern: /^naa.[\dA-Za-z]{32}$/ },
] as const

function validateFlocker(given: JsonObject, at: Issues): void {
  const name = text(given, 'datasetName')
  const uuid = text(given, 'datasetUUID')
  if (name === '' && uuid === '') at.required('one of datasetName and datasetUUID is required')
  if (name !== '' && uuid !== '') {
    at.invalid('resource', 'datasetName and datasetUUID can not be specified simultaneously')
  }
  if (name.includes('/')) at.of('datasetName').invalid(name, "must not contain '/'")
}

function validateFibreChannel(given: JsonObject, at: Issues): void {
  const hasTargets = !isEmpty(given['targetWWNs'])
  const hasIds = !isEmpty(given['wwids'])
  const field = at.of('targetWWNs')
  if (!hasTargets && !hasIds) {
    field.required('must specify either targetWWNs or wwids, but not both')
  }
  if (hasTargets && hasIds) {
    field.invalid(given['targetWWNs'], 'targetWWNs and wwids can not be specified simultaneously')
  }
  if (!hasTargets) return
  const lun = number(given, 'lun')
  if (lun === undefined) at.of('lun').required('lun is required if targetWWNs is specified')
  at.of('lun').range(lun, 0, 255)
}

function validateAzureDisk(given: JsonObject, at: Issues): void {
  for (const [field, words] of [
    ['cachingMode', ['None', 'ReadOnly', 'ReadWrite']],
    ['kind', ['Dedicated', 'Managed', 'Shared']],
  ] as const) {
    const word = given[field]
    if (typeof word === 'string' && !words.some((known) => known === word)) {
      at.of(field).unsupported(word, words)
    }
  }
  const kind = given['kind'] ?? 'Shared'
  const begin = kind === 'Managed' ? '/subscriptions/' : 'https://'
  const uri = text(given, 'diskURI')
  if (!uri.startsWith(begin)) at.of('diskURI').unsupported(uri, [`${begin}…`])
}

function validateClaimTemplate(given: JsonObject, at: Issues): void {
  if (given['volumeClaimTemplate'] === undefined) return
  const filled = { template: fillDefaults(claimTemplateSchema, given['volumeClaimTemplate']) }
  const template = fieldOf(filled, 'template', claimTemplateSchema)
  if (template === undefined) return
  const below = at.of('volumeClaimTemplate')
  validateLabels(template.metadata?.labels ?? {}, below.of('metadata', 'labels'))
  validateClaimSpec(template.spec, jsonAt(given, 'volumeClaimTemplate', 'spec'), below.of('spec'))
}
