import { beforeEach, describe, expect, it } from 'vitest'
import type { RuntimeEvent } from '../../../src/pod/state/observed.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const sandboxConfig = {
  metadata: { name: 'pod', namespace: 'ns', uid: 'u1', attempt: 0 },
  logDirectory: '/logs',
}

let clock: ManualClock
let fake: FakeRuntime

beforeEach(() => {
  clock = new ManualClock()
  fake = new FakeRuntime({ clock, images: ['app'] })
})

async function makeContainer(name: string): Promise<string> {
  const sandboxes = fake.sandboxesOf('pod')
  const podSandboxId =
    sandboxes[0]?.id ?? (await fake.runtime.runPodSandbox({ config: sandboxConfig })).podSandboxId
  const config = { metadata: { name }, image: { image: 'app' }, logPath: `${name}/0.log` }
  const { containerId } = await fake.runtime.createContainer({ podSandboxId, sandboxConfig, config })
  await fake.runtime.startContainer({ containerId })
  return containerId
}

async function statusOf(containerId: string) {
  const { status } = await fake.runtime.containerStatus({ containerId })
  return status!
}

describe('containers of the fake runtime', () => {
  it("run until they are stopped, and their times are the clock's", async () => {
    const id = await makeContainer('web')
    await clock.advance(5000)
    expect(await statusOf(id)).toMatchObject({
      state: 'CONTAINER_RUNNING',
      startedAt: Date.UTC(2026, 0, 1) * 1e6,
      logPath: '/logs/web/0.log',
    })
    await fake.runtime.stopContainer({ containerId: id, timeout: 30 })
    expect(await statusOf(id)).toMatchObject({
      state: 'CONTAINER_EXITED',
      exitCode: 143,
      reason: 'Error',
      finishedAt: (Date.UTC(2026, 0, 1) + 5000) * 1e6,
    })
  })

  it('exit as their script says', async () => {
    fake.script('job', { kind: 'exits', afterMs: 700, exitCode: 0 })
    const id = await makeContainer('job')
    await clock.advance(699)
    expect((await statusOf(id)).state).toBe('CONTAINER_RUNNING')
    await clock.advance(1)
    expect(await statusOf(id)).toMatchObject({ state: 'CONTAINER_EXITED', exitCode: 0, reason: 'Completed' })
  })

  it('that ignore SIGTERM are killed when the timeout is over', async () => {
    fake.script('stubborn', { kind: 'runs', stop: { kind: 'ignores' } })
    const id = await makeContainer('stubborn')
    let stopped = false
    const stop = fake.runtime.stopContainer({ containerId: id, timeout: 10 }).then(() => (stopped = true))
    await clock.advance(9999)
    expect(stopped).toBe(false)
    await clock.advance(1)
    await stop
    expect((await statusOf(id)).exitCode).toBe(137)
  })

  it('may be shown as exited later than their event', async () => {
    const id = await makeContainer('web')
    const events: RuntimeEvent[] = []
    fake.listen((event) => events.push(event))
    fake.world.exitLagMs = 40
    fake.exitContainer('web', 1)
    expect(events).toEqual([{ kind: 'exited', containerId: id }])
    expect((await statusOf(id)).state).toBe('CONTAINER_RUNNING')
    await clock.advance(40)
    expect((await statusOf(id)).state).toBe('CONTAINER_EXITED')
  })
})

describe('faults of the fake runtime', () => {
  it('fail the calls they were made for, and no others', async () => {
    fake.fault('StartContainer', { kind: 'fails', message: 'no space' })
    await expect(makeContainer('web')).rejects.toMatchObject({ code: 'RUNTIME_FAILED', message: 'no space' })
    const id = fake.container('web').id
    await fake.runtime.startContainer({ containerId: id })
    expect(fake.calls('StartContainer').map(({ outcome }) => outcome)).toEqual(['failed', 'ok'])
  })

  it('a call that hangs ends at its deadline', async () => {
    fake.fault('RunPodSandbox', { kind: 'hangs' })
    const run = fake.runtime.runPodSandbox({ config: sandboxConfig }).catch((error: unknown) => error)
    await clock.advance(240_000)
    expect(await run).toMatchObject({ code: 'RUNTIME_TIMEOUT', method: 'RunPodSandbox' })
  })

  it('a lost reply hides that the work was done', async () => {
    fake.fault('RunPodSandbox', { kind: 'loses-reply' })
    await expect(fake.runtime.runPodSandbox({ config: sandboxConfig })).rejects.toMatchObject({
      code: 'RUNTIME_UNAVAILABLE',
    })
    expect(fake.sandboxesOf('pod')).toHaveLength(1)
  })

  it('while it is down nothing answers and events are lost', async () => {
    const events: RuntimeEvent[] = []
    const stop = new AbortController()
    const run = fake.events.run((event) => events.push(event), stop.signal)
    await makeContainer('web')
    fake.goDown()
    await expect(fake.runtime.listContainers({})).rejects.toMatchObject({ code: 'RUNTIME_UNAVAILABLE' })
    fake.exitContainer('web', 1)
    fake.comeUp()
    stop.abort()
    await run
    const kinds = events.map(({ kind }) => kind)
    expect(kinds).toEqual(['opened', 'created', 'started', 'created', 'started', 'lost', 'opened'])
    expect((await fake.runtime.listContainers({})).containers[0]?.state).toBe('CONTAINER_EXITED')
  })
})
