import { expect, it } from 'vitest'
import { awaitRuntime } from '../../../../src/decide/plan/progress.ts'
import { exitedContainer, sidecar, statusFacts } from '../../../support/pod-builders.ts'

const why = { reason: 'RuntimeNotReady', message: 'it is away' }

const pod = (restartPolicy: string) => ({
  init: ['first', sidecar('side')],
  containers: ['a', 'b'],
  spec: { restartPolicy },
})

it.each<[what: string, facts: Parameters<typeof statusFacts>[0], waiting: readonly string[]]>([
  ['of which nothing has run', { pod: pod('Always'), sandboxes: [] }, ['first', 'side', 'a', 'b']],
  [
    'whose init container has completed',
    { pod: pod('Always'), containers: [exitedContainer('first', 0)] },
    ['first', 'side', 'a', 'b'],
  ],
  [
    'that ran before',
    { pod: pod('Always'), containers: [exitedContainer('a', 1), exitedContainer('first', 1)] },
    ['side', 'a', 'b'],
  ],
  [
    'of which one container has completed',
    { pod: pod('OnFailure'), containers: [exitedContainer('a', 0)] },
    ['side', 'b'],
  ],
  [
    'that has completed',
    { pod: pod('Never'), containers: [exitedContainer('a', 0), exitedContainer('b', 0)] },
    [],
  ],
])('has the containers of a pod %s wait that are still to run', (_what, changes, waiting) => {
  const { pod: made, observed, record } = statusFacts(changes)
  expect([...awaitRuntime({ pod: made, observed, record }, why).keys()]).toEqual(waiting)
})

it('has an init container wait that has failed, and none that is recorded as completed', () => {
  const ended = (exitCode: number) => ({
    first: { ended: { ...exitedContainer('first', exitCode), exitCode, containerId: 'x', finishedAtMs: 1 } },
  })
  const waits = (exitCode: number) => {
    const {
      pod: made,
      observed,
      record,
    } = statusFacts({
      pod: pod('Always'),
      sandboxes: [],
      record: { containers: ended(exitCode) },
    })
    return awaitRuntime({ pod: made, observed, record }, why).has('first')
  }
  expect([waits(0), waits(1)]).toEqual([false, true])
})
