import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { PoddError } from '../../../src/base/errors.ts'
import { HeldExec } from '../../../src/runtime/containerd/exec.ts'
import type { ContainerdChannel } from '../../../src/runtime/containerd/records.ts'

const spec = Buffer.from(JSON.stringify({ process: { args: ['sh'], cwd: '/', env: [], user: {} } }))

/** A containerd with one container, in which each command runs until `end`. */
class FakeContainerd implements ContainerdChannel {
  readonly sent: string[] = []
  status: 'absent' | 'CREATED' | 'RUNNING' | 'STOPPED' = 'absent'
  isAway = false
  isGone = false
  /** Another podd's call comes first. */
  startsFirst = false
  exitStatus = 0
  readonly #over = Promise.withResolvers<void>()

  end(exitStatus: number): void {
    this.exitStatus = exitStatus
    this.status = 'STOPPED'
    this.#over.resolve()
  }

  ready(): Promise<void> {
    return Promise.resolve()
  }

  stream(): Promise<void> {
    return Promise.reject(new Error('no call of these streams'))
  }

  async unary({ path }: { readonly path: string }, _request: object): Promise<object> {
    const call = path.replace(
      /^.*\.(\w+)\/(\w+)$/u,
      (_, service: string, name: string) => `${service.toLowerCase()}.${name}`,
    )
    this.sent.push(call.replace('tasks.', ''))
    if (this.isAway) throw new PoddError('RUNTIME_UNAVAILABLE', 'away')
    switch (call) {
      case 'containers.Get':
        return { container: { spec: { value: spec } } }
      case 'tasks.Get':
        if (this.status === 'absent') throw new PoddError('RUNTIME_NOT_FOUND', 'no such process')
        return { process: { status: this.status } }
      case 'tasks.Exec':
        if (this.isGone) throw new PoddError('RUNTIME_NOT_FOUND', 'no such container')
        this.status = 'CREATED'
        if (this.startsFirst) throw new PoddError('RUNTIME_EXISTS', 'there is one')
        return {}
      case 'tasks.Start':
        if (this.startsFirst) this.status = 'RUNNING'
        if (this.status !== 'CREATED') throw new PoddError('RUNTIME_FAILED', 'it runs already')
        this.status = 'RUNNING'
        return {}
      case 'tasks.Wait':
        if (this.status !== 'STOPPED') await this.#over.promise
        return { exitStatus: this.exitStatus }
      default:
        throw new PoddError('INTERNAL', path)
    }
  }
}

const command = { containerId: 'c1', execId: 'podd-preStop', command: ['true'] }
let directory = ''
let containerd: FakeContainerd

const podd = (runDir = directory): HeldExec =>
  // Its output is waited for a second.
  new HeldExec(containerd, runDir, { ...systemClock, sleep: () => nextTurn() })
const signal = (): AbortSignal => new AbortController().signal

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-held-'))
  containerd = new FakeContainerd()
})

afterEach(() => rm(directory, { recursive: true, force: true }))

it('runs a command, gives its exit code, and leaves the runtime to remember it', async () => {
  const sent = Promise.withResolvers<void>()
  const running = podd().run({ ...command, onSent: sent.resolve }, signal())
  await sent.promise
  containerd.end(3)
  expect(await running).toEqual({ exitCode: 3, output: '' })
  expect(containerd.sent).toEqual(['Get', 'containers.Get', 'Exec', 'Start', 'Wait'])
  while (readdirSync(directory).length > 0) await nextTurn()
})

it('waits for a command of a podd before it, and does not run it again once it has ended', async () => {
  const before = new AbortController()
  const first = podd().run(command, before.signal)
  while (containerd.status !== 'RUNNING') await nextTurn()
  before.abort(new PoddError('STOPPED', 'podd is stopping'))
  await expect(first).rejects.toThrow('podd is stopping')
  containerd.sent.length = 0
  const second = podd().run(command, signal())
  containerd.end(1)
  expect(await second).toMatchObject({ exitCode: 1 })
  // The pipes go when a command has ended: those before it may still be at that.
  expect(await podd(join(directory, 'third')).run(command, signal())).toMatchObject({ exitCode: 1 })
  expect(containerd.sent).toEqual(['Get', 'Wait', 'Get', 'Wait'])
})

it('waits once for a command that is asked for again meanwhile', async () => {
  const one = podd()
  const before = new AbortController()
  const first = one.run(command, before.signal)
  while (containerd.status !== 'RUNNING') await nextTurn()
  before.abort(new PoddError('STOPPED', 'the pass is over'))
  await expect(first).rejects.toThrow('the pass is over')
  const second = one.run(command, signal())
  containerd.end(7)
  expect(await second).toMatchObject({ exitCode: 7 })
  expect(containerd.sent.filter((name) => name === 'Wait')).toHaveLength(1)
})

it('starts what a podd before it has made and not started', async () => {
  containerd.status = 'CREATED'
  const running = podd().run(command, signal())
  while (containerd.status === 'CREATED') await nextTurn()
  containerd.end(0)
  expect(await running).toMatchObject({ exitCode: 0 })
  expect(containerd.sent).toEqual(['Get', 'Start', 'Wait'])
})

it('starts none where calls of another podd arrive in between', async () => {
  containerd.startsFirst = true
  const running = podd().run(command, signal())
  while (containerd.status !== 'RUNNING') await nextTurn()
  containerd.end(0)
  expect(await running).toMatchObject({ exitCode: 0 })
})

it('says that the runtime is away, or the container gone, and leaves pipes that a command may use', async () => {
  containerd.isAway = true
  await expect(podd().run(command, signal())).rejects.toMatchObject({ code: 'RUNTIME_UNAVAILABLE' })
  expect(readdirSync(directory)).toHaveLength(1)
  containerd.isAway = false
  containerd.isGone = true
  await expect(podd().run(command, signal())).rejects.toMatchObject({ code: 'RUNTIME_NOT_FOUND' })
  expect(readdirSync(directory)).toEqual([])
})
