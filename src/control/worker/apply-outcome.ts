import { nextImageHold, withHold } from '../../decide/plan/backoff.ts'
import type { ActionOutcome } from '../actions/action-outcome.ts'
import type { PodState } from './pod-state.ts'

/** Applies the outcome of an action to the pod's state. The executor begins a requested fetch. */
export function applyOutcome(
  state: PodState,
  outcome: Exclude<ActionOutcome, { readonly kind: 'fetch-wanted' }>,
): void {
  const { memory, fresh } = state
  switch (outcome.kind) {
    case 'held':
      state.holds = withHold(state.holds, outcome.key, outcome.hold)
      break
    case 'attempt-unused':
      memory.freeSandboxAttempt(outcome.attempt)
      break
    case 'backoff-unused':
      memory.refund(outcome.container)
      break
    case 'images-fetched':
      for (const image of outcome.images) fresh.add(image)
      state.holds = withHold(state.holds, nextImageHold(outcome.container), undefined)
      break
    case 'fetch-superseded':
      state.aheadFetches.cancel(outcome.container)
      break
    case 'images-used':
      for (const image of outcome.images) fresh.delete(image)
      break
    case 'resized':
      for (const { container, to } of outcome.resizes)
        memory.changeContainer(container.name, { resized: { containerId: container.id, resources: to } })
      if (outcome.podResources !== undefined) memory.change({ podResources: outcome.podResources })
      break
  }
}
