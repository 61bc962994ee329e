import { describe, expect, it } from 'vitest'
import {
  changedContainers,
  countCrashes,
  explainUnready,
  isMaybeTask,
  judgeUnit,
  mayRollBack,
  judgesPods,
  trackPod,
} from '../../../../src/decide/updates/health-gate.ts'
import type {
  GateSettings,
  JudgedPod,
  PodSight,
  PodTrack,
  SeenSight,
  SeenTrack,
} from '../../../../src/decide/updates/health-gate.ts'
import { objectFromManifest } from '../../../../src/pod/objects/local-object.ts'
import { isPodDocument } from '../../../../src/pod/objects/document.ts'
import type { SourceDocument } from '../../../../src/pod/objects/document.ts'
import { podFromManifest } from '../../../../src/pod/schema/default-pod.ts'
import type { ContainerStatus, PodStatus } from '../../../../src/pod/state/status.ts'

const settings: GateSettings = { minReadyMs: 10_000, crashes: 3, progressDeadlineMs: 600_000 }
const seen = (change: Partial<SeenSight> = {}): SeenSight => ({
  kind: 'seen',
  uid: 'u',
  state: 'starting',
  crashes: {},
  isNew: true,
  message: 'container main is not ready',
  ...change,
})

/** What follows from sights at these times, of one pod. */
function judge(sights: readonly (readonly [atMs: number, sight: PodSight])[]) {
  let track: PodTrack | undefined
  for (const [atMs, sight] of sights) track = trackPod(track, sight, settings, atMs)
  if (track === undefined) throw new Error('nothing was seen')
  return judgeUnit([{ pod: 'default/web', track }], settings, sights.at(-1)?.[0] ?? 0)
}

const failed = (reason: string, message: RegExp) => ({
  kind: 'failed',
  failures: [{ pod: 'default/web', reason, message: expect.stringMatching(message) }],
})
const ready = seen({ state: 'ready' })

describe('a changed pod', () => {
  it.each([
    ['that is Ready', [[0, ready]], { kind: 'progressing', wakeAtMs: 10_000 }],
    [
      'that is Ready for long enough',
      [
        [0, ready],
        [10_000, ready],
      ],
      { kind: 'healthy' },
    ],
    [
      'that was not Ready in between',
      [
        [0, ready],
        [9000, seen()],
        [9500, ready],
        [12_000, ready],
      ],
      { kind: 'progressing', wakeAtMs: 19_500 },
    ],
    [
      'that crashed in between without being seen unready',
      [
        [0, ready],
        [9000, seen({ state: 'ready', crashes: { main: 1 } })],
        [12_000, seen({ state: 'ready', crashes: { main: 1 } })],
      ],
      { kind: 'progressing', wakeAtMs: 19_000 },
    ],
    ['that has completed', [[0, seen({ state: 'completed' })]], { kind: 'healthy' }],
    ['whose old version runs', [[0, { kind: 'waiting' }]], { kind: 'progressing', wakeAtMs: undefined }],
    [
      'that starts',
      [
        [5, seen()],
        [700, seen()],
      ],
      { kind: 'progressing', wakeAtMs: 600_005 },
    ],
    [
      'that has not crashed often enough',
      [
        [0, seen()],
        [10, seen({ crashes: { main: 2 } })],
      ],
      { kind: 'progressing', wakeAtMs: 600_000 },
    ],
    [
      'that has crashed',
      [
        [0, seen()],
        [10, seen({ crashes: { main: 3 } })],
      ],
      failed('CrashLoopBackOff', /^pod default\/web has crashed 3 times: container main is not ready$/u),
    ],
    [
      'that has crashed before its change in place',
      [
        [0, seen({ isNew: false, crashes: { main: 7 } })],
        [10, seen({ isNew: false, crashes: { main: 9 } })],
      ],
      { kind: 'progressing', wakeAtMs: 600_000 },
    ],
    [
      'that has crashed since its change in place',
      [
        [0, seen({ isNew: false, crashes: { main: 7 } })],
        [10, seen({ isNew: false, crashes: { main: 10 } })],
      ],
      failed('CrashLoopBackOff', /crashed 3 times/u),
    ],
    [
      'that crashes again and again, Ready for a moment each time',
      [
        [0, ready],
        [5, seen({ crashes: { main: 1 } })],
        [10, seen({ state: 'ready', crashes: { main: 1 } })],
        [15, seen({ crashes: { main: 3 } })],
      ],
      failed('CrashLoopBackOff', /crashed 3 times/u),
    ],
    [
      'that was Ready for long enough before it crashed',
      [
        [0, ready],
        [10_000, ready],
        [11_000, seen({ crashes: { main: 2 } })],
      ],
      { kind: 'progressing', wakeAtMs: undefined },
    ],
    [
      'that crashed before it was Ready for long enough, and once since',
      [
        [0, seen({ crashes: { main: 2 } })],
        [100, seen({ state: 'ready', crashes: { main: 2 } })],
        [10_100, seen({ state: 'ready', crashes: { main: 2 } })],
        [11_000, seen({ crashes: { main: 3 } })],
      ],
      { kind: 'progressing', wakeAtMs: undefined },
    ],
    [
      'that crashed before it was Ready, though not for long enough, and once since',
      [
        [0, seen({ crashes: { main: 2 } })],
        [6000, seen({ state: 'ready', crashes: { main: 2 } })],
        [9000, seen({ state: 'ready', crashes: { main: 2 } })],
        [9500, seen({ crashes: { main: 3 } })],
      ],
      failed('CrashLoopBackOff', /crashed 3 times/u),
    ],
    [
      'that is restarted for its change in place, and has not crashed often enough since',
      [
        [0, seen({ isNew: false, crashes: { main: 7 }, expectedRestarts: 1 })],
        [10, seen({ isNew: false, crashes: { main: 10 }, expectedRestarts: 1 })],
      ],
      { kind: 'progressing', wakeAtMs: 600_000 },
    ],
    [
      'that was replaced meanwhile',
      [
        [0, seen({ crashes: { main: 2 } })],
        [100, seen({ uid: 'other', crashes: { main: 2 }, isNew: false })],
      ],
      { kind: 'progressing', wakeAtMs: 600_100 },
    ],
    [
      'that is not Ready at the deadline',
      [
        [0, seen()],
        [600_000, seen()],
      ],
      failed('ProgressDeadlineExceeded', /is not Ready 600 s after its change/u),
    ],
    [
      'that is Ready at the deadline',
      [
        [0, seen()],
        [599_000, ready],
        [600_000, ready],
      ],
      { kind: 'progressing', wakeAtMs: 609_000 },
    ],
    [
      'that waited in between',
      [
        [0, seen()],
        [1000, { kind: 'waiting' }],
        [2000, seen()],
        [600_000, seen()],
      ],
      { kind: 'progressing', wakeAtMs: 602_000 },
    ],
    [
      'whose version in between runs well, and cannot be replaced yet',
      [
        [0, seen({ state: 'ready', isBetween: true })],
        [60_000, seen({ state: 'ready', isBetween: true })],
      ],
      { kind: 'progressing', wakeAtMs: undefined },
    ],
    [
      'whose version in between has completed',
      [[0, seen({ state: 'completed', isBetween: true })]],
      { kind: 'progressing', wakeAtMs: undefined },
    ],
    [
      'whose version in between crashes, and cannot be replaced yet',
      [[0, seen({ crashes: { main: 3 }, isBetween: true })]],
      { kind: 'progressing', wakeAtMs: 600_000 },
    ],
    [
      'whose version in between has failed, and cannot be replaced by the deadline',
      [
        [0, seen({ state: 'failed', isBetween: true })],
        [600_000, seen({ state: 'failed', isBetween: true })],
      ],
      failed('ProgressDeadlineExceeded', /not Ready/u),
    ],
    [
      'that is not Ready for a moment long after it was available',
      [
        [0, ready],
        [10_000, ready],
        [3_600_000, seen()],
      ],
      { kind: 'progressing', wakeAtMs: undefined },
    ],
    [
      'that was available, and crashes again and again later',
      [
        [0, ready],
        [10_000, ready],
        [3_600_000, seen({ crashes: { main: 3 } })],
      ],
      failed('CrashLoopBackOff', /crashed 3 times/u),
    ],
    [
      'whose containers have each crashed once',
      [[0, seen({ crashes: { main: 1, side: 1, third: 1 } })]],
      { kind: 'progressing', wakeAtMs: 600_000 },
    ],
    [
      'whose containers are each restarted with the change',
      [
        [0, seen({ isNew: false, crashes: { main: 1, side: 4 }, expectedRestarts: 1 })],
        [10, seen({ isNew: false, crashes: { main: 4, side: 5 }, expectedRestarts: 1 })],
      ],
      { kind: 'progressing', wakeAtMs: 600_000 },
    ],
    [
      'with a deadline of its own',
      [
        [0, seen({ progressDeadlineMs: 50 })],
        [50, seen({ progressDeadlineMs: 50 })],
      ],
      failed('ProgressDeadlineExceeded', /not Ready/u),
    ],
    [
      'that has failed for good',
      [[0, seen({ state: 'failed', message: 'evil' })]],
      failed('PodFailed', /has failed: evil$/u),
    ],
    [
      'whose startup probe has failed',
      [[0, seen({ failedStartup: 'main' })]],
      failed('StartupProbeFailed', /startup probe of container main of pod default\/web/u),
    ],
  ] as const)('%s', (_what, sights, verdict) => {
    expect(judge(sights)).toEqual(verdict)
  })
})

const held = (by: 'former' | 'host') => ({ kind: 'held', by, message: 'too little memory' }) as const
const pulling = seen({ isPulling: true, crashes: { main: 0, side: 0 }, message: 'pulling image "app:1"' })
const late = (pod: string, by: 'former' | 'host'): JudgedPod => ({
  pod,
  track: { kind: 'held', sight: held(by), sinceMs: 0 },
})

describe('a changed pod that is not in effect', () => {
  const told = (what: string) => `pod default/web ${what} 600 s after its change: too little memory`
  it.each([
    [
      'that the host does not let run, until its deadline',
      [
        [0, held('host')],
        [599_000, held('host')],
      ],
      { kind: 'progressing', wakeAtMs: 600_000 },
    ],
    [
      'that the host does not let run, at its deadline',
      [
        [0, held('host')],
        [600_000, held('host')],
      ],
      { kind: 'held', rest: 'none', failures: [{ message: told('may not run') }] },
    ],
    [
      'whose former version runs, at its deadline',
      [
        [0, held('former')],
        [600_000, held('former')],
      ],
      { kind: 'held', rest: 'open', failures: [{ message: told('is not replaced') }] },
    ],
    [
      'whose image is being pulled, at its deadline',
      [
        [0, pulling],
        [600_000, pulling],
      ],
      { kind: 'held', rest: 'none', failures: [{ reason: 'ProgressDeadlineExceeded' }] },
    ],
    [
      'whose image was pulled, until its deadline without the pull',
      [
        [0, pulling],
        [500_000, seen()],
        [1_099_000, seen()],
      ],
      { kind: 'progressing', wakeAtMs: 1_100_000 },
    ],
    [
      'whose image was pulled, at its deadline without the pull',
      [
        [0, pulling],
        [500_000, seen()],
        [1_100_000, seen()],
      ],
      { kind: 'failed', failures: [{ reason: 'ProgressDeadlineExceeded' }] },
    ],
    [
      'whose image was pulled some time after it was seen first, until its deadline without the pull',
      [
        [1000, seen()],
        [2000, pulling],
        [502_000, seen()],
        [1_100_000, seen()],
      ],
      { kind: 'progressing', wakeAtMs: 1_101_000 },
    ],
    [
      'whose container has crashed and pulls its image again, at its deadline all the same',
      [
        [0, seen({ crashes: { main: 0, side: 0 } })],
        [1000, { ...pulling, crashes: { main: 1, side: 0 } }],
        [600_000, { ...pulling, crashes: { main: 1, side: 0 } }],
      ],
      { kind: 'failed', failures: [{ reason: 'ProgressDeadlineExceeded' }] },
    ],
    [
      'that crashes while another image of it is being pulled',
      [
        [0, pulling],
        [1000, { ...pulling, crashes: { main: 3 } }],
      ],
      { kind: 'failed', failures: [{ reason: 'CrashLoopBackOff' }] },
    ],
    [
      'that may run after all',
      [
        [0, held('host')],
        [600_000, seen()],
      ],
      { kind: 'progressing', wakeAtMs: 1_200_000 },
    ],
  ] as const)('%s', (_what, sights, verdict) => {
    expect(judge(sights)).toMatchObject(verdict)
  })
})

describe('a unit of several pods', () => {
  const pod = (name: string, sight: SeenSight, change: Partial<SeenTrack> = {}): JudgedPod => ({
    pod: name,
    track: { kind: 'seen', sight, sinceMs: 0, wasAvailable: false, pastCrashes: {}, ...change },
  })
  const readySince = (name: string, readySinceMs: number) => pod(name, ready, { readySinceMs })

  it('is healthy only when all of them are at the same time', () => {
    const one = readySince('a', 0)
    expect(judgeUnit([one, readySince('b', 8000)], settings, 12_000)).toEqual({
      kind: 'progressing',
      wakeAtMs: 18_000,
    })
    expect(judgeUnit([one, { pod: 'b', track: { kind: 'waiting' } }], settings, 12_000)).toEqual({
      kind: 'progressing',
      wakeAtMs: undefined,
    })
    expect(judgeUnit([one, readySince('b', 8000)], settings, 18_000)).toEqual({ kind: 'healthy' })
  })

  it('is looked at again as soon as time alone may change how one of them is', () => {
    const starting = pod('a', seen())
    expect(judgeUnit([starting, readySince('b', 8000)], settings, 12_000)).toEqual({
      kind: 'progressing',
      wakeAtMs: 18_000,
    })
  })

  it('fails with the first of them that fails, and names each', () => {
    const bad = pod('b', seen({ state: 'failed' }))
    expect(judgeUnit([readySince('a', 0), bad, { ...bad, pod: 'c' }], settings, 12_000)).toMatchObject({
      kind: 'failed',
      failures: [{ pod: 'b' }, { pod: 'c' }],
    })
  })

  it('may count for its healthy pods where the host does not let the others run, and not where a former version runs', () => {
    const rest = (by: 'former' | 'host', sinceMs: number) =>
      judgeUnit([readySince('a', sinceMs), late('b', by)], settings, 600_000)
    expect(rest('host', 0)).toMatchObject({ kind: 'held', rest: 'may-count' })
    expect(rest('host', 595_000)).toMatchObject({ kind: 'held', rest: 'open', wakeAtMs: 605_000 })
    expect(rest('former', 0)).toMatchObject({ kind: 'held', rest: 'open' })
  })

  it('counts for no healthy pods while another one starts, or where a former version runs beside them', () => {
    const starting = pod('c', seen(), { sinceMs: 599_000 })
    const by = (...pods: readonly JudgedPod[]) =>
      judgeUnit([readySince('a', 0), late('b', 'host'), ...pods], settings, 600_000)
    expect(by(starting)).toMatchObject({ kind: 'held', rest: 'open' })
    expect(by(late('d', 'former'))).toMatchObject({ kind: 'held', rest: 'open' })
    expect(by(late('d', 'host'))).toMatchObject({ kind: 'held', rest: 'may-count' })
    expect(judgeUnit([late('b', 'host')], settings, 600_000)).toMatchObject({ kind: 'held', rest: 'none' })
  })

  it('fails by the pods that fail by what they run, whatever others wait for', () => {
    const bad = pod('b', seen({ state: 'failed' }))
    const verdict = judgeUnit([late('a', 'host'), bad], settings, 600_000)
    expect(verdict).toMatchObject({ kind: 'failed', failures: [{ pod: 'b' }] })
  })

  it('of which none changed is healthy at once', () => {
    expect(judgeUnit([], settings, 0)).toEqual({ kind: 'healthy' })
  })
})

describe('the judged pods', () => {
  const pod = (name: string, image = 'app:1', spec: object = {}): SourceDocument => {
    const manifest = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { containers: [{ name: 'main', image, ...spec }] },
    }
    return { pod: podFromManifest(manifest), manifest, place: { path: '/m' } }
  }
  const config = (value: string): SourceDocument => {
    const manifest = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'conf', namespace: 'default' },
      data: { value },
    }
    return { object: objectFromManifest(manifest), manifest, place: { path: '/m' } }
  }
  const user = pod('user', 'app:1', { envFrom: [{ configMapRef: { name: 'conf' } }] })

  it.each([
    ['all of a first revision', undefined, [pod('a'), pod('b')], ['a', 'b']],
    ['those that changed', [pod('a'), pod('b')], [pod('a'), pod('b', 'app:2')], ['b']],
    ['those that are new', [pod('a')], [pod('a'), pod('b')], ['b']],
    [
      'those that refer to what changed',
      [pod('a'), user, config('1')],
      [pod('a'), user, config('2')],
      ['user'],
    ],
    ['those that refer to what is gone', [user, config('1')], [user], ['user']],
    [
      'not those that refer to what is as it was',
      [pod('a'), user, config('1')],
      [pod('a', 'app:2'), user, config('1')],
      ['a'],
    ],
    ['none, where pods only go', [pod('a'), pod('b')], [pod('a')], []],
  ])('are %s', (_what, before, after, names) => {
    const judged = after.filter((each) => isPodDocument(each)).filter(judgesPods(before, after))
    expect(judged.map((document) => document.pod.metadata.name)).toEqual(names)
  })
})

describe('crashes', () => {
  const status = (change: Partial<ContainerStatus>): ContainerStatus => ({
    name: 'main',
    state: {},
    lastState: {},
    ready: false,
    restartCount: 0,
    image: 'i',
    imageID: 'i',
    ...change,
  })
  const pod = (containers: Partial<PodStatus>): PodStatus => ({
    phase: 'Running',
    conditions: [],
    qosClass: 'BestEffort',
    ...containers,
  })
  const ended = (exitCode: number) => ({ terminated: { exitCode } })
  const main = (change: Partial<ContainerStatus>): PodStatus => pod({ containerStatuses: [status(change)] })

  it.each([
    ['before a start', main({ state: { waiting: { reason: 'ContainerCreating' } } }), { main: 0 }],
    [
      'of a container that runs',
      main({ state: { running: {} }, lastState: ended(1), restartCount: 2 }),
      { main: 2 },
    ],
    [
      'of one that waits for its next start',
      main({ state: { waiting: {} }, lastState: ended(1), restartCount: 2 }),
      { main: 3 },
    ],
    ['of one that has ended', main({ state: ended(1), restartCount: 2 }), { main: 3 }],
    ['of a main container that ended well', main({ state: ended(0) }), { main: 1 }],
    [
      'of an init container that ended well',
      pod({ initContainerStatuses: [status({ state: ended(0) })] }),
      { main: 0 },
    ],
    [
      'of an init container that did not',
      pod({ initContainerStatuses: [status({ state: ended(2) })] }),
      { main: 1 },
    ],
    [
      'of a sidecar',
      pod({ initContainerStatuses: [status({ name: 'side', state: ended(0) })] }),
      { side: 1 },
    ],
    [
      'of a container that is not asked about',
      pod({ containerStatuses: [status({ name: 'other', state: ended(1) })] }),
      {},
    ],
  ])('%s', (_what, given, count) => {
    const restartsAlways = (name: string, isInit: boolean) => !isInit || name === 'side'
    const isCounted = (name: string) => name !== 'other'
    expect(countCrashes(given, { isCounted, restartsAlways })).toEqual(count)
  })

  it('are none of containers that end well and are not to run on', () => {
    expect(countCrashes(main({ state: ended(0) }), { restartsAlways: () => false })).toEqual({ main: 0 })
    expect(countCrashes(main({ state: ended(1) }), { restartsAlways: () => false })).toEqual({ main: 1 })
  })

  it.each([
    [
      main({
        state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off' } },
        lastState: { terminated: { exitCode: 127, reason: 'StartError', message: 'no httpdd\nmore' } },
      }),
      'container main CrashLoopBackOff, exit code 127 (StartError), no httpdd',
    ],
    [main({ state: { running: {} } }), 'container main is not ready'],
    [
      pod({
        initContainerStatuses: [status({ name: 'done', state: ended(0) })],
        containerStatuses: [status({ name: 'well', ready: true, state: { running: {} } }), status({})],
      }),
      'container main is not ready',
    ],
    [pod({ message: 'too much of the disk' }), 'too much of the disk'],
  ])('are explained by what containers say', (given, text) => {
    expect(explainUnready(given)).toBe(text)
  })
})

describe('what a pod says of its updates', () => {
  const pod = (images: Readonly<Record<string, string>>, more: object = {}, annotations: object = {}) => {
    const containers = Object.entries(images).map(([name, image]) => ({ name, image }))
    const manifest = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a', annotations: { ...annotations } },
      spec: { containers, ...more },
    }
    return { pod: podFromManifest(manifest), manifest, place: { path: '/m' } }
  }

  it('is that it is rolled back unless its annotation says no', () => {
    const by = (value?: string) =>
      mayRollBack(pod({ a: 'a:1' }, {}, value === undefined ? {} : { 'podd.dev/rollback': value }))
    expect([by(), by('true'), by('false')]).toEqual([true, true, false])
  })

  it('is that it may be a task where it does not always run again', () => {
    const by = (restartPolicy: string) => isMaybeTask(pod({ a: 'a:1' }, { restartPolicy }))
    expect([by('Always'), by('OnFailure'), by('Never')]).toEqual([false, true, true])
  })

  it.each([
    ['all where there was none before', undefined, ['a', 'b']],
    ['all where none differs', pod({ a: 'a:1', b: 'b:1' }), ['a', 'b']],
    ['those that differ', pod({ a: 'a:1', b: 'b:0' }), ['b']],
    ['those that are new', pod({ a: 'a:1' }), ['b']],
  ])('is which of its containers count: %s', (_what, earlier, names) => {
    expect([...changedContainers(pod({ a: 'a:1', b: 'b:1' }), earlier)]).toEqual(names)
  })
})
