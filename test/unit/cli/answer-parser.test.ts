import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AnswerParser } from '../../../src/cli/client/answer-parser.ts'

/** What comes of bytes that arrive in these pieces, after which the connection ends. */
function parse(pieces: readonly (string | Buffer)[]): {
  readonly statusCode: number | undefined
  readonly body: string
  readonly isWhole: boolean
  readonly error: string | undefined
} {
  let statusCode: number | undefined
  let ends = 0
  const body: Buffer[] = []
  const parser = new AnswerParser({
    head: (code) => (statusCode = code),
    body: (bytes) => body.push(bytes),
    end: () => (ends += 1),
  })
  let error: string | undefined
  try {
    for (const piece of pieces) parser.push(Buffer.from(piece))
    parser.close()
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown)
  }
  expect(ends).toBeLessThan(2)
  return { statusCode, body: Buffer.concat(body).toString('utf8'), isWhole: ends === 1, error }
}

const answers: readonly (readonly [what: string, text: string, statusCode: number, body: string])[] = [
  ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":1}', 200, '{"a":1}'],
  ['no body', 'HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n', 404, ''],
  ['nothing to say', 'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n', 204, ''],
  [
    'chunks',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=1\r\n, everyone\r\n0\r\n\r\n',
    200,
    'hello, everyone',
  ],
  [
    'chunks and trailers',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nok\r\n00\r\nX: 1\r\nY: 2\r\n\r\n',
    200,
    'ok',
  ],
  ['the end of the connection', 'HTTP/1.0 200 OK\r\n\r\nall of it', 200, 'all of it'],
  [
    'an interim answer',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok',
    201,
    'ok',
  ],
  ['no reason', 'HTTP/1.1 500 \r\nContent-Length: 1\r\n\r\nx', 500, 'x'],
]

describe('an answer', () => {
  it.each(answers)('with %s is read however it is cut', (_, text, statusCode, body) => {
    const whole = { statusCode, body, isWhole: true, error: undefined }
    expect(parse([text])).toEqual(whole)
    expect(parse(text.split(''))).toEqual(whole)
    for (let at = 0; at < text.length; at += 1)
      expect(parse([text.slice(0, at), text.slice(at)])).toEqual(whole)
  })

  it.each(answers.filter(([what]) => what !== 'the end of the connection'))(
    'with %s that breaks off is not taken for whole',
    (_, text) => {
      for (let at = 0; at < text.length; at += 1)
        expect(parse([text.slice(0, at)])).toMatchObject({
          isWhole: false,
          error: 'it ended before the answer did',
        })
    },
  )

  it('keeps its bytes, also where a character is cut', () => {
    const bytes = Buffer.from('h\u{E9}llo \u{1F600}')
    const head = `HTTP/1.1 200 OK\r\nContent-Length: ${bytes.length}\r\n\r\n`
    for (let at = 0; at <= bytes.length; at += 1)
      expect(parse([head, bytes.subarray(0, at), bytes.subarray(at)])).toMatchObject({
        body: bytes.toString(),
        isWhole: true,
      })
  })

  it.each([
    ['SSH-2.0-x\r\n\r\n'],
    ['HTTP/2 200 OK\r\n\r\n'],
    ['HTTP/1.1 20 OK\r\n\r\n'],
    ['HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n'],
    ['HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\nx'],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n'],
    [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(2000)}`],
    [`HTTP/1.1 200 OK\r\nA: ${'x'.repeat(70_000)}`],
  ])('is refused: %.60s', (text) => {
    expect(parse([text])).toMatchObject({ isWhole: false, error: 'it does not carry HTTP' })
  })

  it('is read or refused, whatever arrives', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 10 }), (pieces) => {
        const { isWhole, error } = parse(pieces.map((piece) => Buffer.from(piece)))
        expect(isWhole).toBe(error === undefined)
      }),
    )
  })
})
