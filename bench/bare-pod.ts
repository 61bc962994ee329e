import type { CriClient } from '../src/runtime/cri-client.ts'
import type { PodSandboxConfig, Sent } from '../src/cri-types/cri-v1.ts'
import { benchImage } from './podd-under-test.ts'

export interface BarePodFacts {
  readonly name: string
  readonly uid: string
  /** Where the bench keeps its things. */
  readonly directory: string
  readonly command: readonly string[]
  /** Mounted at `/out`. */
  readonly outDirectory: string
}

/** One pod made by the bare CRI calls, as little as they can be told. */
export class BarePod {
  readonly podSandboxId: string
  readonly #client: CriClient
  readonly #facts: BarePodFacts
  readonly #config: Sent<PodSandboxConfig>
  #containerId = ''

  private constructor(
    client: CriClient,
    facts: BarePodFacts,
    made: { config: Sent<PodSandboxConfig>; id: string },
  ) {
    this.#client = client
    this.#facts = facts
    this.#config = made.config
    this.podSandboxId = made.id
  }

  /** RunPodSandbox. */
  static async run(client: CriClient, facts: BarePodFacts): Promise<BarePod> {
    const { name, uid, directory } = facts
    const config: Sent<PodSandboxConfig> = {
      metadata: { name, uid, namespace: 'bench', attempt: 0 },
      hostname: 'bare',
      logDirectory: `${directory}/bare-logs`,
      linux: {
        cgroupParent: `/podd-bench-${process.pid}/bare`,
        securityContext: { namespaceOptions: { pid: 'CONTAINER' } },
      },
    }
    const { podSandboxId } = await client.runtime.runPodSandbox({ config })
    return new BarePod(client, facts, { config, id: podSandboxId })
  }

  /** CreateContainer and StartContainer. */
  async startContainer(): Promise<void> {
    const { runtime } = this.#client
    const { command, outDirectory } = this.#facts
    const { containerId } = await runtime.createContainer({
      podSandboxId: this.podSandboxId,
      sandboxConfig: this.#config,
      config: {
        metadata: { name: 'main', attempt: 0 },
        image: { image: benchImage },
        command,
        logPath: 'main.log',
        mounts: [{ containerPath: '/out', hostPath: outDirectory }],
        linux: {},
      },
    })
    this.#containerId = containerId
    await runtime.startContainer({ containerId })
  }

  /** StopContainer and StopPodSandbox. */
  async stop(graceSeconds: number): Promise<void> {
    const { runtime } = this.#client
    await runtime.stopContainer({ containerId: this.#containerId, timeout: graceSeconds })
    await runtime.stopPodSandbox({ podSandboxId: this.podSandboxId })
  }

  async remove(): Promise<void> {
    await this.#client.runtime.removePodSandbox({ podSandboxId: this.podSandboxId })
  }
}
