/* What manifests refer to: fields of the pod, resources of a container, objects; and references that lead nowhere. */
import { PoddError } from '../base/errors.ts'
import { objectKey } from '../pod/objects/local-object.ts'
import type { ObjectReader } from '../pod/objects/local-object.ts'
import { isPositive } from '../pod/schema/pod-resources.ts'
import type { PodUid } from '../pod/values/ids.ts'
import { quantityMilliValue, quantityValue } from '../pod/values/quantity.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { Pod, PodSpec } from '../pod/schema/pod-schema.ts'
import type { ResourceList } from '../pod/schema/pod-resources.ts'

/** The facts about a pod that fields can refer to besides its manifest. */
export interface FieldFacts {
  readonly pod: Pod
  readonly uid: PodUid
  readonly nodeName: string
  /** The primary address first. */
  readonly hostIps: readonly string[]
  readonly podIps: readonly string[]
}

/**
 * The value of a `fieldRef`, as `pkg/fieldpath` and `kubelet_pods.go`, podFieldSelectorRuntimeValue (1.36),
 * give it; undefined where there is no such field. A whole map of labels or annotations, which only volumes
 * may refer to, comes as lines of `key="value"`.
 */
export function fieldValue(fieldPath: string, facts: FieldFacts): string | undefined {
  const { metadata } = facts.pod
  const subscript = /^metadata\.(labels|annotations)\['([^']+)'\]$/.exec(fieldPath)
  if (subscript !== null) {
    const key = subscript[2] ?? ''
    const map = subscript[1] === 'labels' ? metadata.labels : metadata.annotations
    return (Object.hasOwn(map, key) ? map[key] : undefined) ?? ''
  }
  switch (fieldPath) {
    case 'metadata.name':
      return metadata.name
    case 'metadata.namespace':
      return metadata.namespace
    case 'metadata.uid':
      return facts.uid
    case 'metadata.labels':
      return mapLines(metadata.labels)
    case 'metadata.annotations':
      return mapLines(metadata.annotations)
    case 'spec.nodeName':
      return facts.nodeName
    case 'spec.serviceAccountName':
      return ''
    case 'status.hostIP':
      return facts.hostIps[0] ?? ''
    case 'status.hostIPs':
      return facts.hostIps.join(',')
    case 'status.podIP':
      return facts.podIps[0] ?? ''
    case 'status.podIPs':
      return facts.podIps.join(',')
    default:
      return undefined
  }
}

function mapLines(map: Readonly<Record<string, string>>): string {
  return Object.keys(map)
    .sort()
    .map((key) => `${key}=${quote(map[key] ?? '')}`)
    .join('\n')
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': String.raw`\"`,
  '\\': String.raw`\\`,
  '\u0007': String.raw`\a`,
  '\b': String.raw`\b`,
  '\t': String.raw`\t`,
  '\n': String.raw`\n`,
  '\v': String.raw`\v`,
  '\f': String.raw`\f`,
  '\r': String.raw`\r`,
}

/** A text in quotes as Go writes it, which `JSON.stringify` doesn't (`pkg/fieldpath/fieldpath.go`, FormatMap: `%q`; 1.36). */
function quote(text: string): string {
  // All that is not printed: control characters, and blanks but the space.
  const escaped = text.replaceAll(/["\\]|(?! )[\p{C}\p{Z}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0
    const digits = code.toString(16)
    if (code < 0x80) return shortEscapes[character] ?? String.raw`\x` + digits.padStart(2, '0')
    return code > 0xff_ff
      ? String.raw`\U` + digits.padStart(8, '0')
      : String.raw`\u` + digits.padStart(4, '0')
  })
  return `"${escaped}"`
}

/**
 * The value of a `resourceFieldRef` in units of its divisor, rounded up; undefined where there is no such
 * resource. A limit that isn't set, or is 0, is the pod's own of cpu and memory, and without one what the host gives
 * pods (`pkg/api/v1/resource/helpers.go`, ExtractContainerResourceValue and MergeContainerResourceLimits, and
 * `pkg/kubelet/kubelet_resources.go`, defaultPodLimitsForDownwardAPI, 1.36).
 * @param reference its divisor is a quantity; `0` and none at all mean 1
 */
export function resourceFieldValue(
  reference: { readonly resource: string; readonly divisor?: string },
  container: ContainerSpec,
  { pod, capacity }: { readonly pod: PodSpec; readonly capacity: ResourceList },
): string | undefined {
  const [kind, name = ''] = splitOnce(reference.resource)
  const known =
    name === 'cpu' || name === 'memory' || name === 'ephemeral-storage' || name.startsWith('hugepages-')
  if (!known || (kind !== 'limits' && kind !== 'requests')) return undefined
  const { limits, requests } = container.resources
  const ofPod = name === 'cpu' || name === 'memory' ? pod.resources?.limits[name] : undefined
  const limit = [limits[name], ofPod].find((each) => isPositive(each)) ?? capacity[name]
  const quantity = (kind === 'limits' ? limit : requests[name]) ?? '0'
  const valueOf = name === 'cpu' ? quantityMilliValue : quantityValue
  const divisor = valueOf(reference.divisor ?? '1')
  return String(Math.ceil(valueOf(quantity) / (divisor === 0 ? valueOf('1') : divisor)))
}

function splitOnce(text: string): readonly [string, string?] {
  const at = text.indexOf('.')
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/**
 * A pod refers to a missing object, key or file; the message is the kubelet's. A container waits with
 * CreateContainerConfigError, a volume with a FailedMount event, until it exists.
 */
export class MissingReference extends PoddError {
  constructor(message: string, hint?: string) {
    super('REFERENCE_MISSING', message, { hint })
  }
}

/** An object in its namespace. */
export interface NamespacedName {
  readonly kind: 'ConfigMap' | 'Secret' | 'PersistentVolumeClaim'
  readonly namespace: string
  readonly name: string
}

/** The API's message: `configmap "web" not found`; and why, where another source has one. */
export function missingObject(
  objects: Pick<ObjectReader, 'explainMissing'>,
  { kind, namespace, name }: NamespacedName,
): MissingReference {
  const why = objects.explainMissing(objectKey(kind, namespace, name))
  return new MissingReference(
    `${kind.toLowerCase()} "${name}" not found${why === undefined ? '' : `: ${why}`}`,
  )
}
