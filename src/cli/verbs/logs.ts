import type { WorkloadObject } from '../../api/cluster-objects.ts'
import { allContainerNames } from '../../api/pod-summary.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import { findKind } from '../../api/served-kinds.ts'
import { entriesOf, objectAt } from '../../base/json.ts'
import { isWorkloadKind } from '../../pod/objects/workload-kinds.ts'
import type { PodListObject, PodObject } from '../../api/resource.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { parseDuration } from '../../config/option-type.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import {
  chooseLoggedContainer,
  containerFlag,
  listPath,
  namespaceFlag,
  podPath,
  readNamespace,
  readPodName,
  requireContainer,
  withQuery,
} from '../arguments/pod-argument.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import type { ApiClient } from '../client/client.ts'
import { ServerError } from '../client/client.ts'
import { followLog, mergeLines } from '../client/follow-log.ts'

export const logsVerb: Verb = {
  usage:
    'logs (POD | KIND/NAME | -l SELECTOR) [-c CONTAINER | --all-containers] [-f] [-p] [--tail LINES] [--since DURATION]',
  help: `Prints the log of a pod's container, from the oldest line that is kept, rotated files included. With -f it
follows the log, across rotations and restarts of the container and of podd, until the container has terminated for good
or Ctrl-C.
The log of a removed pod is printed for as long as removedPodLogMaxAge keeps it.`,
  flags: [
    containerFlag("Of this container; by default the pod's first one."),
    { name: 'all-containers', doc: 'All containers of the pod, init containers first.' },
    { name: 'follow', short: 'f', doc: 'Follow the log.' },
    { name: 'previous', short: 'p', doc: 'Of the instance before the last restart.' },
    {
      name: 'selector',
      short: 'l',
      label: 'SELECTOR',
      doc: 'Of all pods with these labels (app=web,tier!=db).',
    },
    {
      name: 'tail',
      label: 'LINES',
      doc: 'Only this many of the last lines; -1 for all, the default except with -l, where it is 10.',
    },
    { name: 'since', label: 'DURATION', doc: 'Only lines newer than this (5s, 2m, 3h).' },
    { name: 'since-time', label: 'TIME', doc: 'Only lines written at this time or later (RFC 3339).' },
    { name: 'limit-bytes', label: 'BYTES', doc: 'At most this many bytes; 0 for all.' },
    { name: 'timestamps', doc: 'Prefix each line with its time.' },
    { name: 'prefix', doc: 'Prefix each line with its pod and container.' },
    {
      name: 'max-log-requests',
      label: 'COUNT',
      doc: 'Follow at most this many containers at once; by default 5.',
    },
    { name: 'ignore-errors', doc: 'Print the errors of single containers, and continue with the others.' },
    namespaceFlag,
  ],
  examples: [
    ['logs web', 'all that is kept'],
    ['logs web -f --tail 20', 'the last lines, then new ones'],
    ['logs web -p', 'why it restarted'],
    ['logs deploy/web', 'of the first pod of a Deployment'],
    ['logs web --all-containers --prefix', 'everything in one stream'],
  ],
  async run(context) {
    const { args, client, clock, signal, notify } = context
    const [first, second] = args.positionals
    const selector = args.value('selector')
    if (selector !== undefined && first !== undefined)
      throw new UsageError('only a selector (-l) or a POD name is allowed')
    if (selector === undefined && first === undefined)
      throw new UsageError('logs of which pod?', 'podd logs POD')
    args.refuseMore('logs', 2)
    const named = readContainer(args, second)
    const query = readQuery(args)
    const maxFollowed = args.count('max-log-requests', 0) ?? defaultMostFollowed
    const namespace = readNamespace(args)
    const goesOn = args.has('follow') && !query.has('limitBytes')
    let isAway = false
    const onAway = (line: string): void => {
      if (!isAway) notify(line)
      isAway = true
    }
    const stream = (
      { namespace: where, name }: Pick<PodObject['metadata'], 'namespace' | 'name'>,
      container: string | undefined,
    ) => {
      const path = `${podPath(where, name)}/log`
      const asked = new URLSearchParams(query)
      if (container !== undefined) asked.set('container', container)
      if (!goesOn) return client.stream(withQuery(path, asked), signal)
      return followLog(client, clock, path, asked, signal, onAway)
    }
    const owner = first === undefined ? undefined : readWorkload(first)
    const name =
      owner === undefined
        ? first === undefined
          ? ''
          : readPodName(first, 'logs')
        : await findPodOf(context, owner, namespace)
    let pods: readonly PodObject[]
    try {
      if (selector === undefined) pods = [await client.get<PodObject>(podPath(namespace, name), signal)]
      else pods = await listPods(client, namespace, selector, signal)
    } catch (error) {
      if (!(error instanceof ServerError) || error.reason !== 'NotFound' || args.has('all-containers'))
        throw error
      const prefix = args.has('prefix') ? `[pod/${name}${named === undefined ? '' : `/${named}`}] ` : ''
      const kept = readRemoved(stream({ namespace, name }, named), error, name, notify)
      return {
        kind: 'chunks',
        chunks: prefix === '' ? kept : mergeLines([{ prefix, chunks: kept }], { inTurn: true }),
      }
    }
    if (pods.length === 0) notify(`No resources found in ${namespace} namespace.`)
    // Other than what a log's request fails with, this is no error that may be ignored.
    for (const pod of pods) if (named !== undefined) requireContainer(pod, named)
    const targets = pods.flatMap((pod) =>
      (args.has('all-containers')
        ? allContainerNames(pod)
        : [named ?? chooseLoggedContainer(pod, notify)]
      ).map((container) => ({ pod: pod.metadata, container })),
    )
    if (args.has('follow') && targets.length > 1 && targets.length > maxFollowed)
      throw new UsageError(
        `you are attempting to follow ${targets.length} log streams, but maximum allowed concurrency is ${maxFollowed}, use --max-log-requests to increase the limit`,
      )
    const streams = targets.map(({ pod, container }) => {
      const chunks = stream(pod, container)
      return {
        prefix: args.has('prefix') ? `[pod/${pod.name}/${container}] ` : '',
        chunks: args.has('ignore-errors') ? sayErrors(chunks, notify) : chunks,
      }
    })
    const [only] = streams
    if (streams.length === 1 && only?.prefix === '') return { kind: 'chunks', chunks: only.chunks }
    return { kind: 'chunks', chunks: mergeLines(streams, { inTurn: !args.has('follow') }) }
  },
}

interface WorkloadName {
  readonly kind: ServedKind
  readonly name: string
}

/** `deploy/web`: undefined for anything but a kind that pods are made from. */
function readWorkload(word: string): WorkloadName | undefined {
  const [given = '', name = '', more] = word.split('/')
  const kind = name === '' || more !== undefined ? undefined : findKind(given)
  return kind !== undefined && isWorkloadKind(kind.kind) && kind.kind !== 'CronJob'
    ? { kind, name }
    : undefined
}

/** The first pod of a workload, with a note where it has others, as kubectl has it. Throws PoddError. */
async function findPodOf(
  { client, signal, notify }: VerbContext,
  { kind, name }: WorkloadName,
  namespace: string,
): Promise<string> {
  const path = `${listPath(kind.resource, namespace, kind.root)}/${encodeURIComponent(name)}`
  const { spec } = await client.get<WorkloadObject>(path, signal)
  const labels = objectAt(objectAt(spec, 'selector') ?? {}, 'matchLabels')
  const labelSelector =
    kind.kind === 'Job' ? `batch.kubernetes.io/job-name=${name}` : entriesOf(labels, '=').join(',')
  const pods = await listPods(client, namespace, labelSelector, signal)
  const [first] = pods
  if (first === undefined)
    throw new PoddError('API_NotFound', `${kind.singular} ${name} has no pods`, {
      hint: `podd get ${kind.resource} ${name} shows how it is.`,
    })
  if (pods.length > 1) notify(`Found ${pods.length} pods, using pod/${first.metadata.name}`)
  return first.metadata.name
}

async function listPods(
  client: ApiClient,
  namespace: string,
  labelSelector: string,
  signal: AbortSignal,
): Promise<readonly PodObject[]> {
  const path = withQuery(listPath('pods', namespace), { labelSelector })
  return (await client.getList<PodListObject>(path, signal)).items
}

/** The kept log of a removed pod, with a note; throws the original error where none is kept. */
async function* readRemoved(
  chunks: AsyncIterable<Uint8Array>,
  error: ServerError,
  name: string,
  notify: (line: string) => void,
): AsyncGenerator<Uint8Array, void> {
  let hasBegun = false
  const begin = (): void => {
    if (!hasBegun) notify(`Pod ${JSON.stringify(name)} was removed; its log was kept.`)
    hasBegun = true
  }
  try {
    for await (const chunk of chunks) {
      begin()
      yield chunk
    }
  } catch (failure) {
    throw !hasBegun && failure instanceof ServerError && failure.reason === 'NotFound' ? error : failure
  }
  begin()
}

/** Both as in kubectl. */
const defaultMostFollowed = 5
const selectedTail = 10

/** The given container, if any; the messages are kubectl's (`kubectl/pkg/cmd/logs/logs.go` Validate, 1.36). */
function readContainer(args: ParsedArguments, inline: string | undefined): string | undefined {
  const flag = args.value('container')
  if (flag !== undefined && inline !== undefined)
    throw new UsageError('only one of -c or an inline [CONTAINER] arg is allowed')
  const named = flag ?? inline
  if (args.has('all-containers') && named !== undefined)
    throw new UsageError(`--all-containers=true should not be specified with container name ${named}`)
  return named
}

/** Ends the stream where it fails, with a note. */
async function* sayErrors(
  chunks: AsyncIterable<Uint8Array>,
  notify: (line: string) => void,
): AsyncGenerator<Uint8Array, void> {
  try {
    yield* chunks
  } catch (error) {
    notify(`error: ${errorMessage(error)}`)
  }
}

function readQuery(args: ParsedArguments): URLSearchParams {
  const query = new URLSearchParams()
  for (const name of ['follow', 'previous', 'timestamps']) if (args.has(name)) query.set(name, 'true')
  const tail = readCount(args, 'tail', -1, '--tail must be greater than or equal to -1')
  if (tail !== undefined && tail >= 0) query.set('tailLines', String(tail))
  else if (tail === undefined && args.has('selector')) query.set('tailLines', String(selectedTail))
  const limitBytes = readCount(args, 'limit-bytes', 0, '--limit-bytes must be greater than 0')
  if (limitBytes !== undefined && limitBytes > 0) query.set('limitBytes', String(limitBytes))
  const since = args.value('since')
  const sinceTime = args.value('since-time')
  if (since !== undefined && sinceTime !== undefined)
    throw new UsageError('at most one of `sinceTime` or `sinceSeconds` may be specified')
  const seconds = since === undefined ? 0 : sinceSeconds(since)
  if (seconds > 0) query.set('sinceSeconds', String(seconds))
  if (sinceTime !== undefined) query.set('sinceTime', sinceTime)
  return query
}

/** Throws UsageError: for a number below `least`, with kubectl's words. */
function readCount(
  args: ParsedArguments,
  name: string,
  least: number,
  tooLittle: string,
): number | undefined {
  const text = args.value(name) ?? ''
  if (/^-\d{1,15}$/u.test(text) && Number(text) < least) throw new UsageError(tooLittle)
  return args.count(name, least)
}

function sinceSeconds(text: string): number {
  let durationMs: number
  try {
    durationMs = parseDuration(text)
  } catch {
    // parseDuration throws for malformed text alone.
    throw new UsageError('--since must be a duration such as 30s, 5m or 2h')
  }
  if (durationMs < 0) throw new UsageError('--since must be greater than 0')
  return Math.ceil(durationMs / 1000)
}
