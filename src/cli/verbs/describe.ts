import type { EventListObject, PodObject } from '../../api/objects.ts'
import type { ProbeReportObject } from '../../api/probe-reports.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import { podKey } from '../../pod/values/ids.ts'
import { describePod } from '../output/describe-pod.ts'
import { listPath, namespaceFlag, podPath, probesPath, readNamespace } from '../arguments/namespace.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb } from '../arguments/verb.ts'

const podWords: readonly string[] = ['pod', 'pods', 'po']

export const describeVerb: Verb = {
  usage: 'describe pod NAME [-n NAMESPACE]',
  help: 'Shows one pod in detail: its containers, their states, conditions, volumes and events.',
  flags: [namespaceFlag],
  examples: [
    ['describe pod web', ''],
    ['describe pod web -n shop', 'in another namespace'],
  ],
  async run({ args, client, clock, signal }) {
    const words = args.positionals.flatMap((word) => word.split('/'))
    const [kind = '', name, extra] = words
    if (!podWords.includes(kind) || name === undefined || extra !== undefined)
      throw new UsageError('describe what?', 'podd describe pod NAME')
    const namespace = readNamespace(args)
    const [pod, probes, events, status] = await Promise.all([
      client.get<PodObject>(podPath(namespace, name), signal),
      client.get<readonly ProbeReportObject[]>(probesPath(namespace, name), signal),
      client.get<EventListObject>(listPath('events', namespace), signal),
      client.get<DaemonStatus>('/podd/v1/status', signal),
    ])
    const object = podKey(pod.metadata)
    const path = pod.metadata.annotations?.['podd.dev/path']
    return {
      kind: 'text',
      text: describePod({
        pod,
        probes,
        events: events.items.filter(
          ({ involvedObject: { kind, name: about } }) => kind === 'Pod' && about === name,
        ),
        problems: status.problems.filter(
          (problem) =>
            problem.object === object || (problem.object === undefined && problem.place.path === path),
        ),
        nowMs: clock.wallMs(),
      }),
    }
  },
}
