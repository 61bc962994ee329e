/* One manifest, checked, validated and defaulted: of a pod, of an object, or of a kind that the API only keeps. */
import { canonicalJson, isJsonObject, jsonAt, listOrEmpty, objectOrEmpty } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { objectFromManifest } from '../objects/local-object.ts'
import { keptEntry, keptKinds, objectKinds, validateObject } from '../objects/object-kinds.ts'
import type { KeptKind, LocalObject, ObjectKind } from '../objects/object-kinds.ts'
import { pathBelowTemplate, templatePath, withValueAt } from '../objects/workload-kinds.ts'
import { checkValue } from '../schema/check-value.ts'
import type { FieldValidation } from '../schema/check-value.ts'
import { podFromManifest } from '../schema/default-pod.ts'
import { formatFieldPath, Issues } from '../schema/issues.ts'
import type { FaultReason, FieldPath, FieldProblem } from '../schema/issues.ts'
import { objectMetaSchema, podSchema } from '../schema/pod-schema.ts'
import type { Pod } from '../schema/pod-schema.ts'
import { readAs } from '../schema/types.ts'
import { digestText } from '../values/hash.ts'
import { parseImageName } from '../values/image-name.ts'
import { validateClusterMetadata, validateMetadata } from '../validation/validate-metadata.ts'
import { validatePod } from '../validation/validate-pod.ts'

/** The result of decoding: a Pod with warnings, or the errors. */
export interface DecodedPod {
  readonly accepted: { readonly pod: Pod; readonly manifest: JsonObject } | undefined
  readonly problems: readonly FieldProblem[]
}

/**
 * One Pod's manifest, of kind Pod, checked, validated and defaulted. Paths in problems are relative to the manifest.
 * @param options.requireDigest whether an image without a digest is an error; by default it is not
 */
export function decodePod(
  given: JsonObject,
  fieldValidation: FieldValidation,
  {
    requireDigest = false,
    below,
  }: { readonly requireDigest?: boolean | undefined; readonly below?: FieldPath } = {},
): DecodedPod {
  const { manifest: own, dropped, originalPath } = dropClusterFields(given)
  const { value, whole, ...checked } = checkValue(podSchema, own, { fieldValidation, below })
  const toGiven = (problem: FieldProblem): FieldProblem => ({
    ...problem,
    path: originalPath(problem.path),
    ...(problem.near && { near: originalPath(problem.near) }),
  })
  const found = [
    ...checked.problems,
    ...ignoredWarnings(checked.ignored, dropped, { isDump: isDump(given), what: 'a pod' }),
  ]
  const asked = isJsonObject(whole) ? convertManifest(whole) : { manifest: {}, warnings: [] }
  const pod = podFromManifest(asked.manifest)
  const problems = mergeProblems(found, checked.meant, [
    ...asked.warnings,
    ...validatePod(pod, asked.manifest, checked.problems),
    ...(requireDigest ? digestProblems(pod.spec) : []),
  ])
  const manifest = isJsonObject(value) ? convertManifest(value).manifest : undefined
  const isBad = manifest === undefined || problems.some((problem) => problem.severity === 'error')
  return {
    accepted: isBad ? undefined : { pod, manifest },
    problems: problems.map((problem) => toGiven(problem)),
  }
}

/** What an API server adds to a manifest, which changes without a writer's doing. */
const serverMetadata: readonly string[] = [
  'creationTimestamp',
  'generation',
  'managedFields',
  'resourceVersion',
  'selfLink',
  'uid',
]

/** A digest of a manifest as it was written: equal for equal writing, whichever fields and kinds podd knows. */
export function digestWritten({ status: _status, metadata, ...rest }: JsonObject): string {
  const own = isJsonObject(metadata)
    ? Object.fromEntries(Object.entries(metadata).filter(([key]) => !serverMetadata.includes(key)))
    : metadata
  return digestText(canonicalJson({ ...rest, metadata: own }))
}

/** Of images without a digest, also those of volumes: what is behind a tag may change at any time. */
function digestProblems(spec: Pod['spec']): readonly FieldProblem[] {
  const ofContainers = containerLists.flatMap((list) =>
    spec[list].map(({ image }, index) => ({ path: ['spec', list, index, 'image'], image })),
  )
  const ofVolumes = spec.volumes.map(({ image }, index) => ({
    path: ['spec', 'volumes', index, 'image', 'reference'],
    image: image?.reference,
  }))
  return [...ofContainers, ...ofVolumes].flatMap(({ path, image }): FieldProblem[] => {
    // Of a missing or invalid name something else is told.
    const parsed = image === undefined ? undefined : parseImageName(image)
    if (parsed === undefined || parsed.digest !== undefined) return []
    const detail = 'must have a digest, as imagePolicy.requireDigest of this source says'
    const message = `Invalid value: ${JSON.stringify(image)}: ${detail}`
    const hint = `write ${image}@sha256:…, with the digest that the registry shows`
    return [{ severity: 'error', path, reason: 'RefusedHere', message, hint }]
  })
}

/** Fields that a cluster wrote get one warning together; each ignored field that a user wrote gets its own. */
function ignoredWarnings(
  ignored: readonly { readonly path: FieldPath; readonly reason: string }[],
  dropped: readonly string[],
  { isDump, what }: { readonly isDump: boolean; readonly what: string },
): readonly FieldProblem[] {
  const isClusters = (path: FieldPath): boolean => isDump || path[0] !== 'spec'
  const clusters = ignored.filter(({ path }) => isClusters(path))
  const names = [...clusters.map(({ path }) => formatFieldPath(path)), ...dropped]
  const together: FieldProblem[] =
    names.length === 0
      ? []
      : [
          {
            severity: 'warning',
            path: clusters[0]?.path ?? [],
            message: `dropped what a cluster writes into ${what}: ${names.join(', ')}`,
          },
        ]
  const single = ignored
    .filter(({ path }) => !isClusters(path))
    .map(({ path, reason }): FieldProblem => ({
      severity: 'warning',
      path,
      message: `has no effect: ${reason}`,
    }))
  return [...together, ...single]
}

/** The result of decoding: an object with warnings, or the errors. */
export interface DecodedObject {
  readonly accepted: { readonly object: LocalObject; readonly manifest: JsonObject } | undefined
  readonly problems: readonly FieldProblem[]
}

/**
 * One manifest of a kind that pods refer to or are made from, checked, validated and defaulted.
 * @param options.requireDigest as of `decodePod`, for the pods that it makes
 */
export function decodeObject(
  kind: ObjectKind,
  given: JsonObject,
  fieldValidation: FieldValidation,
  options: { readonly requireDigest?: boolean | undefined } = {},
): DecodedObject {
  const path = templatePath(kind)
  const podTemplate = path && jsonAt(given, ...path)
  if (path === undefined || !isJsonObject(podTemplate)) return decodeWhole(kind, given, fieldValidation)
  const rest = decodeWhole(
    kind,
    withValueAt(given, path, { spec: { containers: [] } }),
    fieldValidation,
    given,
  )
  // A pod of the workload, as it would stand alone.
  const { name, namespace = 'default' } = objectOrEmpty(given['metadata'])
  const { name: _name, generateName: _generated, ...metadata } = objectOrEmpty(podTemplate['metadata'])
  const named = { ...metadata, name: typeof name === 'string' ? `${name}-0` : 'template-0', namespace }
  const isTemplate = podTemplate['metadata'] === undefined || isJsonObject(podTemplate['metadata'])
  const wanted = isTemplate ? named : (podTemplate['metadata'] ?? named)
  const claims = claimVolumes(given, podTemplate)
  const asPod = {
    ...withVolumes(podTemplate, claims),
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: wanted,
  }
  const pod = decodePod(asPod, fieldValidation, { ...options, below: path })
  // What is wrong with the workload's own name is told already; that of its pods is longer.
  const isOfName = ({ path: [first, second] }: FieldProblem): boolean =>
    first === 'metadata' && (second === 'name' || second === 'namespace')
  const isTold = rest.problems.some((problem) => isOfName(problem))
  const isOwn = (problem: FieldProblem): boolean =>
    !isOfName(problem) || !isTold || problem.reason === 'RefusedHere'
  const moved = (problem: FieldProblem): FieldProblem =>
    Object.assign({}, problem, {
      path: pathBelowTemplate(path, problem.path),
      ...(problem.near && { near: pathBelowTemplate(path, problem.near) }),
    })
  const problems = [
    ...rest.problems,
    ...pod.problems.filter((problem) => isOwn(problem)).map((problem) => moved(problem)),
  ]
  if (rest.accepted === undefined || pod.accepted === undefined) return { accepted: undefined, problems }
  const { metadata: kept = {}, spec = {} } = pod.accepted.manifest
  const { name: _own, namespace: _space, ...labelled } = objectOrEmpty(kept)
  const template = { metadata: labelled, spec: withoutVolumes(objectOrEmpty(spec), claims) }
  const manifest = withValueAt(rest.accepted.manifest, path, template)
  return { accepted: { object: objectFromManifest(manifest), manifest }, problems }
}

/** The volumes that the pods of a StatefulSet have for their claims, beside those of the template. */
function claimVolumes(manifest: JsonObject, template: JsonObject): readonly JsonObject[] {
  const given = listOrEmpty(jsonAt(template, 'spec', 'volumes')).map((volume) => jsonAt(volume, 'name'))
  return listOrEmpty(jsonAt(manifest, 'spec', 'volumeClaimTemplates')).flatMap((claim) => {
    const name = jsonAt(claim, 'metadata', 'name')
    return typeof name !== 'string' || given.includes(name)
      ? []
      : [{ name, persistentVolumeClaim: { claimName: name } }]
  })
}

function withVolumes(template: JsonObject, added: readonly JsonObject[]): JsonObject {
  const spec = template['spec']
  if (added.length === 0 || !isJsonObject(spec)) return template
  return { ...template, spec: { ...spec, volumes: [...listOrEmpty(spec['volumes']), ...added] } }
}

function withoutVolumes(spec: JsonObject, added: readonly JsonObject[]): JsonObject {
  if (added.length === 0) return spec
  const isAdded = (volume: Json): boolean => added.some(({ name }) => name === jsonAt(volume, 'name'))
  return { ...spec, volumes: listOrEmpty(spec['volumes']).filter((volume) => !isAdded(volume)) }
}

/** @param original what stood in the file, where a part of it is checked elsewhere */
function decodeWhole(
  kind: ObjectKind,
  given: JsonObject,
  fieldValidation: FieldValidation,
  original?: JsonObject,
): DecodedObject {
  const { schema, isSecret } = objectKinds[kind]
  const { manifest: own, template } = dropTemplate(given)
  const { value, whole, ...checked } = checkValue(schema, own, { fieldValidation })
  const found = [
    ...checked.problems.map((problem) => (isSecret === true ? redact(problem) : problem)),
    ...ignoredWarnings(checked.ignored, template, { isDump: isDump(given), what: 'an object' }),
  ]
  const looked = isJsonObject(whole) ? whole : { kind }
  const object = objectFromManifest(looked)
  const problems = mergeProblems(found, checked.meant, validateObject(object, original ?? looked))
  if (!isJsonObject(value) || problems.some((problem) => problem.severity === 'error')) {
    return { accepted: undefined, problems }
  }
  return { accepted: { object, manifest: value }, problems }
}

/** The template of a name, which a dump has beside the name. */
function dropTemplate(given: JsonObject): { manifest: JsonObject; template: readonly string[] } {
  const metadata = objectOrEmpty(given['metadata'])
  const { name, generateName } = metadata
  const isBeside = hasValue(name) && typeof generateName === 'string' && generateName !== ''
  if (!isBeside) return { manifest: given, template: [] }
  return {
    manifest: { ...given, metadata: { ...metadata, generateName: null } },
    template: ['metadata.generateName'],
  }
}

/** Whether it is a dump of a live object, so that its ignored fields may be a cluster's and not a user's. */
function isDump({ metadata }: JsonObject): boolean {
  const fields = objectOrEmpty(metadata)
  return ['uid', 'resourceVersion', 'managedFields'].some((key) => hasValue(fields[key]))
}

function hasValue(value: Json | undefined): boolean {
  return value !== undefined && value !== null && value !== ''
}

/** Removes quoted values from problems about Secrets. */
function redact(problem: FieldProblem): FieldProblem {
  const [top] = problem.path
  const isMeta = top === 'apiVersion' || top === 'kind' || top === 'metadata'
  if (isMeta || !problem.message.startsWith('Invalid value')) return problem
  const isEntry = problem.path.length > 1
  return {
    severity: problem.severity,
    path: problem.path,
    reason: problem.reason,
    message: isEntry ? 'Invalid value: must be a string' : 'Invalid value: not of the right type',
    hint: isEntry ? 'put quotes around it' : undefined,
  }
}

/**
 * Converts values of a checked manifest to those that the API server keeps: a negative terminationGracePeriodSeconds is
 * read as 1 (`pkg/apis/core/v1/conversion.go` Convert_v1_Pod_To_core_Pod; the warning is that of
 * `pkg/api/pod/warnings.go`, 1.36). Idempotent.
 */
function convertManifest(manifest: JsonObject): {
  readonly manifest: JsonObject
  readonly warnings: readonly FieldProblem[]
} {
  const spec = manifest['spec']
  const grace = jsonAt(spec, 'terminationGracePeriodSeconds')
  if (!isJsonObject(spec) || typeof grace !== 'number' || grace >= 0) return { manifest, warnings: [] }
  return {
    manifest: { ...manifest, spec: { ...spec, terminationGracePeriodSeconds: 1 } },
    warnings: [
      {
        severity: 'warning',
        path: ['spec', 'terminationGracePeriodSeconds'],
        message: 'must be >= 0; negative values are invalid and will be treated as 1',
      },
    ],
  }
}

const tokenMountPath = '/var/run/secrets/kubernetes.io/serviceaccount'
const containerLists = ['initContainers', 'containers', 'ephemeralContainers'] as const

/** A Pod's manifest without fields that a cluster injected. */
export interface WithoutClusterFields {
  readonly manifest: JsonObject
  /** The removed fields, for a warning. */
  readonly dropped: readonly string[]
  /** Maps the path of a field of `manifest` to its path in the original manifest. */
  readonly originalPath: (path: FieldPath) => FieldPath
}

/**
 * Takes out the service account's token volume with its mounts, which a cluster injects into every pod, and the name's
 * template where there is a name. (The schema ignores a dump's other fields.)
 */
function dropClusterFields(given: JsonObject): WithoutClusterFields {
  const lists = new ListCutter()
  const { manifest, template } = dropTemplate(given)
  const dropped = [...template]
  const { spec } = manifest
  return {
    manifest: isJsonObject(spec) ? { ...manifest, spec: dropTokenVolume(spec, lists, dropped) } : manifest,
    dropped,
    originalPath: (path) => lists.originalPath(path),
  }
}

function dropTokenVolume(spec: JsonObject, lists: ListCutter, dropped: string[]): JsonObject {
  let tokenMounts: ReadonlySet<Json | undefined> | undefined
  const isToken = (volume: Json): boolean => {
    const name = jsonAt(volume, 'name')
    if (!isJsonObject(volume) || typeof name !== 'string') return false
    const isInjected = name.startsWith('kube-api-access-') && 'projected' in volume
    const isOldStyle = /-token-[a-z0-9]{5}$/.test(name) && 'secret' in volume
    if (isInjected || !isOldStyle) return isInjected
    tokenMounts ??= namesMountedAsToken(spec)
    return tokenMounts.has(name)
  }
  const volumes = spec['volumes']
  const tokens = listOrEmpty(volumes).filter((volume) => isToken(volume))
  if (tokens.length === 0) return spec
  const names = new Set(tokens.map((volume) => jsonAt(volume, 'name')))
  dropped.push('the volume of the service account token')
  const isTokenMount = (mount: Json): boolean => isJsonObject(mount) && names.has(mount['name'])
  const without: Record<string, Json> = {
    ...spec,
    volumes: lists.cut(volumes, ['spec', 'volumes'], isToken),
  }
  for (const listName of containerLists) {
    const containers = spec[listName]
    if (!Array.isArray(containers)) continue
    without[listName] = containers.map((container: Json, index) => {
      const mounts = jsonAt(container, 'volumeMounts')
      if (!isJsonObject(container) || mounts === undefined) return container
      const path = ['spec', listName, index, 'volumeMounts']
      const kept = lists.cut(mounts, path, isTokenMount)
      return Object.fromEntries([...Object.entries(container), ['volumeMounts', kept]])
    })
  }
  return without
}

/** Volumes that are mounted where the token is, and nowhere else. */
function namesMountedAsToken(spec: JsonObject): ReadonlySet<Json | undefined> {
  const mounts = containerLists
    .flatMap((listName) => listOrEmpty(spec[listName]))
    .flatMap((container) => listOrEmpty(jsonAt(container, 'volumeMounts')))
    .filter((mount) => isJsonObject(mount))
  const names = new Set(mounts.map(({ name }) => name))
  for (const { name, mountPath } of mounts) if (mountPath !== tokenMountPath) names.delete(name)
  return names
}

/** Removes items from lists and remembers the others' indexes. */
class ListCutter {
  readonly #kept = new Map<string, readonly number[]>()

  cut(list: Json | undefined, path: FieldPath, isOut: (item: Json) => boolean): Json {
    if (!Array.isArray(list)) return list ?? null
    const kept = [...list.keys()].filter((index) => !isOut(list[index] ?? null))
    this.#kept.set(path.join('/'), kept)
    return kept.map((index) => list[index] ?? null)
  }

  originalPath(path: FieldPath): FieldPath {
    return path.map((step, index) => {
      if (typeof step === 'string') return step
      return this.#kept.get(path.slice(0, index).join('/'))?.[step] ?? step
    })
  }
}

/**
 * Merges the schema's problems with those of validation, without the ones that only follow from the former: where a
 * field can't be read, validation sees a replacement.
 * @param meant the fields that unknown ones were probably meant for
 */
function mergeProblems(
  checked: readonly FieldProblem[],
  meant: readonly FieldPath[],
  validated: readonly FieldProblem[],
): readonly FieldProblem[] {
  const errors = checked.filter(({ severity }) => severity === 'error')
  if (errors.length === 0) return [...checked, ...validated]
  const named = checked.map((problem) => asApiNames(problem))
  // A field that podd refuses can be read, and may have further problems.
  const unread = errors.filter(({ reason }) => reason !== 'RefusedHere')
  const faulty = new Set([...unread.map(({ path }) => path), ...meant].map((path) => key(path)))
  const parentsOf = (problems: readonly FieldProblem[]): ReadonlySet<string> =>
    new Set(problems.map(({ path }) => key(path.slice(0, -1))))
  const parents = parentsOf(errors)
  const unreadParents = parentsOf(unread)
  const isUnread = errors.some(
    ({ reason }) => reason === 'FieldValueTypeInvalid' || reason === 'UnknownField',
  )
  const isConsequence = ({ path, near, reason, isWhole }: FieldProblem): boolean => {
    if (isWhole === true) return false
    if (reason === 'FieldValueNotFound' && isUnread) return true
    if (unreadParents.has(key(path))) return true
    if (reason === 'FieldValueRequired' && parents.has(key(path))) return true
    if (path.at(-2) === 'appArmorProfile' && faulty.has(key([...path.slice(0, -1), 'type']))) return true
    return [path, near ?? []].some((own) => own.some((_, index) => faulty.has(key(own.slice(0, index + 1)))))
  }
  const wholes = new Set(
    validated.filter(({ isWhole }) => isWhole).map(({ path, near }) => key(near ?? path)),
  )
  const isUnseen = ({ path, reason }: FieldProblem): boolean =>
    aboutValues.has(reason) && path.some((_, index) => wholes.has(key(path.slice(0, index))))
  const all = [
    ...named.filter((problem) => wholes.size === 0 || !isUnseen(problem)),
    ...validated.filter((problem) => !isConsequence(problem)),
  ]
  // The template of the name has the problem.
  return errors.some(({ path }) => key(path) === key(generateName))
    ? all.filter((problem) => !isMissingName(problem))
    : all
}

/** Fields that the API server reports without the index of their item. */
const unindexed: ReadonlySet<string | number | undefined> = new Set(['mountPropagation', 'recursiveReadOnly'])
const aboutValues: ReadonlySet<FaultReason | undefined> = new Set([
  'FieldValueRequired',
  'FieldValueNotSupported',
])

/** The problem with the field's name in the API server's validation. */
function asApiNames(problem: FieldProblem): FieldProblem {
  const { path } = problem
  if (!aboutValues.has(problem.reason)) return problem
  if (unindexed.has(path.at(-1))) {
    return { ...problem, path: path.filter((_, index) => index !== path.length - 2), near: path }
  }
  const items = path.indexOf('items')
  if (path[items - 1] !== 'downwardAPI') return problem
  return { ...problem, path: [...path.slice(0, items), ...path.slice(items + 2)], near: path }
}

const generateName = ['metadata', 'generateName']

function isMissingName({ path, reason }: FieldProblem): boolean {
  return reason === 'FieldValueRequired' && path.length === 2 && path[0] === 'metadata' && path[1] === 'name'
}

function key(path: FieldPath): string {
  return JSON.stringify(path)
}

/** The problems of an object of a kind that the API keeps for its clients. */
export function keptProblems(kind: KeptKind, given: JsonObject): readonly FieldProblem[] {
  const { schema, validate, nameRule } = keptEntry(kind)
  const { manifest } = dropTemplate(given)
  const { template = null, ...rest } = manifest
  // A template has the problems of the pod that it describes.
  const own = kind === 'PodTemplate' ? rest : manifest
  const { problems } = checkValue(schema, own, { fieldValidation: 'Strict' })
  const issues = new Issues()
  const metadata = readAs(objectMetaSchema, own['metadata'] ?? {})
  validateClusterMetadata(kind, own['metadata'], issues.of('metadata'))
  if (metadata !== undefined) validateMetadata(metadata, issues.of('metadata'), nameRule)
  validate?.(own, issues)
  return [
    ...problems,
    ...issues.problems,
    ...(kind === 'PodTemplate' ? templateProblems(template ?? {}) : []),
  ]
}

/** Source: ValidatePodTemplateSpec in pkg/apis/core/validation, 1.36. */
function templateProblems(template: Json): readonly FieldProblem[] {
  if (!isJsonObject(template)) {
    const { type } = keptKinds.PodTemplate.schema.fields.template
    return belowTemplate(checkValue(type, template, { fieldValidation: 'Strict' }).problems)
  }
  const metadata = objectOrEmpty(template['metadata'])
  const pod = { ...template, apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'template' } }
  return belowTemplate(decodePod(pod, 'Strict').problems)
}

function belowTemplate(problems: readonly FieldProblem[]): readonly FieldProblem[] {
  return problems.map((problem) =>
    Object.assign({}, problem, {
      path: ['template', ...problem.path],
      near: problem.near && ['template', ...problem.near],
    }),
  )
}
