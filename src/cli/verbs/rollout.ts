import type { WorkloadObject } from '../../api/cluster-objects.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import { findKind } from '../../api/served-kinds.ts'
import { formatTime, startDeadline } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { listPath, namespaceFlag, readNamespace } from '../arguments/pod-argument.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
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
    throw new UsageError(`podd ${verb} takes ${kinds.join(', ')} only, not ${kind.singular}`, hint)
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

export const rolloutVerb: Verb = {
  usage: 'rollout (status | restart) KIND/NAME [--timeout DURATION]',
  help: `status waits until all pods of a Deployment, StatefulSet or DaemonSet are of its newest template and available; the exit
code is 1 if the time is over before. restart has its pods replaced one after the other, where it was written over the API.
What a file gives has its revisions by file: podd history, podd rollback.`,
  flags: [timeoutFlag, namespaceFlag],
  examples: [
    ['rollout status deploy/web --timeout 5m', 'until all pods are new and ready'],
    ['rollout restart sts/db', 'new pods by the same template'],
  ],
  async run(context) {
    const { args, client, clock, signal } = context
    const [what, ...words] = args.positionals
    if (what === 'undo' || what === 'history')
      throw new UsageError(
        `podd keeps the revisions of files, not of single workloads`,
        what === 'undo' ? 'podd rollback FILE' : 'podd history FILE',
      )
    if (what !== 'status' && what !== 'restart')
      throw new UsageError('rollout what?', 'podd rollout status deploy/NAME')
    const target = readWorkload(words, `rollout ${what}`, rolledKinds)
    const namespace = readNamespace(args)
    if (what === 'status') return await waitForRollout(context, target, namespace)
    const annotations = { 'kubectl.kubernetes.io/restartedAt': formatTime(clock.wallMs()) }
    const patch = { spec: { template: { metadata: { annotations } } } }
    await client.patch(pathOf(target, namespace), patch, signal)
    return { kind: 'text', text: `${fullName(target)} restarted\n` }
  },
}

async function waitForRollout(
  { args, client, clock, signal, notify }: VerbContext,
  target: WorkloadName,
  namespace: string,
): Promise<{ readonly kind: 'text'; readonly text: string }> {
  using late = startDeadline(clock, readTimeout(args, 600_000))
  const { kind, name } = target
  const done = { kind: 'text', text: `${kind.singular} "${name}" successfully rolled out\n` } as const
  let told: string | undefined
  const isDone = (object: WorkloadObject): boolean => {
    const rest = explainRest(object)
    if (rest !== undefined && rest !== told) notify(`Waiting for ${kind.singular} "${name}": ${rest}`)
    told = rest
    return rest === undefined
  }
  const first = await client.get<WorkloadObject>(pathOf(target, namespace), signal)
  if (isDone(first)) return done
  const until = AbortSignal.any([signal, late.signal])
  const tooLate = (): PoddError =>
    new PoddError('WAIT_TIMEOUT', `timed out waiting for ${kind.singular} ${name}: ${told ?? ''}`, {
      hint: `\`podd get pods -n ${namespace}\` shows its pods.`,
    })
  try {
    const list = listPath(kind.resource, namespace, kind.root)
    const since = first.metadata.resourceVersion ?? ''
    for await (const { type, object } of client.changes<WorkloadObject>(list, since, until)) {
      if (object.metadata.name !== name) continue
      if (type === 'DELETED') throw new PoddError('WAIT_FAILED', `${kind.singular} ${name} was deleted`)
      if (isDone(object)) return done
    }
  } catch (error) {
    if (late.signal.aborted && !signal.aborted) throw tooLate()
    throw error
  }
  signal.throwIfAborted()
  throw tooLate()
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
