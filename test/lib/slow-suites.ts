import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'

/**
 * Contract, e2e and fault tests that one containerd is enough for, and why: they run on the first one alone. All
 * others run on each, a file that is new among them. What a containerd's version may change is held on each by the
 * contract suite and by the files that aren't listed.
 */
export const onOneContainerd: Readonly<Record<string, string>> = {
  'test/e2e/api-writing.test.ts': 'podd’s API and files',
  'test/e2e/apply.test.ts': 'what the command line asks of podd',
  'test/e2e/cgroup-root.test.ts': 'podd makes the cgroups above the containers',
  'test/e2e/cli.test.ts': 'what the command line prints; test/e2e/reaching-in.test.ts is on each',
  'test/e2e/config-objects.test.ts': 'podd resolves the environment before it calls the runtime',
  'test/e2e/container-garbage.test.ts': 'podd decides what goes; ListContainers is in the contract suite',
  'test/e2e/disk-writes.test.ts': 'what podd itself writes',
  'test/e2e/down.test.ts': 'test/e2e/embedded-containerd.test.ts removes each',
  'test/e2e/drain.test.ts': 'the order is podd’s; endings are on each',
  'test/e2e/dual-stack.test.ts': 'the same CNI plugins serve each',
  'test/e2e/eviction.test.ts': 'podd measures and decides; ContainerStats is in the contract suite',
  'test/e2e/firewall-reload.test.ts': 'the firewall, which podd restores',
  'test/e2e/fleet.test.ts': 'reading and holding sources',
  'test/e2e/image-credentials.test.ts': 'podd finds the credentials; pulls are on each',
  'test/e2e/image-garbage.test.ts': 'podd decides; what CRI tells of images is in the contract suite',
  'test/e2e/init-containers.test.ts': 'the order is podd’s; restarts and endings are on each',
  'test/e2e/install.test.ts': 'installs podd, and starts no runtime',
  'test/e2e/kubectl.test.ts': 'podd’s API; test/e2e/reaching-in.test.ts is on each',
  'test/e2e/kubectl-writing.test.ts': 'podd’s API; test/e2e/reaching-in.test.ts is on each',
  'test/e2e/log-rotation.test.ts': 'podd moves the files; ReopenContainerLog is in the contract suite',
  'test/e2e/logs.test.ts': 'podd reads and moves the files; ReopenContainerLog is in the contract suite',
  'test/e2e/manifests.test.ts': 'the examples, made of fields that other files prove',
  'test/e2e/network-files.test.ts': 'podd writes hosts and resolv.conf',
  'test/e2e/object-sources.test.ts': 'which source may give what',
  'test/e2e/pod-fields.test.ts':
    'host ports are the CNI plugins’; namespaces are in test/e2e/security-context.test.ts',
  'test/e2e/pod-level-resources.test.ts': 'podd makes the pod’s cgroup; test/e2e/resize.test.ts is on each',
  'test/e2e/pod-security.test.ts': 'admission',
  'test/e2e/probe-fields.test.ts': 'podd’s own HTTP, TCP and gRPC clients',
  'test/e2e/probes.test.ts': 'what follows from a verdict; ExecSync is in the contract suite',
  'test/e2e/sources.test.ts': 'reading the manifest directory',
  'test/e2e/swaps.test.ts': 'admission',
  'test/e2e/umask.test.ts': 'the files that podd makes',
  'test/e2e/updates.test.ts': 'which change needs what; images and restarts are on each',
  'test/e2e/volumes.test.ts': 'podd writes the files; mounts are on each',
  'test/fault/bad-surroundings.test.ts':
    'clocks, disks and files of the host; test/fault/full-disk.test.ts is on each',
  'test/fault/burst.test.ts': 'test/fault/start-killed.test.ts kills podd amid starts on each',
  'test/fault/containerd-frozen-for-good.test.ts': 'test/fault/containerd-killed.test.ts replaces each',
  'test/fault/crash.test.ts': 'podd’s own crash',
  'test/fault/manifest-directory.test.ts': 'a directory that vanishes',
  'test/fault/podd-frozen.test.ts': 'podd itself stops; test/fault/containerd-frozen.test.ts is on each',
  'test/fault/self-check.test.ts': 'what podd tells of itself',
  'test/fault/unread-clients.test.ts': 'podd’s API',
  'test/fault/volume-updates.test.ts': 'files, without a runtime',
}

/** The files that take longest, which begin first: what begins last ends last. */
export const longFiles: readonly string[] = [
  'test/fault/garbage.test.ts',
  'test/e2e/probes.test.ts',
  'test/e2e/logs.test.ts',
  'test/e2e/image-pulls.test.ts',
  'test/e2e/install.test.ts',
  'test/fault/containerd-frozen-for-good.test.ts',
  'test/fault/adoption.test.ts',
  'test/e2e/firewall-reload.test.ts',
  'test/fault/containerd-frozen.test.ts',
  'test/fault/bad-surroundings.test.ts',
  'test/fault/full-disk.test.ts',
  'test/fault/hostile-rounds.test.ts',
  'test/fault/start-killed.test.ts',
  'test/e2e/embedded-containerd.test.ts',
  'test/fault/podd-frozen.test.ts',
  'test/e2e/log-rotation.test.ts',
  'test/e2e/down.test.ts',
  'test/e2e/image-garbage.test.ts',
  'test/contract/cri.test.ts',
  'test/e2e/eviction.test.ts',
  'test/fault/manifest-directory.test.ts',
  'test/e2e/random-walk.test.ts',
  'test/fault/burst.test.ts',
  'test/e2e/umask.test.ts',
]

/** Runs what takes long first, in whichever project it is; vitest itself would run one project after another. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => groupOf(a) - groupOf(b) || rankOf(a) - rankOf(b))
  }
}

function groupOf({ project }: TestSpecification): number {
  return project.config.sequence.groupOrder
}

function rankOf({ moduleId }: TestSpecification): number {
  const at = longFiles.findIndex((path) => moduleId.endsWith(`/${path}`))
  return at === -1 ? longFiles.length : at
}
