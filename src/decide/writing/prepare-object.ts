/* The form in which a written object is kept: what the server sets of its metadata, and an API server's defaults. */
import { isJsonObject, jsonAt, listOrEmpty, objectOrEmpty, sameData } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { isWorkloadKind, templatePath, withValueAt } from '../../pod/objects/workload-kinds.ts'
import { imagePullPolicyOf } from '../../pod/schema/default-pod.ts'

/** podd's own annotations, which are not kept from clients. */
const ownAnnotations: readonly string[] = ['podd.dev/source', 'podd.dev/path']

export function isOwnAnnotation(key: string): boolean {
  return ownAnnotations.includes(key)
}

/** Metadata that only the server sets (`apiserver/pkg/registry/rest`: create.go, update.go, 1.36). */
const serverFields = [
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
] as const

export interface NewObject {
  readonly kind: string
  readonly apiVersion: string
  readonly name: string
  /** Undefined where the kind belongs to none. */
  readonly namespace: string | undefined
  readonly uid: string
  /** RFC 3339, in whole seconds. */
  readonly creationTimestamp: string
}

/** The kept form of a new object: named, with its defaults, without its status. */
export function prepareNew(given: JsonObject, fresh: NewObject): JsonObject {
  const { uid, creationTimestamp, kind, apiVersion, name, namespace } = fresh
  const { status: _status, ...manifest } = given
  const metadata = {
    ...withoutServerFields(metadataOf(given)),
    name,
    ...(namespace === undefined ? {} : { namespace }),
    uid,
    creationTimestamp,
    ...((kind === 'PodTemplate' || isWorkloadKind(kind)) && { generation: 1 }),
  }
  return defaultManifest(withCounts({ ...withoutNulls(manifest), apiVersion, kind, metadata }))
}

/** The kept form of an updated object: fields that belong to the server stay. */
export function prepareUpdate(before: JsonObject, given: JsonObject): JsonObject {
  const { status: _status, ...manifest } = given
  const kept = metadataOf(before)
  const own = Object.fromEntries(
    [...serverFields, 'name', 'namespace', 'generateName'].flatMap((key) =>
      kept[key] === undefined ? [] : [[key, kept[key]]],
    ),
  )
  const next = {
    ...withoutNulls(manifest),
    apiVersion: before['apiVersion'] ?? null,
    kind: before['kind'] ?? null,
    metadata: { ...withoutServerFields(metadataOf(given)), ...own },
    ...(before['status'] === undefined ? {} : { status: before['status'] }),
  }
  const counted = jsonAt(before, 'spec', 'completions') === undefined ? next : withCounts(next)
  return withPolicyOf(before, withGeneration(before, defaultManifest(counted)))
}

/**
 * A Job that says neither how often nor in how many pods at a time it runs does so once (`pkg/apis/batch/v1/defaults.go`,
 * SetDefaults_Job, 1.36). That is written down as it is made: one that gets a parallelism later is no work queue. One that was
 * kept without is left as it is, for how often it runs is part of what it runs.
 */
function withCounts(manifest: JsonObject): JsonObject {
  if (manifest['kind'] !== 'Job') return manifest
  return at(manifest, 'spec', (spec) =>
    isMissing(spec['completions']) && isMissing(spec['parallelism'])
      ? { ...spec, completions: 1, parallelism: 1 }
      : spec,
  )
}

/**
 * A changed template increments the generation, as a changed spec does of a workload (PrepareForUpdate in
 * `pkg/registry/core/podtemplate/strategy.go`, `pkg/registry/apps`, `pkg/registry/batch`, 1.36).
 */
function withGeneration(before: JsonObject, after: JsonObject): JsonObject {
  const { generation } = metadataOf(before)
  const changing = after['kind'] === 'PodTemplate' ? 'template' : 'spec'
  if ((changing === 'spec' && !isWorkloadKind(after['kind'])) || typeof generation !== 'number') return after
  if (sameData(before[changing], after[changing])) return after
  return { ...after, metadata: { ...metadataOf(after), generation: generation + 1 } }
}

/** The preemption policy set by admission stays where an update omits it (`plugin/pkg/admission/priority`, 1.36). */
function withPolicyOf({ spec: before }: JsonObject, after: JsonObject): JsonObject {
  const { spec } = after
  const kept = jsonAt(before, 'preemptionPolicy')
  if (kept === undefined || !isJsonObject(spec) || spec['preemptionPolicy'] !== undefined) return after
  return { ...after, spec: { ...spec, preemptionPolicy: kept } }
}

export function metadataOf(manifest: JsonObject): JsonObject {
  return objectOrEmpty(manifest['metadata'])
}

function withoutServerFields(metadata: JsonObject): JsonObject {
  const left: readonly string[] = [...serverFields, 'namespace', 'resourceVersion', 'selfLink', 'annotations']
  const kept = Object.entries(metadata).filter(([key, value]) => !left.includes(key) && value !== null)
  const annotations = Object.entries(objectOrEmpty(metadata['annotations']))
  const shown = annotations.filter(([key]) => !isOwnAnnotation(key))
  return {
    ...Object.fromEntries(kept),
    ...(shown.length > 0 && { annotations: Object.fromEntries(shown) }),
  }
}

/**
 * Removes nulls at any depth: in a manifest they mean an absent field. In a map of strings they would mean an empty
 * one, which no client sends.
 */
function withoutNulls(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).flatMap(([key, value]) => (value === null ? [] : [[key, cleaned(value)]])),
  )
}

function cleaned(value: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => cleaned(item))
  return isJsonObject(value) ? withoutNulls(value) : value
}

/** The characters of a generated suffix: neither vowels nor similar ones (`apimachinery/pkg/util/rand`, 1.36). */
const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5
/** The longest name, less the suffix (`apiserver/pkg/storage/names`, 1.36). */
const longestBase = 63 - suffixLength

/** A name from `generateName`. */
export function generateName(base: string, random: () => number): string {
  const letters = Array.from(
    { length: suffixLength },
    () => suffixLetters[Math.floor(random() * suffixLetters.length)] ?? 'x',
  )
  return `${base.slice(0, longestBase)}${letters.join('')}`
}

/**
 * A manifest with the defaults that an API server fills in, so that it is read back as from an API server
 * (`pkg/apis/core/v1/defaults.go`, 1.36; the service account is the admission plugin's). Applied twice it changes
 * nothing more. Values of unexpected types stay as they are: validation comes after.
 */
export function defaultManifest(manifest: JsonObject): JsonObject {
  switch (manifest['kind']) {
    case 'Pod':
      return at(manifest, 'spec', (spec) => defaultPodSpec(withAdmitted(spec)))
    case 'PodTemplate':
      return at(manifest, 'template', (template) => at(template, 'spec', defaultPodSpec))
    case 'Secret':
      return joinStringData({ ...manifest, type: given(manifest['type']) ?? 'Opaque' })
    case 'Service':
      return at(manifest, 'spec', (spec) =>
        each(withDefaults(spec, { type: 'ClusterIP' }), 'ports', (port) => ({
          ...withDefaults(port, { protocol: 'TCP' }),
          targetPort: given(port['targetPort']) ?? port['port'] ?? null,
        })),
      )
    case 'PersistentVolumeClaim':
      return at(manifest, 'spec', (spec) => withDefaults(spec, { volumeMode: 'Filesystem' }))
    default:
      return withTemplateDefaults(manifest)
  }
}

/** The pods of a workload, with the defaults of a template; its own are shown where they are left out. */
function withTemplateDefaults(manifest: JsonObject): JsonObject {
  const path = typeof manifest['kind'] === 'string' ? templatePath(manifest['kind']) : undefined
  const spec = path && jsonAt(manifest, ...path, 'spec')
  return path === undefined || !isJsonObject(spec)
    ? manifest
    : withValueAt(manifest, [...path, 'spec'], defaultPodSpec(spec))
}

/** `stringData` is for writing alone (`pkg/apis/core/v1/conversion.go`, Convert_v1_Secret_To_core_Secret, 1.36). */
function joinStringData({ stringData, ...secret }: JsonObject): JsonObject {
  if (!isJsonObject(stringData)) return stringData === undefined ? secret : { ...secret, stringData }
  const data = objectOrEmpty(secret['data'])
  const texts = Object.entries(stringData)
  const encoded = texts.flatMap(([key, text]) =>
    typeof text === 'string' ? [[key, Buffer.from(text).toString('base64')]] : [],
  )
  if (encoded.length < texts.length) return { ...secret, stringData }
  return { ...secret, data: { ...data, ...Object.fromEntries(encoded) } }
}

/** With the defaults of a pod that a template doesn't get (SetDefaults_Pod; admission by account). */
function withAdmitted(spec: JsonObject): JsonObject {
  const account = given(spec['serviceAccountName']) ?? given(spec['serviceAccount']) ?? 'default'
  return withDefaults(
    { ...spec, serviceAccountName: account, serviceAccount: account },
    { enableServiceLinks: true },
  )
}

function defaultPodSpec(spec: JsonObject): JsonObject {
  const filled = withDefaults(spec, {
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    terminationGracePeriodSeconds: 30,
    securityContext: {},
    schedulerName: 'default-scheduler',
  })
  const grace = filled['terminationGracePeriodSeconds']
  // `pkg/apis/core/v1/conversion.go`, Convert_v1_PodSpec_To_core_PodSpec, 1.36.
  const bounded =
    typeof grace === 'number' && grace < 0 ? { ...filled, terminationGracePeriodSeconds: 1 } : filled
  const inHostNetwork = spec['hostNetwork'] === true
  const container = (value: JsonObject): JsonObject => defaultContainer(value, inHostNetwork)
  const lists = ['initContainers', 'containers', 'ephemeralContainers'].reduce(
    (whole, list) => each(whole, list, container),
    bounded,
  )
  return each(lists, 'volumes', defaultVolume)
}

function defaultContainer(container: JsonObject, inHostNetwork: boolean): JsonObject {
  const { image } = container
  const probed = ['livenessProbe', 'readinessProbe', 'startupProbe'].reduce(
    (whole, probe) => at(whole, probe, defaultProbe),
    withDefaults(container, {
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
      resources: {},
      ...(typeof image === 'string' && { imagePullPolicy: imagePullPolicyOf(image) }),
    }),
  )
  const hooked = at(probed, 'lifecycle', (lifecycle) =>
    ['postStart', 'preStop'].reduce((whole, hook) => at(whole, hook, defaultHttp), lifecycle),
  )
  const ported = each(hooked, 'ports', (port) => ({
    ...withDefaults(port, { protocol: 'TCP' }),
    ...(inHostNetwork && { hostPort: given(port['hostPort']) ?? port['containerPort'] ?? null }),
  }))
  return at(
    each(ported, 'env', (entry) => at(entry, 'valueFrom', (from) => at(from, 'fieldRef', defaultFieldRef))),
    'resources',
    defaultRequests,
  )
}

function defaultRequests(resources: JsonObject): JsonObject {
  const { limits, requests } = resources
  if (!isJsonObject(limits) || Object.keys(limits).length === 0) return resources
  return { ...resources, requests: { ...limits, ...objectOrEmpty(requests) } }
}

function defaultProbe(probe: JsonObject): JsonObject {
  const filled = withDefaults(
    probe,
    { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 },
    isUnsetNumber,
  )
  return at(defaultHttp(filled), 'grpc', (grpc) => withDefaults(grpc, { service: '' }))
}

function defaultHttp(handler: JsonObject): JsonObject {
  return at(handler, 'httpGet', (get) => withDefaults(get, { path: '/', scheme: 'HTTP' }))
}

function defaultFieldRef(reference: JsonObject): JsonObject {
  return withDefaults(reference, { apiVersion: 'v1' })
}

function defaultVolume(volume: JsonObject): JsonObject {
  const sources = Object.entries(volume).filter(([key, value]) => key !== 'name' && value !== null)
  if (sources.length === 0) return { ...volume, emptyDir: {} }
  const moded = ['secret', 'configMap', 'projected', 'downwardAPI'].reduce(
    (whole, source) => at(whole, source, (value) => withDefaults(value, { defaultMode: 0o644 })),
    volume,
  )
  const projected = at(moded, 'projected', (source) =>
    each(source, 'sources', (projection) => at(projection, 'downwardAPI', defaultItems)),
  )
  const typed = at(at(projected, 'downwardAPI', defaultItems), 'hostPath', (path) =>
    withDefaults(path, { type: '' }, isMissing),
  )
  return at(typed, 'image', (image) => {
    const { reference } = image
    return typeof reference === 'string'
      ? withDefaults(image, { pullPolicy: imagePullPolicyOf(reference) })
      : image
  })
}

function defaultItems(source: JsonObject): JsonObject {
  return each(source, 'items', (item) => at(item, 'fieldRef', defaultFieldRef))
}

function isMissing(value: Json | undefined): boolean {
  return value === undefined || value === null
}

function isUnset(value: Json | undefined): boolean {
  return isMissing(value) || value === ''
}

function isUnsetNumber(value: Json | undefined): boolean {
  return isMissing(value) || value === 0
}

function given(value: Json | undefined): Json | undefined {
  return isUnset(value) || value === 0 ? undefined : value
}

function withDefaults(object: JsonObject, defaults: JsonObject, isAbsent = isUnset): JsonObject {
  const missing = Object.entries(defaults).filter(([key]) => isAbsent(object[key]))
  return missing.length === 0 ? object : { ...object, ...Object.fromEntries(missing) }
}

/** With the object at a key changed, where there is one. */
function at(object: JsonObject, key: string, change: (value: JsonObject) => JsonObject): JsonObject {
  const value = object[key]
  return isJsonObject(value) ? { ...object, [key]: change(value) } : object
}

/** With each object of the list at a key changed. */
function each(object: JsonObject, key: string, change: (value: JsonObject) => JsonObject): JsonObject {
  const list = object[key]
  if (!Array.isArray(list)) return object
  return { ...object, [key]: list.map((item: Json) => (isJsonObject(item) ? change(item) : item)) }
}

/**
 * Merges two lists of tolerations, without those that another one covers (`pkg/util/tolerations`, MergeTolerations,
 * 1.36).
 */
export function mergeTolerations(first: Json | undefined, second: Json | undefined): readonly Json[] {
  const all = [...listOrEmpty(first), ...listOrEmpty(second)]
  return all.filter((one, at) => {
    const isCovered = (other: Json): boolean => covers(other, one)
    if (all.slice(0, at).some((other) => sameData(other, one))) return false
    return !all.some((other, index) => index !== at && !sameData(other, one) && isCovered(other))
  })
}

/** Whether whatever `toleration` tolerates is tolerated by `other`, too (isSuperset, there). */
function covers(other: Json, toleration: Json): boolean {
  if (!isJsonObject(other) || !isJsonObject(toleration)) return false
  const wide = withTolerationDefaults(other)
  const narrow = withTolerationDefaults(toleration)
  const matchesAnyKey = wide.key === '' && wide.operator === 'Exists'
  if (narrow.key !== wide.key && !matchesAnyKey) return false
  if (narrow.effect !== wide.effect && wide.effect !== '') return false
  if (wide.effect === 'NoExecute' && wide.seconds !== undefined)
    if (narrow.seconds === undefined || narrow.seconds > wide.seconds) return false
  if (wide.operator === 'Exists') return true
  return wide.operator === 'Equal' && narrow.operator === 'Equal' && narrow.value === wide.value
}

interface Toleration {
  readonly key: Json
  readonly operator: Json
  readonly value: Json
  readonly effect: Json
  readonly seconds: number | undefined
}

function withTolerationDefaults(given: { readonly [key: string]: Json }): Toleration {
  const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = given
  return {
    key,
    operator: operator === '' ? 'Equal' : operator,
    value,
    effect,
    seconds: typeof tolerationSeconds === 'number' ? tolerationSeconds : undefined,
  }
}
