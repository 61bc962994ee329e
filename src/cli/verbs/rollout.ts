import { lstat, stat } from 'node:fs/promises'
import type { WorkloadObject, WorkloadRevisionObject } from '../../api/cluster-objects.ts'
import type { ResourceList } from '../../api/resource.ts'
import { formatAgeOf } from '../../api/served-kind.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import { findKind } from '../../api/served-kinds.ts'
import type { RollbackReply, UnitObject } from '../../api/sources.ts'
import { formatTime, startDeadline } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { canonicalJson, objectAt, objectsAt, sameData, textAt } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { listPath, namespaceFlag, readNamespace, withQuery } from '../arguments/pod-argument.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import { outputFlag, readOutputFormat } from '../arguments/verb.ts'
import type { Verb, VerbContext, VerbResult } from '../arguments/verb.ts'
import { formatYaml } from '../output/format-yaml.ts'
import { titled } from '../output/print.ts'
import { readTimeout, timeoutFlag } from './wait.ts'

interface WorkloadName {
  readonly kind: ServedKind
  readonly name: string
}

const rolledKinds: readonly string[] = ['Deployment', 'StatefulSet', 'DaemonSet']

/** `deploy/web` or `deploy web`. Throws UsageError. */
function readWorkload(words: readonly string[], verb: string, kinds: readonly string[]): WorkloadName {
  const [given = '', name, ...more] = words.flatMap((word) => word.split('/'))
  const kind = findKind(given)
  const hint = `podd ${verb} deploy/NAME`
  if (kind === undefined || name === undefined || name === '' || more.length > 0)
    throw new UsageError(`${verb} of what?`, hint)
  if (!kinds.includes(kind.kind))
    throw new UsageError(
      `podd ${verb} takes ${kinds.join(', ')} only, not ${kind.singular}`,
      kind.resource === 'pods' ? '`podd history` shows the revisions of files and URLs of pods.' : hint,
    )
  return { kind, name }
}

function pathOf({ kind, name }: WorkloadName, namespace: string): string {
  return `${listPath(kind.resource, namespace, kind.root)}/${encodeURIComponent(name)}`
}

function fullName({ kind, name }: WorkloadName): string {
  return `${kind.singular}.${kind.apiVersion.split('/')[0] ?? ''}/${name}`
}

export const scaleVerb: Verb = {
  usage: 'scale KIND/NAME --replicas COUNT',
  help: `Changes how many pods a Deployment or StatefulSet has that was written over the API. One that a file gives is changed
there.`,
  flags: [{ name: 'replicas', label: 'COUNT', doc: 'How many pods it shall have.' }, namespaceFlag],
  examples: [['scale deploy/web --replicas 3', 'three pods']],
  async run({ args, client, signal }) {
    const target = readWorkload(args.positionals, 'scale', ['Deployment', 'StatefulSet'])
    const replicas = args.count('replicas', 0)
    if (replicas === undefined)
      throw new UsageError('scale to how many?', 'podd scale deploy/NAME --replicas 2')
    await client.patch(pathOf(target, readNamespace(args)), { spec: { replicas } }, signal)
    return { kind: 'text', text: `${fullName(target)} scaled\n` }
  },
}

const actions = ['status', 'restart', 'history', 'undo', 'pause', 'resume'] as const

export const rolloutVerb: Verb = {
  usage: 'rollout (status | restart | history | undo | pause | resume) KIND/NAME [--to-revision NUMBER]',
  help: `status waits until all pods of a Deployment, StatefulSet or DaemonSet are of its newest template and available; the exit
code is 1 if the time is over before, or once its newest template has failed. history lists the templates that are kept of it, and undo goes back to the one before,
or to the one that --to-revision names: of a workload that was written over the API by writing that template again, of one
that a file or a URL gives as podd rollback does, until its source gives something new. restart has the pods replaced one
after the other, pause and resume stop and continue that for a Deployment; these change what was written over the API.`,
  flags: [
    {
      name: 'to-revision',
      label: 'NUMBER',
      doc: 'undo: go back to this one of `podd rollout history`.',
    },
    { name: 'revision', label: 'NUMBER', doc: 'history: show the template of this one.' },
    timeoutFlag,
    namespaceFlag,
    outputFlag,
  ],
  examples: [
    ['rollout status deploy/web --timeout 5m', 'until all pods are new and ready'],
    ['rollout restart sts/db', 'new pods by the same template'],
    ['rollout history deploy/web', 'the templates that are kept'],
    ['rollout undo deploy/web', 'the template before'],
  ],
  async run(context): Promise<VerbResult> {
    const { args, client, clock, signal } = context
    const [word, ...words] = args.positionals
    const what = actions.find((action) => action === word)
    if (what === undefined) throw new UsageError('rollout what?', 'podd rollout status deploy/NAME')
    const kinds = what === 'pause' || what === 'resume' ? ['Deployment'] : rolledKinds
    const target = readWorkload(words, `rollout ${what}`, kinds)
    const namespace = readNamespace(args)
    if (what === 'status') return await waitForRollout(context, target, namespace)
    if (what === 'history') return await listHistory(context, target, namespace)
    if (what === 'undo') return await undo(context, target, namespace)
    const annotations = { 'kubectl.kubernetes.io/restartedAt': formatTime(clock.wallMs()) }
    const spec =
      what === 'restart' ? { template: { metadata: { annotations } } } : { paused: what === 'pause' || null }
    await client.patch(pathOf(target, namespace), { spec }, signal)
    const done = { restart: 'restarted', pause: 'paused', resume: 'resumed' }[what]
    return { kind: 'text', text: `${fullName(target)} ${done}\n` }
  },
}

/** A template that is kept of a workload. */
interface TemplateRevision {
  readonly number: number
  readonly template: JsonObject
  readonly object: WorkloadRevisionObject
}

/** The number that --revision or --to-revision has. Throws UsageError. */
function readRevision(args: ParsedArguments, flag: string): number | undefined {
  const text = args.value(flag)
  if (text === undefined || text === '0') return undefined
  if (!/^[1-9]\d{0,8}$/u.test(text))
    throw new UsageError(`--${flag} must be the number of a revision, not ${JSON.stringify(text)}`)
  return Number(text)
}

/** Of a workload, oldest first. */
async function readHistory(
  { client, signal }: VerbContext,
  { kind }: WorkloadName,
  { metadata }: WorkloadObject,
): Promise<readonly TemplateRevision[]> {
  const resource = kind.kind === 'Deployment' ? 'replicasets' : 'controllerrevisions'
  const path = listPath(resource, metadata.namespace, kind.root)
  const { items } = await client.getList<ResourceList<WorkloadRevisionObject>>(path, signal)
  return items
    .filter(({ metadata: { ownerReferences } }) => ownerReferences.some(({ uid }) => uid === metadata.uid))
    .map((object) => {
      const annotation = object.metadata.annotations?.['deployment.kubernetes.io/revision']
      // The kinds of items are left out of lists.
      const number = 'revision' in object ? object.revision : Number(annotation)
      const spec = 'data' in object ? objectAt(object.data, 'spec') : objectAt(object, 'spec')
      const { $patch: _patch, ...template } = objectAt(spec, 'template') ?? {}
      return { number, template, object }
    })
    .toSorted((a, b) => a.number - b.number)
}

async function listHistory(
  context: VerbContext,
  target: WorkloadName,
  namespace: string,
): Promise<VerbResult> {
  const { args, client, clock, signal } = context
  const format = readOutputFormat(args)
  const workload = await client.get<WorkloadObject>(pathOf(target, namespace), signal)
  const history = await readHistory(context, target, workload)
  const number = readRevision(args, 'revision')
  if (number !== undefined) {
    const { template } = requireRevision(history, number, target)
    return { kind: 'text', text: formatYaml(template) }
  }
  const current = canonicalJson(workload.spec['template'] ?? null)
  return {
    kind: 'listing',
    listings: [
      {
        columns: titled(['REVISION', 'AGE', 'NOW', 'IMAGES', 'CHANGE-CAUSE']),
        rows: history.map(({ number: each, template, object }) => [
          String(each),
          formatAgeOf(object.metadata.creationTimestamp, clock.wallMs()),
          canonicalJson(template) === current ? 'wanted' : '<none>',
          objectsAt(objectAt(template, 'spec'), 'containers')
            .flatMap((container) => textAt(container, 'image') ?? [])
            .join(','),
          object.metadata.annotations?.['kubernetes.io/change-cause'] ?? '<none>',
        ]),
        objects: history.map(({ object }) => Object.assign({}, object, { apiVersion: 'apps/v1' })),
        listKind: 'List',
      },
    ],
    format,
    notes: [],
  }
}

function requireRevision(
  history: readonly TemplateRevision[],
  number: number,
  target: WorkloadName,
): TemplateRevision {
  const found = history.find((each) => each.number === number)
  if (found !== undefined) return found
  const kept = history.map((each) => each.number).join(', ')
  throw new PoddError('UPDATE_REFUSED', `revision ${number} of ${fullName(target)} is not kept`, {
    hint: kept === '' ? 'None is.' : `There are ${kept}.`,
  })
}

async function undo(context: VerbContext, target: WorkloadName, namespace: string): Promise<VerbResult> {
  const { args, client, signal } = context
  const path = pathOf(target, namespace)
  const to = readRevision(args, 'to-revision')
  const workload = await client.get<WorkloadObject>(path, signal)
  const unit = unitOf(workload)
  if (unit !== undefined) {
    const query = { unit, ...(to !== undefined && { to: String(to) }) }
    const reply = await client.post<RollbackReply>(withQuery('/podd/v1/units/rollback', query), signal)
    const text = `revision ${reply.active} of ${reply.unit} counts until its source gives something new, or \`podd resume ${reply.unit}\`\n`
    return { kind: 'text', text }
  }
  const history = await readHistory(context, target, workload)
  const current = canonicalJson(workload.spec['template'] ?? null)
  const wanted =
    to === undefined
      ? history.findLast(({ template }) => canonicalJson(template) !== current)
      : requireRevision(history, to, target)
  if (wanted === undefined)
    throw new PoddError('UPDATE_REFUSED', `no earlier template of ${fullName(target)} is kept`, {
      hint: `\`podd rollout history ${target.kind.singular}/${target.name}\` lists those that are.`,
    })
  if (canonicalJson(wanted.template) === current)
    return {
      kind: 'text',
      text: `${fullName(target)} skipped rollback (current template already matches revision ${wanted.number})\n`,
    }
  if (workload.spec['paused'] === true)
    throw new PoddError('UPDATE_REFUSED', `${fullName(target)} is paused, and would not go back`, {
      hint: `First \`podd rollout resume ${target.kind.singular}/${target.name}\`.`,
    })
  await client.patch(path, { spec: { template: { ...wanted.template, $patch: 'replace' } } }, signal)
  return { kind: 'text', text: `${fullName(target)} rolled back\n` }
}

export const createVerb: Verb = {
  usage: 'create job NAME --from cronjob/CRONJOB [-n NAMESPACE]',
  help: `Starts a Job of a CronJob at once, whatever its schedule, also of one that a file gives. It stands for itself, as one that was
written over the API: \`podd get jobs\` shows it until it is deleted there.`,
  flags: [
    { name: 'from', label: 'cronjob/CRONJOB', doc: 'The CronJob whose Job it is to be.' },
    { name: 'filename', short: 'f', label: 'FILE', doc: 'Not taken: `podd apply FILE` is for manifests.' },
    namespaceFlag,
  ],
  examples: [['create job backup-now --from cronjob/backup', 'a backup out of turn']],
  async run({ args, client, signal }) {
    const usage = 'podd create job NAME --from cronjob/CRONJOB'
    const hint = `${usage}; anything else is written into a manifest: podd apply FILE`
    const [what, name, ...more] = args.positionals
    if (args.value('filename') !== undefined)
      throw new UsageError(
        'podd creates nothing from files',
        '`podd apply FILE` writes manifests into the manifest directory; `kubectl create -f FILE`, over the API.',
      )
    if (findKind(what ?? '')?.kind !== 'Job') throw new UsageError('podd create takes jobs only', hint)
    if (name === undefined || more.length > 0) throw new UsageError('create which job?', usage)
    const from = args.value('from') ?? ''
    const [word = '', cronJob = '', ...others] = from.split('/')
    const kind = findKind(word)
    if (kind?.kind !== 'CronJob' || cronJob === '' || others.length > 0)
      throw new UsageError(from === '' ? 'create a job from what?' : `${from} is no CronJob`, usage)
    const namespace = readNamespace(args)
    const path = pathOf({ kind, name: cronJob }, namespace)
    const { metadata, spec } = await client.get<WorkloadObject>(path, signal)
    const template = objectAt(spec, 'jobTemplate')
    const given = objectAt(template, 'metadata')
    const owner = {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      name: cronJob,
      uid: metadata.uid,
      controller: true,
    }
    // As kubectl has it (`cmd/create/create_job.go`, createJobFromCronJob, 1.36).
    const job = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: {
        name,
        namespace,
        labels: objectAt(given, 'labels') ?? {},
        annotations: { ...objectAt(given, 'annotations'), 'cronjob.kubernetes.io/instantiate': 'manual' },
        ownerReferences: [owner],
      },
      spec: objectAt(template, 'spec') ?? {},
    }
    await client.post(listPath('jobs', namespace, '/apis/batch/v1'), signal, job)
    return { kind: 'text', text: `job.batch/${name} created\n` }
  },
}

async function waitForRollout(
  context: VerbContext,
  target: WorkloadName,
  namespace: string,
): Promise<{ readonly kind: 'text'; readonly text: string }> {
  const { args, client, clock, signal, notify } = context
  using late = startDeadline(clock, readTimeout(args, 600_000))
  const { kind, name } = target
  const done = { kind: 'text', text: `${kind.singular} "${name}" successfully rolled out\n` } as const
  let told: string | undefined
  const isDone = (object: WorkloadObject): boolean => {
    const rest = explainRest(object)
    const failure = rest === undefined ? undefined : failureOf(object)
    if (failure !== undefined)
      throw new PoddError(
        'WAIT_FAILED',
        `${kind.singular} "${name}" exceeded its progress deadline: ${failure}`,
        {
          hint: '`podd history` names its unit, and `podd history UNIT` has the last log lines.',
        },
      )
    if (rest !== undefined && rest !== told) notify(`Waiting for ${kind.singular} "${name}": ${rest}`)
    told = rest
    return rest === undefined
  }
  const first = await client.get<WorkloadObject>(pathOf(target, namespace), signal)
  if (objectAt(first.spec, 'updateStrategy')?.['type'] === 'OnDelete')
    throw new PoddError('WAIT_FAILED', `${kind.singular} ${name} has the updateStrategy OnDelete`, {
      hint: 'Each pod is replaced when it is deleted: podd delete pod NAME.',
    })
  await untilRead(context, first, pathOf(target, namespace))
  let latest = await client.get<WorkloadObject>(pathOf(target, namespace), signal)
  /** What is decided about a revision changes nothing in a StatefulSet or DaemonSet, nor in what runs after a rollback. */
  const check = async (): Promise<void> => {
    const units = await client.get<readonly UnitObject[]>('/podd/v1/units', signal)
    refuseFailed(units, latest, target)
  }
  await check()
  if (isDone(latest)) return done
  const over = new AbortController()
  const until = AbortSignal.any([signal, late.signal, over.signal])
  const tooLate = (): PoddError =>
    new PoddError('WAIT_TIMEOUT', `timed out waiting for ${kind.singular} ${name}: ${told ?? ''}`, {
      hint: `\`podd get pods -n ${namespace}\` shows its pods.`,
    })
  const watch = async (): Promise<typeof done> => {
    const list = listPath(kind.resource, namespace, kind.root)
    const since = latest.metadata.resourceVersion ?? ''
    for await (const { type, object } of client.changes<WorkloadObject>(list, since, until)) {
      if (object.metadata.name !== name) continue
      if (type === 'DELETED') throw new PoddError('WAIT_FAILED', `${kind.singular} ${name} was deleted`)
      latest = object
      await check()
      if (isDone(object)) return done
    }
    signal.throwIfAborted()
    throw tooLate()
  }
  const checkAtTimes = async (): Promise<never> => {
    for (;;) {
      await clock.sleep(checkMs, until)
      await check()
    }
  }
  try {
    return await Promise.race([watch(), checkAtTimes()])
  } catch (error) {
    if (late.signal.aborted && !signal.aborted) throw tooLate()
    throw error
  } finally {
    over.abort()
  }
}

/** How often it is checked whether the newest revision has failed. */
const checkMs = 2000
/** How long the daemon may take to read a file that was written just now, and how often it is checked meanwhile. */
const readMs = 3000
const pollMs = 200

/** Until the daemon has read the workload's file, where that was written just now: what it shows may be of the file before. */
async function untilRead(
  { client, clock, signal }: VerbContext,
  { metadata: { annotations = {} }, spec }: WorkloadObject,
  shownAt: string,
): Promise<void> {
  const { 'podd.dev/source': source = '', 'podd.dev/path': path } = annotations
  if (!source.startsWith('file') || path === undefined) return
  const nowMs = clock.wallMs()
  // The time of the change of the inode: that of the content may be an earlier one's (`cp -p`). Both of a link and its target.
  const times = await Promise.all([lstat(path), stat(path)]).catch(() => [])
  const leftMs = Math.max(0, ...times.map(({ ctimeMs }) => ctimeMs)) + readMs - nowMs
  if (leftMs <= 0) return
  const untilMs = clock.monotonicMs() + Math.min(leftMs, readMs)
  const offered = async (): Promise<number | undefined> => {
    const units = await client.get<readonly UnitObject[]>('/podd/v1/units', signal)
    return units.find(({ metadata }) => metadata.name === path)?.status.offered
  }
  const before = await offered()
  // A revision is offered before its workloads are shown; this one may be the same in it.
  const isRead = async (): Promise<boolean> =>
    (await offered()) !== before && !sameData((await client.get<WorkloadObject>(shownAt, signal)).spec, spec)
  while (clock.monotonicMs() < untilMs && !(await isRead())) await clock.sleep(pollMs, signal)
}

/** The file or URL that gives it; undefined of what was written over the API. */
function unitOf({ metadata: { annotations = {} } }: WorkloadObject): string | undefined {
  const { 'podd.dev/source': source = 'api', 'podd.dev/path': path } = annotations
  return source === 'api' ? undefined : source.startsWith('http') ? source : path
}

/**
 * Throws PoddError WAIT_FAILED where the newest revision of its unit has failed, with this workload: the others of its file
 * may be all right. Of one that was rolled back, the workload is that of an earlier revision, whose pods may all be there.
 */
function refuseFailed(
  units: readonly UnitObject[],
  workload: WorkloadObject,
  { kind, name: workloadName }: WorkloadName,
): void {
  const key = `${workload.kind}/${workload.metadata.namespace}/${workload.metadata.name}`
  const name = unitOf(workload) ?? `api:${key}`
  const unit = units.find(({ metadata }) => metadata.name === name)
  if (unit === undefined) return
  const { state, active, revisions, message = 'it did not become healthy' } = unit.status
  if (state !== 'Failed' && state !== 'RolledBack') return
  const workloads = revisions.find(({ number }) => number === active)?.failure?.workloads
  const isOwn = workloads === undefined ? explainRest(workload) !== undefined : Object.hasOwn(workloads, key)
  if (state === 'Failed' && !isOwn) return
  const why = state === 'Failed' ? (workloads?.[key] ?? message) : message
  throw new PoddError('WAIT_FAILED', `the rollout of ${kind.singular} "${workloadName}" has failed: ${why}`, {
    hint: `\`podd history ${name}\` shows how its containers ended.`,
  })
}

/** Why a Deployment's rollout is not waited for any longer; undefined where it is. */
function failureOf({ status }: WorkloadObject): string | undefined {
  const failed = objectsAt(status, 'conditions').find(
    ({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded',
  )
  return failed && textAt(failed, 'message')
}

/** What a rollout still waits for; undefined where it is done (kubectl `polymorphichelpers/rollout_status.go`, 1.36). */
function explainRest({ kind, spec, status }: WorkloadObject): string | undefined {
  const count = (from: WorkloadObject['status'], key: string): number => {
    const value = from[key]
    return typeof value === 'number' ? value : 0
  }
  const isDaemonSet = kind === 'DaemonSet'
  const wanted = isDaemonSet ? count(status, 'desiredNumberScheduled') : count(spec, 'replicas')
  const updated = count(status, isDaemonSet ? 'updatedNumberScheduled' : 'updatedReplicas')
  const available = count(status, isDaemonSet ? 'numberAvailable' : 'availableReplicas')
  const there = count(status, isDaemonSet ? 'currentNumberScheduled' : 'replicas')
  if (updated < wanted) return `${updated} of ${wanted} pods are new`
  if (there > wanted) return `${there - wanted} pods are to end`
  if (available < wanted) return `${available} of ${wanted} new pods are available`
  return undefined
}
