import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { CriClient } from '../../src/runtime/cri-client.ts'
import type * as cri from '../../src/cri-types/cri-v1.ts'
import { commands, programs } from '../support/contract-target.ts'
import type { ContractTarget, Program } from '../support/contract-target.ts'
import { shellImageName } from '../support/oci-image.ts'
import { slowness } from '../support/slowness.ts'

/** One runtime under the contract: its client, and what cases need to make pods on it. */
export class Contract {
  /** The RPCs that cases have made so far. */
  readonly #called = new Set<string>()
  readonly #name: string
  readonly #start: () => Promise<ContractTarget>
  #target: ContractTarget | undefined
  #client: CriClient | undefined
  #cases = 0
  #passed = 0
  #pods = 0

  constructor(name: string, start: () => Promise<ContractTarget>) {
    this.#name = name
    this.#start = start
  }

  /** To be called once in the runtime's describe block. */
  register(): void {
    beforeAll(async () => {
      this.#target = await this.#start()
      const onCall = (method: string): void => void this.#called.add(method)
      this.#client = new CriClient({
        endpoint: this.target.endpoint,
        clock: systemClock,
        // A runtime that is started again beside other work takes longer than podd would wait for it.
        reconnectWaitMs: 20_000 * slowness,
        onCall,
      })
    })
    afterEach(async () => {
      this.target.setCni('works')
      const { items } = await this.client.runtime.listPodSandbox({})
      for (const { id } of items) await this.client.runtime.removePodSandbox({ podSandboxId: id })
    })
    afterAll(async () => {
      this.#client?.close()
      await this.#target?.remove()
      process.stdout.write(`contract: ${this.#passed} cases held on ${this.#name}\n`)
      // Where some were not asked for, or failed, that says nothing.
      if (this.#passed === this.#cases) this.#expectAllCalled()
    })
  }

  get target(): ContractTarget {
    if (this.#target === undefined) throw new Error('the runtime has not been started')
    return this.#target
  }

  get client(): CriClient {
    if (this.#client === undefined) throw new Error('the runtime has not been started')
    return this.#client
  }

  /** Whether the runtime is of this containerd release or a later one. */
  isFrom(release: string): boolean {
    return Number(this.target.release) >= Number(release)
  }

  /** One counted case. */
  holds(what: string, check: () => Promise<void>): void {
    this.#cases += 1
    // Every case asserts; vitest sees that where the case is written.
    // eslint-disable-next-line vitest/expect-expect
    it(what, async () => {
      await check()
      this.#passed += 1
    })
  }

  /** All cases together make every call of the client. */
  #expectAllCalled(): void {
    const methods = [...Object.keys(this.client.runtime), ...Object.keys(this.client.images)]
    const called = [...this.#called].map((name) => `${name.charAt(0).toLowerCase()}${name.slice(1)}`)
    expect(called.toSorted()).toEqual(methods.toSorted())
  }

  /** The config of a pod that no case has used before. */
  podConfig(extra: cri.Sent<cri.PodSandboxConfig> = {}): cri.Sent<cri.PodSandboxConfig> {
    this.#pods += 1
    const name = `pod${this.#pods}`
    return {
      metadata: { name, namespace: 'contract', uid: `uid-${this.#pods}`, attempt: 0 },
      hostname: name,
      logDirectory: `${this.target.logsDir}/${name}`,
      labels: { app: name },
      linux: { cgroupParent: this.target.cgroupParent },
      ...extra,
    }
  }

  async runPod(sandboxConfig: cri.Sent<cri.PodSandboxConfig> = this.podConfig()): Promise<ContractPod> {
    const { podSandboxId } = await this.client.runtime.runPodSandbox({ config: sandboxConfig })
    return new ContractPod(this.client, podSandboxId, sandboxConfig)
  }
}

export class ContractPod {
  readonly id: string
  readonly sandboxConfig: cri.Sent<cri.PodSandboxConfig>
  readonly #client: CriClient

  constructor(client: CriClient, id: string, sandboxConfig: cri.Sent<cri.PodSandboxConfig>) {
    this.#client = client
    this.id = id
    this.sandboxConfig = sandboxConfig
  }

  containerConfig(
    program: Program,
    extra: cri.Sent<cri.ContainerConfig> = {},
  ): cri.Sent<cri.CreateContainerRequest> {
    const config = {
      metadata: { name: program, attempt: 0 },
      image: { image: shellImageName },
      command: programs[program].command,
      logPath: `${program}.log`,
      labels: { program },
      annotations: { note: 'kept' },
      ...extra,
    }
    return { podSandboxId: this.id, sandboxConfig: this.sandboxConfig, config }
  }

  async create(program: Program, extra: cri.Sent<cri.ContainerConfig> = {}): Promise<string> {
    const { containerId } = await this.#client.runtime.createContainer(this.containerConfig(program, extra))
    return containerId
  }

  async start(program: Program, extra: cri.Sent<cri.ContainerConfig> = {}): Promise<string> {
    const containerId = await this.create(program, extra)
    await this.#client.runtime.startContainer({ containerId })
    return containerId
  }

  /** Starts a container and waits until its program has set its trap. */
  async begin(program: 'obeys' | 'ignores'): Promise<string> {
    const containerId = await this.start(program)
    await this.untilTrue(containerId, 'hasBegun')
    return containerId
  }

  async untilTrue(containerId: string, question: 'hasBegun' | 'wasTold'): Promise<void> {
    const cmd = commands[question]
    await expect
      .poll(async () => (await this.#client.runtime.execSync({ containerId, cmd, timeout: 5 })).exitCode)
      .toBe(0)
  }

  async sandboxStatus(): Promise<cri.PodSandboxStatus> {
    const { status } = await this.#client.runtime.podSandboxStatus({ podSandboxId: this.id })
    if (status === null) throw new Error('no status')
    return status
  }

  async containerStatus(containerId: string): Promise<cri.ContainerStatus> {
    const { status } = await this.#client.runtime.containerStatus({ containerId })
    if (status === null) throw new Error('no status')
    return status
  }
}
