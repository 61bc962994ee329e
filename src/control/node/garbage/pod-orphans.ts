import { rm } from 'node:fs/promises'
import { removeTree } from '../../../base/atomic-file.ts'
import { mapBounded } from '../../../base/waits.ts'
import { PoddError, errorMessage } from '../../../base/errors.ts'
import type { OrphanCollector, OrphanKind } from '../../../decide/node/plan-orphans.ts'
import type { PodCgroups, CgroupSystem } from '../../../host/cgroups/layout.ts'
import { isInhabited } from '../../../host/cgroups/files.ts'
import type { ContainerLogDirectories } from '../../../logs/container-log-directories.ts'
import type { PodUid } from '../../../pod/values/ids.ts'
import { measureDiskUsage } from '../../../volumes/open-inside.ts'
import { listPodDirectories, podDirectory } from '../../../volumes/pod-directory.ts'
import { teardownVolumes } from '../../../volumes/prepare-volumes.ts'

export interface PodOrphansOptions {
  readonly rootDir: string
  readonly logs: Pick<ContainerLogDirectories, 'listOwn' | 'listMarked' | 'listDeadLinks'>
  /** The cgroups last used for pods; undefined before the first pod. */
  readonly cgroups: () => RecordedCgroups | undefined
  /** Whether there is a record of the pod, readable or not, or the runtime has something of it. */
  readonly isKnown: (uid: PodUid) => boolean
}

/** The recorded root of the pods' cgroups. */
export interface RecordedCgroups {
  readonly tree: PodCgroups
  readonly system: CgroupSystem
  /** Whether a kubelet or another podd on this host may have its pods below the same root. */
  readonly isShared: boolean
}

/**
 * The remains of pods whose records were lost: their directories (`pkg/kubelet/kubelet_volumes.go`,
 * cleanupOrphanedPodDirs, 1.36), logs and links to logs (`pkg/kubelet/kuberuntime/kuberuntime_gc.go`,
 * evictPodLogsDirectories), and cgroups (`pkg/kubelet/kubelet_pods.go`, cleanupOrphanedPodCgroups).
 */
export function podOrphans(options: PodOrphansOptions): readonly OrphanCollector[] {
  return [volumeOrphans(options), logOrphans(options), linkOrphans(options), cgroupOrphans(options)]
}

const message = 'there is no record of its pod'

function volumeOrphans({ rootDir, isKnown }: PodOrphansOptions): OrphanCollector {
  return {
    kind: 'volumes',
    async list() {
      const uids = (await listPodDirectories(rootDir)).filter((uid) => !isKnown(uid))
      return mapBounded(uids, (uid) => sized('volumes', uid, message, podDirectory(rootDir, uid)))
    },
    async remove({ id }) {
      if (isKnown(id)) return false
      await teardownVolumes(rootDir, id)
      return true
    },
  }
}

function logOrphans({ logs, isKnown }: PodOrphansOptions): OrphanCollector {
  const find = async () => (await logs.listOwn()).filter(({ uid }) => !isKnown(uid))
  return {
    kind: 'logs',
    list: async () => mapBounded(await find(), ({ path }) => sized('logs', path, message, path)),
    async remove({ id }) {
      if (!(await find()).some(({ path }) => path === id)) return false
      await removeTree(id)
      return true
    },
  }
}

function linkOrphans({ logs }: PodOrphansOptions): OrphanCollector {
  return {
    kind: 'log-link',
    list: async () =>
      (await logs.listDeadLinks()).map((id) => ({
        kind: 'log-link',
        id,
        message: 'the log of its pod is gone',
      })),
    async remove({ id }) {
      if (!(await logs.listDeadLinks()).includes(id)) return false
      await rm(id, { force: true })
      return true
    },
  }
}

/**
 * Only empty cgroups: processes in a cgroup end with their container. With a shared root, only those of pods of which
 * this podd has found another trace; otherwise all except those of pods whose logs belong to another podd.
 */
function cgroupOrphans({ rootDir, logs, cgroups, isKnown }: PodOrphansOptions): OrphanCollector {
  // A pod's directories are removed before its cgroup.
  const made = new Set<PodUid>()
  const find = async (): Promise<readonly PodUid[]> => {
    const found = cgroups()
    if (found === undefined) return []
    const { tree, system, isShared } = found
    const pods = tree.listPods()
    const directories = await listPodDirectories(rootDir)
    const marked = await logs.listMarked()
    const own = new Set([...directories, ...marked.filter(({ isOwn }) => isOwn).map(({ uid }) => uid)])
    const present = new Set(pods.map(({ uid }) => uid))
    for (const uid of present) if (own.has(uid) || isKnown(uid)) made.add(uid)
    for (const uid of made) if (!present.has(uid)) made.delete(uid)
    const others = new Set(marked.filter(({ isOwn }) => !isOwn).map(({ uid }) => uid))
    const mayGo = (uid: PodUid): boolean => made.has(uid) || !(isShared || others.has(uid))
    const left = pods.filter(({ uid }) => mayGo(uid) && !isKnown(uid))
    return left.filter((pod) => !isInhabited(system, tree.parentOf(pod))).map(({ uid }) => uid)
  }
  return {
    kind: 'cgroup',
    list: async () =>
      (await find()).map((id) => ({ kind: 'cgroup', id, message: `${message}, and it is empty` })),
    async remove({ id }) {
      if (!(await find()).includes(id)) return false
      const left = (await cgroups()?.tree.removePod(id)) ?? []
      if (left.length > 0) throw new PoddError('GARBAGE_NOT_COLLECTED', `cannot remove ${left.join(', ')}`)
      return true
    },
  }
}

async function sized(kind: OrphanKind, id: string, why: string, path: string) {
  try {
    return { kind, id, message: why, sizeBytes: await measureDiskUsage(path) }
  } catch (error) {
    return { kind, id, message: `${why} (size unknown: ${errorMessage(error)})` }
  }
}
