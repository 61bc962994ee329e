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
    [
      'what is no record as nothing',
      `${t(1)} stdout F one\npanic: no such format\n${t(2)} stdout F two\n`,
      'one\ntwo\n',
    ],
    ['a stream that is none as nothing', `${t(1)} stdlog F one\n`, ''],
    ['a tag that is none as nothing', `${t(1)} stdout X one\n`, ''],
    ['what a power cut left of a block as nothing', `${'\0'.repeat(100)}\n${t(1)} stdout F one\n`, 'one\n'],
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

  it.each([
    ['2026-01-01T00:00:01Z', '2026-01-01T00:00:01.000000000Z'],
    ['2026-01-01T00:00:01.5Z', '2026-01-01T00:00:01.500000000Z'],
    ['2026-01-01T02:00:01.12345678+02:00', '2026-01-01T02:00:01.123456780+02:00'],
  ])('gives the time %s all its digits', (time, shown) => {
    expect(decode(`${time} stdout F a\n`, { timestamps: true, sinceMs: undefined })).toBe(`${shown} a\n`)
  })

  it.each([
    ['2026-01-01T00:00:02.499999999Z', false],
    ['2026-01-01T00:00:02.5Z', true],
    ['2026-01-01T00:00:02.51Z', true],
    ['2026-01-01T00:00:03Z', true],
    ['2026-01-01T02:00:02.4+02:00', false],
    ['2026-01-01T02:00:02.5+02:00', true],
    ['2025-12-31T22:00:03-02:00', true],
    ['1970-01-01T00:00:00Z', false],
    ['9999-01-01T00:00:00Z', true],
  ])('compares the time %s with half past two seconds', (time, isNew) => {
    const sinceMs = Date.parse('2026-01-01T00:00:02.500Z')
    expect(decode(`${time} stdout F a\n`, { timestamps: false, sinceMs })).toBe(isNew ? 'a\n' : '')
  })

  it.each([[-1e18], [0], [1e18]])('takes a moment out of any calendar (%d)', (sinceMs) => {
    expect(decode(`${t(1)} stdout F a\n`, { timestamps: false, sinceMs })).toBe(sinceMs > 0 ? '' : 'a\n')
  })

  it('looks at each line on its own where the clock was set back', () => {
    const log = [5, 1, 6, 2, 7].map((second) => `${t(second)} stdout F ${second}\n`).join('')
    const sinceMs = Date.parse('2026-01-01T00:00:04Z')
    expect(decode(log, { timestamps: false, sinceMs })).toBe('5\n6\n7\n')
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

  it.each([
    ['F', '\n'],
    ['P', 'and more\n'],
  ])('reads a record of megabytes in pieces (%s)', (tag, end) => {
    const text = 'x'.repeat(5 * 1024 * 1024)
    const rest = tag === 'P' ? `${t(2)} stdout F and more\n` : ''
    const log = Buffer.from(`${t(1)} stdout ${tag} ${text}\n${rest}${t(3)} stderr F next\n`)
    const decoder = new LogDecoder({ timestamps: true })
    const out: string[] = []
    for (let at = 0; at < log.length; at += 65_536)
      out.push(decoder.write(log.subarray(at, at + 65_536)).toString())
    out.push(decoder.end().toString())
    expect(out.join('') === `${t(1)} ${text}${end}${t(3)} next\n`).toBe(true)
    expect(Math.max(...out.map(({ length }) => length))).toBeLessThan(2 * 1024 * 1024)
    expect(decoder.completedLines).toBe(2)
  })

  it('leaves out megabytes that are no record, and reads what follows', () => {
    const log = Buffer.from(`${'x'.repeat(3 * 1024 * 1024)}\n${t(3)} stderr F next\n`)
    const decoder = new LogDecoder({ timestamps: false })
    let out = ''
    for (let at = 0; at < log.length; at += 65_536)
      out += decoder.write(log.subarray(at, at + 65_536)).toString()
    expect(out + decoder.end().toString()).toBe('next\n')
  })

  it('passes on the beginning of a line, once', () => {
    const decoder = new LogDecoder({ timestamps: true })
    const write = (text: string): string => decoder.write(Buffer.from(text)).toString()
    expect(write(`${t(1)} stdout P one \n${t(2)} stdout P two \n`)).toBe('')
    expect(decoder.isWithinLine).toBe(true)
    expect(decoder.passOn().toString()).toBe(`${t(1)} one two `)
    expect(decoder.isWithinLine).toBe(false)
    expect(decoder.passOn().toString()).toBe('')
    expect(write(`${t(3)} stdout P three \n`)).toBe('')
    expect(decoder.passOn().toString()).toBe('three ')
    expect(write(`${t(4)} stdout F four\n`)).toBe('four\n')
    expect(decoder.end().toString()).toBe('')
  })

  it('ends a line that was passed on where another stream says something', () => {
    const decoder = new LogDecoder({ timestamps: true })
    const write = (text: string): string => decoder.write(Buffer.from(text)).toString()
    write(`${t(1)} stdout P one \n`)
    decoder.passOn()
    expect(write(`${t(2)} stderr F err\n`)).toBe(`\n${t(2)} err\n`)
    expect(write(`${t(3)} stdout P two \n${t(4)} stdout F three\n`)).toBe(`${t(3)} two three\n`)
  })

  it('loses nothing of a line that was passed on where another stream says something', () => {
    const decoder = new LogDecoder({ timestamps: false })
    const write = (text: string): string => decoder.write(Buffer.from(text)).toString()
    write(`${t(1)} stdout P one \n`)
    decoder.passOn()
    expect(write(`${t(2)} stdout P two \n${t(3)} stderr F err\n${t(4)} stdout F three\n`)).toBe(
      'two \nerr\nthree\n',
    )
  })

  it('loses nothing of a record that was passed on before its end', () => {
    const decoder = new LogDecoder({ timestamps: false })
    const write = (text: string): string => decoder.write(Buffer.from(text)).toString()
    const long = 'x'.repeat(1_100_000)
    write(`${t(1)} stdout P one \n${t(2)} stderr P err\n`)
    let text = write(`${t(3)} stdout P ${long}`) + decoder.passOn().toString()
    text += write(`two\n`) + write(`${t(4)} stdout F three\n`) + decoder.end().toString()
    expect(text.replaceAll(long, 'long ').replaceAll('\n', '|')).toBe('one long |err|twothree|')
  })

  it('passes nothing on of lines that are left out', () => {
    const old = new LogDecoder({ timestamps: false, sinceMs: Date.parse(t(5)) })
    old.write(Buffer.from(`${t(1)} stdout P old\n`))
    const surplus = new LogDecoder({ timestamps: false })
    surplus.skip(1)
    surplus.write(Buffer.from(`${t(1)} stdout P old\n`))
    for (const decoder of [old, surplus]) {
      expect(decoder.isWithinLine).toBe(false)
      expect(decoder.passOn().toString()).toBe('')
    }
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
