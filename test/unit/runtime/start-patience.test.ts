import { expect, test } from 'vitest'
import { SilentContainerd, StartPatience } from '../../../src/runtime/containerd/start.ts'

/** What is seen of a process: seconds since it was first looked at, its processor time in ticks, and what it has read. */
type Sight = readonly [seconds: number, ticks: number | undefined, diskBytes?: number, waitedMs?: number]

test.each<readonly [what: string, sights: readonly Sight[], overAtSeconds: number | undefined]>([
  [
    'one that does nothing',
    [
      [0, 7],
      [30, 7],
      [59, 7],
      [60, 7],
    ],
    60,
  ],
  [
    'one whose timers alone run',
    [
      [0, 7],
      [20, 8],
      [40, 9],
      [59, 10],
      [60, 11],
    ],
    60,
  ],
  [
    'one that reads its records',
    [
      [0, 7],
      [50, 90],
      [100, 170],
      [150, 260],
      [209, 265],
    ],
    undefined,
  ],
  [
    'one that has stopped reading',
    [
      [0, 7],
      [50, 90],
      [109, 90],
      [110, 91],
    ],
    110,
  ],
  [
    'one that is busy for ever',
    [
      [0, 0],
      [59, 500],
      [118, 1000],
      [170, 1500],
      [229, 2000],
      [288, 2500],
      [300, 2600],
    ],
    300,
  ],
  [
    'one that waits for a slow disk',
    [
      [0, 7, 4096],
      [50, 8, 8192],
      [100, 9, 12_288],
      [159, 10, 12_288],
      [160, 10, 12_288],
    ],
    160,
  ],
  [
    'one that an overloaded host gives next to no processor time',
    [
      [0, 7, 0, 0],
      [30, 8, 0, 30_000],
      [60, 8, 0, 60_000],
      [119, 9, 0, 60_000],
      [120, 9, 0, 60_000],
    ],
    120,
  ],
  [
    'one that cannot be read',
    [
      [0, undefined],
      [59, undefined],
      [60, undefined],
    ],
    60,
  ],
  [
    'one that is read late',
    [
      [0, undefined],
      [30, 700],
      [59, 700],
      [60, 700],
    ],
    60,
  ],
])('containerd does not answer, and is waited for: %s', (_, sights, overAtSeconds) => {
  let nowMs = 5000
  const patience = new StartPatience({ monotonicMs: () => nowMs }, 60_000, 300_000)
  const over = sights.find(([seconds, ticks, diskBytes, waitedMs]) => {
    nowMs = 5000 + seconds * 1000
    return patience.isOver({ ticks, waitedMs, diskBytes })
  })
  expect(over?.[0]).toBe(overAtSeconds)
  expect(patience.wasBusy).toBe(overAtSeconds === undefined || overAtSeconds === 300)
})

/** In each of so many periods of five seconds, from the first one of a silence on. */
interface Work {
  readonly ticks?: number
  readonly waitedMs?: number
  readonly diskBytes?: number
}

test.each<readonly [what: string, work: Work, killedAtSeconds: number]>([
  ['is stopped', {}, 60],
  ['hangs, and still takes calls on a loaded host', { ticks: 12, waitedMs: 500 }, 60],
  ['waits for a processor on an overloaded host', { ticks: 1, waitedMs: 14_000 }, 600],
  ['uses a whole processor', { ticks: 500 }, 600],
  ['is read from the disk page by page', { ticks: 3, diskBytes: 4096 }, 600],
])('containerd answers no more, and is killed after a minute unless it works: one that %s', (_, work, at) => {
  const { ticks = 0, waitedMs = 0, diskBytes = 0 } = work
  let round = 0
  const silent = new SilentContainerd(() => ({
    ticks: ticks * round,
    waitedMs: waitedMs * round,
    diskBytes: diskBytes * round,
  }))
  let killedAfterMs: number | undefined
  while (killedAfterMs === undefined) killedAfterMs = silent.note((round += 1) * 5000, 7)
  expect(killedAfterMs / 1000).toBe(at)
  expect(round * 5).toBe(at)
})

/** After how many seconds of silence one is killed that does nothing, and how long it had been silent then. */
function kills(silent: SilentContainerd, pidAt: (seconds: number) => number | undefined, seconds: number) {
  const all: (readonly [atSeconds: number, silentSeconds: number])[] = []
  for (let at = 5; at <= seconds; at += 5) {
    const ms = silent.note(at * 1000, pidAt(at))
    if (ms !== undefined) all.push([at, ms / 1000])
  }
  return all
}

const idle = () => new SilentContainerd(() => ({ ticks: 1, waitedMs: 0, diskBytes: 0 }))

test('a silent containerd that SIGKILL does not end is killed once a minute', () => {
  expect(kills(idle(), () => 7, 185)).toEqual([
    [60, 60],
    [120, 120],
    [180, 180],
  ])
})

test('a containerd that takes the place of a silent one has a minute of its own', () => {
  expect(kills(idle(), (at) => (at <= 60 ? 7 : 8), 125)).toEqual([
    [60, 60],
    [120, 60],
  ])
  // None runs, or it starts.
  expect(kills(idle(), (at) => (at > 20 && at <= 100 ? undefined : 7), 200)).toEqual([[160, 60]])
})

test('a containerd that has answered since has a minute again', () => {
  const silent = idle()
  expect(kills(silent, () => 7, 55)).toEqual([])
  expect(kills(silent, () => 7, 60)).toEqual([[60, 60]])
})
