import { beforeEach, describe, expect, it } from 'vitest'
import { columnsFor } from '../../../src/api/served-kind.ts'
import { findKind } from '../../../src/api/served-kinds.ts'
import { objectsAt } from '../../../src/base/json.ts'
import type { JsonObject } from '../../../src/base/json.ts'
import type { ObjectDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
// Loaded in time: podd loads it where there are Jobs.
import '../../../src/control/desired/batch-jobs.ts'
import { deriveRevisions } from '../../../src/decide/workloads/workload-revisions.ts'
import { formatTime } from '../../../src/base/clock.ts'
import { isObjectDocument } from '../../../src/pod/objects/document.ts'
import { showRevisions } from '../../../src/daemon/create-api.ts'
import { openRules } from '../../support/object-rules.ts'
import { decodeKept } from '../../../src/sources/written/object-file.ts'
import { PodRig } from './pod-rig.ts'

let rig: PodRig

const deployments = findKind('deployments')

const labels = { app: 'web' }
const good = ['httpd']

function template(command: readonly string[], more: JsonObject = {}): JsonObject {
  return {
    metadata: { labels, ...more },
    spec: { containers: [{ name: 'main', image: 'app:1', command }] },
  }
}

function workload(
  kind: string,
  spec: JsonObject,
  pod: JsonObject = template(good),
  name = 'web',
): ObjectDocument {
  const manifest: JsonObject = {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, namespace: 'default' },
    spec: { selector: { matchLabels: labels }, template: pod, ...spec },
  }
  return { object: objectFromManifest(manifest), manifest, place: { path: '/file/web.yaml' } }
}

/** A document whose spec podd can't go by, though nothing refused it. */
function withSpec(document: ObjectDocument, spec: object): ObjectDocument {
  return {
    ...document,
    object: Object.assign({ ...document.object }, { spec: { ...Object(document.object).spec, ...spec } }),
  }
}

async function give(...documents: readonly ObjectDocument[]): Promise<void> {
  rig.given = documents
  await rig.offer()
  await rig.clock.advance(100)
}

const uid = (name: string): string => rig.pod(name).metadata.uid

/** The commands of the running containers, by pod. */
function commands(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    rig.fake
      .containersNamed('main')
      .filter(({ state }) => state === 'CONTAINER_RUNNING')
      .map(({ config, sandbox }) => [sandbox.config.metadata?.name ?? '', config.command.join(' ')] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  )
}

async function begin(options: ConstructorParameters<typeof PodRig>[0] = {}): Promise<void> {
  rig = new PodRig(options)
  rig.fake.script('main', ({ config }) =>
    config.command[0] === 'httpdd' ? { kind: 'exits', exitCode: 127, afterMs: 100 } : { kind: 'runs' },
  )
  await rig.start()
}

beforeEach(() => begin())

describe('a Deployment', () => {
  it('runs as many pods as it has replicas, named after it, which know whose they are', async () => {
    await give(workload('Deployment', { replicas: 2 }))
    expect(rig.running()).toEqual(['web-0/main', 'web-1/main'])
    expect(rig.pod('web-1').metadata.labels).toEqual(labels)
    expect(rig.records.named('web-1')?.owner).toEqual({ kind: 'Deployment', name: 'web' })
    expect(rig.system.applied().pods[1]).toMatchObject({ owner: { kind: 'Deployment', name: 'web' } })
    expect(rig.system.problems()).toEqual([])
  })

  it('is scaled up and down without a change of the other pods, and ends its pods when it goes', async () => {
    await give(workload('Deployment', { replicas: 1 }))
    const first = uid('web-0')
    await give(workload('Deployment', { replicas: 3 }))
    expect(rig.running()).toEqual(['web-0/main', 'web-1/main', 'web-2/main'])
    await give(workload('Deployment', { replicas: 1 }))
    await rig.clock.advance(40_000)
    expect(rig.running()).toEqual(['web-0/main'])
    expect(uid('web-0')).toBe(first)
    await give()
    await rig.clock.advance(40_000)
    expect(rig.isEmpty()).toBe(true)
  })

  it('keeps its pods when podd is killed and starts again', async () => {
    await give(workload('Deployment', { replicas: 2 }))
    const before = [uid('web-0'), uid('web-1')]
    await rig.kill()
    await rig.start()
    await rig.clock.advance(1000)
    expect([uid('web-0'), uid('web-1')]).toEqual(before)
    expect(rig.fake.calls('StartContainer')).toHaveLength(2)
  })

  it('is as old as its oldest pod after a start of podd', async () => {
    await give(workload('Deployment', { replicas: 2 }))
    const createdAt = rig.pod('web-0').metadata.creationTimestamp
    await rig.kill()
    await rig.clock.advance(100_000)
    await rig.start()
    await rig.clock.advance(1000)
    const shown = rig.shown.deployments.list().map(({ metadata }) => metadata.creationTimestamp)
    expect(shown).toEqual([createdAt])
  })

  it('has its pods replaced one after the other where its template changes, each when the last one is ready', async () => {
    await give(workload('Deployment', { replicas: 2, minReadySeconds: 5 }))
    await rig.clock.advance(12_000)
    const before = [uid('web-0'), uid('web-1')]
    await give(workload('Deployment', { replicas: 2, minReadySeconds: 5 }, template([...good, '-v'])))
    await rig.clock.advance(2000)
    expect(commands()).toEqual({ 'web-0': 'httpd -v', 'web-1': 'httpd' })
    expect(uid('web-1')).toBe(before[1])
    await rig.clock.advance(10_000)
    expect(commands()).toEqual({ 'web-0': 'httpd -v', 'web-1': 'httpd -v' })
    expect(uid('web-0')).not.toBe(before[0])
  })

  it('is available, and replaced pod by pod, where the clock was set back by a day', async () => {
    await give(workload('Deployment', { replicas: 2, minReadySeconds: 5 }))
    await rig.clock.advance(12_000)
    rig.clock.setWall(rig.clock.wallMs() - 24 * 3_600_000)
    await give(workload('Deployment', { replicas: 2, minReadySeconds: 5 }, template([...good, '-v'])))
    await rig.clock.advance(60_000)
    expect(commands()).toEqual({ 'web-0': 'httpd -v', 'web-1': 'httpd -v' })
    expect(rig.shown.deployments.list()).toMatchObject([{ status: { availableReplicas: 2 } }])
  })

  it('is available when its pods were ready for that long, where the clock was set back while podd was away', async () => {
    await give(workload('Deployment', { replicas: 2, minReadySeconds: 60 }))
    await rig.clock.advance(2000)
    await rig.kill()
    rig.clock.setWall(rig.clock.wallMs() - 24 * 3_600_000)
    await rig.start()
    await rig.clock.advance(30_000)
    const available = () => rig.shown.deployments.list()[0]?.status?.['availableReplicas'] ?? 0
    expect(available()).toBe(0)
    await rig.clock.advance(40_000)
    expect(available()).toBe(2)
  })

  it('goes on with a rollout that podd was killed in', async () => {
    await give(workload('Deployment', { replicas: 3, minReadySeconds: 5 }))
    await rig.clock.advance(12_000)
    rig.given = [workload('Deployment', { replicas: 3, minReadySeconds: 5 }, template([...good, '-v']))]
    await rig.offer()
    await rig.clock.advance(1000)
    await rig.kill()
    await rig.start()
    await rig.clock.advance(1000)
    expect(Object.values(commands()).filter((command) => command === 'httpd')).toHaveLength(2)
    await rig.clock.advance(30_000)
    expect(new Set(Object.values(commands()))).toEqual(new Set(['httpd -v']))
  })

  it('replaces a pod where only an annotation of its template changes, as `kubectl rollout restart` has it', async () => {
    await give(workload('Deployment', { replicas: 1 }))
    const before = uid('web-0')
    const annotations = { 'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z' }
    await give(workload('Deployment', { replicas: 1 }, template(good, { annotations })))
    await rig.clock.advance(2000)
    expect(uid('web-0')).not.toBe(before)
    expect(rig.running()).toEqual(['web-0/main'])
  })

  it('stops at the first pod of a template that doesn’t work, and goes back to the last healthy one', async () => {
    await give(workload('Deployment', { replicas: 2 }))
    await rig.clock.advance(12_000)
    const untouched = uid('web-1')
    await give(workload('Deployment', { replicas: 2 }, template(['httpdd'])))
    await rig.clock.advance(1000)
    expect(commands()).toEqual({ 'web-1': 'httpd' })
    await rig.clock.advance(60_000)
    expect(commands()).toEqual({ 'web-0': 'httpd', 'web-1': 'httpd' })
    expect(uid('web-1')).toBe(untouched)
    expect(rig.revisions.saved.get('/file/web.yaml')?.record).toMatchObject({
      active: 1,
      offered: 2,
      pin: { why: 'failed' },
      revisions: [{ pods: 2, verdict: 'healthy' }, { verdict: 'failed' }],
    })
  })

  it('is healthy only when all its pods were replaced and were ready for as long as it says', async () => {
    const spec = { replicas: 2, minReadySeconds: 30 }
    const verdict = () => rig.revisions.saved.get('/file/web.yaml')?.record.base
    await give(workload('Deployment', spec))
    await rig.clock.advance(29_000)
    expect(verdict()).toBeUndefined()
    await rig.clock.advance(2000)
    expect(verdict()).toBe(1)
    await give(workload('Deployment', spec, template([...good, '-v'])))
    await rig.clock.advance(45_000)
    expect(verdict()).toBe(1)
    await rig.clock.advance(30_000)
    expect(verdict()).toBe(2)
  })

  it('has all pods of the old template ended before one of the new template starts where it says Recreate', async () => {
    const spec = { replicas: 2, strategy: { type: 'Recreate' } }
    await give(workload('Deployment', spec))
    await rig.clock.advance(12_000)
    const seen = new Set<string>()
    rig.system.statuses.subscribe(() => seen.add(Object.values(commands()).join()))
    await give(workload('Deployment', spec, template([...good, '-v'])))
    await rig.clock.advance(60_000)
    expect(commands()).toEqual({ 'web-0': 'httpd -v', 'web-1': 'httpd -v' })
    expect([...seen].filter((all) => all.includes('-v') && all.split(',').includes('httpd'))).toEqual([])
  })

  it('keeps its template where it is paused, also for pods that are added', async () => {
    await give(workload('Deployment', { replicas: 1 }))
    const before = uid('web-0')
    await give(workload('Deployment', { replicas: 2, paused: true }, template([...good, '-v'])))
    await rig.clock.advance(5000)
    expect(commands()).toEqual({ 'web-0': 'httpd', 'web-1': 'httpd' })
    expect(uid('web-0')).toBe(before)
    await give(workload('Deployment', { replicas: 2 }, template([...good, '-v'])))
    await rig.clock.advance(20_000)
    expect(commands()).toEqual({ 'web-0': 'httpd -v', 'web-1': 'httpd -v' })
  })

  it('has its pods renamed with the others where podNameSuffix says so, and replaces them too', async () => {
    await begin({ settings: { podNameSuffix: 'node' } })
    await give(workload('Deployment', { replicas: 2 }))
    await rig.clock.advance(12_000)
    const [first = '', second = ''] = rig.running().map((name) => name.split('/')[0] ?? '')
    expect(first).toMatch(/^web-0-/u)
    await give(workload('Deployment', { replicas: 2 }, template([...good, '-v'])))
    await rig.clock.advance(20_000)
    expect(commands()).toEqual({ [first]: 'httpd -v', [second]: 'httpd -v' })
  })
})

describe('a Deployment whose file has another one that fails, and nothing to go back to', () => {
  const progress = (name: string) => {
    const found = rig.shown.deployments.list().find(({ metadata }) => metadata.name === name)
    return objectsAt(found?.status ?? {}, 'conditions').find(({ type }) => type === 'Progressing')
  }
  const named = (name: string, command: readonly string[]): ObjectDocument =>
    workload('Deployment', { replicas: 1 }, template(command), name)

  it('has not failed with that, also while its pod is not ready for a moment', async () => {
    await give(named('bad', ['httpdd']), named('web', good))
    await rig.clock.advance(60_000)
    expect(progress('bad')).toMatchObject({
      reason: 'ProgressDeadlineExceeded',
      message: expect.stringContaining('default/bad-0'),
    })
    expect(progress('web')).toMatchObject({ reason: 'NewReplicaSetAvailable' })
    // After the second exit it waits for some seconds before it is started again.
    for (let exits = 0; exits < 2; exits += 1) {
      const main = rig.fake
        .containersNamed('main')
        .findLast(({ sandbox }) => sandbox.config.metadata?.name === 'web-0')
      if (main === undefined) throw new Error('it runs nothing')
      rig.fake.world.exit(main, 1)
      await rig.clock.advance(500)
    }
    expect(progress('web')).toMatchObject({ status: 'True', reason: 'ReplicaSetUpdated' })
  })

  it('has failed once its own pods have, with the reason of its own', async () => {
    rig.fake.script('main', ({ config }) =>
      config.command[0] === 'httpdd'
        ? { kind: 'exits', exitCode: 127, afterMs: 100 }
        : { kind: 'exits', exitCode: 1, afterMs: 3000 },
    )
    await give(named('bad', ['httpdd']), named('web', good))
    await rig.clock.advance(15_000)
    expect(progress('bad')).toMatchObject({ reason: 'ProgressDeadlineExceeded' })
    expect(progress('web')).not.toMatchObject({ reason: 'ProgressDeadlineExceeded' })
    await rig.clock.advance(60_000)
    expect(progress('web')).toMatchObject({
      reason: 'ProgressDeadlineExceeded',
      message: expect.stringContaining('default/web-0'),
    })
  })
})

describe('a Deployment in a file that was rolled back', () => {
  it('is tried again where only its replicas change: its source gives something else', async () => {
    await give(workload('Deployment', { replicas: 1 }))
    await rig.clock.advance(15_000)
    await give(workload('Deployment', { replicas: 1 }, template(['httpdd'])))
    await rig.clock.advance(60_000)
    const record = () => rig.revisions.saved.get('/file/web.yaml')?.record
    expect(record()).toMatchObject({ offered: 2, active: 1 })
    await give(workload('Deployment', { replicas: 2 }, template(['httpdd'])))
    expect(record()).toMatchObject({ offered: 3, active: 3 })
    await rig.clock.advance(90_000)
    expect(record()).toMatchObject({ offered: 3, active: 1, pin: { why: 'failed' } })
  })
})

describe('a Deployment that was written over the API', () => {
  const unit = 'api:Deployment/default/web'
  /** As clients write it, with a field that has no effect. */
  const written = (
    command: string,
    annotations: JsonObject = {},
    spec: JsonObject = {},
    own: JsonObject = {},
  ): ObjectDocument => {
    const pod = template([command])
    const noted = { ...pod, metadata: { labels, creationTimestamp: null } }
    const { manifest } = workload('Deployment', { replicas: 2, ...spec }, noted)
    const creationTimestamp = formatTime(rig.clock.wallMs())
    const metadata = {
      name: 'web',
      namespace: 'default',
      uid: 'u',
      creationTimestamp,
      annotations,
      labels: own,
    }
    const { document } = decodeKept({ ...manifest, metadata }, '/api/deployment.default.web.json')
    if (document === undefined || !isObjectDocument(document)) throw new Error('it is no Deployment')
    return document
  }
  const write = async (document: ObjectDocument): Promise<void> => {
    rig.givenByUrl = [document]
    await rig.offer('api')
    await rig.clock.advance(100)
  }
  const shown = () => rig.shown.deployments.list()[0]

  beforeEach(() => begin({ sources: ['api'] }))

  it('owns its pods by the UID that it has', async () => {
    await write(written('httpd'))
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u' }
    expect(rig.pod('web-0').metadata.ownerReferences).toEqual([
      { ...owner, controller: true, blockOwnerDeletion: true },
    ])
  })

  it('goes back where its newest template fails and its annotation asks for it, and shows what was written', async () => {
    const asked = { 'podd.dev/rollback': 'true' }
    await write(written('httpd', asked))
    await rig.clock.advance(15_000)
    await write(written('httpdd', asked))
    await rig.clock.advance(90_000)
    expect(commands()).toEqual({ 'web-0': 'httpd', 'web-1': 'httpd' })
    expect(shown()).toMatchObject({
      metadata: { uid: 'u' },
      spec: { template: template(['httpdd']) },
      status: {
        replicas: 2,
        updatedReplicas: 0,
        conditions: [{ type: 'Available', status: 'True' }, { reason: 'ProgressDeadlineExceeded' }],
      },
    })
    await write(written('httpd-3', asked))
    await rig.clock.advance(60_000)
    expect(commands()).toEqual({ 'web-0': 'httpd-3', 'web-1': 'httpd-3' })
    expect(shown()?.status).toMatchObject({ updatedReplicas: 2 })
  })

  it('stays at a template that fails where nothing asks for another, and can be rolled back', async () => {
    await write(written('httpd'))
    await rig.clock.advance(15_000)
    await write(written('httpdd'))
    await rig.clock.advance(90_000)
    expect(commands()).toEqual({ 'web-1': 'httpd' })
    const failed = { status: 'False', reason: 'ProgressDeadlineExceeded' }
    expect(shown()).toMatchObject({
      status: { conditions: [{}, { ...failed, message: expect.stringContaining('default/web-0') }] },
    })
    const back = rig.system.gate.rollBack('api', unit, undefined)
    await rig.clock.advance(40_000)
    expect(await back).toBe(1)
    expect(commands()).toEqual({ 'web-0': 'httpd', 'web-1': 'httpd' })
  })

  describe('that is scaled, labelled or annotated', () => {
    const asked = { 'podd.dev/rollback': 'true' }
    const record = () => rig.revisions.saved.get(unit)?.record

    it('stays rolled back, with the newest replicas and labels beside the old template, over restarts of podd', async () => {
      await write(written('httpd', asked))
      await rig.clock.advance(15_000)
      await write(written('httpdd', asked))
      await rig.clock.advance(90_000)
      const before = uid('web-0')
      await write(written('httpdd', { ...asked, note: 'seen' }, { replicas: 3 }, { tier: 'front' }))
      await rig.clock.advance(90_000)
      const rolledBack = { latest: 2, offered: 2, active: 1, pin: { why: 'failed' } }
      const all = { 'web-0': 'httpd', 'web-1': 'httpd', 'web-2': 'httpd' }
      expect([record(), commands(), uid('web-0')]).toMatchObject([rolledBack, all, before])
      expect(shown()).toMatchObject({
        metadata: { labels: { tier: 'front' }, annotations: { note: 'seen' } },
        spec: { replicas: 3, template: template(['httpdd']) },
        status: { replicas: 3, readyReplicas: 3, updatedReplicas: 0 },
      })
      expect(rig.system.gate.problems().map(({ message }) => message)).toEqual([
        expect.stringContaining('revision 2 failed, and revision 1 counts again'),
      ])
      await rig.kill()
      await write(written('httpdd', asked, { replicas: 1 }))
      await rig.start()
      await rig.clock.advance(90_000)
      expect([record(), commands(), uid('web-0')]).toMatchObject([rolledBack, { 'web-0': 'httpd' }, before])
      await write(written('httpd-3', asked, { replicas: 1 }))
      await rig.clock.advance(30_000)
      expect([record(), commands()]).toMatchObject([
        { latest: 3, active: 3, base: 3 },
        { 'web-0': 'httpd-3' },
      ])
    })

    it('stays at what somebody asked for', async () => {
      await write(written('httpd'))
      await rig.clock.advance(15_000)
      await write(written('httpd-2'))
      await rig.clock.advance(60_000)
      const back = rig.system.gate.rollBack('api', unit, undefined)
      await rig.clock.advance(40_000)
      expect(await back).toBe(1)
      await write(written('httpd-2', { note: 'seen' }, { replicas: 3 }))
      await rig.clock.advance(60_000)
      expect(record()).toMatchObject({ latest: 2, offered: 2, active: 1, pin: { why: 'requested' } })
      expect(commands()).toEqual({ 'web-0': 'httpd', 'web-1': 'httpd', 'web-2': 'httpd' })
    })

    it('keeps its mark where it failed, and goes back once its annotation asks for it', async () => {
      await write(written('httpd'))
      await rig.clock.advance(15_000)
      await write(written('httpdd'))
      await rig.clock.advance(90_000)
      const failed = { latest: 2, active: 2, base: 1, revisions: [{}, { verdict: 'failed' }] }
      expect(record()).toMatchObject(failed)
      await write(written('httpdd', {}, { replicas: 3 }))
      await rig.clock.advance(1000)
      expect(record()).toMatchObject(failed)
      await write(written('httpdd', asked, { replicas: 3 }))
      await rig.clock.advance(90_000)
      expect(record()).toMatchObject({ latest: 2, offered: 2, active: 1, pin: { why: 'failed' } })
      expect(commands()).toEqual({ 'web-0': 'httpd', 'web-1': 'httpd', 'web-2': 'httpd' })
    })

    it('is judged on by the pods that it has now, with the crashes that were counted', async () => {
      await write(written('httpd', asked, { replicas: 3 }))
      await rig.clock.advance(15_000)
      await write(written('httpdd', asked, { replicas: 3 }))
      // Each change comes before the third crash of a pod that would begin to count with it.
      for (const replicas of [4, 3, 4]) {
        await rig.clock.advance(8000)
        await write(written('httpdd', asked, { replicas }))
      }
      await rig.clock.advance(25_000)
      expect(record()).toMatchObject({ latest: 2, active: 1, pin: { why: 'failed' } })
    })

    it('is healthy once it asks no longer for a pod that there is no room for', async () => {
      await begin({ sources: ['api'], admission: openRules({ maxPods: 1, allocatable: {} }) })
      await write(written('httpd', {}, { replicas: 1 }))
      await rig.clock.advance(15_000)
      await write(written('httpd-2', {}, { replicas: 2 }))
      await rig.clock.advance(620_000)
      expect(record()).toMatchObject({ latest: 2, active: 2, revisions: [{}, { verdict: 'failed' }] })
      await write(written('httpd-2', {}, { replicas: 1 }))
      await rig.clock.advance(15_000)
      expect(record()).toMatchObject({
        latest: 2,
        active: 2,
        base: 2,
        revisions: [{}, { verdict: 'healthy' }],
      })
    })

    it('is judged with its first pods where it had none, against the last template that ran', async () => {
      await write(written('httpd', asked))
      await rig.clock.advance(15_000)
      await write(written('httpdd', asked, { replicas: 0 }))
      await rig.clock.advance(60_000)
      expect([record(), commands()]).toMatchObject([
        { active: 2, base: 1, revisions: [{}, { verdict: 'healthy' }] },
        {},
      ])
      await write(written('httpdd', asked, { replicas: 2 }))
      await rig.clock.advance(90_000)
      expect([record(), commands()]).toMatchObject([
        { latest: 2, offered: 2, active: 1, base: 1, pin: { why: 'failed' } },
        { 'web-0': 'httpd', 'web-1': 'httpd' },
      ])
    })

    it('goes back to a template that has run, although it has no pods at the moment', async () => {
      await write(written('httpd', asked))
      await rig.clock.advance(15_000)
      await write(written('httpd', asked, { replicas: 0 }))
      await rig.clock.advance(60_000)
      await write(written('httpdd', asked, { replicas: 2 }))
      await rig.clock.advance(90_000)
      expect([record(), commands()]).toMatchObject([
        { latest: 2, active: 1, pin: { why: 'failed' } },
        { 'web-0': 'httpd', 'web-1': 'httpd' },
      ])
    })

    it('has one line of history for its template, with the annotations of now', async () => {
      await write(written('httpd', { 'kubernetes.io/change-cause': 'first' }))
      await rig.clock.advance(15_000)
      await write(written('httpd-2', { 'kubernetes.io/change-cause': 'first' }))
      await write(written('httpd-2', { 'kubernetes.io/change-cause': 'second' }, { replicas: 1 }))
      await write(written('httpd-3', { 'kubernetes.io/change-cause': 'third' }, { replicas: 1 }))
      await rig.clock.advance(15_000)
      await rig.kill()
      await rig.start()
      const deployment = shown()
      if (deployment === undefined) throw new Error('there is none')
      const sets = deriveRevisions(deployment, await rig.system.gate.revisionsOf('api', unit))
      expect(sets.map(({ metadata: { annotations } }) => annotations)).toMatchObject([
        { 'deployment.kubernetes.io/revision': '1', 'kubernetes.io/change-cause': 'first' },
        { 'deployment.kubernetes.io/revision': '2', 'kubernetes.io/change-cause': 'second' },
        { 'deployment.kubernetes.io/revision': '3', 'kubernetes.io/change-cause': 'third' },
      ])
    })
  })

  it('keeps each template, also one that another came after before it was healthy', async () => {
    for (const command of ['httpd', 'httpdd', 'httpd-3']) await write(written(command))
    const kept = await rig.system.gate.revisionsOf('api', unit)
    expect(kept.map(({ number }) => number)).toEqual([1, 2, 3])
    expect(kept[1]?.documents[0]?.manifest).toMatchObject({ spec: { template: template(['httpdd']) } })
  })

  it('has a ReplicaSet for each template that is kept of it, the newest number where one came again', async () => {
    for (const command of ['httpd', 'httpd-2', 'httpd']) {
      await write(written(command, { 'kubernetes.io/change-cause': command }))
      await rig.clock.advance(60_000)
    }
    const deployment = shown()
    if (deployment === undefined) throw new Error('there is none')
    const kept = await rig.system.gate.revisionsOf('api', unit)
    const sets = deriveRevisions(deployment, kept)
    // By this clients know which of them is that of the newest template.
    expect(sets[1]).toHaveProperty('spec.template', deployment.spec['template'])
    expect(sets).toMatchObject([
      {
        kind: 'ReplicaSet',
        metadata: {
          labels,
          annotations: { 'deployment.kubernetes.io/revision': '2', 'kubernetes.io/change-cause': 'httpd-2' },
          ownerReferences: [{ uid: 'u', controller: true }],
        },
        spec: { replicas: 0, template: template(['httpd-2']) },
        status: { replicas: 0 },
      },
      {
        metadata: { annotations: { 'deployment.kubernetes.io/revision': '3' } },
        spec: { replicas: 2, template: template(['httpd']) },
        status: { replicas: 2, readyReplicas: 2 },
      },
    ])
  })
})

describe('what the API shows of a Deployment', () => {
  const shown = () => rig.shown.deployments.list()[0]
  const cells = () =>
    columnsFor('kubectl', deployments ?? { columns: [] })
      .filter(({ wide }) => wide !== true)
      .map(({ cell }) => rig.shown.deployments.list().map((object) => cell(object, rig.clock.wallMs()))[0])

  it('is its manifest with defaults, and how far its pods are', async () => {
    await give(workload('Deployment', { replicas: 2 }))
    await rig.clock.advance(12_000)
    expect(cells()).toEqual(['web', '2/2', 2, 2, '12s'])
    expect(shown()).toMatchObject({
      metadata: { generation: 1, annotations: { 'podd.dev/path': '/file/web.yaml' } },
      spec: { replicas: 2, strategy: { type: 'RollingUpdate' } },
      status: {
        observedGeneration: 1,
        conditions: [{ type: 'Available', status: 'True' }, { reason: 'NewReplicaSetAvailable' }],
      },
    })
    await give(workload('Deployment', { replicas: 2 }, template([...good, '-v'])))
    expect(shown()?.status).toMatchObject({ updatedReplicas: 1, replicas: 2 })
    await give()
    expect(shown()).toBeUndefined()
  })
})

describe('the lists of what stands for templates that are kept', () => {
  it('read the revisions of a file once, however many workloads and templates it has', async () => {
    const named = (name: string, command: string): ObjectDocument => {
      const { manifest, place } = workload('Deployment', { replicas: 1 }, template([command]))
      const own = { ...manifest, metadata: { name, namespace: 'default' } }
      return { object: objectFromManifest(own), manifest: own, place }
    }
    for (const command of ['httpd', 'httpd-2', 'httpd-3', 'httpd-4']) {
      await give(...['one', 'two', 'three'].map((name) => named(name, command)))
      await rig.clock.advance(60_000)
    }
    rig.revisions.reads = 0
    await showRevisions(rig.shown, rig.system.gate)
    const sets = rig.shown.replicasets.list()
    expect([sets.length, rig.revisions.reads]).toEqual([12, 1])
    const ofTwo = sets.filter(({ metadata: { ownerReferences } }) => ownerReferences[0]?.name === 'two')
    const numbers = ofTwo.map(
      ({ metadata: { annotations } }) => annotations?.['deployment.kubernetes.io/revision'],
    )
    expect(new Set(numbers)).toEqual(new Set(['1', '2', '3', '4']))
  })
})

describe('a DaemonSet', () => {
  it('runs one pod', async () => {
    await give(workload('DaemonSet', {}))
    expect(rig.running()).toEqual(['web-0/main'])
  })
})

describe('a StatefulSet', () => {
  const claims = [
    {
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
  ]

  it('makes its pods one after the other, each with its identity and a claim of its own', async () => {
    rig.probe = () => ({ result: 'failure', output: '' })
    const pod = template(good)
    const probed: JsonObject = {
      ...pod,
      spec: {
        containers: [
          {
            name: 'main',
            image: 'app:1',
            command: good,
            readinessProbe: { tcpSocket: { port: 80 }, periodSeconds: 1 },
          },
        ],
      },
    }
    await give(
      workload('StatefulSet', { replicas: 2, serviceName: 'db', volumeClaimTemplates: claims }, probed),
    )
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['web-0/main'])
    rig.probe = () => ({ result: 'success', output: '' })
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['web-0/main', 'web-1/main'])
    expect(rig.pod('web-1')).toMatchObject({
      metadata: {
        labels: { 'apps.kubernetes.io/pod-index': '1', 'statefulset.kubernetes.io/pod-name': 'web-1' },
      },
      spec: {
        hostname: 'web-1',
        subdomain: 'db',
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data-web-1' } }],
      },
    })
    expect(rig.objects.seenBy('file').get('PersistentVolumeClaim', 'default', 'data-web-1')).toBeDefined()
    const { objects } = rig.system.applied()
    expect(objects.filter(({ owner }) => owner === undefined).map(({ key }) => key)).toEqual([
      'StatefulSet/default/web',
    ])
    expect(objects.map(({ key }) => key)).toContain('PersistentVolumeClaim/default/data-web-1')
  })

  it('makes all at once where it says Parallel, from the ordinal that it begins with', async () => {
    rig.probe = () => ({ result: 'failure', output: '' })
    await give(
      workload('StatefulSet', { replicas: 2, podManagementPolicy: 'Parallel', ordinals: { start: 5 } }),
    )
    expect(rig.running()).toEqual(['web-5/main', 'web-6/main'])
  })

  it('has its pods replaced and ended from the highest ordinal down, one at a time', async () => {
    await give(workload('StatefulSet', { replicas: 3, minReadySeconds: 2 }))
    await rig.clock.advance(20_000)
    expect(rig.running()).toHaveLength(3)
    await give(workload('StatefulSet', { replicas: 3, minReadySeconds: 2 }, template([...good, '-v'])))
    await rig.clock.advance(1000)
    expect(commands()).toEqual({ 'web-0': 'httpd', 'web-1': 'httpd', 'web-2': 'httpd -v' })
    await rig.clock.advance(20_000)
    expect(commands()).toEqual({ 'web-0': 'httpd -v', 'web-1': 'httpd -v', 'web-2': 'httpd -v' })
    const ended: string[] = []
    rig.system.statuses.subscribe(({ type, object }) => {
      if (type === 'DELETED') ended.push(object.metadata.name)
    })
    await give(workload('StatefulSet', { replicas: 1, minReadySeconds: 2 }, template([...good, '-v'])))
    await rig.clock.advance(80_000)
    expect([ended, rig.running()]).toEqual([['web-2', 'web-1'], ['web-0/main']])
  })

  it('that says OnDelete has a pod of the newest template where somebody deletes one, and is judged by none', async () => {
    const spec = { replicas: 2, updateStrategy: { type: 'OnDelete' } }
    await give(workload('StatefulSet', spec))
    await rig.clock.advance(20_000)
    await give(workload('StatefulSet', spec, template(['httpdd'])))
    await rig.clock.advance(60_000)
    expect(commands()).toEqual({ 'web-0': 'httpd', 'web-1': 'httpd' })
    const healthy = { record: { active: 2, revisions: [{ number: 1 }, { number: 2 }] } }
    expect(rig.system.gate.units()).toMatchObject([healthy])
    rig.system.endPod(uid('web-1'), 1, 'deleted')
    await rig.clock.advance(200_000)
    expect(commands()).toEqual({ 'web-0': 'httpd' })
    expect(rig.records.named('web-1')?.manifest).toMatchObject({
      spec: { containers: [{ command: ['httpdd'] }] },
    })
    expect(rig.system.gate.units()).toMatchObject([healthy])
  })
})

describe('a pod of a workload that somebody deletes', () => {
  it.each(['Deployment', 'StatefulSet', 'DaemonSet'])(
    'is replaced by its %s, under its name',
    async (kind) => {
      await give(workload(kind, {}))
      await rig.clock.advance(5000)
      const before = uid('web-0')
      expect(rig.system.endPod(before, 1, 'deleted')).toBe(true)
      await rig.clock.advance(5000)
      expect(rig.running()).toEqual(['web-0/main'])
      expect(uid('web-0')).not.toBe(before)
      expect(rig.fake.containersNamed('main')).toHaveLength(1)
    },
  )

  it('is replaced also where podd is killed before it has ended', async () => {
    await give(workload('Deployment', {}))
    await rig.clock.advance(5000)
    const before = uid('web-0')
    rig.fake.script('main', () => ({ kind: 'runs', stopsAfterMs: 5000 }))
    rig.system.endPod(before, 30, 'deleted')
    await rig.clock.advance(50)
    await rig.kill()
    await rig.start()
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['web-0/main'])
    expect(uid('web-0')).not.toBe(before)
  })

  it('counts as failed for its Job, which makes another one after its backoff, once', async () => {
    const manifest: JsonObject = {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'once', namespace: 'default' },
      spec: {
        template: {
          spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'app:1', command: good }] },
        },
      },
    }
    await give({ object: objectFromManifest(manifest), manifest, place: { path: '/file/once.yaml' } })
    await rig.clock.advance(2000)
    expect(rig.running()).toEqual(['once-0/main'])
    rig.system.endPod(uid('once-0'), 1, 'deleted')
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual([])
    expect(rig.shown.jobs.list()[0]?.status).toMatchObject({ failed: 1 })
    await rig.kill()
    await rig.start()
    await rig.clock.advance(30_000)
    expect(rig.running()).toEqual(['once-1/main'])
    expect(rig.shown.jobs.list()[0]?.status).toMatchObject({ failed: 1, active: 1 })
    expect(rig.fake.calls('StartContainer')).toHaveLength(2)
  })
})

describe('a Job', () => {
  const batch = (kind: string, name: string, spec: JsonObject): ObjectDocument => {
    const manifest: JsonObject = {
      apiVersion: 'batch/v1',
      kind,
      metadata: { name, namespace: 'default' },
      spec,
    }
    return { object: objectFromManifest(manifest), manifest, place: { path: `/file/${name}.yaml` } }
  }
  const task = (command: string): JsonObject => ({
    spec: {
      restartPolicy: 'Never',
      containers: [{ name: 'main', image: 'app:1', command: [command] }],
    },
  })
  const job = (spec: JsonObject = {}, command = 'task'): ObjectDocument =>
    batch('Job', 'once', { template: task(command), ...spec })
  /** As a source of which a file can't be read. */
  const offerInPart = async (...documents: readonly ObjectDocument[]): Promise<void> => {
    rig.given = documents
    rig.system.offerSnapshot({ ...rig.snapshot('file'), unreadable: ['/file/other.yaml'] })
    await rig.clock.advance(5000)
  }
  /** Each pod that there is, with its phase. */
  const phases = (): Readonly<Record<string, string>> =>
    Object.fromEntries(
      rig.system.statuses.list().map(({ metadata, status }) => [metadata.name, status.phase]),
    )

  beforeEach(() => {
    let fails = 2
    rig.fake.script('main', ({ config }) => {
      const [command] = config.command
      if (command === 'fails-twice') {
        fails -= 1
        return { kind: 'exits', exitCode: fails >= 0 ? 1 : 0, afterMs: 1000 }
      }
      return command === 'task' ? { kind: 'exits', exitCode: 0, afterMs: 1000 } : { kind: 'runs' }
    })
  })

  it('runs once for its manifest, also when podd starts again and its pod is long gone', async () => {
    await give(job({ ttlSecondsAfterFinished: 10 }))
    await rig.clock.advance(2000)
    expect(phases()).toEqual({ 'once-0': 'Succeeded' })
    const ends = () => rig.system.applied().objects.map(({ end }) => end?.type)
    expect(ends()).toEqual(['Complete'])
    expect(rig.pod('once-0').metadata.labels).toMatchObject({ 'batch.kubernetes.io/job-name': 'once' })
    await rig.clock.advance(60_000)
    expect(phases()).toEqual({})
    await rig.kill()
    await rig.start()
    await rig.clock.advance(60_000)
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
    expect(rig.shown.jobs.list()).toEqual([])
    expect(ends()).toEqual(['Complete'])
    await give(job({ ttlSecondsAfterFinished: 10 }, 'other'))
    expect(ends()).toEqual([undefined])
    expect(rig.running()).toEqual(['once-1/main'])
  })

  it('runs again where its manifest went away and comes back', async () => {
    await give(job())
    await rig.clock.advance(2000)
    await give()
    await rig.clock.advance(5000)
    await give(job())
    await rig.clock.advance(2000)
    expect(rig.fake.calls('StartContainer')).toHaveLength(2)
  })

  it('runs again where its manifest went away while podd did not run', async () => {
    await give(job())
    await rig.clock.advance(2000)
    await rig.kill()
    rig.given = []
    await rig.start()
    await rig.clock.advance(5000)
    await give(job())
    await rig.clock.advance(2000)
    expect(rig.fake.calls('StartContainer')).toHaveLength(2)
  })

  it('that fails twice is tried again after 10 s and 20 s, and completes; its pods stay', async () => {
    await give(job({}, 'fails-twice'))
    await rig.clock.advance(2000)
    expect(phases()).toEqual({ 'once-0': 'Failed' })
    await rig.clock.advance(11_000)
    expect(phases()).toEqual({ 'once-0': 'Failed', 'once-1': 'Failed' })
    await rig.kill()
    await rig.start()
    await rig.clock.advance(25_000)
    expect(phases()).toEqual({ 'once-0': 'Failed', 'once-1': 'Failed', 'once-2': 'Succeeded' })
    expect(rig.shown.jobs.list()).toMatchObject([
      {
        status: { succeeded: 1, failed: 2, ready: 0, conditions: [{}, { type: 'Complete', status: 'True' }] },
      },
    ])
    const told = rig.events.flatMap(({ kind, reason, message }) =>
      kind === 'Job' ? [`${reason}: ${message}`] : [],
    )
    expect(told).toEqual([
      ...['once-0', 'once-1', 'once-2'].map((pod) => `SuccessfulCreate: Created pod: ${pod}`),
      'Completed: Job completed',
    ])
    expect(JSON.parse(rig.jobs ?? '')).toMatchObject({
      version: 1,
      jobs: { 'file default/once': { succeeded: 1, failed: 2, finished: { type: 'Complete' } } },
    })
  })

  describe('beside a Deployment that goes back to its last healthy template', () => {
    const beside = (document: ObjectDocument): ObjectDocument => ({
      ...document,
      place: { path: '/file/web.yaml' },
    })
    const deployment = (command: string): ObjectDocument =>
      workload('Deployment', { replicas: 1 }, template([command]))
    it.each<[string, readonly ObjectDocument[]]>([
      ['of another template', [beside(job({ template: task('old') }))]],
      ['that the last healthy revision did not have', []],
    ])('%s runs once', async (_what, before) => {
      const ran: string[] = []
      rig.fake.script('main', ({ config }) => {
        const [command = ''] = config.command
        if (!command.startsWith('httpd')) ran.push(command)
        if (command === 'task' || command === 'old') return { kind: 'exits', exitCode: 0, afterMs: 1000 }
        return command === 'httpdd' ? { kind: 'exits', exitCode: 127, afterMs: 100 } : { kind: 'runs' }
      })
      await give(...before, deployment('httpd'))
      await rig.clock.advance(15_000)
      await give(beside(job()), deployment('httpdd'))
      await rig.clock.advance(90_000)
      expect(commands()).toMatchObject({ 'web-0': 'httpd' })
      await give(beside(job()), deployment('httpd-2'))
      await rig.clock.advance(30_000)
      expect(commands()).toEqual({ 'web-0': 'httpd-2' })
      expect(ran).toEqual([...before.map(() => 'old'), 'task'])
    })
  })

  it('runs again where it was deleted and written again over the API while not all files could be read', async () => {
    const written = (uid: string): ObjectDocument => ({
      ...job(),
      kept: { uid, createdAtMs: rig.clock.wallMs(), metadata: {} },
    })
    await offerInPart(written('a'))
    await offerInPart(written('a'))
    await offerInPart()
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
    await offerInPart(written('b'))
    expect(rig.fake.calls('StartContainer')).toHaveLength(2)
    expect(phases()).toEqual({ 'once-1': 'Succeeded' })
  })

  it('of a CronJob that was written again over the API does not start for a time before that', async () => {
    const written = (uid: string): ObjectDocument => ({
      ...batch('CronJob', 'backup', {
        schedule: '*/10 * * * *',
        timeZone: 'Etc/UTC',
        jobTemplate: { spec: { template: task('task') } },
      }),
      kept: { uid, createdAtMs: rig.clock.wallMs(), metadata: {} },
    })
    await offerInPart(written('a'))
    await offerInPart()
    await rig.clock.advance(11 * 60_000)
    await offerInPart(written('b'))
    expect(phases()).toEqual({})
  })

  it('is not forgotten where a set that worked runs in place of its source, and lacks it', async () => {
    await give(job())
    await rig.clock.advance(2000)
    rig.given = []
    rig.system.offerSnapshot({ ...rig.snapshot('file'), standsIn: 'crashed' })
    await rig.clock.advance(5000)
    await give(job())
    await rig.clock.advance(2000)
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
  })

  it('goes on only when it can be recorded what it has done', async () => {
    rig.jobsFailure = new Error('no space left on device')
    await give(job())
    await rig.clock.advance(5000)
    expect(phases()).toEqual({})
    rig.jobsFailure = undefined
    await rig.clock.advance(60_000)
    expect(phases()).toEqual({ 'once-0': 'Succeeded' })
  })

  it('does not start, and keeps the pod that runs, while what Jobs have done can’t be read; all else goes on', async () => {
    const more = batch('Job', 'more', { template: task('task') })
    await give(job({}, 'long'))
    await rig.kill()
    rig.jobsUnread = new Error('EIO')
    rig.given = [job({}, 'long'), more, workload('Deployment', { replicas: 1 })]
    await rig.start()
    await rig.clock.advance(70_000)
    expect(phases()).toEqual({ 'once-0': 'Running', 'web-0': 'Running' })
    rig.jobsUnread = undefined
    await rig.clock.advance(70_000)
    expect(phases()).toEqual({ 'more-0': 'Succeeded', 'once-0': 'Running', 'web-0': 'Running' })
    expect(rig.fake.calls('StartContainer')).toHaveLength(3)
  })

  it('that podd recorded, and was killed before it made the pod, has that pod once', async () => {
    await give(job({}, 'long'))
    const recorded = rig.jobs
    const { given } = rig
    await begin()
    await rig.kill()
    rig.jobs = recorded
    rig.given = given
    await rig.start()
    await rig.clock.advance(2000)
    expect(phases()).toEqual({ 'once-0': 'Running' })
    expect(JSON.parse(rig.jobs ?? '')).toMatchObject({ jobs: { 'file default/once': { made: 1 } } })
  })

  it('whose record is lost does not run again while its pod is there', async () => {
    await give(job())
    await rig.clock.advance(2000)
    await rig.kill()
    rig.jobs = undefined
    await rig.start()
    await rig.clock.advance(60_000)
    expect(phases()).toEqual({ 'once-0': 'Succeeded' })
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
    expect(rig.shown.jobs.list()).toMatchObject([{ status: { succeeded: 1 } }])
  })

  it('that ran when the host lost its power has failed once, and is tried again in another pod', async () => {
    await give(job({}, 'long'))
    await rig.kill()
    for (const container of rig.fake.world.containers.values())
      if (container.state === 'CONTAINER_RUNNING') rig.fake.world.exit(container, 255, 'Unknown')
    for (const sandbox of rig.fake.world.sandboxes.values()) rig.fake.world.endSandbox(sandbox)
    rig.host = { bootId: 'boot-2' }
    await rig.start()
    await rig.clock.advance(15_000)
    expect(phases()).toEqual({ 'once-0': 'Failed', 'once-1': 'Running' })
    expect(rig.shown.jobs.list()).toMatchObject([{ status: { active: 1, failed: 1 } }])
  })

  it('that has ended while podd was away is counted when it is back, once', async () => {
    await give(job({}, 'long'))
    await rig.kill()
    for (const container of rig.fake.world.containers.values())
      if (container.state === 'CONTAINER_RUNNING') rig.fake.world.exit(container, 0, 'Completed')
    await rig.start()
    await rig.clock.advance(5000)
    await rig.kill()
    await rig.start()
    await rig.clock.advance(5000)
    expect(phases()).toEqual({ 'once-0': 'Succeeded' })
    expect(rig.shown.jobs.list()).toMatchObject([{ status: { succeeded: 1 } }])
    expect(rig.fake.calls('StartContainer')).toHaveLength(1)
  })

  it('tells each pod of an Indexed Job which it is', async () => {
    await give(job({ completionMode: 'Indexed', completions: 2, parallelism: 2 }))
    expect(rig.pod('once-1-1')).toMatchObject({
      metadata: { annotations: { 'batch.kubernetes.io/job-completion-index': '1' } },
      spec: { hostname: 'once-1', containers: [{ env: [{ name: 'JOB_COMPLETION_INDEX' }] }] },
    })
  })

  it.each<[what: string, broken: ObjectDocument, message: string]>([
    [
      'a schedule',
      withSpec(
        batch('CronJob', 'broken', {
          schedule: '0 0 * * *',
          jobTemplate: { spec: { template: task('task') } },
        }),
        { schedule: 'x y' },
      ),
      'CronJob default/broken',
    ],
    ['replicas', withSpec(workload('Deployment', {}), { replicas: 2 ** 40 }), 'Deployment default/web'],
  ])(
    'runs although podd can’t make %s of another workload, which says so',
    async (_what, broken, message) => {
      await give(broken, job({}, 'long'))
      expect(rig.running()).toEqual(['once-0/main'])
      expect(rig.system.problems()).toEqual([
        {
          severity: 'error',
          place: broken.place,
          object: message.split(' ')[1],
          message: expect.stringContaining(
            `${message}: podd can't decide which pods it is to have`,
          ) as string,
          hint: expect.any(String) as string,
        },
      ])
      await give(job({}, 'long'))
      expect(rig.running()).toEqual(['once-0/main'])
      expect(rig.system.problems()).toEqual([])
    },
  )

  it('stays with its pods where podd can’t decide on its workload any more', async () => {
    await give(workload('Deployment', { replicas: 1 }), job({}, 'long'))
    expect(rig.running()).toEqual(['once-0/main', 'web-0/main'])
    const cron = batch('CronJob', 'broken', {
      schedule: '0 0 * * *',
      jobTemplate: { spec: { template: task('task') } },
    })
    await give(
      withSpec(workload('Deployment', { replicas: 1 }), { replicas: 2 ** 40 }),
      withSpec(cron, { schedule: 'x y' }),
      job({ parallelism: 1 }, 'long'),
    )
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual(['once-0/main', 'web-0/main'])
    expect(rig.system.problems()).toHaveLength(2)
    await give(workload('Deployment', { replicas: 1 }), job({}, 'long'))
    expect(rig.running()).toEqual(['once-0/main', 'web-0/main'])
    expect(rig.fake.calls('StartContainer')).toHaveLength(2)
    expect(rig.system.problems()).toEqual([])
  })

  it('that can’t be shown hides no other, and its pod runs', async () => {
    await give(job({}, 'long'), workload('Deployment', { replicas: 1 }))
    await rig.kill()
    const recorded = JSON.parse(rig.jobs ?? '')
    recorded.jobs['file default/once'].startedAtMs = -1e300
    rig.jobs = JSON.stringify(recorded)
    await rig.start()
    await rig.clock.advance(2000)
    expect(rig.shown.deployments.list()).toMatchObject([{ status: { readyReplicas: 1 } }])
    expect(rig.shown.jobs.list()).toEqual([])
    expect(rig.running().toSorted()).toEqual(['once-0/main', 'web-0/main'])
  })

  it('of a CronJob starts at its time, is named after it, and stays for its history', async () => {
    const cron = batch('CronJob', 'backup', {
      schedule: '*/10 * * * *',
      timeZone: 'Etc/UTC',
      successfulJobsHistoryLimit: 2,
      jobTemplate: { spec: { template: task('task') } },
    })
    const minutes = Math.floor(rig.clock.wallMs() / 60_000)
    await give(cron)
    await rig.clock.advance(10 * 60_000)
    await rig.clock.advance(5000)
    expect(phases()).toEqual({ [`backup-${minutes + 10}-0`]: 'Succeeded' })
    expect(rig.shown.jobs.list()).toMatchObject([{ metadata: { name: `backup-${minutes + 10}` } }])
    expect(rig.shown.cronjobs.list()).toMatchObject([
      { status: { lastScheduleTime: '2026-01-01T00:10:00Z' } },
    ])
    const { uid: cronUid = '' } = rig.shown.cronjobs.list()[0]?.metadata ?? {}
    expect(rig.events.filter(({ kind }) => kind === 'CronJob')).toEqual([
      {
        kind: 'CronJob',
        pod: { namespace: 'default', name: 'backup', uid: cronUid },
        type: 'Normal',
        reason: 'SuccessfulCreate',
        message: `Created job backup-${minutes + 10}`,
      },
    ])
    await rig.kill()
    await rig.start()
    await rig.clock.advance(31 * 60_000)
    expect(Object.keys(phases())).toEqual([`backup-${minutes + 30}-0`, `backup-${minutes + 40}-0`])
    expect(rig.fake.calls('StartContainer')).toHaveLength(4)
    rig.clock.setWall(rig.clock.wallMs() + 24 * 3_600_000)
    await rig.clock.advance(61_000)
    expect(rig.fake.calls('StartContainer')).toHaveLength(5)
  })

  describe('on a board without a battery, whose clock is set after its boot', () => {
    const years = 3 * 365 * 24 * 3_600_000
    const statuses = () => rig.shown.jobs.list().map(({ status }) => status)

    it.each([
      ['forward', years],
      ['back', -years],
    ])('has run as long as before where it is set %s', async (_, setMs) => {
      await give(job({ activeDeadlineSeconds: 600 }, 'stay'))
      await rig.clock.advance(60_000)
      rig.clock.setWall(rig.clock.wallMs() + setMs)
      await rig.clock.advance(120_000)
      expect(rig.running()).toEqual(['once-0/main'])
      // A podd that starts later knows it too.
      await rig.kill()
      await rig.start()
      await rig.clock.advance(300_000)
      expect(rig.running()).toEqual(['once-0/main'])
      await rig.clock.advance(180_000)
      expect(rig.running()).toEqual([])
      expect(statuses()).toMatchObject([{ conditions: [{}, { type: 'Failed', reason: 'DeadlineExceeded' }] }])
    })

    it.each(['Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob'] as const)(
      'a %s from a file is as old as its pods, or its record, by the clock as it is now',
      async (kind) => {
        await rig.terminate()
        rig.clock.boot(60_000)
        await rig.terminate()
        rig.clock.boot(60_000)
        rig.clock.setWall(60_000)
        await rig.start()
        await rig.start()
        const schedule = { schedule: '30 2 * * *', timeZone: 'Etc/UTC' }
        const cron = { ...schedule, jobTemplate: { spec: { template: task('task') } } }
        if (kind === 'Job') await give(job({}, 'stay'))
        else if (kind === 'CronJob') await give(batch('CronJob', 'backup', cron))
        else await give(workload(kind, kind === 'DaemonSet' ? {} : { replicas: 1 }))
        const { deployments, statefulsets, daemonsets, jobs, cronjobs } = rig.shown
        const stores = {
          Deployment: deployments,
          StatefulSet: statefulsets,
          DaemonSet: daemonsets,
          Job: jobs,
          CronJob: cronjobs,
        }
        const created = () => stores[kind].list().map(({ metadata }) => metadata.creationTimestamp)
        expect(created()).toEqual(['1970-01-01T00:01:00Z'])
        rig.clock.setWall(Date.UTC(2026, 6, 1))
        await rig.clock.advance(10_000)
        expect(created()).toEqual(['2026-06-30T23:59:59Z'])
        await rig.clock.advance(60_000)
        expect(created()).toEqual(['2026-06-30T23:59:59Z'])
      },
    )

    it('stays as long as before once it has ended', async () => {
      await give(job({ ttlSecondsAfterFinished: 600 }))
      await rig.clock.advance(60_000)
      rig.clock.setWall(rig.clock.wallMs() + years)
      await rig.clock.advance(300_000)
      expect(phases()).toEqual({ 'once-0': 'Succeeded' })
      await rig.clock.advance(300_000)
      expect(phases()).toEqual({})
    })

    it('is not started by a CronJob for a time before that was made', async () => {
      const spec = {
        schedule: '30 2 * * *',
        timeZone: 'Etc/UTC',
        jobTemplate: { spec: { template: task('task') } },
      }
      await give(batch('CronJob', 'backup', spec))
      await rig.clock.advance(60_000)
      rig.clock.setWall(rig.clock.wallMs() + years)
      await rig.clock.advance(3_600_000)
      expect(phases()).toEqual({})
      await rig.clock.advance(2 * 3_600_000)
      expect(Object.values(phases())).toEqual(['Succeeded'])
    })
  })
})
