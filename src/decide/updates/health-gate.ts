/*
 * Whether a new revision of a unit is healthy: from how its changed pods are seen, to a verdict. All times are monotonic, so
 * that a clock that is set proves nothing; they begin again with podd.
 */
import { sameData } from '../../base/json.ts'
import { documentKey, isObjectDocument } from '../../pod/objects/document.ts'
import type { PodDocument, SourceDocument } from '../../pod/objects/document.ts'
import { podReferences } from '../../pod/objects/local-object.ts'
import { allContainers } from '../../pod/schema/pod-resources.ts'
import type { ContainerStatus, PodStatus } from '../../pod/state/status.ts'
import type { PodUid } from '../../pod/values/ids.ts'

export interface GateSettings {
  /** How long all changed pods have to be Ready at the same time. */
  readonly minReadyMs: number
  /** So many crashes of a pod's containers fail it. */
  readonly crashes: number
  /** How long a pod may take to be Ready once its new version is in effect. */
  readonly progressDeadlineMs: number
}

/**
 * How a changed pod is seen. `waiting`: something that passes keeps it from running (the runtime is away, the node is under
 * pressure); nothing follows from that. `held`: its new version isn't in effect, because its former version runs until it can
 * be replaced, or because the host doesn't let it run.
 */
export type PodSight = { readonly kind: 'waiting' } | HeldSight | SeenSight

interface HeldSight {
  readonly kind: 'held'
  readonly by: HeldBy
  /** What it waits for. */
  readonly message: string
  readonly progressDeadlineMs?: number | undefined
}

export interface SeenSight {
  readonly kind: 'seen'
  readonly uid: PodUid
  /** `failed`: nothing of it will run any more. */
  readonly state: 'starting' | 'ready' | 'completed' | 'failed'
  /** How often each of its changed containers has ended in a way that counts as a crash. */
  readonly crashes: Crashes
  /**
   * What runs is neither this version nor the one to go back to, but one in between, which this one can't replace yet. Its
   * crashes and its success say nothing about this one; but at the deadline nothing else would end it.
   */
  readonly isBetween?: boolean
  /** The pod was made for this revision, so that all its crashes count. */
  readonly isNew: boolean
  /** How many restarts of each container come with the change and are no crashes. */
  readonly expectedRestarts?: number | undefined
  /** The container whose startup probe has failed as often as it may. */
  readonly failedStartup?: string | undefined
  /** Of its own annotation, or of its workload. */
  readonly progressDeadlineMs?: number | undefined
  /** An image of it is being pulled: that takes as long as the link needs. */
  readonly isPulling?: boolean | undefined
  /** Of its workload. */
  readonly minReadyMs?: number | undefined
  /** Why it isn't ready, as far as is known. */
  readonly message: string
}

/** `former`: its former version runs. `host`: nothing of it does. */
export type HeldBy = 'former' | 'host'

/** By container. */
export type Crashes = Readonly<Record<string, number>>

/** How a changed pod is seen, and what is remembered of it until the next sight. */
export type PodTrack =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'held'; readonly sight: HeldSight; readonly sinceMs: number }
  | SeenTrack

export interface SeenTrack {
  readonly kind: 'seen'
  readonly sight: SeenSight
  /** Since when its new version is in effect; later by the time that pulls have taken. */
  readonly sinceMs: number
  /** Since when an image is being pulled. */
  readonly pullingSinceMs?: number | undefined
  readonly readySinceMs?: number | undefined
  /** It was Ready for long enough: that it isn't now fails nothing any more, unless it crashes. */
  readonly wasAvailable: boolean
  /** Those that don't count: from before, or before it was Ready for long enough. */
  readonly pastCrashes: Crashes
}

export function trackPod(
  before: PodTrack | undefined,
  sight: PodSight,
  settings: Pick<GateSettings, 'minReadyMs'>,
  nowMs: number,
): PodTrack {
  if (sight.kind === 'waiting') return sight
  if (sight.kind === 'held')
    return { kind: 'held', sight, sinceMs: before?.kind === 'held' ? before.sinceMs : nowMs }
  const { uid, crashes, expectedRestarts = 0, minReadyMs = settings.minReadyMs } = sight
  const known = before?.kind === 'seen' && before.sight.uid === uid ? before : undefined
  const hasCrashed =
    known !== undefined &&
    Object.entries(crashes).some(([name, count]) => count > (known.sight.crashes[name] ?? 0))
  const readySinceMs =
    sight.state !== 'ready' ? undefined : hasCrashed ? nowMs : (known?.readySinceMs ?? nowMs)
  const wasReady =
    known?.readySinceMs !== undefined && !hasCrashed && nowMs - known.readySinceMs >= minReadyMs
  const first = sight.isNew
    ? {}
    : Object.fromEntries(Object.entries(crashes).map(([name, count]) => [name, count + expectedRestarts]))
  const pastCrashes = wasReady ? crashes : (known?.pastCrashes ?? first)
  // What has run and crashed isn't waited for: its restart pulls, too, where the image is to be pulled always.
  const isFirstStart = Object.entries(crashes).every(([name, count]) => count <= (pastCrashes[name] ?? 0))
  const isPulling = sight.isPulling === true && sight.state === 'starting' && isFirstStart
  const pulledMs = known?.pullingSinceMs === undefined || isPulling ? 0 : nowMs - known.pullingSinceMs
  return {
    kind: 'seen',
    sight,
    sinceMs: known === undefined ? nowMs : known.sinceMs + pulledMs,
    pullingSinceMs: isPulling ? (known?.pullingSinceMs ?? nowMs) : undefined,
    readySinceMs,
    wasAvailable: wasReady || known?.wasAvailable === true,
    pastCrashes,
  }
}

/** The most that one of its containers has crashed. */
function crashesOf({ sight, pastCrashes }: SeenTrack): number {
  return Math.max(
    0,
    ...Object.entries(sight.crashes).map(([name, count]) => count - (pastCrashes[name] ?? 0)),
  )
}

/** A changed pod, after it was tracked. */
export interface JudgedPod {
  /** `namespace/name` */
  readonly pod: string
  readonly track: PodTrack
}

/** Why a pod fails its unit's revision. */
export interface PodFailure {
  readonly pod: string
  readonly reason: 'CrashLoopBackOff' | 'ProgressDeadlineExceeded' | 'PodFailed' | 'StartupProbeFailed'
  readonly message: string
  /** It has not been in effect: nothing is known against what it would run. */
  readonly heldBy?: HeldBy | undefined
}

/** `wakeAtMs`: when time alone may change it. */
export type UnitVerdict =
  | { readonly kind: 'healthy' }
  | {
      readonly kind: 'failed'
      readonly failures: readonly PodFailure[]
      readonly wakeAtMs: number | undefined
    }
  /** No pod failed by what it runs. `rest`: of the pods that aren't held; `may-count`: all are healthy, and those that are held have no former version. */
  | {
      readonly kind: 'held'
      readonly failures: readonly PodFailure[]
      readonly rest: 'may-count' | 'open' | 'none'
      readonly wakeAtMs: number | undefined
    }
  | { readonly kind: 'progressing'; readonly wakeAtMs: number | undefined }

/**
 * A unit's revision is healthy when all pods that it changed are at the same time; one that fails fails it. A pod that has
 * not come into effect by its deadline fails it too, as a Deployment's does (`pkg/controller/deployment/progress.go`,
 * 1.36), but isn't what the others are undone for.
 */
export function judgeUnit(pods: readonly JudgedPod[], settings: GateSettings, nowMs: number): UnitVerdict {
  const outcomes = pods.map((pod) => judgePod(pod, settings, nowMs))
  if (outcomes.every(({ kind }) => kind === 'healthy')) return { kind: 'healthy' }
  const failures = outcomes.flatMap((outcome) => (outcome.kind === 'failed' ? [outcome.failure] : []))
  const wakes = outcomes.flatMap((outcome) =>
    outcome.kind !== 'healthy' && outcome.wakeAtMs !== undefined ? [outcome.wakeAtMs] : [],
  )
  const wakeAtMs = wakes.length === 0 ? undefined : Math.min(...wakes)
  if (failures.length === 0) return { kind: 'progressing', wakeAtMs }
  const own = failures.filter(({ heldBy }) => heldBy === undefined)
  if (own.length > 0) return { kind: 'failed', failures: own, wakeAtMs }
  const rest = outcomes.filter(({ kind }) => kind !== 'failed')
  const hasFormer = failures.some(({ heldBy }) => heldBy === 'former')
  const mayCount = !hasFormer && rest.length > 0 && rest.every(({ kind }) => kind === 'healthy')
  return {
    kind: 'held',
    failures,
    rest: mayCount ? 'may-count' : rest.length > 0 || hasFormer ? 'open' : 'none',
    wakeAtMs,
  }
}

type PodOutcome =
  | { readonly kind: 'healthy' }
  | { readonly kind: 'failed'; readonly failure: PodFailure; readonly wakeAtMs: number | undefined }
  | { readonly kind: 'progressing'; readonly wakeAtMs: number | undefined }

function judgePod({ pod, track }: JudgedPod, settings: GateSettings, nowMs: number): PodOutcome {
  const undecided: PodOutcome = { kind: 'progressing', wakeAtMs: undefined }
  if (track.kind === 'waiting') return undecided
  const { message: why, progressDeadlineMs: deadlineMs = settings.progressDeadlineMs } = track.sight
  const because = why === '' ? '' : `: ${why}`
  const late = (sinceMs: number, what: string, heldBy?: HeldBy): PodOutcome => {
    if (nowMs - sinceMs < deadlineMs) return { kind: 'progressing', wakeAtMs: sinceMs + deadlineMs }
    const message = `pod ${pod} ${what} ${Math.round(deadlineMs / 1000)} s after its change${because}`
    const failure = { pod, reason: 'ProgressDeadlineExceeded', message, heldBy } as const
    return { kind: 'failed', failure, wakeAtMs: undefined }
  }
  if (track.kind === 'held') {
    const { by } = track.sight
    return late(track.sinceMs, by === 'host' ? 'may not run' : 'is not replaced', by)
  }
  const { sight } = track
  const isBetween = sight.isBetween === true
  if (sight.state === 'completed') return isBetween ? undecided : { kind: 'healthy' }
  const { minReadyMs = settings.minReadyMs } = sight
  const healthyAtMs = track.readySinceMs === undefined ? undefined : track.readySinceMs + minReadyMs
  const fail = (reason: PodFailure['reason'], message: string): PodOutcome => ({
    kind: 'failed',
    failure: { pod, reason, message },
    // Where nobody may replace it, it may yet become healthy.
    wakeAtMs: healthyAtMs,
  })
  if (!isBetween) {
    if (sight.state === 'failed') return fail('PodFailed', `pod ${pod} has failed${because}`)
    const crashes = crashesOf(track)
    if (crashes >= settings.crashes)
      return fail('CrashLoopBackOff', `pod ${pod} has crashed ${crashes} times${because}`)
    if (sight.failedStartup !== undefined)
      return fail(
        'StartupProbeFailed',
        `the startup probe of container ${sight.failedStartup} of pod ${pod} has failed`,
      )
  }
  if (healthyAtMs !== undefined) {
    if (isBetween) return undecided
    return nowMs >= healthyAtMs ? { kind: 'healthy' } : { kind: 'progressing', wakeAtMs: healthyAtMs }
  }
  if (track.wasAvailable) return undecided
  if (track.pullingSinceMs !== undefined && !isBetween)
    return late(track.pullingSinceMs, 'still waits for an image', 'host')
  return late(track.sinceMs, 'is not Ready')
}

/**
 * Tells which pods of a revision are judged: those that the one to go back to has not, or has otherwise, or that refer to a
 * ConfigMap, Secret or other object of the unit that it has otherwise. All, where there is none to go back to.
 */
export function judgesPods(
  before: readonly SourceDocument[] | undefined,
  after: readonly SourceDocument[],
): (document: PodDocument) => boolean {
  if (before === undefined) return () => true
  const known = new Map(before.map((document) => [documentKey(document), document.manifest]))
  const isChanged = (document: SourceDocument): boolean =>
    !sameData(known.get(documentKey(document)), document.manifest)
  const changed = new Set(after.filter((each) => isObjectDocument(each) && isChanged(each)).map(documentKey))
  const given = new Set(after.map(documentKey))
  for (const document of before)
    if (isObjectDocument(document) && !given.has(documentKey(document))) changed.add(documentKey(document))
  return (document) =>
    isChanged(document) || [...podReferences(document.pod)].some((reference) => changed.has(reference))
}

/** How often containers of a pod have ended in a way that counts as a crash, by its status. */
export function countCrashes(
  { initContainerStatuses = [], containerStatuses = [] }: PodStatus,
  {
    isCounted = () => true,
    restartsAlways,
  }: {
    /** Whether this container is asked about. */
    readonly isCounted?: (name: string) => boolean
    /** Whether it is to run on, so that it counts, too, where it ended well. */
    readonly restartsAlways: (name: string, isInit: boolean) => boolean
  },
): Crashes {
  const count = (statuses: readonly ContainerStatus[], isInit: boolean) =>
    statuses
      .filter(({ name }) => isCounted(name))
      .map((status) => [status.name, endsOf(status, restartsAlways(status.name, isInit))] as const)
  return Object.fromEntries([...count(initContainerStatuses, true), ...count(containerStatuses, false)])
}

/** @param countsSuccess whether an exit with 0 counts too: the container is to run on */
function endsOf({ restartCount, state, lastState }: ContainerStatus, countsSuccess: boolean): number {
  if (state.running !== undefined) return restartCount
  const ended = state.terminated ?? lastState.terminated
  if (ended === undefined) return restartCount
  return restartCount + (ended.exitCode !== 0 || countsSuccess ? 1 : 0)
}

/** Why a pod isn't ready: what its containers say. */
export function explainUnready({
  initContainerStatuses = [],
  containerStatuses = [],
  message,
}: PodStatus): string {
  const words = [...initContainerStatuses, ...containerStatuses].flatMap(
    ({ name, ready, state, lastState }) => {
      if (ready || state.terminated?.exitCode === 0) return []
      const end = state.terminated ?? lastState.terminated
      const why = [
        state.waiting?.reason,
        end === undefined
          ? undefined
          : `exit code ${end.exitCode}${end.reason === undefined ? '' : ` (${end.reason})`}`,
        firstLine(end?.message ?? state.waiting?.message),
      ].filter((part) => part !== undefined && part !== '')
      return [`container ${name} ${why.length === 0 ? 'is not ready' : why.join(', ')}`]
    },
  )
  return words.length > 0 ? words.join('; ') : (message ?? '')
}

const maxMessage = 300

function firstLine(text: string | undefined): string | undefined {
  return text?.split('\n', 1)[0]?.slice(0, maxMessage)
}

/** On a pod: `false`: its unit is not rolled back for its sake; `true`: it is, also where it was written over the API. */
export const rollbackAnnotation = 'podd.dev/rollback'

export function mayRollBack({ pod }: PodDocument): boolean {
  return pod.metadata.annotations[rollbackAnnotation] !== 'false'
}

/** Whether the pod that it replaced had ended is not known after a restart of podd. */
export function isMaybeTask({ pod }: PodDocument): boolean {
  return pod.spec.restartPolicy !== 'Always'
}

/** The containers of a pod that differ from those of the same pod of the revision to go back to; all where none does. */
export function changedContainers(
  document: PodDocument,
  earlier: PodDocument | undefined,
): ReadonlySet<string> {
  const all = allContainers(document.pod.spec)
  const known = earlier === undefined ? [] : allContainers(earlier.pod.spec)
  const changed = all.filter((spec) => !known.some((each) => sameData(each, spec)))
  return new Set((changed.length === 0 ? all : changed).map(({ name }) => name))
}
