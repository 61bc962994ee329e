import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  findImageByName,
  listImageUsers,
  planImageGarbage,
  usedPercent,
} from '../../../../src/decide/node/plan-image-garbage.ts'
import type {
  ImageFacts,
  ImageGarbageFacts,
  ImageGarbageMode,
  ImageGarbagePlan,
  ImageGarbagePolicy,
} from '../../../../src/decide/node/plan-image-garbage.ts'

const minute = 60_000
const day = 24 * 60 * minute
const nowMs = 40 * day
const policy: ImageGarbagePolicy = {
  highThresholdPercent: 85,
  lowThresholdPercent: 80,
  minimumAgeMs: 2 * minute,
  maximumAgeMs: 0,
}
const thresholds: ImageGarbageMode = { kind: 'thresholds' }
const fullDisk = { capacityBytes: 1000, availableBytes: 100 }

function image(id: string, changes: Partial<ImageFacts> = {}): ImageFacts {
  const names = [`registry.test/${id}:1`]
  return { id, names, sizeBytes: 50, pinned: false, firstSeenMs: 0, lastUsedMs: undefined, ...changes }
}

function facts(...images: readonly ImageFacts[]): ImageGarbageFacts {
  return { images, uses: [], disk: fullDisk }
}

const removed = (plan: ImageGarbagePlan): readonly string[] =>
  plan.remove.map(({ image: { id }, reason }) => `${id} ${reason}`)
const kept = (plan: ImageGarbagePlan): readonly string[] =>
  plan.keep.map(({ image: { id }, reason, message }) => `${id} ${reason}: ${message}`)

describe('listImageUsers', () => {
  it('gives all users of each image, by any name or id, each once', () => {
    const images = [
      { id: 'sha256:1', names: ['docker.io/library/web:1', 'docker.io/library/web@sha256:a'] },
      { id: 'sha256:2', names: [] },
    ]
    const uses = [
      { image: 'web:1', by: 'pod a' },
      { image: 'sha256:1', by: 'container a' },
      { image: 'docker.io/library/web:1', by: 'pod a' },
      { image: 'other', by: 'pod b' },
    ]
    expect([...listImageUsers(images, uses)]).toEqual([
      ['sha256:1', ['container a', 'pod a']],
      ['sha256:2', []],
    ])
  })
})

describe('findImageByName', () => {
  const digits = '0123456789abcdef'.repeat(4)
  const images = [
    { id: `sha256:${digits}`, names: ['docker.io/library/web:1'] },
    { id: `sha256:${digits.slice(0, 16)}${'0'.repeat(48)}`, names: ['localhost/db:latest'] },
  ]

  it.each([
    ['web:1', 0],
    ['docker.io/library/web:1', 0],
    ['localhost/db', 1],
    [`sha256:${digits}`, 0],
    [digits, 0],
    [digits.slice(0, 20), 0],
    ['0123456789abcdef00', 1],
    ['0123456789abcdef', undefined],
    ['01234', undefined],
    ['web:2', undefined],
  ])('%s', (name, index) => {
    expect(findImageByName(images, name)).toBe(index === undefined ? undefined : images[index])
  })
})

describe('an image that a CronJob will have', () => {
  const cron = image('cron', { lastUsedMs: nowMs - 20 * day })
  const other = image('other', { lastUsedMs: nowMs - day })
  const given = (disk: ImageGarbageFacts['disk']): ImageGarbageFacts => ({
    images: [cron, other],
    uses: [{ image: 'registry.test/cron:1', by: 'cronjob default/backup', isLater: true }],
    disk,
  })
  const unused = { kind: 'unused', young: true } as const

  it.each<[string, number, ImageGarbagePolicy, ImageGarbageMode, readonly string[]]>([
    [
      'stays while the disk has room, however long ago it was used',
      500,
      { ...policy, maximumAgeMs: 2 * day },
      thresholds,
      [],
    ],
    ['stays where others make room enough', 150, policy, thresholds, ['other space']],
    [
      'goes after all others where the disk is too full',
      100,
      policy,
      thresholds,
      ['other space', 'cron space'],
    ],
    ['stays where somebody has unused ones removed', 500, policy, unused, ['other unused']],
    [
      'goes before any pod does where the disk has no room left',
      10,
      policy,
      { ...unused, later: true },
      ['other unused', 'cron unused'],
    ],
  ])('%s', (_what, availableBytes, by, mode, expected) => {
    const plan = planImageGarbage(given({ capacityBytes: 1000, availableBytes }), by, mode, nowMs)
    expect(removed(plan)).toEqual(expected)
  })
})

describe('planImageGarbage', () => {
  it.each<[string, number, number]>([
    ['nothing', 1000, 0],
    ['84.1 %', 159, 85],
    ['what is kept back for root', 150, 85],
    ['more free than there is', 1500, 0],
    ['all', 0, 100],
  ])('counts a disk with %s used as the kubelet does', (_title, availableBytes, expected) => {
    expect(usedPercent({ capacityBytes: 1000, availableBytes })).toBe(expected)
  })

  it.each<[string, number, readonly string[]]>([
    ['below the high threshold', 160, []],
    ['at it', 150, ['a space']],
    ['above it', 100, ['a space', 'b space']],
    ['full', 0, ['a space', 'b space', 'c space', 'd space']],
  ])('makes room down to the low threshold on a disk %s', (_title, availableBytes, expected) => {
    const disk = { capacityBytes: 1000, availableBytes }
    const plan = planImageGarbage(
      { ...facts(image('a'), image('b'), image('c'), image('d'), image('e')), disk },
      policy,
      thresholds,
      nowMs,
    )
    expect(removed(plan)).toEqual(expected)
    expect(plan.goalBytes).toBe(expected.length === 0 ? undefined : 200)
  })

  it('goes on to the low threshold once it has begun', () => {
    const disk = { capacityBytes: 1000, availableBytes: 170 }
    const begun = { ...facts(image('a'), image('b')), disk, goalBytes: 200 }
    expect(removed(planImageGarbage(begun, policy, thresholds, nowMs))).toEqual(['a space'])
  })

  it('takes those that were never used first, then the least recently used', () => {
    const plan = planImageGarbage(
      {
        ...facts(
          image('recent', { lastUsedMs: nowMs - day }),
          image('old', { lastUsedMs: nowMs - 9 * day }),
          image('never-late', { firstSeenMs: 2 * day }),
          image('never-early', { firstSeenMs: day }),
        ),
        disk: { capacityBytes: 1000, availableBytes: 0 },
      },
      policy,
      thresholds,
      nowMs,
    )
    expect(removed(plan)).toEqual(['never-early space', 'never-late space', 'old space', 'recent space'])
  })

  it('keeps what is needed, pinned or young, and says why', () => {
    const plan = planImageGarbage(
      {
        images: [
          image('by-id'),
          image('by-name', { names: ['docker.io/library/web:latest'] }),
          image('by-digest', { names: [`registry.test/app@sha256:${'0'.repeat(64)}`] }),
          image('pinned', { pinned: true }),
          image('young', { firstSeenMs: nowMs - minute }),
          image('other'),
        ],
        uses: [
          { image: 'by-id', by: 'container default/a main' },
          { image: 'web', by: 'pod default/web' },
          { image: `registry.test/app:3@sha256:${'0'.repeat(64)}`, by: 'pod default/app' },
        ],
        disk: { capacityBytes: 1000, availableBytes: 0 },
      },
      policy,
      thresholds,
      nowMs,
    )
    expect(removed(plan)).toEqual(['other space'])
    expect(kept(plan)).toEqual([
      'by-digest in-use: used by pod default/app',
      'by-id in-use: used by container default/a main',
      'by-name in-use: used by pod default/web',
      'pinned pinned: pinned',
      'young young: first seen 60s ago, less than 2m',
    ])
  })

  it('removes by age whatever the disk, and counts the room that makes', () => {
    const plan = planImageGarbage(
      facts(
        image('never', { firstSeenMs: nowMs - day }),
        image('used', { lastUsedMs: nowMs - 8 * day, sizeBytes: 60 }),
        image('seen', { firstSeenMs: nowMs - 8 * day, sizeBytes: 60 }),
      ),
      { ...policy, maximumAgeMs: 7 * day },
      thresholds,
      nowMs,
    )
    expect(removed(plan)).toEqual(['seen age', 'used age'])
    expect(kept(plan)).toEqual(['never room: unused for 24h; the disk has space for it'])
    expect(plan.remove[0]?.message).toBe('unused for 8d, longer than 7d')
  })

  it.each<[string, boolean, readonly string[]]>([
    ['but for the young ones', false, ['a unused']],
    ['with the young ones', true, ['a unused', 'young unused']],
  ])('removes all unused images on request, %s', (_title, young, expected) => {
    const images = [image('a'), image('young', { firstSeenMs: nowMs }), image('pinned', { pinned: true })]
    const disk = { capacityBytes: 1000, availableBytes: 999 }
    const plan = planImageGarbage({ images, uses: [], disk }, policy, { kind: 'unused', young }, nowMs)
    expect(removed(plan)).toEqual(expected)
    expect(plan.goalBytes).toBeUndefined()
  })

  it('makes no room on a disk without a size', () => {
    const disk = { capacityBytes: 0, availableBytes: 0 }
    expect(planImageGarbage({ ...facts(image('a')), disk }, policy, thresholds, nowMs).remove).toEqual([])
  })

  const anyTime = fc.integer({ min: 0, max: nowMs })
  const anyImage = fc.record({
    id: fc.uuid(),
    names: fc.constantFrom(['a.test/a:1'], ['a.test/b:1', 'a.test/b:2'], ['a.test/c:1'], []),
    sizeBytes: fc.integer({ min: 1, max: 500 }),
    pinned: fc.boolean(),
    firstSeenMs: anyTime,
    lastUsedMs: fc.option(anyTime, { nil: undefined }),
  })
  const anyFacts = fc.record({
    images: fc.uniqueArray(anyImage, { selector: ({ id }) => id, maxLength: 12 }),
    uses: fc
      .subarray(['a.test/a:1', 'a.test/b:2', 'a.test/c'])
      .map((names) => names.map((name) => ({ image: name, by: 'pod default/p' }))),
    disk: fc
      .integer({ min: 0, max: 1000 })
      .map((availableBytes) => ({ capacityBytes: 1000, availableBytes })),
  })
  const anyPolicy = fc
    .tuple(fc.integer({ min: 0, max: 99 }), fc.integer({ min: 1, max: 100 }), fc.constantFrom(0, 7 * day))
    .filter(([low, high]) => low < high)
    .map(([lowThresholdPercent, highThresholdPercent, maximumAgeMs]) => {
      const { minimumAgeMs } = policy
      return { minimumAgeMs, maximumAgeMs, lowThresholdPercent, highThresholdPercent }
    })
  const anyMode = fc.constantFrom<ImageGarbageMode>(
    thresholds,
    { kind: 'unused', young: false },
    { kind: 'unused', young: true },
  )

  it('says something of each image once, and never removes what is needed, pinned or young', () => {
    fc.assert(
      fc.property(anyFacts, anyPolicy, anyMode, (some, limits, mode) => {
        const plan = planImageGarbage(some, limits, mode, nowMs)
        const named = [...plan.remove, ...plan.keep].map((each) => each.image.id)
        expect(named.toSorted()).toEqual(some.images.map(({ id }) => id).toSorted())
        const needed = new Set(some.uses.map(({ image: name }) => (name === 'a.test/c' ? '' : name)))
        for (const { image: gone, reason } of plan.remove) {
          expect(gone.pinned).toBe(false)
          expect(gone.names.some((name) => needed.has(name))).toBe(false)
          const youngestMs = mode.kind === 'unused' && mode.young ? 0 : limits.minimumAgeMs
          expect(nowMs - gone.firstSeenMs).toBeGreaterThanOrEqual(youngestMs)
          expect(reason === 'unused').toBe(mode.kind === 'unused')
        }
      }),
    )
  })

  it('removes no more for space than the goal asks for, and the least recently used', () => {
    fc.assert(
      fc.property(anyFacts, anyPolicy, (some, limits) => {
        const plan = planImageGarbage(some, limits, thresholds, nowMs)
        const forSpace = plan.remove.filter(({ reason }) => reason === 'space')
        if (forSpace.length === 0) return
        const allButLast = plan.remove.slice(0, -1).reduce((sum, each) => sum + each.image.sizeBytes, 0)
        expect(some.disk.availableBytes + allButLast).toBeLessThan(plan.goalBytes ?? 0)
        const last = forSpace.at(-1)?.image.lastUsedMs ?? -1
        const stays = plan.keep.filter(({ reason }) => reason === 'room')
        for (const { image: other } of stays) expect(other.lastUsedMs ?? -1).toBeGreaterThanOrEqual(last)
      }),
    )
  })

  it('knows no time but that between two moments', () => {
    fc.assert(
      fc.property(
        anyFacts,
        anyPolicy,
        anyMode,
        fc.integer({ min: -day, max: day }),
        (some, limits, mode, shift) => {
          const shifted = some.images.map((each) => ({
            ...each,
            firstSeenMs: each.firstSeenMs + shift,
            lastUsedMs: each.lastUsedMs === undefined ? undefined : each.lastUsedMs + shift,
          }))
          const plan = planImageGarbage(some, limits, mode, nowMs)
          const later = planImageGarbage({ ...some, images: shifted }, limits, mode, nowMs + shift)
          expect(removed(later)).toEqual(removed(plan))
          expect(kept(later)).toEqual(kept(plan))
        },
      ),
    )
  })
})
