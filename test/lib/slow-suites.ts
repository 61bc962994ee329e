import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'

/**
 * The tests that run on each containerd, and what of it they hold: what its version may change. All others run on the
 * first one alone: they prove what podd does with it, on what these files hold of each.
 */
export const onEachContainerd: Readonly<Record<string, string>> = {
  'test/contract/cri.test.ts':
    'what every CRI call does, and what it tells of pods, containers, images and usage',
  'test/contract/exec.test.ts': 'streams of commands, which cli, kubectl and reaching-in carry on',
  'test/contract/security-contexts.test.ts': 'that it starts every security context that podd takes',
  'test/contract/translated-pods.test.ts': 'that it understands all that podd asks for a container',
  'test/e2e/embedded-containerd.test.ts': 'its config, its start, its end, and what it leaves',
  'test/e2e/external-runtime.test.ts': 'streams, hooks and ports by CRI alone',
  'test/e2e/image-pulls.test.ts': 'what it tells of pulls in flight, and how it fails them',
  'test/e2e/images.test.ts': 'pulls and imports',
  'test/e2e/pod-life.test.ts': 'all that one pod goes through, on podd and this containerd together',
  'test/e2e/resize.test.ts': 'UpdateContainerResources on what runs',
  'test/e2e/runtime-features.test.ts': 'what one version can and another can’t',
  'test/e2e/short-pods.test.ts': 'what pods leave of networks, mounts, cgroups, shims and snapshots',
  'test/fault/containerd-killed.test.ts': 'its death, and what it knows of the pods afterwards',
  'test/fault/hostile-rounds.test.ts': 'all faults one after the other, with podd adopting what runs',
  'test/fault/start-killed.test.ts': 'what it makes of a start that podd did not live to see',
  'test/fault/unpacked-images.test.ts': 'images that a power cut left half unpacked',
}

/** What of these each run holds every containerd to. The others run on the second one in the nightly run alone. */
export const onEachInEveryRun: readonly string[] = [
  'test/contract/cri.test.ts',
  'test/contract/exec.test.ts',
  'test/contract/translated-pods.test.ts',
  'test/fault/containerd-killed.test.ts',
]

/** The projects in the order in which they run. The last one has most of the short files. */
const projects: readonly string[] = ['component', 'unit', 'containerd-2', 'containerd']

/**
 * The files that take longest, which begin first in their project: what begins last ends last. In turn one that mostly
 * waits and one that mostly works, so that there is always work beside the waiting.
 */
export const longFiles: readonly string[] = [
  'test/component/server/crowd.test.ts',
  'test/component/cli/full-disk.test.ts',
  'test/component/sources/decode-source.test.ts',
  'test/component/volumes/open-inside.test.ts',
  'test/component/runtime/supervise.test.ts',
  'test/component/sources/directory.test.ts',
  'test/component/control/self-check.test.ts',
  'test/component/store/full-disks.test.ts',
  'test/component/sources/http.test.ts',
  'test/component/control/spoiled-manifests.test.ts',
  'test/component/leftovers.test.ts',
  'test/component/cli/end-daemon.test.ts',
  'test/unit/outside/documents.test.ts',
  'test/unit/pod/api-server-verdicts.test.ts',
  'test/unit/store/state-files.test.ts',
  'test/unit/outside/parsers.test.ts',
  'test/unit/pod/decode-anything.test.ts',
  'test/fault/shim-hung.test.ts',
  'test/fault/garbage.test.ts',
  'test/e2e/image-pulls.test.ts',
  'test/fault/adoption.test.ts',
  'test/fault/containerd-frozen-for-good.test.ts',
  'test/e2e/install.test.ts',
  'test/e2e/eviction.test.ts',
  'test/e2e/logs.test.ts',
  'test/e2e/image-garbage.test.ts',
  'test/fault/bad-surroundings.test.ts',
  'test/e2e/kubectl-writing.test.ts',
  'test/fault/containerd-frozen.test.ts',
  'test/e2e/log-rotation.test.ts',
  'test/e2e/firewall-reload.test.ts',
  'test/e2e/config-objects.test.ts',
  'test/e2e/disk-writes.test.ts',
  'test/contract/cri.test.ts',
  'test/fault/podd-frozen.test.ts',
  'test/e2e/air-gap.test.ts',
  'test/fault/full-disk.test.ts',
  'test/e2e/reaching-in.test.ts',
  'test/fault/changed-surroundings.test.ts',
  'test/e2e/security-context.test.ts',
  'test/contract/exec.test.ts',
  'test/fault/start-killed.test.ts',
  'test/e2e/embedded-containerd.test.ts',
  'test/e2e/mounts.test.ts',
  'test/e2e/umask.test.ts',
  'test/e2e/cli.test.ts',
  'test/e2e/fleet.test.ts',
  'test/e2e/down.test.ts',
  'test/e2e/image-credentials.test.ts',
  'test/fault/crash.test.ts',
  'test/fault/hostile-rounds.test.ts',
  'test/e2e/kubectl.test.ts',
  'test/e2e/volumes.test.ts',
  'test/fault/manifest-directory.test.ts',
  'test/e2e/object-sources.test.ts',
  'test/e2e/network-files.test.ts',
  'test/e2e/container-garbage.test.ts',
  'test/e2e/image-pull-order.test.ts',
  'test/fault/containerd-killed.test.ts',
  'test/e2e/drain.test.ts',
  'test/e2e/updates.test.ts',
  'test/e2e/sources.test.ts',
  'test/e2e/random-walk.test.ts',
  'test/e2e/probes.test.ts',
  'test/e2e/dual-stack.test.ts',
  'test/e2e/api-writing.test.ts',
  'test/e2e/pod-security.test.ts',
  'test/e2e/short-pods.test.ts',
  'test/fault/burst.test.ts',
  'test/e2e/restarts.test.ts',
  'test/e2e/apply.test.ts',
  'test/e2e/ending.test.ts',
  'test/e2e/resources.test.ts',
  'test/fault/self-check.test.ts',
  'test/contract/fake.test.ts',
]

/** Runs project after project, and what takes long first in each, whatever vitest knows of earlier runs. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted(
      (a, b) => groupOf(a) - groupOf(b) || orderOf(a) - orderOf(b) || rankOf(a) - rankOf(b),
    )
  }
}

function groupOf({ project }: TestSpecification): number {
  return project.config.sequence.groupOrder
}

/** Those of other projects, which have no place among them, come as they are. */
function orderOf({ project }: TestSpecification): number {
  return projects.indexOf(project.name)
}

function rankOf({ moduleId }: TestSpecification): number {
  const at = longFiles.findIndex((path) => moduleId.endsWith(`/${path}`))
  return at === -1 ? longFiles.length : at
}
