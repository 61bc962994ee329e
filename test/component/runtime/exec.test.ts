import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { PoddError } from '../../../src/base/errors.ts'
import type { ContainerdChannel } from '../../../src/runtime/containerd/records.ts'
import { ContainerdExec } from '../../../src/runtime/containerd/exec.ts'

const spec = Buffer.from(JSON.stringify({ process: { args: ['sh'], cwd: '/', env: [], user: {} } }))

/** A containerd whose commands run until `end`, and that fails at a call where it is told so. */
class FakeContainerd implements ContainerdChannel {
  readonly sent: { readonly name: string; readonly execId: string }[] = []
  failing: string | undefined
  readonly #over = Promise.withResolvers<void>()

  /** Another podd's command can't be killed yet. */
  isStarting = false
  #left = false
  #isOver = false

  end(): void {
    this.#isOver = true
    this.#over.resolve()
  }

  /** A command of another podd runs, until it is killed. */
  leaveCommand(): void {
    this.#left = true
  }

  ready(): Promise<void> {
    return Promise.resolve()
  }

  stream(): Promise<void> {
    return Promise.reject(new Error('no call of these streams'))
  }

  async unary({ path }: { readonly path: string }, request: object): Promise<object> {
    const name = path.slice(path.lastIndexOf('/') + 1)
    const execId = 'execId' in request ? String(request.execId) : ''
    this.sent.push({ name, execId })
    if (name === this.failing) throw new PoddError('RUNTIME_NOT_FOUND', 'gone')
    if (this.isStarting && ['Kill', 'DeleteProcess'].includes(name))
      throw new PoddError('EXEC_FAILED', 'it does not run yet')
    if (name === 'Kill' && this.#left) this.end()
    if (this.#left && name === 'DeleteProcess' && !this.#isOver) throw new PoddError('EXEC_FAILED', 'it runs')
    if (name === 'Wait') await this.#over.promise
    return name === 'Get' ? { container: { spec: { value: spec } } } : { exitStatus: 0 }
  }
}

describe('ContainerdExec', () => {
  const command = { containerId: 'c1', command: ['true'], terminal: false, stdin: false }
  let directory = ''
  let containerd: FakeContainerd
  let exec: ContainerdExec

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'podd-exec-'))
    containerd = new FakeContainerd()
    exec = new ContainerdExec(containerd, directory, {
      ...systemClock,
      // Its output is waited for a second.
      sleep: () => nextTurn(),
    })
  })

  afterEach(async () => {
    await rm(directory, { recursive: true, force: true })
  })

  /** Whether the exec takes a command's directory, put there again, for another podd's. */
  async function isForgotten(): Promise<boolean> {
    const execId = containerd.sent.find(({ name }) => name === 'Exec')?.execId ?? 'none'
    const path = join(directory, `c1.${execId}`)
    await mkdir(path, { recursive: true })
    await exec.sweep()
    return !existsSync(path)
  }

  it('sweeps away no command that runs, and forgets one that has gone', async () => {
    const running = await exec.start(command)
    expect(await isForgotten()).toBe(false)
    containerd.end()
    await running.removed
    expect(await isForgotten()).toBe(true)
  })

  it('ends a command that another podd left in the middle of its start, and nothing before', async () => {
    const path = join(directory, 'c1.other')
    await mkdir(path)
    containerd.leaveCommand()
    containerd.isStarting = true
    const sweeping = exec.sweep()
    while (containerd.sent.filter(({ name }) => name === 'Kill').length < 3) await nextTurn()
    expect(existsSync(path)).toBe(true)
    containerd.isStarting = false
    await sweeping
    expect(existsSync(path)).toBe(false)
  })

  it('leaves what can’t be ended to the next podd', async () => {
    const path = join(directory, 'c1.other')
    await mkdir(path)
    containerd.leaveCommand()
    containerd.isStarting = true
    await exec.sweep()
    expect(existsSync(path)).toBe(true)
  })

  it('looks twice for a command that is not there', async () => {
    await mkdir(join(directory, 'c1.other'))
    containerd.failing = 'DeleteProcess'
    const gone = containerd.unary.bind(containerd)
    containerd.unary = async (method, request) => {
      const name = method.path.split('/').at(-1) ?? ''
      if (name === 'Kill') {
        containerd.sent.push({ name, execId: 'other' })
        throw new PoddError('RUNTIME_NOT_FOUND', 'gone')
      }
      return gone(method, request)
    }
    await exec.sweep()
    expect(containerd.sent.filter(({ name }) => name === 'Kill')).toHaveLength(2)
    expect(existsSync(join(directory, 'c1.other'))).toBe(false)
  })

  it('tells the sizes of a terminal one after the other, and the last one last', async () => {
    const told: unknown[] = []
    const held: (() => void)[] = []
    const others = containerd.unary.bind(containerd)
    containerd.unary = async (method, request) => {
      if (!method.path.endsWith('/ResizePty')) return others(method, request)
      told.push('width' in request && request.width)
      await new Promise<void>((resolve) => void held.push(resolve))
      return {}
    }
    const running = await exec.start({ ...command, terminal: true })
    const resizes = [90, 100, 120].map((columns) => running.resize({ columns, rows: 40 }))
    await nextTurn()
    expect(told).toEqual([90])
    held[0]?.()
    await nextTurn()
    expect(told).toEqual([90, 120])
    held[1]?.()
    await Promise.all(resizes)
    const again = running.resize({ columns: 80, rows: 40 })
    await nextTurn()
    held[2]?.()
    await again
    expect(told).toEqual([90, 120, 80])
    containerd.end()
    await running.removed
  })

  it('forgets a command that did not start', async () => {
    containerd.failing = 'Start'
    await expect(exec.start(command)).rejects.toMatchObject({ code: 'RUNTIME_NOT_FOUND' })
    containerd.end()
    expect(await isForgotten()).toBe(true)
  })

  it.each(['Get', 'Exec', 'Start'])('tells that the container is gone when %s does', async (call) => {
    containerd.failing = call
    await expect(exec.start(command)).rejects.toMatchObject({ code: 'RUNTIME_NOT_FOUND' })
  })
})
