import { readClocks } from '../../base/clock.ts'
import type { ClockReading } from '../../base/clock.ts'
import { newUuid } from '../../base/random.ts'
import { clockStep, moveTime } from '../../decide/plan/clock-set.ts'
import { awaitRuntime } from '../../decide/plan/progress.ts'
import { deriveStatus } from '../../decide/status/derive-status.ts'
import { newPodRecord } from '../../decide/sources/new-pod-record.ts'
import type { PodKey, PodUid } from '../../pod/values/ids.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodWorkers } from './pod-workers.ts'
import type { WantedPod } from './source-snapshots.ts'
import { toPodObject } from '../pod/display.ts'
import type { PodEnv } from '../pod/env.ts'
import { notAskedYet } from '../runtime/runtime-watch.ts'

interface Awaited {
  readonly pod: Pod
  readonly record: PodRecord
}

/**
 * Publishes pods while the runtime has not been listed, so that a runtime that never starts doesn't look like a host
 * without pods: desired pods that can't be started yet; and, if the runtime fails or is slow, the pods of an earlier
 * podd with the status from their records. (They most likely run, and should not look failed whenever podd starts.) The
 * workers of terminating pods publish those.
 */
export class AwaitedPods {
  readonly #env: PodEnv
  /** While the runtime was not listed: those of an earlier podd. */
  readonly #adopted: PodWorkers
  #sinceMs: number
  /** By which these times stand. */
  #clocks: ClockReading
  #awaited = new Map<PodKey, Awaited>()
  #shown = new Set<PodUid>()
  #problem: string | undefined
  readonly #allShown = Promise.withResolvers<void>()

  constructor(env: PodEnv, adopted: PodWorkers) {
    this.#env = env
    this.#adopted = adopted
    this.#clocks = readClocks(this.#env.clock)
    this.#sinceMs = this.#clocks.wallMs
  }

  /** Resolves when each pod of an earlier podd was shown once, or time is up. */
  get allShown(): Promise<void> {
    return this.#allShown.promise
  }

  /** Those of an earlier podd are known by now. */
  begin(): void {
    const missing = new Set([...this.#adopted.all()].map(({ state }) => state.ref.uid))
    const stop = this.#env.statuses.subscribe(({ object }) => {
      missing.delete(object.metadata.uid)
      if (missing.size === 0) this.#allShown.resolve()
    })
    void this.#allShown.promise.then(stop)
    if (missing.size === 0) this.#allShown.resolve()
  }

  /** Time is up: they are shown although the runtime hasn't said anything. */
  hurry(problem: string | undefined): void {
    if (problem !== undefined) this.tell(problem)
    this.#allShown.resolve()
  }

  /** Those that are wanted and not begun. */
  pods(): readonly Pod[] {
    return [...this.#awaited.values()].map(({ pod }) => pod)
  }

  /** The wall clock may have been set, and those that were adopted know it: what was taken by it in this boot moves. */
  reviewClock(): void {
    if (this.#moveTimes()) this.#publishAll()
  }

  #moveTimes(): boolean {
    const now = readClocks(this.#env.clock)
    const step = clockStep(this.#clocks, now)
    if (step === undefined) return false
    this.#clocks = now
    this.#sinceMs = moveTime(this.#sinceMs, step)
    for (const [key, { pod, record }] of this.#awaited)
      this.#awaited.set(key, {
        pod,
        record: { ...record, acceptedAtMs: moveTime(record.acceptedAtMs, step) },
      })
    return true
  }

  show(wanted: ReadonlyMap<PodKey, WantedPod>): void {
    this.#moveTimes()
    const adopted = new Set([...this.#adopted.all()].map(({ state }) => podKey(state.ref)))
    const awaited = new Map<PodKey, Awaited>()
    for (const [key, { document, source }] of wanted) {
      if (adopted.has(key)) continue
      const { kept } = document
      const shown = this.#awaited.get(key)?.record
      const known = kept === undefined || kept.uid === shown?.uid ? shown : undefined
      const fresh = {
        uid: known?.uid ?? kept?.uid ?? newUuid(),
        nowMs: known?.acceptedAtMs ?? kept?.createdAtMs ?? this.#env.clock.wallMs(),
        createdAtMs: undefined,
      }
      awaited.set(key, { pod: document.pod, record: newPodRecord({ ...fresh, document, source }) })
    }
    const before = this.#shown
    this.#awaited = awaited
    this.#shown = new Set([...awaited.values()].map(({ record }) => record.uid))
    for (const uid of before) if (!this.#shown.has(uid)) this.#env.statuses.removeProvisional(uid)
    this.#publishAll()
  }

  tell(problem: string): void {
    this.#problem = problem
    this.#publishAll()
  }

  /** The identity under which a pod was shown, which it keeps; can be taken once. */
  take(key: PodKey): PodRecord | undefined {
    this.#moveTimes()
    const record = this.#awaited.get(key)?.record
    this.#awaited.delete(key)
    return record
  }

  /** The runtime was listed: what was not begun by now is shown no more. */
  end(isBegun: (uid: PodUid) => boolean): void {
    for (const uid of this.#shown) if (!isBegun(uid)) this.#env.statuses.removeProvisional(uid)
    this.#shown.clear()
    this.#awaited.clear()
  }

  #publishAll(): void {
    for (const { state } of this.#problem === undefined ? [] : this.#adopted.all()) {
      if (state.record.ending === undefined)
        this.#publish({ pod: state.classedPod, record: state.record }, this.#sinceMs)
    }
    for (const awaited of this.#awaited.values()) this.#publish(awaited, awaited.record.acceptedAtMs)
  }

  /** A failing pod keeps no other from being shown. */
  #publish(awaited: Awaited, sinceMs: number): void {
    const { uid, name } = awaited.record
    try {
      this.#env.statuses.publishProvisional(uid, this.#present(awaited, sinceMs))
    } catch (error) {
      this.#env.logger.error({ pod: name, uid, err: error }, 'cannot publish the status of the pod')
    }
  }

  #present({ pod, record }: Awaited, sinceMs: number) {
    const env = this.#env
    const { uid, namespace, name } = record
    const blocked = { reason: 'RuntimeNotReady', message: this.#problem ?? notAskedYet }
    const observed = { uid, namespace, name, sandboxes: [], containers: [] }
    const clock = readClocks(this.#env.clock)
    const { status } = deriveStatus({
      pod,
      record,
      observed,
      probes: {},
      waiting: awaitRuntime({ pod, record, observed }, blocked),
      blocked,
      runtimeName: env.runtimeName(),
      hostIps: env.hostIps(),
      nowMs: sinceMs,
      clock,
    })
    return toPodObject(pod, record, { status, nodeName: env.hostName, clock })
  }
}
