import { describe, expect, it } from 'vitest'
import type { UnitObject } from '../../../src/api/sources.ts'
import { formatCpu, computeChartShape } from '../../../src/page/chart-shape.ts'
import type { ChartFacts } from '../../../src/page/chart-shape.ts'
import { explainTrouble } from '../../../src/api/pod-summary.ts'
import {
  findTroubles,
  lastLineKey,
  newestEvents,
  openUnits,
  sortPods,
  readLines,
  WatchedObjects,
  podLink,
  readPodLink,
} from '../../../src/page/page-state.ts'
import { containerStatus, eventObject, podObject, terminated } from '../../support/pod-objects.ts'

describe('readLines', () => {
  it.each([1, 2, 3, 5, 100])('joins lines that come in pieces of %i bytes', async (size) => {
    const bytes = Buffer.from('één\n\nzwei\n{"three":"drei"}\nrest')
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.subarray(at, at + size))
        controller.close()
      },
    })
    const lines: string[] = []
    for await (const batch of readLines(stream)) lines.push(...batch)
    expect(lines).toEqual(['één', '', 'zwei', '{"three":"drei"}', 'rest'])
  })

  it('fails with the stream', async () => {
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => controller.error(new Error('gone')),
    })
    await expect(readLines(stream).next()).rejects.toThrow('gone')
  })
})

describe('WatchedObjects', () => {
  const end = podObject({ metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } })
  const names = (objects: WatchedObjects<ReturnType<typeof podObject>>): readonly string[] =>
    objects.list().map(({ metadata }) => metadata.name)

  it('shows a list once it is whole, and each change after it', () => {
    const objects = new WatchedObjects<ReturnType<typeof podObject>>()
    objects.begin()
    expect(objects.take({ type: 'ADDED', object: podObject({ name: 'a' }) })).toBe(false)
    expect(names(objects)).toEqual([])
    expect(objects.take({ type: 'BOOKMARK', object: end })).toBe(true)
    expect(objects.take({ type: 'ADDED', object: podObject({ name: 'b' }) })).toBe(true)
    expect(names(objects)).toEqual(['a', 'b'])
    expect(objects.take({ type: 'BOOKMARK', object: podObject() })).toBe(false)
    objects.take({ type: 'DELETED', object: podObject({ name: 'a' }) })
    expect(names(objects)).toEqual(['b'])
  })

  it('shows what was there until the next list is whole', () => {
    const objects = new WatchedObjects<ReturnType<typeof podObject>>()
    objects.begin()
    objects.take({ type: 'ADDED', object: podObject({ name: 'old' }) })
    objects.take({ type: 'BOOKMARK', object: end })
    objects.begin()
    objects.take({ type: 'ADDED', object: podObject({ name: 'new' }) })
    expect(names(objects)).toEqual(['old'])
    objects.take({ type: 'BOOKMARK', object: end })
    expect(names(objects)).toEqual(['new'])
  })
})

describe('computeChartShape', () => {
  const facts: ChartFacts = {
    times: [0, 50, 100],
    values: [0, 5, 10],
    fromMs: 0,
    untilMs: 100,
    top: undefined,
  }

  it('draws from the bottom left to the top right', () => {
    expect(computeChartShape(facts, 100, 40)).toEqual({
      line: 'M0 40L50 20L100 0',
      area: 'M0 40L50 20L100 0L100 40L0 40Z',
      top: 10,
      last: 10,
      most: 10,
    })
  })

  it.each<[string, Partial<ChartFacts>, string]>([
    ['leaves a gap where a figure is missing', { values: [1, null, 1] }, 'M0 0M100 0'],
    ['leaves out what is before the left edge', { values: [9, 5, 10], fromMs: 50 }, 'M0 20L100 0'],
    ['goes by the capacity where there is one', { top: 20 }, 'M0 40L50 30L100 20'],
    ['never leaves its field', { top: 5 }, 'M0 40L50 0L100 0'],
    ['draws nothing of nothing', { values: [] }, ''],
    ['draws figures that are all zero at the bottom', { values: [0, 0, 0] }, 'M0 40L50 40L100 40'],
  ])('%s', (_, change, line) => {
    expect(computeChartShape({ ...facts, ...change }, 100, 40).line).toBe(line)
  })
})

it.each([
  [0, '0m'],
  [0.44, '0.4m'],
  [12.6, '13m'],
  [999, '999m'],
  [1500, '1.50'],
])('formatCpu(%d) is %s', (millis, text) => expect(formatCpu(millis)).toBe(text))

it.each([
  ['default', 'web'],
  ['a/b', 'c d%'],
])('finds the pod %s/%s of a link again', (namespace, name) => {
  expect(readPodLink(podLink(namespace, name))).toEqual({ namespace, name })
})

it.each(['', '#', '#pod/x', '#pod/%zz/a', '#main'])('takes %j for no pod', (hash) => {
  expect(readPodLink(hash)).toBeUndefined()
})

it('sorts pods by namespace and name, the broken ones first, the newer of two of a name last, and events by their time', () => {
  const older = podObject({ name: 'b', uid: '1' })
  const newer = podObject({ name: 'b', uid: '2', metadata: { creationTimestamp: '2026-01-02T00:00:00Z' } })
  const sorted = sortPods(
    [
      newer,
      podObject({ name: 'a', namespace: 'z' }),
      older,
      podObject({ name: 'a' }),
      podObject({ name: 'x' }),
    ],
    new Set(['uid-x']),
  )
  expect(sorted.map(({ metadata }) => metadata.uid)).toEqual(['uid-x', 'uid-a', '1', '2', 'uid-a'])
  const events = ['2026-01-01T00:00:00Z', '2026-01-03T00:00:00Z', '2026-01-02T00:00:00Z'].map(
    (lastTimestamp) => eventObject(lastTimestamp, { lastTimestamp }),
  )
  expect(newestEvents(events, 2).map(({ lastTimestamp }) => lastTimestamp)).toEqual([
    '2026-01-03T00:00:00Z',
    '2026-01-02T00:00:00Z',
  ])
})

describe('findTroubles', () => {
  const broken = (name: string, exitCode: number) =>
    podObject({
      name,
      status: {
        conditions: [{ type: 'Ready', status: 'False' }],
        containerStatuses: [
          containerStatus('main', {
            ready: false,
            restartCount: 3,
            state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s' } },
            lastState: terminated(exitCode),
          }),
        ],
      },
    })
  const unready = podObject({
    name: 'unready',
    status: {
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: [containerStatus('main', { ready: false })],
    },
  })
  const failure = (uid: string) =>
    eventObject(`unhealthy-${uid}`, {
      type: 'Warning',
      reason: 'Unhealthy',
      message: 'Readiness probe failed: 503',
      involvedObject: { kind: 'Pod', namespace: 'default', name: 'any', uid },
    })
  const find = (pods: Parameters<typeof findTroubles>[0]['pods'], uids: readonly string[] = []) =>
    [...findTroubles({ pods, events: uids.map(failure), lastLines: new Map() })].map(([uid, { why }]) => [
      uid,
      why,
    ])

  it('has the reason of each broken pod, and nothing of those that work', () => {
    expect(find([podObject(), broken('a', 1)])).toEqual([['uid-a', 'main: exit code 1']])
  })

  it('has the probe that failed of a pod that is killed or not ready, and no pod that only just started', () => {
    expect(find([broken('a', 137), unready], ['uid-a', 'uid-unready'])).toEqual([
      ['uid-a', 'main: exit code 137: Readiness probe failed: 503'],
      ['uid-unready', 'main: not ready: Readiness probe failed: 503'],
    ])
    expect(find([unready])).toEqual([])
  })

  it('has the last line of the log of the run that ended, and of no other run', () => {
    const pod = broken('a', 1)
    const fact = explainTrouble(pod)
    const key = (fact && lastLineKey(pod, fact)) ?? ''
    const lastLine = (lines: ReadonlyMap<string, string>) =>
      findTroubles({ pods: [pod], events: [], lastLines: lines }).get('uid-a')?.lastLine
    expect(lastLine(new Map([[key, 'no such file']]))).toBe('no such file')
    expect(lastLine(new Map([[key.replace('3', '2'), 'of before']]))).toBeUndefined()
  })
})

describe('openUnits', () => {
  const unit = (name: string, state: UnitObject['status']['state'], message?: string): UnitObject => ({
    apiVersion: 'podd.dev/v1',
    kind: 'Unit',
    metadata: { name },
    spec: { source: 'file' },
    status: { state, active: 1, offered: 2, message, progressing: ['default/web'], revisions: [] },
  })

  it('has a line for each unit whose newest revision is not healthy, with its reason and what to do', () => {
    const open = openUnits([
      unit('/pods/good.yaml', 'Healthy'),
      unit('/pods/new.yaml', 'Progressing'),
      unit('/pods/asked.yaml', 'RollbackRequested', 'revision 1 counts on request'),
      unit('/pods/bad.yaml', 'Failed', 'revision 1 failed'),
      unit('/pods/held.yaml', 'Held', 'its source is held'),
      unit('/pods/invalid.yaml', 'Invalid', 'not all of it is valid'),
      unit('/pods/unread.yaml', 'Unread', 'its source has not been followed since podd started'),
      unit('/pods/web.yaml', 'RolledBack', 'revision 2 failed, and revision 1 counts again'),
    ])
    expect(open.map(({ name, state }) => [name, state])).toEqual([
      ['/pods/web.yaml', 'RolledBack'],
      ['/pods/bad.yaml', 'Failed'],
      ['/pods/invalid.yaml', 'Invalid'],
      ['/pods/asked.yaml', 'RollbackRequested'],
      ['/pods/held.yaml', 'Held'],
      ['/pods/unread.yaml', 'Unread'],
      ['/pods/new.yaml', 'Progressing'],
    ])
    expect(open[0]).toEqual({
      name: '/pods/web.yaml',
      state: 'RolledBack',
      active: '1',
      offered: '2',
      message:
        'revision 2 failed, and revision 1 counts again - `podd history /pods/web.yaml` shows the last log lines. Correct it, or try it again: `podd resume /pods/web.yaml`.',
    })
    expect(open.slice(1).map(({ message }) => message)).toEqual([
      'revision 1 failed - `podd history /pods/bad.yaml` shows the last log lines. Correct it.',
      'not all of it is valid - Correct it.',
      'revision 1 counts on request - `podd resume /pods/asked.yaml` has what its source gives count again.',
      'its source is held',
      'its source has not been followed since podd started',
      'waits for default/web',
    ])
  })
})
