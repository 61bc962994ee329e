import { expect, test } from 'vitest'
import { StartPatience } from '../../../src/runtime/containerd/start.ts'

/** What is seen of a process: seconds since it was first looked at, its processor time in ticks, and what it has read. */
type Sight = readonly [seconds: number, ticks: number | undefined, diskBytes?: number]

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
  const over = sights.find(([seconds, ticks, diskBytes]) => {
    nowMs = 5000 + seconds * 1000
    return patience.isOver({ ticks, diskBytes })
  })
  expect(over?.[0]).toBe(overAtSeconds)
  expect(patience.wasBusy).toBe(overAtSeconds === undefined || overAtSeconds === 300)
})
