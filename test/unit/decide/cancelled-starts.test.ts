import { describe, expect, it } from 'vitest'
import { nextRestartCount } from '../../../src/decide/plan/container-view.ts'
import { selectCancelledStarts, withoutCancelledStarts } from '../../../src/decide/plan/backoff.ts'
import type { ObservedContainer } from '../../../src/pod/state/observed.ts'
import { ended, observedContainer, observedPod } from '../../support/pod-builders.ts'

const failed = (message: string): ObservedContainer =>
  observedContainer('a', { state: 'exited', exitCode: 128, reason: 'StartError', message })

describe('a start that failed and is on no record', () => {
  it.each([
    ['failed to get container info: context canceled', 0],
    ['failed to update container IO owner: context canceled', 0],
    ['failed to create containerd task: failed to create shim task: context canceled', 0],
    ['failed to create containerd task: failed to start shim: start failed: : signal: killed: unknown', 0],
    ['nri invoke: context canceled', 0],
    ['NRI container start failed: context canceled', 0],
    ['failed to start containerd task "a-0": context canceled', 1],
    ['failed to update container "a-0" state: context canceled', 1],
    ['failed to create containerd tasks', 1],
    ['', 1],
  ])('%j gives its successor number %i', (message, count) => {
    const observed = observedPod({ containers: [failed(message)] })
    const seen = withoutCancelledStarts(observed, selectCancelledStarts(observed, {}))
    expect(seen.containers.map(({ state }) => state)).toEqual(['created'])
    expect(nextRestartCount('a', seen, undefined)).toBe(count)
  })
})

it.each([
  ['created', observedContainer('a', { state: 'created' }), {}, true],
  ['running', observedContainer('a'), {}, false],
  ['failed, on no record', failed('failed to start containerd task "a-0": x'), {}, true],
  ['failed, on record', failed('x'), { a: { ended: ended('a', 128, { containerId: 'a-0' }) } }, false],
  ['failed, one before on record', failed('x'), { a: { ended: ended('a', 1, { containerId: 'z' }) } }, true],
  [
    'exited by itself',
    observedContainer('a', { state: 'exited', exitCode: 128, reason: 'Error' }),
    {},
    false,
  ],
])('of a container that is %s the start may have been cancelled: %j', (_, container, history, expected) => {
  const observed = observedPod({ containers: [container] })
  expect(selectCancelledStarts(observed, history).has(container.id)).toBe(expected)
})

it('has a start that is still in flight count as it ends', () => {
  const before = observedPod({ containers: [observedContainer('a', { state: 'created' })] })
  const selected = selectCancelledStarts(before, {})
  const after = observedPod({ containers: [observedContainer('a')] })
  expect(withoutCancelledStarts(after, selected)).toBe(after)
})
