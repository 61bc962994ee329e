/* What a write may change of an object that is there. */
import { isJsonObject, jsonAt, listOrEmpty, objectOrEmpty, sameData } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { isWorkloadKind } from '../../pod/objects/workload-kinds.ts'
import type { WorkloadKind } from '../../pod/objects/workload-kinds.ts'
import { defaultPod } from '../../pod/schema/default-pod.ts'
import { Issues } from '../../pod/schema/issues.ts'
import type { FieldProblem } from '../../pod/schema/issues.ts'
import { computeQosClass } from '../../pod/schema/pod-resources.ts'
import type { QosClass } from '../../pod/schema/pod-resources.ts'
import { podSchema } from '../../pod/schema/pod-schema.ts'
import { readAs } from '../../pod/schema/types.ts'

/** The part of an object that a request may change. */
export type UpdateScope = 'object' | 'status' | 'resize' | 'ephemeralcontainers'

/**
 * Why an object may not be changed this way; both with the API server's defaults (`pkg/apis/core/validation`:
 * ValidateObjectMetaUpdate, ValidatePodUpdate, ValidatePodResize, ValidatePodEphemeralContainersUpdate,
 * ValidateConfigMapUpdate, ValidateSecretUpdate, 1.36).
 */
export function judgeUpdate(
  before: JsonObject,
  after: JsonObject,
  scope: UpdateScope,
): readonly FieldProblem[] {
  const issues = new Issues()
  const { kind } = after
  judgeFinalizers(before, after, issues)
  const [old, fresh] = [objectOrEmpty(before['spec']), objectOrEmpty(after['spec'])]
  if (kind === 'Pod') judgePod(old, fresh, scope, issues)
  if (kind === 'Pod' && scope === 'resize') judgeClass(before, after, issues)
  else if (kind === 'ConfigMap' || kind === 'Secret') judgeData(before, after, issues)
  else if (kind === 'PersistentVolumeClaim') judgeClaim(old, fresh, issues)
  else if (kind === 'RuntimeClass') judgeField(before, after, 'handler', issues)
  else if (kind === 'PriorityClass') judgeField(before, after, 'value', issues)
  else if (isWorkloadKind(kind)) judgeWorkload(kind, old, fresh, issues)
  return issues.problems
}

/** What of a workload never changes (ValidateDeploymentUpdate and its like in pkg/apis/apps, pkg/apis/batch). */
function judgeWorkload(kind: WorkloadKind, before: JsonObject, after: JsonObject, issues: Issues): void {
  if (kind === 'CronJob') return
  const fields = kind === 'Job' ? ['template', 'completions', 'completionMode'] : ['selector']
  if (kind === 'StatefulSet') fields.push('serviceName', 'podManagementPolicy', 'volumeClaimTemplates')
  for (const field of fields)
    if (!sameData(before[field], after[field]))
      issues.of('spec', field).invalid(after[field] ?? null, 'field is immutable')
}

/** No finalizers may be added to a deleted object (ValidateNoNewFinalizers). */
function judgeFinalizers(before: JsonObject, after: JsonObject, issues: Issues): void {
  if (objectOrEmpty(before['metadata'])['deletionTimestamp'] === undefined) return
  const known = finalizersOf(before)
  const added = finalizersOf(after).filter((name) => !known.includes(name))
  if (added.length > 0)
    issues
      .of('metadata', 'finalizers')
      .forbidden(
        `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((name) => JSON.stringify(name)).join(', ')}}`,
      )
}

const podFields =
  '`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

function judgePod(before: JsonObject, after: JsonObject, scope: UpdateScope, issues: Issues): void {
  if (scope === 'ephemeralcontainers') return judgeEphemeral(before, after, issues)
  for (const list of ['containers', 'initContainers']) {
    if (itemsOf(before, list).length === itemsOf(after, list).length) continue
    issues.of('spec', list).forbidden('pod updates may not add or remove containers')
    return
  }
  if (scope === 'resize') {
    if (!sameData(withoutResources(before), withoutResources(after)))
      issues.of('spec').forbidden('only cpu and memory resources are mutable')
    for (const list of ['initContainers', 'containers']) judgeRemoval(before, after, list, issues)
    return
  }
  const field = 'activeDeadlineSeconds'
  judgeDeadline(before[field], after[field], issues.of('spec', field))
  const tolerations = itemsOf(after, 'tolerations')
  if (!itemsOf(before, 'tolerations').every((old) => tolerations.some((fresh) => sameTaint(old, fresh))))
    issues
      .of('spec', 'tolerations')
      .forbidden('existing toleration can not be modified except its tolerationSeconds')
  if (!sameData(frozen(before), frozen(after)))
    issues.of('spec').forbidden(`pod updates may not change fields other than ${podFields}`)
}

/** Changes that need another cgroup (ValidatePodResize). Invalid pods are refused elsewhere. */
function judgeClass(before: JsonObject, after: JsonObject, issues: Issues): void {
  const [old, fresh] = [classOf(before), classOf(after)]
  if (old === undefined || fresh === undefined || old === fresh) return
  issues.of('spec').invalid(old, 'Pod QOS Class may not change as a result of resizing')
}

function classOf(manifest: JsonObject): QosClass | undefined {
  const pod = readAs(podSchema, manifest)
  return pod && computeQosClass(defaultPod(pod).spec)
}

/** A request or limit may change but not be removed (validateContainerResize). */
function judgeRemoval(before: JsonObject, after: JsonObject, list: string, issues: Issues): void {
  for (const [index, old] of itemsOf(before, list).entries())
    for (const kind of ['requests', 'limits'] as const) {
      const now = amountsOf(itemsOf(after, list)[index], kind)
      if (Object.keys(amountsOf(old, kind)).every((name) => now[name] !== undefined)) continue
      issues.of('spec', list, index, 'resources', kind).forbidden(`resource ${kind} cannot be removed`)
    }
}

function amountsOf(container: Json | undefined, list: 'requests' | 'limits'): JsonObject {
  return objectOrEmpty(jsonAt(container, 'resources', list))
}

function judgeDeadline(before: Json | undefined, after: Json | undefined, issues: Issues): void {
  if (typeof before !== 'number') return
  if (typeof after !== 'number') issues.invalid(null, 'must not update from a positive integer to nil value')
  else if (after > before) issues.invalid(after, 'must be less than or equal to previous value')
}

/** Ephemeral containers may be added, but not changed or removed. */
function judgeEphemeral(before: JsonObject, after: JsonObject, issues: Issues): void {
  const at = issues.of('spec', 'ephemeralContainers')
  const fresh = itemsOf(after, 'ephemeralContainers')
  for (const old of itemsOf(before, 'ephemeralContainers')) {
    const index = fresh.findIndex((item) => nameOf(item) === nameOf(old))
    if (index === -1)
      at.forbidden(`existing ephemeral containers ${JSON.stringify(nameOf(old))} may not be removed\n`)
    else if (!sameData(old, fresh[index]))
      at.forbidden(`existing ephemeral containers ${JSON.stringify(nameOf(old))} may not be changed\n`)
  }
  if (!sameData({ ...before, ephemeralContainers: null }, { ...after, ephemeralContainers: null }))
    issues.of('spec').forbidden('pod updates may not change fields other than `spec.ephemeralContainers`')
}

/** An immutable object can't change, nor can the type of a Secret. */
function judgeData(before: JsonObject, after: JsonObject, issues: Issues): void {
  if (after['kind'] === 'Secret' && !sameData(before['type'], after['type']))
    issues.of('type').invalid(after['type'] ?? '', 'field is immutable')
  if (before['immutable'] !== true) return
  if (after['immutable'] !== true)
    issues.of('immutable').forbidden('field is immutable when `immutable` is set')
  for (const field of ['data', 'binaryData'])
    if (!sameData(before[field] ?? {}, after[field] ?? {}))
      issues.of(field).forbidden('field is immutable when `immutable` is set')
}

function judgeClaim(before: JsonObject, after: JsonObject, issues: Issues): void {
  if (!sameData({ ...before, resources: null }, { ...after, resources: null }))
    issues
      .of('spec')
      .forbidden(
        'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
      )
}

function judgeField(before: JsonObject, after: JsonObject, field: string, issues: Issues): void {
  if (!sameData(before[field], after[field]))
    issues.of(field).invalid(after[field] ?? null, 'field is immutable')
}

/** The fields that an update of a pod must not change. */
function frozen(spec: JsonObject): JsonObject {
  const { activeDeadlineSeconds: _deadline, tolerations: _tolerations, ...rest } = spec
  const grace = rest['terminationGracePeriodSeconds']
  const withoutImage = (container: Json): Json =>
    isJsonObject(container) ? { ...container, image: null, imagePullPolicy: null } : container
  return {
    ...rest,
    ...(typeof grace === 'number' && grace < 0 && { terminationGracePeriodSeconds: 1 }),
    containers: itemsOf(spec, 'containers').map((container) => withoutImage(container)),
    initContainers: itemsOf(spec, 'initContainers').map((container) => withoutImage(container)),
  }
}

function withoutResources(spec: JsonObject): JsonObject {
  const cut = (container: Json): Json =>
    isJsonObject(container)
      ? { ...container, resources: frozenResources(container), resizePolicy: null }
      : container
  return {
    ...spec,
    resources: frozenResources(spec),
    containers: itemsOf(spec, 'containers').map((container) => cut(container)),
    initContainers: itemsOf(spec, 'initContainers').map((container) => cut(container)),
  }
}

/** All but cpu and memory. */
function frozenResources(object: JsonObject): JsonObject {
  const { limits: _limits, requests: _requests, ...rest } = objectOrEmpty(object['resources'])
  const others = (['limits', 'requests'] as const).flatMap((list) =>
    Object.entries(amountsOf(object, list)).flatMap(([name, amount]) =>
      name === 'cpu' || name === 'memory' ? [] : [[`${list} ${name}`, amount] as const],
    ),
  )
  return { ...rest, ...Object.fromEntries(others) }
}

function sameTaint(a: Json, b: Json): boolean {
  if (!isJsonObject(a) || !isJsonObject(b)) return sameData(a, b)
  const { tolerationSeconds: _a, ...one } = a
  const { tolerationSeconds: _b, ...other } = b
  return sameData(one, other)
}

function itemsOf(object: JsonObject, key: string): readonly Json[] {
  return listOrEmpty(object[key])
}

function nameOf(value: Json): string {
  const name = jsonAt(value, 'name')
  return typeof name === 'string' ? name : ''
}

/** The finalizers of an object. */
export function finalizersOf({ metadata }: JsonObject): readonly string[] {
  return listOrEmpty(jsonAt(metadata, 'finalizers')).filter((name) => typeof name === 'string')
}

/** Whether an object was deleted and has no finalizers left. */
export function isReleased(manifest: JsonObject): boolean {
  const isDeleted = typeof jsonAt(manifest, 'metadata', 'deletionTimestamp') === 'string'
  return isDeleted && finalizersOf(manifest).length === 0
}

/** The conditions of a pod that podd itself sets: clients can't. */
const ownConditions: readonly (Json | undefined)[] = [
  'PodReadyToStartContainers',
  'PodScheduled',
  'Initialized',
  'ContainersReady',
  'Ready',
  'DisruptionTarget',
  'PodResizePending',
  'PodResizeInProgress',
]

export function isOwnCondition(type: Json | undefined): boolean {
  return ownConditions.includes(type)
}
