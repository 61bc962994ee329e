import { isJsonObject } from '../base/json.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { nearestName } from '../base/text.ts'
import { readYamlDocuments } from '../pod/decode/read-documents.ts'
import type { RawDocument } from '../pod/decode/read-documents.ts'
import type { Problem } from '../pod/objects/document.ts'
import type { Option } from './option-type.ts'
import { listOptions } from './options.ts'
import type { OptionKey } from './options.ts'

/** The result of reading a config file: valid values, and problems. */
export interface ConfigFile {
  readonly values: Readonly<Partial<Record<OptionKey, unknown>>>
  readonly problems: readonly Problem[]
}

const kinds = new Map([
  ['PoddConfiguration', 'podd.dev/v1'],
  ['KubeletConfiguration', 'kubelet.config.k8s.io/v1beta1'],
])

const kindsHint = [...kinds]
  .map(([kind, apiVersion]) => `apiVersion: ${apiVersion}, kind: ${kind}`)
  .join('; or ')

/**
 * Reads a config file: a PoddConfiguration, a KubeletConfiguration as it is, or one of each as two YAML
 * documents. Never throws for what the text says. Fields of the kubelet that podd ignores are warnings;
 * unknown fields, wrong types and a field that is set twice are errors, with their places.
 */
export async function readConfigFile(text: string, path: string): Promise<ConfigFile> {
  const reader = new ConfigReader(path)
  for (const document of await readYamlDocuments(text)) reader.take(document)
  return { values: reader.values, problems: reader.problems }
}

type Read = Extract<RawDocument, { kind: 'read' }>
type FieldPath = readonly string[]

class ConfigReader {
  readonly values: Partial<Record<OptionKey, unknown>> = {}
  readonly problems: Problem[] = []
  readonly #path: string
  readonly #seenKinds = new Set<string>()
  #locate: Read['locate'] = () => undefined

  constructor(path: string) {
    this.#path = path
  }

  take(document: RawDocument): void {
    if (document.kind === 'broken') {
      const place = { path: this.#path, ...document.position }
      this.problems.push({ severity: 'error', place, message: document.message })
      return
    }
    this.#locate = document.locate
    if (!isJsonObject(document.value)) {
      this.#report('error', [], 'must be a mapping with apiVersion and kind', kindsHint)
      return
    }
    const { apiVersion, kind, ...fields } = document.value
    const isKubelet = kind === 'KubeletConfiguration'
    const wanted = typeof kind === 'string' ? kinds.get(kind) : undefined
    if (typeof kind !== 'string' || wanted === undefined) {
      const what = kind === undefined ? 'Required value' : `unknown kind ${JSON.stringify(kind)}`
      this.#report('error', ['kind'], what, `Write ${kindsHint}.`)
      return
    }
    if (apiVersion !== wanted) {
      this.#report('error', ['apiVersion'], `must be ${wanted} for a ${kind}`)
      return
    }
    if (this.#seenKinds.has(kind)) this.#report('error', ['kind'], `there is another ${kind} in this file`)
    this.#seenKinds.add(kind)
    this.#mapping(fields, [], isKubelet)
  }

  #mapping(mapping: JsonObject, at: FieldPath, isKubelet: boolean): void {
    for (const [name, json] of Object.entries(mapping)) {
      const path = [...at, name]
      const field = path.join('.')
      const found = listOptions().find(([, option]) => option.field === field)
      const ignored = at.length === 0 ? ignoredKubeletFields.get(name) : undefined
      // Kubernetes reads an explicit null as if the field weren't there.
      if (json === null && (found !== undefined || ignored !== undefined)) continue
      if (found !== undefined) this.#option(found, json, path, isKubelet)
      else if (ignored !== undefined) this.#report('warning', path, `ignored: ${ignored}`)
      else if (listOptions().some(([, option]) => option.field.startsWith(`${field}.`)))
        this.#group(json, path, isKubelet)
      else this.#unknown(path)
    }
  }

  #group(json: Json, path: FieldPath, isKubelet: boolean): void {
    if (isJsonObject(json)) this.#mapping(json, path, isKubelet)
    else if (json !== null) this.#report('error', path, 'must be a mapping')
  }

  #option(
    [key, option]: readonly [OptionKey, Option<unknown>],
    json: Json,
    path: FieldPath,
    isKubelet: boolean,
  ): void {
    if (isKubelet && option.owner === 'podd') {
      const hint = 'Put it into a second YAML document with apiVersion: podd.dev/v1, kind: PoddConfiguration.'
      this.#report('error', path, 'is no field of KubeletConfiguration', hint)
      return
    }
    if (isKubelet && option.zeroIsDefault === true && isGoZero(json)) return
    const decoded = option.type.fromFile(json)
    if (decoded.kind === 'bad') this.#report('error', path, decoded.message)
    else if (key in this.values) this.#report('error', path, 'is set twice in this file')
    else {
      this.values[key] = decoded.value
      for (const warning of decoded.warnings ?? []) this.#report('warning', path, warning)
    }
  }

  #unknown(path: FieldPath): void {
    const prefix = path.slice(0, -1).join('.')
    const known = [...listOptions().map(([, option]) => option.field), ...ignoredKubeletFields.keys()]
    const siblings = known.flatMap((field) => {
      if (prefix === '') return [field.split('.')[0] ?? field]
      return field.startsWith(`${prefix}.`) ? [field.slice(prefix.length + 1)] : []
    })
    const near = nearestName(path.at(-1) ?? '', [...new Set(siblings)])
    this.#report('error', path, 'unknown field', near === undefined ? undefined : `Did you mean ${near}?`)
  }

  #report(severity: Problem['severity'], path: FieldPath, message: string, hint?: string): void {
    this.problems.push({
      severity,
      place: { path: this.#path, ...this.#locate(path) },
      ...(path.length > 0 && { field: path.join('.') }),
      message,
      ...(hint !== undefined && { hint }),
    })
  }
}

function isGoZero(json: Json): boolean {
  return json === '' || json === 0 || json === '0s' || json === '0'
}

/** Why fields of KubeletConfiguration have no effect, and which. */
const ignoredBy: readonly (readonly [why: string, fields: string])[] = [
  [
    'podd serves no kubelet API on the network',
    'enableServer port tlsCertFile tlsPrivateKeyFile tlsCipherSuites tlsCurvePreferences ' +
      'tlsMinVersion rotateCertificates serverTLSBootstrap authentication authorization ' +
      'enableDebuggingHandlers enableSystemLogHandler enableSystemLogQuery healthzPort ' +
      'healthzBindAddress streamingConnectionIdleTimeout',
  ],
  [
    'podd has no control plane',
    'nodeStatusUpdateFrequency nodeStatusReportFrequency nodeStatusMaxImages ' +
      'nodeLeaseDurationSeconds contentType kubeAPIQPS kubeAPIBurst registerNode registerWithTaints ' +
      'providerID runOnce enableControllerAttachDetach configMapAndSecretChangeDetectionStrategy ' +
      'clusterDNS clusterDomain eventRecordQPS eventBurst',
  ],
  [
    'podd has no such diagnostics',
    'enableContentionProfiling enableProfilingHandler enableDebugFlagsHandler ' +
      'showHiddenMetricsForVersion volumeStatsAggPeriod tracing',
  ],
  ['podd logs JSON lines; logLevel sets the level', 'logging'],
  ['podd has no feature gates', 'featureGates'],
  [
    'podd does not place containers on CPUs or NUMA nodes',
    'cpuManagerPolicy cpuManagerPolicyOptions cpuManagerReconcilePeriod memoryManagerPolicy ' +
      'topologyManagerPolicy topologyManagerScope topologyManagerPolicyOptions reservedSystemCPUs ' +
      'reservedMemory',
  ],
  ['podd refuses pods with resource claims', 'draManagerReconcilePeriod'],
  [
    "podd leaves the host's settings alone",
    'kubeletCgroups systemCgroups oomScoreAdj maxOpenFiles protectKernelDefaults ' +
      'makeIPTablesUtilChains iptablesMasqueradeBit iptablesDropBit',
  ],
  ['podd runs on hosts with swap', 'failSwapOn'],
  ['podd runs on both cgroup versions', 'failCgroupV1'],
  ["the pod network is the runtime's", 'hairpinMode'],
  ['podd has no volume plugins', 'volumePluginDir'],
  ["each call to the runtime has the kubelet's default deadline", 'runtimeRequestTimeout'],
  [
    'this version of podd does not support it',
    'kernelMemcgNotification cgroupsPerQOS qosReserved podsPerCore memoryThrottlingFactor ' +
      'memoryReservationPolicy systemReservedCgroup kubeReservedCgroup enforceNodeAllocatable ' +
      'localStorageCapacityIsolation userNamespaces',
  ],
]

/**
 * The fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1, Kubernetes 1.36) that podd accepts with no effect,
 * and why. Each one in a file causes one warning.
 */
export const ignoredKubeletFields: ReadonlyMap<string, string> = new Map(
  ignoredBy.flatMap(([why, fields]) => fields.split(' ').map((field) => [field, why] as const)),
)
