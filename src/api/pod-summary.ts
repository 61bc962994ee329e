import { objectsAt } from '../base/json.ts'
import type { JsonObject } from '../base/json.ts'
import { escapeLine, withoutEscapeSequences } from '../base/text.ts'
import { upToDateCondition } from '../pod/state/status.ts'
import type { ContainerStateTerminated, ContainerStatus } from '../pod/state/status.ts'
import type { EventObject, PodObject } from './resource.ts'

/** The columns READY, STATUS and RESTARTS of a pod. */
interface PodSummary {
  readonly ready: number
  readonly total: number
  readonly status: string
  readonly restarts: number
  /** When the last one ended that was restarted; undefined where none was. */
  readonly lastRestartMs: number | undefined
}

/** As kubectl's table has it (kubernetes `pkg/printers/internalversion/printers.go`, printPod, 1.36). */
export function summarizePod(pod: PodObject): PodSummary {
  const { metadata, spec, status } = pod
  const sidecars = new Set(sidecarNames(pod))
  const init = summarizeInit(
    status.initContainerStatuses ?? [],
    sidecars,
    objectsAt(spec, 'initContainers').length,
  )
  const total = objectsAt(spec, 'containers').length + sidecars.size
  const isInitialized = status.conditions.some(
    ({ type, status }) => type === 'Initialized' && status === 'True',
  )
  let reason = init.reason ?? status.reason ?? status.phase
  let { ready } = init
  let counted = status.initContainerStatuses ?? []
  if (init.reason === undefined || isInitialized) {
    const main = status.containerStatuses ?? []
    const running = main.filter((container) => container.ready && container.state.running !== undefined)
    ready += running.length
    counted = [...counted.filter(({ name }) => sidecars.has(name)), ...main]
    // The first container's reason counts, as in kubectl, which goes through them backwards.
    reason = main.map((container) => stateReason(container)).find((word) => word !== undefined) ?? reason
    if (reason === 'Completed' && running.length > 0) {
      const isReady = status.conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
      reason = isReady ? 'Running' : 'NotReady'
    }
  }
  // The reason of the pod as a whole is more specific than that a container wasn't created, or how it ended in a shutdown.
  if (status.reason !== undefined && (notMade.test(reason) || isDrained(pod))) reason = status.reason
  const isOver = status.phase === 'Succeeded' || status.phase === 'Failed'
  if (metadata.deletionTimestamp !== undefined && !isOver) reason = 'Terminating'
  const restarts = counted.reduce((sum, { restartCount }) => sum + restartCount, 0)
  const ends = counted.map(({ lastState }) => Date.parse(lastState.terminated?.finishedAt ?? ''))
  const lastRestartMs = Math.max(...ends.filter((endMs) => !Number.isNaN(endMs)))
  return {
    ready,
    total,
    status: reason,
    restarts,
    lastRestartMs: restarts > 0 && Number.isFinite(lastRestartMs) ? lastRestartMs : undefined,
  }
}

/** It was ended for a shutdown of the host, or by `podd drain`, and starts again afterwards. */
export function isDrained({ status: { phase, reason, conditions } }: PodObject): boolean {
  const isDisrupted = conditions.some(({ type, status }) => type === 'DisruptionTarget' && status === 'True')
  return phase === 'Failed' && reason === 'Terminated' && isDisrupted
}

/** The reason of a container without any other information. */
const notMade = /^(ContainerCreating|PodInitializing|(Init:)?ContainerStatusUnknown|Init:\d+\/\d+)$/u

interface InitSummary {
  /** Sidecars that are ready. */
  readonly ready: number
  /** The pending init container; undefined once initialization is complete. */
  readonly reason: string | undefined
}

function summarizeInit(
  statuses: readonly ContainerStatus[],
  sidecars: ReadonlySet<string>,
  total: number,
): InitSummary {
  let ready = 0
  for (const [index, { name, state, started, ready: isReady }] of statuses.entries()) {
    if (state.terminated?.exitCode === 0) continue
    if (sidecars.has(name) && started === true) {
      if (isReady) ready += 1
      continue
    }
    const waiting = state.waiting?.reason
    if (state.terminated !== undefined) return { ready, reason: `Init:${endReason(state.terminated)}` }
    if (waiting !== undefined && waiting !== '' && waiting !== 'PodInitializing')
      return { ready, reason: `Init:${waiting}` }
    return { ready, reason: `Init:${index}/${total}` }
  }
  return { ready, reason: undefined }
}

function stateReason({ state }: ContainerStatus): string | undefined {
  const waiting = state.waiting?.reason
  if (waiting !== undefined && waiting !== '') return waiting
  return state.terminated === undefined ? undefined : endReason(state.terminated)
}

function endReason(end: NonNullable<ContainerStatus['state']['terminated']>): string {
  const { reason, signal, exitCode } = end
  if (reason !== undefined && reason !== '') return reason
  return signal === undefined || signal === 0 ? `ExitCode:${exitCode}` : `Signal:${signal}`
}

/** What keeps a pod from doing what it should. */
export interface TroubleFact {
  /** One word: `CrashLoopBackOff`. */
  readonly reason?: string | undefined
  readonly message?: string | undefined
  /** The container that it is about; undefined where it is about the pod as a whole. */
  readonly container?: string
  /** What tells more: the newest warning about it, or the last line of its log. */
  readonly asks?: 'event' | 'log'
  /** That log is of the run before. */
  readonly isPrevious?: boolean
  /** Only a warning tells whether it is one: of a container that is not ready, or is being created. */
  readonly isUnsure?: boolean
}

/** Reasons of containers that are on their way. */
const startingReasons: readonly string[] = ['ContainerCreating', 'PodInitializing', '']

/** Why a pod is broken, by its status; undefined where it works, is on its way, or is being deleted. */
export function explainTrouble(pod: PodObject): TroubleFact | undefined {
  const { metadata, status } = pod
  if (metadata.deletionTimestamp !== undefined || status.phase === 'Succeeded' || isDrained(pod))
    return undefined
  if (status.reason !== undefined) return { reason: status.reason, message: status.message }
  const statuses = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
  for (const container of statuses) {
    const trouble = explainContainer(container)
    if (trouble !== undefined) return { ...trouble, container: container.name }
  }
  const outdated = status.conditions.find(
    ({ type, status: is }) => type === upToDateCondition && is === 'False',
  )
  if (outdated !== undefined) return { reason: outdated.reason, message: outdated.message }
  const isReady = status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True')
  if (status.phase !== 'Running' || isReady) return undefined
  const unready = statuses.find(({ ready, state }) => !ready && state.running !== undefined)
  return unready && { reason: 'not ready', container: unready.name, asks: 'event', isUnsure: true }
}

function explainContainer({ state, lastState }: ContainerStatus): TroubleFact | undefined {
  const { waiting, terminated } = state
  const { reason = '', message } = waiting ?? {}
  if (reason === 'CrashLoopBackOff' || reason === 'RunContainerError') {
    const end = lastState.terminated
    return end === undefined
      ? { reason, message }
      : { reason, message: explainEnd(end), ...asksOf(end, true) }
  }
  if (waiting !== undefined && !startingReasons.includes(reason)) return { reason, message }
  if (waiting !== undefined && message !== undefined) return { message, asks: 'event', isUnsure: true }
  if (terminated === undefined || terminated.exitCode === 0) return undefined
  return { message: explainEnd(terminated), ...asksOf(terminated, false) }
}

/** A message says why by itself; a kill from outside is the doing of a probe, of which an event tells. */
function asksOf(
  end: ContainerStateTerminated,
  isPrevious: boolean,
): Pick<TroubleFact, 'asks' | 'isPrevious'> {
  if ((end.message ?? '') !== '') return {}
  return { asks: end.exitCode > 128 ? 'event' : 'log', isPrevious }
}

function explainEnd({ reason, exitCode, message = '' }: ContainerStateTerminated): string {
  const code = `exit code ${exitCode}`
  const what = reason === undefined || reason === 'Error' ? code : `${reason}, ${code}`
  return message === '' ? what : `${what}: ${message.trim()}`
}

/** What failed of a probe or a hook: the cause of restarts, and of a pod that isn't ready. */
const tellingReasons: readonly string[] = ['Unhealthy', 'FailedPostStartHook', 'FailedMount', 'ProbeError']

/**
 * The newest warning that tells more of a pod's trouble. Of a container that is being created, one that says the same: others
 * are of what was mended meanwhile.
 */
export function newestWarning(
  events: readonly EventObject[],
  uid: string,
  { container, message, isUnsure, asks }: TroubleFact,
): EventObject | undefined {
  if (asks !== 'event') return undefined
  const isSaid = (event: EventObject): boolean =>
    isUnsure !== true || message === undefined || event.message.trim() === message.trim()
  return events
    .filter(
      (event) =>
        event.type === 'Warning' &&
        event.involvedObject.uid === uid &&
        tellingReasons.includes(event.reason) &&
        isSaid(event) &&
        (container === undefined || event.involvedObject.fieldPath?.includes(`{${container}}`) !== false),
    )
    .toSorted((a, b) => Date.parse(a.lastTimestamp) - Date.parse(b.lastTimestamp))
    .at(-1)
}

/** The most bytes of the last lines that are read. */
const lastLinesBytes = 16 * 1024
/** And of the last line alone. */
const lastLineBytes = 4 * 1024

/**
 * The line that tells why a program ended, of the log that tells more; undefined where that is empty. Rejects as `read`.
 * @param read the answer of the API to this query of the pod's log
 */
export async function readTellingLine(
  { container = '', isPrevious }: TroubleFact,
  read: (query: Readonly<Record<string, string>>) => Promise<Uint8Array>,
): Promise<string | undefined> {
  const readLast = (lines: number, limitBytes: number): Promise<Uint8Array> =>
    read({
      container,
      tailLines: `${lines}`,
      limitBytes: `${limitBytes}`,
      ...(isPrevious === true && { previous: 'true' }),
    })
  let bytes = await readLast(10, lastLinesBytes)
  // A limit leaves the first bytes: what was cut off are the newest lines.
  if (bytes.byteLength >= lastLinesBytes) bytes = await readLast(1, lastLineBytes)
  const lines = new TextDecoder().decode(bytes).split('\n')
  return pickTellingLine(lines.map((line) => withoutEscapeSequences(line)))
}

/** What lines about a failure say. */
const failureWords =
  /\b(?:errors?|fatal|fail(?:ed|ure)?|panic|exception|denied|refused|cannot|can't|unable|no such|no space|not found|invalid|unknown|unrecognized)\b/iu

/** The one of a log's last lines that tells why its program ended: the last about a failure, or else the last one. */
export function pickTellingLine(lines: readonly string[]): string | undefined {
  const said = lines.map((line) => line.trim()).filter((line) => line !== '')
  return said.findLast((line) => failureWords.test(line)) ?? said.at(-1)
}

/**
 * Why a pod is broken, in one line; the table says the status already.
 * @param more what a warning or a log tells
 */
export function composeTrouble(pod: PodObject, fact: TroubleFact, more: string | undefined): string {
  const { status } = summarizePod(pod)
  const reason = fact.reason === status ? undefined : fact.reason
  const message = more === fact.message ? undefined : fact.message
  const parts = [fact.container, reason, message, more].filter((part) => part !== undefined && part !== '')
  const why = escapeLine(parts.join(': ').trim().replaceAll(/\s+/gu, ' '))
  return why === '' ? status : why
}

const containerLists = ['initContainers', 'containers', 'ephemeralContainers'] as const

/** The names in one of the lists of a pod's containers. */
export function containerNames(
  { spec }: PodObject,
  list: (typeof containerLists)[number],
): readonly string[] {
  return objectsAt(spec, list).flatMap(({ name }) => (typeof name === 'string' ? [name] : []))
}

/** The names in all of them. */
export function allContainerNames(pod: PodObject): readonly string[] {
  return containerLists.flatMap((list) => containerNames(pod, list))
}

/** The container of this name, as the pod's spec has it. */
export function findContainer({ spec }: PodObject, wanted: string): JsonObject | undefined {
  return containerLists.flatMap((list) => objectsAt(spec, list)).find(({ name }) => name === wanted)
}

/** The statuses of all containers, where there are any. */
export function containerStatuses({ status }: PodObject): readonly ContainerStatus[] {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses]
}

function sidecarNames({ spec }: PodObject): readonly string[] {
  return objectsAt(spec, 'initContainers').flatMap(({ name, restartPolicy }) =>
    restartPolicy === 'Always' && typeof name === 'string' ? [name] : [],
  )
}
