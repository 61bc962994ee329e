import { beforeEach, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig
/** The container whose probes fail. */
let failing: string | undefined

beforeEach(async () => {
  rig = new PodRig()
  failing = undefined
  rig.probe = (id) => ({ result: id === failing ? 'failure' : 'success', output: '' })
  // A process that handles SIGTERM, and takes a second for it.
  rig.fake.script('main', { kind: 'runs', stop: { kind: 'exits', afterMs: 1000, exitCode: 0 } })
  await rig.start()
})

const livenessProbe = { exec: { command: ['alive'] }, periodSeconds: 1, failureThreshold: 1 }
const sidecar = { name: 'side', image: 'side:1', restartPolicy: 'Always' }

function job(spec: JsonObject = {}): JsonObject {
  const containers = [{ name: 'main', image: 'app:1', livenessProbe }]
  return podManifest('job', { restartPolicy: 'OnFailure', containers, ...spec })
}

/** The phases that are shown from now on. */
function phases(): Set<string> {
  const seen = new Set<string>()
  rig.system.statuses.subscribe(() => rig.pods('job').forEach(({ status }) => seen.add(status.phase)))
  return seen
}

async function failLiveness(): Promise<void> {
  failing = rig.fake.container('main').id
  await rig.clock.advance(1500)
}

describe('a container under OnFailure that is stopped for a failed probe, and then exits with 0', () => {
  beforeEach(async () => {
    await rig.apply(job())
    await rig.clock.advance(3000)
  })

  it('runs again, and its pod is never shown as over', async () => {
    const seen = phases()
    await failLiveness()
    await rig.clock.advance(3000)
    expect(rig.running()).toEqual(['job/main'])
    expect(rig.container('job')).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 0 } },
    })
    expect([...seen]).toEqual(['Running'])
  })

  it('runs again after its backoff', async () => {
    for (let kill = 0; kill < 3; kill += 1) {
      await failLiveness()
      await rig.clock.advance(3000)
    }
    expect(rig.running()).toEqual([])
    expect(rig.container('job').state.waiting?.reason).toBe('CrashLoopBackOff')
    expect(rig.pod('job').status.phase).toBe('Running')
    await rig.clock.advance(10_000)
    expect(rig.running()).toEqual(['job/main'])
    expect(rig.container('job').restartCount).toBe(3)
  })

  it.each([
    ['killed', () => rig.kill()],
    ['told to end', () => rig.terminate()],
  ] as const)('runs again by the next podd, where this one was %s meanwhile', async (_, end) => {
    await failLiveness()
    await end()
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual([])
    await rig.start()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['job/main'])
    expect(rig.container('job').restartCount).toBe(1)
    expect(rig.records.named('job')?.restartsDue).toBeUndefined()
  })

  it.each([
    ['runs again by the next podd, where it ends within its grace', 20_000, ['job/main'], 'Running'],
    ['completes, where the next podd finds it alive and it ends much later', 40_000, [], 'Succeeded'],
  ] as const)('%s', async (_, afterMs, running, phase) => {
    rig.fake.fault('StopContainer', { kind: 'fails' }, { times: 1000 })
    await failLiveness()
    await rig.kill()
    rig.fake.clearFaults()
    failing = undefined
    await rig.start()
    await rig.clock.advance(afterMs)
    expect(rig.running()).toEqual(['job/main'])
    rig.fake.exitContainer('main', 0)
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(running)
    expect(rig.pod('job').status.phase).toBe(phase)
    expect(rig.records.named('job')?.restartsDue).toBeUndefined()
  })

  it('runs again once the runtime can create it', async () => {
    rig.fake.fault('CreateContainer', { kind: 'fails' }, { times: 2 })
    await failLiveness()
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['job/main'])
  })

  it('ends its pod where its successor exits with 0 by itself', async () => {
    await failLiveness()
    await rig.clock.advance(3000)
    rig.fake.exitContainer('main', 0)
    await rig.clock.advance(3000)
    expect(rig.pod('job').status.phase).toBe('Succeeded')
    expect(rig.running()).toEqual([])
  })
})

describe('a pod under OnFailure with a sidecar whose sandbox dies', () => {
  const withSidecar = job({ initContainers: [sidecar] })

  beforeEach(async () => {
    await rig.apply(withSidecar)
    await rig.clock.advance(3000)
  })

  it('runs again although its container handles SIGTERM and exits with 0', async () => {
    const seen = phases()
    const [sandbox] = rig.fake.sandboxesOf('job')
    if (sandbox !== undefined) sandbox.ready = false
    await rig.clock.advance(600_000)
    expect(rig.running()).toEqual(['job/main', 'job/side'])
    expect(rig.container('job').restartCount).toBe(1)
    expect([...seen]).toEqual(['Running'])
  })

  it.each([
    ['while podd is there', async () => {}, () => rig.clock.advance(0)],
    ['while podd is away', () => rig.kill(), () => rig.start()],
  ] as const)('has succeeded where its container had ended with 0, %s', async (_, before, after) => {
    await before()
    const sandboxes = rig.fake.sandboxesOf('job').length
    rig.fake.exitContainer('main', 0)
    rig.fake.endSandbox('job')
    await after()
    await rig.clock.advance(60_000)
    expect(rig.pod('job').status.phase).toBe('Succeeded')
    expect(rig.running()).toEqual([])
    expect(rig.fake.containersNamed('side')).toHaveLength(1)
    expect(rig.fake.sandboxesOf('job')).toHaveLength(sandboxes)
    expect(rig.fake.sandboxesOf('job').some(({ ready }) => ready)).toBe(false)
  })
})
