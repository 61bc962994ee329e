import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { openRules } from '../../support/object-rules.ts'
import type { ObjectDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import type { FakeContainer } from '../../support/fake-runtime-world.ts'
import { PodRig, podManifest, toDocument } from './pod-rig.ts'

/** A pod on a host port. */
const at = (name: string, hostPort: number, image = 'app:1'): JsonObject => {
  const ports = [{ containerPort: 80, hostPort }]
  return podManifest(name, { containers: [{ name: 'main', image, ports }] })
}

const asking = (name: string, requests: JsonObject): JsonObject =>
  podManifest(name, {
    // Another pod each time: nothing is changed in place.
    hostname: `h${JSON.stringify(requests)
      .replaceAll(/[^0-9a-z]/g, '')
      .toLowerCase()}`,
    containers: [{ name: 'main', image: 'app:1', resources: { requests } }],
  })

const askingInPlace = (name: string, requests: JsonObject): JsonObject =>
  podManifest(name, { containers: [{ name: 'main', image: 'app:1', resources: { requests } }] })

/** The host port of each pod that runs. */
function portsOf(rig: PodRig, ...names: readonly string[]): readonly unknown[] {
  return names.map((name) => runningIn(rig, name)?.sandbox.config.portMappings[0]?.hostPort)
}

function runningIn(rig: PodRig, name: string): FakeContainer | undefined {
  return [...rig.fake.world.containers.values()].find(
    ({ state, sandbox }) => state === 'CONTAINER_RUNNING' && sandbox.config.metadata?.name === name,
  )
}

const uids = (rig: PodRig, ...names: readonly string[]): readonly string[] =>
  names.map((name) => rig.pod(name).metadata.uid)

describe('pods that ask for what the others hold', () => {
  it('swap two host ports, in one look at the manifests or in two', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(at('a', 8080), at('b', 8081))
    await rig.apply(at('a', 8081), at('b', 8080))
    await rig.clock.advance(60_000)
    expect(portsOf(rig, 'a', 'b')).toEqual([8081, 8080])

    await rig.apply(at('a', 8080))
    await rig.clock.advance(60_000)
    expect(portsOf(rig, 'a', 'b')).toEqual([8081, 8080])
    await rig.apply(at('b', 8081))
    await rig.clock.advance(60_000)
    expect(portsOf(rig, 'a', 'b')).toEqual([8080, 8081])
    expect(rig.system.problems()).toEqual([])
  })

  it('pass ports round in a ring of four', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(...['a', 'b', 'c', 'd'].map((name, i) => at(name, 8000 + i)))
    await rig.apply(...['a', 'b', 'c', 'd'].map((name, i) => at(name, 8000 + ((i + 1) % 4))))
    await rig.clock.advance(60_000)
    expect(portsOf(rig, 'a', 'b', 'c', 'd')).toEqual([8001, 8002, 8003, 8000])
  })

  it('stay as they are while one of them cannot start, and say why', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(at('a', 8000), at('b', 8001), at('c', 8002))
    const before = uids(rig, 'a', 'b', 'c')
    await rig.apply(at('a', 8001), at('b', 8002, 'gone:1'), at('c', 8000))
    await rig.clock.advance(120_000)
    expect(uids(rig, 'a', 'b', 'c')).toEqual(before)
    expect(rig.running()).toEqual(['a/main', 'b/main', 'c/main'])
    expect(rig.fake.calls('StopContainer')).toEqual([])
    const why = expect.stringMatching(/that of default\/b cannot start: .*gone:1/)
    expect(rig.system.problems()).toEqual([
      expect.objectContaining({ object: 'default/a', message: why }),
      expect.objectContaining({ object: 'default/b', message: expect.stringContaining('gone:1') }),
      expect.objectContaining({ object: 'default/c', message: why }),
    ])

    rig.fake.addRemoteImage('gone:1')
    await rig.clock.advance(400_000)
    expect(portsOf(rig, 'a', 'b', 'c')).toEqual([8001, 8002, 8000])
    expect(rig.system.problems()).toEqual([])
  })

  it('look at the host again before they end, where one was ready long before the others', async () => {
    const rig = new PodRig()
    await rig.start()
    rig.fake.addRemoteImage('big:1')
    rig.fake.fault('PullImage', { kind: 'delays', delayMs: 100_000 })
    await rig.apply(at('a', 8000), at('b', 8001))
    const before = uids(rig, 'a', 'b')
    await rig.apply(at('a', 8001), at('b', 8000, 'big:1'))
    await rig.clock.advance(50_000)
    let isThere = false
    rig.checkHostPaths = async ({ metadata }) => {
      if (metadata.name === 'a' && !isThere) throw new Error('/data is not a directory')
    }
    await rig.clock.advance(100_000)
    expect(uids(rig, 'a', 'b')).toEqual(before)
    expect(rig.system.problems()).toHaveLength(2)
    isThere = true
    await rig.clock.advance(60_000)
    expect(portsOf(rig, 'a', 'b')).toEqual([8001, 8000])
  })

  it.each([
    ['by new pods', asking],
    ['in place', askingInPlace],
    ['one by a new pod and one in place', asking, askingInPlace],
  ])('trade cpu for memory, %s', async (_how, first, second = first) => {
    const allocatable = { cpu: '2', memory: '2Gi' }
    const rig = new PodRig({ admission: openRules({ maxPods: 110, allocatable }) })
    await rig.start()
    const much = { cpu: '1500m', memory: '512Mi' }
    const little = { cpu: '500m', memory: '1536Mi' }
    await rig.apply(first('a', much), second('b', little))
    const before = uids(rig, 'a', 'b')
    await rig.apply(first('a', little), second('b', much))
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['a/main', 'b/main'])
    expect(uids(rig, 'a', 'b').map((uid, i) => uid !== before[i])).toEqual(
      [first, second].map((each) => each === asking),
    )
    expect(rig.container('a').allocatedResources).toEqual(little)
    expect(rig.container('b').allocatedResources).toEqual(much)
    expect(rig.condition('b', 'PodResizePending')).toBeUndefined()
  })

  it('swap claims that are for one pod alone', async () => {
    const rig = new PodRig()
    rig.given = ['red', 'blue'].map((name) => claim(name))
    const using = (name: string, claimName: string): JsonObject =>
      podManifest(name, { volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }] })
    await rig.start()
    await rig.apply(using('a', 'red'), using('b', 'blue'))
    await rig.apply(using('a', 'blue'), using('b', 'red'))
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['a/main', 'b/main'])
    const specs = ['a', 'b'].map((name) => rig.records.named(name)?.manifest)
    expect(specs).toEqual([using('a', 'blue'), using('b', 'red')])
  })

  it('swap the names in their files, and with them what they hold', async () => {
    const rig = new PodRig()
    const files = async (first: JsonObject, second: JsonObject): Promise<void> => {
      const inFile = (manifest: JsonObject, path: string) => ({
        ...toDocument('file', manifest),
        place: { path },
      })
      const pods = [inFile(first, '/file/1.yaml'), inFile(second, '/file/2.yaml')]
      rig.system.offerSnapshot({ ...rig.snapshot('file'), pods })
      await rig.settle()
    }
    await rig.start()
    await files(at('a', 8080), at('b', 8081))
    expect(portsOf(rig, 'a', 'b')).toEqual([8080, 8081])
    await files(at('b', 8080), at('a', 8081))
    await rig.clock.advance(60_000)
    expect(portsOf(rig, 'a', 'b')).toEqual([8081, 8080])
    expect(rig.system.problems()).toEqual([])
  })

  it('end together though their graces differ, and nobody gets in between', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(at('a', 8080), at('b', 8081), at('thief', 8080))
    expect(rig.pod('thief').status.phase).toBe('Pending')
    rig.fake.fault('StopContainer', { kind: 'delays', delayMs: 20_000 })
    await rig.apply(at('a', 8081), at('b', 8080))
    await rig.clock.advance(90_000)
    expect(portsOf(rig, 'a', 'b', 'thief')).toEqual([8081, 8080, undefined])
    await rig.remove('b')
    await rig.clock.advance(60_000)
    expect(portsOf(rig, 'a', 'thief')).toEqual([8081, 8080])
  })

  it('are started though podd was killed while they ended', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(at('a', 8080), at('b', 8081))
    rig.fake.fault('StopContainer', { kind: 'delays', delayMs: 20_000 })
    await rig.apply(at('a', 8081), at('b', 8080))
    await rig.clock.advance(5000)
    await rig.kill()
    await rig.start()
    await rig.clock.advance(120_000)
    expect(portsOf(rig, 'a', 'b')).toEqual([8081, 8080])
  })
})

describe('two new versions that want the same port', () => {
  it('end one pod and not both', async () => {
    const rig = new PodRig()
    await rig.start()
    rig.fake.addRemoteImage('big:1')
    await rig.apply(at('a', 8000), at('b', 8001))
    const before = uids(rig, 'a', 'b')
    await rig.apply(at('a', 9000, 'big:1'), at('b', 9000, 'big:1'))
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['a/main', 'b/main'])
    expect(rig.pod('b').metadata.uid).toBe(before[1])
    expect(portsOf(rig, 'a')).toEqual([9000])
  })
})

describe('room that is made in the same reading of the manifests', () => {
  const host = (): PodRig =>
    new PodRig({ admission: openRules({ maxPods: 110, allocatable: { cpu: '2', memory: '2Gi' } }) })

  it('is had by a new pod when the removed one is gone', async () => {
    const rig = host()
    await rig.start()
    await rig.apply(asking('old', { cpu: '2' }))
    rig.fake.fault('StopContainer', { kind: 'delays', delayMs: 5000 })
    await rig.replaceAll(asking('a-new', { cpu: '2' }))
    expect(rig.pod('a-new').status).toMatchObject({ phase: 'Pending' })
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['a-new/main'])
  })

  it.each([
    ['resized in place', askingInPlace],
    ['replaced', asking],
  ])('is had by a new pod when an old one is %s', async (_how, ask) => {
    const rig = host()
    await rig.start()
    await rig.apply(ask('old', { cpu: '2' }))
    rig.fake.fault('StopContainer', { kind: 'delays', delayMs: 5000 })
    await rig.replaceAll(asking('a-new', { cpu: '1' }), ask('old', { cpu: '1' }))
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['a-new/main', 'old/main'])
  })
})

function claim(name: string): ObjectDocument {
  const manifest = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: { accessModes: ['ReadWriteOncePod'], resources: { requests: { storage: '1Gi' } } },
  }
  return { object: objectFromManifest(manifest), manifest, place: { path: `/file/${name}.yaml` } }
}
