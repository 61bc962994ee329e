import { describe, expect, it } from 'vitest'
import { computeEnding, freesNameWithContainers, goesAwayAfter } from '../../../../src/decide/plan/ending.ts'
import type { EndRequest } from '../../../../src/decide/plan/ending.ts'
import type { PodEnding } from '../../../../src/pod/state/pod-record.ts'
import { makePod } from '../../../support/pod-builders.ts'

const request = (changes: Partial<EndRequest> = {}): EndRequest => ({
  cause: 'removed',
  reason: 'Killing',
  message: 'The manifest was removed',
  graceSeconds: 30,
  ...changes,
})
const ending = (changes: Partial<PodEnding> = {}): PodEnding => ({
  ...request(),
  requestedAtMs: 100_000,
  ...changes,
})

describe('computeEnding', () => {
  it('begins with the moment it is asked for', () => {
    expect(computeEnding(undefined, request(), 5000)).toEqual({ ...request(), requestedAtMs: 5000 })
  })

  it.each([
    ['the same again, later', request(), 110_000, undefined],
    ['more grace', request({ graceSeconds: 100 }), 110_000, undefined],
    ['as much as is left', request({ graceSeconds: 20 }), 110_000, undefined],
    ['less than is left', request({ graceSeconds: 5 }), 110_000, { graceSeconds: 15 }],
    ['none', request({ graceSeconds: 0 }), 110_000, { graceSeconds: 10 }],
    ['none, when it is overdue', request({ graceSeconds: 0 }), 200_000, undefined],
    ['less, by a clock that was set back', request({ graceSeconds: 5 }), 40_000, { graceSeconds: 5 }],
    ['the same, by a clock that was set back', request(), 40_000, undefined],
    ['an end of another kind', request({ cause: 'deadline' }), 110_000, undefined],
  ] as const)('with %s', (_, asked, nowMs, changes) => {
    const before = ending()
    const after = computeEnding(before, asked, nowMs)
    expect(after === before).toBe(changes === undefined)
    expect(after).toEqual({ ...before, ...changes })
  })

  it('lets a pod that was to stay go away', () => {
    const before = ending({ cause: 'deadline', reason: 'DeadlineExceeded' })
    expect(computeEnding(before, request(), 110_000)).toEqual({ ...before, cause: 'removed' })
  })
})

describe('goesAwayAfter', () => {
  it.each([
    ['removed', true],
    ['replaced', true],
    ['orphaned', true],
    ['deadline', false],
    ['evicted', false],
  ] as const)('%s: %s', (cause, expected) => {
    expect(goesAwayAfter({ cause })).toBe(expected)
  })
})

describe('freesNameWithContainers', () => {
  const withPort = { hostPort: 80, containerPort: 80, protocol: 'TCP' }
  it.each([
    ['removed', [], true],
    ['replaced', [{ containerPort: 80, protocol: 'TCP' }], true],
    ['replaced', [withPort], false],
    ['orphaned', [], false],
    ['deadline', [], false],
  ] as const)('%s, with ports %j: %s', (cause, ports, expected) => {
    const pod = makePod({ containers: [{ name: 'main', image: 'app:1', ports: [...ports] }] })
    expect(freesNameWithContainers({ cause }, pod)).toBe(expected)
  })
})
