import { composeTrouble, explainTrouble, newestWarning } from '../api/pod-summary.ts'
import type { TroubleFact } from '../api/pod-summary.ts'
import type { NodeObject } from '../api/cluster-objects.ts'
import type { EventObject, PodObject, ResourceObject } from '../api/resource.ts'
import type { DaemonStatus } from '../api/routes.ts'
import type { SourceObject, UnitObject, UnitState } from '../api/sources.ts'
import type { UsageHistoryReply } from '../api/usage.ts'

/** All that the page shows, but for what has not arrived yet, or what the user may not read. */
export interface PageState {
  readonly pods: readonly PodObject[]
  readonly events: readonly EventObject[]
  readonly node?: NodeObject | undefined
  readonly status?: DaemonStatus | undefined
  readonly sources?: readonly SourceObject[] | undefined
  readonly units?: readonly UnitObject[] | undefined
  readonly usage?: UsageHistoryReply | undefined
  /** The last lines of logs of runs that ended, by `lastLineKey`. */
  readonly lastLines: ReadonlyMap<string, string>
  /** The message of a request that podd refused. */
  readonly refusals: readonly string[]
}

/** The broken ones first, by namespace and name; a pod that replaces another of its name comes after it. */
export function sortPods(
  pods: readonly PodObject[],
  broken: { readonly has: (uid: string) => boolean },
): readonly PodObject[] {
  const key = ({ metadata }: PodObject): string => `${metadata.namespace}/${metadata.name}`
  return pods.toSorted(
    (one, other) =>
      Number(broken.has(other.metadata.uid)) - Number(broken.has(one.metadata.uid)) ||
      compare(key(one), key(other)) ||
      compare(one.metadata.creationTimestamp, other.metadata.creationTimestamp),
  )
}

/** Why a pod is broken. */
export interface Trouble {
  readonly why: string
  /** The last line that the container wrote before it ended. */
  readonly lastLine: string | undefined
}

/** The broken pods among those given, by their UIDs. */
export function findTroubles({
  pods,
  events,
  lastLines,
}: Pick<PageState, 'pods' | 'events' | 'lastLines'>): ReadonlyMap<string, Trouble> {
  const troubles = pods.flatMap((pod): readonly (readonly [string, Trouble])[] => {
    const { uid } = pod.metadata
    const fact = explainTrouble(pod)
    if (fact === undefined) return []
    const event = newestWarning(events, uid, fact)
    // A container that has only just started is not ready yet, and nothing has failed.
    if (fact.isUnsure === true && event === undefined) return []
    const lastLine = lastLines.get(lastLineKey(pod, fact) ?? '')
    return [[uid, { why: composeTrouble(pod, fact, event?.message), lastLine }]]
  })
  return new Map(troubles)
}

/** Names the run of a container whose last line tells more; undefined where no log does. */
export function lastLineKey({ metadata, status }: PodObject, fact: TroubleFact): string | undefined {
  if (fact.asks === undefined || fact.isUnsure === true || fact.container === undefined) return undefined
  const statuses = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
  const run = statuses.find(({ name }) => name === fact.container)
  return `${metadata.uid} ${fact.container} ${run?.restartCount} ${run?.containerID} ${fact.isPrevious}`
}

/** What a user may do about a unit in this state; undefined for nothing. */
const whatToDo: { readonly [State in UnitState]?: (name: string) => string } = {
  RolledBack: (name) =>
    `\`podd history ${name}\` shows the last log lines. Correct it, or try it again: \`podd resume ${name}\`.`,
  Failed: (name) => `\`podd history ${name}\` shows the last log lines. Correct it.`,
  RollbackRequested: (name) => `\`podd resume ${name}\` has what its source gives count again.`,
  Invalid: () => 'Correct it.',
}

/** A unit whose newest revision is not healthy, or not in effect. */
export interface OpenUnit {
  readonly name: string
  readonly state: UnitState
  readonly active: string
  readonly offered: string
  /** Why, and what to do about it. */
  readonly message: string
}

/** The units that are worth a look, those that failed first. */
export function openUnits(units: readonly UnitObject[]): readonly OpenUnit[] {
  const order: readonly UnitState[] = [
    'RolledBack',
    'Failed',
    'Invalid',
    'RollbackRequested',
    'Held',
    'Unread',
    'Progressing',
  ]
  return units
    .filter(({ status: { state } }) => order.includes(state))
    .toSorted((one, other) => order.indexOf(one.status.state) - order.indexOf(other.status.state))
    .map(({ metadata: { name }, status: { state, active, offered, message, progressing } }) => {
      const why = message ?? (progressing.length > 0 ? `waits for ${progressing.join(', ')}` : '')
      const hint = whatToDo[state]?.(name) ?? ''
      const text = [why, hint].filter((part) => part !== '').join(' - ')
      return { name, state, active: String(active), offered: String(offered), message: text || '-' }
    })
}

/** The newest first. */
export function newestEvents(events: readonly EventObject[], most: number): readonly EventObject[] {
  return events.toSorted((one, other) => compare(other.lastTimestamp, one.lastTimestamp)).slice(0, most)
}

function compare(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1
}

/** A line of a watch that lists first: an object, a bookmark or an error. */
export interface WatchLine<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: T
}

const endOfList = 'k8s.io/initial-events-end'

/** The objects of a watch; one that is restarted shows the earlier ones until its list is complete. */
export class WatchedObjects<T extends ResourceObject> {
  #shown: ReadonlyMap<string, T> = new Map()
  #objects = new Map<string, T>()
  #isListed = false

  /** The next lines are the initial list. */
  begin(): void {
    this.#objects = new Map()
    this.#isListed = false
  }

  /** Whether what is shown has changed. */
  take({ type, object }: WatchLine<T>): boolean {
    if (type === 'BOOKMARK') {
      if (this.#isListed || object.metadata.annotations?.[endOfList] !== 'true') return false
      this.#isListed = true
    } else if (type === 'DELETED') this.#objects.delete(object.metadata.uid)
    else if (type !== 'ERROR') this.#objects.set(object.metadata.uid, object)
    if (!this.#isListed) return false
    this.#shown = this.#objects
    return type !== 'ERROR'
  }

  list(): readonly T[] {
    return [...this.#shown.values()]
  }
}

/** The longest line; podd sends shorter ones. */
const maxCharacters = 16 * 1024 * 1024

/** The lines of a stream of UTF-8, in the batches in which they came. Rejects with the stream's error. */
export async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<readonly string[]> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      const text = done ? decoder.decode() : decoder.decode(value, { stream: true })
      const lines = text.split('\n')
      lines[0] = rest + (lines[0] ?? '')
      rest = lines.pop() ?? ''
      if (rest.length > maxCharacters) throw new Error('a line is too long')
      if (lines.length > 0) yield lines
      if (done) break
    }
    if (rest !== '') yield [rest]
  } finally {
    // A stream that failed has thrown already, and needs no cancelling.
    reader.cancel().catch(() => {})
  }
}

/** Where the page shows a pod. */
export function podLink(namespace: string, name: string): string {
  return `#pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`
}

/** Where the API has a pod's log. */
export function logPath(namespace: string, name: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/log`
}

/** The pod that an address of the page shows; undefined for any other place. */
export function readPodLink(hash: string): { readonly namespace: string; readonly name: string } | undefined {
  const { namespace, name } = /^#pod\/(?<namespace>[^/]+)\/(?<name>[^/]+)$/u.exec(hash)?.groups ?? {}
  if (namespace === undefined || name === undefined) return undefined
  try {
    return { namespace: decodeURIComponent(namespace), name: decodeURIComponent(name) }
  } catch {
    // Malformed escapes name no pod.
    return undefined
  }
}
