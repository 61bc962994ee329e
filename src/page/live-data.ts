import { explainTrouble, readTellingLine } from '../api/pod-summary.ts'
import type { TroubleFact } from '../api/pod-summary.ts'
import type { NodeObject } from '../api/cluster-objects.ts'
import type { EventObject, PodObject, ResourceList, ResourceObject } from '../api/resource.ts'
import type { DaemonStatus } from '../api/routes.ts'
import type { SourceObject, UnitObject } from '../api/sources.ts'
import type { UsageHistoryReply } from '../api/usage.ts'
import { Refusal } from './api-client.ts'
import type { ApiClient } from './api-client.ts'
import { lastLineKey, logPath, readLines, WatchedObjects } from './page-state.ts'
import type { PageState, WatchLine } from './page-state.ts'

/** How often data without a watch is polled. */
const askEveryMs = 10_000
const longestPauseMs = 10_000
/** The last lines of the logs of so many pods are read. */
const maxLogs = 20

interface Viewer {
  readonly onChange: () => void
  /** Undefined: podd answers. */
  readonly onTrouble: (message: string | undefined) => void
  readonly onUnauthorized: () => void
}

/** The current data of the page: watched where the API has watches, polled elsewhere. */
export class LiveData {
  readonly #client: ApiClient
  readonly #viewer: Viewer
  readonly #pods = new WatchedObjects<PodObject>()
  readonly #events = new WatchedObjects<EventObject>()
  #lastLines: ReadonlyMap<string, string> = new Map()
  #isReadingLogs = false
  readonly #refusals = new Map<string, string>()
  #asked: Pick<PageState, 'node' | 'status' | 'sources' | 'units' | 'usage'> = {}
  #running: AbortController | undefined

  constructor(client: ApiClient, viewer: Viewer) {
    this.#client = client
    this.#viewer = viewer
  }

  get state(): PageState {
    return {
      ...this.#asked,
      pods: this.#pods.list(),
      events: this.#events.list(),
      lastLines: this.#lastLines,
      refusals: [...new Set(this.#refusals.values())],
    }
  }

  /** A hidden page sends no requests, and holds none of the few connections that a browser allows. */
  start(): void {
    if (this.#running !== undefined) return
    const running = new AbortController()
    this.#running = running
    void this.#watch('/api/v1/pods', this.#pods, running.signal)
    void this.#watch('/api/v1/events', this.#events, running.signal)
    void this.#askAgain(running.signal)
  }

  stop(): void {
    this.#running?.abort()
    this.#running = undefined
  }

  async #watch<T extends ResourceObject>(
    path: string,
    objects: WatchedObjects<T>,
    signal: AbortSignal,
  ): Promise<void> {
    const query =
      'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    let pauseMs = 500
    while (!signal.aborted) {
      try {
        const stream = await this.#client.open(`${path}?${query}`, signal)
        this.#refusals.delete(path)
        objects.begin()
        for await (const lines of readLines(stream)) {
          pauseMs = 500
          const changes = lines.map((line) => objects.take(parse<T>(line)))
          if (!changes.includes(true)) continue
          this.#viewer.onChange()
          void this.#readLastLines(signal)
        }
      } catch (error) {
        if (!signal.aborted) this.#take(path, error)
      }
      await pause(pauseMs, signal)
      pauseMs = Math.min(longestPauseMs, pauseMs * 2)
    }
  }

  async #askAgain(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const answers = await Promise.all([
        this.#ask<ResourceList<ResourceObject & NodeObject>>('/api/v1/nodes'),
        this.#ask<DaemonStatus>('/podd/v1/status'),
        this.#ask<readonly SourceObject[]>('/podd/v1/sources'),
        this.#ask<readonly UnitObject[]>('/podd/v1/units'),
        this.#ask<UsageHistoryReply>('/podd/v1/usage'),
      ])
      if (signal.aborted) return
      const [nodes, status, sources, units, usage] = answers
      const before = this.#asked
      this.#asked = {
        node: nodes?.items[0] ?? before.node,
        status: status ?? before.status,
        sources: sources ?? before.sources,
        units: units ?? before.units,
        usage: usage ?? before.usage,
      }
      if (answers.some((answer) => answer !== undefined)) this.#viewer.onTrouble(undefined)
      this.#viewer.onChange()
      void this.#readLastLines(signal)
      await pause(askEveryMs, signal)
    }
  }

  /** Asks for the log of each run once; what changes meanwhile is read after the next change. */
  async #readLastLines(signal: AbortSignal): Promise<void> {
    if (this.#isReadingLogs) return
    this.#isReadingLogs = true
    const lines = new Map<string, string>()
    for (const pod of this.#pods.list()) {
      const fact = explainTrouble(pod)
      const key = fact && lastLineKey(pod, fact)
      if (fact === undefined || key === undefined || lines.size >= maxLogs) continue
      const known = this.#lastLines.get(key)
      const line = known ?? (await this.#readLastLine(pod, fact, signal))
      if (line !== undefined) lines.set(key, line)
    }
    this.#isReadingLogs = false
    const isChanged = [...lines.keys()].some((key) => !this.#lastLines.has(key))
    this.#lastLines = lines
    if (isChanged && !signal.aborted) this.#viewer.onChange()
  }

  /** Empty where the log can't be read; undefined where podd doesn't answer. */
  async #readLastLine(
    { metadata: { namespace, name } }: PodObject,
    fact: TroubleFact,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const read = async (query: Readonly<Record<string, string>>): Promise<Uint8Array> => {
      const path = `${logPath(namespace, name)}?${new URLSearchParams(query)}`
      return new Uint8Array(await new Response(await this.#client.open(path, signal)).arrayBuffer())
    }
    try {
      return (await readTellingLine(fact, read)) ?? ''
    } catch (error) {
      return error instanceof Refusal ? '' : undefined
    }
  }

  async #ask<T>(path: string): Promise<T | undefined> {
    try {
      const answer = await this.#client.get<T>(path)
      this.#refusals.delete(path)
      return answer
    } catch (error) {
      this.#take(path, error)
      return undefined
    }
  }

  #take(path: string, error: unknown): void {
    if (!(error instanceof Refusal)) this.#viewer.onTrouble('podd does not answer; the page keeps trying')
    else if (error.status === 401) this.#viewer.onUnauthorized()
    else this.#refusals.set(path, error.message)
  }
}

function parse<T>(line: string): WatchLine<T> {
  const parsed: WatchLine<T> = JSON.parse(line)
  return parsed
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    function done(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done, { once: true })
    if (signal.aborted) done()
  })
}
