import type { PodObject } from '../../api/resource.ts'
import type { Clock } from '../../base/clock.ts'
import { Histogram } from '../../base/histogram.ts'
import type { ContainerStatus } from '../../pod/state/status.ts'
import type { ContainerType, PassKind, PodCounts, TerminationCount } from '../../pod/state/usage.ts'
import type { ResourceStore } from './resource-store.ts'

// The bounds of the kubelet's metrics (`pkg/kubelet/metrics/metrics.go`, 1.36).
const startBounds = [
  0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700,
  3600,
]
const passBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * Counts what the kubelet counts of pods and containers: starts and their failures when they are tried
 * (`pkg/kubelet/kuberuntime/kuberuntime_manager.go` SyncPod, 1.36), terminated containers when their status is first shown
 * (`pkg/kubelet/status/status_manager.go` updateStatusInternal), and how long pods take to run and passes take
 * (`pkg/kubelet/kubelet.go` SyncPod, `pod_workers.go`). What was before podd started, the podd before it has counted.
 */
export class PodCounters {
  readonly #clock: Clock
  readonly #sinceMs: number
  readonly #terminations = new Map<string, TerminationCount>()
  /** By pod: its containers that are shown as terminated. */
  readonly #ended = new Map<string, ReadonlySet<string>>()
  readonly #starts = new Map<ContainerType, number>()
  readonly #failedStarts = new Map<string, { type: ContainerType; code: string; count: number }>()
  /** When pods that do not run yet were first shown (monotonic milliseconds). */
  readonly #pending = new Map<string, number>()
  readonly #podStarts = new Histogram(startBounds)
  readonly #passes = new Map<PassKind, Histogram>()

  constructor(clock: Clock) {
    this.#clock = clock
    const nowMs = clock.wallMs()
    // Statuses tell whole seconds.
    this.#sinceMs = nowMs - (nowMs % 1000)
  }

  /** Counts what is shown of pods from now on. */
  follow(pods: Pick<ResourceStore<PodObject>, 'subscribe'>): void {
    pods.subscribe(({ type, object }) => {
      if (type !== 'DELETED') return this.#note(object)
      this.#ended.delete(object.metadata.uid)
      this.#pending.delete(object.metadata.uid)
    })
  }

  noteStart(type: ContainerType): void {
    this.#starts.set(type, (this.#starts.get(type) ?? 0) + 1)
  }

  noteFailedStart(type: ContainerType, code: string): void {
    const count = this.#failedStarts.get(`${type} ${code}`)?.count ?? 0
    this.#failedStarts.set(`${type} ${code}`, { type, code, count: count + 1 })
  }

  /** @param sinceMs when it began (monotonic milliseconds) */
  notePass(kind: PassKind, sinceMs: number): void {
    const durations = this.#passes.get(kind) ?? new Histogram(passBounds)
    this.#passes.set(kind, durations)
    durations.observe((this.#clock.monotonicMs() - sinceMs) / 1000)
  }

  counts(): PodCounts {
    return {
      terminations: [...this.#terminations.values()],
      starts: [...this.#starts].map(([type, count]) => ({ type, count })),
      failedStarts: [...this.#failedStarts.values()],
      podStarts: this.#podStarts.read(),
      passes: [...this.#passes].map(([kind, durations]) => ({ kind, durations: durations.read() })),
    }
  }

  #note(pod: PodObject): void {
    this.#noteStarted(pod)
    const { uid } = pod.metadata
    const groups = [
      ['container', pod.status.containerStatuses],
      ['init_container', pod.status.initContainerStatuses],
      ['ephemeral_container', pod.status.ephemeralContainerStatuses],
    ] as const
    const known = this.#ended.get(uid)
    const ended = new Set<string>()
    for (const [type, statuses = []] of groups)
      for (const { name, state } of statuses) {
        if (state.terminated === undefined) continue
        ended.add(name)
        if (known?.has(name) !== true) this.#noteEnd(type, state.terminated)
      }
    if (ended.size > 0) this.#ended.set(uid, ended)
    else this.#ended.delete(uid)
  }

  #noteStarted({ metadata: { uid, creationTimestamp }, status: { phase } }: PodObject): void {
    const sinceMs = this.#pending.get(uid)
    if (phase !== 'Pending') {
      if (sinceMs === undefined) return
      this.#pending.delete(uid)
      if (phase === 'Running') this.#podStarts.observe((this.#clock.monotonicMs() - sinceMs) / 1000)
    } else if (sinceMs === undefined && Date.parse(creationTimestamp) >= this.#sinceMs)
      this.#pending.set(uid, this.#clock.monotonicMs())
  }

  #noteEnd(
    type: ContainerType,
    { exitCode, reason = '', finishedAt = '' }: NonNullable<ContainerStatus['state']['terminated']>,
  ): void {
    if (Date.parse(finishedAt) < this.#sinceMs) return
    const key = `${type} ${exitCode} ${reason}`
    const count = (this.#terminations.get(key)?.count ?? 0) + 1
    this.#terminations.set(key, { type, exitCode, reason, count })
  }
}
