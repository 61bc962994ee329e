import type { ServedKind } from '../../api/kinds/served-kind.ts'
import type { ServedResources } from '../../api/kinds/served-resources.ts'
import type { EventObject, PodObject } from '../../api/objects.ts'
import type { ProbeReportObject } from '../../api/probe-reports.ts'
import type { ResourceList, ResourceObject } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import { podKey } from '../../pod/values/ids.ts'
import { listPath, namespaceFlag, podPath, poddPodPath, readNamespace } from '../arguments/namespace.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import { describeObject } from '../output/describe-object.ts'
import { describePod } from '../output/describe-pod.ts'
import { requireKind } from './get.ts'

interface Asked {
  readonly kind: ServedKind
  readonly namespace: string
  readonly name: string
}

export const describeVerb: Verb = {
  usage: 'describe pod|configmap|secret|pvc|event NAME [-n NAMESPACE]',
  help: `Shows one object in detail; of a pod its containers, their states, conditions, volumes and events, of a Secret the
sizes of its values.`,
  flags: [namespaceFlag],
  examples: [
    ['describe pod web', ''],
    ['describe pod web -n shop', 'in another namespace'],
    ['describe secret tls', 'its keys, and how much they hold'],
  ],
  async run(context) {
    const words = context.args.positionals.flatMap((word) => word.split('/'))
    const [word = '', name, extra] = words
    if (name === undefined || extra !== undefined)
      throw new UsageError('describe what?', 'podd describe pod NAME')
    const asked = { kind: requireKind(word), namespace: readNamespace(context.args), name }
    const describer = describers[asked.kind.resource] ?? describeAnything
    return { kind: 'text', text: await describer(context, asked) }
  },
}

type Describer = (context: VerbContext, asked: Asked) => Promise<string>

/** Of the kinds of which there is more to tell than their columns and data. */
const describers: { readonly [Name in keyof ServedResources]?: Describer } = { pods: describeOnePod }

async function describeAnything(
  { client, clock, signal }: VerbContext,
  { kind, namespace, name }: Asked,
): Promise<string> {
  const path = `${listPath(kind.resource, kind.namespaced ? namespace : undefined, kind.tableRoot)}/${encodeURIComponent(name)}`
  return describeObject(kind, await client.get<ResourceObject>(path, signal), clock.wallMs())
}

async function describeOnePod(
  { client, clock, signal }: VerbContext,
  { namespace, name }: Asked,
): Promise<string> {
  const fields = new URLSearchParams({ fieldSelector: `involvedObject.kind=Pod,involvedObject.name=${name}` })
  const [pod, probes, events, status] = await Promise.all([
    client.get<PodObject>(podPath(namespace, name), signal),
    client.get<readonly ProbeReportObject[]>(`${poddPodPath(namespace, name)}/probes`, signal),
    client.get<ResourceList<EventObject>>(`${listPath('events', namespace)}?${fields.toString()}`, signal),
    client.get<DaemonStatus>('/podd/v1/status', signal),
  ])
  const object = podKey(pod.metadata)
  const path = pod.metadata.annotations?.['podd.dev/path']
  return describePod({
    pod,
    probes,
    events: events.items,
    problems: status.problems.filter(
      (problem) => problem.object === object || (problem.object === undefined && problem.place.path === path),
    ),
    nowMs: clock.wallMs(),
  })
}
