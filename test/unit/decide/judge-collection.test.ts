import { expect, it } from 'vitest'
import { judgeCollection } from '../../../src/decide/node/judge-health.ts'

it.each([
  ['podd is busy', { cpuMs: 2000, quietLooks: 5 }, { quietLooks: 0, collects: false }],
  ['podd is still busy', { cpuMs: 2000, quietLooks: 0 }, { quietLooks: 0, collects: false }],
  ['podd has become quiet', { cpuMs: 30, quietLooks: 0 }, { quietLooks: 1, collects: false }],
  ['it was quiet before', { cpuMs: 30, quietLooks: 1 }, { quietLooks: 2, collects: true }],
  ['podd stays quiet', { cpuMs: 30, quietLooks: 2 }, { quietLooks: 3, collects: false }],
  ['a pod is started', { cpuMs: 60, quietLooks: 7 }, { quietLooks: 8, collects: false }],
  ['thirty pods are probed each second', { cpuMs: 350, quietLooks: 7 }, { quietLooks: 8, collects: false }],
])('garbage is collected once a time of much work is over: %s', (_, facts, verdict) => {
  expect(judgeCollection({ sinceMs: 10_000, ...facts })).toEqual(verdict)
})
