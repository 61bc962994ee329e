import { describe, expect, it } from 'vitest'
import {
  decideRuntimeStep,
  findForgotten,
  selectStillForgotten,
} from '../../../../src/decide/node/compare-runtime.ts'
import type {
  HeldContainer,
  RuntimeInventory,
  RuntimeSituation,
} from '../../../../src/decide/node/compare-runtime.ts'

const pod = { namespace: 'default', name: 'web', uid: 'uid-web' }
const sandbox: HeldContainer = { id: 's1', kind: 'sandbox', pod, name: '' }
const main: HeldContainer = { id: 'c1', kind: 'container', pod, name: 'main' }
const side: HeldContainer = { id: 'c2', kind: 'container', pod, name: 'side' }
const foreign: HeldContainer = { id: 'x1', kind: 'container', pod: undefined, name: '' }

const whole: RuntimeInventory = {
  held: [sandbox, main, side],
  sandboxes: new Set(['s1']),
  containers: [
    { id: 'c1', sandboxId: 's1' },
    { id: 'c2', sandboxId: 's1' },
  ],
  remains: new Set(),
}

describe('findForgotten', () => {
  it.each<[string, Partial<RuntimeInventory>, readonly string[]]>([
    ['nothing where CRI knows all', {}, []],
    ['nothing where CRI knows more: what is removed just now', { held: [sandbox] }, []],
    ['a container', { containers: [{ id: 'c1', sandboxId: 's1' }] }, ['c2']],
    ['all containers of a sandbox that CRI knows', { containers: [] }, ['c1', 'c2']],
    ['containers before their sandbox', { sandboxes: new Set(), containers: [] }, ['c1', 'c2', 's1']],
    ['a sandbox whose containers CRI knows', { sandboxes: new Set() }, ['s1']],
    [
      'no sandbox that nothing is in: one that was being made',
      { held: [sandbox], sandboxes: new Set(), containers: [] },
      [],
    ],
    [
      'no sandbox of a pod whose containers are in another one',
      { held: [{ ...sandbox, id: 's0' }, ...whole.held] },
      [],
    ],
    ['nothing that a failed call has left', { containers: [], remains: new Set(['c1', 'c2']) }, []],
    [
      'no sandbox because of what a failed call has left in it',
      { sandboxes: new Set(), containers: [], remains: new Set(['c1', 'c2']) },
      [],
    ],
    ['a container whose labels name no pod', { held: [...whole.held, foreign] }, ['x1']],
    [
      'no sandbox without labels because of such a container',
      { held: [...whole.held, foreign, { ...sandbox, id: 's9', pod: undefined }] },
      ['x1'],
    ],
  ])('finds %s', (_, change, ids) => {
    expect(findForgotten({ ...whole, ...change }).map(({ id }) => id)).toEqual(ids)
  })
})

it.each<[readonly HeldContainer[], readonly HeldContainer[], readonly HeldContainer[]]>([
  [[main], [main], [main]],
  [[main, side], [side], [side]],
  [[main], [side], []],
  [[], [main], []],
])('takes for forgotten what two looks have found (%#)', (before, now, still) => {
  expect(selectStillForgotten(before, now)).toEqual(still)
})

describe('decideRuntimeStep', () => {
  const situation: RuntimeSituation = {
    forgotten: [main],
    roomProblem: undefined,
    stillForgotten: new Set(),
    restarts: 0,
    isOwn: true,
  }

  it.each<[string, Partial<RuntimeSituation>, string]>([
    ['nothing forgotten', { forgotten: [] }, 'use'],
    ['nothing forgotten, on a full disk', { forgotten: [], roomProblem: 'ENOSPC' }, 'use'],
    ['a full disk', { roomProblem: 'ENOSPC' }, 'wait'],
    [
      'a disk that is full again after the restart',
      { roomProblem: 'ENOSPC', stillForgotten: new Set([main.id]) },
      'wait',
    ],
    ['room', {}, 'restart'],
    ['a restart with room that was in vain', { stillForgotten: new Set([main.id]) }, 'end'],
    [
      'others than before the restart, which the next one may bring back',
      { forgotten: [main, side], stillForgotten: new Set([main.id]), restarts: 1 },
      'restart',
    ],
    ['others at each of five restarts', { stillForgotten: new Set(['c9']), restarts: 5 }, 'end'],
    ["somebody else's containerd", { isOwn: false }, 'wait'],
    ["somebody else's containerd, restarted", { isOwn: false, stillForgotten: new Set([main.id]) }, 'wait'],
  ])('%s', (_, change, kind) => {
    expect(decideRuntimeStep({ ...situation, ...change }).kind).toBe(kind)
  })

  it.each<[readonly HeldContainer[], string]>([
    [[main], 'container main of default/web, which'],
    [[side, sandbox], 'container side of default/web, which'],
    [[sandbox], 'sandbox of default/web, which'],
    [[foreign], 'container x1, which'],
    [
      [main, side, foreign, { ...main, id: 'c4' }, { ...main, id: 'c5' }],
      'container main of default/web, container side of default/web, container x1 and 2 more, which',
    ],
  ])('names what is forgotten (%#)', (forgotten, text) => {
    const step = decideRuntimeStep({ ...situation, forgotten })
    expect(step).toMatchObject({ message: expect.stringContaining(`CRI no longer lists ${text}`) as string })
  })

  it('says what the disk lacks, and what is ended', () => {
    expect(decideRuntimeStep({ ...situation, roomProblem: 'ENOSPC: no space left' })).toMatchObject({
      message: expect.stringMatching(
        /restarts containerd when it can write to its disk: ENOSPC: no space left$/u,
      ) as string,
    })
    expect(decideRuntimeStep({ ...situation, stillForgotten: new Set([main.id]) })).toMatchObject({
      lost: [main],
    })
  })
})
