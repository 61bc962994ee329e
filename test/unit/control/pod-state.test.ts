import { expect, it } from 'vitest'
import { AheadFetches, PodState } from '../../../src/control/pod/state.ts'
import { PodMemory } from '../../../src/control/pod/memory.ts'
import {
  exitedContainer,
  makePod,
  observedContainer,
  observedPod,
  podRecord,
} from '../../support/pod-builders.ts'

it('tells after each change of a pod whether it has ended', () => {
  const record = podRecord()
  const memory = new PodMemory(
    {
      records: { save: async () => {}, isThere: async () => true, remove: async () => {} },
      bootId: 'boot-1',
      readEndMessage: async () => '',
      countOomKills: async () => undefined,
      onUnwritten: () => {},
    },
    { record, saved: true },
  )
  const pod = makePod({ containers: ['a'], restartPolicy: 'Never' })
  const state = new PodState(memory, new AheadFetches(() => {}), { record, pod, saved: true })
  const told = [state.hasEnded, state.hasEnded]
  state.observed = observedPod({ containers: [observedContainer('a')] })
  told.push(state.hasEnded)
  state.observed = observedPod({ containers: [exitedContainer('a', 0)] })
  told.push(state.hasEnded, state.hasEnded)
  state.pod = makePod({ containers: ['a'] })
  told.push(state.hasEnded)
  memory.change({ failed: { reason: 'Evicted', message: 'no memory' } })
  told.push(state.hasEnded)
  expect(told).toEqual([false, false, false, true, true, false, true])
})
