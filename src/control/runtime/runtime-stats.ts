import { mapBounded } from '../../base/waits.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import type { CriErrorCode, CallOptions, RuntimeService } from '../../runtime/cri-runtime.ts'
import type { RuntimeMetrics } from '../../pod/state/usage.ts'
import { labelKeys } from '../../translate/identity.ts'

/** A list takes some milliseconds for each container. One shim that hangs blocks it for good. */
const listMs = 4000
/** For one container or sandbox. */
const answerMs = 2000
/** For one that gave no answer before: nobody waits for this call. */
const lateAnswerMs = 60_000
/** How many of them are asked for at a time. */
const calls = 16
/** After a list that took too long although none hung: how many readings go without one. */
const readingsWithoutList = 30

export interface StatsReading<Stats> {
  readonly stats: readonly Stats[]
  /** The ids of those that gave no answer in time, or an error. */
  readonly unanswered: ReadonlySet<string>
}

/**
 * What containers and sandboxes use, as the runtime tells. One that the runtime can't tell about is left out: its shim
 * hangs, or (containerd 1.6) its cgroup is gone, as that of a completed pod is. Shared by all who ask, so that they
 * wait for a hung shim once.
 */
export class RuntimeStats {
  readonly #runtime: RuntimeService
  readonly #containers: StatsReader<cri.ContainerStats>
  readonly #sandboxes: StatsReader<cri.PodSandboxStats>

  constructor(runtime: RuntimeService) {
    this.#runtime = runtime
    this.#containers = new StatsReader({
      list: async (options) => (await runtime.listContainerStats({}, options)).stats,
      // Of others the runtime tells nothing by themselves.
      ids: async (options) => {
        const filter = { state: { state: 'CONTAINER_RUNNING' } } as const
        return (await runtime.listContainers({ filter }, options)).containers.map(({ id }) => id)
      },
      one: async (containerId, options) => (await runtime.containerStats({ containerId }, options)).stats,
      brokenBy: ['RUNTIME_TIMEOUT'],
    })
    this.#sandboxes = new StatsReader({
      list: async (options) => (await runtime.listPodSandboxStats({}, options)).stats,
      ids: async (options) => {
        const filter = { state: { state: 'SANDBOX_READY' } } as const
        return (await runtime.listPodSandbox({ filter }, options)).items.map(({ id }) => id)
      },
      one: async (podSandboxId, options) => (await runtime.podSandboxStats({ podSandboxId }, options)).stats,
      brokenBy: ['RUNTIME_TIMEOUT', 'RUNTIME_FAILED', 'RUNTIME_NOT_FOUND'],
    })
  }

  /** Throws CriError, or the signal's reason. */
  containers(signal: AbortSignal): Promise<StatsReading<cri.ContainerStats>> {
    return this.#containers.read(signal)
  }

  /** Throws CriError (RUNTIME_UNSUPPORTED where the runtime has no such call), or the signal's reason. */
  sandboxes(signal: AbortSignal): Promise<StatsReading<cri.PodSandboxStats>> {
    return this.#sandboxes.read(signal)
  }

  /**
   * The metrics that the runtime has of podd's pods by ListPodSandboxMetrics: CRI-O, and containerd after 2.1. No
   * families where it has none. Throws the signal's reason.
   */
  async metrics(signal: AbortSignal): Promise<RuntimeMetrics> {
    const runtime = this.#runtime
    const options = { signal, deadlineMs: listMs }
    try {
      const { descriptors } = await runtime.listMetricDescriptors({}, options)
      if (descriptors.length === 0) return { families: [], failed: false }
      const [{ podMetrics }, { items }, { containers }] = await Promise.all([
        runtime.listPodSandboxMetrics({}, options),
        runtime.listPodSandbox({}, options),
        runtime.listContainers({}, options),
      ])
      return { families: toFamilies({ descriptors, podMetrics, items, containers }), failed: false }
    } catch (error) {
      signal.throwIfAborted()
      // The reading says that they are missing; what podd computes itself is there.
      return { families: [], failed: !isCriError(error, 'RUNTIME_UNSUPPORTED') }
    }
  }
}

/** What Prometheus takes as the name of a metric, and of a label (there without `:`, which none has). */
const metricName = /^[A-Za-z_][A-Za-z0-9_]*$/u

/**
 * The families of what the runtime reported, by its descriptors; those without one are left out
 * (`pkg/kubelet/metrics/collectors/cri_metrics.go`, 1.36). Labels that name the pod and the container are added where the
 * runtime gives none, as cAdvisor has them.
 */
function toFamilies({
  descriptors,
  podMetrics,
  items,
  containers,
}: {
  readonly descriptors: readonly cri.MetricDescriptor[]
  readonly podMetrics: readonly cri.PodSandboxMetrics[]
  readonly items: readonly cri.PodSandbox[]
  readonly containers: readonly cri.Container[]
}): RuntimeMetrics['families'] {
  const sandboxes = new Map(items.map(({ id, labels }) => [id, labels]))
  const names = new Map(containers.map(({ id, labels }) => [id, labels[labelKeys.containerName] ?? '']))
  const reported = podMetrics.flatMap(({ podSandboxId, metrics, containerMetrics }) => {
    const labels = sandboxes.get(podSandboxId)
    // Others may use the runtime, too.
    if (labels?.[labelKeys.podUid] === undefined) return []
    const pod = {
      namespace: labels[labelKeys.podNamespace] ?? '',
      pod: labels[labelKeys.podName] ?? '',
    }
    return [
      ...metrics.map((metric) => ({ metric, about: { ...pod, container: '' } })),
      ...containerMetrics.flatMap(({ containerId, metrics: own }) =>
        own.map((metric) => ({ metric, about: { ...pod, container: names.get(containerId) ?? '' } })),
      ),
    ]
  })
  const byName = Map.groupBy(reported, ({ metric }) => metric.name)
  const known = new Map(descriptors.map((descriptor) => [descriptor.name, descriptor]))
  return [...known.values()].flatMap(({ name, help, labelKeys: keys }): RuntimeMetrics['families'] => {
    const own = byName.get(name) ?? []
    const [first] = own
    if (first === undefined || ![name, ...keys].every((each) => metricName.test(each))) return []
    const series = own.map(({ metric: { labelValues, value }, about }) => ({
      labels: { ...about, ...Object.fromEntries(keys.map((key, at) => [key, labelValues[at] ?? ''])) },
      value: value?.value ?? 0,
    }))
    return [{ name, help, type: first.metric.metricType === 'COUNTER' ? 'counter' : 'gauge', series }]
  })
}

interface StatsSource<Stats> {
  readonly list: (options: CallOptions) => Promise<readonly Stats[]>
  readonly ids: (options: CallOptions) => Promise<readonly string[]>
  readonly one: (id: string, options: CallOptions) => Promise<Stats | null>
  /** The errors by which a single one fails the list. */
  readonly brokenBy: readonly CriErrorCode[]
}

/** Reads the list, or one by one where that fails or an earlier answer is still missing. */
class StatsReader<Stats> {
  readonly #source: StatsSource<Stats>
  /** Those that gave no answer, and whether a call to them is in flight. */
  readonly #hung = new Map<string, { isAsked: boolean }>()
  #withoutList = 0

  constructor(source: StatsSource<Stats>) {
    this.#source = source
  }

  async read(signal: AbortSignal): Promise<StatsReading<Stats>> {
    const { list, brokenBy } = this.#source
    if (this.#hung.size > 0) return this.#readEach(signal)
    if (this.#withoutList > 0) {
      this.#withoutList -= 1
      return this.#readEach(signal)
    }
    try {
      return { stats: await list({ signal, deadlineMs: listMs }), unanswered: new Set() }
    } catch (error) {
      if (!brokenBy.some((code) => isCriError(error, code))) throw error
      if (isCriError(error, 'RUNTIME_TIMEOUT')) this.#withoutList = readingsWithoutList
    }
    const reading = await this.#readEach(signal)
    // It was for the one that hung.
    if (this.#hung.size > 0) this.#withoutList = 0
    return reading
  }

  async #readEach(signal: AbortSignal): Promise<StatsReading<Stats>> {
    const ids = await this.#source.ids({ signal, deadlineMs: listMs })
    for (const id of this.#hung.keys()) if (!ids.includes(id)) this.#hung.delete(id)
    const unanswered = new Set(this.#hung.keys())
    for (const id of unanswered) void this.#askLate(id)
    const answering = ids.filter((id) => !unanswered.has(id))
    const found: Stats[] = []
    let unavailable: unknown
    const readOne = async (id: string): Promise<void> => {
      if (signal.aborted) return
      try {
        const stats = await this.#source.one(id, { signal, deadlineMs: answerMs })
        if (stats !== null) found.push(stats)
      } catch (error) {
        // It has ended meanwhile, or the runtime can't tell: the others count.
        if (!isCriError(error, 'RUNTIME_NOT_FOUND')) unanswered.add(id)
        if (isCriError(error, 'RUNTIME_UNAVAILABLE')) unavailable ??= error
        if (isCriError(error, 'RUNTIME_TIMEOUT') && !this.#hung.has(id))
          this.#hung.set(id, { isAsked: false })
      }
    }
    await mapBounded(answering, readOne, calls)
    signal.throwIfAborted()
    // Nothing answers: it is the runtime that is away.
    if (unavailable !== undefined && found.length === 0) throw unavailable
    return { stats: found, unanswered }
  }

  /** Asks for a hung one until it answers; nobody waits. Any answer will do, a failure too. */
  async #askLate(id: string): Promise<void> {
    const hung = this.#hung.get(id)
    if (hung === undefined || hung.isAsked) return
    hung.isAsked = true
    try {
      await this.#source.one(id, { deadlineMs: lateAnswerMs })
    } catch (error) {
      if (isCriError(error, 'RUNTIME_TIMEOUT')) {
        hung.isAsked = false
        return
      }
    }
    this.#hung.delete(id)
  }
}
