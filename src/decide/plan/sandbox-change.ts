import type { ObservedPod, ObservedSandbox } from '../../pod/state/observed.ts'

export type SandboxChange =
  | { readonly kind: 'keep'; readonly sandbox: ObservedSandbox }
  | { readonly kind: 'create'; readonly attempt: number }

/**
 * Whether a pod needs a sandbox: there is none, several are ready, the newest isn't, the network
 * namespace's mode differs, or it has no address
 * (`pkg/kubelet/kuberuntime/util/util.go` PodSandboxChanged, Kubernetes 1.36). So does a pod whose cgroup was removed:
 * what runs of it is killed and recreated (`pkg/kubelet/kubelet.go` SyncPod, 1.36).
 */
export function computeSandboxChange(
  observed: ObservedPod,
  hostNetwork: boolean,
  isCgroupRemoved = false,
): SandboxChange {
  const newest = observed.sandboxes[0]
  if (newest === undefined) return { kind: 'create', attempt: 0 }
  const severalReady = observed.sandboxes.filter((sandbox) => sandbox.ready).length > 1
  const noAddress = !hostNetwork && newest.ips.length === 0
  if (severalReady || !newest.ready || newest.hostNetwork !== hostNetwork || noAddress || isCgroupRemoved) {
    return { kind: 'create', attempt: newest.attempt + 1 }
  }
  return { kind: 'keep', sandbox: newest }
}
