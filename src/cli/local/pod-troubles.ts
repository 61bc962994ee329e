import { explainTrouble, summarizePod } from '../../api/pod-summary.ts'
import type { EventListObject, EventObject, PodObject } from '../../api/resource.ts'
import { PoddError } from '../../base/errors.ts'
import { escapeLine } from '../../base/text.ts'
import { listPath, podPath, withQuery } from '../arguments/pod-argument.ts'
import type { ApiClient } from '../client/client.ts'

/** A pod that does not do what it should, and why. */
export interface PodTrouble {
  /** `namespace/name` */
  readonly pod: string
  readonly namespace: string
  readonly name: string
  /** As in the table of pods. */
  readonly status: string
  /** One line. */
  readonly why: string
}

/** For so many pods the newest event and the last line of a log are asked for; of others the status tells. */
const maxAsked = 5

/**
 * The pods that are broken, with what tells most: the reason of their status, a probe's last failure, the last line of the log
 * of a container that has ended. Asks for more than the pods only where one is broken.
 */
export async function gatherTroubles(
  client: ApiClient,
  pods: readonly PodObject[],
  signal: AbortSignal,
): Promise<readonly PodTrouble[]> {
  const broken = pods.flatMap((pod) => {
    const trouble = explainTrouble(pod)
    return trouble === undefined ? [] : [{ pod, trouble }]
  })
  const first = broken.slice(0, maxAsked)
  const events = first.some(({ trouble }) => trouble.asks === 'event')
    ? await readEvents(
        client,
        first.map(({ pod }) => pod),
        signal,
      )
    : []
  const found: PodTrouble[] = []
  for (const { pod, trouble } of broken) {
    const { namespace, name, uid } = pod.metadata
    const isAsked = found.length < maxAsked
    const event = newestWarning(events, uid, trouble.container)
    const line =
      isAsked && trouble.container !== undefined && (trouble.asks === 'log' || event === undefined)
        ? await readLastLine(client, pod, trouble, signal)
        : undefined
    const told = event?.message ?? line
    // A container that has only just started is not ready yet, and nothing has failed.
    if (trouble.isUnready && told === undefined) continue
    const why = told === undefined ? trouble.why : `${trouble.why}: ${told}`
    found.push({
      pod: `${namespace}/${name}`,
      namespace,
      name,
      status: summarizePod(pod).status,
      why: escapeLine(why.trim().replaceAll(/\s+/gu, ' ')),
    })
  }
  return found
}

async function readEvents(
  client: ApiClient,
  pods: readonly PodObject[],
  signal: AbortSignal,
): Promise<readonly EventObject[]> {
  const namespaces = new Set(pods.map(({ metadata }) => metadata.namespace))
  const [only, more] = namespaces
  const path = listPath('events', more === undefined ? only : undefined)
  const query = { fieldSelector: 'type=Warning,involvedObject.kind=Pod' }
  return (await client.get<EventListObject>(withQuery(path, query), signal)).items
}

/** What failed of a probe or a hook: the cause of restarts, and of a pod that isn't ready. */
const tellingReasons: readonly string[] = ['Unhealthy', 'FailedPostStartHook', 'FailedMount', 'ProbeError']

function newestWarning(
  events: readonly EventObject[],
  uid: string,
  container: string | undefined,
): EventObject | undefined {
  return events
    .filter(
      ({ involvedObject, reason }) =>
        involvedObject.uid === uid &&
        tellingReasons.includes(reason) &&
        (container === undefined || involvedObject.fieldPath?.includes(`{${container}}`) !== false),
    )
    .toSorted((a, b) => Date.parse(a.lastTimestamp) - Date.parse(b.lastTimestamp))
    .at(-1)
}

/** The last line that a container wrote before it ended; undefined where there is none. */
async function readLastLine(
  client: ApiClient,
  { metadata: { namespace, name } }: PodObject,
  { container = '', isPrevious, isUnready }: NonNullable<ReturnType<typeof explainTrouble>>,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (isUnready) return undefined
  const query = { container, tailLines: '1', limitBytes: '4096', ...(isPrevious && { previous: 'true' }) }
  try {
    const chunks: Uint8Array[] = []
    for await (const chunk of client.stream(withQuery(`${podPath(namespace, name)}/log`, query), signal))
      chunks.push(chunk)
    return Buffer.concat(chunks).toString().trim() || undefined
  } catch (error) {
    signal.throwIfAborted()
    // The log of a container that never ran, or whose log was removed: the status has to do.
    if (error instanceof PoddError) return undefined
    throw error
  }
}
