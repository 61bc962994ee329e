import { describe, expect, it } from 'vitest'
import { LogDecoder } from '../../../src/logs/log-decoder.ts'

const t = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, '0')}.123456789Z`

function decode(
  text: string,
  options = { timestamps: false, sinceMs: undefined as number | undefined },
  skip = 0,
) {
  const decoder = new LogDecoder(options)
  decoder.skip(skip)
  return decoder.write(Buffer.from(text)).toString() + decoder.end().toString()
}

describe('LogDecoder', () => {
  it.each<[what: string, log: string, text: string]>([
    ['full lines', `${t(1)} stdout F one\n${t(2)} stderr F two\n`, 'one\ntwo\n'],
    ['an empty line', `${t(1)} stdout F \n`, '\n'],
    ['a line with spaces', `${t(1)} stdout F  a  b \n`, ' a  b \n'],
    [
      'joined parts',
      `${t(1)} stdout P one \n${t(2)} stdout P two \n${t(3)} stdout F three\n`,
      'one two three\n',
    ],
    [
      'parts of two streams, each on its own',
      `${t(1)} stdout P out-\n${t(1)} stderr P err-\n${t(2)} stdout F 1\n${t(3)} stderr F 2\n`,
      'out-1\nerr-2\n',
    ],
    ['tags after the first', `${t(1)} stdout F:x one\n`, 'one\n'],
    ['what is no record', 'panic: no such format\n', 'panic: no such format\n'],
    ['a part without an end', `${t(1)} stdout P never\n`, 'never'],
    ['a record that was cut off', `${t(1)} stdout F half`, 'half\n'],
    ['text beyond ASCII', `${t(1)} stdout F grüße 🚀\n`, 'grüße 🚀\n'],
  ])('reads %s', (_, log, text) => {
    expect(decode(log)).toBe(text)
  })

  it('gives the same whatever the chunks', () => {
    const log = `${t(1)} stdout P a\n${t(1)} stderr F grüße\n${t(2)} stdout F b\n`
    const whole = decode(log, { timestamps: true, sinceMs: undefined })
    for (let size = 1; size < 20; size += 1) {
      const decoder = new LogDecoder({ timestamps: true })
      let out = ''
      const bytes = Buffer.from(log)
      const chunks: Buffer[] = []
      for (let at = 0; at < bytes.length; at += size)
        chunks.push(decoder.write(bytes.subarray(at, at + size)))
      out = Buffer.concat([...chunks, decoder.end()]).toString()
      expect(out).toBe(whole)
    }
  })

  it('puts the time of the first part before a line', () => {
    expect(decode(`${t(1)} stdout P a\n${t(2)} stdout F b\n`, { timestamps: true, sinceMs: undefined })).toBe(
      `${t(1)} ab\n`,
    )
  })

  it('leaves out what is older, the parts of an old line included', () => {
    const log = `${t(1)} stdout F old\n${t(1)} stdout P old-\n${t(5)} stdout F end\n${t(5)} stderr F new\n`
    const sinceMs = Date.parse('2026-01-01T00:00:02Z')
    expect(decode(log, { timestamps: false, sinceMs })).toBe('new\n')
  })

  it('skips lines in the order in which they end', () => {
    const log = `${t(1)} stdout P out-\n${t(1)} stderr F err\n${t(2)} stdout F put\n`
    expect(decode(log, undefined, 1)).toBe('out-put\n')
  })

  it('counts what is older among the lines it skips', () => {
    const log = `${t(1)} stdout F old\n${t(1)} stdout P old-\n${t(1)} stdout F er\n${t(5)} stdout F new\n${t(6)} stdout F er\n`
    const sinceMs = Date.parse('2026-01-01T00:00:02Z')
    expect(decode(log, { timestamps: false, sinceMs }, 2)).toBe('new\ner\n')
    expect(decode(log, { timestamps: false, sinceMs }, 3)).toBe('er\n')
  })

  it('gives a very long line out in pieces, but whole', () => {
    const part = 'x'.repeat(16 * 1024)
    const decoder = new LogDecoder({ timestamps: true })
    let text = ''
    for (let index = 0; index < 40; index += 1)
      text += decoder.write(Buffer.from(`${t(1)} stdout P ${part}\n`)).toString()
    expect(text.length).toBeGreaterThan(0)
    text += decoder.write(Buffer.from(`${t(1)} stdout F end\n`)).toString()
    expect(text).toBe(`${t(1)} ${part.repeat(40)}end\n`)
  })
})
