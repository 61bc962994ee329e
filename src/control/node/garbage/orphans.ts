import type { GarbageItem } from '../../../api/images.ts'
import type { Clock } from '../../../base/clock.ts'
import { PoddError, errorMessage } from '../../../base/errors.ts'
import type { Logger } from '../../../base/logger.ts'
import { Semaphore } from '../../../base/waits.ts'
import { planOrphans } from '../../../decide/node/plan-orphans.ts'
import type { Orphan, OrphanCollector, OrphanMemory, OrphanPlan } from '../../../decide/node/plan-orphans.ts'

export interface OrphansOptions {
  /** The collectors, in order: one whose orphans depend on others' removal comes after these. */
  readonly collectors: readonly OrphanCollector[]
  /** When the oldest creating call in flight was sent (monotonic). */
  readonly makingSinceMs: () => number | undefined
  readonly clock: Clock
  readonly logger: Logger
}

export interface OrphanCollection {
  readonly items: readonly GarbageItem[]
  /** When the next waiting orphan can be removed (monotonic); undefined where none waits. */
  readonly nextMs: number | undefined
  /** Messages about what could not be listed or removed. */
  readonly failures: readonly string[]
}

/** Collects the remains of pods that no longer exist, one collection at a time. */
export class Orphans {
  readonly #options: OrphansOptions
  readonly #turn = new Semaphore(1)
  #firstSeen: OrphanMemory = new Map()

  constructor(options: OrphansOptions) {
    this.#options = options
  }

  /** Lists what a collection would find now; it counts as a look. */
  preview(signal: AbortSignal): Promise<OrphanCollection> {
    return this.#turn.run(async () => {
      const { plan, failures } = await this.#look(signal)
      const items = [
        ...plan.remove.map((orphan) => itemOf(orphan, 'planned')),
        ...plan.wait.map(({ orphan }) => itemOf(orphan, 'waiting')),
      ]
      return { items, nextMs: nextOf(plan), failures }
    }, signal)
  }

  /** Removes what has been without a pod for long enough. Throws only the signal's reason. */
  collect(signal: AbortSignal): Promise<OrphanCollection> {
    return this.#turn.run(async () => {
      const { collectors, logger } = this.#options
      const { plan, failures } = await this.#look(signal)
      const items = plan.wait.map(({ orphan }) => itemOf(orphan, 'waiting'))
      for (const orphan of plan.remove) {
        signal.throwIfAborted()
        const { kind, id, message } = orphan
        try {
          const collector = collectors.find((each) => each.kind === kind)
          if ((await collector?.remove(orphan)) !== true) continue
          logger.warn({ id: `${kind} ${id}`, reason: message }, 'removed an orphan')
          items.push(itemOf(orphan, 'removed'))
        } catch (error) {
          failures.push(`${kind} ${id}: ${errorMessage(error)}`)
          items.push({ ...itemOf(orphan, 'failed'), message: errorMessage(error) })
        }
      }
      return { items, nextMs: nextOf(plan), failures }
    }, signal)
  }

  async #look(signal: AbortSignal): Promise<{ plan: OrphanPlan; failures: string[] }> {
    const { clock, collectors } = this.#options
    // Read before the look: calls completed by then have their final result.
    const makingSinceMs = this.#options.makingSinceMs()
    const look = { signal }
    const found: Orphan[] = []
    const failures: string[] = []
    for (const collector of collectors) {
      signal.throwIfAborted()
      try {
        found.push(...(await collector.list(look)))
      } catch (error) {
        failures.push(`${collector.kind}: ${errorMessage(error)}`)
      }
    }
    // Later calls are not included.
    const nowMs = clock.monotonicMs()
    const plan = planOrphans({ found, firstSeen: this.#firstSeen, makingSinceMs, nowMs })
    this.#firstSeen = plan.firstSeen
    return { plan, failures }
  }
}

/** Throws PoddError GARBAGE_NOT_COLLECTED where anything failed. */
export function throwFailures({ failures }: Pick<OrphanCollection, 'failures'>): void {
  if (failures.length > 0) throw new PoddError('GARBAGE_NOT_COLLECTED', failures.join('; '))
}

function nextOf({ wait }: OrphanPlan): number | undefined {
  return wait.length === 0 ? undefined : Math.min(...wait.map(({ untilMs }) => untilMs))
}

function itemOf(orphan: Orphan, outcome: GarbageItem['outcome']): GarbageItem {
  const { kind, id, message, sizeBytes } = orphan
  return {
    kind,
    id,
    name: id,
    reason: 'orphan',
    message,
    ...(sizeBytes === undefined ? {} : { sizeBytes }),
    outcome,
  }
}
