import { beforeEach, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import type { ObjectDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
// Loaded in time: podd loads it where there are Services, which takes as long as the host needs for it.
import '../../../src/decide/services/service-names.ts'
import { plainPodHost } from '../../support/plain-pod-host.ts'
import { PodRig, podManifest } from './pod-rig.ts'
import type { PodRigOptions } from './pod-rig.ts'

function service(spec: JsonObject = {}, name = 'db'): ObjectDocument {
  const manifest = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default' },
    spec: { selector: { app: 'db' }, ports: [{ port: 5432 }], ...spec },
  }
  return { object: objectFromManifest(manifest), manifest, place: { path: `/file/${name}-service.yaml` } }
}

const readinessProbe = { exec: { command: ['ready'] }, periodSeconds: 1, failureThreshold: 1 }
const db = podManifest(
  'db',
  { containers: [{ name: 'main', image: 'app:1', readinessProbe }] },
  { labels: { app: 'db' } },
)
const names = 'db.default.svc.cluster.local\tdb.default.svc\tdb.default\tdb\n'

let rig: PodRig
/** The hosts files by pod, and each text that one got in place. */
let files: Map<string, string>
let rewritten: string[]
/** Each text that was written for the start of a container. */
let started: string[]
let isReady: boolean
let isDiskFull: boolean
/** How often a file was to be brought up to date. */
let attempts: number
/** What the writing of files waits for, by the kind of writing. */
let held: { start?: () => Promise<void>; refresh?: () => Promise<void> }

beforeEach(() => {
  isReady = true
  isDiskFull = false
  attempts = 0
  held = {}
  begin()
})

function begin(options: PodRigOptions = {}): void {
  files = new Map()
  rewritten = []
  started = []
  rig = new PodRig(options)
  rig.probe = () => ({ result: isReady ? 'success' : 'failure', output: '' })
  const { volumes } = plainPodHost(rig.objects)
  rig.host = {
    volumes: {
      ...volumes,
      writeHostsFile: async (uid, text) => {
        await held.start?.()
        started.push(text)
        files.set(uid, text)
        return `/pods/${uid}/hosts`
      },
      lastHostsFile: async (uid) => files.get(uid),
      refreshHostsFile: async (uid, text) => {
        attempts += 1
        if (!files.has(uid)) return false
        if (isDiskFull) throw new Error('no space left on device')
        files.set(uid, text)
        rewritten.push(text)
        await held.refresh?.()
        return true
      },
    },
  }
}

const fileOf = (name: string): string => files.get(rig.pod(name).metadata.uid) ?? ''
const addressOf = (name: string): string => rig.pod(name).status.podIP ?? ''

describe('a Service', () => {
  it('is in the hosts files of pods while its pod is ready, and no container restarts for that', async () => {
    await rig.start()
    rig.given = [service()]
    await rig.apply(db, podManifest('client'))
    await rig.clock.advance(2000)
    const line = `\n# Entries added by Services.\n${addressOf('db')}\t${names}`
    expect(fileOf('client')).toContain(line)
    expect(fileOf('db')).toContain(line)
    isReady = false
    await rig.clock.advance(1100)
    expect(rig.condition('db', 'Ready')).toBe('False')
    expect(fileOf('client')).not.toContain('Services')
    isReady = true
    await rig.clock.advance(1100)
    expect(fileOf('client')).toContain(line)
    expect(rig.fake.calls('CreateContainer')).toHaveLength(2)
  })

  it('leads to the new address of a pod that was replaced, and nowhere once it is gone', async () => {
    await rig.start()
    rig.given = [service()]
    await rig.apply(db, podManifest('client'))
    await rig.clock.advance(2000)
    const before = addressOf('db')
    await rig.apply({ ...db, spec: { ...(db['spec'] as JsonObject), hostname: 'other' } })
    await rig.clock.advance(40_000)
    expect(addressOf('db')).not.toBe(before)
    expect(fileOf('client')).toContain(`${addressOf('db')}\t${names}`)
    expect(fileOf('client')).not.toContain(`${before}\t`)
    await rig.remove('db')
    await rig.clock.advance(40_000)
    expect(fileOf('client')).not.toContain('Services')
  })

  it('ends with its document', async () => {
    await rig.start()
    rig.given = [service()]
    await rig.apply(db, podManifest('client'))
    await rig.clock.advance(2000)
    rig.given = []
    await rig.offer()
    expect(fileOf('client')).not.toContain('Services')
  })

  it('stays in the files at every moment while podd is killed and comes back', async () => {
    await rig.start()
    rig.given = [service()]
    await rig.apply(db, podManifest('client'))
    await rig.clock.advance(2000)
    const before = [...files.values()].toSorted()
    await rig.kill()
    await rig.clock.advance(60_000)
    rewritten.length = 0
    rig.boot()
    await rig.settle()
    expect([...files.values()].toSorted()).toEqual(before)
    await rig.offer()
    await rig.clock.advance(5000)
    expect([...files.values()].toSorted()).toEqual(before)
    expect(rewritten.filter((text) => !before.includes(text))).toEqual([])
  })

  it('stays in the files of pods of another source until its own one has spoken to a new podd', async () => {
    begin({ sources: ['file', 'api'] })
    await rig.start()
    rig.given = [service()]
    rig.givenByUrl = [service({}, 'other')]
    await rig.apply(db)
    await rig.put('api', podManifest('client'))
    await rig.clock.advance(2000)
    const before = fileOf('client')
    expect(before).toContain(names)
    await rig.kill()
    rig.boot()
    await rig.settle()
    await rig.offer('api')
    await rig.clock.advance(2000)
    expect(fileOf('client')).toBe(before)
    rig.given = []
    await rig.offer()
    await rig.clock.advance(2000)
    expect(fileOf('client')).not.toContain(names)
  })

  it('stays in the file of a pod whose container restarts before the sources have spoken to a new podd', async () => {
    rig.fake.script('again', () => ({ kind: 'exits', exitCode: 1, afterMs: 30_000 }))
    await rig.start()
    rig.given = [service()]
    await rig.apply(db, podManifest('client', { containers: [{ name: 'again', image: 'app:1' }] }))
    await rig.clock.advance(2000)
    const before = fileOf('client')
    expect(before).toContain(names)
    await rig.kill()
    rewritten.length = 0
    started.length = 0
    rig.boot()
    await rig.settle()
    await rig.clock.advance(60_000)
    expect(started).toContain(before)
    expect(new Set(started)).toEqual(new Set([before]))
  })

  it('leads to the pods that are ready, one by one, whatever else becomes of them', async () => {
    await rig.start()
    rig.given = [service()]
    const behind = (name: string): JsonObject =>
      podManifest(name, { containers: [{ name: 'main', image: 'app:1' }] }, { labels: { app: 'db' } })
    await rig.apply(behind('a'), behind('b'), behind('c'), podManifest('client'))
    await rig.clock.advance(2000)
    const lines = (): readonly string[] =>
      fileOf('client')
        .split('\n')
        .filter((line) => line.includes('svc.cluster'))
    expect(lines()).toHaveLength(3)
    const gone = addressOf('b')
    await rig.remove('b')
    await rig.clock.advance(40_000)
    expect(lines()).toHaveLength(2)
    expect(fileOf('client')).not.toContain(`${gone}\t`)
    await rig.apply({
      ...behind('c'),
      metadata: { name: 'c', namespace: 'default', labels: { app: 'other' } },
    })
    await rig.clock.advance(2000)
    expect(lines()).toEqual([`${addressOf('a')}\t${names.trim()}`])
    await rig.apply(behind('d'))
    await rig.clock.advance(2000)
    expect(lines()).toHaveLength(2)
  })

  it('is tried again where the disk was full', async () => {
    await rig.start()
    rig.given = [service()]
    await rig.apply(db, podManifest('client'))
    isDiskFull = true
    await rig.clock.advance(2000)
    isDiskFull = false
    await rig.clock.advance(6000)
    expect(fileOf('client')).toContain(names)
  })

  it('is tried again by one timer however often its pod changed while the disk was full, until podd stops', async () => {
    await rig.start()
    rig.given = [service()]
    await rig.apply(db, podManifest('client'))
    await rig.clock.advance(2000)
    isDiskFull = true
    for (let change = 0; change < 20; change += 1) {
      isReady = !isReady
      await rig.clock.advance(1100)
    }
    isReady = false
    await rig.clock.advance(2000)
    attempts = 0
    await rig.clock.advance(10_000)
    // Two files each time.
    expect(attempts).toBe(4)
    await rig.terminate()
    attempts = 0
    await rig.clock.advance(10_000)
    expect(attempts).toBe(0)
  })

  it('comes back into a file that the start of a container wrote by what was known before', async () => {
    isReady = false
    rig.fake.script('twice', () => ({ kind: 'exits', exitCode: 1, afterMs: 3000 }))
    await rig.start()
    rig.given = [service()]
    await rig.apply(podManifest('client', { containers: [{ name: 'twice', image: 'app:1' }] }), db)
    await rig.clock.advance(2000)
    const start = Promise.withResolvers<void>()
    const refresh = Promise.withResolvers<void>()
    held = { start: () => start.promise, refresh: () => refresh.promise }
    await rig.clock.advance(2000)
    isReady = true
    await rig.clock.advance(1100)
    held = {}
    expect(fileOf('client')).toContain(names)
    start.resolve()
    await rig.settle()
    expect(fileOf('client')).not.toContain(names)
    refresh.resolve()
    // A review that took long isn't followed at once by the next one.
    await rig.clock.advance(6000)
    expect(fileOf('client')).toContain(names)
  })

  it('takes at most a fifth of the time where writing is slow and its pod changes all the time', async () => {
    await rig.start()
    rig.given = [service()]
    await rig.apply(db)
    await rig.clock.advance(2000)
    rewritten.length = 0
    held = { refresh: () => rig.clock.sleep(500) }
    for (let change = 0; change < 20; change += 1) {
      isReady = !isReady
      await rig.clock.advance(1000)
    }
    expect(rewritten.length).toBeGreaterThan(4)
    expect(rewritten.length).toBeLessThan(12)
  })

  it('gives variables to the containers that start from then on', async () => {
    await rig.start()
    rig.given = [service()]
    const env = [{ name: 'URL', value: 'sql://$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)/' }]
    await rig.apply(podManifest('client', { containers: [{ name: 'main', image: 'app:1', env }] }))
    const [created] = rig.fake.calls('CreateContainer')
    const { config } = created!.request as {
      readonly config: { readonly envs: readonly { readonly key: string; readonly value: Uint8Array }[] }
    }
    const variables = new Map(config.envs.map(({ key, value }) => [key, Buffer.from(value).toString()]))
    expect(variables.get('URL')).toBe('sql://db.default.svc.cluster.local:5432/')
    expect(variables.get('DB_PORT_5432_TCP_ADDR')).toBe('db.default.svc.cluster.local')
  })

  describe('of a URL, whose pod has a container that ended while podd did not run', () => {
    const variables = (): readonly (readonly string[])[] =>
      rig.fake.calls('CreateContainer').map(({ request }) => {
        const { config } = request as {
          readonly config: { readonly envs: readonly { readonly key: string }[] }
        }
        return config.envs.map(({ key }) => key).filter((key) => key === 'DB_SERVICE_HOST')
      })

    beforeEach(async () => {
      begin({ sources: ['file', 'http'] })
      await rig.start()
      rig.givenByUrl = [service()]
      await rig.put('http', podManifest('client'))
      await rig.clock.advance(2000)
      await rig.kill()
      rig.fake.exitContainer('main', 1)
      rig.boot()
      await rig.clock.advance(1000)
      await rig.offer('file')
      // Longer than the backoff of a restart.
      await rig.clock.advance(11_000)
    })

    it('gives it its variables again, as soon as the URL has given what it gave last', async () => {
      expect(rig.running()).toEqual([])
      expect(rig.container('client').state.waiting).toMatchObject({ reason: 'Blocked' })
      await rig.offer('http')
      await rig.clock.advance(100)
      expect(rig.running()).toEqual(['client/main'])
      expect(variables()).toEqual([['DB_SERVICE_HOST'], ['DB_SERVICE_HOST']])
    })

    it('does not keep it from starting for long where the URL gives nothing', async () => {
      expect(rig.running()).toEqual([])
      await rig.clock.advance(5000)
      expect(rig.running()).toEqual(['client/main'])
      expect(variables()).toEqual([['DB_SERVICE_HOST'], []])
    })

    it('does not keep it from starting where the timer fires a little early', async () => {
      await rig.kill()
      rig.boot()
      rig.clock.earlyMs = 0.5
      await rig.clock.advance(1000)
      await rig.offer('file')
      await rig.clock.advance(11_000)
      expect(rig.running()).toEqual([])
      await rig.clock.advance(4000)
      expect(rig.running()).toEqual(['client/main'])
    })
  })

  it('has EndpointSlices', async () => {
    await rig.start()
    rig.given = [service()]
    await rig.apply(db)
    await rig.clock.advance(2000)
    expect(rig.shown.endpointslices.list()).toMatchObject([
      { endpoints: [{ addresses: [addressOf('db')], conditions: { ready: true } }] },
    ])
  })
})
