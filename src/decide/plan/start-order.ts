/*
 * Which containers start, in which order, and when: init containers and sidecars first, each container after its
 * backoff, with its previous image while the next one is missing.
 */
import { formatDuration } from '../../base/text.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ObservedPod, ObservedSandbox } from '../../pod/state/observed.ts'
import type { ContainerHistory } from '../../pod/state/pod-record.ts'
import {
  activeRetry,
  restartKey,
  computeRestartTiming,
  containerRetry,
  isRestartableInit,
  previousImageRetry,
  restartsAfterStop,
  shouldRestart,
} from './backoff.ts'
import { isOutdated, newestEnd, nextRestartCount, viewContainer } from './container-view.ts'
import type { ContainerView } from './container-view.ts'
import { blockedWaiting } from './pod-action.ts'
import type { PodAction, StopCause, Waiting } from './pod-action.ts'
import type { PodFacts } from './pod-facts.ts'
import { needsRestart, selectResizes } from './resize.ts'
import {
  asksForRestartAll,
  currentView,
  isReset,
  isRestartRequested,
  isStoppedToRestart,
} from './restart-request.ts'

export interface InitPlan {
  /** The main containers may run. */
  readonly initialized: boolean
  readonly toStart: readonly ContainerSpec[]
  readonly toStop: readonly StopAction[]
  /** Those that run and are to be recreated as soon as what the new one needs is available. */
  readonly toFetch: readonly ContainerSpec[]
}

/** The effect of an init container on later ones. */
type Step = 'passed' | 'pending' | 'failed'

/**
 * Which init containers are to run now in this sandbox, in their order; including sidecars that exited
 * (`pkg/kubelet/kuberuntime/kuberuntime_container.go` computeInitContainerActions, Kubernetes 1.36). Undefined where one
 * failed and will not run again: the pod is over.
 */
export function computeInitSequence(facts: PodFacts, sandbox: ObservedSandbox): InitPlan | undefined {
  const toStart: ContainerSpec[] = []
  const toStop: StopAction[] = []
  const toFetch: ContainerSpec[] = []
  const view = ({ name }: ContainerSpec): ContainerView =>
    currentView(
      facts.restartAll,
      viewContainer({ name, observed: facts.observed, history: undefined, sandboxId: sandbox.id }),
    )
  const { containers, initContainers } = facts.pod.spec
  // A main container is created in a sandbox only after all init containers have completed.
  const began = containers.some((spec) => view(spec).kind !== 'none')
  const newestMade = initContainers.findLastIndex((spec) => view(spec).kind !== 'none')

  for (const [index, spec] of initContainers.entries()) {
    // Remains of completed init containers may have been removed; a later one proves that they passed.
    const passedBefore = began || index < newestMade
    if (passedBefore && !isRestartableInit(spec)) continue
    const judge = isRestartableInit(spec) ? judgeSidecar : judgeOnce
    const step = judge(facts, spec, { view: view(spec), toStart, toStop, toFetch })
    if (step === 'failed') return undefined
    // A sidecar that exits after its turn is restarted beside later containers, and no longer delays them.
    if (!passedBefore && step === 'pending') return { initialized: false, toStart, toStop, toFetch }
  }
  return { initialized: true, toStart, toStop, toFetch }
}

interface Judgement {
  readonly view: ContainerView
  readonly toStart: ContainerSpec[]
  readonly toStop: StopAction[]
  readonly toFetch: ContainerSpec[]
}

/** An init container that runs once. */
function judgeOnce(facts: PodFacts, spec: ContainerSpec, judgement: Judgement): Step {
  const { view, toStart, toStop, toFetch } = judgement
  if (view.kind === 'ended') {
    // Always means OnFailure for an init container: only a failure runs it again, or that it was stopped for it.
    const wasStopped = isStoppedToRestart(facts, view)
    if (view.end.exitCode === 0 && !wasStopped) return 'passed'
    if (!wasStopped && !shouldRestart(facts.pod.spec, spec, view.end.exitCode)) return 'failed'
  }
  if (view.kind === 'live' && view.container.state === 'running') {
    const { container } = view
    if (!isOutdated(container, facts.containerFacts[spec.name]?.specHash)) return 'pending'
    if (!canReplace(facts, spec)) {
      toFetch.push(spec)
      return 'pending'
    }
    const message = `Init container ${spec.name} definition changed`
    toStop.push({ kind: 'stop-container', container, cause: 'changed', message })
  }
  if (view.kind === 'live' && view.container.state === 'unknown') {
    if (!restartsAfterStop(facts.pod.spec, spec)) return 'failed'
    toStop.push(stopUnknown(view.container))
  }
  toStart.push(spec)
  return 'pending'
}

/** A sidecar: counts as passed once it has started, that is, once its startup probe (if any) has succeeded. */
function judgeSidecar(facts: PodFacts, spec: ContainerSpec, judgement: Judgement): Step {
  const { view, toStart, toStop, toFetch } = judgement
  if (view.kind !== 'live' || view.container.state === 'created') {
    toStart.push(spec)
    return 'pending'
  }
  const { container } = view
  const restart = (cause: StopCause, message: string): void => {
    toStop.push({ kind: 'stop-container', container, cause, message })
    toStart.push(spec)
  }
  const outdated = isOutdated(container, facts.containerFacts[spec.name]?.specHash)
  const requested = isRestartRequested(facts, view)
  /** Whether it is recreated because of its manifest or a restart request. */
  const renew = (): boolean => {
    if ((!outdated && !requested) || !canReplace(facts, spec)) return false
    if (outdated) restart('changed', `Init container ${spec.name} definition changed`)
    else restart('requested', `Init container ${spec.name} is restarted on request`)
    return true
  }
  if (container.state === 'unknown') {
    toStop.push(stopUnknown(container))
    toStart.push(spec)
    return 'pending'
  }
  if (spec.startupProbe !== undefined) {
    const startup = facts.probes[container.id]?.startup
    if (startup !== 'success') {
      if (renew()) return 'pending'
      if (startup === 'failure') restart('startup', `Init container ${spec.name} failed startup probe`)
      else if (outdated || requested) toFetch.push(spec)
      return 'pending'
    }
  }
  // From here on it has started: its later failures don't delay the following ones.
  if (renew()) return 'passed'
  if (spec.livenessProbe !== undefined && facts.probes[container.id]?.liveness === 'failure') {
    restart('liveness', `Init container ${spec.name} failed liveness probe`)
  } else if (outdated || requested) {
    toFetch.push(spec)
  }
  return 'passed'
}

type StopAction = Extract<PodAction, { kind: 'stop-container' }>

function stopUnknown(container: StopAction['container']): StopAction {
  const message = `Init container is in "unknown" state, try killing it before restart`
  return { kind: 'stop-container', container, cause: 'unknown', message }
}

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

/** Plans the start of a container that shall run: now, or when its backoff is over. */
export function planStart(facts: PodFacts, wanted: ContainerSpec, role: StartAction['role']): StartPlan {
  const { observed, nowMs, limits } = facts
  const history = facts.history[wanted.name]
  const view = viewContainer({ name: wanted.name, observed, history })
  if (facts.blocked?.containers.includes(wanted.name) === true)
    return { kind: 'wait', untilMs: undefined, waiting: blockedWaiting(facts.blocked.message) }
  const previous = withPreviousImage(facts, wanted, view)
  const retry = activeRetry(facts, containerRetry(wanted.name))
  if (retry !== undefined && previous === undefined) {
    const { waiting } = retry
    const lookAgainMs = activeRetry(facts, previousImageRetry(wanted.name))?.untilMs ?? Infinity
    return { kind: 'wait', untilMs: Math.min(retry.untilMs, lookAgainMs), waiting }
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
  // Nor does a restart of all that another container triggered.
  if (isReset(facts.restartAll, view) && !asksForRestartAll(spec, view)) return start(history?.backoff)
  // A container stopped for its successor ends now; the delay counts from the end before.
  const countedFromMs =
    view.kind === 'ended' ? view.end.finishedAtMs : newestEnd(spec.name, observed, history)?.finishedAtMs
  if (countedFromMs === undefined) return start(history?.backoff)
  const timing = computeRestartTiming({
    key: restartKey(spec),
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

/** Whether the running container is stopped in favour of the one in the changed manifest. */
function isRenewed(facts: PodFacts, spec: ContainerSpec, view: ContainerView): boolean {
  if (view.kind !== 'live' || view.container.state !== 'running') return false
  return isOutdated(view.container, facts.containerFacts[spec.name]?.specHash) && canReplace(facts, spec)
}

/**
 * The spec that an exited or stopping container is restarted with while the new image of its changed manifest is not
 * present: its own, with the previous image. This applies to a container that ran when its manifest was changed, and to
 * any other once the new image can't be pulled. Undefined if it had no other image, or if that was removed too. (The
 * kubelet does not run it until the new image is present. On an unattended host, the previous version is better than
 * none.)
 */
function withPreviousImage(
  facts: Pick<PodFacts, 'pod' | 'history' | 'containerFacts' | 'retries' | 'nowMs'>,
  spec: ContainerSpec,
  view: ContainerView,
): ContainerSpec | undefined {
  const { name, image } = spec
  const history = facts.history[name]
  const had = previousImage(view, history)
  if (had === undefined || had === image || facts.containerFacts[name]?.imageReady === true) return undefined
  if (activeRetry(facts, previousImageRetry(name)) !== undefined) return undefined
  const retry = activeRetry(facts, containerRetry(name))
  const isStopped = view.kind === 'live' && view.container.state !== 'created'
  const isAwaited = history?.awaitedImage === image && !hasCompleted(facts, spec, view)
  const goesOn = retry === undefined ? isStopped || isAwaited : retry.image === image
  return goesOn ? { ...spec, image: had, imagePullPolicy: 'Never' } : undefined
}

/** The image of the newest container that has run. */
function previousImage(view: ContainerView, history: ContainerHistory | undefined): string | undefined {
  if (view.kind === 'none') return undefined
  if (view.kind === 'ended') return view.end.image
  return view.container.state === 'created' ? history?.ended?.image : view.container.image
}

/** Whether it has completed, so that it no longer waits for an image. */
function hasCompleted({ pod }: Pick<PodFacts, 'pod'>, spec: ContainerSpec, view: ContainerView): boolean {
  if (view.kind !== 'ended' || view.end.exitCode !== 0) return false
  const runsOnce = pod.spec.initContainers.some(({ name }) => name === spec.name) && !isRestartableInit(spec)
  return runsOnce || !shouldRestart(pod.spec, spec, 0)
}

/** The kubelet's words for a container in crash backoff. */
function crashLoopMessage(facts: PodFacts, container: ContainerSpec, delayMs: number): string {
  const { namespace, name } = facts.pod.metadata
  return `back-off ${formatDuration(delayMs)} restarting failed container=${container.name} pod=${name}_${namespace}(${facts.observed.uid})`
}

/** Whether a container has everything it needs to be recreated, so that the running one may be stopped. */
export function canReplace(facts: PodFacts, spec: ContainerSpec): boolean {
  const known = facts.containerFacts[spec.name]
  return known !== undefined && known.missing === undefined && known.imageReady
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

/** By container: the image that it will run without after these actions; undefined where it no longer waits for one. */
export function selectAwaitedImages(
  actions: readonly PodAction[],
  { containers }: Pick<ObservedPod, 'containers'>,
): readonly (readonly [container: string, image: string | undefined])[] {
  return actions.flatMap((action) => {
    if (action.kind === 'start-container') return [[action.spec.name, action.awaitedImage] as const]
    if (action.kind !== 'fetch-image') return []
    const { name, image } = action.spec
    const isNew = containers.find((container) => container.name === name)?.image !== image
    return [[name, isNew ? image : undefined] as const]
  })
}
