import { describe, expect, it } from 'vitest'
import {
  defaultContainerPolicy,
  planContainerGarbage,
  selectDeadContainers,
} from '../../../../src/decide/node/plan-container-garbage.ts'
import type {
  ContainerGarbagePolicy,
  GarbagePod,
} from '../../../../src/decide/node/plan-container-garbage.ts'
import type { ObservedContainer, ObservedPod, ObservedSandbox } from '../../../../src/pod/state/observed.ts'
import {
  exitedContainer,
  nowMs,
  observedContainer,
  observedPod,
  observedSandbox,
} from '../../../support/pod-builders.ts'

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
    expect(selectDeadContainers(observedPod(changes), defaultContainerPolicy, nowMs)).toEqual({
      containers,
      sandboxes,
    })
  })
})

/** `pod container attempt createdAt [state]`, the container's id and its order of creation. */
function containerOf(line: string): { readonly uid: string; readonly container: ObservedContainer } {
  const [uid = '', name = '', attempt = '', createdAtMs = '', state = 'exited'] = line.split(' ')
  const container = observedContainer(name, {
    id: line,
    restartCount: Number(attempt),
    createdAtMs: createdAtMs === 'now' ? nowMs : Number(createdAtMs),
    ...(state === 'running' ? {} : { state: 'exited' }),
  })
  return { uid, container }
}

/** What is left of these containers; the fate of a pod follows from its name, as in the kubelet's table. */
function remaining(
  lines: readonly string[],
  policy: ContainerGarbagePolicy,
  { evictNonDeletedPods = false, allSourcesReady = true } = {},
): readonly string[] {
  const pods = [...Map.groupBy(lines.map(containerOf), ({ uid }) => uid)].map(([uid, found]): GarbagePod => {
    const containers = found.map(({ container }) => container)
    const fate = uid === 'deleted' ? 'removed' : uid === 'running' ? 'live' : 'terminated'
    return { observed: observedPod({ uid, containers, sandboxes: [] }), fate }
  })
  const garbage = planContainerGarbage({ pods, allSourcesReady, evictNonDeletedPods }, policy, nowMs)
  const gone = new Set(garbage.flatMap(({ containers }) => containers.map(({ container }) => container.id)))
  return lines.filter((line) => !gone.has(line))
}

describe('planContainerGarbage', () => {
  const usual = { maxPerContainer: 2, maxTotal: 6, minimumAgeMs: 3_600_000 }
  const minuteOld = { minimumAgeMs: 60_000 }

  // The facts of TestContainerGC (`pkg/kubelet/kuberuntime/kuberuntime_gc_test.go`, 1.36).
  it.each<
    [
      title: string,
      lines: readonly string[],
      remain: readonly number[],
      policy?: ContainerGarbagePolicy,
      options?: { evictNonDeletedPods?: boolean; allSourcesReady?: boolean },
    ]
  >([
    [
      'removes what was created in the future, before the clock was set back',
      [`foo bar 0 ${nowMs * 2}`],
      [],
      { ...minuteOld, maxPerContainer: 1, maxTotal: 0 },
    ],
    [
      'removes all where none may be kept',
      ['foo bar 0 0'],
      [],
      { ...minuteOld, maxPerContainer: 1, maxTotal: 0 },
    ],
    [
      'keeps the total where a container has no limit',
      ['foo bar 4 4', 'foo bar 3 3', 'foo bar 2 2', 'foo bar 1 1', 'foo bar 0 0'],
      [0, 1, 2, 3],
      { ...minuteOld, maxPerContainer: -1, maxTotal: 4 },
    ],
    [
      'removes nothing where there is no limit',
      ['foo bar 2 2', 'foo bar 1 1', 'foo bar 0 0'],
      [0, 1, 2],
      { ...minuteOld, maxPerContainer: -1, maxTotal: -1 },
    ],
    [
      'removes one at the age that it has to have, and not before',
      [`foo bar 1 ${nowMs - 59_999}`, `foo bar 0 ${nowMs - 60_000}`],
      [0],
      { ...minuteOld, maxPerContainer: 0, maxTotal: -1 },
    ],
    [
      'removes the oldest of a container, whatever their order',
      ['foo bar 1 1', 'foo bar 0 0', 'foo bar 3 3', 'foo bar 2 2'],
      [2, 3],
    ],
    [
      'removes nothing where there are as many as there may be, however they are spread',
      ['foo bar 2 2', 'foo bar 1 1', 'foo bar 0 0', 'foo baz 0 0'],
      [0, 1, 2, 3],
      { ...minuteOld, maxPerContainer: -1, maxTotal: 4 },
    ],
    ['keeps those made a moment ago', ['foo bar 2 now', 'foo bar 1 now', 'foo bar 0 now'], [0, 1, 2]],
    ['removes the oldest of a container', ['foo bar 2 2', 'foo bar 1 1', 'foo bar 0 0'], [0, 1]],
    ['never removes one that runs', ['foo bar 2 2', 'foo bar 1 1', 'foo bar 0 0 running'], [0, 1, 2]],
    ['removes nothing within the limits', ['foo bar 1 1', 'foo bar 0 0'], [0, 1]],
    [
      'limits each container of each pod by itself',
      [
        'foo bar 2 2',
        'foo bar 1 1',
        'foo bar 0 0',
        'foo1 baz 2 2',
        'foo1 baz 1 1',
        'foo1 baz 0 0',
        'foo2 bar 2 2',
        'foo2 bar 1 1',
        'foo2 bar 0 0',
      ],
      [0, 1, 3, 4, 6, 7],
    ],
    [
      'keeps one of each container within the total',
      [
        'foo bar 1 1',
        'foo bar 0 0',
        'foo1 bar1 1 1',
        'foo1 bar1 0 0',
        'foo2 bar2 1 1',
        'foo2 bar2 0 0',
        'foo3 bar3 1 1',
        'foo3 bar3 0 0',
        'foo4 bar4 1 1',
        'foo4 bar4 0 0',
      ],
      [0, 2, 4, 6, 8],
    ],
    [
      'removes the oldest where one of each is too many',
      [
        'foo bar 2 2',
        'foo bar 1 1',
        'foo1 bar1 2 2',
        'foo1 bar1 1 1',
        'foo2 bar2 1 1',
        'foo3 bar3 0 0',
        'foo4 bar4 1 1',
        'foo5 bar5 0 0',
        'foo6 bar6 2 2',
        'foo7 bar7 1 1',
      ],
      [0, 2, 4, 6, 8, 9],
    ],
    [
      'removes all that terminated pods have where that is asked for',
      [
        'foo bar 2 2',
        'foo bar 1 1',
        'foo1 bar1 2 2',
        'foo1 bar1 1 1',
        'running bar2 1 1',
        'foo3 bar3 0 0 running',
      ],
      [4, 5],
      usual,
      { evictNonDeletedPods: true },
    ],
    [
      'removes all that removed pods have but what was made a moment ago',
      ['foo bar 1 1', 'foo bar 0 0', 'deleted bar1 2 now', 'deleted bar1 1 1', 'deleted bar1 0 0'],
      [0, 1, 2],
    ],
    [
      'keeps what a pod has whose source may not have been read',
      ['deleted bar1 0 0'],
      [0],
      usual,
      { evictNonDeletedPods: true, allSourcesReady: false },
    ],
  ])('%s', (_title, lines, remain, policy = usual, options = {}) => {
    expect(remaining(lines, policy, options)).toEqual(remain.map((index) => lines[index]))
  })

  it('keeps how the newest one ended until the runtime itself tells of it', () => {
    const of = (provisional: boolean) => {
      const containers = [
        exitedContainer('a', 1, { restartCount: 1, provisional }),
        exitedContainer('a', 1, { provisional }),
      ]
      const policy = { maxPerContainer: 0, maxTotal: -1, minimumAgeMs: 0 }
      return selectDeadContainers(observedPod({ containers }), policy, nowMs).containers
    }
    expect([of(true), of(false)]).toEqual([['a-0'], ['a-1', 'a-0']])
  })

  it.each([
    ['live', 'superseded', ['sandbox-0']],
    ['removed', 'removed', ['sandbox-1', 'sandbox-0']],
  ] as const)('says why the sandboxes of a %s pod go: %s', (fate, reason, ids) => {
    const observed = observedPod({ sandboxes: [dead(1), dead(0)] })
    const facts = { pods: [{ observed, fate }], allSourcesReady: true, evictNonDeletedPods: false }
    const [garbage] = planContainerGarbage(facts, defaultContainerPolicy, nowMs)
    expect(garbage?.sandboxes.map((each) => [each.sandbox.id, each.reason])).toEqual(
      ids.map((id) => [id, reason]),
    )
  })

  // The facts of TestSandboxGC, same file.
  const sandbox = (attempt: number, ready: boolean): ObservedSandbox =>
    observedSandbox({ id: `sandbox-${attempt}`, attempt, ready })
  it.each<
    [
      title: string,
      fate: GarbagePod['fate'],
      sandboxes: readonly ObservedSandbox[],
      holders: readonly string[],
      removed: readonly string[],
      evictNonDeletedPods?: boolean,
    ]
  >([
    ['removes the last sandbox of a removed pod', 'removed', [sandbox(0, false)], [], ['sandbox-0']],
    ['keeps a ready one of a removed pod', 'removed', [sandbox(0, true)], [], []],
    ['keeps the last one of a pod', 'live', [sandbox(0, false)], [], []],
    ['removes older ones', 'live', [sandbox(1, false), sandbox(0, false)], [], ['sandbox-0']],
    [
      'keeps one that still has a container',
      'live',
      [sandbox(1, false), sandbox(0, false)],
      ['sandbox-0'],
      [],
    ],
    [
      'removes that of a terminated pod where asked',
      'terminated',
      [sandbox(0, false)],
      [],
      ['sandbox-0'],
      true,
    ],
    ['keeps that of a terminated pod otherwise', 'terminated', [sandbox(0, false)], [], []],
  ])('%s', (_title, fate, sandboxes, holders, removed, evictNonDeletedPods = false) => {
    const containers = holders.map((sandboxId) => exitedContainer('a', 0, { sandboxId }))
    const pods = [{ observed: observedPod({ sandboxes, containers }), fate }]
    const facts = { pods, allSourcesReady: true, evictNonDeletedPods }
    const garbage = planContainerGarbage(facts, { ...defaultContainerPolicy, maxPerContainer: 5 }, nowMs)
    expect(garbage.flatMap((each) => each.sandboxes.map(({ sandbox: { id } }) => id))).toEqual(removed)
  })
})
