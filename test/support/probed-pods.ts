import type { JsonObject } from '../../src/base/json.ts'
import type { ProbeReportObject } from '../../src/api/usage.ts'
import { containerOf } from './podd-rig.ts'
import type { PoddRig } from './podd-rig.ts'
import { shellPod } from './shell-pods.ts'

/** What tells that the very same processes run. */
interface Life {
  readonly name: string
  readonly restarts: number
  readonly pid: number
}

/** Pods with exec probes for what freezes: a probe of each fails for good within 10 s of a silent runtime. */
export class ProbedPods {
  readonly names = Array.from({ length: 5 }, (_, index) => `probed-${index}`)
  readonly #podd: PoddRig

  constructor(podd: PoddRig) {
    this.#podd = podd
  }

  /** Starts them, and waits until each has been probed. */
  async start(): Promise<void> {
    const podd = this.#podd
    const probe: JsonObject = {
      exec: { command: ['true'] },
      periodSeconds: 2,
      timeoutSeconds: 2,
      failureThreshold: 3,
    }
    const container = { livenessProbe: probe, readinessProbe: probe }
    for (const name of this.names)
      podd.drop(name, shellPod(name, podd.shared, 'say start; stay', { container }))
    await this.lives()
    await this.untilProbed(1)
  }

  async lives(): Promise<readonly Life[]> {
    const pods = await Promise.all(this.names.map((name) => this.#podd.untilReady(name)))
    return pods.map((pod) => {
      const { restartCount: restarts, containerID = '' } = containerOf(pod, 'main')
      return { name: pod.metadata.name, restarts, pid: this.#podd.pidOf(containerID) }
    })
  }

  /** How often each probe has ended so. */
  async counts(result: 'success' | 'failure'): Promise<readonly number[]> {
    const reports = this.names.map((name) =>
      this.#podd.get<readonly ProbeReportObject[]>(`/podd/v1/namespaces/default/pods/${name}/probes`),
    )
    return (await Promise.all(reports)).flat().map(({ counts }) => counts[result])
  }

  /** Resolves when every probe has succeeded so many times more. */
  async untilProbed(times: number): Promise<void> {
    const before = await this.counts('success')
    await this.#podd.until(`${times} successes of each probe`, async () => {
      const counts = await this.counts('success')
      return counts.every((count, index) => count >= (before[index] ?? 0) + times)
    })
  }
}
