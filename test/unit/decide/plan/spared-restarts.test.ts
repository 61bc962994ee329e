import { expect, it } from 'vitest'
import { reviewSparedRestarts } from '../../../../src/decide/plan/restart-request.ts'
import { exitedContainer, makePod, observedContainer, observedPod } from '../../../support/pod-builders.ts'

const pod = makePod({ containers: ['a'] })
const running = observedContainer('a')
const { id } = running

it.each([
  ['is due within its grace', running, 1000, [], { due: [id], nextInMs: 1000 }],
  ['is not due any more when it has gone on for that long', running, 0, [], { due: [], nextInMs: undefined }],
  ['is due where it is about to be stopped', running, 0, [id], { due: [id], nextInMs: undefined }],
  ['is due where it has ended', exitedContainer('a', 0), 0, [], { due: [id], nextInMs: undefined }],
] as const)('a container that was to run again %s', (_, container, leftMs, planned, expected) => {
  const nowMs = 100_000
  const before = new Map([[id, nowMs - 30_000 + leftMs]])
  const facts = { pod, observed: observedPod({ containers: [container] }), restartsDue: [container.id] }
  const review = reviewSparedRestarts(facts, before, planned, nowMs)
  expect(review).toMatchObject({ ...expected, due: expected.due.map(() => container.id) })
})

it('counts the grace of a container from when it is first seen to go on', () => {
  const facts = { pod, observed: observedPod({ containers: [running] }), restartsDue: [id] }
  const first = reviewSparedRestarts(facts, new Map(), [], 5000)
  expect(first).toEqual({ due: [id], sinceMs: new Map([[id, 5000]]), nextInMs: 30_000 })
  expect(reviewSparedRestarts(facts, first.sinceMs, [], 35_000).due).toEqual([])
  expect(reviewSparedRestarts(facts, first.sinceMs, [id], 35_000).sinceMs).toEqual(new Map())
})
