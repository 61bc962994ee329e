import { PoddError } from '../../base/errors.ts'
import { withoutContainer } from '../../decide/plan/backoff.ts'
import { selectOpenRestarts, selectRestarts } from '../../decide/plan/restart-request.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodState } from './pod-state.ts'

/**
 * Records that these containers are to be recreated (all except completed init containers, if none is named), at once
 * and without increasing their backoff, whatever the restart policy. Returns their names. Throws PoddError
 * RESTART_REFUSED for a pod that doesn't run, or a running container that could not be created now because a reference
 * is missing, and RECORD_WRITE if the request can't be recorded: then nothing is restarted.
 */
export async function requestRestart(
  state: PodState,
  wanted: readonly string[] | undefined,
  missingFor: (container: ContainerSpec) => string | undefined,
): Promise<readonly string[]> {
  const { memory, ref } = state
  const refuse = (message: string): PoddError => new PoddError('RESTART_REFUSED', message)
  if (memory.record.ending !== undefined) throw refuse(`pod ${ref.name} is terminating`)
  if (state.hasEnded) throw refuse(`pod ${ref.name} has finished`)
  if (state.stage !== 'active') throw refuse(`pod ${ref.name} does not run yet`)
  const choice = selectRestarts(state.restartFacts, wanted)
  if ('refused' in choice) {
    throw refuse(
      choice.why === 'runs-once'
        ? `container ${choice.refused} of pod ${ref.name} is an init container, which runs once`
        : `container ${choice.refused} is not valid for pod ${ref.name}`,
    )
  }
  for (const spec of [...state.pod.spec.initContainers, ...state.pod.spec.containers]) {
    const runs = state.observed.containers.some(
      (container) => container.name === spec.name && container.state === 'running',
    )
    const missing = runs && choice.names.includes(spec.name) ? missingFor(spec) : undefined
    if (missing !== undefined)
      throw refuse(`container ${spec.name} of pod ${ref.name} keeps running: ${missing}`)
  }
  // A request that was refused must not be carried out later.
  await memory.commit(({ restartRequested = [] }) => ({
    restartRequested: [...new Set([...restartRequested, ...choice.ids])],
  }))
  for (const container of choice.names) state.holds = withoutContainer(state.holds, container)
  return choice.names
}

/** A restart is done when the container has a successor. */
export function forgetDoneRestarts({ memory, restartFacts }: PodState): void {
  for (const key of ['restartRequested', 'restartsDue', 'restartAll'] as const) {
    const wanted = memory.record[key]
    if (wanted === undefined) continue
    const open = selectOpenRestarts(restartFacts, wanted)
    if (open.length === wanted.length) continue
    memory.change({ [key]: open.length === 0 ? undefined : open })
  }
}
