import { createHash } from 'node:crypto'
import { status } from '@grpc/grpc-js'
import type { Clock, Timer } from '../../src/base/clock.ts'
import type * as cri from '../../src/cri-types/cri-v1.ts'
import type { RuntimeEvent } from '../../src/pod/state/observed.ts'

/** An answer that isn't one: the gRPC code and text that a runtime would give. */
export class FakeRuntimeError extends Error {
  readonly grpcCode: number

  constructor(grpcCode: number, message: string) {
    super(message)
    this.grpcCode = grpcCode
  }
}

export const notFound = (what: string): FakeRuntimeError =>
  new FakeRuntimeError(status.NOT_FOUND, `${what}: not found`)
const failed = (message: string): FakeRuntimeError => new FakeRuntimeError(status.UNKNOWN, message)

/** What a container does when it is asked to stop. */
export type StopBehaviour =
  | { readonly kind: 'exits'; readonly afterMs: number; readonly exitCode: number }
  /** Until it is killed. */
  | { readonly kind: 'ignores' }

/** What a container does once it is started. */
export type ContainerScript =
  | { readonly kind: 'runs'; readonly stop?: StopBehaviour }
  | {
      readonly kind: 'exits'
      readonly afterMs: number
      readonly exitCode: number
      readonly reason?: string
      readonly stop?: StopBehaviour
    }
  | { readonly kind: 'fails-to-start'; readonly message: string }

export interface FakeSandbox {
  readonly id: string
  readonly config: cri.PodSandboxConfig
  readonly runtimeHandler: string
  readonly createdAtMs: number
  ready: boolean
  ip: string
}

export interface FakeContainer {
  readonly id: string
  readonly sandbox: FakeSandbox
  readonly config: cri.ContainerConfig
  readonly image: FakeImage
  readonly createdAtMs: number
  state: 'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED' | 'CONTAINER_UNKNOWN'
  /** Its start is in flight: CRI still reports it as created. */
  starting: boolean
  startedAtMs: number | undefined
  finishedAtMs: number | undefined
  exitCode: number
  reason: string
  message: string
  resources: cri.LinuxContainerResources | null
  /** Set while the process lives, which ends before CRI says so. */
  process: FakeProcess | undefined
}

interface FakeProcess {
  readonly stop: StopBehaviour
  readonly exited: Promise<void>
  readonly resolveExited: () => void
  readonly timers: Timer[]
}

export interface FakeImage {
  readonly id: string
  readonly tags: readonly string[]
  readonly sizeBytes: number
  readonly uid: number | undefined
  readonly username: string
  readonly pinned: boolean
}

export interface FakeImageOptions {
  readonly sizeBytes?: number
  readonly uid?: number
  readonly username?: string
  readonly pinned?: boolean
}

/** `busybox` as containerd writes it: `docker.io/library/busybox:latest`. */
export function fullImageName(name: string): string {
  const [first = '', ...rest] = name.split('/')
  const hasDomain = rest.length > 0 && (first.includes('.') || first.includes(':') || first === 'localhost')
  const path = hasDomain ? name : `docker.io/${rest.length > 0 ? name : `library/${name}`}`
  const last = path.slice(path.lastIndexOf('/') + 1)
  return last.includes(':') || last.includes('@') ? path : `${path}:latest`
}

export function makeImage(name: string, options: FakeImageOptions = {}): FakeImage {
  const fullName = fullImageName(name)
  return {
    id: `sha256:${createHash('sha256').update(fullName).digest('hex')}`,
    tags: [fullName],
    sizeBytes: options.sizeBytes ?? 1_000_000,
    uid: options.uid,
    username: options.username ?? '',
    pinned: options.pinned ?? false,
  }
}

type Fact = Extract<RuntimeEvent, { containerId: unknown }>

/** What the fake runtime holds, and how it changes: sandboxes, containers and images as containerd keeps them. */
export class FakeRuntimeWorld {
  readonly sandboxes = new Map<string, FakeSandbox>()
  readonly containers = new Map<string, FakeContainer>()
  readonly images = new Map<string, FakeImage>()
  readonly #clock: Clock
  readonly #emit: (event: Fact) => void
  #ids = 0
  #addresses = 1

  /** How long after a process ended CRI says so; a real containerd takes 20 to 70 ms. */
  exitLagMs = 0

  /** Events of exits say how the process ended, as those of containerd's own stream do. */
  tellsExits = false

  constructor(clock: Clock, emit: (event: Fact) => void) {
    this.#clock = clock
    this.#emit = emit
  }

  #newId(): string {
    this.#ids += 1
    return createHash('sha256').update(String(this.#ids)).digest('hex')
  }

  addSandbox(config: cri.PodSandboxConfig, runtimeHandler: string): FakeSandbox {
    const name = sandboxName(config)
    const other = [...this.sandboxes.values()].find((sandbox) => sandboxName(sandbox.config) === name)
    if (other !== undefined) {
      throw failed(`failed to reserve sandbox name "${name}": name "${name}" is reserved for "${other.id}"`)
    }
    const hostNetwork = config.linux?.securityContext?.namespaceOptions?.network === 'NODE'
    const sandbox: FakeSandbox = {
      id: this.#newId(),
      config,
      runtimeHandler,
      createdAtMs: this.#clock.wallMs(),
      ready: true,
      ip: hostNetwork ? '' : addressOf((this.#addresses += 1)),
    }
    this.sandboxes.set(sandbox.id, sandbox)
    this.#emit({ kind: 'created', containerId: sandbox.id })
    this.#emit({ kind: 'started', containerId: sandbox.id })
    return sandbox
  }

  /** Ends a sandbox's own process, as when its pause process is killed: its containers live on. */
  endSandbox(sandbox: FakeSandbox): void {
    if (!sandbox.ready) return
    sandbox.ready = false
    sandbox.ip = ''
    this.#emit({ kind: 'exited', containerId: sandbox.id })
  }

  stopSandbox(sandbox: FakeSandbox): void {
    for (const container of this.containersOf(sandbox)) this.kill(container)
    this.endSandbox(sandbox)
  }

  removeSandbox(sandbox: FakeSandbox): void {
    this.stopSandbox(sandbox)
    for (const container of this.containersOf(sandbox)) this.removeContainer(container)
    this.sandboxes.delete(sandbox.id)
    this.#emit({ kind: 'deleted', containerId: sandbox.id })
  }

  containersOf(sandbox: FakeSandbox): FakeContainer[] {
    return [...this.containers.values()].filter((container) => container.sandbox === sandbox)
  }

  addContainer(sandbox: FakeSandbox, config: cri.ContainerConfig): FakeContainer {
    const name = containerName(sandbox, config)
    const other = [...this.containers.values()].find((c) => containerName(c.sandbox, c.config) === name)
    if (other !== undefined) {
      throw failed(`failed to reserve container name "${name}": name "${name}" is reserved for "${other.id}"`)
    }
    if (!sandbox.ready) throw notFound('failed to get sandbox container task: no running task found')
    const image = this.findImage(config.image?.image ?? '')
    if (image === undefined) throw notFound(`failed to resolve image "${config.image?.image ?? ''}"`)
    const container: FakeContainer = {
      id: this.#newId(),
      sandbox,
      config,
      image,
      createdAtMs: this.#clock.wallMs(),
      state: 'CONTAINER_CREATED',
      starting: false,
      startedAtMs: undefined,
      finishedAtMs: undefined,
      exitCode: 0,
      reason: '',
      message: '',
      resources: config.linux?.resources ?? null,
      process: undefined,
    }
    this.containers.set(container.id, container)
    this.#emit({ kind: 'created', containerId: container.id })
    return container
  }

  start(container: FakeContainer, script: ContainerScript): void {
    container.starting = false
    if (container.state !== 'CONTAINER_CREATED') {
      throw failed(
        `failed to set starting state for container "${container.id}": container is in ${container.state} state`,
      )
    }
    if (!container.sandbox.ready) throw failed(`sandbox container "${container.sandbox.id}" is not running`)
    if (script.kind === 'fails-to-start') {
      Object.assign(container, { exitCode: 128, reason: 'StartError', message: script.message })
      container.state = 'CONTAINER_EXITED'
      container.finishedAtMs = this.#clock.wallMs()
      throw failed(script.message)
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    const process: FakeProcess = {
      stop: script.stop ?? { kind: 'exits', afterMs: 0, exitCode: 143 },
      exited: promise,
      resolveExited: resolve,
      timers: [],
    }
    container.process = process
    container.state = 'CONTAINER_RUNNING'
    container.startedAtMs = this.#clock.wallMs()
    this.#emit({ kind: 'started', containerId: container.id })
    if (script.kind === 'exits') {
      const { exitCode, reason } = script
      process.timers.push(
        this.#clock.startTimer(script.afterMs, () => this.exit(container, exitCode, reason)),
      )
    }
  }

  /** Ends a container's process. */
  exit(container: FakeContainer, exitCode: number, reason = exitCode === 0 ? 'Completed' : 'Error'): void {
    const { process } = container
    if (process === undefined) return
    container.process = undefined
    for (const timer of process.timers) timer.cancel()
    const finishedAtMs = this.#clock.wallMs()
    const takeNote = (): void => {
      Object.assign(container, { exitCode, reason, finishedAtMs })
      container.state = 'CONTAINER_EXITED'
      process.resolveExited()
    }
    if (this.exitLagMs === 0) takeNote()
    if (reason === 'OOMKilled') this.#emit({ kind: 'oom', containerId: container.id })
    const exit = this.tellsExits ? { exitCode, atMs: finishedAtMs } : undefined
    this.#emit({ kind: 'exited', containerId: container.id, exit })
    if (this.exitLagMs > 0) this.#clock.startTimer(this.exitLagMs, takeNote)
  }

  /** Tells late that a container ended for its memory. */
  tellOom(container: FakeContainer): void {
    container.reason = 'OOMKilled'
    this.#emit({ kind: 'oom', containerId: container.id })
  }

  kill(container: FakeContainer): void {
    this.exit(container, 137)
  }

  /** SIGTERM, then SIGKILL after the timeout; resolves when the container is shown as exited. */
  async stop(container: FakeContainer, timeoutMs: number): Promise<void> {
    const { process } = container
    if (process === undefined) return
    if (process.stop.kind === 'exits') {
      const { afterMs, exitCode } = process.stop
      if (afterMs === 0) this.exit(container, exitCode)
      else process.timers.push(this.#clock.startTimer(afterMs, () => this.exit(container, exitCode)))
    }
    process.timers.push(this.#clock.startTimer(timeoutMs, () => this.kill(container)))
    await process.exited
  }

  /**
   * Kills what runs, and refuses what it can't tell yet: a container whose exit it has not noted, or that it starts
   * (`internal/cri/server/container_remove.go` setContainerRemoving, containerd 2.1).
   */
  removeContainer(container: FakeContainer): void {
    const refuse = (why: string): Error =>
      failed(`failed to set removing state for container "${container.id}": container is ${why}`)
    if (container.state === 'CONTAINER_RUNNING' && container.process === undefined)
      throw refuse('still running, to stop first')
    if (container.state === 'CONTAINER_CREATED' && container.starting)
      throw refuse("in starting state, can't be removed")
    this.kill(container)
    this.containers.delete(container.id)
    this.#emit({ kind: 'deleted', containerId: container.id })
  }

  /** By id, by name as it stands, or by its full name. */
  findImage(name: string): FakeImage | undefined {
    const fullName = fullImageName(name)
    return this.images.get(name) ?? [...this.images.values()].find((image) => image.tags.includes(fullName))
  }

  getSandbox(id: string): FakeSandbox {
    const sandbox = this.sandboxes.get(id)
    if (sandbox === undefined) throw notFound(`an error occurred when try to find sandbox "${id}"`)
    return sandbox
  }

  getContainer(id: string): FakeContainer {
    const container = this.containers.get(id)
    if (container === undefined) throw notFound(`an error occurred when try to find container "${id}"`)
    return container
  }
}

function sandboxName({ metadata }: cri.PodSandboxConfig): string {
  return `${metadata?.name}_${metadata?.namespace}_${metadata?.uid}_${metadata?.attempt}`
}

function containerName(sandbox: FakeSandbox, { metadata }: cri.ContainerConfig): string {
  const { name, namespace, uid } = sandbox.config.metadata ?? {}
  return `${metadata?.name}_${name}_${namespace}_${uid}_${metadata?.attempt}`
}

/** Of 10.88.0.0/16: sandboxes that need an address of their own can be many thousands. */
function addressOf(count: number): string {
  return `10.88.${Math.floor(count / 256) % 256}.${count % 256}`
}
