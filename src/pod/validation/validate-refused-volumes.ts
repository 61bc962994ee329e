import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldPath } from '../schema/field-path.ts'
import { fillDefaults } from '../schema/fill-defaults.ts'
import { claimTemplateSchema } from '../schema/refused-volume-schema.ts'
import type { refusedVolumeFields } from '../schema/refused-volume-schema.ts'
import { Issues, fieldOf } from './issues.ts'
import { dnsLabel, dnsSubdomain } from './name-rules.ts'
import { localPath } from './path-rules.ts'
import { validateClaimSpec } from './validate-claim.ts'
import { validateLabels } from './validate-selectors.ts'

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
