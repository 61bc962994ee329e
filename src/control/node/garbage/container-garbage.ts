import type { GarbageItem } from '../../../api/images.ts'
import type { Clock } from '../../../base/clock.ts'
import { pollUntil } from '../../../base/clock.ts'
import { planContainerGarbage } from '../../../decide/node/plan-container-garbage.ts'
import type {
  ContainerGarbage as Garbage,
  ContainerGarbagePolicy,
  GarbagePod,
  GarbageReason,
} from '../../../decide/node/plan-container-garbage.ts'
import type { PodUid } from '../../../pod/values/ids.ts'
import type { ObservedPod } from '../../../pod/state/observed.ts'
import type { PodWorker } from '../../worker/pod-worker.ts'

export interface ContainerGarbageOptions {
  readonly workers: () => Iterable<PodWorker>
  /** The content of the runtime, by pod. */
  readonly observedPods: () => ReadonlyMap<PodUid, ObservedPod>
  /** Whether a pod in the runtime without a worker is in no source, rather than having an unreadable record. */
  readonly isRemoved: (pod: ObservedPod) => boolean
  /** Ends orphaned pods. */
  readonly endOrphans: () => void
  readonly allSourcesReady: () => boolean
  readonly policy: ContainerGarbagePolicy
  readonly clock: Clock
}

/** The workers' deadline for the removal. */
const patienceMs = 30_000
const lookMs = 100

const messages: Readonly<Record<GarbageReason, string>> = {
  removed: 'its pod was removed',
  terminated: 'its pod has terminated',
  'container-limit': 'more exited containers than maximumDeadContainersPerContainer',
  'total-limit': 'more exited containers than maximumDeadContainers',
  superseded: 'a newer one has replaced it',
}

/**
 * Exited containers and stopped sandboxes by the kubelet's limits. Each pod's worker removes those of its pod, together
 * with their logs: it alone knows what the pod still needs.
 */
export class ContainerGarbage {
  readonly #options: ContainerGarbageOptions

  constructor(options: ContainerGarbageOptions) {
    this.#options = options
  }

  /** The containers and sandboxes that a collection would remove now. */
  preview(): readonly GarbageItem[] {
    return this.#plan(false).flatMap((garbage) => itemsOf(garbage, 'planned'))
  }

  /**
   * Has the workers remove them, and waits until that is observed, for at most 30 s.
   * @param options.evictNonDeletedPods terminated pods keep no container either
   * @throws the signal's reason
   */
  async collect(
    options: { readonly evictNonDeletedPods: boolean },
    signal: AbortSignal,
  ): Promise<readonly GarbageItem[]> {
    const { clock, endOrphans } = this.#options
    const plan = this.#plan(options.evictNonDeletedPods)
    if (plan.length === 0) return []
    endOrphans()
    const workers = new Map([...this.#options.workers()].map((worker) => [worker.ref.uid, worker]))
    for (const garbage of plan) workers.get(garbage.pod.uid)?.collect(idsOf(garbage))
    await pollUntil(clock, () => !plan.some((garbage) => this.#isLeft(garbage)), {
      periodMs: lookMs,
      timeoutMs: patienceMs,
      signal,
    })
    return plan.flatMap((garbage) => itemsOf(garbage, this.#isLeft(garbage) ? 'failed' : 'removed'))
  }

  #plan(evictNonDeletedPods: boolean): readonly Garbage[] {
    const { allSourcesReady, clock, policy } = this.#options
    const facts = { pods: this.#gather(), allSourcesReady: allSourcesReady(), evictNonDeletedPods }
    return planContainerGarbage(facts, policy, clock.wallMs())
  }

  /** Pods that are being removed are skipped. */
  #gather(): readonly GarbagePod[] {
    const { isRemoved, observedPods, workers } = this.#options
    const known = new Set<PodUid>()
    const pods: GarbagePod[] = []
    for (const { ref, state } of workers()) {
      known.add(ref.uid)
      if (state.record.ending !== undefined || state.stage === 'stopped' || state.stage === 'gone') continue
      pods.push({ observed: state.observed, fate: state.isOver ? 'terminated' : 'live' })
    }
    for (const [uid, observed] of observedPods())
      if (!known.has(uid)) pods.push({ observed, fate: isRemoved(observed) ? 'removed' : 'live' })
    return pods
  }

  #isLeft(garbage: Garbage): boolean {
    const ids = idsOf(garbage)
    const { uid } = garbage.pod
    const worker = [...this.#options.workers()].find(({ ref }) => ref.uid === uid)
    const now = worker === undefined ? this.#options.observedPods().get(uid) : worker.state.observed
    return now !== undefined && [...now.containers, ...now.sandboxes].some(({ id }) => ids.has(id))
  }
}

function idsOf({ containers, sandboxes }: Garbage): ReadonlySet<string> {
  return new Set([
    ...containers.map(({ container }) => container.id),
    ...sandboxes.map(({ sandbox }) => sandbox.id),
  ])
}

function itemsOf({ pod, containers, sandboxes }: Garbage, outcome: GarbageItem['outcome']): GarbageItem[] {
  const name = `${pod.namespace}/${pod.name}`
  return [
    ...containers.map(({ container, reason }) => ({
      kind: 'container',
      id: container.id,
      name: `${name} ${container.name}#${container.restartCount}`,
      reason,
      message: messages[reason],
      outcome,
    })),
    ...sandboxes.map(({ sandbox, reason }) => ({
      kind: 'sandbox',
      id: sandbox.id,
      name: `${name} #${sandbox.attempt}`,
      reason,
      message: messages[reason],
      outcome,
    })),
  ]
}
