import { expect, it } from 'vitest'
import type { PodObject } from '../../../../src/api/resource.ts'
import { judgeSource } from '../../../../src/decide/updates/judge-source.ts'
import type { Revision } from '../../../../src/decide/updates/unit-revisions.ts'
import { containerStatus, podObject } from '../../../support/pod-objects.ts'

const ready = podObject({ name: 'ready' })
const unready = podObject({ name: 'unready', status: { conditions: [{ type: 'Ready', status: 'False' }] } })
const completed = podObject({ name: 'done', status: { phase: 'Succeeded', conditions: [] } })
const ending = podObject({
  name: 'ending',
  metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
  status: { phase: 'Failed' },
})
const waiting = (reason: string): PodObject =>
  podObject({
    name: 'waits',
    status: {
      conditions: [{ type: 'Ready', status: 'False' }],
      initContainerStatuses: [containerStatus('first', { state: { waiting: { reason } } })],
    },
  })

const unit = (...verdicts: readonly Revision['verdict'][]) => ({
  offered: verdicts.length,
  revisions: verdicts.map((verdict, index) => ({ number: index + 1, hash: '', pods: 1, atMs: 0, verdict })),
})

it.each<[string, readonly PodObject[], Partial<Parameters<typeof judgeSource>[0]>, string]>([
  ['without pods is healthy', [], {}, 'healthy'],
  ['whose pods are ready or have completed is healthy', [ready, completed], {}, 'healthy'],
  ['one of whose pods is not shown yet is progressing', [ready], { wanted: 2 }, 'progressing'],
  [
    'one of whose pods has other conditions, and is not ready, is progressing',
    [
      podObject({
        status: {
          phase: 'Running',
          conditions: [
            { type: 'Ready', status: 'False' },
            { type: 'PodScheduled', status: 'True' },
          ],
        },
      }),
    ],
    {},
    'progressing',
  ],
  ['one of whose pods is not ready is progressing', [ready, unready], {}, 'progressing'],
  ['whose container waits for its turn is progressing', [waiting('PodInitializing')], {}, 'progressing'],
  ['whose container crashes has failed', [ready, waiting('CrashLoopBackOff')], {}, 'failed'],
  ['whose image is not to be had has failed', [waiting('ErrImageNeverPull')], {}, 'failed'],
  ['one of whose pods failed has failed', [podObject({ status: { phase: 'Failed' } })], {}, 'failed'],
  ['with a bad document has failed', [ready], { hasBadDocuments: true }, 'failed'],
  ['is not judged by pods that end', [ready, ending], { wanted: 1 }, 'healthy'],
  [
    'whose new revision is judged is progressing',
    [ready],
    { units: [unit('healthy', 'progressing')] },
    'progressing',
  ],
  [
    'whose new revision failed has failed, also once it was rolled back',
    [ready],
    { units: [unit('healthy', 'failed')] },
    'failed',
  ],
  [
    'that gave a good revision after a failed one is healthy',
    [ready],
    { units: [unit('failed', 'healthy')] },
    'healthy',
  ],
])('a source %s', (_, shown, changes, health) => {
  const facts = { shown, wanted: shown.length, hasBadDocuments: false, units: [], ...changes }
  expect(judgeSource(facts)).toBe(health)
})
