import { errorMessage, PoddError } from '../../base/errors.ts'
import { Semaphore } from '../../base/waits.ts'
import { endOf } from '../../decide/plan/container-view.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { ProbeVerdicts } from '../../decide/plan/pod-facts.ts'
import { explainEnd, findOomKilled, oomKilled } from '../../decide/status/derive-container-status.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerHistory, EndedContainer, PodRecord } from '../../pod/state/pod-record.ts'
import type { ContainerId, PodRef } from '../../pod/values/ids.ts'
import { readContainerFacts } from '../../translate/identity.ts'
import { warn } from './env.ts'
import type { PodEnv } from './env.ts'

/** What a pod's record is written to, and its ends are read from. */
export type MemoryEnv = Pick<
  PodEnv,
  'records' | 'bootId' | 'volumes' | 'logs' | 'cgroups' | 'events' | 'logger'
>

/**
 * What podd remembers of one pod: its record, in memory and on disk. It is changed by its named transitions and by
 * those of the pod's state (PodState) alone, and written when the pod's passes say so.
 */
export class PodMemory {
  readonly #env: MemoryEnv
  #record: PodRecord
  /** Why the last write failed. */
  #unwritten: string | undefined
  #freeAttempt: number | undefined
  /** The record as it is on disk; differs from the current one while the disk can't be written. */
  #saved: PodRecord | undefined
  #isForgotten = false
  /** Of writes. */
  readonly #turns = new Semaphore(1)
  /** By container, what its backoff was before it was charged last. */
  readonly #backoffBefore = new Map<string, ContainerHistory['backoff']>()

  constructor(env: MemoryEnv, initial: { readonly record: PodRecord; readonly saved: boolean }) {
    this.#env = env
    this.#record = initial.record
    this.#saved = initial.saved ? initial.record : undefined
  }

  get record(): PodRecord {
    return this.#record
  }

  /** Whether the record on disk is current. */
  get isSaved(): boolean {
    return this.#saved === this.#record
  }

  /**
   * Whether the record has to be written before what follows from it is shown. The times of conditions don't matter: the next
   * podd derives them again.
   */
  get mustBeSaved(): boolean {
    if (this.#saved === undefined) return true
    if (this.isSaved) return false
    const saved = new Map<string, unknown>(Object.entries(this.#saved))
    return Object.entries(this.#record).some(
      ([field, value]) => field !== 'conditions' && saved.get(field) !== value,
    )
  }

  change(fields: Partial<PodRecord>): void {
    this.#record = { ...this.#record, ...fields }
  }

  /**
   * Changes the record once the change is on disk; where it can't be written, nothing of it is left.
   * @param fields those to change, of the record as it is when its turn to be written has come
   * @throws PoddError RECORD_WRITE
   */
  async commit(fields: (record: PodRecord) => Partial<PodRecord>): Promise<void> {
    await this.#inTurn('required', async () => {
      if (this.#isForgotten) return
      const before = this.#record
      const changed = { ...before, ...fields(before) }
      await this.#env.records.save(changed)
      this.#saved = changed
      // What else has changed meanwhile stands.
      this.#record = this.#record === before ? changed : { ...this.#record, ...fields(this.#record) }
    })
  }

  /** Replaces the record's manifest by an equal object, so that the next comparison is by identity. */
  shareManifest(manifest: PodRecord['manifest']): void {
    if (!this.isSaved || this.#record.manifest === manifest) return
    this.change({ manifest })
    this.#saved = this.#record
  }

  changeContainer(name: string, fields: Partial<ContainerHistory>): void {
    const { containers } = this.#record
    this.change({ containers: { ...containers, [name]: { ...containers[name], ...fields } } })
  }

  /** Records the delay that counts before the restart after this one. */
  charge({ spec, backoff }: Extract<PodAction, { kind: 'start-container' }>): void {
    if (backoff === undefined || this.#record.containers[spec.name]?.backoff === backoff) return
    this.#backoffBefore.set(spec.name, this.#record.containers[spec.name]?.backoff)
    this.changeContainer(spec.name, { backoff })
  }

  /** The restart that was charged last was not made: the backoff is what it was before. */
  refund(container: string): void {
    if (!this.#backoffBefore.has(container)) return
    this.changeContainer(container, { backoff: this.#backoffBefore.get(container) })
    this.#backoffBefore.delete(container)
  }

  /**
   * The attempt number of the sandbox that is about to be created. A number is never used twice: the runtime may have a
   * sandbox that it doesn't list, and with two of one name it no longer starts (containerd 1.6 to 2.1, recovery of the
   * CRI plugin).
   * @param least one more than that of the newest sandbox that is listed
   */
  takeSandboxAttempt(least: number): number {
    const attempt = Math.max(least, this.#freeAttempt ?? this.#record.sandboxAttempts ?? 0)
    this.#freeAttempt = undefined
    const { bootId: sandboxBootId } = this.#env
    const { record } = this
    if (record.sandboxAttempts !== attempt + 1 || record.sandboxBootId !== sandboxBootId)
      this.change({ sandboxAttempts: attempt + 1, sandboxBootId })
    return attempt
  }

  /** No sandbox was created with this number: it may be used again. */
  freeSandboxAttempt(attempt: number): void {
    this.#freeAttempt = attempt
  }

  /** Forgets the backoff of starts and the awaited images of an earlier manifest. */
  forgetAttempts(): void {
    for (const name of Object.keys(this.#record.containers))
      this.changeContainer(name, { backoff: undefined, awaitedImage: undefined })
  }

  /** Records how the pod's containers exited, before anything removes them. */
  async rememberEnds(pod: Pod, observed: ObservedPod): Promise<void> {
    const { containers } = observed
    const isNews = ({ name, state, restartCount }: ObservedContainer): boolean =>
      state === 'exited' && restartCount > (this.#record.containers[name]?.ended?.restartCount ?? -1)
    const isKnownBetter = ({ id, name, state, provisional }: ObservedContainer): boolean => {
      const known = this.#record.containers[name]?.ended
      return (
        state === 'exited' && provisional !== true && known?.provisional === true && known.containerId === id
      )
    }
    const news = containers.filter((container) => isNews(container))
    const oomKilledId = news.length > 0 ? await this.#findOomKilled(pod, observed, news) : undefined
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
    pod: Pod,
    observed: ObservedPod,
    news: readonly ObservedContainer[],
  ): Promise<ContainerId | undefined> {
    const before = this.#record.oomKills
    const now = await countOomKills(this.#env, pod, observed)
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
      // Of a pod that ends, the prober takes startup probes for passed.
      const hasStarted = this.#record.ending === undefined && probes[id]?.startup === 'success'
      if (hasStarted && startedUp !== id) this.changeContainer(name, { startedUp: id })
      const readiness = probes[id]?.readiness
      if (readiness === 'success' && ready !== id) this.changeContainer(name, { ready: id })
      if (readiness === 'failure' && ready === id) this.changeContainer(name, { ready: undefined })
    }
  }

  /** Records that a container which is about to be stopped is to be recreated. Throws PoddError RECORD_WRITE. */
  async claimRestart(id: ContainerId): Promise<void> {
    const { restartRequested = [] } = this.#record
    if (restartRequested.includes(id)) return
    await this.commit(({ restartRequested: now = [] }) => ({ restartRequested: [...new Set([...now, id])] }))
  }

  /**
   * Records containers that are about to be stopped to be started again. Where that can't be written, only this podd
   * knows it.
   */
  async noteRestarts(ids: readonly ContainerId[]): Promise<void> {
    const { restartsDue = [] } = this.#record
    const due = new Set([...restartsDue, ...ids])
    if (due.size === restartsDue.length) return
    this.change({ restartsDue: [...due] })
    await this.save('best-effort')
  }

  /**
   * Claims a container's preStop hook. Returns whether it is still to be run, or waited for where the runtime holds it.
   * From now on it counts as begun, also for the next podd.
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

  /** Records that the container's postStart hook, which the runtime holds, is about to run. Throws as `save`. */
  async notePostStart(id: ContainerId, { containers }: ObservedPod): Promise<void> {
    const { postStartsDue = [] } = this.#record
    const known = postStartsDue.filter((due) => containers.some((container) => container.id === due))
    this.change({ postStartsDue: [...known, id] })
    await this.save('required')
  }

  /** It is written with what is saved next. */
  noteServices(): void {
    if (this.#record.usesServices !== true) this.change({ usesServices: true })
  }

  /** Records that the hook is done. Where that can't be written, the next podd finds out by itself. */
  async forgetPostStart(id: ContainerId): Promise<void> {
    const left = this.#record.postStartsDue?.filter((due) => due !== id)
    if (left?.length === this.#record.postStartsDue?.length) return
    this.change({ postStartsDue: left?.length === 0 ? undefined : left })
    await this.save('best-effort')
  }

  /**
   * Writes the record. `required`: the next step depends on it, so a failed write throws. `best-effort`: a failed write
   * is tried again later.
   * @throws PoddError RECORD_WRITE
   */
  async save(need: 'required' | 'best-effort'): Promise<void> {
    await this.#inTurn(need, () => this.#write())
  }

  async #inTurn(need: 'required' | 'best-effort', work: () => Promise<void>): Promise<void> {
    try {
      await this.#turns.run(work)
      this.#unwritten = undefined
    } catch (error) {
      const message = `cannot write the pod's record: ${errorMessage(error)}`
      const isNews = message !== this.#unwritten
      this.#unwritten = message
      if (need === 'required') throw new PoddError('RECORD_WRITE', message, { cause: error })
      if (isNews) warn(this.#env, this.#ref, 'FailedSync', message)
    }
  }

  /** Writes the record again where its file is gone: somebody has removed it, or its directory. Never throws. */
  async keep(): Promise<void> {
    if (this.#saved === undefined || this.#isForgotten) return
    await this.#inTurn('best-effort', async () => {
      if (this.#isForgotten || (await this.#env.records.isThere(this.#record.uid))) return
      this.#saved = undefined
      await this.#write()
    })
  }

  /** Forgets the pod: nothing is written from now on. Throws what the disk throws. */
  async remove(): Promise<void> {
    this.#isForgotten = true
    await this.#turns.run(() => this.#env.records.remove(this.#record.uid))
  }

  async #readEnd(container: ObservedContainer, isOomKill: boolean): Promise<EndedContainer> {
    const { bootId } = this.#env
    const { sandboxBootId } = this.#record
    const read = await readEndMessage(this.#env, this.#ref, container)
    const message = explainEnd({ container, message: read, sandboxBootId, bootId })
    return { ...endOf(container), ...(isOomKill ? { reason: oomKilled } : {}), message }
  }

  get #ref(): PodRef {
    const { namespace, name, uid } = this.#record
    return { namespace, name, uid }
  }

  async #write(): Promise<void> {
    const record = this.#record
    if (this.#isForgotten || this.#saved === record) return
    await this.#env.records.save(record)
    this.#saved = record
  }
}

/**
 * The termination message of a container: its termination message file, or, with FallbackToLogsOnError and a failure,
 * the end of its log; else the runtime's message (`pkg/kubelet/kuberuntime/kuberuntime_container.go`
 * getTerminationMessage, Kubernetes 1.36).
 */
async function readTerminationMessage(
  { volumes, logs }: MemoryEnv,
  ref: PodRef,
  container: ObservedContainer,
): Promise<string> {
  const facts = readContainerFacts(container.annotations)
  const written =
    facts.terminationMessagePath === ''
      ? ''
      : await volumes.readTerminationLog(ref.uid, container.name, container.restartCount)
  if (written !== '') return container.message === '' ? written : `${container.message}: ${written}`
  const failed = container.exitCode !== undefined && container.exitCode !== 0
  if (facts.terminationMessagePolicy !== 'FallbackToLogsOnError' || !failed) return container.message
  const tail = await logs.tail(ref, container.name, container.restartCount)
  return container.message === '' ? tail : `${container.message}: ${tail}`
}

/** As above, but falls back to the runtime's message where the host's files can't be read; never rejects. */
async function readEndMessage(env: MemoryEnv, ref: PodRef, container: ObservedContainer): Promise<string> {
  try {
    return await readTerminationMessage(env, ref, container)
  } catch (error) {
    const { name: pod, uid } = ref
    env.logger.warn(
      { pod, uid, container: container.name, err: error },
      'cannot read the termination message',
    )
    return container.message
  }
}

/**
 * How many OOM kills the pod's cgroup has counted, without those of live containers; undefined where that is unknown.
 */
async function countOomKills(
  { cgroups, logger }: MemoryEnv,
  pod: Pod,
  { uid, sandboxes, containers }: ObservedPod,
): Promise<number | undefined> {
  const live = [
    ...sandboxes.filter(({ ready }) => ready),
    ...containers.filter(({ state }) => state !== 'exited'),
  ].map(({ id }) => id)
  try {
    return await cgroups.countOomKills(uid, pod, live)
  } catch (error) {
    logger.debug({ uid, err: error }, 'cannot count OOM kills')
    return undefined
  }
}
