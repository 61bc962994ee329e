import { describe, expect, it } from 'vitest'
import { selectDeadContainers } from '../../../src/decide/plan/select-dead-containers.ts'
import type { ObservedPod } from '../../../src/pod/state/observed.ts'
import {
  exitedContainer,
  observedContainer,
  observedPod,
  observedSandbox,
} from '../../support/pod-builders.ts'

const exited = (restartCount: number, sandboxId = 'sandbox-0') =>
  exitedContainer('a', 1, { restartCount, sandboxId })
const dead = (attempt: number) => observedSandbox({ attempt, ready: false })

describe('selectDeadContainers', () => {
  it.each([
    ['keeps the only one', { containers: [exited(0)] }, [], []],
    [
      // id: keeps-last-ended-beside
      'keeps the last one that ended beside the one that runs',
      { containers: [observedContainer('a', { restartCount: 1 }), exited(0)] },
      [],
      [],
    ],
    [
      // id: removes-those-before
      'removes those before it',
      { containers: [observedContainer('a', { restartCount: 3 }), exited(2), exited(1), exited(0)] },
      ['a-1', 'a-0'],
      [],
    ],
    // id: keeps-each-name
    ['keeps one of each name', { containers: [exited(1), exitedContainer('b', 0), exited(0)] }, ['a-0'], []],
    [
      'removes one that was never started once there is a newer one',
      {
        containers: [
          observedContainer('a', { restartCount: 2 }),
          observedContainer('a', { state: 'created', restartCount: 1 }),
          exited(0),
        ],
      },
      ['a-1'],
      [],
    ],
    [
      'keeps one that was never started while it is the newest',
      { containers: [observedContainer('a', { state: 'created', restartCount: 1 }), exited(0)] },
      [],
      [],
    ],
    [
      // id: never-removes-runs-or
      'never removes what runs or may run',
      { containers: [observedContainer('a', { state: 'unknown', restartCount: 1 }), observedContainer('a')] },
      [],
      [],
    ],
    // id: keeps-newest-sandbox-dead
    ['keeps the newest sandbox, dead or not', { sandboxes: [dead(0)] }, [], []],
    [
      // id: removes-older-sandboxes-empty
      'removes older sandboxes that are empty',
      { sandboxes: [dead(2), dead(1), dead(0)] },
      [],
      ['sandbox-1', 'sandbox-0'],
    ],
    // id: keeps-older-sandbox-ready
    ['keeps an older sandbox that is ready', { sandboxes: [dead(1), observedSandbox()] }, [], []],
    [
      // id: keeps-older-sandbox-holds
      'keeps an older sandbox that holds what is kept',
      { sandboxes: [observedSandbox({ attempt: 1 }), dead(0)], containers: [exited(0)] },
      [],
      [],
    ],
    [
      'removes an older sandbox along with the last it holds',
      {
        sandboxes: [observedSandbox({ attempt: 1 }), dead(0)],
        containers: [exited(1, 'sandbox-1'), exited(0)],
      },
      ['a-0'],
      ['sandbox-0'],
    ],
  ] as const satisfies readonly (readonly [
    string,
    Partial<ObservedPod>,
    readonly string[],
    readonly string[],
  ])[])('%s', (_title, changes, containers, sandboxes) => {
    expect(selectDeadContainers(observedPod(changes))).toEqual({ containers, sandboxes })
  })
})
