import { PoddError, errorMessage } from '../../base/errors.ts'
import { endOf } from '../../decide/plan/container-view.ts'
import { explainEnd } from '../../decide/status/explain-end.ts'
import { findOomKilled, oomKilled } from '../../decide/status/find-oom-killed.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { ProbeVerdicts } from '../../decide/plan/pod-facts.ts'
import type { ContainerId, PodUid } from '../../pod/values/ids.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerHistory, EndedContainer, PodRecord } from '../../pod/state/pod-record.ts'

export interface PodMemoryDeps {
  /** Another one after each boot of the host. */
  readonly bootId: string
  readonly records: { save(record: PodRecord): Promise<void>; remove(uid: PodUid): Promise<void> }
  /** What a container said at its end; never rejects. */
  readonly readEndMessage: (container: ObservedContainer) => Promise<string>
  /**
   * How often the kernel has killed in the pod's cgroup for memory, but for what lives; undefined where that can't be
   * known. Never rejects.
   */
  readonly countOomKills: (observed: ObservedPod) => Promise<number | undefined>
  /** A write failed of which nothing depends for now; told once for each reason. */
  readonly onUnwritten: (message: string) => void
}

/**
 * What podd remembers of one pod: its record, in memory and on disk. Changed by the pod's worker alone,
 * and written when that says so.
 */
export class PodMemory {
  readonly #deps: PodMemoryDeps
  #record: PodRecord
  /** Why the last write of which nothing depended failed. */
  #unwritten: string | undefined
  #freeAttempt: number | undefined
  /** What is on disk; differs from the record while the disk can't be written. */
  #saved: PodRecord | undefined
  /** The write in flight; the next begins when it is done, so that none overtakes a later one. */
  #writing: Promise<unknown> = Promise.resolve()

  constructor(deps: PodMemoryDeps, initial: { readonly record: PodRecord; readonly saved: boolean }) {
    this.#deps = deps
    this.#record = initial.record
    this.#saved = initial.saved ? initial.record : undefined
  }

  get record(): PodRecord {
    return this.#record
  }

  /** Everything that is known stands on disk. */
  get isSaved(): boolean {
    return this.#saved === this.#record
  }

  /** More is not on disk than since when conditions hold: a next podd could not find it out again. */
  get isAhead(): boolean {
    if (this.#saved === undefined || this.isSaved) return this.#saved === undefined
    const saved = new Map<string, unknown>(Object.entries(this.#saved))
    return Object.entries(this.#record).some(
      ([field, value]) => field !== 'conditions' && saved.get(field) !== value,
    )
  }

  change(fields: Partial<PodRecord>): void {
    this.#record = { ...this.#record, ...fields }
  }

  /** Holds an equal manifest in place of the record's own: to compare the two again costs nothing then. */
  shareManifest(manifest: PodRecord['manifest']): void {
    if (!this.isSaved || this.#record.manifest === manifest) return
    this.change({ manifest })
    this.#saved = this.#record
  }

  changeContainer(name: string, fields: Partial<ContainerHistory>): void {
    const { containers } = this.#record
    this.change({ containers: { ...containers, [name]: { ...containers[name], ...fields } } })
  }

  /** Records the backoff of a restart. */
  charge({ spec, backoff }: Extract<PodAction, { kind: 'start-container' }>): void {
    if (backoff === undefined || this.#record.containers[spec.name]?.backoff === backoff) return
    this.changeContainer(spec.name, { backoff })
  }

  /**
   * The number of the sandbox that is about to be made. None is given twice, but for those that were not used: the
   * runtime may have a sandbox that it doesn't list, and where it finds two of one name it doesn't start any more
   * (containerd 1.6 to 2.1, recovery of the CRI plugin).
   * @param least one more than that of the newest sandbox that is listed
   */
  takeSandboxAttempt(least: number): number {
    const attempt = Math.max(least, this.#freeAttempt ?? this.#record.sandboxAttempts ?? 0)
    this.#freeAttempt = undefined
    const { bootId: sandboxBootId } = this.#deps
    const { record } = this
    if (record.sandboxAttempts !== attempt + 1 || record.sandboxBootId !== sandboxBootId)
      this.change({ sandboxAttempts: attempt + 1, sandboxBootId })
    return attempt
  }

  /** Nothing bears this number: it is given again. */
  freeSandboxAttempt(attempt: number): void {
    this.#freeAttempt = attempt
  }

  /** Of what an earlier manifest asked for: what its starts have cost, and which images were waited for. */
  forgetAttempts(): void {
    for (const name of Object.keys(this.#record.containers))
      this.changeContainer(name, { backoff: undefined, awaitedImage: undefined })
  }

  /** Records how containers exited, before anything removes them. */
  async rememberEnds(observed: ObservedPod): Promise<void> {
    const { containers } = observed
    const isNews = ({ name, state, restartCount }: ObservedContainer): boolean =>
      state === 'exited' && restartCount > (this.#record.containers[name]?.ended?.restartCount ?? -1)
    const isKnownBetter = ({ id, name, state, provisional }: ObservedContainer): boolean => {
      const known = this.#record.containers[name]?.ended
      return (
        state === 'exited' && provisional !== true && known?.foretold === true && known.containerId === id
      )
    }
    const news = containers.filter((container) => isNews(container))
    const oomKilledId = news.length > 0 ? await this.#findOomKilled(observed, news) : undefined
    // Oldest first, so that each end pushes the one before it back.
    for (const container of containers.toReversed()) {
      if (isNews(container)) {
        const endedBefore = this.#record.containers[container.name]?.ended
        const isOomKill = container.id === oomKilledId
        this.changeContainer(container.name, {
          ended: await this.#readEnd(container, isOomKill),
          endedBefore,
        })
      } else if (isKnownBetter(container)) {
        const isOomKill = this.#record.containers[container.name]?.ended?.reason === oomKilled
        this.changeContainer(container.name, { ended: await this.#readEnd(container, isOomKill) })
      } else {
        this.#learnOfOomKill(container)
      }
    }
  }

  async #findOomKilled(
    observed: ObservedPod,
    news: readonly ObservedContainer[],
  ): Promise<ContainerId | undefined> {
    const before = this.#record.oomKills
    const now = await this.#deps.countOomKills(observed)
    if (now !== undefined && now !== before) this.change({ oomKills: now })
    return findOomKilled(news, before, now)
  }

  /** An OOM event may arrive after the exit. */
  #learnOfOomKill({ id, name, state, reason }: ObservedContainer): void {
    const known = this.#record.containers[name]?.ended
    if (state !== 'exited' || reason !== oomKilled || known?.containerId !== id) return
    if (known.reason !== reason) this.changeContainer(name, { ended: { ...known, reason } })
  }

  /**
   * Records which containers have passed their startup probe, so that the next podd doesn't probe them again, and
   * which are ready, so that they stay ready meanwhile.
   */
  rememberProbes({ containers }: ObservedPod, probes: ProbeVerdicts): void {
    for (const { id, name, state } of containers) {
      if (state !== 'running') continue
      const { startedUp, ready } = this.#record.containers[name] ?? {}
      if (startedUp !== id && probes[id]?.startup === 'success') this.changeContainer(name, { startedUp: id })
      const readiness = probes[id]?.readiness
      if (readiness === 'success' && ready !== id) this.changeContainer(name, { ready: id })
      if (readiness === 'failure' && ready === id) this.changeContainer(name, { ready: undefined })
    }
  }

  /** Records that a container which is about to be stopped is to be recreated. Throws PoddError RECORD_WRITE. */
  async claimRestart(id: ContainerId): Promise<void> {
    const { restartRequested = [] } = this.#record
    if (restartRequested.includes(id)) return
    this.change({ restartRequested: [...restartRequested, id] })
    await this.save('required')
  }

  /**
   * Whether a container's preStop hook is still to be run, or waited for where the runtime holds it; it counts as begun from
   * now on, also for a podd to come.
   */
  async claimPreStop(id: ContainerId, isHeld: boolean, { containers }: ObservedPod): Promise<boolean> {
    const { preStopBegun = [], preStopHeld = [] } = this.#record
    if (preStopBegun.includes(id)) return isHeld && preStopHeld.includes(id)
    const isKnown = (begun: ContainerId): boolean => containers.some((container) => container.id === begun)
    const known = preStopBegun.filter((begun) => isKnown(begun))
    const held = [...preStopHeld.filter((begun) => isKnown(begun)), ...(isHeld ? [id] : [])]
    this.change({
      preStopBegun: [...known, id],
      preStopHeld: held.length === 0 ? undefined : held,
    })
    await this.save('best-effort')
    return true
  }

  /** A hook that was claimed could not be begun. */
  async releasePreStop(id: ContainerId): Promise<void> {
    const { preStopBegun, preStopHeld } = this.#record
    this.change({
      preStopBegun: preStopBegun?.filter((begun) => begun !== id),
      preStopHeld: preStopHeld?.filter((begun) => begun !== id),
    })
    await this.save('best-effort')
  }

  /** The container's postStart hook, which the runtime will hold, is to run. Throws as `save`. */
  async notePostStart(id: ContainerId, { containers }: ObservedPod): Promise<void> {
    const { postStartsDue = [] } = this.#record
    const known = postStartsDue.filter((due) => containers.some((container) => container.id === due))
    this.change({ postStartsDue: [...known, id] })
    await this.save('required')
  }

  /** The hook is done. Where that can't be written, the next podd finds that it has ended. */
  async forgetPostStart(id: ContainerId): Promise<void> {
    const left = this.#record.postStartsDue?.filter((due) => due !== id)
    if (left?.length === this.#record.postStartsDue?.length) return
    this.change({ postStartsDue: left?.length === 0 ? undefined : left })
    await this.save('best-effort')
  }

  /**
   * `required`: what follows rests on it, so a disk that can't be written stops it here.
   * `best-effort`: what runs goes on; the record is written when the disk can.
   * @throws PoddError RECORD_WRITE
   */
  async save(need: 'required' | 'best-effort'): Promise<void> {
    const write = this.#writing.then(() => this.#write())
    this.#writing = write.catch(() => undefined)
    try {
      await write
      this.#unwritten = undefined
    } catch (error) {
      const message = `cannot write the pod's record: ${errorMessage(error)}`
      if (need === 'required') throw new PoddError('RECORD_WRITE', message, { cause: error })
      if (message !== this.#unwritten) this.#deps.onUnwritten(message)
      this.#unwritten = message
    }
  }

  /** Forgets the pod. Throws what the disk throws. */
  async remove(): Promise<void> {
    await this.#writing
    await this.#deps.records.remove(this.#record.uid)
  }

  async #readEnd(container: ObservedContainer, isOomKill: boolean): Promise<EndedContainer> {
    const { bootId, readEndMessage } = this.#deps
    const { sandboxBootId } = this.#record
    const message = explainEnd({ container, message: await readEndMessage(container), sandboxBootId, bootId })
    return { ...endOf(container), ...(isOomKill ? { reason: oomKilled } : {}), message }
  }

  async #write(): Promise<void> {
    const record = this.#record
    if (this.#saved === record) return
    await this.#deps.records.save(record)
    this.#saved = record
  }
}
