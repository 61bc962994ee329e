import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { ImageUses } from '../../../src/control/images/image-uses.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const hour = 3_600_000
const use = [{ image: 'a.test/used:1', by: 'pod default/p' }]
const image = (name: string) => ({ id: name, names: [`a.test/${name}:1`], sizeBytes: 1, pinned: false })

function rig() {
  const clock = new ManualClock()
  const writes: string[] = []
  const file = {
    path: '/image-uses.json',
    read: async () => writes.at(-1),
    write: async (text: string) => void writes.push(text),
  }
  const open = () => new ImageUses(file, () => undefined, clock, silentLogger)
  return { clock, writes, file, open }
}

/** By id, how long ago each was seen first and used last. */
async function ages(uses: ImageUses, clock: ManualClock, ...names: readonly string[]) {
  const nowMs = clock.monotonicMs()
  const facts = await uses.note(
    names.map((name) => image(name)),
    [],
  )
  return facts.map(({ id, firstSeenMs, lastUsedMs }) => [
    id,
    nowMs - firstSeenMs,
    lastUsedMs === undefined ? undefined : nowMs - lastUsedMs,
  ])
}

describe('ImageUses', () => {
  it('knows since when an image is there, and when it was last in use', async () => {
    const { clock, open } = rig()
    const uses = open()
    await uses.note([image('used'), image('other')], use)
    await clock.advance(hour)
    expect(await ages(uses, clock, 'used', 'other', 'new')).toEqual([
      ['used', hour, hour],
      ['other', hour, undefined],
      ['new', 0, undefined],
    ])
  })

  it('forgets an image that is gone', async () => {
    const { clock, open } = rig()
    const uses = open()
    await uses.note([image('a')], [])
    await clock.advance(hour)
    await uses.note([], [])
    expect(await ages(uses, clock, 'a')).toEqual([['a', 0, undefined]])
  })

  it.each([
    ['years ahead', 10 * 365 * 24 * hour],
    ['years back', -10 * 365 * 24 * hour],
  ])('outlives podd with the times it had, also where the wall clock is set %s', async (_title, shiftMs) => {
    const { clock, open } = rig()
    const uses = open()
    await uses.note([image('used'), image('other')], use)
    await clock.advance(2 * hour)
    await uses.note([image('used'), image('other')], [])
    clock.setWall(clock.wallMs() + shiftMs)
    expect(await ages(open(), clock, 'used', 'other')).toEqual([
      ['used', 2 * hour, 2 * hour],
      ['other', 2 * hour, undefined],
    ])
  })

  it('writes when something else is there or in use, and else once an hour', async () => {
    const { clock, writes, open } = rig()
    const uses = open()
    const look = async (names: readonly string[], used = use): Promise<number> => {
      await uses.note(
        names.map((name) => image(name)),
        used,
      )
      return writes.length
    }
    expect(await look(['used'])).toBe(1)
    expect(await look(['used'])).toBe(1)
    expect(await look(['used', 'other'])).toBe(2)
    expect(await look(['used', 'other'], [])).toBe(3)
    await clock.advance(hour)
    expect(await look(['used', 'other'], [])).toBe(4)
  })

  it.each(['', '[]', '{"images": {"a": 1, "b": {"seenForMs": "x"}}}', '{"images": 3}', '{{'])(
    'begins as new with the file %j',
    async (text) => {
      const { clock, writes, open } = rig()
      writes.push(text)
      expect(await ages(open(), clock, 'a', 'b')).toEqual([
        ['a', 0, undefined],
        ['b', 0, undefined],
      ])
    },
  )

  it('goes on where the file cannot be written', async () => {
    const { clock, file } = rig()
    const full = { ...file, write: () => Promise.reject(new Error('no space left on device')) }
    const uses = new ImageUses(full, () => undefined, clock, silentLogger)
    expect(await ages(uses, clock, 'a')).toEqual([['a', 0, undefined]])
  })
})
