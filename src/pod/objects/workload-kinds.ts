/* The kinds from which pods are made: their fields, their rules, and where each has its pod template. */
import { isJsonObject, jsonAt, textEntries } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { FieldPath, Issues } from '../schema/issues.ts'
import { kindSchema, objectMetaSchema, podSchema } from '../schema/pod-schema.ts'
import { labelSelectorSchema } from '../schema/scheduling-schema.ts'
import {
  any,
  bool,
  defaulted,
  ignored,
  int32,
  int64,
  intOrString,
  list,
  map,
  object,
  oneOf,
  optional,
  refused,
  required,
  requiredOrZero,
  string,
} from '../schema/types.ts'
import type { Fields, Infer } from '../schema/types.ts'
import { claimSpecSchema } from '../schema/volume-schema.ts'
import { validateLabelSelector } from '../validation/validate-metadata.ts'
import { validateClaimSpec } from '../validation/validate-volumes.ts'

const ofWorkload = 'what it makes is named after the workload'

/** Metadata of what a workload makes. */
const templateMetaSchema = object('ObjectMeta', {
  ...objectMetaSchema.fields,
  name: ignored(string, ofWorkload),
  namespace: ignored(string, ofWorkload),
  generateName: ignored(string, ofWorkload),
})

/** Its pod is checked as one that stands alone (`decodeObject`). */
const podTemplateSchema = object('PodTemplateSpec', {
  metadata: optional(templateMetaSchema),
  spec: podSchema.fields.spec,
})

const statusField = ignored(map(any), 'written by a control plane')
const history = 'podd keeps as many revisions as `updateHistory` says'
const surge = 'a pod is replaced by one of its own name, as soon as that could start'

function workloadSchema<const Version extends string, const Kind extends string, const Spec extends Fields>(
  apiVersion: Version,
  kind: Kind,
  spec: Spec,
) {
  return kindSchema(apiVersion, kind, { spec: required(object(`${kind}Spec`, spec)), status: statusField })
}

/** What all workloads whose pods run on have. */
const replicaFields = {
  selector: required(labelSelectorSchema),
  template: required(podTemplateSchema),
  minReadySeconds: defaulted(int32, 0),
  revisionHistoryLimit: ignored(int32, history),
} as const

export const deploymentSchema = workloadSchema('apps/v1', 'Deployment', {
  replicas: defaulted(int32, 1),
  ...replicaFields,
  strategy: optional(
    object('DeploymentStrategy', {
      type: defaulted(oneOf('Recreate', 'RollingUpdate'), 'RollingUpdate'),
      rollingUpdate: optional(
        object('RollingUpdateDeployment', {
          maxUnavailable: optional(intOrString, 'at least one, as no pod is added meanwhile'),
          maxSurge: ignored(intOrString, surge),
        }),
      ),
    }),
  ),
  paused: defaulted(bool, false),
  progressDeadlineSeconds: optional(int32, 'where it is left out, `updateProgressDeadline` of podd holds'),
})

const updateTypeSchema = defaulted(
  oneOf('RollingUpdate', 'OnDelete'),
  'RollingUpdate',
  'OnDelete: a pod keeps its template until it is deleted over the API, and how the new one does undoes no update',
)

/** As `volumeClaimTemplates` has them: claims whose type goes without saying. */
const claimTemplateSchema = object('PersistentVolumeClaim', {
  apiVersion: optional(oneOf('v1')),
  kind: optional(oneOf('PersistentVolumeClaim')),
  metadata: required(objectMetaSchema),
  spec: required(claimSpecSchema),
  status: statusField,
})

export const statefulSetSchema = workloadSchema('apps/v1', 'StatefulSet', {
  replicas: defaulted(int32, 1),
  ...replicaFields,
  volumeClaimTemplates: defaulted(list(claimTemplateSchema), []),
  serviceName: defaulted(string, '', 'the subdomain of its pods'),
  podManagementPolicy: defaulted(oneOf('OrderedReady', 'Parallel'), 'OrderedReady'),
  updateStrategy: optional(
    object('StatefulSetUpdateStrategy', {
      type: updateTypeSchema,
      rollingUpdate: optional(
        object('RollingUpdateStatefulSetStrategy', {
          partition: refused(
            int32,
            'no older template is kept for pods that are made later: set `type: OnDelete`, and delete each pod that is to change',
            [0],
          ),
          maxUnavailable: optional(intOrString),
        }),
      ),
    }),
  ),
  persistentVolumeClaimRetentionPolicy: optional(
    object('StatefulSetPersistentVolumeClaimRetentionPolicy', {
      whenDeleted: defaulted(
        oneOf('Retain', 'Delete'),
        'Retain',
        'Delete has no effect: podd removes data only when it is told to (`podd delete pvc`)',
      ),
      whenScaled: defaulted(oneOf('Retain', 'Delete'), 'Retain', 'Delete has no effect, as above'),
    }),
  ),
  ordinals: optional(object('StatefulSetOrdinals', { start: requiredOrZero(int32) })),
})

export const daemonSetSchema = workloadSchema('apps/v1', 'DaemonSet', {
  ...replicaFields,
  updateStrategy: optional(
    object('DaemonSetUpdateStrategy', {
      type: updateTypeSchema,
      rollingUpdate: ignored(
        object('RollingUpdateDaemonSet', {
          maxUnavailable: optional(intOrString),
          maxSurge: optional(intOrString),
        }),
        'there is one pod',
      ),
    }),
  ),
})

const jobSpecSchema = object('JobSpec', {
  parallelism: optional(int32),
  completions: optional(int32),
  activeDeadlineSeconds: optional(int64),
  podFailurePolicy: optional(
    object('PodFailurePolicy', {
      rules: requiredOrZero(
        list(
          object('PodFailurePolicyRule', {
            action: requiredOrZero(oneOf('FailJob', 'FailIndex', 'Ignore', 'Count')),
            onExitCodes: optional(
              object('PodFailurePolicyOnExitCodesRequirement', {
                containerName: optional(string),
                operator: requiredOrZero(oneOf('In', 'NotIn')),
                values: requiredOrZero(list(int32)),
              }),
            ),
            onPodConditions: defaulted(
              list(
                object('PodFailurePolicyOnPodConditionsPattern', {
                  type: requiredOrZero(string),
                  status: requiredOrZero(string),
                }),
              ),
              [],
            ),
          }),
        ),
      ),
    }),
  ),
  successPolicy: refused(map(any), 'write how many completions are wanted'),
  backoffLimit: optional(int32),
  backoffLimitPerIndex: optional(int32),
  maxFailedIndexes: optional(int32),
  selector: ignored(labelSelectorSchema, 'a job knows its pods by their names'),
  manualSelector: ignored(bool, 'a job knows its pods by their names'),
  template: required(podTemplateSchema),
  ttlSecondsAfterFinished: optional(
    int32,
    'removes its pods; it does not run again while its manifest is there',
  ),
  completionMode: defaulted(oneOf('NonIndexed', 'Indexed'), 'NonIndexed'),
  suspend: defaulted(bool, false),
  podReplacementPolicy: ignored(
    oneOf('TerminatingOrFailed', 'Failed'),
    'a pod is replaced once it has failed, as with `Failed`',
  ),
  managedBy: refused(string, 'there is no other controller', ['kubernetes.io/job-controller']),
})

export const jobSchema = kindSchema('batch/v1', 'Job', { spec: required(jobSpecSchema), status: statusField })

export const cronJobSchema = workloadSchema('batch/v1', 'CronJob', {
  schedule: required(
    string,
    'a time that the change to summer time skips counts as soon as it has passed, one that comes twice counts once',
  ),
  timeZone: optional(string, 'where it is left out, that of podd'),
  startingDeadlineSeconds: optional(int64),
  concurrencyPolicy: defaulted(oneOf('Allow', 'Forbid', 'Replace'), 'Allow'),
  suspend: defaulted(bool, false),
  jobTemplate: required(
    object('JobTemplateSpec', { metadata: optional(templateMetaSchema), spec: required(jobSpecSchema) }),
  ),
  successfulJobsHistoryLimit: defaulted(int32, 3),
  failedJobsHistoryLimit: defaulted(int32, 1),
})

export type Job = Infer<typeof jobSchema>
export type JobSpec = Infer<typeof jobSpecSchema>
export type CronJob = Infer<typeof cronJobSchema>
export type Deployment = Infer<typeof deploymentSchema>
export type StatefulSet = Infer<typeof statefulSetSchema>
export type DaemonSet = Infer<typeof daemonSetSchema>

/** Where a kind has its pod template; of other kinds nothing. */
const templatePaths = {
  Deployment: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
} as const satisfies Record<string, readonly string[]>

export type WorkloadKind = keyof typeof templatePaths

export function isWorkloadKind(kind: unknown): kind is WorkloadKind {
  return typeof kind === 'string' && Object.hasOwn(templatePaths, kind)
}

/** Whose pods run on. */
export function isReplicaKind(kind: string): kind is 'Deployment' | 'StatefulSet' | 'DaemonSet' {
  return kind === 'Deployment' || kind === 'StatefulSet' || kind === 'DaemonSet'
}

/** What runs to its end, and is recorded as done. */
export function isBatchKind(kind: string): kind is 'Job' | 'CronJob' {
  return kind === 'Job' || kind === 'CronJob'
}

/** Of a kind that has a pod template. */
export function templatePath(kind: string): readonly string[] | undefined {
  return isWorkloadKind(kind) ? templatePaths[kind] : undefined
}

/** A copy with another value at a path of objects. */
export function withValueAt(value: JsonObject, [key, ...rest]: readonly string[], put: Json): JsonObject {
  if (key === undefined) return value
  const below = value[key]
  return {
    ...value,
    [key]: rest.length === 0 ? put : withValueAt(isJsonObject(below) ? below : {}, rest, put),
  }
}

/** Source: ValidateDeploymentSpec in pkg/apis/apps/validation, 1.36. */
export function validateDeployment({ spec }: Deployment, issues: Issues, manifest: JsonObject): void {
  const at = issues.of('spec')
  validateReplicas(spec.replicas, at.of('replicas'))
  validateSelector(spec.selector, manifest, 'deployment', at)
  validateTemplate(manifest, at.of('template'))
  at.of('minReadySeconds').range(spec.minReadySeconds, 0)
  const { progressDeadlineSeconds: deadline, minReadySeconds } = spec
  at.of('progressDeadlineSeconds').range(deadline, 0)
  if (deadline !== undefined && deadline <= minReadySeconds)
    at.of('progressDeadlineSeconds').invalid(deadline, 'must be greater than minReadySeconds')
  const { type = 'RollingUpdate', rollingUpdate } = spec.strategy ?? {}
  const update = at.of('strategy', 'rollingUpdate')
  const given = jsonAt(manifest, 'spec', 'strategy', 'rollingUpdate')
  if (type === 'Recreate') {
    if (given !== undefined && given !== null)
      update.forbidden("may not be specified when strategy `type` is 'Recreate'")
    return
  }
  validateShare(rollingUpdate?.maxUnavailable, update.of('maxUnavailable'))
  const surged = jsonAt(given, 'maxSurge')
  if (typeof surged === 'number' || typeof surged === 'string') validateShare(surged, update.of('maxSurge'))
  if (isNothing(rollingUpdate?.maxUnavailable) && isNothing(surged))
    update.of('maxUnavailable').invalid(rollingUpdate?.maxUnavailable, 'may not be 0 when `maxSurge` is 0')
}

/**
 * How many pods a workload may have at a time. Nine times what a host runs where nothing else is set; a cluster has hosts for
 * more, and each pod is a document in podd's memory, whether it finds room or not.
 */
const maxPods = 1000

function validateReplicas(replicas: number, at: Issues): void {
  at.range(replicas, 0)
  if (replicas > maxPods) at.refused(`more than ${maxPods} pods of a workload on one host`)
}

/** Source: ValidateStatefulSetSpec in pkg/apis/apps/validation, 1.36. */
export function validateStatefulSet({ spec }: StatefulSet, issues: Issues, manifest: JsonObject): void {
  const at = issues.of('spec')
  validateReplicas(spec.replicas, at.of('replicas'))
  at.of('minReadySeconds').range(spec.minReadySeconds, 0)
  at.of('ordinals', 'start').range(spec.ordinals?.start, 0)
  validateSelector(spec.selector, manifest, 'statefulset', at)
  validateTemplate(manifest, at.of('template'))
  const { rollingUpdate } = spec.updateStrategy ?? {}
  validateShare(rollingUpdate?.maxUnavailable, at.of('updateStrategy', 'rollingUpdate', 'maxUnavailable'))
  if (isNothing(rollingUpdate?.maxUnavailable))
    at.of('updateStrategy', 'rollingUpdate', 'maxUnavailable').invalid(
      rollingUpdate?.maxUnavailable,
      'cannot be 0',
    )
  const { whenDeleted, whenScaled } = spec.persistentVolumeClaimRetentionPolicy ?? {}
  const retention = at.of('persistentVolumeClaimRetentionPolicy')
  if (whenDeleted === 'Delete') retention.of('whenDeleted').warn(keepsData)
  if (whenScaled === 'Delete') retention.of('whenScaled').warn(keepsData)
  const claims = at.of('volumeClaimTemplates')
  claims.unique(
    spec.volumeClaimTemplates,
    ({ metadata }) => metadata.name,
    (index) => claims.of(index, 'metadata', 'name'),
  )
  for (const [index, claim] of spec.volumeClaimTemplates.entries())
    validateClaimSpec(claim.spec, claims.of(index, 'spec'))
}

/** Source: ValidateDaemonSetSpec in pkg/apis/apps/validation, 1.36. */
export function validateDaemonSet({ spec }: DaemonSet, issues: Issues, manifest: JsonObject): void {
  const at = issues.of('spec')
  validateSelector(spec.selector, manifest, 'daemonset', at)
  validateTemplate(manifest, at.of('template'))
  at.of('minReadySeconds').range(spec.minReadySeconds, 0)
}

/** Source: ValidateJobSpec in pkg/apis/batch/validation, 1.36. */
export function validateJob({ spec }: Job, issues: Issues, manifest: JsonObject): void {
  validateJobSpec(spec, jsonAt(manifest, 'spec'), issues.of('spec'))
}

function validateJobSpec(spec: JobSpec, manifest: Json | undefined, at: Issues): void {
  const isIndexed = spec.completionMode === 'Indexed'
  for (const field of ['parallelism', 'completions', 'activeDeadlineSeconds', 'backoffLimit'] as const)
    at.of(field).range(spec[field], 0)
  for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes', 'ttlSecondsAfterFinished'] as const)
    at.of(field).range(spec[field], 0)
  if (isIndexed && spec.completions === undefined)
    at.of('completions').required('when completion mode is Indexed')
  if (spec.completions !== undefined && spec.completions > maxCompletions)
    at.of('completions').refused(`more than ${maxCompletions} completions`)
  if (Math.min(spec.parallelism ?? 1, spec.completions ?? Infinity) > maxPods)
    at.of('parallelism').refused(`more than ${maxPods} pods of a workload on one host`)
  if (!isIndexed && spec.backoffLimitPerIndex !== undefined)
    at.of('backoffLimitPerIndex').invalid(spec.backoffLimitPerIndex, 'requires indexed completion mode')
  if (spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined)
    at.of('backoffLimitPerIndex').required('when maxFailedIndexes is specified')
  const template = at.of('template')
  const policy = jsonAt(manifest, 'template', 'spec', 'restartPolicy')
  if (policy === undefined || policy === null || policy === 'Always')
    template.of('spec', 'restartPolicy').required('valid values: "OnFailure", "Never"')
  validateNoDebuggers(jsonAt(manifest, 'template', 'spec'), template)
  validateFailurePolicy(spec, policy, at.of('podFailurePolicy'))
}

/** Every completion is remembered. */
const maxCompletions = 10_000

/** Source: validatePodFailurePolicy in pkg/apis/batch/validation, 1.36. */
function validateFailurePolicy(spec: JobSpec, restartPolicy: Json | undefined, at: Issues): void {
  if (spec.podFailurePolicy === undefined) return
  if (restartPolicy !== 'Never')
    at.invalid(spec.podFailurePolicy, 'only "Never" is supported as the restart policy of the pod template')
  for (const [index, rule] of spec.podFailurePolicy.rules.entries()) {
    const own = at.of('rules', index)
    if (rule.action === 'FailIndex' && spec.backoffLimitPerIndex === undefined)
      own.of('action').invalid(rule.action, 'requires the backoffLimitPerIndex to be set')
    const isGiven = [rule.onExitCodes !== undefined, rule.onPodConditions.length > 0]
    if (isGiven.every((given) => !given))
      own.invalid(rule, 'specifying one of OnExitCodes and OnPodConditions is required')
    if (isGiven.every((given) => given))
      own.invalid(rule, 'specifying both OnExitCodes and OnPodConditions is not supported')
    if (rule.onExitCodes === undefined) continue
    const { operator, values } = rule.onExitCodes
    const codes = own.of('onExitCodes', 'values')
    if (values.length === 0) codes.invalid(values, 'at least one value is required')
    if (operator === 'In' && values.includes(0))
      codes.of(values.indexOf(0)).invalid(0, 'must not be 0 for the In operator')
  }
}

/** Source: ValidateCronJobSpec in pkg/apis/batch/validation, 1.36. */
export function validateCronJob({ metadata, spec }: CronJob, issues: Issues, manifest: JsonObject): void {
  const at = issues.of('spec')
  // Eleven characters follow: `-28123456` and what makes a name unique.
  if (metadata.name.length > 52)
    issues.of('metadata', 'name').invalid(metadata.name, 'must be no more than 52 characters')
  if (spec.schedule === '') at.of('schedule').required()
  else {
    const problem = scheduleProblem(spec.schedule)
    if (problem !== undefined) at.of('schedule').invalid(spec.schedule, problem)
  }
  if (spec.timeZone !== undefined && !isTimeZone(spec.timeZone))
    at.of('timeZone').invalid(spec.timeZone, `unknown time zone ${spec.timeZone}`)
  for (const field of [
    'startingDeadlineSeconds',
    'successfulJobsHistoryLimit',
    'failedJobsHistoryLimit',
  ] as const)
    at.of(field).range(spec[field], 0)
  validateJobSpec(
    spec.jobTemplate.spec,
    jsonAt(manifest, 'spec', 'jobTemplate', 'spec'),
    at.of('jobTemplate', 'spec'),
  )
}

const scheduleNames = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly']
const months = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')
const weekdays = 'sun mon tue wed thu fri sat'.split(' ')
const scheduleFields = [
  { what: 'minute', min: 0, max: 59, names: [] },
  { what: 'hour', min: 0, max: 23, names: [] },
  { what: 'day of the month', min: 1, max: 31, names: [] },
  { what: 'month', min: 1, max: 12, names: months },
  { what: 'day of the week', min: 0, max: 6, names: weekdays },
] as const

/**
 * Why a schedule isn't one that Kubernetes takes: five fields of numbers, names, ranges, steps and lists, or one of the names
 * for them (robfig/cron v3, ParseStandard, as `pkg/apis/batch/validation` uses it, 1.36). Undefined where it is one.
 */
export function scheduleProblem(schedule: string): string | undefined {
  if (schedule.includes('TZ')) return 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'
  if (schedule.startsWith('@every'))
    return 'podd takes no @every: write the minutes or hours, such as "*/5 * * * *"'
  if (schedule.startsWith('@'))
    return scheduleNames.includes(schedule) ? undefined : `unrecognized descriptor: ${schedule}`
  const fields = schedule.trim().split(/\s+/u)
  if (fields.length !== 5) return `expected exactly 5 fields, found ${fields.length}`
  for (const [index, field] of scheduleFields.entries()) {
    const bad = (fields[index] ?? '').split(',').find((part) => parsePart(part, field) === undefined)
    if (bad !== undefined) return `${JSON.stringify(bad)} is no ${field.what} (${field.min} to ${field.max})`
  }
  return undefined
}

type ScheduleField = (typeof scheduleFields)[number]

/** What one part of a field's list names: a value, a range or `*`, each of them or every so many of them. */
interface SchedulePart {
  /** All of the field's values, by `*` or `?`. */
  readonly isAny: boolean
  readonly values: readonly number[]
}

/** Undefined where it names nothing that the field has. A step may be larger than the field: the first value counts then. */
function parsePart(part: string, { min, max, names }: ScheduleField): SchedulePart | undefined {
  const numberOf = (text: string): number => {
    const at = (names as readonly string[]).indexOf(text.toLowerCase())
    return at >= 0 ? at + min : /^\d+$/u.test(text) ? Number(text) : Number.NaN
  }
  const [range = '', step, ...more] = part.split('/')
  const [from = '', to, ...others] = range.split('-')
  const isStar = range === '*' || range === '?'
  const low = isStar ? min : numberOf(from)
  // `5/15` goes from 5 on to the end.
  const high = isStar || (to === undefined && step !== undefined) ? max : numberOf(to ?? from)
  const isStep = step === undefined || (/^\d+$/u.test(step) && Number(step) > 0)
  const isRange = low >= min && high <= max && low <= high
  if (more.length > 0 || others.length > 0 || !isStep || !isRange) return undefined
  const every = Number(step ?? 1)
  const count = Math.floor((high - low) / every) + 1
  return { isAny: isStar && every === 1, values: Array.from({ length: count }, (_, at) => low + at * every) }
}

/**
 * A schedule that has no `scheduleProblem` with its fields as lists of numbers, or `*`: what programs for cron agree on. Where
 * one of the two fields of days is `*`, the other one alone counts; else either does (robfig/cron v3, dayMatches).
 */
export function listTimes(schedule: string): string {
  if (schedule.startsWith('@')) return schedule
  const fields = schedule.trim().split(/\s+/u)
  return scheduleFields
    .map((field, index) => {
      const parts = (fields[index] ?? '').split(',').map((part) => parsePart(part, field))
      if (parts.some((part) => part?.isAny === true)) return '*'
      return [...new Set(parts.flatMap((part) => part?.values ?? []))].join(',')
    })
    .join(' ')
}

function isTimeZone(name: string): boolean {
  // `Local` would mean that of the host, which nobody sees in the manifest.
  if (name === '' || name.toLowerCase() === 'local') return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    // It is not known: that is what is asked.
    return false
  }
}

const keepsData = 'has no effect: podd removes data only when it is told to, by `podd delete pvc`'

type Selector = Infer<typeof labelSelectorSchema>

function validateSelector(selector: Selector, manifest: JsonObject, kind: string, spec: Issues): void {
  const at = spec.of('selector')
  validateLabelSelector(selector, at)
  const labels = textEntries(jsonAt(manifest, 'spec', 'template', 'metadata', 'labels'))
  if (Object.keys(selector.matchLabels).length + selector.matchExpressions.length === 0)
    at.invalid(selector, `empty selector is invalid for ${kind}`)
  else if (!selects(selector, labels))
    spec
      .of('template', 'metadata', 'labels')
      .invalid(labels, '`selector` does not match template `labels`', spec.of('template'))
}

/** Source: LabelSelectorAsSelector in k8s.io/apimachinery/pkg/apis/meta/v1, 1.36. */
export function selects(
  { matchLabels, matchExpressions }: Selector,
  labels: Readonly<Record<string, string>>,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => {
      const value = Object.hasOwn(labels, key) ? labels[key] : undefined
      if (operator === 'Exists') return value !== undefined
      if (operator === 'DoesNotExist') return value === undefined
      if (operator === 'In') return value !== undefined && values.includes(value)
      return value === undefined || !values.includes(value)
    })
  )
}

/** What a pod of a workload that runs on may not say (ValidatePodTemplateSpecForReplicaSet). */
function validateTemplate(manifest: JsonObject, template: Issues): void {
  const spec = jsonAt(manifest, 'spec', 'template', 'spec')
  const policy = jsonAt(spec, 'restartPolicy') ?? 'Always'
  if (policy !== 'Always') template.of('spec', 'restartPolicy').unsupported(policy, ['Always'])
  if ((jsonAt(spec, 'activeDeadlineSeconds') ?? null) !== null)
    template
      .of('spec', 'activeDeadlineSeconds')
      .forbidden('activeDeadlineSeconds in ReplicaSet is not Supported')
  validateNoDebuggers(spec, template)
}

function validateNoDebuggers(spec: Json | undefined, template: Issues): void {
  const debuggers = jsonAt(spec, 'ephemeralContainers')
  if (Array.isArray(debuggers) && debuggers.length > 0)
    template.of('spec', 'ephemeralContainers').forbidden('ephemeral containers not allowed in pod template')
}

/** A number, or a share of the replicas in percent (ValidatePositiveIntOrPercent, IsNotMoreThan100Percent). */
function validateShare(value: number | string | undefined, issues: Issues): void {
  if (value === undefined) return
  if (typeof value === 'number') issues.range(value, 0)
  else if (!/^[0-9]+%$/u.test(value))
    issues.invalid(
      value,
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    )
  else if (Number.parseInt(value, 10) > 100) issues.invalid(value, 'must not be greater than 100%')
}

function isNothing(share: Json | undefined): boolean {
  return share === 0 || (typeof share === 'string' && /^0+%$/u.test(share))
}

/** Where a problem of a template's pod stands in its workload. */
export function pathBelowTemplate(path: readonly string[], [first, ...rest]: FieldPath): FieldPath {
  // The pods are named after the workload.
  const isName = first === 'metadata' && rest[0] === 'name'
  return isName ? ['metadata', 'name'] : first === undefined ? path : [...path, first, ...rest]
}
