import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { blockedWaiting } from './pod-action.ts'
import type { PodAction, Waiting } from './pod-action.ts'
import { isOutdated, newestEnd, nextRestartCount, viewContainer } from './container-view.ts'
import type { ContainerView } from './container-view.ts'
import { activeHold, containerHold, previousImageHold } from './hold.ts'
import type { PodFacts } from './pod-facts.ts'
import { needsRestart, selectResizes } from './resize.ts'
import { backoffKey, computeRestartTiming } from './restart-policy.ts'
import { asksForRestartAll, isReset } from './restart-all.ts'
import { isRestartRequested } from './restart-request.ts'
import { withPreviousImage } from './previous-image.ts'

type StartAction = Extract<PodAction, { kind: 'start-container' }>

export type StartPlan =
  | { readonly kind: 'start'; readonly action: StartAction }
  | {
      readonly kind: 'wait'
      /** Undefined: for something else than time. */
      readonly untilMs: number | undefined
      readonly waiting: Waiting
      /** It starts with its previous image; the one of its manifest is fetched meanwhile. */
      readonly awaitedImage?: string | undefined
    }

/** The kubelet's words for a container in crash backoff. */
function crashLoopMessage(facts: PodFacts, container: ContainerSpec, delayMs: number): string {
  const { namespace, name } = facts.pod.metadata
  const delay = formatGoSeconds(delayMs)
  return `back-off ${delay} restarting failed container=${container.name} pod=${name}_${namespace}(${facts.observed.uid})`
}

/** `10s`, `2m40s`, `5m0s`: a duration as Go prints it. */
function formatGoSeconds(ms: number): string {
  const seconds = Math.round(ms / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}

/**
 * The running containers that may be recreated now, by name: of another spec, on request, or for a resize. Missing
 * references of a new container matter only for these.
 *
 * @param specHashOf the hash that a container of this name created now would get
 */
export function selectRecreations(
  facts: Pick<PodFacts, 'pod' | 'observed' | 'history' | 'podResources' | 'restartRequested'>,
  specHashOf: (name: string) => string | undefined,
): ReadonlySet<string> {
  const running = facts.observed.containers.filter(({ state }) => state === 'running')
  const changed = running.filter(
    (container) =>
      facts.restartRequested?.has(container.id) === true || isOutdated(container, specHashOf(container.name)),
  )
  const resizes = selectResizes(facts).filter((resize) => needsRestart(resize))
  return new Set([...changed.map(({ name }) => name), ...resizes.map(({ spec }) => spec.name)])
}

/** Whether a container has everything it needs to be recreated, so that the running one may be stopped. */
export function canReplace(facts: PodFacts, spec: ContainerSpec): boolean {
  const known = facts.containerFacts[spec.name]
  return known !== undefined && known.missing === undefined && known.imageReady
}

/** Whether the running container is stopped in favour of the one in the changed manifest. */
function isRenewed(facts: PodFacts, spec: ContainerSpec, view: ContainerView): boolean {
  if (view.kind !== 'live' || view.container.state !== 'running') return false
  return isOutdated(view.container, facts.containerFacts[spec.name]?.specHash) && canReplace(facts, spec)
}

/** Plans the start of a container that shall run: now, or when its backoff is over. */
export function planStart(facts: PodFacts, wanted: ContainerSpec, role: StartAction['role']): StartPlan {
  const { observed, nowMs, limits } = facts
  const history = facts.history[wanted.name]
  const view = viewContainer({ name: wanted.name, observed, history })
  if (facts.blocked?.containers.includes(wanted.name) === true)
    return { kind: 'wait', untilMs: undefined, waiting: blockedWaiting(facts.blocked.message) }
  const previous = withPreviousImage(facts, wanted, view)
  const hold = activeHold(facts, containerHold(wanted.name))
  if (hold !== undefined && previous === undefined) {
    const { waiting } = hold
    const lookAgainMs = activeHold(facts, previousImageHold(wanted.name))?.untilMs ?? Infinity
    return { kind: 'wait', untilMs: Math.min(hold.untilMs, lookAgainMs), waiting }
  }
  const spec = previous ?? wanted
  const awaited = previous === undefined ? {} : { awaitedImage: wanted.image }
  const restartCount = nextRestartCount(spec.name, observed, history)
  const start = (backoff: StartAction['backoff']): StartPlan => ({
    kind: 'start',
    action: { kind: 'start-container', spec, role, restartCount, backoff, ...awaited },
  })
  if (view.kind === 'none' || (view.kind === 'live' && view.container.state === 'created'))
    return start(history?.backoff)
  // A requested restart, or one for a changed spec, neither waits nor counts for the backoff.
  if (isRestartRequested(facts, view) || isRenewed(facts, spec, view)) return start(history?.backoff)
  // The same holds for a restart of all that another container triggered.
  if (isReset(facts.restartAll, view) && !asksForRestartAll(spec, view)) return start(history?.backoff)
  // A container stopped for its successor ends now; the delay counts from the end before.
  const countedFromMs =
    view.kind === 'ended' ? view.end.finishedAtMs : newestEnd(spec.name, observed, history)?.finishedAtMs
  if (countedFromMs === undefined) return start(history?.backoff)
  const timing = computeRestartTiming({
    key: backoffKey(spec),
    previous: history?.backoff,
    finishedAtMs: view.kind === 'ended' ? view.end.finishedAtMs : nowMs,
    countedFromMs,
    nowMs,
    bootId: facts.bootId,
    limits,
  })
  if (timing.kind === 'now') return start(timing.entry)
  const message = crashLoopMessage(facts, spec, timing.delayMs)
  return {
    kind: 'wait',
    untilMs: timing.untilMs,
    waiting: { reason: 'CrashLoopBackOff', message },
    ...awaited,
  }
}
