import type { ContainerId, SandboxId } from '../../pod/values/ids.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'

export interface DeadThings {
  readonly containers: readonly ContainerId[]
  readonly sandboxes: readonly SandboxId[]
}

/**
 * What of a living pod may be removed: of each name's dead containers all but the newest, and
 * sandboxes that are neither ready, nor the newest, nor hold a container that is kept
 * (`pkg/kubelet/kuberuntime/kuberuntime_gc.go`, maxPerPodContainer 1, Kubernetes 1.36).
 */
export function selectDeadContainers(observed: ObservedPod): DeadThings {
  const seen = new Set<string>()
  const gone: ObservedContainer[] = []
  for (const container of observed.containers) {
    const dead = container.state === 'exited' || container.state === 'created'
    if (!dead) continue
    const superseded = observed.containers.some(
      (other) => other.name === container.name && other.restartCount > container.restartCount,
    )
    // A container that was made and never started tells nothing once there is a newer one.
    const worthless = container.state === 'created'
    if (superseded && (worthless || seen.has(container.name))) gone.push(container)
    else if (!worthless) seen.add(container.name)
  }
  const removed = new Set(gone.map((container) => container.id))
  const sandboxes = observed.sandboxes
    .slice(1)
    .filter(
      (sandbox) =>
        !sandbox.ready &&
        !observed.containers.some(
          (container) => container.sandboxId === sandbox.id && !removed.has(container.id),
        ),
    )
  return { containers: [...removed], sandboxes: sandboxes.map((sandbox) => sandbox.id) }
}
