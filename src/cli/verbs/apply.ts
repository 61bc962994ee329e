import { chown, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { AppliedReply, RevisionObject, UnitObject } from '../../api/sources.ts'
import { explainTrouble } from '../../api/pod-summary.ts'
import type { PodListObject, PodObject } from '../../api/resource.ts'
import { writeFileAtomic } from '../../base/atomic-file.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'
import { canonicalJson, sameData } from '../../base/json.ts'
import { maxSourceBytes } from '../../pod/decode/decode-documents.ts'
import { documentKey, isObjectDocument, isPodDocument } from '../../pod/objects/document.ts'
import type { ObjectDocument } from '../../pod/objects/document.ts'
import { dnsSubdomain } from '../../pod/validation/name-rules.ts'
import { digestText } from '../../pod/values/hash.ts'
import { formatError, formatProblem } from '../output/report-format.ts'
import { shorten } from '../output/table.ts'
import { listPath } from '../arguments/pod-argument.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import {
  explainObjects,
  findHeld,
  findManifestDirectory,
  findRefused,
  isUnchanged,
  readTarget,
  targetOf,
  targetProblem,
  appliedKey,
  formatChanges,
  planManifests,
  summarizeChanges,
  refuseHeld,
  tellBlocked,
} from '../local/manifest-target.ts'
import type { ManifestTarget, TargetContent } from '../local/manifest-target.ts'
import {
  fieldValidationFlag,
  filenameFlag,
  formatProblemLine,
  kustomizeFlag,
  readManifests,
} from '../local/read-manifests.ts'
import type { ReadManifest } from '../local/read-manifests.ts'
import { readFilenames } from './diff.ts'
import { describeFailure } from './history.ts'
import { hasCondition, readTimeout, timeoutFlag } from './wait.ts'

export const applyVerb: Verb = {
  usage: 'apply -f FILE|DIRECTORY|URL | -k DIRECTORY [--name NAME [--prune]] [--wait] [--dry-run]',
  help: `Checks manifests, shows what they change (as \`podd diff\` does), and writes each file under its own name into the
manifest directory, whole or not at all. With --wait it returns when what was written is healthy: its pods have been
ready for \`updates.minReady\`, or have succeeded, and its Jobs are complete; and fails as soon as it is known that it isn't, with the reason and the last
lines of the containers' logs. Nothing is written if one of the manifests has an error. To edit a file that is in the manifest directory
already needs no apply. What a kustomization makes (-k) is written as one file, named after its directory; places of problems are
those in what it makes. With --name all manifests of the call are one file, whatever they are called and however many they are, so
that they go forward and back together; with --prune, what the name had before and no longer has ends.`,
  flags: [
    filenameFlag,
    kustomizeFlag,
    fieldValidationFlag,
    { name: 'name', label: 'NAME', doc: 'Writes all manifests together, as NAME.yaml.' },
    { name: 'prune', doc: 'With --name: ends what the name had before and no longer has.' },
    { name: 'dry-run', doc: 'Shows the changes and writes nothing.' },
    { name: 'overwrite', doc: 'Replaces a file that has other objects too, which then end.' },
    { name: 'wait', doc: 'Waits until what was written is healthy, or has failed.' },
    { ...timeoutFlag, doc: 'With --wait: how long; by default 5m.' },
  ],
  examples: [
    ['apply -f web.yaml', 'one file'],
    ['apply -f web.yaml --wait', 'until it is healthy'],
    ['apply -k overlays/plant', 'what a kustomization makes, as plant.yaml'],
    ['apply -f manifests/ --dry-run', 'what a directory would change'],
    [
      'apply -f manifests/ --name shop --prune',
      'a directory as one file, shop.yaml: what was taken out of it ends',
    ],
  ],
  async run(context) {
    const { args, client, signal, notify, stdio } = context
    const names = readFilenames(args, 'apply')
    const timeoutMs = readTimeout(args, 300_000)
    const name = readName(args)
    const { files, documents, problems } = await readManifests(context, names)
    for (const problem of problems) notify(formatProblemLine(problem))
    if (problems.some(({ severity }) => severity === 'error')) {
      notify('nothing was written')
      return { kind: 'done', exitCode: 1 }
    }
    const applied = await client.get<AppliedReply>('/podd/v1/applied', signal)
    const directory = await findManifestDirectory(applied)
    const targets =
      name === undefined
        ? files.map((file) => targetOf(file, directory))
        : [{ manifest: joinManifests(files), path: join(directory, `${name}.yaml`) }]
    const contents = await checkTargets(targets, applied, args.has('overwrite') || args.has('prune'))
    const paths = targets.map(({ path }) => path)
    const [status, units] = await Promise.all([
      client.status(signal),
      client.get<readonly UnitObject[]>('/podd/v1/units', signal),
    ])
    // The same content as one that has failed has no effect; written it is all the same, as a resume goes by what is there.
    const failed = targets.flatMap(({ path, manifest }) =>
      findRefused(units, [manifest], () => (place) => place === path, status),
    )
    const replacesFile = (path: string): boolean => paths.includes(path)
    const plan = planManifests(documents, applied, replacesFile, undefined, failed)
    // The daemon's admission is loaded only where needed.
    const { findBlocked } = await import('../local/admit-manifests.ts')
    const blocked = await findBlocked(context, files)
    const changes = tellBlocked(await explainObjects(context, documents, plan), documents, blocked)
    if (args.has('dry-run')) {
      return { kind: 'text', text: formatChanges(changes), notes: [`${summarizeChanges(changes)} (dry run)`] }
    }
    const refused = changes.find(({ verdict }, at) => verdict === 'refuse' && plan[at]?.verdict !== verdict)
    if (refused !== undefined)
      throw new PoddError('UPDATE_REFUSED', `${refused.object}: ${refused.details.join('; ')}`, {
        hint: 'Nothing was written.',
      })
    // The errors before the write: the daemon may show them until it has read the new files.
    const known = new Set(status.problems.map((problem) => formatProblem(problem)))
    const before = new Map(units.map((unit) => [unit.metadata.name, unit] as const))
    for (const [at, target] of targets.entries()) await write(target, contents[at]?.text)
    const wanted = new Map(
      documents.flatMap((document) =>
        isPodDocument(document) ? [[appliedKey(document, applied), document.manifest] as const] : [],
      ),
    )
    if (!args.has('wait')) {
      const held = findHeld(status, paths, 'written')
      const notes = [summarizeChanges(changes), ...(held === undefined ? [] : [formatError(held)])]
      const exitCode = changes.some(({ verdict }) => verdict === 'refuse') ? 1 : 0
      return { kind: 'text', text: formatChanges(changes), notes, exitCode }
    }
    stdio.stdout.write(formatChanges(changes))
    notify(summarizeChanges(changes))
    const changed = new Set(
      targets.flatMap(({ path, manifest }, at) =>
        contents[at]?.text?.equals(Buffer.from(manifest.text)) === true ? [] : [path],
      ),
    )
    const jobs = documents.flatMap((document) =>
      isObjectDocument(document) ? (awaitedJob(document, applied, changed.size > 0) ?? []) : [],
    )
    for (const { name, hasFailedBefore } of jobs)
      if (hasFailedBefore)
        notify(`job ${name} failed before this apply, and is not run again: its manifest is the same`)
    await waitUntilHealthy(context, wanted, jobs, { paths, changed, known, before }, timeoutMs)
    return { kind: 'text', text: '', notes: [] }
  },
}

/** The name of the one file for all manifests. Throws UsageError. */
function readName(args: VerbContext['args']): string | undefined {
  const name = args.value('name')
  if (name === undefined) {
    if (args.has('prune')) throw new UsageError('--prune needs --name: what that name no longer has ends')
    return undefined
  }
  const [complaint] = dnsSubdomain(name)
  if (complaint !== undefined) throw new UsageError(`--name ${JSON.stringify(name)}: ${complaint}`)
  if (name === 'kustomization') throw new UsageError('--name kustomization: a file of that name is built')
  return name
}

/** As one manifest, whose documents are in the order of the files. Throws PoddError MANIFEST_ELSEWHERE. */
function joinManifests(files: readonly ReadManifest[]): ReadManifest {
  const [first, ...more] = files
  if (first !== undefined && more.length === 0) return { ...first, path: '-' }
  const texts = files.map(({ text }) => Buffer.from(text).toString('utf8').trimEnd())
  const text = Buffer.from(texts.map((each) => `${each}\n`).join('---\n'))
  if (text.byteLength > maxSourceBytes)
    throw new PoddError(
      'MANIFEST_ELSEWHERE',
      `the manifests together are larger than ${maxSourceBytes / 2 ** 20} MiB`,
      {
        hint: 'Give them several names.',
      },
    )
  return { path: '-', text, documents: files.flatMap(({ documents }) => documents) }
}

/** The units of these files, by their paths. */
async function readUnits(
  { client, signal }: VerbContext,
  paths: readonly string[],
): Promise<ReadonlyMap<string, UnitObject>> {
  const units = await client.get<readonly UnitObject[]>('/podd/v1/units', signal)
  return new Map(
    units.flatMap((unit) =>
      paths.includes(unit.metadata.name) ? [[unit.metadata.name, unit] as const] : [],
    ),
  )
}

async function checkTargets(
  targets: readonly ManifestTarget[],
  applied: AppliedReply,
  overwrite: boolean,
): Promise<readonly TargetContent[]> {
  const contents: TargetContent[] = []
  const seen = new Map<string, string>()
  for (const target of targets) {
    const { path, manifest } = target
    const other = seen.get(path)
    if (other !== undefined) {
      const message = `${other} and ${manifest.path} would both be written to ${path}`
      throw new PoddError('MANIFEST_ELSEWHERE', message)
    }
    seen.set(path, manifest.path)
    const content = await readTarget(path, applied)
    const problem = targetProblem(target, content, applied, overwrite)
    if (problem !== undefined) throw problem
    contents.push(content)
  }
  return contents
}

/**
 * A new file is readable only by root, as manifests contain Secrets. A link stays, and its target keeps its mode and
 * owner.
 * @param before the text with which the file was checked
 */
async function write({ path, manifest }: ManifestTarget, before: Buffer | undefined): Promise<void> {
  const text = Buffer.from(manifest.text)
  if (before?.equals(text) === true) return
  if (!(await isUnchanged(path, before))) {
    throw new PoddError('MANIFEST_ELSEWHERE', `${path} was changed by somebody else at the same time`, {
      hint: 'Look at it, and apply again.',
    })
  }
  try {
    const place = before === undefined ? path : await realpath(path)
    const found = before === undefined ? undefined : await stat(place)
    await writeFileAtomic(place, text, found === undefined ? 0o600 : found.mode & 0o777)
    if (found !== undefined) await chown(place, found.uid, found.gid)
  } catch (error) {
    throw new PoddError('WRITE_FAILED', `cannot write ${path}: ${errorMessage(error)}`, { cause: error })
  }
}

/** The interval of checks whether the daemon has read the manifests. */
const lookMs = 200
/** How long the daemon may take to read the written files. */
const readMs = 3000
/** How often progress is told where nobody watches. */
const tellMs = 10_000

interface Written {
  readonly paths: readonly string[]
  /** Those of them with another text than before. */
  readonly changed: ReadonlySet<string>
  /** Earlier errors: they count only once the daemon has had time to read the files. */
  readonly known: ReadonlySet<string>
  /** The units before, by their paths. */
  readonly before: ReadonlyMap<string, UnitObject>
}

interface AwaitedJob {
  /** `Job/namespace/name` */
  readonly key: string
  readonly name: string
  readonly namespace: string
  /** Of its manifest. */
  readonly hash: string
  readonly isSuspended: boolean
  /** The daemon had it with the same manifest before the write: it isn't run again. */
  readonly hasFailedBefore: boolean
}

/**
 * @param applied before the write
 * @param isChange whether anything is written: one that failed is what an apply is about that changes nothing
 */
function awaitedJob(
  document: ObjectDocument,
  applied: AppliedReply,
  isChange: boolean,
): AwaitedJob | undefined {
  const { object } = document
  if (object.kind !== 'Job') return undefined
  const { name, namespace } = object.metadata
  const key = documentKey(document)
  const hash = digestText(canonicalJson(document.manifest))
  const known = applied.objects.find((each) => each.key === key && each.hash === hash)
  const hasFailedBefore = isChange && known?.end?.type === 'Failed'
  return { key, name, namespace, hash, isSuspended: object.spec.suspend, hasFailedBefore }
}

/** @param wanted the applied manifest by the pod's key */
async function waitUntilHealthy(
  context: VerbContext,
  wanted: ReadonlyMap<string, object>,
  jobs: readonly AwaitedJob[],
  { paths, changed, known, before }: Written,
  timeoutMs: number,
): Promise<void> {
  const { client, clock, signal, notify, stdio } = context
  const untilMs = clock.monotonicMs() + timeoutMs
  const readByMs = clock.monotonicMs() + readMs
  const isTerminal = 'isTTY' in stdio.stderr && stdio.stderr.isTTY === true
  let shown = ''
  let shownMs = -tellMs
  const stuck = new StuckPods()
  /** Whether the unit is as the daemon sees it with what was written. */
  const isRead = (path: string, unit: UnitObject | undefined): boolean =>
    !changed.has(path) ||
    unit?.status.offered !== before.get(path)?.status.offered ||
    clock.monotonicMs() > readByMs
  for (;;) {
    const status = await client.status(signal)
    const problem = status.problems.find(
      (each) =>
        each.severity === 'error' &&
        paths.includes(each.place.path) &&
        (clock.monotonicMs() > readByMs || !known.has(formatProblem(each))),
    )
    if (problem !== undefined) {
      const why = formatProblem(problem)
      await showFailure(context, problem.place.path, why)
      throw new PoddError('WAIT_FAILED', why)
    }
    refuseHeld(status, paths, 'written')
    const units = await readUnits(context, paths)
    const verdicts = paths.flatMap((path) => {
      const unit = units.get(path)
      if (!isRead(path, unit)) return wanted.size === 0 ? [`${path}: not read yet`] : []
      return unit === undefined ? [] : openVerdict(unit)
    })
    const failed = paths.find((path) => {
      const unit = units.get(path)
      return unit?.status.state === 'Failed' && isRead(path, unit)
    })
    if (failed !== undefined) {
      const why = offeredOf(units.get(failed))?.failure?.message ?? 'it did not become healthy'
      await showFailure(context, failed, why)
      throw new PoddError('WAIT_FAILED', `${failed}: ${why}`, {
        hint: 'There is no healthy revision that it may go back to: it stays. Correct it, and apply it again.',
      })
    }
    const applied = await client.get<AppliedReply>('/podd/v1/applied', signal)
    const { items: pods } = await client.getList<PodListObject>(listPath('pods', undefined), signal)
    const open = [...wanted].flatMap(([key, manifest]) => {
      const entry = applied.pods.find((each) => each.key === key)
      // A pod that is replaced and its successor are both listed.
      const pod = pods.findLast(({ metadata }) => `${metadata.namespace}/${metadata.name}` === key)
      if (entry === undefined || pod === undefined || !isSame(entry.manifest, manifest))
        return [`${key}: not applied yet`]
      if (pod.metadata.deletionTimestamp !== undefined) return [`${key}: being replaced`]
      if (!entry.isUpToDate) return [`${key}: being updated`]
      stuck.check(key, pod, clock.monotonicMs())
      const { phase, reason, message } = pod.status
      if (phase === 'Failed' && verdicts.length > 0) return [`${key}: has failed`]
      if (phase === 'Failed') {
        const why = reason === undefined ? '' : `: ${reason}: ${message ?? ''}`
        throw new PoddError('WAIT_FAILED', `pod ${key} has failed${why}`)
      }
      return phase === 'Succeeded' || hasCondition(pod, 'Ready', 'True') ? [] : [`${key}: ${stateOf(pod)}`]
    })
    open.push(...openJobs(jobs, applied))
    const left = open.length === 0 ? verdicts : open
    if (left.length === 0) return
    const news = left.join('; ')
    const nowMs = clock.monotonicMs()
    if (news !== shown && (isTerminal || nowMs - shownMs >= tellMs)) {
      notify(news)
      shown = news
      shownMs = nowMs
    }
    if (clock.monotonicMs() >= untilMs) {
      throw new PoddError('WAIT_TIMEOUT', `timed out: ${news}`, {
        hint: 'The manifests are written; podd keeps applying them.',
      })
    }
    await clock.sleep(lookMs, signal)
  }
}

/** How long a pod may wait with one of these reasons: by itself that doesn't change. */
const patienceMs: Readonly<Record<string, number>> = {
  InvalidImageName: 0,
  ErrImageNeverPull: 10_000,
  CreateContainerConfigError: 10_000,
  // After its third try: registries may be away for a moment.
  ErrImagePull: 45_000,
  ImagePullBackOff: 45_000,
}
/** The same of a pod that may not run here now: Blocked, PodSecurity … Another may be about to end. */
const blockedMs = 10_000

/** The pods that are waited for, and since when each waits for what doesn't come by itself. */
class StuckPods {
  readonly #since = new Map<string, number>()

  /** Throws PoddError WAIT_FAILED where the pod waits for too long. */
  check(key: string, pod: PodObject, nowMs: number): void {
    const { reason, message = '', isUnsure = false } = explainTrouble(pod) ?? {}
    const limitMs =
      pod.status.phase === 'Pending' && pod.status.reason !== undefined ? blockedMs : patienceMs[reason ?? '']
    if (reason === undefined || isUnsure || limitMs === undefined) {
      this.#since.delete(key)
      return
    }
    const sinceMs = this.#since.get(key) ?? nowMs
    this.#since.set(key, sinceMs)
    if (nowMs - sinceMs < limitMs) return
    throw new PoddError('WAIT_FAILED', `pod ${key} does not start: ${reason}: ${message}`, {
      hint: 'The manifests are written: it starts by itself once that has changed.',
    })
  }
}

/** What is open until a unit is healthy. Throws PoddError where it won't be. */
function openVerdict({ metadata: { name }, status }: UnitObject): readonly string[] {
  const { state, active, offered, message } = status
  if (state === 'RollbackRequested')
    throw new PoddError('WAIT_FAILED', `${name}: ${message ?? `revision ${active} counts on request`}`, {
      hint: `The manifests are written; \`podd resume ${name}\` has them count.`,
    })
  return state === 'Healthy' && active === offered
    ? []
    : [`${name}: it is not known yet whether revision ${offered} is healthy`]
}

/** Jobs that are not complete: no revision is judged by them. Throws PoddError WAIT_FAILED where one has failed. */
function openJobs(jobs: readonly AwaitedJob[], { objects }: AppliedReply): readonly string[] {
  return jobs.flatMap(({ key, name, namespace, hash, isSuspended, hasFailedBefore }) => {
    const entry = objects.find((each) => each.key === key && each.hash === hash)
    if (entry === undefined) return [`${key}: not applied yet`]
    const { end } = entry
    if (end?.type === 'Failed' && !hasFailedBefore)
      throw new PoddError('WAIT_FAILED', `job ${name} has failed: ${end.reason}: ${end.message}`, {
        hint: `\`podd logs job/${name} -n ${namespace}\` shows what it wrote.`,
      })
    return end !== undefined || isSuspended ? [] : [`${key}: not complete`]
  })
}

function offeredOf(unit: UnitObject | undefined): RevisionObject | undefined {
  const { offered, revisions = [] } = unit?.status ?? {}
  return revisions.find(({ number }) => number === offered)
}

/**
 * How the containers ended of what this file gives, where that failed, with the last lines of their logs.
 * @param why what the error says, which is not said twice
 */
async function showFailure(context: VerbContext, path: string, why: string): Promise<void> {
  const revision = offeredOf((await readUnits(context, [path])).get(path))
  const { failure } = revision ?? {}
  if (revision === undefined || failure === undefined) return
  for (const line of describeFailure(revision).slice(why.includes(failure.message) ? 1 : 0))
    context.notify(line)
}

/** But for the name, which may have got a suffix. */
function isSame(before: object, after: object): boolean {
  return sameData({ ...before, metadata: undefined }, { ...after, metadata: undefined })
}

/** A short reason why a pod isn't ready. */
function stateOf({ status }: PodObject): string {
  const statuses = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
  const waiting = statuses.find(({ state }) => state.waiting !== undefined)?.state.waiting
  const { reason, message } = status
  if (reason !== undefined) return shorten(message === undefined ? reason : `${reason}: ${message}`)
  if (waiting === undefined) return status.phase === 'Running' ? 'not ready' : status.phase
  return waiting.message === undefined
    ? (waiting.reason ?? 'waiting')
    : shorten(`${waiting.reason}: ${waiting.message}`)
}
