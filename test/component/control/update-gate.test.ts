import { beforeEach, describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { parseSigningKey } from '../../../src/base/minisign.ts'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { errorAt, groupDocuments, isObjectDocument } from '../../../src/pod/objects/document.ts'
import type { ObjectDocument, SourceDocument, SourceSnapshot } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { decodeKept } from '../../../src/sources/written/object-file.ts'
import { createRevisionStore } from '../../../src/store/revisions.ts'
import { openRules } from '../../support/object-rules.ts'
import { makeSigner } from '../../support/minisign.ts'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig

const unit = '/file/web.yaml'
const good = ['httpd']
const bad = ['httpdd']

function web(command: readonly string[], spec: object = {}, metadata: JsonObject = {}): JsonObject {
  return podManifest('web', { containers: [{ name: 'main', image: 'app:1', command, ...spec }] }, metadata)
}

/** Containers go by their command and image: some end at once, or can't be started. */
function behave(to: PodRig): void {
  to.fake.script('main', ({ config }) => {
    const [program = ''] = config.command
    if (program === 'httpdd') return { kind: 'exits', exitCode: 127, afterMs: 100 }
    if (program === 'nothing') return { kind: 'fails-to-start', message: 'no such file' }
    if (config.image?.userSpecifiedImage === 'app:2') return { kind: 'exits', exitCode: 1, afterMs: 100 }
    return { kind: 'runs' }
  })
}

const record = (name = unit) => rig.revisions.saved.get(name)?.record
const uid = (): string => rig.pod('web').metadata.uid
const upToDate = () => rig.pod('web').status.conditions.find(({ type }) => type === 'podd.dev/UpToDate')
const command = (): readonly string[] => {
  const container = rig.fake.containersNamed('main').find(({ state }) => state === 'CONTAINER_RUNNING')
  return container?.config.command ?? []
}

async function begin(options: ConstructorParameters<typeof PodRig>[0] = {}): Promise<void> {
  rig = new PodRig(options)
  behave(rig)
  await rig.start()
}

beforeEach(async () => {
  await begin()
  await rig.apply(web(good))
  await rig.clock.advance(12_000)
})

describe('a revision whose pod is Ready for long enough', () => {
  it('is the one to go back to from then on, on the disk too, and not before', async () => {
    expect(record()).toMatchObject({ base: 1, active: 1, revisions: [{ verdict: 'healthy', pods: 1 }] })
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(9000)
    expect(record()).toMatchObject({ base: 1, active: 2 })
    await rig.clock.advance(3000)
    expect(record()).toMatchObject({ base: 2, active: 2 })
    expect(rig.system.problems()).toEqual([])
  })

  it('is so although the next one comes while that is recorded', async () => {
    const saving = Promise.withResolvers<void>()
    rig.revisions.beforeSave = (saved) =>
      saved.base === 2 && saved.latest === 2 ? saving.promise : Promise.resolve()
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(12_000)
    expect(rig.system.gate.units()).toMatchObject([{ record: { active: 2, base: 1 } }])
    await rig.apply(web(bad))
    saving.resolve()
    await rig.clock.advance(45_000)
    expect(command()).toEqual([...good, '-v'])
    expect(record()).toMatchObject({ offered: 3, active: 2, base: 2, pin: { why: 'failed' } })
  })

  it('is one that has completed, too', async () => {
    rig.fake.script('main', { kind: 'exits', exitCode: 0, afterMs: 100 })
    await rig.apply(
      podManifest('web', { restartPolicy: 'Never', containers: [{ name: 'main', image: 'app:1' }] }),
    )
    await rig.clock.advance(3000)
    expect(record()).toMatchObject({ base: 2 })
  })
})

describe('a revision whose pod crashes', () => {
  it('is replaced by the last healthy one, with the reason where people look', async () => {
    const before = uid()
    rig.lastLines = 'starting\nsh: httpdd: not found\n'
    await rig.apply(web(bad))
    await rig.clock.advance(9000)
    expect(command()).toEqual([])
    await rig.clock.advance(6000)
    expect([rig.running(), command()]).toEqual([['web/main'], good])
    expect(uid()).not.toBe(before)
    const why =
      'revision 2 failed, and revision 1 counts again: pod default/web has crashed 3 times: container main CrashLoopBackOff, exit code 127 (Error)'
    expect(rig.system.problems()).toMatchObject([
      { severity: 'error', place: { path: unit }, message: expect.stringContaining(why) },
    ])
    expect(upToDate()).toMatchObject({
      status: 'False',
      reason: 'RolledBack',
      message: expect.stringContaining(why),
    })
    expect(rig.reasons('web')).toContain('RolledBack')
    expect(record()).toMatchObject({
      offered: 2,
      active: 1,
      pin: { why: 'failed' },
      revisions: [
        {},
        {
          verdict: 'failed',
          failure: {
            reason: 'CrashLoopBackOff',
            containers: [
              {
                pod: 'default/web',
                container: 'main',
                exitCode: 127,
                lines: ['starting', 'sh: httpdd: not found'],
              },
            ],
          },
        },
      ],
    })
  })

  it('is not blamed for a container that was killed because the host is going down', async () => {
    rig.hostState = 'running'
    rig.settings = { updateCrashes: 1 }
    await rig.terminate()
    await rig.start()
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(2000)
    expect(command()).toEqual([...good, '-v'])
    rig.hostState = 'stopping'
    rig.fake.exitContainer('main', 137)
    await rig.clock.advance(60_000)
    expect(record()).toMatchObject({ active: 2 })
    expect(record()?.revisions).not.toContainEqual(expect.objectContaining({ verdict: 'failed' }))
    rig.hostState = 'running'
    await rig.clock.advance(60_000)
    expect([rig.running(), command()]).toEqual([['web/main'], good])
  })

  it('is recorded as failed before anything is done about it', async () => {
    const seen: unknown[] = []
    rig.revisions.beforeSave = async (saved) => {
      if (saved.pin !== undefined) seen.push(rig.pod('web').metadata.deletionTimestamp, upToDate())
    }
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    expect(seen).toEqual([undefined, undefined])
    expect(command()).toEqual(good)
  })

  it('is not tried again while its source gives it, over restarts of podd', async () => {
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    const starts = rig.fake.calls('StartContainer').length
    await rig.offer()
    await rig.kill()
    await rig.start()
    await rig.terminate()
    await rig.start()
    await rig.clock.advance(700_000)
    expect(rig.fake.calls('StartContainer')).toHaveLength(starts)
    expect([rig.running(), command()]).toEqual([['web/main'], good])
    expect(upToDate()).toMatchObject({ reason: 'RolledBack' })
  })

  it('is followed by the next one, and no trace is left when that is healthy', async () => {
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(15_000)
    expect(command()).toEqual([...good, '-v'])
    expect([rig.system.problems(), upToDate()]).toEqual([[], undefined])
    expect(record()).toMatchObject({ base: 3, active: 3, offered: 3 })
    expect(record()?.pin).toBeUndefined()
  })

  it('starts nothing anew when its source gives the good one again', async () => {
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    const before = uid()
    await rig.apply(web(good))
    await rig.clock.advance(1000)
    expect([uid(), rig.system.problems(), upToDate()]).toEqual([before, [], undefined])
  })

  it('goes back in place where only an image changed, and keeps the pod', async () => {
    const before = uid()
    await rig.apply(web(good, { image: 'app:2' }))
    await rig.clock.advance(60_000)
    expect([uid(), rig.container('web').image, rig.running()]).toEqual([before, 'app:1', ['web/main']])
    expect(record()).toMatchObject({ active: 1, pin: { why: 'failed' } })
  })

  it('is one whose container can’t be started, too', async () => {
    await rig.apply(web(['nothing']))
    await rig.clock.advance(60_000)
    expect(command()).toEqual(good)
  })

  it('stays where it is the first one, and where its base had no pods', async () => {
    await rig.apply(podManifest('other', { containers: [{ name: 'main', image: 'app:1', command: bad }] }))
    await rig.clock.advance(120_000)
    expect(rig.container('other').restartCount).toBeGreaterThan(2)
    expect(rig.system.problems()).toEqual([])
    expect(record('/file/other.yaml')).toBeUndefined()
    const other = rig.system.gate.units().find(({ record: { unit: name } }) => name === '/file/other.yaml')
    expect(other?.message).toMatch(
      /^revision 1 failed, and none is kept to go back to: pod default\/other has/u,
    )
  })

  it('stays where somebody wants it so, and counts as healthy once it is', async () => {
    const annotations = { 'podd.dev/rollback': 'false' }
    await rig.apply(web(bad, {}, { annotations }))
    await rig.clock.advance(60_000)
    expect(rig.system.problems()).toMatchObject([
      {
        message: expect.stringMatching(
          /^revision 2 failed, and is not rolled back: pod default\/web has crashed/u,
        ),
      },
    ])
    rig.fake.script('main', { kind: 'runs' })
    await rig.clock.advance(200_000)
    expect(record()).toMatchObject({ active: 2, base: 2, revisions: [{}, { verdict: 'healthy' }] })
    expect(rig.system.problems()).toEqual([])
  })

  it('stays where the configuration says so', async () => {
    await begin({ settings: { updateRollback: false } })
    await rig.apply(web(good))
    await rig.clock.advance(12_000)
    await rig.apply(web(bad))
    await rig.clock.advance(60_000)
    expect(record()).toMatchObject({ active: 2 })
    expect(rig.system.problems()).toMatchObject([{ message: expect.stringContaining('not rolled back') }])
  })

  it('is replaced although one came after it that can’t be had until the deadline', async () => {
    await rig.apply(web(bad))
    await rig.clock.advance(2000)
    await rig.apply(web(good, { image: 'gone:1' }))
    await rig.clock.advance(590_000)
    expect(record()).toMatchObject({ offered: 3, active: 3 })
    await rig.clock.advance(30_000)
    expect(command()).toEqual(good)
    expect(record()).toMatchObject({ offered: 3, active: 1, pin: { why: 'failed' } })
  })

  it('leaves other units alone, which change in the same look', async () => {
    const other = (program: readonly string[]): JsonObject =>
      podManifest('other', { containers: [{ name: 'main', image: 'app:1', command: program }] })
    await rig.apply(other(good))
    await rig.clock.advance(12_000)
    await rig.apply(web(bad), other(['other']))
    await rig.clock.advance(45_000)
    expect([record()?.active, record('/file/other.yaml')?.base]).toEqual([1, 2])
    expect(rig.running()).toEqual(['other/main', 'web/main'])
  })

  it('is found by its name also where the node’s is appended to it', async () => {
    await begin({ settings: { podNameSuffix: 'node' } })
    await rig.apply(web(good))
    await rig.clock.advance(12_000)
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    expect(rig.running()).toEqual(['web-box/main'])
    expect(rig.pod('web-box').status.conditions.map(({ type }) => type)).toContain('podd.dev/UpToDate')
  })

  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])(
    'is replaced in the end although podd is killed at moment %i',
    async (moment) => {
      await rig.apply(web(bad))
      await rig.clock.advance(29_000 + moment * 250)
      await rig.kill()
      await rig.start()
      await rig.clock.advance(200_000)
      expect([rig.running(), command()]).toEqual([['web/main'], good])
      const starts = rig.fake.calls('StartContainer').length
      await rig.kill()
      await rig.start()
      await rig.clock.advance(200_000)
      expect(rig.fake.calls('StartContainer')).toHaveLength(starts)
    },
  )

  it('is replaced on a full disk too, which is written once it has room', async () => {
    rig.revisions.failure = new Error('ENOSPC')
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    expect(command()).toEqual(good)
    expect(record()).toMatchObject({ active: 1, latest: 1 })
    rig.revisions.failure = undefined
    await rig.clock.advance(120_000)
    expect(record()).toMatchObject({ active: 1, offered: 2, pin: { why: 'failed' } })
  })
})

describe('a revision whose pod does not get Ready', () => {
  const readinessProbe = { httpGet: { path: '/nope', port: 80 }, periodSeconds: 1 }
  const never = (): void => {
    rig.probe = (_id, { httpGet }) =>
      httpGet?.path === '/nope' ? { result: 'failure', output: '404' } : { result: 'success', output: '' }
  }

  it('is replaced at the deadline, with the event that a Deployment’s has', async () => {
    never()
    await rig.apply(web(good, { readinessProbe }))
    await rig.clock.advance(590_000)
    expect(rig.condition('web', 'Ready')).toBe('False')
    await rig.clock.advance(20_000)
    expect(rig.condition('web', 'Ready')).toBe('True')
    expect(rig.reasons('web')).toContain('ProgressDeadlineExceeded')
    expect(record()?.revisions[1]?.failure?.reason).toBe('ProgressDeadlineExceeded')
  })

  it('has the time that its annotation gives it', async () => {
    never()
    const annotations = { 'podd.dev/progress-deadline': '20s' }
    await rig.apply(web(good, { readinessProbe }, { annotations }))
    await rig.clock.advance(25_000)
    expect(rig.condition('web', 'Ready')).toBe('True')
  })

  it('is not blamed for a runtime that is away, nor for the time before podd began', async () => {
    never()
    await rig.apply(web(good, { readinessProbe }))
    await rig.clock.advance(500_000)
    rig.fake.goDown()
    await rig.clock.advance(500_000)
    expect(record()).toMatchObject({ active: 2 })
    rig.fake.comeUp()
    await rig.clock.advance(500_000)
    await rig.kill()
    await rig.start()
    await rig.clock.advance(500_000)
    expect(record()).toMatchObject({ active: 2 })
    await rig.clock.advance(120_000)
    expect(record()).toMatchObject({ active: 1 })
  })

  it('is replaced at once when its startup probe has failed', async () => {
    never()
    await rig.apply(web(good, { startupProbe: { ...readinessProbe, failureThreshold: 2 } }))
    await rig.clock.advance(6000)
    expect(record()).toMatchObject({
      active: 1,
      revisions: [{}, { failure: { reason: 'StartupProbeFailed' } }],
    })
    expect(rig.condition('web', 'Ready')).toBe('True')
  })

  it('is replaced at once where nothing of it runs any more', async () => {
    await rig.apply(
      podManifest('web', {
        restartPolicy: 'Never',
        containers: [{ name: 'main', image: 'app:1', command: bad }],
      }),
    )
    await rig.clock.advance(5000)
    expect(record()?.revisions[1]?.failure).toMatchObject({ reason: 'PodFailed' })
    expect(command()).toEqual(good)
  })

  it('is not undone where it is a task, whose predecessor has ended', async () => {
    const task = (program: readonly string[]): JsonObject =>
      podManifest('task', {
        restartPolicy: 'OnFailure',
        containers: [{ name: 'main', image: 'app:1', command: program }],
      })
    rig.fake.script('main', ({ config }) => ({
      kind: 'exits',
      exitCode: config.command.includes('done') ? 0 : 3,
      afterMs: 100,
    }))
    await rig.apply(task(['done']))
    await rig.clock.advance(3000)
    await rig.apply(task(['failing']))
    await rig.clock.advance(60_000)
    expect(record('/file/task.yaml')).toMatchObject({
      active: 2,
      base: 1,
      revisions: [{}, { verdict: 'failed' }],
    })
    expect(rig.system.problems()).toMatchObject([
      { message: expect.stringMatching(/^revision 2 failed, and is not rolled back/u) },
    ])
    const condition = rig.pod('task').status.conditions.find(({ type }) => type === 'podd.dev/UpToDate')
    expect(condition).toMatchObject({ reason: 'UpdateFailed' })
  })

  it('fails at the deadline, and stays, where the old one runs because an image is missing', async () => {
    await rig.apply(web(good, { image: 'gone:1' }))
    await rig.clock.advance(590_000)
    expect(record()).toMatchObject({ active: 2, revisions: [{}, { verdict: 'progressing' }] })
    await rig.clock.advance(1_400_000)
    expect(record()).toMatchObject({ active: 2, base: 1, revisions: [{}, { verdict: 'failed' }] })
    expect([rig.running(), rig.container('web').image]).toEqual([['web/main'], 'app:1'])
    expect(rig.system.problems().map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/^revision 2 is not in effect as a whole, and stays: .*gone:1/u),
    )
    await rig.kill()
    await rig.start()
    expect(record()).toMatchObject({ active: 2 })
    rig.fake.addRemoteImage('gone:1')
    await rig.clock.advance(320_000)
    expect(record()).toMatchObject({ base: 2, revisions: [{}, { verdict: 'healthy' }] })
    expect(rig.system.problems()).toEqual([])
  })
})

/** Gives a file these pods. */
const offerFile = (...pods: readonly JsonObject[]): void => {
  const documents = pods.map((manifest) => ({
    pod: podFromManifest(manifest),
    manifest,
    place: { path: unit },
  }))
  rig.system.offerSnapshot({ ...rig.snapshot('file'), pods: documents })
}

describe('a pod of a unit that this host never lets run', () => {
  const other = (name: string, spec: JsonObject = {}): JsonObject =>
    podManifest(name, { containers: [{ name: 'main', image: 'app:1', command: good }], ...spec })
  const tooLarge = other('large', {
    containers: [{ name: 'main', image: 'app:1', resources: { requests: { memory: '64Gi' } } }],
  })

  beforeEach(async () => {
    await begin({ admission: openRules({ maxPods: 110, allocatable: { memory: '1Gi' } }) })
  })

  it('fails its revision at the deadline, which its other pods go back to all the same', async () => {
    offerFile(web(good), tooLarge)
    await rig.clock.advance(590_000)
    expect(rig.system.gate.units()).toMatchObject([{ record: { revisions: [{ verdict: 'progressing' }] } }])
    await rig.clock.advance(20_000)
    expect(record()).toMatchObject({ active: 1, base: 1, revisions: [{ verdict: 'failed' }] })
    expect(rig.reasons('large')).toContain('ProgressDeadlineExceeded')
    expect(rig.system.problems()).toMatchObject([
      {
        severity: 'warning',
        message: expect.stringMatching(
          /^revision 1 is not in effect as a whole, and stays: pod default\/large may not run 600 s after its change: .*memory/u,
        ),
      },
    ])
    offerFile(web(bad), tooLarge)
    await rig.clock.advance(45_000)
    expect(command()).toEqual(good)
    expect(record()).toMatchObject({ offered: 2, active: 1, base: 1, pin: { why: 'failed' } })
  })

  it('takes nothing from the others where it is added, and is healthy once it runs', async () => {
    offerFile(web(good))
    await rig.clock.advance(15_000)
    offerFile(web([...good, '-v']), tooLarge)
    await rig.clock.advance(620_000)
    expect(command()).toEqual([...good, '-v'])
    expect(record()).toMatchObject({ active: 2, base: 2, revisions: [{}, { verdict: 'failed' }] })
    await rig.kill()
    rig.boot()
    offerFile(web([...good, '-v']), tooLarge)
    await rig.clock.advance(10_000)
    expect(record()).toMatchObject({ active: 2, base: 2 })
    offerFile(web([...good, '-v']), other('large'))
    await rig.clock.advance(30_000)
    expect(record()).toMatchObject({ active: 3, base: 3, revisions: [{}, {}, { verdict: 'healthy' }] })
    expect(rig.system.problems()).toEqual([])
  })

  it('has the unit go back where it is all that the unit has, and one before it ran', async () => {
    offerFile(web(good))
    await rig.clock.advance(15_000)
    offerFile(tooLarge)
    await rig.clock.advance(590_000)
    expect(rig.running()).toEqual([])
    await rig.clock.advance(30_000)
    expect([rig.running(), command()]).toEqual([['web/main'], good])
    expect(record()).toMatchObject({ active: 1, base: 1, pin: { why: 'failed' } })
  })

  it('is healthy with the others where there is room for it later', async () => {
    const half = { requests: { memory: '600Mi' } }
    const large = other('large', { containers: [{ name: 'main', image: 'app:1', resources: half }] })
    const roomy = other('roomy', { containers: [{ name: 'main', image: 'app:1', resources: half }] })
    await rig.apply(roomy)
    const others = rig.snapshot('file')
    const give = (...pods: readonly JsonObject[]): void => {
      const documents = pods.map((manifest) => ({
        pod: podFromManifest(manifest),
        manifest,
        place: { path: unit },
      }))
      rig.system.offerSnapshot({ ...others, pods: [...others.pods, ...documents] })
    }
    give(web(good), large)
    await rig.clock.advance(620_000)
    expect(record()).toMatchObject({ base: 1, revisions: [{ verdict: 'failed' }] })
    offerFile(web(good), large)
    await rig.clock.advance(30_000)
    expect(rig.running()).toEqual(['large/main', 'web/main'])
    expect(record()).toMatchObject({ base: 1, revisions: [{ verdict: 'healthy' }] })
    expect(rig.system.problems()).toEqual([])
  })
})

describe('a new pod of a unit whose image takes long to pull', () => {
  const slow = podManifest('slow', { containers: [{ name: 'main', image: 'slow:1' }] })

  it('is not gone back from while it is pulled, which is told at the deadline, and is healthy in the end', async () => {
    rig.fake.addRemoteImage('slow:1')
    rig.fake.fault('PullImage', { kind: 'delays', delayMs: 900_000 })
    offerFile(web(good), slow)
    await rig.clock.advance(590_000)
    expect(record()).toMatchObject({ active: 2, base: 1, revisions: [{}, { verdict: 'progressing' }] })
    await rig.clock.advance(20_000)
    expect(record()).toMatchObject({ active: 2 })
    expect(rig.system.problems()).toMatchObject([
      { severity: 'warning', message: expect.stringContaining('still waits for an image') },
    ])
    await rig.clock.advance(310_000)
    expect(rig.running()).toEqual(['slow/main', 'web/main'])
    expect(record()).toMatchObject({ active: 2, base: 2, revisions: [{}, { verdict: 'healthy' }] })
    expect(rig.system.problems()).toEqual([])
  })

  it('has the time of the deadline after its image is there', async () => {
    rig.fake.addRemoteImage('slow:1')
    rig.fake.fault('PullImage', { kind: 'delays', delayMs: 500_000 })
    rig.probe = (id) =>
      rig.fake.world.containers.get(id)?.config.image?.userSpecifiedImage === 'slow:1'
        ? { result: 'failure', output: '' }
        : { result: 'success', output: '' }
    const readinessProbe = { httpGet: { path: '/', port: 80 }, periodSeconds: 1 }
    offerFile(
      web(good),
      podManifest('slow', { containers: [{ name: 'main', image: 'slow:1', readinessProbe }] }),
    )
    await rig.clock.advance(1_080_000)
    expect(record()).toMatchObject({ active: 2 })
    await rig.clock.advance(60_000)
    expect(record()).toMatchObject({ active: 1, pin: { why: 'failed' } })
  })

  it('fails at the deadline where it can’t be pulled', async () => {
    offerFile(web(good), podManifest('slow', { containers: [{ name: 'main', image: 'gone:1' }] }))
    await rig.clock.advance(640_000)
    expect(record()).toMatchObject({ active: 1, pin: { why: 'failed' } })
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('a pod that two files give', () => {
  it('is judged for the one that is followed alone', async () => {
    const other = { ...web(bad), metadata: { name: 'other' } }
    await rig.apply(other)
    await rig.clock.advance(1000)
    const snapshot = rig.snapshot('file')
    // The file of the good pod gives another version of the bad one too, which is not followed.
    const more = snapshot.pods
      .filter(({ pod }) => pod.metadata.name === 'other')
      .map(({ pod, manifest }) => ({
        pod,
        manifest: Object.assign({ status: {} }, manifest),
        place: { path: unit },
      }))
    rig.system.offerSnapshot({ ...snapshot, pods: [...snapshot.pods, ...more] })
    await rig.clock.advance(580_000)
    expect(record()).toMatchObject({ active: 2, revisions: [{}, { verdict: 'progressing' }] })
    await rig.clock.advance(100_000)
    expect(record()).toMatchObject({ active: 2, revisions: [{}, { verdict: 'failed' }] })
    expect(rig.system.problems().map(({ message }) => message)).toContainEqual(
      expect.stringContaining('/file/other.yaml, which is followed'),
    )
  })
})

describe('a pod that stands in another file since the revision that counts again', () => {
  it('is of that file: it is not shown as rolled back, and nobody is told to remove it where it is not', async () => {
    const named = (name: string, path: string, program = good) => {
      const manifest = { ...web(program), metadata: { name } }
      return { pod: podFromManifest(manifest), manifest, place: { path } }
    }
    const offer = async (...pods: ReturnType<typeof named>[]): Promise<void> => {
      rig.system.offerSnapshot({ ...rig.snapshot('file'), pods })
      await rig.clock.advance(45_000)
    }
    await offer(named('web', unit), named('moved', unit))
    const { uid: before } = rig.pod('moved').metadata
    await offer(named('moved', '/file/moved.yaml'), named('web', unit, bad))
    expect(record()).toMatchObject({ active: 2, pin: { why: 'failed' } })
    expect(command()).toEqual(good)
    expect(rig.pod('moved').metadata).toMatchObject({
      uid: before,
      annotations: { 'podd.dev/path': '/file/moved.yaml' },
    })
    expect(upToDate()).toMatchObject({ reason: 'RolledBack' })
    expect(rig.pod('moved').status.conditions.map(({ type }) => type)).not.toContain('podd.dev/UpToDate')
    expect(rig.reasons('moved')).not.toContain('RolledBack')
    expect(rig.system.problems().filter(({ object }) => object === 'default/moved')).toEqual([])
    expect(rig.system.problems()).toContainEqual({
      severity: 'warning',
      place: { path: unit },
      message:
        'an earlier revision counts here, and gives pod default/moved too, which is followed from /file/moved.yaml',
      hint: undefined,
    })
  })
})

describe('the answer of a URL', () => {
  it('is no new revision when its documents come in another order', async () => {
    await begin({ sources: ['http'] })
    const named = (name: string) => ({ ...web(good), metadata: { name } })
    await rig.put('http', named('a'), named('b'))
    await rig.clock.advance(12_000)
    const before = record('http')?.latest
    const given = rig.snapshot('http')
    rig.system.offerSnapshot({ ...given, pods: given.pods.toReversed() })
    await rig.clock.advance(12_000)
    expect(record('http')).toMatchObject({ latest: before, base: before })
  })

  it('goes back as a whole', async () => {
    await begin({ sources: ['http'] })
    const named = (name: string, program: readonly string[]) => ({
      ...web(program),
      metadata: { name },
    })
    await rig.put('http', named('a', good), named('b', good))
    await rig.clock.advance(12_000)
    expect(record('http')).toMatchObject({ source: 'http', base: 2 })
    await rig.put('http', named('a', [...good, '-v']), named('b', bad), named('c', good))
    await rig.clock.advance(45_000)
    expect(rig.running()).toEqual(['a/main', 'b/main'])
    expect(
      rig.fake
        .containersNamed('main')
        .flatMap(({ state, config }) => (state === 'CONTAINER_RUNNING' ? [config.command] : [])),
    ).toEqual([good, good])
    expect(rig.system.problems()).toMatchObject([{ place: { path: '/http' } }])
  })
})

describe('a source that gives more pods than may be followed', () => {
  const named = (name: string, program: readonly string[]) => ({ ...web(program), metadata: { name } })

  beforeEach(() => begin({ sources: ['http'], settings: { maxPods: 1 } }))

  it('is not healthy by those that are followed, and is once it gives no others', async () => {
    await rig.put('http', named('a', good), named('b', good), named('c', good))
    await rig.clock.advance(12_000)
    expect(rig.running()).toEqual(['a/main'])
    expect(record('http')).toMatchObject({ active: 2, revisions: [{}, { verdict: 'progressing' }] })
    await rig.remove('b', 'http')
    await rig.remove('c', 'http')
    await rig.clock.advance(12_000)
    expect(record('http')).toMatchObject({ active: 4, base: 4 })
  })

  it('goes back where one of those that are followed crashes', async () => {
    await rig.put('http', named('a', good))
    await rig.clock.advance(12_000)
    await rig.put('http', named('a', bad), named('b', good), named('c', good), named('d', good))
    await rig.clock.advance(45_000)
    expect(command()).toEqual(good)
    expect(record('http')).toMatchObject({ active: 2, base: 2, pin: { why: 'failed' } })
  })
})

describe('a pod that two files give', () => {
  it('is judged for the file that is followed alone', async () => {
    await rig.apply(podManifest('other', { containers: [{ name: 'main', image: 'app:1', command: good }] }))
    await rig.clock.advance(12_000)
    expect(record('/file/other.yaml')).toMatchObject({ base: 1 })
    const manifest = web(bad)
    const again = { pod: podFromManifest(manifest), manifest, place: { path: '/file/other.yaml' } }
    const given = rig.snapshot('file')
    rig.system.offerSnapshot({ ...given, pods: [...given.pods, again] })
    await rig.clock.advance(90_000)
    expect(command()).toEqual(good)
    expect(record('/file/other.yaml')?.revisions.at(-1)?.verdict).toBe('progressing')
  })
})

describe('a copy that was kept without Secrets', () => {
  const secret = (value: string) => {
    const manifest = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'key', namespace: 'default' },
      stringData: { value },
    }
    return { object: objectFromManifest(manifest), manifest, place: { path: '/http/key.yaml' } }
  }
  const offerCopy = async (): Promise<void> => {
    const copy = { ...rig.snapshot('http'), objects: [], lacksSecrets: true, isAnswer: false }
    rig.system.offerSnapshot(copy)
    await rig.clock.advance(15_000)
  }
  const env = [{ name: 'V', valueFrom: { secretKeyRef: { name: 'key', key: 'value' } } }]

  beforeEach(async () => {
    await begin({ sources: ['http'] })
    rig.revisions.persistSecrets = false
    rig.givenByUrl = [secret('one')]
    await rig.put('http', web(good, { env }))
    await rig.clock.advance(12_000)
  })

  it('is the revision that was offered, so that a failed one is not tried again while its source is away', async () => {
    await rig.put('http', web(bad, { env }))
    await rig.clock.advance(60_000)
    const failed = { offered: 3, active: 2, latest: 3, pin: { why: 'failed' } }
    expect(record('http')).toMatchObject(failed)
    const starts = rig.fake.calls('StartContainer').length
    for (let boot = 0; boot < 2; boot += 1) {
      await rig.kill()
      rig.boot()
      await offerCopy()
      expect(record('http')).toMatchObject(failed)
      await rig.offer('http')
      await rig.clock.advance(15_000)
      expect(record('http')).toMatchObject(failed)
    }
    expect([rig.running(), command()]).toEqual([['web/main'], good])
    expect(rig.fake.calls('StartContainer')).toHaveLength(starts)
  })

  it('is followed by a new revision where the source has another Secret when it answers', async () => {
    await rig.kill()
    rig.boot()
    await offerCopy()
    expect(record('http')).toMatchObject({ offered: 2, active: 2, latest: 2 })
    rig.givenByUrl = [secret('two')]
    await rig.offer('http')
    await rig.clock.advance(15_000)
    expect(record('http')).toMatchObject({ offered: 3, active: 3, latest: 3 })
  })

  it('is not what a revision is that podd has in memory: a failed Secret is gone back from, with its pod too', async () => {
    rig.fake.script('main', ({ config: { envs } }) =>
      envs.some(({ value }) => value.toString() === 'bad')
        ? { kind: 'exits', exitCode: 1, afterMs: 100 }
        : { kind: 'runs' },
    )
    const annotations = { 'podd.dev/restart-on-config-change': 'true' }
    await rig.put('http', web([...good, '-a'], { env }, { annotations }))
    await rig.clock.advance(30_000)
    expect(record('http')).toMatchObject({ active: 3, base: 3 })
    const values = () =>
      rig.fake
        .containersNamed('main')
        .flatMap(({ state, config }) =>
          state === 'CONTAINER_RUNNING' ? config.envs.map(({ value }) => value.toString()) : [],
        )
    rig.givenByUrl = [secret('bad')]
    await rig.offer('http')
    await rig.clock.advance(90_000)
    expect(record('http')).toMatchObject({ offered: 4, active: 3, base: 3, pin: { why: 'failed' } })
    expect(values()).toEqual(['one'])
    await rig.put('http', web([...good, '-v'], { env }, { annotations }))
    await rig.clock.advance(90_000)
    expect(record('http')).toMatchObject({ offered: 5, active: 3, base: 3, pin: { why: 'failed' } })
    expect([values(), command()]).toEqual([['one'], [...good, '-a']])
  })

  it('becomes whole when its source answers, where it was the first that was known', async () => {
    await begin({ sources: ['http'] })
    rig.givenByUrl = [secret('one')]
    await rig.put('http', web(good))
    rig.revisions.saved.clear()
    await rig.kill()
    rig.boot()
    await offerCopy()
    await rig.offer('http')
    await rig.clock.advance(15_000)
    expect(record('http')).toMatchObject({ offered: 1, active: 1, latest: 1, base: 1 })
  })
})

describe('a changed ConfigMap of the unit', () => {
  const config = (value: string) => {
    const manifest = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'conf', namespace: 'default' },
      data: { value },
    }
    return { object: objectFromManifest(manifest), manifest, place: { path: unit } }
  }

  it('is not healthy while the old container is ending', async () => {
    rig.fake.script('main', ({ config: { envs } }) =>
      envs.some(({ value }) => value.toString() === 'bad')
        ? { kind: 'exits', exitCode: 1, afterMs: 100 }
        : { kind: 'runs', stop: { kind: 'exits', exitCode: 0, afterMs: 25_000 } },
    )
    const annotations = { 'podd.dev/restart-on-config-change': 'true' }
    const env = [{ name: 'V', valueFrom: { configMapKeyRef: { name: 'conf', key: 'value' } } }]
    rig.given = [config('one')]
    await rig.apply(web(good, { env }, { annotations }))
    await rig.clock.advance(60_000)
    expect(record()?.base).toBe(2)
    rig.given = [config('bad')]
    await rig.offer()
    await rig.clock.advance(20_000)
    expect(record()).toMatchObject({ active: 3, base: 2 })
    await rig.clock.advance(120_000)
    expect(record()).toMatchObject({ active: 2, pin: { why: 'failed' } })
    expect(rig.running()).toEqual(['web/main'])
  })

  it('that has a pod restart and crash is taken back with it, and a mended one is tried', async () => {
    rig.fake.script('main', ({ config: { envs } }) =>
      envs.some(({ value }) => value.toString() === 'bad')
        ? { kind: 'exits', exitCode: 1, afterMs: 100 }
        : { kind: 'runs', stop: { kind: 'exits', exitCode: 0, afterMs: 100 } },
    )
    const annotations = { 'podd.dev/restart-on-config-change': 'true' }
    const env = [{ name: 'V', valueFrom: { configMapKeyRef: { name: 'conf', key: 'value' } } }]
    rig.given = [config('one')]
    await rig.apply(web(good, { env }, { annotations }))
    await rig.clock.advance(15_000)
    expect(record()?.base).toBe(2)
    rig.given = [config('bad')]
    await rig.offer()
    await rig.clock.advance(90_000)
    expect(record()).toMatchObject({ active: 2, pin: { why: 'failed' } })
    expect(rig.running()).toEqual(['web/main'])
    rig.given = [config('two')]
    await rig.offer()
    await rig.clock.advance(15_000)
    expect(record()).toMatchObject({ active: 4, base: 4 })
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('a person', () => {
  it('goes back to the revision before, until the source gives something else or it is resumed', async () => {
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(12_000)
    const back = rig.system.gate.rollBack('file', unit, undefined)
    await rig.settle()
    expect(await back).toBe(1)
    await rig.clock.advance(12_000)
    expect(command()).toEqual(good)
    expect(upToDate()).toMatchObject({ reason: 'RollbackRequested' })
    await rig.offer()
    await rig.kill()
    await rig.start()
    await rig.clock.advance(12_000)
    expect(command()).toEqual(good)
    const resumed = rig.system.gate.resume('file', unit)
    await rig.settle()
    expect(await resumed).toBe(2)
    await rig.clock.advance(12_000)
    expect([command(), upToDate()]).toEqual([[...good, '-v'], undefined])
    expect(record()).toMatchObject({ active: 2, offered: 2 })
  })

  it('has what failed tried again', async () => {
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    rig.fake.script('main', { kind: 'runs' })
    const resumed = rig.system.gate.resume('file', unit)
    await rig.settle()
    await resumed
    await rig.clock.advance(15_000)
    expect(record()).toMatchObject({ base: 2, active: 2, revisions: [{}, { verdict: 'healthy' }] })
  })

  it('does not have what the source gives meanwhile overwritten', async () => {
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(12_000)
    const read = Promise.withResolvers<undefined>()
    const written = Promise.withResolvers<undefined>()
    rig.revisions.beforeRead = () => read.promise
    const first = rig.system.gate.rollBack('file', unit, 1)
    await rig.apply(web([...good, '-w']))
    read.resolve(undefined)
    await rig.settle()
    expect(await first).toBe(1)
    expect(record()).toMatchObject({ offered: 3, active: 1, pin: { why: 'requested' } })
    const resumed = rig.system.gate.resume('file', unit)
    await rig.settle()
    await resumed
    rig.revisions.beforeSave = () => written.promise
    const second = rig.system.gate.rollBack('file', unit, 2)
    await rig.settle()
    await rig.apply(web([...good, '-x']))
    written.resolve(undefined)
    await rig.settle()
    expect(await second).toBe(4)
    await rig.clock.advance(15_000)
    expect(command()).toEqual([...good, '-x'])
    expect(record()).toMatchObject({ offered: 4, active: 4, latest: 4 })
    expect(record()?.pin).toBeUndefined()
  })

  it('goes back on a full disk too, and that is written once it has room', async () => {
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(12_000)
    rig.revisions.failure = new Error('ENOSPC')
    const back = rig.system.gate.rollBack('file', unit, undefined)
    await rig.settle()
    expect(await back).toBe(1)
    await rig.clock.advance(12_000)
    expect([command(), record()?.active]).toEqual([good, 2])
    rig.revisions.failure = undefined
    await rig.clock.advance(120_000)
    expect(record()).toMatchObject({ active: 1, offered: 2, pin: { why: 'requested' } })
  })

  it('is told what can’t be gone back to', async () => {
    await expect(rig.system.gate.rollBack('file', unit, 7)).rejects.toThrow(
      '/file/web.yaml: revision 7 is not kept; there are 1',
    )
    await expect(rig.system.gate.rollBack('file', '/file/none.yaml', 1)).rejects.toThrow('there is no unit')
  })
})

describe('a podd that has crashed again and again', () => {
  const restart = async (): Promise<void> => {
    await rig.kill()
    rig.boot()
    rig.system.gate.distrustNew(120_000)
  }
  const offer = async (change: object = {}): Promise<void> => {
    rig.system.offerSnapshot({ ...rig.snapshot('file'), ...change })
    await rig.clock.advance(15_000)
  }
  const pinned = {
    active: 1,
    pin: { why: 'crashed' },
    revisions: [{}, { failure: { reason: 'PoddCrashed' } }],
  }

  it('does not try again what it was not known to be healthy', async () => {
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(1000)
    await restart()
    await offer()
    expect(command()).toEqual(good)
    expect(record()).toMatchObject(pinned)
  })

  it('tries what its source gives first after the last crash', async () => {
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(1000)
    await rig.kill()
    await rig.apply(web([...good, '-w']))
    rig.boot()
    rig.system.gate.distrustNew(120_000)
    await offer()
    expect(command()).toEqual([...good, '-w'])
    expect(record()).toMatchObject({ active: 3, offered: 3, base: 3 })
  })

  it('tries a revision that is seen first after it has run for long enough', async () => {
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(1000)
    await restart()
    await rig.clock.advance(121_000)
    await offer()
    expect(record()).toMatchObject({ active: 2, base: 2 })
  })

  it('takes a set that runs in place of a source for no revision, and does not try what it crashed on when the source is followed again', async () => {
    const given = rig.snapshot('file').pods
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(1000)
    await restart()
    await offer({ pods: given, standsIn: 'crashed', isAnswer: false })
    expect(command()).toEqual(good)
    expect(record()).toMatchObject({ ...pinned, offered: 2, latest: 2 })
    await rig.clock.advance(500_000)
    await offer()
    expect(command()).toEqual(good)
    expect(record()).toMatchObject({ ...pinned, offered: 2, latest: 2 })
  })
})

describe('a revision on the disk that can’t be read now', () => {
  const fail = (): Promise<void> => Promise.reject(new Error('EIO'))
  const succeed = (): Promise<void> => Promise.resolve()

  it('is gone back to later, when it can be', async () => {
    await rig.kill()
    await rig.apply(web(bad))
    rig.revisions.beforeRead = fail
    await rig.start()
    await rig.clock.advance(45_000)
    expect(record()).toMatchObject({ active: 2, revisions: [{}, { verdict: 'failed' }] })
    rig.revisions.beforeRead = succeed
    await rig.clock.advance(60_000)
    expect(command()).toEqual(good)
    expect(record()).toMatchObject({ active: 1, pin: { why: 'failed' } })
  })

  it('is gone back to at once where it is in memory, and so it is on request', async () => {
    rig.revisions.beforeRead = fail
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    expect(command()).toEqual(good)
    expect(record()).toMatchObject({ offered: 2, active: 1, pin: { why: 'failed' } })
    const resumed = rig.system.gate.resume('file', unit)
    await rig.settle()
    expect(await resumed).toBe(2)
    const back = rig.system.gate.rollBack('file', unit, undefined)
    await rig.settle()
    expect(await back).toBe(1)
  })

  it('is gone back to where it could never be written, as the disk was full', async () => {
    await begin()
    rig.revisions.failure = new Error('ENOSPC')
    await rig.apply(web(good))
    await rig.clock.advance(12_000)
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    expect([record(), command()]).toEqual([undefined, good])
  })

  it('is gone back to at once by the next podd that may', async () => {
    await begin({ settings: { updateRollback: false } })
    await rig.apply(web(good))
    await rig.clock.advance(12_000)
    await rig.apply(web(bad))
    await rig.clock.advance(60_000)
    expect(record()).toMatchObject({ active: 2, revisions: [{}, { verdict: 'failed' }] })
    await rig.kill()
    rig.settings = {}
    await rig.start()
    await rig.clock.advance(2000)
    expect(command()).toEqual(good)
    expect(record()).toMatchObject({ active: 1, pin: { why: 'failed' } })
  })

  it('leaves the pods as they are where it is active, and counts again when it can be read', async () => {
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    const starts = rig.fake.calls('StartContainer').length
    await rig.kill()
    rig.revisions.beforeRead = fail
    await rig.start()
    await rig.clock.advance(20_000)
    expect([rig.running(), command()]).toEqual([['web/main'], good])
    rig.revisions.beforeRead = succeed
    await rig.clock.advance(60_000)
    expect(rig.fake.calls('StartContainer')).toHaveLength(starts)
    expect([rig.running(), command()]).toEqual([['web/main'], good])
    expect(record()).toMatchObject({ active: 1, offered: 2, pin: { why: 'failed' } })
    expect(upToDate()).toMatchObject({ reason: 'RolledBack' })
  })

  it('leaves the pods as they are also where a client scales the workload whose template failed', async () => {
    await begin({ sources: ['api'] })
    const offer = async (program: readonly string[], replicas: number): Promise<void> => {
      const labels = { app: 'web' }
      const manifest: JsonObject = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: {
          name: 'web',
          namespace: 'default',
          uid: 'u-web',
          annotations: { 'podd.dev/rollback': 'true' },
        },
        spec: {
          replicas,
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: 'main', image: 'app:1', command: [...program] }] },
          },
        },
      }
      const { document } = decodeKept(manifest, '/api/deployment.default.web.json')
      if (document === undefined || !isObjectDocument(document)) throw new Error('it is no Deployment')
      rig.givenByUrl = [document]
      await rig.offer('api')
    }
    const commands = () =>
      rig.fake
        .containersNamed('main')
        .flatMap(({ state, config }) => (state === 'CONTAINER_RUNNING' ? [config.command] : []))
    const name = 'api:Deployment/default/web'
    const rolledBack = { active: 1, offered: 2, pin: { why: 'failed' } }
    await offer(good, 1)
    await rig.clock.advance(30_000)
    await offer(bad, 1)
    await rig.clock.advance(60_000)
    expect([record(name), commands()]).toMatchObject([rolledBack, [good]])
    const created = rig.fake.calls('CreateContainer').length
    await rig.kill()
    rig.revisions.beforeRead = fail
    await rig.start()
    await rig.clock.advance(5000)
    await offer(bad, 2)
    await rig.clock.advance(20_000)
    expect(commands()).toEqual([good])
    expect(rig.fake.calls('CreateContainer')).toHaveLength(created)
    rig.revisions.beforeRead = succeed
    await rig.clock.advance(120_000)
    expect([record(name), commands()]).toMatchObject([rolledBack, [good, good]])
  })

  it('leaves the pods as they are also where the file is written otherwise and means the same', async () => {
    const offer = async (written: string): Promise<void> => {
      const { pods, ...given } = rig.snapshot('file')
      rig.system.offerSnapshot({ ...given, pods: pods.map((each) => Object.assign({}, each, { written })) })
      await rig.clock.advance(20_000)
    }
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    await rig.kill()
    rig.revisions.beforeRead = fail
    rig.boot()
    await offer('one')
    const starts = rig.fake.calls('StartContainer').length
    await offer('# a comment')
    expect([rig.running(), command()]).toEqual([['web/main'], good])
    rig.revisions.beforeRead = succeed
    await rig.clock.advance(120_000)
    expect(record()).toMatchObject({ active: 1, offered: 2, pin: { why: 'failed' } })
    expect(command()).toEqual(good)
    expect(rig.fake.calls('StartContainer')).toHaveLength(starts)
  })
})

describe('a source that gives a content again that is not tried any more', () => {
  it('has the healthy revision run, though another content was being tried', async () => {
    for (const other of ['-v', '-w']) {
      await rig.apply(web(bad))
      await rig.clock.advance(60_000)
      expect(command()).toEqual(good)
      await rig.apply(web([...bad, other]))
      await rig.clock.advance(60_000)
    }
    await rig.apply(web(['nothing', '-x']))
    await rig.clock.advance(100)
    await rig.apply(web(bad))
    await rig.clock.advance(60_000)
    expect(record()).toMatchObject({ active: 1, base: 1, pin: { why: 'failed' } })
    expect(command()).toEqual(good)
  })
})

describe('a unit that its source has not given since podd started', () => {
  it('is listed as it was, also while the last set that worked runs in place of the source', async () => {
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    await rig.kill()
    rig.boot()
    await rig.settle()
    const listed = [
      { record: { unit, offered: 2, active: 1 }, message: expect.stringContaining('revision 2 failed') },
    ]
    expect(rig.system.gate.units()).toMatchObject(listed)
    rig.system.offerSnapshot({ ...rig.snapshot('file'), standsIn: 'crashed', isAnswer: false })
    await rig.settle()
    expect(rig.system.gate.units()).toMatchObject(listed)
    await expect(rig.system.gate.resume('file', unit)).rejects.toThrow(
      'its source has not been followed since podd started',
    )
    await rig.offer()
    await rig.clock.advance(1000)
    expect(rig.system.gate.units()).toMatchObject(listed)
  })
})

describe('a unit that its source no longer gives', () => {
  it('has no revisions any more, and begins anew when it is given again', async () => {
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.revisions.saved.size).toBe(0)
    await rig.apply(web(bad))
    await rig.clock.advance(60_000)
    expect(rig.system.gate.units()).toMatchObject([{ record: { active: 1 } }])
  })

  it('leaves no record behind where the first one of it, and of another, is about to be written', async () => {
    const saving = Promise.withResolvers<void>()
    rig.revisions.beforeSave = () => saving.promise
    for (const name of ['first', 'second'])
      await rig.apply(
        podManifest(name, { containers: [{ name: 'main', image: 'app:1', command: ['httpd'] }] }),
      )
    await rig.clock.advance(12_000)
    for (const name of ['first', 'second']) await rig.remove(name)
    saving.resolve()
    await rig.clock.advance(5000)
    expect([...rig.revisions.saved.keys()]).toEqual([unit])
  })

  it('is not tried again with what failed, when it is given again, over restarts of podd', async () => {
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual([])
    await rig.kill()
    await rig.start()
    await rig.offer()
    await rig.apply(web(bad))
    await rig.clock.advance(15_000)
    expect([rig.running(), command()]).toEqual([['web/main'], good])
    expect(record()).toMatchObject({ offered: 2, active: 1, pin: { why: 'failed' } })
    expect(record()?.goneAtMs).toBeUndefined()
    await rig.remove('web')
    await rig.clock.advance(5000)
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(15_000)
    expect(command()).toEqual([...good, '-v'])
    expect(record()).toMatchObject({ offered: 1, active: 1, base: 1 })
  })

  it('is tried with what failed when a week has passed', async () => {
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    await rig.remove('web')
    await rig.clock.advance(5000)
    expect(rig.revisions.saved.size).toBe(1)
    rig.clock.setWall(rig.clock.wallMs() + 7 * 24 * 3_600_000)
    await rig.offer()
    await rig.settle()
    expect(rig.revisions.saved.size).toBe(0)
    await rig.apply(web(bad))
    await rig.clock.advance(15_000)
    expect(rig.system.gate.units()).toMatchObject([{ record: { active: 1, offered: 1 } }])
  })
})

describe('a file that is renamed', () => {
  const rename = (path: string, program: readonly string[]): void => {
    const manifest = web(program)
    const document = { pod: podFromManifest(manifest), manifest, place: { path } }
    rig.system.offerSnapshot({ ...rig.snapshot('file'), pods: [document] })
  }

  it.each(['while podd runs', 'while podd does not run'])(
    'keeps its revisions, so that what failed is not tried again: %s',
    async (when) => {
      await rig.apply(web(bad))
      await rig.clock.advance(45_000)
      const [before, starts] = [uid(), rig.fake.calls('StartContainer').length]
      if (when !== 'while podd runs') {
        await rig.kill()
        rig.boot()
      }
      rename('/file/site.yaml', bad)
      await rig.clock.advance(60_000)
      expect([uid(), rig.fake.calls('StartContainer').length]).toEqual([before, starts])
      expect([...rig.revisions.saved.keys()]).toEqual(['/file/site.yaml'])
      expect(record('/file/site.yaml')).toMatchObject({ offered: 2, active: 1, pin: { why: 'failed' } })
      expect(rig.system.problems()).toMatchObject([{ place: { path: '/file/site.yaml' } }])
      expect(rig.pod('web').metadata.annotations?.['podd.dev/path']).toBe('/file/site.yaml')
      await rig.kill()
      rig.boot()
      rename('/file/site.yaml', bad)
      await rig.clock.advance(60_000)
      expect([uid(), rig.fake.calls('StartContainer').length]).toEqual([before, starts])
      rename('/file/site.yaml', [...good, '-v'])
      await rig.clock.advance(15_000)
      expect(record('/file/site.yaml')).toMatchObject({ offered: 3, base: 3 })
    },
  )

  it('goes back to what was healthy by its earlier name', async () => {
    rename('/file/site.yaml', good)
    await rig.clock.advance(1000)
    rename('/file/site.yaml', bad)
    await rig.clock.advance(45_000)
    expect(command()).toEqual(good)
    expect(record('/file/site.yaml')).toMatchObject({ offered: 2, active: 1 })
  })

  it('starts over where its revisions can’t be written by the new name', async () => {
    rig.revisions.failure = new Error('ENOSPC')
    rename('/file/site.yaml', good)
    await rig.clock.advance(15_000)
    expect(rig.system.gate.units()).toMatchObject([{ record: { unit: '/file/site.yaml', base: 1 } }])
    expect(rig.running()).toEqual(['web/main'])
  })
})

describe('a revision with an image that is mounted as a volume', () => {
  it('is gone back to with that image too, which is pulled where it is not there any more', async () => {
    await begin()
    const volumes = [{ name: 'data', image: { reference: 'side:1' } }]
    const mounts = { volumeMounts: [{ name: 'data', mountPath: '/data' }] }
    const pod = (program: readonly string[]): JsonObject =>
      podManifest('web', {
        containers: [{ name: 'main', image: 'app:1', command: program, ...mounts }],
        volumes,
      })
    await rig.apply(pod(good))
    await rig.clock.advance(12_000)
    const side = rig.fake.world.findImage('side:1')
    rig.fake.addRemoteImage('side:1')
    await rig.apply(pod(bad))
    await rig.clock.advance(5000)
    rig.fake.world.images.delete(side?.id ?? '')
    await rig.clock.advance(45_000)
    expect(command()).toEqual(good)
    expect(rig.fake.world.findImage('side:1')).toBeDefined()
  })
})

describe('a revision that is gone back to', () => {
  const fromRegistry = { imagePullPolicy: 'Always' }
  const name = 'docker.io/library/app:1'

  beforeEach(async () => {
    await begin({ settings: { updateCrashes: 1 } })
    rig.fake.addRemoteImage('app:1')
    await rig.apply(web(good, fromRegistry))
    await rig.clock.advance(12_000)
  })

  it('runs although its image is to be pulled always and the registry is away', async () => {
    await rig.apply(web(bad, fromRegistry))
    await rig.clock.advance(50)
    rig.fake.fault('PullImage', { kind: 'hangs' }, { times: Infinity })
    await rig.clock.advance(5000)
    expect([rig.running(), command()]).toEqual([['web/main'], good])
    expect(record()).toMatchObject({ active: 1, pin: { why: 'failed' } })
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(20_000)
    expect(rig.running()).toEqual(['web/main'])
  })

  it.each([
    ['hangs', { kind: 'hangs' }],
    ['can’t be asked', { kind: 'fails', grpcCode: 14, message: 'dial tcp: no route to host' }],
  ] as const)(
    'runs after the deadline where the failed one crashed, and its restart waits for a registry that %s',
    async (_what, fault) => {
      await begin()
      rig.fake.addRemoteImage('app:1')
      await rig.apply(web(good, fromRegistry))
      await rig.clock.advance(12_000)
      await rig.apply(web(bad, fromRegistry))
      await rig.clock.advance(50)
      rig.fake.fault('PullImage', fault, { times: Infinity })
      await rig.clock.advance(560_000)
      expect(command()).toEqual([])
      await rig.clock.advance(50_000)
      expect([rig.running(), command()]).toEqual([['web/main'], good])
    },
  )

  it('runs the image that it ran, also where the name means another one by now', async () => {
    const { images } = rig.fake.world
    const ran = [...images.values()].find(({ tags }) => tags.includes(name))
    if (ran === undefined) throw new Error('the image is missing')
    rig.fake.script('main', ({ config }) =>
      config.image?.image === ran.id ? { kind: 'runs' } : { kind: 'exits', exitCode: 1, afterMs: 100 },
    )
    images.set(ran.id, { ...ran, tags: [] })
    rig.fake.settings.registry.set(name, { ...ran, id: 'sha256:other' })
    await rig.apply(web([...good, '-v'], fromRegistry))
    await rig.clock.advance(60_000)
    expect(record()).toMatchObject({ active: 1, pin: { why: 'failed' } })
    expect([rig.running(), command()]).toEqual([['web/main'], good])
    expect(rig.container('web').imageID).toBe(ran.id)
    await rig.kill()
    await rig.start()
    rig.fake.exitContainer('main', 1)
    await rig.clock.advance(20_000)
    expect([rig.running(), rig.container('web').imageID]).toEqual([['web/main'], ran.id])
  })

  it('keeps the image that it ran from being removed while the next one is judged', async () => {
    await rig.apply(web([...good, '-v']))
    await rig.clock.advance(1000)
    expect(rig.system.gate.imagesToGoBackTo()).toEqual([
      { image: expect.stringMatching(/^sha256:/u), by: 'pod default/web' },
    ])
  })
})

describe('a pod that was written over the API', () => {
  const name = 'api:default/web'
  const unitNow = () => rig.system.gate.units().find(({ record: { unit: each } }) => each === name)
  const image = (tag: string, annotations: JsonObject = {}): JsonObject =>
    podManifest('web', { containers: [{ name: 'main', image: `app:${tag}` }] }, { annotations })

  beforeEach(async () => {
    await begin({ sources: ['api'] })
  })

  it('has a history, and runs what was written although it fails, without a word about that', async () => {
    await rig.put('api', image('1'))
    await rig.clock.advance(15_000)
    expect(unitNow()?.record).toMatchObject({ source: 'api', base: 1, revisions: [{ verdict: 'healthy' }] })
    expect(rig.revisions.saved.size).toBe(0)
    await rig.put('api', image('2'))
    await rig.clock.advance(60_000)
    expect(unitNow()?.record).toMatchObject({ active: 2, base: 1, revisions: [{}, { verdict: 'failed' }] })
    expect(rig.container('web').image).toBe('app:2')
    expect([rig.system.problems(), upToDate()]).toEqual([[], undefined])
    await rig.kill()
    await rig.start()
    await rig.clock.advance(5000)
    expect(unitNow()?.record).toMatchObject({ active: 2, base: 1, latest: 2 })
    await rig.put('api', image('1'))
    await rig.clock.advance(30_000)
    expect(unitNow()?.record).toMatchObject({ active: 3, base: 3 })
    await rig.remove('web', 'api')
    await rig.clock.advance(5000)
    expect([unitNow(), rig.revisions.saved.size]).toEqual([undefined, 0])
  })

  it('goes back where its annotation asks for it, as the same object, until something else is written', async () => {
    const asked = { 'podd.dev/rollback': 'true' }
    await rig.put('api', image('1', asked))
    await rig.clock.advance(15_000)
    const before = uid()
    await rig.put('api', image('2', asked))
    await rig.clock.advance(60_000)
    expect([uid(), rig.container('web').image, rig.running()]).toEqual([before, 'app:1', ['web/main']])
    expect(unitNow()?.record).toMatchObject({ offered: 2, active: 1, pin: { why: 'failed' } })
    expect(upToDate()).toMatchObject({ reason: 'RolledBack' })
    await rig.kill()
    await rig.start()
    await rig.clock.advance(30_000)
    expect([uid(), rig.container('web').image]).toEqual([before, 'app:1'])
    rig.fake.script('main', { kind: 'runs' })
    await rig.put('api', image('2', { ...asked, try: 'again' }))
    await rig.clock.advance(30_000)
    expect([uid(), rig.container('web').image, upToDate()]).toEqual([before, 'app:2', undefined])
  })

  it('goes back on request', async () => {
    await rig.put('api', image('1'))
    await rig.clock.advance(15_000)
    await rig.put('api', image('2'))
    await rig.clock.advance(60_000)
    const back = rig.system.gate.rollBack('api', name, undefined)
    await rig.settle()
    expect(await back).toBe(1)
    await rig.clock.advance(15_000)
    expect(rig.container('web').image).toBe('app:1')
    expect(upToDate()).toMatchObject({ reason: 'RollbackRequested' })
  })

  it('leaves what else was written over the API as it is', async () => {
    const manifest = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'conf', namespace: 'default' },
      data: { value: 'one' },
    }
    const object = { object: objectFromManifest(manifest), manifest, place: { path: '/api/conf.json' } }
    await rig.put('api', image('1'))
    rig.system.offerSnapshot({ ...rig.snapshot('api'), objects: [object] })
    await rig.clock.advance(15_000)
    expect(rig.system.gate.units()).toHaveLength(1)
    expect(rig.objects.seenBy('api').get('ConfigMap', 'default', 'conf')).toBeDefined()
  })
})

describe('an unchanged file of which a later podd understands more', () => {
  /** As if podd had dropped this field of the file before. */
  const offerAs = async (manifest: JsonObject, written: string): Promise<void> => {
    const given = rig.snapshot('file')
    const pods = [{ pod: podFromManifest(manifest), manifest, written, place: { path: unit } }]
    rig.system.offerSnapshot({ ...given, pods })
    await rig.clock.advance(15_000)
  }
  const more = { securityContext: { privileged: false } }

  beforeEach(async () => {
    await offerAs(web([...good, '-v']), 'first')
  })

  it('is no new revision, and what failed of it is not tried again', async () => {
    await offerAs(web(bad), 'second')
    await rig.clock.advance(30_000)
    const failed = { latest: 3, offered: 3, active: 2, pin: { why: 'failed' } }
    expect(record()).toMatchObject(failed)
    const starts = rig.fake.calls('StartContainer').length
    for (const each of [web(bad), web(bad, more), web(bad, more)]) {
      await rig.kill()
      rig.boot()
      await offerAs(each, 'second')
      expect(record()).toMatchObject(failed)
    }
    expect(rig.fake.calls('StartContainer')).toHaveLength(starts)
    expect(command()).toEqual([...good, '-v'])
  })

  it('is the revision that counts again when the file is put back', async () => {
    await offerAs(web(bad), 'second')
    await rig.clock.advance(30_000)
    await rig.kill()
    rig.boot()
    await offerAs(web([...good, '-v'], more), 'first')
    expect(record()).toMatchObject({ latest: 3, offered: 2, active: 2, base: 2 })
    expect(rig.system.problems()).toEqual([])
  })

  it('keeps its mark where it failed and is not rolled back', async () => {
    await rig.kill()
    rig.settings = { updateRollback: false }
    rig.boot()
    await offerAs(web([...good, '-v']), 'first')
    await offerAs(web(bad), 'second')
    await rig.clock.advance(30_000)
    const failed = { latest: 3, active: 3, revisions: [{}, {}, { verdict: 'failed' }] }
    expect(record()).toMatchObject(failed)
    await rig.kill()
    rig.boot()
    await offerAs(web(bad, more), 'second')
    expect(record()).toMatchObject(failed)
  })
})

describe('the records of a podd that did not note how contents were written', () => {
  const directory = 'test/fixtures/revisions/v1'
  const texts = (name: string, program: string): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, creationTimestamp: null}
spec:
  containers:
  - {name: main, image: "app:1", command: [${program}], stdin: false}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: ${name}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: ${name}}, data: {key: value}}
`
  const names = ['failed', 'kept', 'requested']

  it('hold what was rolled back, what failed and what somebody asked for, and nothing restarts', async () => {
    const store = createRevisionStore(directory, { persistSecrets: true, most: 10, report: () => {} })
    const before = await store.load()
    expect(before.map(({ unit: path }) => path).toSorted()).toEqual(names.map((name) => `/file/${name}.yaml`))
    rig = new PodRig()
    behave(rig)
    for (const known of before) {
      const contents = new Map<string, readonly SourceDocument[]>()
      for (const { hash } of known.revisions)
        contents.set(hash, (await store.contents(known, [hash])).get(hash)?.documents ?? [])
      rig.revisions.saved.set(known.unit, { record: known, contents })
    }
    const decoded = await Promise.all(
      names.map((name) => decodeDocuments(texts(name, 'httpdd'), { path: `/file/${name}.yaml` })),
    )
    const documents = decoded.flatMap((each) => each.documents)
    const offer = async (): Promise<void> => {
      rig.system.offerSnapshot({ ...rig.snapshot('file'), ...groupDocuments(documents) })
      await rig.clock.advance(30_000)
    }
    const summary = () =>
      names.map((name) => {
        const { offered, active, latest, pin, revisions } =
          rig.revisions.saved.get(`/file/${name}.yaml`)?.record ?? {}
        return { offered, active, latest, why: pin?.why, verdicts: revisions?.map(({ verdict }) => verdict) }
      })
    const kept = [
      { offered: 2, active: 1, latest: 2, why: 'failed', verdicts: ['healthy', 'failed'] },
      { offered: 2, active: 2, latest: 2, why: undefined, verdicts: ['healthy', 'failed'] },
      { offered: 2, active: 1, latest: 2, why: 'requested', verdicts: ['healthy', 'healthy'] },
    ]
    rig.settings = { updateRollback: false }
    rig.boot()
    await offer()
    expect(summary()).toEqual(kept)
    expect(record('/file/failed.yaml')?.revisions.map(({ written }) => typeof written)).toEqual([
      'undefined',
      'string',
    ])
    const starts = rig.fake.calls('StartContainer').length
    await rig.kill()
    rig.boot()
    await offer()
    expect(summary()).toEqual(kept)
    expect(rig.running().filter((each) => each !== 'kept/main')).toEqual(['failed/main', 'requested/main'])
    expect(starts).toBeGreaterThan(0)
  })
})

describe('the records of a podd whose revisions of a workload over the API were all of it', () => {
  const directory = 'test/fixtures/revisions/v1-workloads'
  const names = ['failed', 'kept', 'requested']
  /** What each gave last, as clients wrote it. */
  const given: Readonly<Record<string, { readonly command: string; readonly replicas: number }>> = {
    failed: { command: 'httpdd', replicas: 2 },
    kept: { command: 'httpdd', replicas: 1 },
    requested: { command: 'httpd-2', replicas: 1 },
  }
  const deployment = (name: string, replicas = given[name]?.replicas ?? 1): ObjectDocument => {
    const labels = { app: name }
    const container = { name: 'main', image: 'app:1', command: [given[name]?.command ?? ''], stdin: false }
    const annotations = name === 'failed' ? { 'podd.dev/rollback': 'true' } : {}
    const manifest: JsonObject = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'default', uid: `u-${name}`, annotations },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: { metadata: { labels, creationTimestamp: null }, spec: { containers: [container] } },
      },
    }
    const { document } = decodeKept(manifest, `/api/deployment.default.${name}.json`)
    if (document === undefined || !isObjectDocument(document)) throw new Error('it is no Deployment')
    return document
  }
  const summary = () =>
    names.map((name) => {
      const unitNow = rig.system.gate
        .units()
        .find(({ record: { unit: each } }) => each === `api:Deployment/default/${name}`)
      const { offered, active, latest, pin, revisions } = unitNow?.record ?? {}
      return [offered, active, latest, pin?.why, revisions?.map(({ verdict }) => verdict).join(' ')]
    })
  const kept = [
    [3, 2, 3, 'failed', 'healthy healthy failed'],
    [2, 2, 2, undefined, 'healthy failed'],
    [2, 1, 2, 'requested', 'healthy healthy'],
  ]

  it('hold what they say, and go on to, when such a workload is scaled', async () => {
    const store = createRevisionStore(directory, { persistSecrets: true, most: 10, report: () => {} })
    rig = new PodRig({ sources: ['api'] })
    behave(rig)
    for (const known of await store.load()) {
      const contents = new Map<string, readonly SourceDocument[]>()
      for (const { hash } of known.revisions)
        contents.set(hash, (await store.contents(known, [hash])).get(hash)?.documents ?? [])
      rig.revisions.saved.set(known.unit, { record: known, contents })
    }
    const offer = async (documents: readonly ObjectDocument[]): Promise<void> => {
      rig.givenByUrl = documents
      await rig.offer('api')
      await rig.clock.advance(60_000)
    }
    const running = (): readonly string[] => rig.running().filter((each) => !each.startsWith('kept'))
    rig.boot()
    await offer(names.map((name) => deployment(name)))
    expect(summary()).toEqual(kept)
    expect(running()).toEqual(['failed-0/main', 'failed-1/main', 'requested-0/main'])
    await offer(names.map((name) => deployment(name, 3)))
    expect(summary()).toEqual(kept)
    expect(running()).toHaveLength(6)
    await rig.kill()
    rig.boot()
    await offer(names.map((name) => deployment(name, 3)))
    expect(summary()).toEqual(kept)
  })
})

describe('a URL whose answer has to be signed and gives no pods', () => {
  it('is trusted and healthy, and what it gives is resumed on request', async () => {
    const key = makeSigner().publicKey
    const signedBy = parseSigningKey(key)?.id
    rig = new PodRig({ sources: ['http:fleet'] })
    behave(rig)
    const common = { periodMs: undefined, substitute: false, imagePolicy: { requireDigest: false } }
    const request = { url: 'https://fleet.example/', allowHttp: false, headers: {}, headerFiles: {} }
    const files = { caFile: undefined, certFile: undefined, keyFile: undefined }
    rig.settings = {
      sources: [
        {
          kind: 'http',
          name: 'fleet',
          ...common,
          ...request,
          ...files,
          push: 'Off',
          verify: { keys: [key] },
        },
      ],
    }
    rig.boot()
    const offer = async (...manifests: readonly JsonObject[]): Promise<void> => {
      const pods = manifests.map((manifest) => ({
        pod: podFromManifest(manifest),
        manifest,
        written: JSON.stringify(manifest),
        signedBy,
        place: { path: '/http' },
      }))
      rig.system.offerSnapshot({ ...rig.snapshot('http:fleet'), pods })
      await rig.clock.advance(15_000)
    }
    await offer(web(good))
    await offer()
    expect(rig.system.gate.units()).toMatchObject([
      {
        state: 'Healthy',
        message: undefined,
        record: { active: 2, revisions: [{}, { verdict: 'healthy' }] },
      },
    ])
    expect(rig.system.problems()).toEqual([])
    const back = rig.system.gate.rollBack('http:fleet', 'http:fleet', 1)
    await rig.settle()
    expect(await back).toBe(1)
    const resumed = rig.system.gate.resume('http:fleet', 'http:fleet')
    await rig.settle()
    expect(await resumed).toBe(2)
  })
})

describe('the key that has signed the last healthy revision', () => {
  const [old, next] = [makeSigner().publicKey, makeSigner().publicKey]
  const trust = (keys: readonly string[]): void => {
    const source = { kind: 'file', name: 'fleet', path: '/file', recursive: false } as const
    const common = { periodMs: undefined, substitute: false, imagePolicy: { requireDigest: false } }
    rig.settings = { sources: [{ ...source, ...common, verify: { keys } }] }
  }
  const offerSigned = async (manifest: JsonObject, key: string): Promise<void> => {
    const signedBy = parseSigningKey(key)?.id
    const written = JSON.stringify(manifest)
    const pods = [{ pod: podFromManifest(manifest), manifest, written, signedBy, place: { path: unit } }]
    rig.system.offerSnapshot({ ...rig.snapshot('file:fleet'), pods })
    await rig.clock.advance(45_000)
  }

  beforeEach(async () => {
    rig = new PodRig({ sources: ['file:fleet'] })
    behave(rig)
    trust([old, next])
    rig.boot()
    await offerSigned(web(good), old)
    expect(record()).toMatchObject({ base: 1 })
    await rig.kill()
  })

  it('has a failed one stay where it was revoked, and going back on request refused', async () => {
    trust([next])
    rig.boot()
    await offerSigned(web(bad), next)
    expect(record()).toMatchObject({ active: 2, revisions: [{}, { verdict: 'failed' }] })
    expect(command()).toEqual([])
    expect(rig.system.problems().map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /revision 2 failed, and stays: revision 1 is signed by key \w+, which its source no longer trusts/u,
      ),
    ])
    await expect(rig.system.gate.rollBack('file:fleet', unit, 1)).rejects.toMatchObject({
      code: 'UPDATE_REFUSED',
      message: expect.stringContaining('revision 1 is signed by key'),
    })
  })

  it('is named while the revision that was gone back to runs on, also after it was revoked', async () => {
    rig.boot()
    await offerSigned(web(bad), next)
    expect(record()).toMatchObject({ offered: 2, active: 1, pin: { why: 'failed' } })
    const before = uid()
    await rig.kill()
    trust([next])
    rig.boot()
    await offerSigned(web(bad), next)
    expect([uid(), command(), record()]).toMatchObject([before, good, { offered: 2, active: 1 }])
    const why =
      /revision 1 counts again: .*; revision 1 is signed by key \w+, which its source no longer trusts/u
    expect(rig.system.problems().map(({ message }) => message)).toEqual([expect.stringMatching(why)])
    expect(rig.system.gate.units()).toMatchObject([
      { state: 'RolledBack', message: expect.stringMatching(why) },
    ])
    await offerSigned(web([...good, '-v']), next)
    expect([command(), rig.system.problems()]).toEqual([[...good, '-v'], []])
  })

  it('is named while the last good copy runs on, and a revision without a known one is not gone back to', async () => {
    trust([next])
    rig.boot()
    await offerSigned(web(good), old)
    expect(rig.system.problems()).toMatchObject([
      {
        severity: 'warning',
        message: expect.stringContaining('it runs on until its source gives something else'),
      },
    ])
    const saved = rig.revisions.saved.get(unit)
    if (saved === undefined) throw new Error('it is not kept')
    await rig.kill()
    // As a podd kept it that did not note who has signed.
    const revisions = saved.record.revisions.map(({ signedBy: _signedBy, ...each }) => each)
    rig.revisions.saved.set(unit, { ...saved, record: { ...saved.record, revisions } })
    rig.boot()
    await offerSigned(web(bad), next)
    expect(record()).toMatchObject({ offered: 2, active: 2, revisions: [{}, { verdict: 'failed' }] })
    await expect(rig.system.gate.rollBack('file:fleet', unit, 1)).rejects.toMatchObject({
      message: expect.stringContaining(
        'revision 1 is not known to be signed by a key that its source trusts',
      ),
    })
  })

  it('may be revoked once the revision is signed by another one, which is gone back to then', async () => {
    rig.boot()
    await offerSigned(web(good), next)
    await rig.kill()
    trust([next])
    rig.boot()
    await offerSigned(web(bad), next)
    expect(record()).toMatchObject({ active: 1, pin: { why: 'failed' } })
    expect(command()).toEqual(good)
  })
})

describe('a unit whose source gives something else than what counts', () => {
  const why = async (change: Partial<SourceSnapshot>): Promise<readonly [string, string | undefined]> => {
    rig.system.offerSnapshot({ ...rig.snapshot('file'), ...change })
    await rig.settle()
    const { state = '', message } = rig.system.gate.units()[0] ?? {}
    return [state, message]
  }

  it('is listed as what it is, and why: it is held, podd crashed on it, or it is invalid', async () => {
    expect(await why({})).toEqual(['Healthy', undefined])
    expect(await why({ standsIn: 'held' })).toEqual(['Held', expect.stringContaining('its source is held')])
    expect(await why({ standsIn: 'crashed' })).toEqual([
      'Held',
      expect.stringContaining('podd crashed again and again'),
    ])
    const invalid = errorAt(unit, 'spec.containers: Required value')
    expect(await why({ problems: [invalid, errorAt(unit, 'another')] })).toEqual([
      'Invalid',
      expect.stringContaining('the last good form counts: spec.containers: Required value'),
    ])
    expect(await why({ problems: [errorAt('/file/other.yaml', 'Required value')] })).toEqual([
      'Healthy',
      undefined,
    ])
  })

  it('is listed as rolled back where it was, also while its source is held or invalid', async () => {
    await rig.apply(web(bad))
    await rig.clock.advance(45_000)
    for (const change of [{ standsIn: 'held' as const }, { problems: [errorAt(unit, 'Required value')] }])
      expect(await why(change)).toEqual([
        'RolledBack',
        expect.stringContaining('revision 2 failed, and revision 1 counts again'),
      ])
  })
})
