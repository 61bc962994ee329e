import { readdirSync } from 'node:fs'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { containerStatuses } from '../../api/pod-summary.ts'
import type { EventListObject, EventObject, PodListObject } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import { unreadableSuffix } from '../../base/atomic-file.ts'
import { formatTime, systemClock } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { isJsonObject, parseJson } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { readTextIfThere } from '../../base/read-bounded.ts'
import { readNodeAddress } from '../../host/addresses.ts'
import { readHostInfo } from '../../host/facts/host-info.ts'
import { listProcesses } from '../../host/processes.ts'
import { containerdPlaces, findContainerd, findShims } from '../../runtime/containerd/process.ts'
import { listCrashReports, readEventFile, whenItHappened } from '../../store/reports.ts'
import type { ApiClient } from '../client/client.ts'
import { gatherTroubles } from './pod-troubles.ts'
import type { PodTrouble } from './pod-troubles.ts'

/** The errors that mean that the daemon is dead or doesn't answer. */
export const deadCodes: readonly string[] = ['DAEMON_NOT_RUNNING', 'DAEMON_SILENT', 'DAEMON_GONE']

/**
 * Asks the daemon, or reads its files where it doesn't answer. Throws what the client throws for another reason, and
 * where nothing says where its files are.
 * @param places those of the daemon; undefined where unknown
 */
export async function gatherStatus(
  client: ApiClient,
  places: { readonly rootDir: string; readonly runDir: string } | undefined,
  signal: AbortSignal,
): Promise<StatusReport> {
  try {
    const status = await client.status(signal)
    const pods = await client.getList<PodListObject>('/api/v1/pods', signal)
    const events = await client.get<EventListObject>('/api/v1/events', signal)
    const troubles = await gatherTroubles(client, pods.items, signal)
    const nowMs = systemClock.wallMs()
    const pastMs = Math.max(nowMs - systemClock.uptimeMs(), nowMs - longestErrorMs)
    return {
      ...status,
      running: true,
      host: summarizeHost(),
      pods: countPods(pods),
      troubles,
      lastErrors: lastErrors(events, pods, troubles, pastMs),
    }
  } catch (error) {
    if (signal.aborted || places === undefined || !deadCodes.includes(errorCode(error) ?? '')) throw error
    const message = errorMessage(error)
    return {
      ...readStateOnDisk(places.rootDir, places.runDir),
      running: false,
      message,
      host: summarizeHost(),
    }
  }
}

export interface PodCounts {
  readonly total: number
  readonly ready: number
  readonly phases: Readonly<Record<string, number>>
}

/** The report of `podd status`, from a daemon that answers or from its files. */
export type StatusReport =
  | (DaemonStatus & {
      readonly running: true
      readonly host: HostSummary
      readonly pods: PodCounts
      /** Of all that is broken now, in the order of the pods. */
      readonly troubles: readonly PodTrouble[]
      /** Of what is not broken any more, or never was a pod: the newest of each cause. */
      readonly lastErrors: readonly ShownError[]
    })
  | (StateOnDisk & {
      readonly running: false
      /** Why the daemon doesn't answer. */
      readonly message: string
      readonly host: HostSummary
    })

function countPods({ items }: PodListObject): PodCounts {
  const phases: Record<string, number> = {}
  for (const { status } of items) phases[status.phase] = (phases[status.phase] ?? 0) + 1
  return { total: items.length, ready: items.filter((pod) => isReady(pod)).length, phases }
}

/**
 * The newest of each cause, the newest last: an object and a reason. What is said of pods that are broken now tells more than
 * their events, and a back-off only that something failed before it; pods that are gone need nobody. What lasts is told again:
 * an error of the node, or of a pod that is ready or has completed, is over after a day, and after a boot.
 * @param pastMs wall milliseconds: what is before that may be over
 */
function lastErrors(
  { items }: EventListObject,
  pods: PodListObject,
  troubles: readonly PodTrouble[],
  pastMs: number,
): readonly ShownError[] {
  const broken = new Set(troubles.map(({ pod }) => pod))
  const causes = new Map<string, ShownError>()
  const isOpen = ({ kind, namespace, name, uid }: EventObject['involvedObject']): boolean =>
    kind !== 'Pod' ||
    (!broken.has(`${namespace}/${name}`) && pods.items.some(({ metadata }) => metadata.uid === uid))
  const well = new Set(
    pods.items
      .filter((pod) => isReady(pod) || pod.status.phase === 'Succeeded')
      .map(({ metadata }) => metadata.uid),
  )
  const isOver = ({ lastTimestamp, involvedObject: { kind, uid } }: EventObject): boolean =>
    Date.parse(lastTimestamp) < pastMs && (kind === 'Node' || well.has(uid))
  // One that took its time to become ready has done nothing else.
  const calm = new Set(pods.items.filter((pod) => hasOnlyBegun(pod)).map(({ metadata }) => metadata.uid))
  const warnings = items
    .filter(
      (event) =>
        event.type === 'Warning' &&
        !repeatsCause(event.reason, event.message) &&
        !(event.reason === 'Unhealthy' && calm.has(event.involvedObject.uid)) &&
        isOpen(event.involvedObject) &&
        !isOver(event),
    )
    .toSorted((a, b) => Date.parse(a.lastTimestamp) - Date.parse(b.lastTimestamp))
  for (const {
    involvedObject: { kind, namespace, name },
    reason,
    message,
    lastTimestamp,
    count,
  } of warnings) {
    const cause = `${kind}/${namespace}/${name} ${reason}`
    // In the order of the newest of each.
    causes.delete(cause)
    causes.set(cause, {
      time: lastTimestamp,
      object: kind === 'Pod' ? `Pod/${name}` : kind,
      reason,
      message,
      count,
    })
  }
  return [...causes.values()].slice(-maxErrors)
}

function isReady({ status }: PodListObject['items'][number]): boolean {
  return status.conditions.some(({ type, status: holds }) => type === 'Ready' && holds === 'True')
}

/** It is ready, and no container of it was ever restarted. */
function hasOnlyBegun(pod: PodListObject['items'][number]): boolean {
  return isReady(pod) && containerStatuses(pod).every(({ restartCount }) => restartCount === 0)
}

/** `BackOff`, and `Error: ErrImagePull`: what failed was told before. */
function repeatsCause(reason: string, message: string): boolean {
  return reason === 'BackOff' || /^Error: \w+$/u.test(message)
}

/** The state of podd from its files, while it doesn't answer. */
interface StateOnDisk {
  readonly rootDir: string
  readonly containerd: {
    /** Left out where no embedded containerd runs. */
    readonly pid?: number
    /** Pods that have processes. */
    readonly pods: number
  }
  /** `namespace/name` of the pods that podd has a record of. */
  readonly pods: readonly string[]
  readonly sources: readonly { readonly source: string; readonly path: string; readonly pods: number }[]
  readonly crashes: readonly { readonly time: string; readonly report: string }[]
  readonly lastErrors: readonly ShownError[]
  /** Files that podd has put aside. */
  readonly unreadable: readonly string[]
}

/** How many of the newest events that are warnings are shown. */
const maxErrors = 5
/** For how long at most an error that is over is shown. */
const longestErrorMs = 86_400_000

/** Changes nothing. Unreadable files are skipped. */
function readStateOnDisk(rootDir: string, runDir: string): StateOnDisk {
  const places = containerdPlaces(rootDir, runDir)
  const processes = listProcesses()
  const containerd = findContainerd(places, processes)
  const { events, boots } = readEventFile(readTextIfThere(join(rootDir, 'events.json')))
  const readAtMs = systemClock.wallMs()
  const now = { id: readHostInfo().bootId, beganAtMs: readAtMs - systemClock.uptimeMs(), readAtMs }
  return {
    rootDir,
    containerd: {
      ...(containerd === undefined ? {} : { pid: containerd.pid }),
      pods: findShims(places, processes).length,
    },
    pods: readJsonFiles(join(rootDir, 'records'))
      .map(({ content }) => `${text(content['namespace'])}/${text(content['name'])}`)
      .toSorted(),
    sources: readJsonFiles(join(rootDir, 'sources')).map(({ name, content }) => ({
      source: name,
      path: text(content['location']),
      pods: podsIn(content['documents']),
    })),
    crashes: listCrashReports(rootDir).map(({ atMs, path }) => ({ time: formatTime(atMs), report: path })),
    lastErrors: events
      .filter(({ event }) => event.type === 'Warning')
      .slice(-maxErrors)
      .map(({ event: { pod, reason, message }, last, lastAtMs, count }) => ({
        time: formatTime(whenItHappened(last, lastAtMs, boots, now)),
        object: pod === undefined ? 'Node' : `Pod/${pod.name}`,
        reason,
        message,
        count,
      })),
    unreadable: ['.', 'records', 'sources', 'sources/worked', 'sources/held', 'revisions'].flatMap(
      (directory) =>
        namesIn(join(rootDir, directory))
          .filter((name) => name.endsWith(unreadableSuffix))
          .map((name) => join(rootDir, directory, name)),
    ),
  }
}

function readJsonFiles(directory: string): readonly { name: string; content: JsonObject }[] {
  return namesIn(directory)
    .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
    .flatMap((name) => {
      // podd puts one that is no JSON aside at its next start.
      const content = parseJson(readTextIfThere(join(directory, name)))
      return isJsonObject(content) ? [{ name: name.replace(/\.json$/u, ''), content }] : []
    })
}

function podsIn(documents: unknown): number {
  if (!Array.isArray(documents)) return 0
  return documents.filter(
    (document: unknown) =>
      isJsonObject(document) && isJsonObject(document['manifest']) && document['manifest']['kind'] === 'Pod',
  ).length
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '?'
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch {
    // podd never ran here, or only root may read it.
    return []
  }
}

export interface HostSummary {
  readonly name: string
  readonly address: string
  readonly kernel: string
  readonly cpus: number
  readonly memoryBytes: number
  /** Since the boot. */
  readonly upSeconds: number
  readonly bootId: string
}

function summarizeHost(): HostSummary {
  const { hostname, kernel, cpus, memoryBytes, bootId } = readHostInfo()
  const upSeconds = Math.round(uptime())
  return { name: hostname, address: readNodeAddress(), kernel, cpus, memoryBytes, upSeconds, bootId }
}

export interface ShownError {
  /** When it last happened. */
  readonly time: string
  /** `Pod/web`, `Node`. */
  readonly object: string
  readonly reason: string
  readonly message: string
  readonly count: number
}
