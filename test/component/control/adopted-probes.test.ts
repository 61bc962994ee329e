import { beforeEach, describe, expect, it } from 'vitest'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig

beforeEach(() => {
  rig = new PodRig()
})

const exec = (word: string) => ({ exec: { command: [word] }, periodSeconds: 1 })
const slow = { failureThreshold: 60 }
const web = podManifest('web', {
  containers: [
    {
      name: 'main',
      image: 'app:1',
      startupProbe: { ...exec('main-up'), ...slow },
      readinessProbe: exec('main-ready'),
    },
    { name: 'side', image: 'side:1', startupProbe: { ...exec('side-up'), ...slow } },
  ],
})

/** Says which probes succeed from now on; gives those that are sent. */
function answer(...good: readonly string[]): Set<string> {
  const sent = new Set<string>()
  rig.probe = (_id, { exec: { command: [word = ''] } = { command: [] } }) => {
    sent.add(word)
    return { result: good.includes(word) ? 'success' : 'failure', output: '' }
  }
  return sent
}

function started(): readonly (boolean | undefined)[] {
  return ['main', 'side'].map((name) => rig.container('web', name).started)
}

describe.each([
  ['killed', () => rig.kill()],
  ['told to end', () => rig.terminate()],
] as const)('a podd that was %s knows which containers have started up', (_, end) => {
  it('of a pod that was never ready, and asks only the others whether they have', async () => {
    await rig.start()
    answer('main-up')
    await rig.apply(web)
    await rig.clock.advance(3000)
    expect(started()).toEqual([true, false])
    await end()
    const sent = answer()
    rig.boot()
    const seen = new Set<string>()
    rig.system.statuses.subscribe(() => seen.add(started().join()))
    await rig.settle()
    await rig.offer()
    await rig.clock.advance(3000)
    expect([...seen]).toEqual(['true,false'])
    expect([...sent].toSorted()).toEqual(['main-ready', 'side-up'])
  })

  it('and keeps each one’s own readiness', async () => {
    await rig.start()
    answer('main-ready')
    const probe = (word: string) => ({ readinessProbe: exec(word) })
    const containers = [
      { name: 'main', image: 'app:1', ...probe('main-ready') },
      { name: 'side', image: 'side:1', ...probe('side-ready') },
    ]
    await rig.apply(podManifest('web', { containers }))
    await rig.clock.advance(3000)
    const ready = () => ['main', 'side'].map((name) => rig.container('web', name).ready).join()
    expect(ready()).toBe('true,false')
    await end()
    rig.boot()
    const seen = new Set<string>()
    rig.system.statuses.subscribe(() => seen.add(ready()))
    await rig.settle()
    await rig.offer()
    await rig.clock.advance(3000)
    expect([...seen]).toEqual(['true,false'])
  })

  it('and their readiness, where the wall clock was set back after they had started', async () => {
    await rig.start()
    answer('main-up', 'side-up')
    await rig.apply(web)
    await rig.clock.advance(3000)
    rig.clock.setWall(rig.clock.wallMs() - 3_600_000)
    answer('main-ready')
    await rig.clock.advance(3000)
    expect(rig.condition('web', 'Ready')).toBe('True')
    await end()
    rig.boot()
    const seen = new Set<unknown>()
    rig.system.statuses.subscribe(() => seen.add(rig.condition('web', 'Ready')))
    await rig.settle()
    await rig.offer()
    await rig.clock.advance(3000)
    expect([...seen]).toEqual(['True'])
  })

  it('and takes the successor of one that had for a new one', async () => {
    await rig.start()
    answer('main-up', 'side-up', 'main-ready')
    await rig.apply(web)
    await rig.clock.advance(3000)
    expect(rig.condition('web', 'ContainersReady')).toBe('True')
    answer('side-up')
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(3000)
    expect(rig.container('web')).toMatchObject({ restartCount: 1, started: false })
    await end()
    const sent = answer()
    await rig.start()
    await rig.clock.advance(3000)
    expect(started()).toEqual([false, true])
    expect([...sent]).toEqual(['main-up'])
  })

  it('of a ready pod by its readiness, where an older podd kept the record', async () => {
    await rig.start()
    answer('main-up', 'side-up', 'main-ready')
    await rig.apply(web)
    await rig.clock.advance(3000)
    expect(Object.keys(rig.records.named('web')?.containers ?? {}).toSorted()).toEqual(['main', 'side'])
    await end()
    for (const [uid, record] of rig.records.saved) rig.records.saved.set(uid, { ...record, containers: {} })
    const sent = answer()
    await rig.start()
    expect(started()).toEqual([true, true])
    await rig.clock.advance(2000)
    expect([...sent]).toEqual(['main-ready'])
  })
})

it('a pod that ends before it has started up is not taken down as started', async () => {
  for (const name of ['main', 'side']) rig.fake.script(name, { kind: 'runs', stop: { kind: 'ignores' } })
  await rig.start()
  answer()
  await rig.apply(web)
  await rig.clock.advance(2000)
  await rig.remove('web')
  await rig.clock.advance(1000)
  expect(rig.running()).toEqual(['web/main', 'web/side'])
  expect(rig.records.named('web')?.ending).toBeDefined()
  expect(rig.records.named('web')?.containers).toEqual({})
})
