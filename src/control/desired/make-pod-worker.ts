import type { SharedTurns } from '../../base/clock.ts'
import type { PoddConfig } from '../../config/options.ts'
import { defaultContainerPolicy } from '../../decide/node/plan-container-garbage.ts'
import type { ContainerGarbagePolicy } from '../../decide/node/plan-container-garbage.ts'
import { backoffLimits } from '../../decide/plan/backoff.ts'
import type { PodHost } from '../actions/pod-host.ts'
import type { ImagePuller } from '../images/image-puller.ts'
import type { NewWorker } from '../worker/pod-state.ts'
import { PodWorker } from '../worker/pod-worker.ts'
import type { PodWorkerDeps } from '../worker/pod-worker.ts'
import type { Prober } from '../probing/prober.ts'
import type { RuntimeKnowledge } from '../runtime/runtime-knowledge.ts'
import type { RuntimeObserver } from '../runtime/runtime-observer.ts'
import type { StatusStore } from '../status/status-store.ts'

/** What all pods' workers share. */
export interface WorkerSurroundings {
  readonly options: Pick<
    PodWorkerDeps,
    'host' | 'events' | 'records' | 'clock' | 'random' | 'logger' | 'runtimeName'
  > & {
    readonly settings: Pick<PoddConfig, 'maxContainerRestartPeriodMs'>
    readonly containerPolicy?: ContainerGarbagePolicy
  }
  readonly turns: SharedTurns
  readonly images: ImagePuller
  readonly observer: RuntimeObserver
  readonly prober: Prober
  readonly statuses: StatusStore
  readonly knowledge: RuntimeKnowledge
  readonly onStage: (worker: PodWorker) => void
  readonly reviewAdmission: () => void
  /** Why the runtime can't be used for now. */
  readonly runtimeProblem: () => string | undefined
  /** See PassDeps. */
  readonly runtimeLosses: () => number
  /** Every source has given its objects. */
  readonly objectsKnown: () => boolean
}

/**
 * The host whose calls let the observer know of what a start asks of its new sandbox: that isn't asked again to show the pod.
 * And one that can't be made is a reason to ask the runtime whether it is ready.
 */
export function noteSandboxes(
  host: PodHost,
  {
    observer,
    knowledge,
  }: {
    readonly observer: Pick<RuntimeObserver, 'noteSandbox'>
    readonly knowledge: Pick<RuntimeKnowledge, 'look'>
  },
): PodHost {
  const { calls } = host
  return {
    ...host,
    calls: {
      ...calls,
      runPodSandbox: async (...args) => {
        try {
          return await calls.runPodSandbox(...args)
        } catch (error) {
          void knowledge.look()
          throw error
        }
      },
      podSandboxStatus: async (...args) => {
        const reply = await calls.podSandboxStatus(...args)
        if (reply.status !== null) observer.noteSandbox(reply.status)
        return reply
      },
    },
  }
}

/** One pod's worker, wired to what it shares with the others. Its first pass comes after the current task. */
export function makePodWorker(around: WorkerSurroundings, input: NewWorker): PodWorker {
  const { options, images, observer, prober, statuses, knowledge } = around
  const { host, events, records, clock, random, logger, runtimeName } = options
  return new PodWorker(
    {
      host,
      turns: around.turns,
      images,
      events,
      records,
      observe: (uid) => observer.read(uid),
      probes: () => prober.verdicts(input.record.uid),
      publish: (uid, object) => {
        if (object === undefined) statuses.remove(uid)
        else statuses.publish(uid, object)
      },
      prober,
      onStage: around.onStage,
      reviewAdmission: around.reviewAdmission,
      clock,
      random,
      logger,
      limits: backoffLimits(options.settings.maxContainerRestartPeriodMs),
      containerPolicy: options.containerPolicy ?? defaultContainerPolicy,
      runtimeName,
      runtimeProblem: around.runtimeProblem,
      runtimeLosses: around.runtimeLosses,
      objectsKnown: around.objectsKnown,
      networkProblem: async () => {
        await knowledge.asked
        return knowledge.networkProblem
      },
      recursiveReadOnly: (handler) =>
        knowledge.features?.handlers?.get(handler)?.recursiveReadOnlyMounts ?? false,
    },
    input,
  )
}
