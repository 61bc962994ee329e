import type { ContainerId } from '../../pod/values/ids.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { PodState } from './pod-state.ts'
import type { ProbedContainer, ProbedPod } from '../probing/prober-worker.ts'

/** What the prober is to know of a pod: its running containers, each once its postStart hook is done. */
export function probedPod(state: Readonly<PodState>, hostIps: readonly string[]): ProbedPod {
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
