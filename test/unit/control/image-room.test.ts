import { describe, expect, it } from 'vitest'
import { errorCode, errorMessage } from '../../../src/base/errors.ts'
import { imageRoom } from '../../../src/control/images/pull-watch.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const mebibyte = 1024 * 1024
const signal = new AbortController().signal

function roomOf(disk: { capacityBytes: number; availableBytes: number }, collect = async () => {}) {
  const clock = new ManualClock()
  const calls = { collected: 0 }
  const check = imageRoom({
    imagesPath: async () => '/images',
    readDisk: async () => disk,
    collect: () => {
      calls.collected += 1
      return collect()
    },
    clock,
  })
  return { clock, calls, check: (neededBytes = 0) => check(neededBytes, signal) }
}

describe('the room for an image', () => {
  it.each([
    [1000, 33, 0],
    [1000, 132, 99],
    [100, 6, 0],
  ])('of %i MiB with %i free is enough for %i', async (capacity, free, needed) => {
    const { check, calls } = roomOf({ capacityBytes: capacity * mebibyte, availableBytes: free * mebibyte })
    await check(needed * mebibyte)
    expect(calls.collected).toBe(0)
  })

  it('is made by removing unused images', async () => {
    const disk = { capacityBytes: 1000 * mebibyte, availableBytes: mebibyte }
    const { check, calls } = roomOf(disk, async () => {
      disk.availableBytes = 200 * mebibyte
    })
    await check()
    expect(calls.collected).toBe(1)
  })

  it('is told where it lacks', async () => {
    const { check } = roomOf({ capacityBytes: 1000 * mebibyte, availableBytes: 12 * mebibyte }, async () => {
      throw new Error('not known yet')
    })
    const error = await check().catch((thrown: unknown) => thrown)
    expect(errorCode(error)).toBe('IMAGE_DISK_FULL')
    expect(errorMessage(error)).toBe(
      'not enough free space for the image in /images: 12.0 MiB (12582912 bytes) free, 32.0 MiB (33554432 bytes) needed',
    )
  })

  it('is waited for a minute at most', async () => {
    const disk = { capacityBytes: 1000 * mebibyte, availableBytes: mebibyte }
    const { check, clock } = roomOf(disk, () => new Promise(() => {}))
    const outcome = check().then(
      () => 'enough',
      (error: unknown) => errorCode(error),
    )
    await clock.advance(59_000)
    disk.availableBytes = 200 * mebibyte
    await clock.advance(1000)
    expect(await outcome).toBe('enough')
  })
})
