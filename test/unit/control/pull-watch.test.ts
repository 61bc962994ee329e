import { describe, expect, it } from 'vitest'
import { errorCode, errorMessage } from '../../../src/base/errors.ts'
import type { PullProgress } from '../../../src/control/images/image-request.ts'
import { describePull, imageRoom, PullWatch } from '../../../src/control/images/pull-watch.ts'
import type { PullWatchEnv, WatchedPull } from '../../../src/control/images/pull-watch.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const image = '127.0.0.1:5000/app:1'
const manifestText = JSON.stringify({
  config: { digest: 'sha256:c', size: 1024 },
  layers: [{ digest: 'sha256:l', size: 10 * 1024 * 1024 }],
})

/** A pull whose layer has as many bytes as `offsetBytes` says; below 0, its manifest isn't known. */
function watchOf(options: Partial<PullWatchEnv> = {}) {
  const clock = new ManualClock()
  const told: PullProgress[] = []
  const givenUp: unknown[] = []
  const now = {
    offsetBytes: -1,
    isStored: false,
    hasConfig: false,
    presentId: '',
    isBroken: false,
    isUnlisted: false,
    isUnreadable: false,
    agesMs: 0,
    looks: 0,
    answer: Promise.resolve(),
  }
  const watch = new PullWatch({
    content: {
      listIngests: async () => {
        now.looks += 1
        await now.answer
        if (now.isBroken) throw new Error('no answer')
        const isOpen = now.offsetBytes >= 0 && !now.isStored
        return isOpen ? [{ digest: 'sha256:l', offsetBytes: now.offsetBytes }] : []
      },
      listBlobs: async (_registry, repository) => {
        if (repository !== 'app') return []
        if (now.isUnlisted) throw new Error('no list')
        const createdAtMs = clock.wallMs() - now.agesMs
        const manifest = { digest: 'sha256:m', sizeBytes: manifestText.length, createdAtMs }
        const layer = { digest: 'sha256:l', sizeBytes: 10 * 1024 * 1024, createdAtMs }
        const config = { digest: 'sha256:c', sizeBytes: 1024, createdAtMs }
        return [
          ...(now.offsetBytes < 0 ? [] : [manifest]),
          ...(now.hasConfig ? [config] : []),
          ...(now.isStored ? [layer] : []),
        ]
      },
      readBlob: async (digest) => {
        if (!now.isUnreadable) return Buffer.from(digest === 'sha256:m' ? manifestText : 'binary')
        now.isUnreadable = false
        throw new Error('no blob')
      },
    },
    clock,
    isPresent: async (id) => id === now.presentId,
    stallMs: 60_000,
    ...options,
  })
  const begin = (changes: Partial<WatchedPull> = {}) =>
    watch.begin({
      image,
      onProgress: (progress) => told.push(progress),
      giveUp: (error) => givenUp.push(error),
      ...changes,
    })
  /** Steps as short as the clock of a process that isn't stopped has them. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 2000) await clock.advance(2000)
  }
  const last = () => describePull(image, told.at(-1)!)
  return { clock, now, begin, pass, last, givenUp }
}

describe('a pull that is watched', () => {
  it('tells how far it is', async () => {
    const { now, begin, pass, last } = watchOf()
    begin()
    await pass(2000)
    expect(last()).toBe(`pulling image "${image}": looking for its manifest`)
    now.offsetBytes = 3 * 1024 * 1024
    await pass(2000)
    expect(last()).toBe(`pulling image "${image}": 3.0 MiB of 10.0 MiB`)
    now.isStored = true
    await pass(2000)
    expect(last()).toBe(`pulling image "${image}": unpacking 10.0 MiB`)
  })

  it('is given up when it makes no progress for as long as it may', async () => {
    const { now, begin, pass, givenUp } = watchOf()
    begin()
    now.offsetBytes = 1024
    await pass(60_000)
    expect(givenUp).toEqual([])
    await pass(4000)
    expect(givenUp.map((error) => errorCode(error))).toEqual(['PULL_STALLED'])
    expect(errorMessage(givenUp[0])).toBe(
      `the pull made no progress for 1m0s: pulling image "${image}": 1.0 KiB of 10.0 MiB`,
    )
    await pass(120_000)
    expect(givenUp).toHaveLength(1)
  })

  it('is given up when its registry does not answer', async () => {
    const { begin, pass, givenUp } = watchOf()
    begin()
    await pass(64_000)
    expect(givenUp.map((error) => errorCode(error))).toEqual(['PULL_STALLED'])
  })

  it('is given up when its registry does not answer, although another pull goes on', async () => {
    const { now, begin, pass, givenUp } = watchOf()
    begin()
    const hung: unknown[] = []
    begin({ image: '127.0.0.1:5000/none:1', giveUp: (error) => hung.push(error) })
    for (now.offsetBytes = 1; now.offsetBytes < 40; now.offsetBytes += 1) await pass(2000)
    expect(givenUp).toEqual([])
    expect(hung.map((error) => errorCode(error))).toEqual(['PULL_STALLED'])
  })

  it('is never given up while a byte comes now and then', async () => {
    const { now, begin, pass, givenUp } = watchOf()
    begin()
    for (now.offsetBytes = 1; now.offsetBytes < 60; now.offsetBytes += 1) await pass(58_000)
    expect(givenUp).toEqual([])
  })

  it('is never given up while it unpacks', async () => {
    const { now, begin, pass, givenUp } = watchOf()
    begin()
    now.offsetBytes = 1
    now.isStored = true
    await pass(3_600_000)
    expect(givenUp).toEqual([])
  })

  it('is never given up while it unpacks what an earlier one fetched', async () => {
    const { now, begin, pass, last, givenUp } = watchOf()
    now.agesMs = 86_400_000
    now.offsetBytes = 1
    now.isStored = true
    now.hasConfig = true
    begin()
    await pass(3_600_000)
    expect(givenUp).toEqual([])
    expect(last()).toBe(`pulling image "${image}": unpacking 10.0 MiB`)
  })

  it('is given up when its registry does not answer, although the layers of an image are still stored', async () => {
    const { now, begin, pass, givenUp } = watchOf()
    now.agesMs = 86_400_000
    now.offsetBytes = 1
    now.isStored = true
    now.hasConfig = true
    now.presentId = 'sha256:c'
    begin()
    await pass(64_000)
    expect(givenUp.map((error) => errorCode(error))).toEqual(['PULL_STALLED'])
  })

  it('is given up when it does not go on with what an earlier one left half written', async () => {
    const { now, begin, pass, givenUp } = watchOf()
    now.agesMs = 86_400_000
    now.offsetBytes = 1
    now.hasConfig = true
    begin()
    await pass(64_000)
    expect(givenUp.map((error) => errorCode(error))).toEqual(['PULL_STALLED'])
  })

  it('is given up when nothing of it can be seen for three times as long as it may hang', async () => {
    const { now, begin, pass, givenUp } = watchOf()
    begin()
    now.isUnlisted = true
    await pass(180_000)
    expect(givenUp).toEqual([])
    await pass(4000)
    expect(givenUp.map((error) => errorMessage(error))).toEqual([
      `the progress of the pull of image "${image}" could not be read for 3m0s: no list`,
    ])
  })

  it('is judged although another one cannot be seen, or its listener throws', async () => {
    const { now, begin, pass, givenUp } = watchOf()
    begin()
    const hung: unknown[] = []
    begin({
      image: '127.0.0.1:5000/none:1',
      onProgress: () => {
        throw new Error('no listener')
      },
      giveUp: (error) => hung.push(error),
    })
    now.isUnlisted = true
    await pass(64_000)
    expect(givenUp).toEqual([])
    expect(hung.map((error) => errorCode(error))).toEqual(['PULL_STALLED'])
  })

  it('is judged by the looks that go well where every other one fails', async () => {
    const { now, begin, pass, givenUp } = watchOf()
    begin()
    for (let looks = 0; looks < 64; looks += 1) {
      now.isBroken = !now.isBroken
      await pass(2000)
    }
    expect(givenUp.map((error) => errorCode(error))).toEqual(['PULL_STALLED'])
  })

  it('is known although its manifest could not be read at once', async () => {
    const { now, begin, pass, last } = watchOf()
    begin()
    now.offsetBytes = 1024 * 1024
    now.isUnreadable = true
    await pass(4000)
    expect(last()).toBe(`pulling image "${image}": 1.0 MiB of 10.0 MiB`)
  })

  it('is never given up where there is no limit', async () => {
    const { begin, pass, givenUp } = watchOf({ stallMs: 0 })
    begin()
    await pass(600_000)
    expect(givenUp).toEqual([])
  })

  it('is not judged while containerd gives no answer, nor for the time in which podd was stopped', async () => {
    const { clock, now, begin, pass, givenUp } = watchOf()
    begin()
    now.isBroken = true
    await pass(120_000)
    now.isBroken = false
    await pass(50_000)
    expect(givenUp).toEqual([])
    let answer = (): void => {}
    now.answer = new Promise((resolve) => (answer = resolve))
    await pass(2000)
    await clock.advance(3_600_000)
    answer()
    await pass(50_000)
    expect(givenUp).toEqual([])
  })

  it('is given up where what is missing has no room', async () => {
    const asked: number[] = []
    const { now, begin, pass, givenUp } = watchOf({
      checkRoom: async (neededBytes) => {
        asked.push(neededBytes)
        if (neededBytes > 5 * 1024 * 1024) throw new Error('no room')
      },
    })
    begin()
    now.offsetBytes = 8 * 1024 * 1024
    await pass(4000)
    expect(givenUp).toEqual([])
    now.offsetBytes = 1024 * 1024
    await pass(2000)
    expect(givenUp.map((error) => errorMessage(error))).toEqual(['no room'])
    expect(asked).toEqual([2 * 1024 * 1024, 2 * 1024 * 1024, 9 * 1024 * 1024])
  })

  it('is looked at while it is in flight, and at no other time', async () => {
    const { now, begin, pass } = watchOf()
    await pass(20_000)
    expect(now.looks).toBe(0)
    const end = begin()
    await pass(6000)
    expect(now.looks).toBe(3)
    end()
    await pass(20_000)
    expect(now.looks).toBe(3)
  })
})

const mebibyte = 1024 * 1024
const signal = new AbortController().signal

function roomOf(disk: { capacityBytes: number; availableBytes: number }, collect = async () => {}) {
  const clock = new ManualClock()
  const calls = { collected: 0 }
  const collectCounted = () => {
    calls.collected += 1
    return collect()
  }
  const images = { imagesPath: async () => '/images', readDisk: async () => disk }
  const check = imageRoom(images, collectCounted, clock)
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
