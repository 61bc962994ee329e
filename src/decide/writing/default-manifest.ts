import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { imagePullPolicyOf } from '../../pod/schema/default-pod.ts'

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
    case 'PersistentVolumeClaim':
      return at(manifest, 'spec', (spec) => withDefaults(spec, { volumeMode: 'Filesystem' }))
    default:
      return manifest
  }
}

/** `stringData` is for writing alone (`pkg/apis/core/v1/conversion.go`, Convert_v1_Secret_To_core_Secret, 1.36). */
function joinStringData({ stringData, ...secret }: JsonObject): JsonObject {
  if (!isJsonObject(stringData)) return stringData === undefined ? secret : { ...secret, stringData }
  const data = isJsonObject(secret['data']) ? secret['data'] : {}
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
  return { ...resources, requests: { ...limits, ...(isJsonObject(requests) ? requests : {}) } }
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
