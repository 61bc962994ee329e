import {
  composeTrouble,
  explainTrouble,
  newestWarning,
  readTellingLine,
  summarizePod,
} from '../../api/pod-summary.ts'
import type { TroubleFact } from '../../api/pod-summary.ts'
import type { EventListObject, EventObject, PodObject } from '../../api/resource.ts'
import { PoddError } from '../../base/errors.ts'
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
    const event = newestWarning(events, uid, fact)
    // A container that has only just started is not ready yet, and nothing has failed.
    if (fact.isUnsure === true && event === undefined) continue
    const isLogged = event === undefined && fact.asks !== undefined && logs < maxLogs
    if (isLogged) logs += 1
    const more = event?.message ?? (isLogged ? await readLastLine(client, pod, fact, signal) : undefined)
    const { status } = summarizePod(pod)
    found.push({ pod: `${namespace}/${name}`, namespace, name, status, why: composeTrouble(pod, fact, more) })
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

/** The telling one of the last lines that a container wrote before it ended; undefined where there is none. */
async function readLastLine(
  client: ApiClient,
  { metadata: { namespace, name } }: PodObject,
  fact: TroubleFact,
  signal: AbortSignal,
): Promise<string | undefined> {
  const read = async (query: Readonly<Record<string, string>>): Promise<Uint8Array> => {
    const path = withQuery(`${podPath(namespace, name)}/log`, query)
    const chunks: Uint8Array[] = []
    for await (const chunk of client.stream(path, signal)) chunks.push(chunk)
    return Buffer.concat(chunks)
  }
  try {
    return await readTellingLine(fact, read)
  } catch (error) {
    signal.throwIfAborted()
    // The log of a container that never ran, or whose log was removed: the status has to do.
    if (error instanceof PoddError) return undefined
    throw error
  }
}
