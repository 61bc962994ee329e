import type { SpecResult } from './ginkgo-report.ts'

/** Why a spec of Kubernetes' suite need not pass on a host without a control plane. */
export interface Reason {
  /** Of the spec's name. */
  readonly spec: RegExp
  /** Of what it failed with; left out, whatever that is. */
  readonly message?: RegExp
  readonly why: string
}

/** The specs that cannot pass by what podd is, and why; each pattern is held to match something. */
export const reasons: readonly Reason[] = [
  { spec: /limit-ranger/u, why: 'it creates LimitRanges' },
  { spec: /resource-quota/u, why: 'it creates ResourceQuotas' },
  {
    spec: /PLR guaranteed qos .*restart/u,
    message: /oom_score_adj value 0 not equal to expected -997/u,
    why: 'it expects an OOM score adjustment below 0, which needs CAP_SYS_RESOURCE; root on the tested host doesn’t have it',
  },
  {
    spec: /node didn't have enough resource|scheduler-focused/u,
    why: 'it waits for the scheduler to find no room',
  },
  { spec: /KubeletFineGrainedAuthz/u, why: 'it creates ServiceAccounts, their tokens and RBAC rules' },
  { spec: /Node Lifecycle/u, why: 'it creates a Node: podd serves only the one that it runs on' },
  { spec: /NoExecuteTaintManager/u, why: 'it expects a controller to evict pods from tainted nodes' },
  {
    spec: /RuntimeClass.*with scheduling/u,
    why: 'it taints the node for the scheduler, and schedules by a RuntimeClass',
  },
  {
    spec: /should call prestop when killing a pod/u,
    why: 'its server asks the API for the endpoints of a Service, with the token of a ServiceAccount, before it listens',
  },
  { spec: /Clean up pods on node/u, why: 'it creates ReplicationControllers' },
  { spec: /scheduler about pods scheduling/u, why: 'it waits for an event of the scheduler' },
  {
    spec: /\[Serial\] should be able to pull image \[/u,
    why: 'it pulls from a registry on the internet, which the tested host can’t reach',
  },
  {
    spec: /\[Serial\] should be able to pull from private registry with secret/u,
    why: 'its registry accepts the Secret, but serves an image that only Kubernetes’ own `agnhost` image contains, and not one built from source',
  },
  {
    spec: /PrivilegedPod/u,
    message: /ip link add dummy1 type dummy.*RTNETLINK answers: Operation not supported/u,
    why: 'it adds an interface of type `dummy`, which the kernel of the tested host doesn’t support',
  },
  {
    spec: /Mount propagation should/u,
    why: 'the host’s root must be a shared mount, as systemd makes it; on the tested host it isn’t',
  },
  {
    spec: /ImageVolume/u,
    message: /ErrImagePull|ImagePullBackOff/u,
    why: 'it pulls an image, even one that is present, from a registry that the tested host can’t reach',
  },
  { spec: /ImageVolume/u, why: 'image volumes need containerd 2.1' },
]

export function reasonFor({
  name,
  text,
  state,
}: Pick<SpecResult, 'name' | 'text' | 'state'>): string | undefined {
  const holds = ({ spec, message }: Reason): boolean =>
    spec.test(name) && (message === undefined || state !== 'failed' || message.test(text))
  return reasons.find((reason) => holds(reason))?.why
}
