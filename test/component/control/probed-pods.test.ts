import { beforeEach, describe, expect, it } from 'vitest'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig

beforeEach(() => {
  rig = new PodRig()
})

/** Probes of these words fail; all others succeed. */
const sick = new Set<string>()
/** Fail the next time, and then no more. */
const sickOnce = new Set<string>()
/** The words of the probes that were sent. */
let sent: string[] = []

beforeEach(async () => {
  sick.clear()
  sickOnce.clear()
  sent = []
  rig.probe = (_id, { exec: { command: [word = ''] } = { command: [] } }) => {
    sent.push(word)
    const isSick = sickOnce.delete(word) || sick.has(word)
    return { result: isSick ? 'failure' : 'success', output: '' }
  }
  await rig.start()
})

const probe = (word: string, failureThreshold = 1) => ({
  exec: { command: [word] },
  periodSeconds: 1,
  failureThreshold,
})

describe('a sidecar', () => {
  const web = podManifest('web', {
    initContainers: [
      {
        name: 'proxy',
        image: 'side:1',
        restartPolicy: 'Always',
        startupProbe: probe('proxy-up', 60),
        readinessProbe: probe('proxy-ready'),
        livenessProbe: probe('proxy-alive'),
      },
    ],
    containers: [{ name: 'main', image: 'app:1' }],
  })

  // id: starts-follows-sidecar-only
  it('lets the next container start when its startup probe has passed', async () => {
    sick.add('proxy-up')
    await rig.apply(web)
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['web/proxy'])
    expect(rig.container('web', 'proxy')).toMatchObject({ started: false, ready: false })
    sick.clear()
    await rig.clock.advance(1000)
    expect(rig.running()).toEqual(['web/main', 'web/proxy'])
    expect(rig.container('web', 'proxy').started).toBe(true)
  })

  it('makes its pod ready and not ready by its readiness probe, at the next period', async () => {
    sick.add('proxy-ready')
    await rig.apply(web)
    await rig.clock.advance(3000)
    const look = () => [rig.container('web', 'proxy').ready, rig.condition('web', 'Ready')]
    expect(rig.container('web', 'main').ready).toBe(true)
    expect(look()).toEqual([false, 'False'])
    sick.clear()
    await rig.clock.advance(1000)
    expect(look()).toEqual([true, 'True'])
    sick.add('proxy-ready')
    await rig.clock.advance(1000)
    expect(look()).toEqual([false, 'False'])
    expect(rig.container('web', 'proxy').restartCount).toBe(0)
  })

  it('is restarted alone when it fails its liveness probe', async () => {
    await rig.apply(web)
    await rig.clock.advance(3000)
    sickOnce.add('proxy-alive')
    await rig.clock.advance(3000)
    expect(rig.container('web', 'proxy')).toMatchObject({ restartCount: 1, ready: true })
    expect(rig.container('web', 'main').restartCount).toBe(0)
    expect(rig.condition('web', 'Ready')).toBe('True')
    expect(rig.reasons('web')).toContain('Unhealthy')
  })
})

describe('a pod that is ending', () => {
  it('is still asked whether it is ready, and shown so, but not whether it lives', async () => {
    rig.fake.script('main', { kind: 'runs', stop: { kind: 'ignores' } })
    const main = {
      name: 'main',
      image: 'app:1',
      readinessProbe: probe('ready'),
      livenessProbe: probe('alive'),
    }
    await rig.apply(podManifest('web', { containers: [main] }))
    await rig.clock.advance(3000)
    expect(rig.condition('web', 'Ready')).toBe('True')
    await rig.remove('web')
    await rig.clock.advance(2000)
    expect(rig.pod('web').metadata.deletionTimestamp).toBeDefined()
    expect(rig.condition('web', 'Ready')).toBe('True')
    sick.add('ready').add('alive')
    sent = []
    // A probe's period, and the second after which news of a pod that is being stopped are shown.
    await rig.clock.advance(2000)
    expect(rig.condition('web', 'Ready')).toBe('False')
    expect(new Set(sent)).toEqual(new Set(['ready']))
    expect(rig.container('web').restartCount).toBe(0)
    // Nothing is asked once it is gone.
    await rig.clock.advance(60_000)
    expect(rig.isEmpty()).toBe(true)
    sent = []
    await rig.clock.advance(10_000)
    expect(sent).toEqual([])
  })
})
