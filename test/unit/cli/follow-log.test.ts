import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LogPosition, mergeLines } from '../../../src/cli/client/follow-log.ts'

const timeOf = (nanoseconds: number): string => `2026-01-01T00:00:00.${String(nanoseconds).padStart(9, '0')}Z`

interface Line {
  readonly nanoseconds: number
  readonly text: string
}

const lines = fc
  .array(
    fc.record({ step: fc.integer({ min: 0, max: 400_000 }), text: fc.stringMatching(/^[a-c ]{0,5}$/u) }),
    {
      minLength: 1,
      maxLength: 30,
    },
  )
  .map((steps): readonly Line[] => {
    let nanoseconds = 0
    return steps.map(({ step, text }) => ({ nanoseconds: (nanoseconds += step % 3 === 0 ? 0 : step), text }))
  })

const logOf = (all: readonly Line[]): Buffer =>
  Buffer.from(all.map(({ nanoseconds, text }) => `${timeOf(nanoseconds)} ${text}\n`).join(''))

/** What a daemon gives from a time on: its milliseconds count. */
function since(all: readonly Line[], time: string): readonly Line[] {
  const nanoseconds = Number(/\.(\d+)Z$/u.exec(time)?.[1])
  return all.filter((line) => line.nanoseconds >= Math.floor(nanoseconds / 1e6) * 1e6)
}

describe('a log that breaks off anywhere and goes on', () => {
  it.each([true, false])('is printed once, with times %s', (showsTimes) => {
    fc.assert(
      fc.property(
        lines,
        fc.array(fc.nat(), { maxLength: 5 }),
        fc.integer({ min: 1, max: 9 }),
        (all, cuts, step) => {
          const position = new LogPosition(showsTimes)
          let printed = ''
          const feed = (bytes: Buffer): void => {
            for (let at = 0; at < bytes.length; at += step)
              printed += position.push(bytes.subarray(at, at + step)).toString()
          }
          let rest = logOf(all)
          for (const cut of cuts) {
            feed(rest.subarray(0, cut % (rest.length + 1)))
            position.resume()
            rest = logOf(position.time === undefined ? all : since(all, position.time))
          }
          feed(rest)
          expect(printed).toBe(
            all
              .map(({ nanoseconds, text }) => `${showsTimes ? `${timeOf(nanoseconds)} ` : ''}${text}\n`)
              .join(''),
          )
        },
      ),
      { numRuns: 300 },
    )
  })
})

it('lets pass what bears no time', () => {
  const position = new LogPosition(false)
  expect(position.push(Buffer.from('unreadable\n2026-01-01T00:00:00Z text\n')).toString()).toBe(
    'unreadable\ntext\n',
  )
})

async function* chunks(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text)
}

async function merge(
  inTurn: boolean,
  ...streams: (readonly [string, AsyncIterable<Uint8Array>])[]
): Promise<string> {
  let text = ''
  for await (const chunk of mergeLines(
    streams.map(([prefix, chunks]) => ({ prefix, chunks })),
    { inTurn },
  ))
    text += Buffer.from(chunk).toString()
  return text
}

describe('mergeLines', () => {
  it('puts the prefix before each line, whatever the chunks', async () => {
    expect(await merge(true, ['a ', chunks('on', 'e\ntwo\nth', 'ree')])).toBe('a one\na two\na three\n')
  })

  it('gives one stream after the other', async () => {
    expect(await merge(true, ['a ', chunks('1\n', '2\n')], ['b ', chunks('3\n')])).toBe('a 1\na 2\nb 3\n')
  })

  it('gives whole lines of all at once', async () => {
    const text = await merge(false, ['a ', chunks('1\n', '2', '3\n')], ['b ', chunks('4', '5\n', '6\n')])
    expect(text.split('\n').sort()).toEqual(['', 'a 1', 'a 23', 'b 45', 'b 6'])
  })

  it('fails when one fails', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('1\n')
      throw new Error('gone')
    }
    await expect(merge(false, ['a ', broken()], ['b ', chunks('2\n')])).rejects.toThrow('gone')
  })
})
