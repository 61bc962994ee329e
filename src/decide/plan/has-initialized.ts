import { newestEnd } from './container-view.ts'
import { isBeingReset } from './restart-all.ts'
import type { StatusFacts } from './status-facts.ts'

/**
 * Whether a main container was made in the newest sandbox: only then have all init containers completed there, as they
 * run again in every sandbox (`pkg/kubelet/kubelet_pods.go` podHasInitialized, Kubernetes 1.36).
 */
export function hasInitialized({
  pod,
  observed,
  record,
}: Pick<StatusFacts, 'pod' | 'observed' | 'record'>): boolean {
  const [sandbox] = observed.sandboxes
  // A restart of all containers undoes the initialization once all have stopped.
  const before = isBeingReset(observed, record.restartAll) ? [] : (record.restartAll ?? [])
  return pod.spec.containers.some(({ name }) =>
    sandbox === undefined
      ? newestEnd(name, observed, record.containers[name]) !== undefined
      : observed.containers.some(
          (made) => made.name === name && made.sandboxId === sandbox.id && !before.includes(made.id),
        ),
  )
}
