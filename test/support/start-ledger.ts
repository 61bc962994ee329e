import { systemClock } from '../../src/base/clock.ts'
import { ContainerdEvents } from '../../src/runtime/events.ts'
import { CriClient } from '../../src/runtime/cri-client.ts'
import { isCriError } from '../../src/runtime/cri-runtime.ts'
import type { RuntimeEvent } from '../../src/pod/state/observed.ts'
import { labelKeys } from '../../src/translate/identity.ts'

interface Life {
  readonly id: string
  readonly startedAtMs: number
  /** `unknown`: it ended while containerd couldn't tell. */
  endedAtMs: number | 'unknown' | undefined
  /** `namespace/pod/container`; undefined for a sandbox, or until the runtime was asked. */
  key: string | undefined
}

/**
 * Who ran when, by containerd's own word: a subscription beside podd's. Containers of one name of one pod
 * (its successors included) must never run at the same time.
 */
export class StartLedger {
  readonly #client: CriClient
  readonly #events: ContainerdEvents
  readonly #lives = new Map<string, Life>()
  readonly #abort = new AbortController()
  readonly #asking = new Set<Promise<void>>()
  #running: Promise<void> | undefined
  #gaps = 0

  constructor(endpoint: string) {
    this.#client = new CriClient({ endpoint, clock: systemClock, reconnectWaitMs: 10_000 })
    this.#events = new ContainerdEvents(this.#client.connection, systemClock)
  }

  get client(): CriClient {
    return this.#client
  }

  /** How many containers were seen to start, and how often containerd was away. */
  get summary(): string {
    const started = [...this.#lives.values()].filter(({ key }) => key !== undefined).length
    return `${started} containers started, containerd went away ${this.#gaps} times`
  }

  /** Resolves when nothing is missed any more. */
  async open(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#running = this.#events.run((event) => {
        if (event.kind === 'opened') resolve()
        this.#onEvent(event)
      }, this.#abort.signal)
    })
  }

  /** Ends the subscription; gives each overlap of two lives of one name in words. */
  async close(): Promise<readonly string[]> {
    await Promise.all(this.#asking)
    this.#abort.abort(new Error('the ledger is closed'))
    await this.#running
    this.#client.close()
    const byKey = Map.groupBy(
      [...this.#lives.values()].filter(({ key }) => key !== undefined),
      ({ key }) => key,
    )
    return [...byKey].flatMap(([key, lives]) => overlapsOf(String(key), lives))
  }

  #onEvent(event: RuntimeEvent): void {
    switch (event.kind) {
      case 'started': {
        const life: Life = {
          id: event.containerId,
          startedAtMs: systemClock.wallMs(),
          endedAtMs: undefined,
          key: undefined,
        }
        this.#lives.set(life.id, life)
        this.#track(this.#askWho(life))
        return
      }
      case 'exited': {
        const life = this.#lives.get(event.containerId)
        if (life !== undefined) life.endedAtMs ??= event.exit?.atMs ?? systemClock.wallMs()
        return
      }
      case 'lost':
        this.#gaps += 1
        return
      case 'opened':
        this.#track(this.#catchUp())
        return
      case 'created':
      case 'deleted':
      case 'oom':
    }
  }

  #track(work: Promise<void>): void {
    const asked = work.finally(() => this.#asking.delete(asked))
    this.#asking.add(asked)
  }

  async #askWho(life: Life): Promise<void> {
    for (let tries = 0; tries < 20 && !this.#abort.signal.aborted; tries += 1) {
      try {
        const { status } = await this.#client.runtime.containerStatus({ containerId: life.id })
        const labels = status?.labels ?? {}
        life.key = [labelKeys.podNamespace, labelKeys.podName, labelKeys.containerName]
          .map((key) => labels[key] ?? '?')
          .join('/')
        return
      } catch (error) {
        // A sandbox, or gone already.
        if (isCriError(error, 'RUNTIME_NOT_FOUND')) return
        await systemClock.sleep(100)
      }
    }
  }

  /** After a gap: what doesn't run any more has ended at a time nobody knows. */
  async #catchUp(): Promise<void> {
    if (this.#lives.size === 0) return
    const before = [...this.#lives.values()].filter(({ endedAtMs }) => endedAtMs === undefined)
    try {
      const { containers } = await this.#client.runtime.listContainers({})
      const running = new Set(
        containers.filter(({ state }) => state === 'CONTAINER_RUNNING').map(({ id }) => id),
      )
      for (const life of before) if (!running.has(life.id)) life.endedAtMs ??= 'unknown'
    } catch {
      // The next opening of the stream catches up.
    }
  }
}

function overlapsOf(key: string, lives: readonly Life[]): string[] {
  const inOrder = lives.toSorted((a, b) => a.startedAtMs - b.startedAtMs)
  return inOrder.flatMap((life, index) => {
    const next = inOrder[index + 1]
    if (next === undefined || life.endedAtMs === 'unknown') return []
    if (life.endedAtMs !== undefined && life.endedAtMs <= next.startedAtMs) return []
    const until = life.endedAtMs === undefined ? 'the end' : new Date(life.endedAtMs).toISOString()
    return [
      `${key}: ${next.id.slice(0, 12)} started at ${new Date(next.startedAtMs).toISOString()} while ${life.id.slice(0, 12)} ran until ${until}`,
    ]
  })
}
