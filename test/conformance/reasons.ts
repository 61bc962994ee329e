import type { SpecResult } from './ginkgo-report.ts'

/** Why a spec of Kubernetes' suite need not pass on a host without a control plane. */
export interface Reason {
  /** Of the spec's name. */
  readonly spec: RegExp
  readonly why: string
}

/** The specs that cannot pass by what podd is, and why; each pattern is held to match something. */
export const reasons: readonly Reason[] = [
  { spec: /environment variables for services/u, why: 'it makes a Service' },
  { spec: /PodTemplates/u, why: 'it keeps PodTemplates, of which controllers make pods' },
  {
    spec: /lease API should be available/u,
    why: 'it keeps Leases, by which parts of a cluster elect leaders',
  },
  { spec: /limit-ranger/u, why: 'it makes LimitRanges: quota' },
  { spec: /resource-quota/u, why: 'it makes ResourceQuotas' },
  {
    spec: /PLR guaranteed qos/u,
    why: 'it gives its node a resource of its own through the node’s status: podd shows what the host has',
  },
  {
    spec: /pod generation should start at 1/u,
    why: 'it counts new tolerations, which have no effect without a scheduler, as a change of the pod',
  },
  {
    spec: /should not create extra sandbox/u,
    why: 'it looks for events whose source is `kubelet`: those here come from `podd`',
  },
  {
    spec: /node didn't have enough resource|scheduler-focused/u,
    why: 'it waits for the scheduler to find no room',
  },
  {
    spec: /evicted pods should be terminal/u,
    why: 'it waits for the end of a container that writes more than its limit of `ephemeral-storage`: podd limits volumes alone',
  },
  { spec: /resource usage tracking/u, why: 'it makes a ReplicationController' },
  { spec: /KubeletFineGrainedAuthz/u, why: 'it makes ServiceAccounts, their tokens and RBAC rules' },
  { spec: /Node Lifecycle/u, why: 'it makes a Node: podd has the one that it runs on' },
  { spec: /NoExecuteTaintManager/u, why: 'a controller evicts pods from tainted nodes' },
  {
    spec: /RuntimeClass.*(?:conflicting node selector|with scheduling)/u,
    why: 'it schedules by a RuntimeClass: there is no scheduler',
  },
  { spec: /Clean up pods on node/u, why: 'it makes ReplicationControllers' },
  { spec: /scheduler about pods scheduling/u, why: 'it waits for an event of the scheduler' },
  {
    spec: /should call prestop when killing a pod/u,
    why: 'it reaches its pod through the proxy of an API server',
  },
  {
    spec: /ContainerTerminationMetrics/u,
    why: 'it reaches the metrics through the proxy of an API server; podd serves them at `/metrics`',
  },
  {
    spec: /\[Serial\] should be able to pull image \[/u,
    why: 'it pulls from a registry on the internet, which this run does without',
  },
  {
    spec: /\[Serial\] should be able to pull from private registry with secret/u,
    why: 'its registry, which took the Secret, has an image that stands in Kubernetes’ own image of `agnhost` alone; this run makes that itself',
  },
  {
    spec: /PrivilegedPod/u,
    why: 'it adds an interface of type `dummy`, which the kernel of this run doesn’t have',
  },
  {
    spec: /Mount propagation should/u,
    why: 'the root of the host must be a shared mount, as systemd makes it; on the host of this run it isn’t',
  },
  { spec: /ImageVolume/u, why: 'image volumes need containerd 2.1' },
]

export function reasonFor({ name }: Pick<SpecResult, 'name'>): string | undefined {
  return reasons.find(({ spec }) => spec.test(name))?.why
}
