import { expect, it } from 'vitest'
import {
  gateReadiness,
  namespaceProblems,
  readinessGateProblems,
  withoutReadinessGates,
} from '../../../../src/decide/writing/check-object.ts'
import type { JsonObject } from '../../../../src/base/json.ts'
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

it('leaves a manifest without gates, and what is no spec, as they are', () => {
  for (const manifest of [{ spec: { hostname: 'a' } }, { spec: 'none' }, {}])
    expect(withoutReadinessGates(manifest)).toBe(manifest)
})

it('leaves conditions alone that are not Ready, or not true', () => {
  const conditions = [
    { type: 'Ready', status: 'False' },
    { type: 'PodScheduled', status: 'True' },
  ] as const
  const status = gateReadiness({ phase: 'Running', qosClass: 'BestEffort', conditions }, spec)
  expect(status.conditions).toEqual(conditions)
})

it('takes a namespace with a name, or with a template for one, and knows a wrong one', () => {
  const of = (metadata: JsonObject) =>
    namespaceProblems({ apiVersion: 'v1', kind: 'Namespace', metadata }).map(({ path }) => path.join('.'))
  expect(of({ name: 'team', labels: { a: 'b' } })).toEqual([])
  expect(of({ name: 'team-x2', generateName: 'team-' })).toEqual([])
  expect(of({ name: 'a_b' })).toContain('metadata.name')
})
