import type { PodObject } from '../../api/resource.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'
import { gateReadiness } from '../../decide/writing/check-object.ts'
import type { PodCondition } from '../../pod/state/status.ts'

/**
 * A pod that was written over the API as it is shown: its metadata and spec as they are kept, with what podd found.
 * @param taken the same as the pod's worker gets it; undefined where that is unknown
 */
export function presentWritten(
  object: PodObject,
  written: JsonObject,
  taken: JsonObject | undefined,
): PodObject {
  const { metadata, spec, status } = written
  const { annotations, labels, ...kept } = isJsonObject(metadata) ? metadata : {}
  const { annotations: own = {}, labels: _labels, ...others } = object.metadata
  const shown = isJsonObject(annotations) ? annotations : {}
  const { nodeName, priority, overhead } = object.spec
  return {
    ...object,
    metadata: {
      ...kept,
      ...others,
      ...deletionOf(kept),
      generation: object.metadata.generation + changesAhead(object, kept, taken),
      ...(isJsonObject(labels) && { labels: texts(labels) }),
      annotations: {
        ...texts(shown),
        ...pick(own, 'podd.dev/source'),
        ...pick(own, 'podd.dev/path'),
      },
    },
    spec: {
      ...(isJsonObject(spec) ? spec : {}),
      ...(nodeName === undefined ? {} : { nodeName }),
      priority: priority ?? 0,
      ...(overhead === undefined ? {} : { overhead }),
    },
    status: gateReadiness(
      { ...object.status, conditions: withOthers(object.status.conditions, conditionsOf(status)) },
      isJsonObject(spec) ? spec : {},
    ),
  }
}

/**
 * How many changes the pod's worker has not taken over yet. Its status then has an older observed generation, which
 * tells clients that it doesn't reflect the newest change.
 */
function changesAhead(
  { metadata, spec }: PodObject,
  kept: JsonObject,
  taken: JsonObject | undefined,
): number {
  const isDeletedSince =
    typeof kept['deletionTimestamp'] === 'string' && metadata.deletionTimestamp === undefined
  const wanted = taken?.['spec']
  const isChangedSince = isJsonObject(wanted) && !sameData(withoutFound(spec), withoutFound(wanted))
  return Number(isDeletedSince) + Number(isChangedSince)
}

/** The spec without the fields that podd adds when it shows it. */
function withoutFound(spec: JsonObject): JsonObject {
  const { nodeName: _node, priority: _priority, overhead: _overhead, ...rest } = spec
  return rest
}

/** podd's own conditions take precedence over kept ones. */
function withOthers(own: readonly PodCondition[], others: readonly PodCondition[]): readonly PodCondition[] {
  return own.concat(others.filter(({ type }) => own.every((condition) => condition.type !== type)))
}

/** The conditions that clients set, and all of them for a pod that has ended. */
function conditionsOf(status: Json | undefined): readonly PodCondition[] {
  const conditions = isJsonObject(status) ? status['conditions'] : undefined
  return Array.isArray(conditions) ? conditions.filter((condition) => isCondition(condition)) : []
}

function isCondition(condition: unknown): condition is PodCondition {
  return (
    isJsonObject(condition) &&
    typeof condition['type'] === 'string' &&
    ['True', 'False', 'Unknown'].some((word) => word === condition['status'])
  )
}

/** The deletion time comes from the delete request. */
function deletionOf({ deletionTimestamp, deletionGracePeriodSeconds }: JsonObject): {
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
} {
  return {
    ...(typeof deletionTimestamp === 'string' && { deletionTimestamp }),
    ...(typeof deletionGracePeriodSeconds === 'number' && { deletionGracePeriodSeconds }),
  }
}

function texts(values: JsonObject): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])),
  )
}

function pick(values: Readonly<Record<string, string>>, key: string): Readonly<Record<string, string>> {
  const value = values[key]
  return value === undefined ? {} : { [key]: value }
}
