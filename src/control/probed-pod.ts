import type { PodWorker } from './pod-worker.ts'
import type { ProbedContainer, ProbedPod } from './prober-worker.ts'

/** What the prober is to know of a pod: its running containers. */
export function probedPod(worker: PodWorker, hostIps: readonly string[]): ProbedPod {
  const { observed, pod, ref, record } = worker
  const ready = record.conditions['ContainersReady']
  const specs = [...pod.spec.initContainers, ...pod.spec.containers]
  const containers = specs.flatMap((spec): ProbedContainer[] => {
    const running = observed.containers.find(({ name, state }) => name === spec.name && state === 'running')
    if (running === undefined) return []
    const startedAtMs = running.startedAtMs ?? running.createdAtMs
    // It was ready when podd last looked, maybe before podd was restarted: it stays so until a probe says otherwise.
    const wasReady = ready?.status === 'True' && startedAtMs <= ready.atMs
    return [
      {
        name: spec.name,
        containerId: running.id,
        startedAtMs,
        spec,
        ...(wasReady ? { adopted: { started: true, ready: true } } : {}),
      },
    ]
  })
  const podIps = pod.spec.hostNetwork ? hostIps : (observed.sandboxes[0]?.ips ?? [])
  return { pod: ref, podIps, ending: worker.stage === 'ending', containers }
}
