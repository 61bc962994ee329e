/* What is kept of a failed revision for whoever looks: how its containers ended, and what they said last. */
import type { PodFailure } from '../../decide/updates/health-gate.ts'
import type { ContainerEvidence } from '../../decide/updates/unit-revisions.ts'
import type { ContainerStatus } from '../../pod/state/status.ts'
import type { PodKey, PodRef } from '../../pod/values/ids.ts'
import type { PodEnv } from '../pod/env.ts'
import type { PodWorker } from '../pod/worker.ts'

/** How long the last log lines of a failed pod may take to be read. */
const evidenceMs = 2000
/** Of how many failed pods, and how many lines of each log. */
const evidenceLines = 10

/** How the containers of failed pods are, with their last log lines; what takes long is left out. */
export async function gatherEvidence(
  { statuses, clock, logs }: Pick<PodEnv, 'statuses' | 'clock' | 'logs'>,
  failures: readonly PodFailure[],
  holder: (key: PodKey) => PodWorker | undefined,
): Promise<readonly ContainerEvidence[]> {
  const late = Promise.withResolvers<undefined>()
  const timer = clock.startTimer(evidenceMs, () => late.resolve(undefined))
  const found = failures.slice(0, evidenceLines).flatMap(({ pod }) => {
    const worker = holder(pod)
    const status = worker && statuses.find(worker.ref.uid)?.status
    if (worker === undefined || status === undefined) return []
    const { initContainerStatuses = [], containerStatuses = [] } = status
    return [...initContainerStatuses, ...containerStatuses]
      .filter(({ ready, state }) => !ready && state.terminated?.exitCode !== 0)
      .map(async (container) => {
        const lines = await Promise.race([readLines(logs, worker.ref, container), late.promise])
        return evidenceOf(pod, container, lines ?? [])
      })
  })
  const evidence = await Promise.all(found)
  timer.cancel()
  return evidence
}

async function readLines(
  logs: PodEnv['logs'],
  ref: PodRef,
  { name, restartCount, state, containerID }: ContainerStatus,
): Promise<readonly string[]> {
  if (containerID === undefined) return []
  // One that has just been started again may have said nothing yet.
  const instances =
    state.running === undefined || restartCount === 0 ? [restartCount] : [restartCount, restartCount - 1]
  for (const instance of instances) {
    // Without its log, how it ended says the rest.
    const text = await logs.tail(ref, name, instance).catch(() => '')
    const lines = text.split('\n').filter((line) => line !== '')
    if (lines.length > 0) return lines.slice(-evidenceLines)
  }
  return []
}

function evidenceOf(
  pod: string,
  { name, state, lastState }: ContainerStatus,
  lines: readonly string[],
): ContainerEvidence {
  const end = state.terminated ?? lastState.terminated
  const message = end?.message ?? state.waiting?.message
  return {
    pod,
    container: name,
    ...(end !== undefined && { exitCode: end.exitCode }),
    ...((end?.reason ?? state.waiting?.reason) !== undefined && {
      reason: end?.reason ?? state.waiting?.reason,
    }),
    ...(message !== undefined && { message: message.slice(0, 1000) }),
    lines,
  }
}
