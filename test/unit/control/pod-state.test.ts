import { expect, it } from 'vitest'
import { createPodState } from '../../../src/control/pod/state.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { plainMemoryEnv } from '../../support/plain-pod-host.ts'
import {
  exitedContainer,
  makePod,
  observedContainer,
  observedPod,
  podRecord,
} from '../../support/pod-builders.ts'

it('tells after each change of a pod whether it has ended', () => {
  const record = podRecord()
  const pod = makePod({ containers: ['a'], restartPolicy: 'Never' })
  const env = { ...plainMemoryEnv(), clock: new ManualClock() }
  const listener = { wake: () => {}, onStage: () => {} }
  const state = createPodState(env, { record, pod, saved: true }, listener)
  const told = [state.hasEnded, state.hasEnded]
  state.see(observedPod({ containers: [observedContainer('a')] }))
  told.push(state.hasEnded)
  state.see(observedPod({ containers: [exitedContainer('a', 0)] }))
  told.push(state.hasEnded, state.hasEnded)
  const { source, path } = record
  const manifest = { changed: true }
  state.update({ pod: makePod({ containers: ['a'] }), manifest, place: { source, path, owner: undefined } })
  told.push(state.hasEnded)
  state.fail({ reason: 'Evicted', message: 'no memory' })
  told.push(state.hasEnded)
  expect(told).toEqual([false, false, false, true, true, false, true])
})

it('a pod that is to be removed neither becomes active nor stays as failed', () => {
  const env = { ...plainMemoryEnv(), clock: new ManualClock() }
  const listener = { wake: () => {}, onStage: () => {} }
  const state = createPodState(env, { record: podRecord(), pod: makePod(), saved: true }, listener)
  const request = { reason: 'Evicted', message: 'no memory', graceSeconds: 5 }
  state.requestEnd({ ...request, cause: 'evicted' }, 0)
  state.requestEnd({ ...request, cause: 'removed' }, 0)
  state.finishEnding()
  state.activate()
  expect(state.record).toMatchObject({ ending: { cause: 'removed' } })
  expect([state.record.failed, state.stage]).toEqual([undefined, 'ending'])
})
