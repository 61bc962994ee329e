import { objectsAt } from '../base/json.ts'
import type { JsonObject } from '../base/json.ts'
import type { ContainerStatus } from '../pod/state/status.ts'
import type { PodObject } from './resource.ts'

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
  // The reason of the pod as a whole is more specific than that a container wasn't created.
  if (status.reason !== undefined && notMade.test(reason)) reason = status.reason
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
