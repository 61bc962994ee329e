import { expect, it } from 'vitest'
import type { LogFields, Logger } from '../../../src/base/logger.ts'
import { createShown } from '../../../src/control/serving/resource-store.ts'
import { TroubleLog } from '../../../src/control/serving/trouble-log.ts'
import type { Problem } from '../../../src/pod/objects/document.ts'
import { containerStatus, podObject } from '../../support/pod-objects.ts'

function rig() {
  const lines: (readonly [string, LogFields])[] = []
  const take = (fields: LogFields, message: string): void => void lines.push([message, fields])
  const logger: Logger = { debug: take, info: take, warn: take, error: take }
  const log = new TroubleLog(logger)
  const { pods } = createShown(0)
  log.follow(pods)
  return { lines, log, pods }
}

const bad: Problem = {
  severity: 'error',
  place: { path: '/etc/pods/a.yaml', line: 7 },
  field: 'spec.containers[0].image',
  message: 'Required value',
  object: 'default/a',
}

it('an error of a manifest is logged once, and again where it was mended meanwhile', () => {
  const { lines, log } = rig()
  const sources = new Set(['/etc/pods'])
  log.noteProblems([bad], sources)
  log.noteProblems([{ ...bad, place: { path: '/etc/pods/a.yaml', line: 9 } }], sources)
  expect(lines).toEqual([
    [
      'a manifest is not followed',
      {
        path: '/etc/pods/a.yaml:7',
        pod: 'default/a',
        reason: 'spec.containers[0].image: Required value',
      },
    ],
  ])
  log.noteProblems([], sources)
  log.noteProblems([bad], sources)
  expect(lines).toHaveLength(2)
})

it('warnings, and sources that log themselves why they can’t be read, are left out', () => {
  const { lines, log } = rig()
  const place = { path: 'https://fleet.example/' }
  log.noteProblems(
    [
      { ...bad, severity: 'warning' },
      { severity: 'error', place, message: 'the server answered 500' },
    ],
    new Set([place.path]),
  )
  expect(lines).toEqual([])
  log.noteProblems(
    [{ severity: 'error', place: { ...place, line: 1 }, message: 'not YAML' }],
    new Set([place.path]),
  )
  expect(lines).toHaveLength(1)
})

it('a container that does not run is logged once for each reason and image, however often it crashes', () => {
  const { lines, pods } = rig()
  const show = (reason: string, image = 'i:1'): void => {
    const state = reason === '' ? { running: {} } : { waiting: { reason, message: 'secret' } }
    const lastState = { terminated: { exitCode: 3, reason: 'Error', message: 'secret' } }
    const main = containerStatus('main', { state, lastState, image })
    pods.put('uid-web', podObject({ status: { containerStatuses: [main] } }))
  }
  for (const reason of [
    'ContainerCreating',
    '',
    'CrashLoopBackOff',
    '',
    'CrashLoopBackOff',
    'ImagePullBackOff',
  ])
    show(reason)
  show('CrashLoopBackOff', 'i:2')
  const about = { pod: 'default/web', uid: 'uid-web', container: 'main', exitCode: 3 }
  expect(lines).toEqual([
    ['a container does not run', { ...about, reason: 'CrashLoopBackOff' }],
    ['a container does not run', { ...about, reason: 'ImagePullBackOff' }],
    ['a container does not run', { ...about, reason: 'CrashLoopBackOff' }],
  ])
})

it('a pod that failed is logged once, with its reason', () => {
  const { lines, pods } = rig()
  for (let times = 0; times < 2; times += 1)
    pods.put(
      'uid-web',
      podObject({ status: { phase: 'Failed', reason: 'Evicted' }, metadata: { generation: times } }),
    )
  expect(lines).toEqual([['a pod failed', { pod: 'default/web', uid: 'uid-web', reason: 'Evicted' }]])
})

it('a pod that was ended for a shutdown of the host, or waits for the end of one, is no trouble', () => {
  const { lines, pods } = rig()
  const conditions = [
    { type: 'DisruptionTarget', status: 'True', lastProbeTime: null, lastTransitionTime: '' },
  ] as const
  pods.put('uid-web', podObject({ status: { phase: 'Failed', reason: 'Terminated', conditions } }))
  const late = containerStatus('main', { state: { waiting: { reason: 'Blocked' } } })
  pods.put('uid-late', podObject({ status: { reason: 'NodeShutdown', containerStatuses: [late] } }))
  expect(lines).toEqual([])
})
