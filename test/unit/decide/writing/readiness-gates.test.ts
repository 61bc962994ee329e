import { expect, it } from 'vitest'
import {
  gateReadiness,
  readinessGateProblems,
  withoutReadinessGates,
} from '../../../../src/decide/writing/check-object.ts'
import type { PodCondition } from '../../../../src/pod/state/status.ts'

const spec = { readinessGates: [{ conditionType: 'example.com/a' }, { conditionType: 'example.com/b' }] }

function readyWith(...more: readonly PodCondition[]): PodCondition | undefined {
  const conditions = [{ type: 'Ready', status: 'True' } as const, ...more]
  const status = gateReadiness({ phase: 'Running', qosClass: 'BestEffort', conditions }, spec)
  return status.conditions.find(({ type }) => type === 'Ready')
}

it('makes a pod ready with all its gates, and says which of them are missing', () => {
  const a = { type: 'example.com/a', status: 'True' } as const
  expect(readyWith(a, { type: 'example.com/b', status: 'True' })?.status).toBe('True')
  expect(readyWith(a, { type: 'example.com/b', status: 'False' })).toMatchObject({
    status: 'False',
    reason: 'ReadinessGatesNotReady',
    message: 'the status of pod readiness gate "example.com/b" is not "True", but False',
  })
  expect(readyWith(a)?.message).toBe(
    'corresponding condition of pod readiness gate "example.com/b" does not exist.',
  )
})

it('takes gates away for the sync loop, and knows wrong ones', () => {
  expect(withoutReadinessGates({ spec: { ...spec, hostname: 'a' } })).toEqual({ spec: { hostname: 'a' } })
  expect(readinessGateProblems({ spec })).toEqual([])
  expect(readinessGateProblems({ spec: { readinessGates: [{ conditionType: 'a b' }, {}] } })).toHaveLength(2)
})
