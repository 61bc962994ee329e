import type { PriorityClassObject, RuntimeClassObject } from '../../api/cluster-objects.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import { formatTime } from '../../base/clock.ts'
import { isJsonObject, objectOrEmpty, sameData } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { newUuid } from '../../base/random.ts'
import { refusePreemption } from '../../decide/admission/resolve-classes.ts'
import {
  namespaceProblems,
  readinessGateProblems,
  withoutReadinessGates,
} from '../../decide/writing/check-object.ts'
import {
  generateName,
  mergeTolerations,
  metadataOf,
  prepareNew,
} from '../../decide/writing/prepare-object.ts'
import { decodeObject, decodePod, keptProblems } from '../../pod/decode/decode-pod.ts'
import { idleGroupOf, isKeptKind, isObjectKind, noCustomObjects } from '../../pod/objects/object-kinds.ts'
import { formatFieldPath } from '../../pod/schema/issues.ts'
import type { FieldPath, FieldProblem } from '../../pod/schema/issues.ts'
import { computeQosClass } from '../../pod/schema/pod-resources.ts'
import { ApiError, notFound } from '../requests/api-error.ts'
import {
  alreadyExists,
  findShown,
  invalid,
  refuseOther,
  strictDecoding,
  wrongType,
  hasEnded,
} from './written-kind.ts'
import type { Target, WriteOptions, WrittenKind } from './written-kind.ts'

export interface Written {
  readonly object: unknown
  readonly status: 200 | 201
  readonly warnings: readonly string[]
}

/** How often a taken generated name is retried (`apiserver/pkg/registry/generic/registry/store.go`, 1.36). */
const maxDraws = 8

/**
 * Creates an object. Throws ApiError, or PoddError OBJECT_NOT_KEPT.
 * @param namespace from the path; empty for a kind without namespaces
 */
export function createObject(
  written: WrittenKind,
  given: JsonObject,
  namespace: string,
  options: WriteOptions,
): Promise<Written> {
  return written.writer.exclusively(async () => {
    const { kind, writer, clock } = written
    refuseOther(kind, given, kind.namespaced ? { namespace } : {})
    if ((metadataOf(given)['resourceVersion'] ?? '') !== '')
      throw new ApiError(400, 'resourceVersion should not be set on objects to be created')
    const name = chooseName(written, given, namespace)
    if (kind.namespaced) refuseNamespace(written, namespace, name)
    const uid = newUuid()
    const prepared = prepareNew(given, {
      kind: kind.kind,
      apiVersion: kind.apiVersion,
      name,
      namespace: kind.namespaced ? namespace : undefined,
      uid,
      creationTimestamp: formatTime(clock.wallMs()),
    })
    const { manifest: checked, warnings } = checkObject(kind, prepared, options)
    const classed = withRuntimeClass(written, checked)
    const classes = kind.kind === 'Pod' ? podPriority(written, classed) : undefined
    const manifest = withPreemption(classed, classes)
    if (isTaken(written, { namespace, name })) throw alreadyExists(kind, name)
    if (kind.kind === 'Pod') refuseBeyondQuota(written, name)
    if (options.dryRun) return { object: asFirstShown(manifest, classes?.priority), status: 201, warnings }
    await writer.put(manifest)
    if (kind.kind === 'Namespace') await writer.put(rootAuthority(manifest, name))
    const shown = written.reader.list().find(({ metadata }) => metadata.uid === uid)
    return { object: shown ?? manifest, status: 201, warnings }
  })
}

/** Throws ApiError where no object can be created in a namespace. */
function refuseNamespace({ kind, namespaces }: WrittenKind, namespace: string, name: string): void {
  const found = namespaces.list().find(({ metadata }) => metadata.name === namespace)
  if (found === undefined) throw notFound('namespaces', namespace)
  if (found.status.phase === 'Active') return
  throw new ApiError(
    403,
    `${kind.resource} ${JSON.stringify(name)} is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`,
    undefined,
    {
      name,
      kind: kind.resource,
      causes: [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    },
  )
}

/**
 * Throws ApiError Forbidden where the API has as many pods as are followed, in the words of a cluster's quota, so that
 * clients know it (`apiserver/pkg/admission/plugin/resourcequota/controller.go` checkRequest, 1.36).
 */
function refuseBeyondQuota({ reader, writer: { maxPods } }: WrittenKind, name: string): void {
  const used = reader
    .list()
    .filter((shown) => shown.metadata.annotations?.['podd.dev/source'] === 'api' && !hasEnded(shown)).length
  if (used < maxPods) return
  throw forbidden(
    name,
    `exceeded quota: maxPods, requested: pods=1, used: pods=${used}, limited: pods=${maxPods}: delete pods that are not needed, or raise maxPods`,
  )
}

/**
 * The ConfigMap that every namespace of a cluster has, and for which clients wait
 * (`pkg/controller/certificates/rootcacertpublisher`, 1.36). Pods get no tokens, so it names no authority.
 */
function rootAuthority({ metadata }: JsonObject, namespace: string): JsonObject {
  const { creationTimestamp = null } = objectOrEmpty(metadata)
  const name = 'kube-root-ca.crt'
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, uid: newUuid(), creationTimestamp },
    data: { 'ca.crt': '' },
  }
}

function chooseName(written: WrittenKind, given: JsonObject, namespace: string): string {
  const { name, generateName: base } = metadataOf(given)
  if (typeof name === 'string' && name !== '') return name
  if (typeof base !== 'string' || base === '') {
    throw invalid(written.kind, '', [
      {
        severity: 'error',
        path: ['metadata', 'name'],
        message: 'Required value: name or generateName is required',
        reason: 'FieldValueRequired',
      },
    ])
  }
  for (let draw = 0; draw < maxDraws; draw += 1) {
    const drawn = generateName(base, written.random)
    if (!isTaken(written, { namespace, name: drawn })) return drawn
  }
  throw new ApiError(409, `no free name was found for ${JSON.stringify(base)}: try again`)
}

function isTaken(written: WrittenKind, target: Target): boolean {
  const { kind, writer } = written
  return writer.get({ kind: kind.kind, ...target }) !== undefined || findShown(written, target) !== undefined
}

function withPreemption(manifest: JsonObject, classes: PodPriority | undefined): JsonObject {
  const { spec } = manifest
  if (classes === undefined || !isJsonObject(spec)) return manifest
  return { ...manifest, spec: { ...spec, preemptionPolicy: classes.preemptionPolicy } }
}

/** A dry run returns the object as it would be created. */
function asFirstShown(manifest: JsonObject, priority: number | undefined): JsonObject {
  const { metadata, spec } = manifest
  if (priority === undefined || !isJsonObject(spec)) return manifest
  const pod = decodePod(manifest, 'Warn').accepted?.pod
  return {
    ...manifest,
    metadata: { ...objectOrEmpty(metadata), generation: 1 },
    spec: { ...spec, priority },
    status: { phase: 'Pending', ...(pod !== undefined && { qosClass: computeQosClass(pod.spec) }) },
  }
}

/**
 * Checks an object as an API server does: unknown fields by mode, then validation. Returns it without unknown fields.
 * Throws ApiError.
 */
export function checkObject(
  kind: ServedKind,
  manifest: JsonObject,
  options: Pick<WriteOptions, 'fieldValidation' | 'duplicates' | 'isPatch'>,
  more: readonly FieldProblem[] = [],
): { readonly manifest: JsonObject; readonly warnings: readonly string[] } {
  const { fieldValidation, duplicates = [] } = options
  const { known, unknown } = splitUnknown(kind.kind, manifest)
  const strange = [
    ...duplicates.map((field) => `duplicate field ${JSON.stringify(field)}`),
    ...unknown.map((path) => `unknown field ${JSON.stringify(formatFieldPath(path))}`),
  ]
  if (strange.length > 0 && fieldValidation === 'Strict') throw strictDecoding(kind, strange, options)
  const wrongTypes = problemsOf(kind.kind, known).filter(({ reason }) => reason === 'FieldValueTypeInvalid')
  if (wrongTypes.length > 0) throw wrongType(kind, wrongTypes, options)
  const problems = [...problemsOf(kind.kind, known), ...more]
  const errors = problems.filter(({ severity }) => severity === 'error')
  if (errors.length > 0) throw invalid(kind, nameOf(known), errors)
  const idle = idleGroupOf(kind.kind) === undefined ? [] : idleWarnings(kind, nameOf(known), problems)
  return { manifest: known, warnings: [...(fieldValidation === 'Ignore' ? [] : strange), ...idle] }
}

/** What is said of an object that is kept without effect. */
function idleWarnings(
  { kind }: ServedKind,
  name: string,
  problems: readonly FieldProblem[],
): readonly string[] {
  const told = problems.flatMap(({ path, message, hint }) =>
    hint === undefined ? [] : [`${formatFieldPath(path)} ${message}: ${hint}`],
  )
  return [`${kind} ${name} is kept without effect, as nothing on one host goes by it`, ...told].concat(
    kind === 'CustomResourceDefinition' ? [noCustomObjects] : [],
  )
}

function problemsOf(kind: string, manifest: JsonObject): readonly FieldProblem[] {
  if (kind === 'Pod')
    return decodePod(withoutReadinessGates(manifest), 'Strict').problems.concat(
      readinessGateProblems(manifest),
    )
  if (kind === 'Namespace') return namespaceProblems(manifest)
  if (isKeptKind(kind)) return keptProblems(kind, manifest)
  return isObjectKind(kind) ? decodeObject(kind, manifest, 'Strict').problems : []
}

/** An unknown field hides the fields below it: repeats until there is none. */
function splitUnknown(
  kind: string,
  manifest: JsonObject,
): { readonly known: JsonObject; readonly unknown: readonly FieldPath[] } {
  const unknown = problemsOf(kind, manifest).flatMap(({ reason, path }) =>
    reason === 'UnknownField' ? [path] : [],
  )
  const known = unknown.reduce<Json>((value, path) => withoutField(value, path), manifest)
  return { known: isJsonObject(known) ? known : manifest, unknown }
}

function withoutField(value: Json, [step, ...rest]: FieldPath): Json {
  if (Array.isArray(value))
    return value.map((item: Json, index) => (index === step ? withoutField(item, rest) : item))
  if (!isJsonObject(value) || step === undefined) return value
  if (rest.length === 0) return Object.fromEntries(Object.entries(value).filter(([key]) => key !== step))
  const below = value[step]
  return below === undefined ? value : { ...value, [step]: withoutField(below, rest) }
}

/** The fields of a PriorityClass that a pod takes. */
interface PodPriority {
  readonly priority: number
  readonly preemptionPolicy: PriorityClassObject['preemptionPolicy']
}

/**
 * The priority of a pod by its class, or by the default one. Throws ApiError Forbidden for an unknown class, and for
 * another preemption policy than the class's (`plugin/pkg/admission/priority`, 1.36).
 */
function podPriority({ priorityClasses }: WrittenKind, manifest: JsonObject): PodPriority {
  const { priorityClassName = '', priority, preemptionPolicy } = objectOrEmpty(manifest['spec'])
  const classes = priorityClasses.list()
  const isNamed = typeof priorityClassName === 'string' && priorityClassName !== ''
  const found = isNamed
    ? classes.find(({ metadata }) => metadata.name === priorityClassName)
    : classes.find(({ globalDefault }) => globalDefault === true)
  if (isNamed && found === undefined)
    throw forbidden(nameOf(manifest), `no PriorityClass with name ${priorityClassName} was found`)
  const policy = typeof preemptionPolicy === 'string' ? preemptionPolicy : undefined
  const refusal = refusePreemption(policy, found?.preemptionPolicy)
  if (refusal !== undefined) throw forbidden(nameOf(manifest), refusal)
  const given = !isNamed && typeof priority === 'number' ? priority : undefined
  return {
    priority: given ?? found?.value ?? 0,
    preemptionPolicy: found?.preemptionPolicy ?? 'PreemptLowerPriority',
  }
}

function nameOf(manifest: JsonObject): string {
  const { name } = metadataOf(manifest)
  return typeof name === 'string' ? name : ''
}

function forbidden(name: string, why: string): ApiError {
  const message = `pods ${JSON.stringify(name)} is forbidden: ${why}`
  return new ApiError(403, message, undefined, { name, kind: 'pods' })
}

type Refuse = (why: string) => ApiError

/**
 * A pod with what its RuntimeClass adds: overhead, node selector and tolerations; anything else as it is. Throws
 * ApiError Forbidden for an unknown class, for another overhead than the class's, and for another value of a label in
 * its node selector (`plugin/pkg/admission/runtimeclass`, 1.36).
 */
function withRuntimeClass({ kind, runtimeClasses }: WrittenKind, manifest: JsonObject): JsonObject {
  const { spec } = manifest
  if (kind.kind !== 'Pod' || !isJsonObject(spec)) return manifest
  const { runtimeClassName = '', overhead = {} } = spec
  if (runtimeClassName === '') return manifest
  const refuse: Refuse = (why) => forbidden(nameOf(manifest), why)
  const found = runtimeClasses.list().find((shown) => shown.metadata.name === runtimeClassName)
  if (found === undefined)
    throw refuse(`pod rejected: RuntimeClass ${JSON.stringify(runtimeClassName)} not found`)
  const podFixed = found.overhead?.podFixed ?? {}
  if (!sameData(overhead, {}) && !sameData(overhead, podFixed))
    throw refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
  const scheduled = withScheduling(spec, found, refuse)
  return {
    ...manifest,
    spec: sameData(podFixed, {}) ? scheduled : { ...scheduled, overhead: { ...podFixed } },
  }
}

/** No scheduler uses them; clients read them in the pod. */
function withScheduling(spec: JsonObject, { scheduling }: RuntimeClassObject, refuse: Refuse): JsonObject {
  if (scheduling === undefined) return spec
  const { nodeSelector, tolerations = [] } = scheduling
  const own = objectOrEmpty(spec['nodeSelector'])
  const added = objectOrEmpty(nodeSelector)
  for (const [key, value] of Object.entries(added)) {
    if (own[key] === undefined || own[key] === value) continue
    throw refuse(
      `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${textOf(value)}; pod.spec.nodeSelector[${key}] = ${textOf(own[key])}`,
    )
  }
  const selected = { ...own, ...added }
  const tolerated = mergeTolerations(spec['tolerations'], tolerations)
  return {
    ...spec,
    ...(Object.keys(selected).length > 0 && { nodeSelector: selected }),
    ...(tolerated.length > 0 && { tolerations: tolerated }),
  }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null)
}
