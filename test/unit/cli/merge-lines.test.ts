import { describe, expect, it } from 'vitest'
import { mergeLines } from '../../../src/cli/client/follow-log.ts'

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
