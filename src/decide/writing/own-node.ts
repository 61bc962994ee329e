import type { JsonObject } from '../../base/json.ts'
import { jsonAt, objectOrEmpty, sameData, textEntries } from '../../base/json.ts'
import { Issues } from '../../pod/schema/issues.ts'
import type { FieldProblem } from '../../pod/schema/issues.ts'
import { isExtendedResource } from '../../pod/schema/pod-resources.ts'
import { qualifiedName } from '../../pod/validation/name-rules.ts'
import { validateLabels } from '../../pod/validation/validate-metadata.ts'
import { compareQuantities, isWholeQuantity, parseQuantity } from '../../pod/values/quantity.ts'
import { metadataOf } from './prepare-object.ts'

/** The part of the Node that clients have written. */
export interface OwnNode {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** The amounts of extended resources. */
  readonly capacity: Readonly<Record<string, string>>
}

export function ownNodeOf(manifest: JsonObject | undefined): OwnNode {
  const { labels, annotations } = metadataOf(manifest ?? {})
  return {
    labels: textEntries(labels),
    annotations: textEntries(annotations),
    capacity: textEntries(extendedAt(manifest ?? {})),
  }
}

/**
 * The part of a Node that is kept after a write. Of its status only the capacity of extended resources is kept: all of
 * it is allocatable, and podd derives the rest (`pkg/kubelet/nodestatus/setters.go`, MachineInfo, 1.36).
 */
export function updateNode(
  before: JsonObject | undefined,
  shown: JsonObject,
  wanted: JsonObject,
  scope: 'object' | 'status',
): {
  /** Undefined where nothing has to be kept. */
  readonly manifest: JsonObject | undefined
  readonly problems: readonly FieldProblem[]
} {
  const issues = new Issues()
  const own = ownNodeOf(before)
  if (scope === 'status') checkCapacity(wanted, issues)
  else checkMetadata(shown, wanted, issues)
  const fresh = ownNodeOf(wanted)
  const isFound = (key: string, value: string): boolean =>
    metadataTexts(shown, 'labels')[key] === value && own.labels[key] === undefined
  const labels = scope === 'status' ? own.labels : pick(fresh.labels, (key, value) => !isFound(key, value))
  const annotations = scope === 'status' ? own.annotations : fresh.annotations
  const capacity = scope === 'status' ? fresh.capacity : own.capacity
  const { name = '', uid = '', creationTimestamp = null } = metadataOf(shown)
  const { problems } = issues
  if ([labels, annotations, capacity].every((texts) => Object.keys(texts).length === 0))
    return { manifest: undefined, problems }
  return {
    manifest: {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        uid,
        creationTimestamp,
        ...(Object.keys(labels).length > 0 && { labels }),
        ...(Object.keys(annotations).length > 0 && { annotations }),
      },
      ...(Object.keys(capacity).length > 0 && { status: { capacity } }),
    },
    problems,
  }
}

function checkCapacity(wanted: JsonObject, issues: Issues): void {
  for (const [name, amount] of Object.entries(extendedAt(wanted))) {
    const at = issues.of('status', 'capacity', name)
    at.name(name, qualifiedName)
    const isQuantity = typeof amount === 'string' && parseQuantity(amount) !== undefined
    if (!isQuantity) at.invalid(amount, 'must be a quantity')
    else if (compareQuantities(amount, '0') < 0) at.invalid(amount, 'must be greater than or equal to 0')
    else if (!isWholeQuantity(amount)) at.invalid(amount, 'must be an integer')
  }
}

/** `pkg/apis/core/validation`, ValidateNodeUpdate, 1.36: there taints, too, which have no effect without a scheduler. */
function checkMetadata(shown: JsonObject, wanted: JsonObject, issues: Issues): void {
  validateLabels(metadataTexts(wanted, 'labels'), issues.of('metadata', 'labels'))
  if (jsonAt(shown, 'spec', 'unschedulable') !== jsonAt(wanted, 'spec', 'unschedulable'))
    issues
      .of('spec', 'unschedulable')
      .forbidden(
        'the host is drained where podd runs: `podd drain` ends its pods and admits none, `podd drain --undo` admits pods again',
      )
  else if (!sameData(shown['spec'] ?? {}, wanted['spec'] ?? {}))
    issues.of('spec').forbidden('updates of the node may only change labels, annotations, or capacity')
}

function extendedAt({ status }: JsonObject): JsonObject {
  const capacity = objectOrEmpty(jsonAt(status, 'capacity'))
  return Object.fromEntries(
    Object.entries(capacity).flatMap(([name, amount]) =>
      isExtendedResource(name) ? [[name, typeof amount === 'number' ? String(amount) : amount]] : [],
    ),
  )
}

function metadataTexts(object: JsonObject, field: string): Readonly<Record<string, string>> {
  return textEntries(metadataOf(object)[field])
}

function pick(
  values: Readonly<Record<string, string>>,
  isWanted: (key: string, value: string) => boolean,
): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).filter(([key, value]) => isWanted(key, value)))
}
