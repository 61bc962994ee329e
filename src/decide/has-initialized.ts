import { newestEnd } from './container-view.ts'
import type { StatusFacts } from './status-facts.ts'

/**
 * Whether a main container was made in the newest sandbox: only then were all init containers through there,
 * for they run anew in every sandbox (`pkg/kubelet/kubelet_pods.go` podHasInitialized, Kubernetes 1.36).
 */
export function hasInitialized({
  pod,
  observed,
  record,
}: Pick<StatusFacts, 'pod' | 'observed' | 'record'>): boolean {
  const [sandbox] = observed.sandboxes
  return pod.spec.containers.some(({ name }) =>
    sandbox === undefined
      ? newestEnd(name, observed, record.containers[name]) !== undefined
      : observed.containers.some((made) => made.name === name && made.sandboxId === sandbox.id),
  )
}
