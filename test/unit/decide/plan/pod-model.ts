import { computePodActions } from '../../../../src/decide/plan/compute-pod-actions.ts'
import { hasFinished } from '../../../../src/decide/plan/progress.ts'
import { endOf } from '../../../../src/decide/plan/container-view.ts'
import {
  containerRetry,
  nextImageRetry,
  noRetries,
  previousImageRetry,
  sandboxRetry,
  withRetry,
  backoffLimits,
  isRestartableInit,
} from '../../../../src/decide/plan/backoff.ts'
import type { Retry, RetryKey, Retries } from '../../../../src/decide/plan/backoff.ts'
import type { PodAction, PodPlan } from '../../../../src/decide/plan/pod-action.ts'
import type { PodFacts, ProbeKind, ProbeVerdict } from '../../../../src/decide/plan/pod-facts.ts'
import { selectOpenRestarts, selectRestarts } from '../../../../src/decide/plan/restart-request.ts'
import { containerSpecHash } from '../../../../src/pod/values/hash.ts'
import type { ContainerId } from '../../../../src/pod/values/ids.ts'
import type { ObservedContainer, ObservedPod, ObservedSandbox } from '../../../../src/pod/state/observed.ts'
import type { PodRecord } from '../../../../src/pod/state/pod-record.ts'
import type { Pod } from '../../../../src/pod/schema/pod-schema.ts'
import type { PodPhase } from '../../../../src/pod/state/status.ts'
import { derivePhase } from '../../../../src/decide/status/derive-status.ts'
import { bootId, containerFacts, nowMs, statusFacts } from '../../../support/pod-builders.ts'

/** Something that happens to a pod beside what podd does; numbers pick one of what is there. */
export type ModelEvent =
  | { readonly kind: 'exit'; readonly pick: number; readonly exitCode: number }
  | { readonly kind: 'lose-track'; readonly pick: number }
  | {
      readonly kind: 'probe'
      readonly pick: number
      readonly probe: ProbeKind
      readonly verdict: ProbeVerdict
    }
  | { readonly kind: 'sandbox-dies'; readonly pick: number }
  | { readonly kind: 'address-lost' }
  | { readonly kind: 'dead-forgotten' }
  | { readonly kind: 'all-forgotten' }
  | { readonly kind: 'time-passes'; readonly ms: number }
  | { readonly kind: 'clock-set-back'; readonly ms: number }
  | { readonly kind: 'image-changes'; readonly pick: number; readonly tag: number }
  | { readonly kind: 'restart-asked' }
  | {
      readonly kind: 'podd-acts'
      readonly fails: readonly StartFailure[]
      /** How what it stops ends. */
      readonly stopsWith: number
      /** The number of actions after which it dies, to begin again with what is on record. */
      readonly diesAfter?: number | undefined
    }

/** What becomes of the next starts: they work where nothing is said. */
export type StartFailure = 'none' | 'image' | 'create' | 'start'

const killed = 143
const waiting = { reason: 'Failed', message: '' }
const isLive = ({ state }: ObservedContainer): boolean => state === 'running' || state === 'unknown'

interface ActOptions {
  readonly fails?: readonly StartFailure[]
  readonly stopsWith?: number
  readonly diesAfter?: number | undefined
}

/** A pod in a runtime that does what it is told. Breaks when it is told something that must never be. */
export class PodModel {
  pod: Pod
  nowMs = nowMs
  sandboxes: readonly ObservedSandbox[] = []
  containers: readonly ObservedContainer[] = []
  history: PodRecord['containers'] = {}
  retries: Retries = noRetries
  readonly #verdicts: Record<ContainerId, PodFacts['probes'][ContainerId]> = {}
  readonly #fresh = new Set<string>()
  readonly #highestCount = new Map<string, number>()
  #restarts: readonly ContainerId[] = []
  #restartsDue: readonly ContainerId[] = []
  #restartAll: ReadonlySet<ContainerId> = new Set()
  #made = 0
  #hasFinished = false
  #isLost = false
  #stopsWith = killed

  /** Called after each action that was carried out. */
  onStep: ((plan: PodPlan) => void) | undefined

  constructor(pod: Pod) {
    this.pod = pod
  }

  /** The pod's phase, as podd shows it now. */
  phase(plan?: PodPlan): PodPhase {
    if (this.#isLost) return 'Failed'
    const {
      observed,
      history,
      restartRequested = [],
      restartsDue = [],
      restartAll = [],
      probes,
    } = this.facts()
    const { record, ...facts } = statusFacts()
    return derivePhase({
      ...facts,
      pod: this.pod,
      observed,
      record: {
        ...record,
        containers: history,
        restartRequested: [...restartRequested],
        restartsDue: [...restartsDue],
        restartAll: [...restartAll],
      },
      probes,
      waiting: plan?.waiting ?? new Map(),
    })
  }

  get observed(): ObservedPod {
    return {
      uid: 'uid-web',
      namespace: 'default',
      name: 'web',
      sandboxes: this.sandboxes,
      containers: this.containers,
    }
  }

  facts(): PodFacts {
    this.#remember()
    const { pod, observed, history } = this
    this.#restarts = selectOpenRestarts({ pod, observed, history }, this.#restarts)
    this.#restartsDue = selectOpenRestarts({ pod, observed, history }, this.#restartsDue)
    this.#restartAll = new Set(selectOpenRestarts({ pod, observed, history }, [...this.#restartAll]))
    return {
      pod,
      observed,
      history,
      restartRequested: new Set(this.#restarts),
      restartsDue: new Set(this.#restartsDue),
      restartAll: this.#restartAll,
      probes: { ...this.#verdicts },
      containerFacts: containerFacts(pod, { imageReady: ({ image }) => this.#fresh.has(image) }),
      retries: this.retries,
      nowMs: this.nowMs,
      bootId,
      limits: backoffLimits(),
    }
  }

  #retryLater(key: RetryKey, backoff: Retry): void {
    this.retries = withRetry(this.retries, key, backoff)
  }

  /** Lets podd look and act once; returns what it decided. */
  act({ fails = [], stopsWith = killed, diesAfter }: ActOptions = {}): PodPlan {
    const facts = this.facts()
    if (this.#isLost) return { actions: [], wakeAtMs: undefined, waiting: new Map(), isLost: true }
    this.#hasFinished ||= hasFinished(facts)
    const plan = computePodActions(facts)
    this.#isLost ||= plan.isLost === true
    if (plan.restartAll !== undefined) this.#restartAll = plan.restartAll
    this.#stopsWith = stopsWith
    const outcomes = [...fails]
    for (const [index, action] of plan.actions.entries()) {
      if (index === diesAfter) break
      this.nowMs += 1
      if (action.kind === 'stop-pod' || action.kind === 'stop-container')
        this.#restartsDue = [...new Set([...this.#restartsDue, ...(plan.restartsDue ?? [])])]
      if (!this.#carryOut(action, outcomes)) break
      this.onStep?.(plan)
    }
    if (diesAfter !== undefined) this.#beginAgain()
    return plan
  }

  /** The next podd knows what is on record, and nothing more. */
  #beginAgain(): void {
    this.retries = noRetries
    this.#fresh.clear()
    for (const id of Object.keys(this.#verdicts)) delete this.#verdicts[id]
  }

  happen(event: ModelEvent): void {
    switch (event.kind) {
      case 'exit':
        return this.#change(this.#live(event.pick), (c) => this.#exited(c, event.exitCode))
      case 'lose-track':
        return this.#change(this.#live(event.pick), (c) => ({ ...c, state: 'unknown' }))
      case 'probe': {
        const container = this.#live(event.pick)
        if (container !== undefined)
          this.#verdicts[container.id] = { ...this.#verdicts[container.id], [event.probe]: event.verdict }
        return undefined
      }
      case 'sandbox-dies': {
        const sandbox = this.sandboxes[event.pick % Math.max(1, this.sandboxes.length)]
        if (sandbox !== undefined) this.#killSandbox(sandbox.id)
        return undefined
      }
      case 'address-lost':
        this.sandboxes = this.sandboxes.map((sandbox, index) =>
          index === 0 ? { ...sandbox, ips: [] } : sandbox,
        )
        return undefined
      case 'dead-forgotten':
        this.#remember()
        this.containers = this.containers.filter(({ state }) => state !== 'exited')
        return undefined
      case 'all-forgotten':
        this.#remember()
        this.containers = []
        this.sandboxes = []
        // Only ends are on record: the count of what hadn't ended is lost.
        for (const name of this.#highestCount.keys()) {
          this.#highestCount.set(name, (this.history[name]?.ended?.restartCount ?? -1) + 1)
        }
        return undefined
      case 'time-passes':
        this.nowMs += event.ms
        return undefined
      case 'clock-set-back':
        this.nowMs -= event.ms
        return undefined
      case 'image-changes':
        this.pod = withImage(this.pod, event.pick, `busybox:${event.tag}`)
        // A changed manifest clears what stood in its way.
        this.retries = noRetries
        for (const name of Object.keys(this.history)) this.#await(name, undefined)
        return undefined
      case 'restart-asked': {
        if (this.#isLost) return undefined
        const choice = selectRestarts(this.facts(), undefined)
        const ids = 'ids' in choice ? choice.ids : []
        this.#restarts = [...new Set([...this.#restarts, ...ids])]
        // Who asks for it gets a finished pod to run again.
        if (this.#restarts.length > 0) this.#hasFinished = false
        return undefined
      }
      case 'podd-acts':
        this.act(event)
        return undefined
    }
  }

  /** Lets everything go well from here on: probes pass, init containers succeed, nothing else ends. */
  goWell(): boolean {
    let changed = false
    const once = this.pod.spec.initContainers.filter((spec) => !isRestartableInit(spec))
    for (const container of this.containers.filter(({ state }) => state === 'running')) {
      if (once.some(({ name }) => name === container.name)) {
        this.#change(container, (c) => this.#exited(c, 0))
        changed = true
      }
      for (const kind of ['startup', 'liveness', 'readiness'] as const) {
        if (this.#verdicts[container.id]?.[kind] === 'success') continue
        this.#verdicts[container.id] = { ...this.#verdicts[container.id], [kind]: 'success' }
        changed = true
      }
    }
    return changed
  }

  stopPod(): void {
    this.containers = this.containers.map((c) => (isLive(c) ? this.#exited(c, this.#stopsWith) : c))
    this.sandboxes = this.sandboxes.map((sandbox) => Object.assign({}, sandbox, { ready: false }))
  }

  #carryOut(action: PodAction, outcomes: StartFailure[]): boolean {
    switch (action.kind) {
      case 'stop-pod':
        this.stopPod()
        return true
      case 'create-sandbox':
        return this.#createSandbox(action.attempt, outcomes.shift())
      case 'stop-container':
        if (action.cause === 'changed') this.#restarts = [...this.#restarts, action.container.id]
        this.#change(
          this.containers.find(({ id }) => id === action.container.id),
          (c) => this.#exited(c, this.#stopsWith),
        )
        return true
      case 'start-container':
        return this.#start(action, outcomes.shift())
      case 'finish-post-start':
        return true
      case 'fetch-image':
        this.#await(action.spec.name, action.spec.image)
        if ((outcomes.shift() ?? 'none') === 'none') this.#fresh.add(action.spec.image)
        else
          this.#retryLater(nextImageRetry(action.spec.name), {
            untilMs: this.nowMs + 20_000,
            waiting,
            image: action.spec.image,
          })
        return true
      case 'resize-containers':
        return false
      case 'remove-containers':
        must(!this.containers.some((c) => action.ids.includes(c.id) && isLive(c)), 'removes what lives')
        this.containers = this.containers.filter(({ id }) => !action.ids.includes(id))
        return true
      case 'remove-sandboxes':
        must(!this.sandboxes.some((s) => action.ids.includes(s.id) && s.ready), 'removes a ready sandbox')
        must(
          !this.containers.some((c) => action.ids.includes(c.sandboxId)),
          'removes a sandbox that is in use',
        )
        this.sandboxes = this.sandboxes.filter(({ id }) => !action.ids.includes(id))
        return true
      default:
        throw new Error(`the model can't ${JSON.stringify(action)}`)
    }
  }

  #createSandbox(attempt: number, outcome: StartFailure = 'none'): boolean {
    must(!this.#hasFinished, 'makes a sandbox for a pod that has finished')
    must(!this.sandboxes.some(({ ready }) => ready), 'makes a sandbox beside a ready one')
    must(!this.containers.some(isLive), 'makes a sandbox while containers live')
    if (outcome !== 'none') {
      this.#retryLater(sandboxRetry, { untilMs: this.nowMs + 10_000, waiting })
      return false
    }
    const sandbox: ObservedSandbox = {
      id: `sandbox-${(this.#made += 1)}`,
      attempt,
      ready: true,
      createdAtMs: this.nowMs,
      ips: this.pod.spec.hostNetwork ? [] : ['10.0.0.1'],
      hostNetwork: this.pod.spec.hostNetwork,
      annotations: {},
    }
    this.sandboxes = [sandbox, ...this.sandboxes]
    return true
  }

  #start(action: Extract<PodAction, { kind: 'start-container' }>, outcome: StartFailure = 'none'): boolean {
    const { spec, restartCount, backoff } = action
    const [sandbox] = this.sandboxes
    must(!this.#hasFinished, `starts ${spec.name} of a pod that has finished`)
    must(sandbox?.ready === true, `starts ${spec.name} in no sandbox`)
    must(!this.containers.some((c) => c.name === spec.name && isLive(c)), `starts ${spec.name} twice`)
    must(restartCount >= (this.#highestCount.get(spec.name) ?? 0), `counts ${spec.name} down`)
    this.#highestCount.set(spec.name, restartCount)
    if (backoff !== undefined)
      this.history = { ...this.history, [spec.name]: { ...this.history[spec.name], backoff } }
    this.#await(spec.name, action.awaitedImage)
    if (outcome === 'image' || outcome === 'create') {
      const image = outcome === 'image' ? { image: spec.image } : {}
      // One that it had is looked for, not pulled.
      const key =
        outcome === 'image' && action.awaitedImage !== undefined
          ? previousImageRetry(spec.name)
          : containerRetry(spec.name)
      this.#retryLater(key, { untilMs: this.nowMs + 10_000, waiting, ...image })
      return true
    }
    const works = outcome === 'none'
    if (!works) this.#retryLater(containerRetry(spec.name), { untilMs: this.nowMs + 1000, waiting })
    const container: ObservedContainer = {
      id: `${spec.name}-${(this.#made += 1)}`,
      sandboxId: sandbox.id,
      name: spec.name,
      restartCount,
      state: works ? 'running' : 'created',
      createdAtMs: this.nowMs,
      startedAtMs: works ? this.nowMs : undefined,
      finishedAtMs: undefined,
      exitCode: undefined,
      reason: '',
      message: '',
      image: spec.image,
      imageId: 'sha256:1',
      specHash: containerSpecHash(spec),
      annotations: {},
    }
    this.containers = [container, ...this.containers]
    return true
  }

  #await(name: string, awaitedImage: string | undefined): void {
    this.history = { ...this.history, [name]: { ...this.history[name], awaitedImage } }
  }

  /** Takes down how containers ended, oldest first, as the pod's worker does. */
  #remember(): void {
    const history: Record<string, PodRecord['containers'][string]> = { ...this.history }
    for (const container of this.containers.toReversed()) {
      const known = history[container.name]
      if (container.state !== 'exited') continue
      if (known?.ended !== undefined && known.ended.restartCount >= container.restartCount) continue
      history[container.name] = { ...known, ended: endOf(container), endedBefore: known?.ended }
    }
    this.history = history
  }

  #killSandbox(id: string): void {
    this.sandboxes = this.sandboxes.map((sandbox) =>
      sandbox.id === id ? { ...sandbox, ready: false } : sandbox,
    )
    this.containers = this.containers.map((c) => (c.sandboxId === id && isLive(c) ? this.#exited(c, 137) : c))
  }

  #live(pick: number): ObservedContainer | undefined {
    const live = this.containers.filter(isLive)
    return live[pick % Math.max(1, live.length)]
  }

  #exited(container: ObservedContainer, exitCode: number): ObservedContainer {
    return { ...container, state: 'exited', exitCode, finishedAtMs: this.nowMs }
  }

  #change(
    container: ObservedContainer | undefined,
    change: (c: ObservedContainer) => ObservedContainer,
  ): void {
    this.containers = this.containers.map((c) => (c === container ? change(c) : c))
  }
}

function must(isSo: boolean, what: string): asserts isSo {
  if (!isSo) throw new Error(`podd ${what}`)
}

/** The pod with another image in one of its containers, init containers included. */
function withImage(pod: Pod, pick: number, image: string): Pod {
  const containers = [...pod.spec.containers]
  const initContainers = [...pod.spec.initContainers]
  const at = pick % (containers.length + initContainers.length)
  const list = at < containers.length ? containers : initContainers
  const index = at < containers.length ? at : at - containers.length
  const spec = list[index]
  if (spec !== undefined) list[index] = { ...spec, image }
  return { ...pod, spec: { ...pod.spec, containers, initContainers } }
}
