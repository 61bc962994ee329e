import type { WorkloadObject } from '../../api/cluster-objects.ts'
import type { EventObject, PodObject, ResourceList, ResourceObject } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import { eventKind, findKind } from '../../api/served-kinds.ts'
import type { ProbeReportObject } from '../../api/usage.ts'
import { isWorkloadKind } from '../../pod/objects/workload-kinds.ts'
import { podKey } from '../../pod/values/ids.ts'
import { readKindArguments } from '../arguments/kind-argument.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { ParsedArguments } from '../arguments/parse-arguments.ts'
import {
  allNamespacesFlag,
  listPath,
  namedInAll,
  namespaceFlag,
  poddPodPath,
  podPath,
  readNamespace,
  selectorFlag,
  withQuery,
} from '../arguments/pod-argument.ts'
import { noHeadersFlag, outputFlag } from '../arguments/verb.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import { ServerError } from '../client/client.ts'
import { describeObject, describePod, describeWorkload } from '../output/describe.ts'
import { getObjects, noneFound } from './get.ts'

interface Asked {
  readonly kind: ServedKind
  readonly namespace: string
  readonly name: string
}

export const describeVerb: Verb = {
  usage: 'describe KIND[,KIND...] [NAME...] | KIND/NAME... [-l SELECTOR] [-n NAMESPACE | -A]',
  help: `Shows objects in detail; of a pod its containers, their states, conditions, volumes and events, of a workload its
template, its pods and their events, of a Secret the sizes of its values. Without a name all of the kind are shown; where no object bears a single NAME, those are shown whose
names begin with it.`,
  flags: [selectorFlag, namespaceFlag, allNamespacesFlag],
  examples: [
    ['describe pod web', ''],
    ['describe pods -l app=web', 'all with a label'],
    ['describe pod web -n shop', 'in another namespace'],
    ['describe secret tls', 'its keys, and how much they hold'],
  ],
  async run(context) {
    const { args, notify } = context
    const selector = args.value('selector')
    const inAll = args.has('all-namespaces')
    const namespace = readNamespace(args)
    if (args.positionals.length === 0) throw new UsageError('describe what?', 'podd describe pod NAME')
    const kinds = readKindArguments(args.positionals, 'describe')
    const asked = kinds.flatMap(({ kind, names }) => names.map((name) => ({ kind, namespace, name })))
    if (asked.length === 0) {
      const where = inAll ? undefined : namespace
      const found: Asked[] = []
      for (const { kind } of kinds) found.push(...(await listNames(context, kind, where, selector)))
      if (found.length === 0) notify(noneFound(kinds, where))
      return { kind: 'text', text: await describeAll(context, found) }
    }
    if (selector !== undefined) throw new UsageError('name cannot be provided when a selector is specified')
    const inNamespace = asked.find(({ kind }) => kind.namespaced)
    if (inAll && inNamespace !== undefined) throw namedInAll(inNamespace.kind.singular)
    try {
      return { kind: 'text', text: await describeAll(context, asked) }
    } catch (error) {
      const [only, more] = asked
      const isMissing = error instanceof ServerError && error.reason === 'NotFound'
      if (!isMissing || only === undefined || more !== undefined) throw error
      const alike = await listNames(context, only.kind, namespace, selector)
      const begun = alike.filter(({ name }) => name.startsWith(only.name))
      if (begun.length === 0) throw error
      return { kind: 'text', text: await describeAll(context, begun) }
    }
  },
}

async function listNames(
  { client, signal }: VerbContext,
  kind: ServedKind,
  namespace: string | undefined,
  selector: string | undefined,
): Promise<readonly Asked[]> {
  const path = listPath(kind.resource, kind.namespaced ? namespace : undefined, kind.tableRoot)
  const query = selector === undefined ? {} : { labelSelector: selector }
  const { items } = await client.getList<ResourceList>(withQuery(path, query), signal)
  return items.map(({ metadata }) => ({ kind, namespace: metadata.namespace ?? '', name: metadata.name }))
}

/** Two empty lines stand between objects. */
async function describeAll(context: VerbContext, asked: readonly Asked[]): Promise<string> {
  const texts: string[] = []
  for (const each of asked) {
    const isWorkload = isWorkloadKind(each.kind.kind)
    const describe = isWorkload ? describeWorkloadOf : describeAnything
    texts.push(await (each.kind.resource === 'pods' ? describePodOf : describe)(context, each))
  }
  return texts.join('\n\n')
}

async function describeAnything(
  { client, clock, signal }: VerbContext,
  { kind, namespace, name }: Asked,
): Promise<string> {
  const path = `${listPath(kind.resource, kind.namespaced ? namespace : undefined, kind.tableRoot)}/${encodeURIComponent(name)}`
  return describeObject(kind, await client.get<ResourceObject>(path, signal), clock.wallMs())
}

async function describeWorkloadOf(
  { client, clock, signal }: VerbContext,
  { kind, namespace, name }: Asked,
): Promise<string> {
  const path = `${listPath(kind.resource, namespace, kind.root)}/${encodeURIComponent(name)}`
  const jobsPath = listPath('jobs', namespace, '/apis/batch/v1')
  const [workload, jobs, pods, events, status] = await Promise.all([
    client.get<WorkloadObject>(path, signal),
    kind.kind === 'CronJob'
      ? client.getList<ResourceList<WorkloadObject>>(jobsPath, signal)
      : Promise.resolve({ items: [] }),
    client.getList<ResourceList<PodObject>>(listPath('pods', namespace), signal),
    client.getList<ResourceList<EventObject>>(listPath('events', namespace), signal),
    client.status(signal),
  ])
  const { uid, annotations } = workload.metadata
  const ownJobs = jobs.items.filter((job) => isOwnedBy(job, new Set([uid])))
  const owners = new Set([uid, ...ownJobs.map(({ metadata }) => metadata.uid)])
  const ownPods = pods.items.filter((pod) => isOwnedBy(pod, owners))
  const all = new Set([...owners, ...ownPods.map(({ metadata }) => metadata.uid)])
  const text = describeWorkload(
    {
      workload,
      jobs: ownJobs,
      pods: ownPods,
      events: events.items.filter(({ involvedObject }) => all.has(involvedObject.uid)),
      problems: problemsOf(status, podKey({ namespace, name }), annotations?.['podd.dev/path']),
    },
    clock.wallMs(),
  )
  return text
}

function isOwnedBy(
  { metadata: { ownerReferences = [] } }: PodObject | WorkloadObject,
  uids: ReadonlySet<string>,
): boolean {
  return ownerReferences.some(({ uid }) => uids.has(uid))
}

/** Of an object: its own, and those of its file as a whole. */
function problemsOf(
  { problems }: DaemonStatus,
  object: string,
  path: string | undefined,
): DaemonStatus['problems'] {
  return problems.filter(
    (problem) => problem.object === object || (problem.object === undefined && problem.place.path === path),
  )
}

async function describePodOf(
  { client, clock, signal }: VerbContext,
  { namespace, name }: Asked,
): Promise<string> {
  const ofPod = { fieldSelector: `involvedObject.kind=Pod,involvedObject.name=${name}` }
  const [pod, probes, events, status] = await Promise.all([
    client.get<PodObject>(podPath(namespace, name), signal),
    client.get<readonly ProbeReportObject[]>(`${poddPodPath(namespace, name)}/probes`, signal),
    client.get<ResourceList<EventObject>>(withQuery(listPath('events', namespace), ofPod), signal),
    client.status(signal),
  ])
  const path = pod.metadata.annotations?.['podd.dev/path']
  const problems = problemsOf(status, podKey(pod.metadata), path)
  return describePod(pod, probes, events.items, problems, clock.wallMs())
}

export const eventsVerb: Verb = {
  usage: 'events [--for POD | KIND/NAME] [--types Normal,Warning] [-w] [-n NAMESPACE | -A] [-o json|yaml]',
  help: 'Lists the events of pods, Jobs, CronJobs and of the node, the oldest first. podd keeps only the latest events.',
  flags: [
    {
      name: 'for',
      label: 'POD|KIND/NAME',
      doc: 'Only events of this pod, Job (job/NAME), CronJob (cj/NAME) or of the node (node/NAME).',
    },
    {
      name: 'types',
      label: 'TYPES',
      doc: 'Only events of these types, separated by commas: Normal, Warning.',
    },
    { name: 'watch', short: 'w', doc: 'After listing, watch for new events until Ctrl-C.' },
    namespaceFlag,
    allNamespacesFlag,
    outputFlag,
    noHeadersFlag,
  ],
  examples: [
    ['events', 'events in namespace default'],
    ['events --for web -w', 'events of one pod, then new ones'],
    ['events -A --types Warning', 'all warnings'],
  ],
  run(context) {
    const { args } = context
    args.refuseMore('events', 0, `Try --for ${args.positionals[0]}.`)
    const fields = [...aboutFields(args.value('for')), ...typeFields(args)]
    return getObjects(context, { kinds: [{ kind: eventKind, names: [] }], fields })
  },
}

function aboutFields(about: string | undefined): readonly string[] {
  if (about === undefined) return []
  const [, word = '', rest = about] = /^([^/]+)\/(.*)$/u.exec(about) ?? []
  const given = findKind(word)?.kind
  // A word that is no kind is part of a name, which nothing bears.
  const kind = given ?? 'Pod'
  const name = given === undefined ? about : rest
  return [
    `involvedObject.kind=${kind}`,
    `involvedObject.name=${name.replaceAll(/[\\,=]/gu, String.raw`\$&`)}`,
  ]
}

const eventTypes: readonly string[] = ['Normal', 'Warning']

/** What leaves out the types that are not asked for. Throws UsageError. */
function typeFields(args: ParsedArguments): readonly string[] {
  const text = args.value('types') ?? ''
  if (text === '') return []
  const types = text.split(',').map((type) => type.toLowerCase())
  const unknown = text
    .split(',')
    .find((type) => !eventTypes.some((known) => known.toLowerCase() === type.toLowerCase()))
  if (unknown !== undefined) {
    throw new UsageError(
      `there are no events of type ${JSON.stringify(unknown)}`,
      `Valid --types are ${eventTypes.join(' and ')}.`,
    )
  }
  return eventTypes.flatMap((type) => (types.includes(type.toLowerCase()) ? [] : [`type!=${type}`]))
}
