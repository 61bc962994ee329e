import { describe, expect, it } from 'vitest'
import { pickTellingLine, readTellingLine, summarizePod } from '../../../src/api/pod-summary.ts'
import type { PodObjectChanges } from '../../support/pod-objects.ts'
import { containerStatus, podObject, terminated } from '../../support/pod-objects.ts'

const waiting = (name: string, reason: string) =>
  containerStatus(name, { state: { waiting: { reason } }, ready: false })
const ended = (name: string, exitCode: number, reason?: string) =>
  containerStatus(name, { state: terminated(exitCode, reason), ready: false })
const two = { containers: [{ name: 'a' }, { name: 'b' }] }
const withInit = { containers: [{ name: 'a' }], initContainers: [{ name: 'i1' }, { name: 'i2' }] }
const withSidecar = { containers: [{ name: 'a' }], initContainers: [{ name: 's', restartPolicy: 'Always' }] }
const notInitialized = [{ type: 'Initialized', status: 'False' as const }]

/** The cases of kubectl's own table (kubernetes `pkg/printers/internalversion/printers_test.go`, TestPrintPod…). */
describe('summarizePod', () => {
  it.each<[what: string, pod: PodObjectChanges, ready: string, status: string, restarts: number]>([
    ['a running pod', {}, '1/1', 'Running', 0],
    ['a pod not looked at yet', { status: { phase: 'Pending', containerStatuses: [] } }, '0/1', 'Pending', 0],
    [
      'one that is being created',
      { status: { phase: 'Pending', containerStatuses: [waiting('main', 'ContainerCreating')] } },
      '0/1',
      'ContainerCreating',
      0,
    ],
    [
      'one that a drain has ended',
      {
        status: {
          phase: 'Failed',
          reason: 'Terminated',
          conditions: [{ type: 'DisruptionTarget', status: 'True' }],
          containerStatuses: [ended('main', 137)],
        },
      },
      '0/1',
      'Terminated',
      0,
    ],
    [
      'a crash loop',
      { status: { containerStatuses: [{ ...waiting('main', 'CrashLoopBackOff'), restartCount: 7 }] } },
      '0/1',
      'CrashLoopBackOff',
      7,
    ],
    [
      'a finished pod',
      { status: { phase: 'Succeeded', containerStatuses: [ended('main', 0)] } },
      '0/1',
      'Completed',
      0,
    ],
    [
      'a failed one',
      { status: { phase: 'Failed', containerStatuses: [ended('main', 1)] } },
      '0/1',
      'Error',
      0,
    ],
    [
      'an end without a reason',
      { status: { containerStatuses: [ended('main', 3, '')] } },
      '0/1',
      'ExitCode:3',
      0,
    ],
    [
      'an end by a signal',
      {
        status: {
          containerStatuses: [
            containerStatus('main', { state: { terminated: { exitCode: 137, signal: 9 } } }),
          ],
        },
      },
      '0/1',
      'Signal:9',
      0,
    ],
    [
      'a refused pod',
      { status: { phase: 'Failed', reason: 'OutOfpods', containerStatuses: [] } },
      '0/1',
      'OutOfpods',
      0,
    ],
    [
      'a pod that is kept from running',
      {
        spec: withInit,
        status: {
          phase: 'Pending',
          reason: 'PodSecurity',
          conditions: notInitialized,
          initContainerStatuses: [waiting('i1', 'PodInitializing'), waiting('i2', 'PodInitializing')],
          containerStatuses: [waiting('a', 'PodInitializing')],
        },
      },
      '0/1',
      'PodSecurity',
      0,
    ],
    [
      'a pod whose deadline came before its container',
      {
        status: {
          phase: 'Failed',
          reason: 'DeadlineExceeded',
          containerStatuses: [
            containerStatus('main', {
              state: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } },
            }),
          ],
        },
      },
      '0/1',
      'DeadlineExceeded',
      0,
    ],
    [
      'the same behind init containers that are done, and beside a container that is',
      {
        spec: withInit,
        status: {
          phase: 'Failed',
          reason: 'DeadlineExceeded',
          initContainerStatuses: [ended('i1', 0), ended('i2', 0)],
          containerStatuses: [
            containerStatus('a', {
              state: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } },
            }),
            ended('b', 0),
          ],
        },
      },
      '0/1',
      'DeadlineExceeded',
      0,
    ],
    [
      'a pod whose deadline came while it was initialized',
      {
        spec: withInit,
        status: {
          phase: 'Failed',
          reason: 'DeadlineExceeded',
          conditions: notInitialized,
          initContainerStatuses: [ended('i1', 0), waiting('i2', 'PodInitializing')],
          containerStatuses: [waiting('a', 'PodInitializing')],
        },
      },
      '0/1',
      'DeadlineExceeded',
      0,
    ],
    [
      'a pod that waits for an image, and for more',
      {
        status: { phase: 'Pending', reason: 'FailedSync', containerStatuses: [waiting('a', 'ErrImagePull')] },
      },
      '0/1',
      'ErrImagePull',
      0,
    ],
    [
      "the first container's word of two",
      { spec: two, status: { containerStatuses: [waiting('a', 'ImagePullBackOff'), ended('b', 1)] } },
      '0/2',
      'ImagePullBackOff',
      0,
    ],
    [
      'one that has completed beside one that runs',
      { spec: two, status: { containerStatuses: [ended('a', 0), containerStatus('b')] } },
      '1/2',
      'Running',
      0,
    ],
    [
      'the same without readiness',
      {
        spec: two,
        status: {
          conditions: [{ type: 'Ready', status: 'False' }],
          containerStatuses: [ended('a', 0), containerStatus('b')],
        },
      },
      '1/2',
      'NotReady',
      0,
    ],
    [
      'init containers in progress',
      {
        spec: withInit,
        status: {
          phase: 'Pending',
          conditions: notInitialized,
          initContainerStatuses: [ended('i1', 0), containerStatus('i2', { ready: false })],
          containerStatuses: [waiting('a', 'PodInitializing')],
        },
      },
      '0/1',
      'Init:1/2',
      0,
    ],
    [
      'an init container that crashes',
      {
        spec: withInit,
        status: {
          phase: 'Pending',
          conditions: notInitialized,
          initContainerStatuses: [
            { ...waiting('i1', 'CrashLoopBackOff'), restartCount: 3 },
            waiting('i2', 'PodInitializing'),
          ],
        },
      },
      '0/1',
      'Init:CrashLoopBackOff',
      3,
    ],
    [
      'one that has failed',
      {
        spec: withInit,
        status: { phase: 'Failed', conditions: notInitialized, initContainerStatuses: [ended('i1', 2, '')] },
      },
      '0/1',
      'Init:ExitCode:2',
      0,
    ],
    [
      'a sidecar that is up before the others',
      {
        spec: withSidecar,
        status: {
          phase: 'Pending',
          conditions: notInitialized,
          initContainerStatuses: [containerStatus('s', { started: true })],
          containerStatuses: [waiting('a', 'PodInitializing')],
        },
      },
      '1/2',
      'PodInitializing',
      0,
    ],
    [
      "a sidecar's restarts with the others'",
      {
        spec: withSidecar,
        status: {
          initContainerStatuses: [containerStatus('s', { started: true, restartCount: 2 })],
          containerStatuses: [containerStatus('a', { restartCount: 1 })],
        },
      },
      '2/2',
      'Running',
      3,
    ],
    [
      'one that is ending',
      { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } },
      '1/1',
      'Terminating',
      0,
    ],
    [
      'one that has ended and goes',
      {
        metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
        status: { phase: 'Failed', containerStatuses: [ended('main', 1)] },
      },
      '0/1',
      'Error',
      0,
    ],
  ])('shows %s', (_, pod, ready, status, restarts) => {
    const summary = summarizePod(podObject(pod))
    expect(`${summary.ready}/${summary.total}`).toBe(ready)
    expect(summary).toMatchObject({ status, restarts })
  })

  it('knows when the last restart was, and of none where none was', () => {
    const lastState = { terminated: { exitCode: 1, finishedAt: '2026-01-01T00:00:05Z' } }
    const restarted = podObject({
      status: { containerStatuses: [containerStatus('main', { restartCount: 1, lastState })] },
    })
    expect(summarizePod(restarted).lastRestartMs).toBe(Date.parse('2026-01-01T00:00:05Z'))
    expect(summarizePod(podObject()).lastRestartMs).toBeUndefined()
  })
})

describe('the telling one of the last lines of a log', () => {
  it.each<[lines: readonly string[], telling: string | undefined]>([
    [
      ["dd: error writing '/data/x': No space left on device", '3+0 records in', '2+0 records out'],
      "dd: error writing '/data/x': No space left on device",
    ],
    [
      ['FATAL: password authentication failed for user app', 'database system is shut down', ''],
      'FATAL: password authentication failed for user app',
    ],
    [['error: first', 'error: second', 'bye'], 'error: second'],
    [['ready', '  done  ', ''], 'done'],
    [['', ' '], undefined],
    [[], undefined],
  ])('of %j is %j', (lines, telling) => {
    expect(pickTellingLine(lines)).toBe(telling)
  })

  const entry = (message: string, sizeBytes: number): string =>
    JSON.stringify({ message, stack: 'x'.repeat(sizeBytes) })
  const older = Array.from({ length: 9 }, (_, at) => entry(`error ${at}`, 1800))

  it.each<[what: string, lines: readonly string[], telling: string]>([
    ['the last about a failure where they are short', ['refused', 'bye'], 'refused'],
    [
      'the last one where all are too long to be read',
      [...older, entry('killed', 1800)],
      entry('killed', 1800),
    ],
    ['the start of the last one where it is too long itself', ['error', 'y'.repeat(1e6)], 'y'.repeat(4096)],
    ['without its colours', ['\u001B[31merror:\u001B[0m no port', 'bye'], 'error: no port'],
  ])('is, read from the API, %s', async (_, lines, telling) => {
    const asked: Readonly<Record<string, string>>[] = []
    /** As the API does: a limit leaves the first bytes of the lines. */
    const read = async (query: Readonly<Record<string, string>>): Promise<Uint8Array> => {
      asked.push(query)
      const { tailLines, limitBytes } = query
      const text = lines.slice(-Number(tailLines)).map((line) => `${line}\n`)
      return Buffer.from(text.join('')).subarray(0, Number(limitBytes))
    }
    expect(await readTellingLine({ container: 'main', isPrevious: true }, read)).toBe(telling)
    for (const query of asked) expect(query).toMatchObject({ container: 'main', previous: 'true' })
  })
})
