import type { PoddConfig } from '../../config/options.ts'
import { defaultContainerPolicy } from '../../decide/node/plan-container-garbage.ts'
import type { ContainerGarbagePolicy } from '../../decide/node/plan-container-garbage.ts'
import { backoffLimits } from '../../decide/plan/restart-policy.ts'
import type { PodHost } from '../actions/pod-host.ts'
import type { ImagePuller } from '../images/image-puller.ts'
import type { NewWorker, PodState } from '../worker/pod-state.ts'
import { PodWorker } from '../worker/pod-worker.ts'
import type { PodWorkerDeps } from '../worker/pod-worker.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { ProbedContainer, ProbedPod } from '../probing/prober-worker.ts'
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
  readonly images: ImagePuller
  readonly observer: RuntimeObserver
  readonly prober: Prober
  readonly statuses: StatusStore
  readonly knowledge: RuntimeKnowledge
  readonly onStage: (worker: PodWorker) => void
  /** Why the runtime can't be used for now. */
  readonly runtimeProblem: () => string | undefined
  /** See PassDeps. */
  readonly runtimeLosses: () => number
  /** Every source has given its objects. */
  readonly objectsKnown: () => boolean
}

/** The host whose calls let the observer know of what a start asks of its new sandbox: that isn't asked again to show the pod. */
export function noteSandboxes(host: PodHost, observer: Pick<RuntimeObserver, 'noteSandbox'>): PodHost {
  const { calls } = host
  return {
    ...host,
    calls: {
      ...calls,
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
      images,
      events,
      records,
      observe: (uid) => observer.read(uid),
      probes: () => prober.verdicts(input.record.uid),
      publish: (uid, object) => {
        if (object === undefined) statuses.remove(uid)
        else statuses.publish(uid, object)
      },
      onObserved: (worker) => prober.setPod(probedPod(worker.state, host.hostIps())),
      onStage: around.onStage,
      clock,
      random,
      logger,
      limits: backoffLimits(options.settings.maxContainerRestartPeriodMs),
      containerPolicy: options.containerPolicy ?? defaultContainerPolicy,
      runtimeName,
      runtimeProblem: around.runtimeProblem,
      runtimeLosses: around.runtimeLosses,
      objectsKnown: around.objectsKnown,
      recursiveReadOnly: (handler) =>
        knowledge.features?.handlers?.get(handler)?.recursiveReadOnlyMounts ?? false,
    },
    input,
  )
}

/** What the prober needs to know of a pod: its running containers, each once its postStart hook is done. */
function probedPod(state: Readonly<PodState>, hostIps: readonly string[]): ProbedPod {
  const { observed, pod, ref, record, postStarts } = state
  const specs = [...pod.spec.initContainers, ...pod.spec.containers]
  const containers = specs.flatMap((spec): ProbedContainer[] => {
    const running = observed.containers.find(
      ({ id, name, state }) => name === spec.name && state === 'running' && !postStarts.has(id),
    )
    if (running === undefined) return []
    const startedAtMs = running.startedAtMs ?? running.createdAtMs
    const adopted = wasFound(record, { name: spec.name, id: running.id, startedAtMs })
    return [{ name: spec.name, containerId: running.id, startedAtMs, spec, adopted }]
  })
  const podIps = pod.spec.hostNetwork ? hostIps : (observed.sandboxes[0]?.ips ?? [])
  return { pod: ref, podIps, ending: state.stage === 'ending', containers }
}

/**
 * How a container was when podd last looked, maybe before podd was restarted: it stays so until a probe
 * says otherwise. A pod whose containers were all ready had started up, and so had each of them, which records of older
 * podds tell in no other way.
 */
function wasFound(
  record: PodRecord,
  running: { readonly name: string; readonly id: ContainerId; readonly startedAtMs: number },
): NonNullable<ProbedContainer['adopted']> {
  const containersReady = record.conditions['ContainersReady']
  const allReady = containersReady?.status === 'True' && running.startedAtMs <= containersReady.atMs
  const { startedUp, ready } = record.containers[running.name] ?? {}
  return {
    started: startedUp === undefined ? allReady : startedUp === running.id,
    ready: ready === running.id || allReady,
  }
}
