import { expect, it } from 'vitest'
import { UsageHistory } from '../../../src/control/serving/usage-history.ts'
import type { ContainerUsage } from '../../../src/pod/state/usage.ts'
import type { PodUid } from '../../../src/pod/values/ids.ts'

const never = new AbortController().signal

/** A host whose clock and pods the test sets. */
function begin() {
  const state = { atMs: 0, pods: ['a'], fails: '' }
  const history = new UsageHistory({
    usage: async () => {
      if (state.fails === 'containers') throw new Error('the runtime is away')
      return state.pods.flatMap((uid): ContainerUsage[] =>
        ['main', 'side'].map((container) => ({
          uid: uid as PodUid,
          container,
          atMs: state.atMs,
          windowMs: 30_000,
          cpuNanoCores: 1_250_000,
          memoryBytes: 1000,
        })),
      )
    },
    nodeUsage: async () => {
      if (state.fails === 'host') throw new Error('no /proc')
      return { atMs: state.atMs, windowMs: 30_000, cpuNanoCores: 2e9, memoryBytes: 5000 }
    },
  })
  return { history, state }
}

it('has the figures of the host and of each pod', async () => {
  const { history, state } = begin()
  await history.measure(never)
  state.atMs = 30_000
  state.pods = ['a', 'b']
  await history.measure(never)
  expect(history.reply()).toEqual({
    periodSeconds: 30,
    spanSeconds: 3600,
    times: [0, 30_000],
    node: { cpuMillis: [2000, 2000], memoryBytes: [5000, 5000] },
    pods: [
      { uid: 'a', cpuMillis: [2.5, 2.5], memoryBytes: [2000, 2000] },
      { uid: 'b', cpuMillis: [null, 2.5], memoryBytes: [null, 2000] },
    ],
  })
})

it('goes an hour back, and no further, whatever the clock does', async () => {
  const { history, state } = begin()
  for (let at = 0; at < 300; at += 1) {
    state.atMs = at * 30_000
    await history.measure(never)
  }
  expect(history.reply().times).toHaveLength(120)
  expect(history.reply().times.at(-1)).toBe(299 * 30_000)
  // Asked more often than its period.
  for (let at = 0; at < 300; at += 1) {
    state.atMs += 1
    await history.measure(never)
  }
  expect(history.reply().times).toHaveLength(120)
  state.atMs = 1000
  await history.measure(never)
  expect(history.reply().times).toEqual([1000])
})

it('keeps the figures of the host while the runtime does not answer, and says that it does not', async () => {
  const { history, state } = begin()
  await history.measure(never)
  state.atMs = 30_000
  state.fails = 'containers'
  await expect(history.measure(never)).rejects.toThrow('the runtime is away')
  expect(history.reply()).toMatchObject({ node: { cpuMillis: [2000, 2000] }, pods: [] })
  state.fails = 'host'
  await expect(history.measure(never)).rejects.toThrow('no /proc')
  expect(history.reply().times).toEqual([0, 30_000])
})
