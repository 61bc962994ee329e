import { expect, it } from 'vitest'
import { orphanKey, planOrphans } from '../../../../src/decide/node/plan-orphans.ts'
import type { Orphan, OrphanFacts, OrphanKind } from '../../../../src/decide/node/plan-orphans.ts'

const orphan = (kind: OrphanKind): Orphan => ({ kind, id: 'x', message: '' })
const seen = (kind: OrphanKind, sinceMs: number): OrphanFacts['firstSeen'] =>
  new Map([[orphanKey(orphan(kind)), sinceMs]])

it.each<[title: string, kind: OrphanKind, facts: Partial<OrphanFacts>, expected: 'remove' | number]>([
  ['removes a directory at once', 'volumes', {}, 'remove'],
  ['removes a shim at once, whatever is in flight', 'shim', { makingSinceMs: 0 }, 'remove'],
  ['waits for half a minute with an address', 'address', {}, 130_000],
  ['removes it then', 'address', { firstSeen: seen('address', 70_000) }, 'remove'],
  ['waits for ten seconds with a task', 'task', {}, 110_000],
  [
    'waits while a call is in flight that was sent before it was found',
    'address',
    { firstSeen: seen('address', 10_000), makingSinceMs: 10_000 },
    100_000,
  ],
  [
    'does not wait for a call that was sent later',
    'address',
    { firstSeen: seen('address', 10_000), makingSinceMs: 10_001 },
    'remove',
  ],
])('%s', (_title, kind, facts, expected) => {
  const given = { found: [orphan(kind)], firstSeen: new Map(), makingSinceMs: undefined, nowMs: 100_000 }
  const { remove, wait } = planOrphans({ ...given, ...facts })
  const plan = [...remove.map(() => 'remove'), ...wait.map(({ untilMs }) => untilMs)]
  expect(plan).toEqual([expected])
})

it('forgets what is found no more, and remembers when the others were found', () => {
  const firstSeen = new Map([...seen('address', 1), ...seen('lease', 2)])
  const plan = planOrphans({ found: [orphan('lease')], firstSeen, makingSinceMs: undefined, nowMs: 5 })
  expect([...plan.firstSeen]).toEqual([['lease x', 2]])
})
