import { rm } from 'node:fs/promises'
import type { GarbageItem } from '../../api/images.ts'
import { removeTree } from '../../base/atomic-file.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { mapBounded, Semaphore } from '../../base/waits.ts'
import { planOrphans } from '../../decide/node/plan-orphans.ts'
import type {
  Orphan,
  OrphanCollector,
  OrphanKind,
  OrphanMemory,
  OrphanPlan,
} from '../../decide/node/plan-orphans.ts'
import { isInhabited } from '../../host/cgroups/files.ts'
import type { CgroupSystem, PodCgroups } from '../../host/cgroups/layout.ts'
import type { ContainerLogDirectories } from '../../logs/container-log-directories.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import { finishPurges } from '../../volumes/claims.ts'
import { measureDiskUsage } from '../../volumes/open-inside.ts'
import { listPodDirectories, podDirectory } from '../../volumes/pod-directory.ts'
import { teardownVolumes } from '../../volumes/prepare-volumes.ts'
import { recordRemoved } from './garbage.ts'
import type { NodeJob } from './node-jobs.ts'

export interface OrphanSearch {
  /** The collectors, in order: one whose orphans depend on others' removal comes after these. */
  readonly collectors: readonly OrphanCollector[]
  /** When the oldest creating call in flight was sent (monotonic). */
  readonly makingSinceMs: () => number | undefined
}

export interface OrphanCollection {
  readonly items: readonly GarbageItem[]
  /** When the next waiting orphan can be removed (monotonic); undefined where none waits. */
  readonly nextMs: number | undefined
  /** Messages about what could not be listed or removed. */
  readonly failures: readonly string[]
}

/** Collects the remains of pods that no longer exist, one collection at a time. */
export class Orphans {
  readonly #env: OrphanSearch & { readonly clock: Clock; readonly logger: Logger }
  readonly #turn = new Semaphore(1)
  #firstSeen: OrphanMemory = new Map()

  constructor(env: OrphanSearch & { readonly clock: Clock; readonly logger: Logger }) {
    this.#env = env
  }

  /** Lists what a collection would find now; it counts as a look. */
  preview(signal: AbortSignal): Promise<OrphanCollection> {
    return this.#turn.run(async () => {
      const { plan, failures } = await this.#look(signal)
      const items = [
        ...plan.remove.map((orphan) => itemOf(orphan, 'planned')),
        ...plan.wait.map(({ orphan }) => itemOf(orphan, 'waiting')),
      ]
      return { items, nextMs: nextOf(plan), failures }
    }, signal)
  }

  /** Removes what has been without a pod for long enough. Throws only the signal's reason. */
  collect(signal: AbortSignal): Promise<OrphanCollection> {
    return this.#turn.run(async () => {
      const { collectors, logger } = this.#env
      const { plan, failures } = await this.#look(signal)
      const items = plan.wait.map(({ orphan }) => itemOf(orphan, 'waiting'))
      for (const orphan of plan.remove) {
        signal.throwIfAborted()
        const { kind, id, message } = orphan
        try {
          const collector = collectors.find((each) => each.kind === kind)
          if ((await collector?.remove(orphan)) !== true) continue
          logger.warn({ id: `${kind} ${id}`, reason: message }, 'removed an orphan')
          items.push(itemOf(orphan, 'removed'))
        } catch (error) {
          failures.push(`${kind} ${id}: ${errorMessage(error)}`)
          items.push({ ...itemOf(orphan, 'failed'), message: errorMessage(error) })
        }
      }
      return { items, nextMs: nextOf(plan), failures }
    }, signal)
  }

  async #look(signal: AbortSignal): Promise<{ plan: OrphanPlan; failures: string[] }> {
    const { clock, collectors } = this.#env
    // Read before the look: calls completed by then have their final result.
    const makingSinceMs = this.#env.makingSinceMs()
    const look = { signal }
    const found: Orphan[] = []
    const failures: string[] = []
    for (const collector of collectors) {
      signal.throwIfAborted()
      try {
        found.push(...(await collector.list(look)))
      } catch (error) {
        failures.push(`${collector.kind}: ${errorMessage(error)}`)
      }
    }
    // Later calls are not included.
    const nowMs = clock.monotonicMs()
    const plan = planOrphans({ found, firstSeen: this.#firstSeen, makingSinceMs, nowMs })
    this.#firstSeen = plan.firstSeen
    return { plan, failures }
  }
}

function nextOf({ wait }: OrphanPlan): number | undefined {
  return wait.length === 0 ? undefined : Math.min(...wait.map(({ untilMs }) => untilMs))
}

function itemOf(orphan: Orphan, outcome: GarbageItem['outcome']): GarbageItem {
  const { kind, id, message, sizeBytes } = orphan
  return {
    kind,
    id,
    name: id,
    reason: 'orphan',
    message,
    ...(sizeBytes !== undefined && { sizeBytes }),
    outcome,
  }
}

const periodMs = 10_000
/** The interval while something may have been left behind. */
const lookMs = 30_000
/** The interval when nothing was found for a while and nothing has happened. */
const restMs = 600_000
/** Removing gigabytes of a lost pod's volumes from an SD card takes minutes. */
const deadlineMs = 1_200_000
/**
 * How many looks follow a disturbance: remains of a late cancellation by a busy containerd are found only by the second
 * look, and removed by the third.
 */
const looks = 3
/** How often a failed removal is retried at the short interval. */
const maxLooks = 20

/** Removes the remains of pods that no longer exist, also those left by a killed podd or containerd. */
export function orphanCollectionJob(options: {
  readonly orphans: Pick<Orphans, 'collect'>
  /** Whether the pods are known and the runtime answers. */
  readonly isReady: () => boolean
  /** How often a sandbox was removed so far or could not be made, or containerd was started: each may leave something behind. */
  readonly disturbances: () => number
  readonly events: NodeEventRecorder
  readonly clock: Clock
}): NodeJob {
  const { clock, disturbances, events, isReady, orphans } = options
  let left = looks
  let looked = 0
  let disturbed = -1
  let dueMs = 0
  return {
    name: 'collect-orphans',
    periodMs,
    deadlineMs,
    async run(signal) {
      if (!isReady()) return
      if (disturbances() !== disturbed) {
        disturbed = disturbances()
        left = looks
        looked = 0
        dueMs = Math.min(dueMs, clock.monotonicMs() + lookMs)
      }
      if (clock.monotonicMs() < dueMs) return
      looked += 1
      const { items, nextMs, failures } = await orphans.collect(signal)
      recordRemoved(events, 'OrphansRemoved', items)
      const hasRemoved = items.some(({ outcome }) => outcome === 'removed')
      // The network of a removed sandbox is found only after it.
      left = hasRemoved || nextMs !== undefined ? looks - 1 : left - 1
      const nowMs = clock.monotonicMs()
      const isQuiet = left <= 0 || looked >= maxLooks
      dueMs = isQuiet ? nowMs + restMs : Math.min(nextMs ?? Infinity, nowMs + lookMs)
      if (failures.length > 0) throw new PoddError('GARBAGE_NOT_COLLECTED', failures.join('; '))
    },
  }
}

interface PodRemains {
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
export function podOrphans(options: PodRemains): readonly OrphanCollector[] {
  return [volumeOrphans(options), logOrphans(options), linkOrphans(options), cgroupOrphans(options)]
}

const message = 'there is no record of its pod'

function volumeOrphans({ rootDir, isKnown }: PodRemains): OrphanCollector {
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

function logOrphans({ logs, isKnown }: PodRemains): OrphanCollector {
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

function linkOrphans({ logs }: PodRemains): OrphanCollector {
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
function cgroupOrphans({ rootDir, logs, cgroups, isKnown }: PodRemains): OrphanCollector {
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

const purgePeriodMs = 3_600_000
/** Gigabytes on an SD card take minutes. */
const purgeDeadlineMs = 1_800_000

/** Completes purges of claims that were interrupted because podd was killed or data was mounted elsewhere. */
export function finishPurgesJob(rootDir: string): NodeJob {
  return {
    name: 'finish-purges',
    periodMs: purgePeriodMs,
    deadlineMs: purgeDeadlineMs,
    runsAtStart: true,
    run: () => finishPurges(rootDir),
  }
}
