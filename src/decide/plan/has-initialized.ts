import { newestEnd } from './container-view.ts'
import { isBeingReset } from './restart-all.ts'
import type { StatusFacts } from './status-facts.ts'

/**
 * Whether a main container was made in the newest sandbox: only then were all init containers through there,
 * for they run again in every sandbox (`pkg/kubelet/kubelet_pods.go` podHasInitialized, Kubernetes 1.36).
 */
export function hasInitialized({
  pod,
  observed,
  record,
}: Pick<StatusFacts, 'pod' | 'observed' | 'record'>): boolean {
  const [sandbox] = observed.sandboxes
  // When all are restarted, the initialization is undone once all have been stopped.
  const before = isBeingReset(observed, record.restartAll) ? [] : (record.restartAll ?? [])
  return pod.spec.containers.some(({ name }) =>
    sandbox === undefined
      ? newestEnd(name, observed, record.containers[name]) !== undefined
      : observed.containers.some(
          (made) => made.name === name && made.sandboxId === sandbox.id && !before.includes(made.id),
        ),
  )
}
