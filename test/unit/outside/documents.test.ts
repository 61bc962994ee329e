import { describe, expect, it } from 'vitest'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { hardDocuments } from '../../support/hard-documents.ts'
import { slowness } from '../../support/slowness.ts'
import { cpuMs } from '../../support/thread-time.ts'

const largeBytes = 48 * 1024
/** Text four times as long may take four times as long, and some more; a square would be sixteen times. */
const growth = 4
const maxGrowth = 9
/** Shorter times say nothing. */
const noiseMs = 10 * slowness

describe('documents are decoded in time that grows with their size', () => {
  it.each(Object.entries(hardDocuments))('%s', async (_, make) => {
    const [small, large] = [make(largeBytes / growth), make(largeBytes)]
    let best = Number.POSITIVE_INFINITY
    for (let left = 10; left > 0 && best >= 1; left -= 1) {
      const smallMs = await cpuMs(() => decodeDocuments(small, { path: 'a' }))
      const largeMs = await cpuMs(() => decodeDocuments(large, { path: 'a' }))
      best = Math.min(best, largeMs / Math.max(noiseMs, smallMs * maxGrowth))
    }
    expect(best).toBeLessThan(1)
  })

  it('30,000 unknown fields', async () => {
    const text = Array.from({ length: 30_000 }, (_, index) => `unknownField${index}: 1\n`).join('')
    const before = process.threadCpuUsage()
    const { problems } = await decodeDocuments(`apiVersion: v1\nkind: Pod\n${text}`, { path: 'a' })
    const { user } = process.threadCpuUsage(before)
    expect(problems).toHaveLength(101)
    expect(problems.at(-1)?.message).toBe('and 29902 more')
    expect(user / 1000).toBeLessThan(5000 * slowness)
  })
})
