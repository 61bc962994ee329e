import { isKnownHash } from '../../pod/values/hash.ts'
import type { SandboxId } from '../../pod/values/ids.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerHistory, EndedContainer } from '../../pod/state/pod-record.ts'

/**
 * The newest container of one name, from the runtime and the record: a container that was removed from the runtime
 * still counts as exited.
 */
export type ContainerView =
  | { readonly kind: 'none' }
  | { readonly kind: 'live'; readonly container: ObservedContainer }
  | {
      readonly kind: 'ended'
      readonly end: EndedContainer
      readonly container: ObservedContainer | undefined
    }

/** How an exited container ended, in the record's form. */
export function endOf(container: ObservedContainer): EndedContainer {
  return {
    containerId: container.id,
    restartCount: container.restartCount,
    exitCode: container.exitCode ?? 0,
    ...(container.provisional === true ? { provisional: true } : {}),
    reason: container.reason,
    message: container.message,
    startedAtMs: container.startedAtMs,
    finishedAtMs: container.finishedAtMs ?? container.createdAtMs,
    image: container.image,
    imageId: container.imageId,
    ...(container.user === undefined ? {} : { user: container.user }),
    ...(container.stopSignal === undefined ? {} : { stopSignal: container.stopSignal }),
  }
}

/** The newest container called `name`; with `sandboxId`, of that sandbox only (the record is then ignored). */
export function viewContainer(facts: {
  readonly name: string
  readonly observed: ObservedPod
  readonly history: ContainerHistory | undefined
  readonly sandboxId?: SandboxId
}): ContainerView {
  const { name, observed, history, sandboxId } = facts
  const newest = observed.containers.find(
    (c) => c.name === name && (sandboxId === undefined || c.sandboxId === sandboxId),
  )
  const recorded = sandboxId === undefined ? history?.ended : undefined
  if (newest === undefined || (recorded !== undefined && recorded.restartCount > newest.restartCount)) {
    return recorded === undefined ? { kind: 'none' } : { kind: 'ended', end: recorded, container: undefined }
  }
  if (newest.state !== 'exited') return { kind: 'live', container: newest }
  return {
    kind: 'ended',
    end: recorded?.containerId === newest.id ? recorded : endOf(newest),
    container: newest,
  }
}

/** The end of the newest exited container of this name; a newer one may be alive. */
export function newestEnd(
  name: string,
  observed: ObservedPod,
  history: ContainerHistory | undefined,
): EndedContainer | undefined {
  const exited = observed.containers.find((c) => c.name === name && c.state === 'exited')
  const recorded = history?.ended
  if (exited === undefined || (recorded !== undefined && recorded.restartCount >= exited.restartCount))
    return recorded
  return endOf(exited)
}

/**
 * Whether a container was created from another spec. A hash of an unknown version can't be compared and counts as
 * equal.
 */
export function isOutdated(container: ObservedContainer, specHash: string | undefined): boolean {
  return specHash !== undefined && isKnownHash(container.specHash) && container.specHash !== specHash
}

/** Whether it runs, for all that is known. */
export function isAlive({ state }: Pick<ObservedContainer, 'state'>): boolean {
  return state === 'running' || state === 'unknown'
}

/** Whether it was created and no process of it can have run. */
export function isUnrun({ state, cancelled }: ObservedContainer): boolean {
  return state === 'created' && cancelled !== 'may-have-run'
}

/**
 * The attempt number of the next container of this name: one more than that of any container that ran, or may have. A
 * container that was created and never started is removed before its successor is created with the same number.
 */
export function nextRestartCount(
  name: string,
  observed: ObservedPod,
  history: ContainerHistory | undefined,
): number {
  const numbers = observed.containers
    .filter((c) => c.name === name)
    .map((c) => (isUnrun(c) ? c.restartCount : c.restartCount + 1))
  if (history?.ended !== undefined) numbers.push(history.ended.restartCount + 1)
  return Math.max(0, ...numbers)
}
