import type { PodObject } from '../../api/resource.ts'
import type { ContainerStatus } from '../../pod/state/status.ts'
import type { ResourceStore } from './resource-store.ts'

/** The number of containers that terminated in one way. */
export interface TerminationCount {
  readonly type: 'container' | 'init_container' | 'ephemeral_container'
  readonly exitCode: number
  readonly reason: string
  readonly count: number
}

/**
 * Counts terminated containers when their status is first shown (`pkg/kubelet/status/status_manager.go`,
 * updateStatusInternal, 1.36). What ended before podd started was counted by the podd before it.
 */
export class TerminationCounter {
  readonly #counts = new Map<string, TerminationCount>()
  /** By pod: its containers that are shown as terminated, with when they ended. */
  readonly #ended = new Map<string, ReadonlySet<string>>()
  readonly #sinceMs: number

  /** @param sinceMs wall milliseconds */
  constructor(sinceMs: number) {
    // Statuses tell whole seconds.
    this.#sinceMs = sinceMs - (sinceMs % 1000)
  }

  begin(pods: Pick<ResourceStore<PodObject>, 'subscribe'>): void {
    pods.subscribe(({ type, object }) => {
      if (type === 'DELETED') this.#ended.delete(object.metadata.uid)
      else this.#note(object)
    })
  }

  counts(): readonly TerminationCount[] {
    return [...this.#counts.values()]
  }

  #note({ metadata: { uid }, status }: PodObject): void {
    const groups = [
      ['container', status.containerStatuses],
      ['init_container', status.initContainerStatuses],
      ['ephemeral_container', status.ephemeralContainerStatuses],
    ] as const
    const known = this.#ended.get(uid)
    const ended = new Set<string>()
    for (const [type, statuses = []] of groups)
      for (const { name, state } of statuses) {
        if (state.terminated === undefined) continue
        ended.add(name)
        if (known?.has(name) !== true) this.#count(type, state.terminated)
      }
    if (ended.size > 0) this.#ended.set(uid, ended)
    else this.#ended.delete(uid)
  }

  #count(
    type: TerminationCount['type'],
    { exitCode, reason = '', finishedAt = '' }: NonNullable<ContainerStatus['state']['terminated']>,
  ): void {
    if (Date.parse(finishedAt) < this.#sinceMs) return
    const key = `${type} ${exitCode} ${reason}`
    const count = (this.#counts.get(key)?.count ?? 0) + 1
    this.#counts.set(key, { type, exitCode, reason, count })
  }
}
