import { describe, expect, it } from 'vitest'
import { decideUnrecorded } from '../../../src/decide/sources/new-pod-record.ts'
import type { ObservedPod } from '../../../src/pod/state/observed.ts'
import { observedContainer, observedSandbox } from '../../support/pod-builders.ts'

const remains: ObservedPod = {
  uid: 'u',
  namespace: 'default',
  name: 'web',
  sandboxes: [observedSandbox({ ready: false })],
  containers: [observedContainer('main', { state: 'exited' })],
}
const inSandbox: ObservedPod = { ...remains, sandboxes: [observedSandbox({ ready: true })] }
const running: ObservedPod = { ...remains, containers: [observedContainer('main', { state: 'running' })] }
const unknown: ObservedPod = { ...remains, containers: [observedContainer('main', { state: 'unknown' })] }

describe('decideUnrecorded', () => {
  it.each([
    ['nothing of it runs', remains, { isUnreadable: false, isWanted: false }, 'end'],
    ['it runs and has no record', running, { isUnreadable: false, isWanted: false }, 'end'],
    ['it runs and is wanted as it is', running, { isUnreadable: false, isWanted: true }, 'adopt'],
    [
      'its record is unreadable and it is wanted as it is',
      running,
      { isUnreadable: true, isWanted: true },
      'adopt',
    ],
    [
      'its record is unreadable and a container runs',
      running,
      { isUnreadable: true, isWanted: false },
      'leave',
    ],
    [
      'its record is unreadable and a container may run',
      unknown,
      { isUnreadable: true, isWanted: false },
      'leave',
    ],
    [
      'its record is unreadable and its sandbox is ready',
      inSandbox,
      { isUnreadable: true, isWanted: false },
      'leave',
    ],
    [
      'its record is unreadable and nothing of it runs',
      remains,
      { isUnreadable: true, isWanted: false },
      'end',
    ],
  ] as const)('%s', (_, observed, facts, fate) => {
    expect(decideUnrecorded({ observed, ...facts })).toBe(fate)
  })
})
