import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { BaseSequencer } from 'vitest/node'
import type { TestSpecification } from 'vitest/node'

const root = join(import.meta.dirname, '../..')

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
  'test/e2e/trust.test.ts': 'whether it asks image verifiers, and pulls by that',
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
]

/** The projects in the order in which they run. The last one has most of the short files. */
const projects: readonly string[] = ['component', 'unit', 'containerd-2', 'containerd']

/** Seconds that the files took which take longest; `node test/lib/order-files.ts REPORT...` writes them. */
export const fileSeconds: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'file-seconds.json'), 'utf8'),
)

/**
 * Runs project after project, and what takes long first in each, whatever vitest knows of earlier runs: what begins last
 * ends last.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted(
      (a, b) => groupOf(a) - groupOf(b) || orderOf(a) - orderOf(b) || secondsOf(b) - secondsOf(a),
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

/** What is not known to take long begins after what is. */
function secondsOf({ moduleId }: TestSpecification): number {
  return fileSeconds[relative(root, moduleId)] ?? 0
}
