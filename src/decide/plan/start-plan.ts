import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodAction, Waiting } from './pod-action.ts'
import { isOutdated, newestEnd, nextRestartCount, viewContainer } from './container-view.ts'
import type { ContainerView } from './container-view.ts'
import type { Hold, PodFacts } from './pod-facts.ts'
import { backoffKey, computeRestartTiming } from './restart-policy.ts'
import { asksForRestartAll, isReset } from './restart-all.ts'
import { isRestartRequested } from './restart-request.ts'
import { previousImageHold, withPreviousImage } from './previous-image.ts'

type StartAction = Extract<PodAction, { kind: 'start-container' }>

export type StartPlan =
  | { readonly kind: 'start'; readonly action: StartAction }
  | {
      readonly kind: 'wait'
      readonly untilMs: number
      readonly waiting: Waiting
      /** What it will start with the image that it had; the one of its manifest is to be got meanwhile. */
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

/** No hold is made for longer (the cap of the image backoff); one that seems to be dates from before the clock was set back. */
const longestHoldMs = 300_000

/** What keeps the container (or the sandbox: `sandboxHold`) from being tried again for now. */
export function holdOn(facts: PodFacts, key: string): Hold | undefined {
  const hold = facts.holds.get(key)
  if (hold === undefined || facts.nowMs >= hold.untilMs) return undefined
  return hold.untilMs - facts.nowMs > longestHoldMs ? undefined : hold
}

/** Whether what a container needs is at hand, so that one that runs may be stopped for a new one's sake. */
export function canReplace(facts: PodFacts, spec: ContainerSpec): boolean {
  return facts.missingFor(spec) === undefined && facts.imageReady(spec)
}

/** Whether what runs is stopped for a container that its manifest wants instead. */
function isRenewed(facts: PodFacts, spec: ContainerSpec, view: ContainerView): boolean {
  if (view.kind !== 'live' || view.container.state !== 'running') return false
  return isOutdated(view.container, facts.specHash(spec)) && canReplace(facts, spec)
}

/** Plans the start of a container that shall run and doesn't: now, or when its backoff is over. */
export function planStart(facts: PodFacts, wanted: ContainerSpec, role: StartAction['role']): StartPlan {
  const { observed, nowMs, limits } = facts
  const history = facts.history[wanted.name]
  const view = viewContainer({ name: wanted.name, observed, history })
  const previous = withPreviousImage(facts, (key) => holdOn(facts, key), wanted, view)
  const hold = holdOn(facts, wanted.name)
  if (hold !== undefined && previous === undefined) {
    const { waiting } = hold
    const lookAgainMs = holdOn(facts, previousImageHold(wanted.name))?.untilMs ?? Infinity
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
  // Who asks for a restart, or for another container, is not made to wait, and the container is not charged for it.
  if (isRestartRequested(facts, view) || isRenewed(facts, spec, view)) return start(history?.backoff)
  // Nor is one that is taken along by the restart of all, which another one asked for.
  if (isReset(facts.restartAll, view) && !asksForRestartAll(spec, view)) return start(history?.backoff)
  // One that is stopped for its successor's sake ends now; the delay counts from the end before it.
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
