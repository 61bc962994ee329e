import type { PodUsageSeries, UsageHistoryReply, UsageSeries } from '../../api/usage.ts'
import type { ContainerUsage, NodeUsage } from '../../pod/state/usage.ts'
import type { PodUid } from '../../pod/values/ids.ts'

export interface UsageSource {
  usage(signal: AbortSignal): Promise<readonly ContainerUsage[]>
  nodeUsage(signal: AbortSignal): Promise<NodeUsage>
}

const periodMs = 30_000
const deadlineMs = 20_000
const spanMs = 3_600_000
const maxSamples = spanMs / periodMs

interface Figures {
  readonly cpuMillis: number
  readonly memoryBytes: number
}

interface Sample {
  readonly atMs: number
  readonly node: Figures | undefined
  readonly pods: ReadonlyMap<PodUid, Figures>
}

/** The usage of the host and its pods over the last hour: 120 measurements, each with the pods that ran then. */
export class UsageHistory {
  readonly #source: UsageSource
  #samples: readonly Sample[] = []

  constructor(source: UsageSource) {
    this.#source = source
  }

  /**
   * Takes a measurement. Throws when both meters fail; when only the containers' fails, the host's is kept and the
   * error thrown.
   */
  async measure(signal: AbortSignal): Promise<void> {
    const [containers, host] = await Promise.allSettled([
      this.#source.usage(signal),
      this.#source.nodeUsage(signal),
    ])
    if (host.status === 'rejected') throw host.reason
    const { atMs } = host.value
    const pods = containers.status === 'fulfilled' ? sumPods(containers.value) : new Map<PodUid, Figures>()
    const kept = this.#samples.filter((sample) => sample.atMs > atMs - spanMs && sample.atMs < atMs)
    this.#samples = [...kept.slice(1 - maxSamples), { atMs, node: toFigures(host.value), pods }]
    if (containers.status === 'rejected') throw containers.reason
  }

  /** The node job that takes the measurements. */
  job() {
    return {
      name: 'record-usage',
      periodMs,
      runsAtStart: true,
      deadlineMs,
      run: (signal: AbortSignal): Promise<void> => this.measure(signal),
    } as const
  }

  /** Of pods that ran at the last measurement. */
  reply(): UsageHistoryReply {
    const samples = this.#samples
    const uids = [...(samples.at(-1)?.pods.keys() ?? [])]
    const seriesOf = (uid: PodUid): PodUsageSeries => {
      const { cpuMillis, memoryBytes } = toSeries(samples.map(({ pods }) => pods.get(uid)))
      return { uid, cpuMillis, memoryBytes }
    }
    return {
      periodSeconds: periodMs / 1000,
      spanSeconds: spanMs / 1000,
      times: samples.map(({ atMs }) => atMs),
      node: toSeries(samples.map(({ node }) => node)),
      pods: uids.map((uid) => seriesOf(uid)),
    }
  }
}

function toFigures({ cpuNanoCores, memoryBytes }: Pick<NodeUsage, 'cpuNanoCores' | 'memoryBytes'>): Figures {
  return { cpuMillis: Math.round(cpuNanoCores / 1e5) / 10, memoryBytes }
}

function sumPods(containers: readonly ContainerUsage[]): ReadonlyMap<PodUid, Figures> {
  return new Map(
    [...Map.groupBy(containers, ({ uid }) => uid)].map(([uid, own]) => [
      uid,
      toFigures({
        cpuNanoCores: own.reduce((sum, { cpuNanoCores }) => sum + cpuNanoCores, 0),
        memoryBytes: own.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
      }),
    ]),
  )
}

function toSeries(figures: readonly (Figures | undefined)[]): UsageSeries {
  return {
    cpuMillis: figures.map((each) => each?.cpuMillis ?? null),
    memoryBytes: figures.map((each) => each?.memoryBytes ?? null),
  }
}
