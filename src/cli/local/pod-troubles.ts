import { explainTrouble, summarizePod } from '../../api/pod-summary.ts'
import type { TroubleFact } from '../../api/pod-summary.ts'
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

/** The logs of so many containers are read. */
const maxLogs = 5

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
    const fact = explainTrouble(pod)
    return fact === undefined ? [] : [{ pod, fact }]
  })
  const ofEvents = broken.filter(({ fact }) => fact.asks === 'event').map(({ pod }) => pod)
  const events = ofEvents.length === 0 ? [] : await readEvents(client, ofEvents, signal)
  let logs = 0
  const found: PodTrouble[] = []
  for (const { pod, fact } of broken) {
    const { namespace, name, uid } = pod.metadata
    const event = fact.asks === 'event' ? newestWarning(events, uid, fact) : undefined
    // A container that has only just started is not ready yet, and nothing has failed.
    if (fact.isUnsure === true && event === undefined) continue
    const isLogged = event === undefined && fact.asks !== undefined && logs < maxLogs
    if (isLogged) logs += 1
    const more = event?.message ?? (isLogged ? await readLastLine(client, pod, fact, signal) : undefined)
    const { status } = summarizePod(pod)
    // The table says the status already.
    const reason = fact.reason === status ? undefined : fact.reason
    const message = more === fact.message ? undefined : fact.message
    const parts = [fact.container, reason, message, more].filter((part) => part !== undefined && part !== '')
    const why = escapeLine(parts.join(': ').trim().replaceAll(/\s+/gu, ' '))
    found.push({ pod: `${namespace}/${name}`, namespace, name, status, why: why === '' ? status : why })
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

/** Of a container that is being created, one that says the same: others are of what was mended meanwhile. */
function newestWarning(
  events: readonly EventObject[],
  uid: string,
  { container, message, isUnsure }: TroubleFact,
): EventObject | undefined {
  const isSaid = (event: EventObject): boolean =>
    isUnsure !== true || message === undefined || event.message.trim() === message.trim()
  return events
    .filter(
      (event) =>
        event.involvedObject.uid === uid &&
        tellingReasons.includes(event.reason) &&
        isSaid(event) &&
        (container === undefined || event.involvedObject.fieldPath?.includes(`{${container}}`) !== false),
    )
    .toSorted((a, b) => Date.parse(a.lastTimestamp) - Date.parse(b.lastTimestamp))
    .at(-1)
}

/** The last line that a container wrote before it ended; undefined where there is none. */
async function readLastLine(
  client: ApiClient,
  { metadata: { namespace, name } }: PodObject,
  { container = '', isPrevious }: TroubleFact,
  signal: AbortSignal,
): Promise<string | undefined> {
  const query = {
    container,
    tailLines: '1',
    limitBytes: '4096',
    ...(isPrevious === true && { previous: 'true' }),
  }
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
