import { stat } from 'node:fs/promises'
import type { EvictionSignal } from '../../../config/node-options.ts'
import type { PoddConfig } from '../../../config/options.ts'
import { readCgroupChoice } from '../../../host/cgroups/layout.ts'
import type { CgroupChoice, CgroupSystem } from '../../../host/cgroups/layout.ts'
import { readPodMemory, readPodsMemory } from '../../../host/cgroups/files.ts'
import type { PodsCgroup } from '../../../host/cgroups/files.ts'
import { readFileSystem, readMemoryAmount, readProcessAmount } from '../../../host/facts/host-stats.ts'
import type { Amount } from '../../../host/facts/host-stats.ts'
import type { Observation, Observations } from '../../../decide/node/judge-pressure.ts'
import { computeQosClass } from '../../../pod/schema/pod-resources.ts'
import { podLogDirectory } from '../../../translate/identity.ts'
import { measureDirectory } from '../../../volumes/open-inside.ts'
import { volumeDirectory } from '../../../volumes/pod-directory.ts'
import type { PodMeter, StarvedDisk } from './measure-pods.ts'

/** Reads the available amounts on this host, and the pods' usage. */
export interface PressureSurroundings extends PodMeter {
  /** The signals that can be read. */
  readonly observe: (signals: ReadonlySet<EvictionSignal>, signal: AbortSignal) => Promise<Observations>
  /** The disk of a signal; `both` where images and volumes share one. */
  readonly diskOf: (signal: EvictionSignal) => Promise<StarvedDisk>
}

export interface PressureSurroundingsOptions extends Pick<PodMeter, 'listContainerStats' | 'listPodStats'> {
  readonly config: Pick<PoddConfig, 'rootDir' | 'podLogsDir'>
  readonly cgroups: CgroupSystem
  /** The directory of the images; undefined where the runtime doesn't report it. */
  readonly imagesPath: (signal: AbortSignal) => Promise<string | undefined>
}

export function createPressureSurroundings(options: PressureSurroundingsOptions): PressureSurroundings {
  const { config } = options
  const { rootDir, podLogsDir } = config
  let imagesPath: string | undefined
  let choice: CgroupChoice | undefined
  const findImages = async (signal: AbortSignal): Promise<string | undefined> => {
    imagesPath ??= await options.imagesPath(signal)
    return imagesPath
  }
  const podsCgroup = (): PodsCgroup | undefined => {
    // It is settled when the first pod is made.
    choice ??= readCgroupChoice(rootDir)
    return choice && { ...choice, system: options.cgroups }
  }
  const podsMemory = (): Amount | undefined => {
    const cgroup = podsCgroup()
    return cgroup && readPodsMemory(cgroup)
  }
  return {
    listContainerStats: options.listContainerStats,
    listPodStats: options.listPodStats,
    measureDirectory,
    podMemoryBytes(pod, spec) {
      const cgroup = podsCgroup()
      return cgroup && readPodMemory(cgroup, computeQosClass(spec), pod.uid)
    },
    logDirectory: (pod, container) => `${podLogDirectory(podLogsDir, pod)}/${container}`,
    volumeDirectories: ({ uid }, { volumes }) =>
      volumes.flatMap(({ name, emptyDir }) =>
        emptyDir === undefined || emptyDir.medium !== ''
          ? []
          : [volumeDirectory(rootDir, uid, 'empty-dir', name)],
      ),
    async observe(signals, signal) {
      const found = new Map<EvictionSignal, Observation>()
      const note = (name: EvictionSignal, amount: Amount | undefined): void => {
        if (amount !== undefined && signals.has(name)) found.set(name, amount)
      }
      const readers: readonly (readonly [readonly EvictionSignal[], () => Promise<void>])[] = [
        [['memory.available'], async () => note('memory.available', readMemoryAmount())],
        [['allocatableMemory.available'], async () => note('allocatableMemory.available', podsMemory())],
        [['pid.available'], async () => note('pid.available', readProcessAmount())],
        [
          ['nodefs.available', 'nodefs.inodesFree'],
          async () => {
            const { bytes, inodes } = await readFileSystem(rootDir)
            note('nodefs.available', bytes)
            note('nodefs.inodesFree', inodes)
          },
        ],
        [
          ['imagefs.available', 'imagefs.inodesFree'],
          async () => {
            const path = await findImages(signal)
            if (path === undefined) return
            const { bytes, inodes } = await readFileSystem(path)
            note('imagefs.available', bytes)
            note('imagefs.inodesFree', inodes)
          },
        ],
      ]
      const wanted = readers.filter(([names]) => names.some((name) => signals.has(name)))
      // Unreadable signals are left out: the others still count.
      await Promise.allSettled(wanted.map(([, read]) => read()))
      signal.throwIfAborted()
      return found
    },
    async diskOf(signal) {
      const own = signal.startsWith('nodefs.') ? 'node' : 'image'
      if (imagesPath === undefined) return own === 'node' ? 'both' : own
      const [node, image] = await Promise.all([stat(rootDir), stat(imagesPath)])
      return node.dev === image.dev ? 'both' : own
    },
  }
}
