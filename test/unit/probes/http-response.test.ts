import { describe, expect, it } from 'vitest'
import { HttpResponseReader } from '../../../src/probes/http-response.ts'
import type { ResponseProgress } from '../../../src/probes/http-response.ts'

/** What comes of a text that arrives in pieces of so many bytes before the connection is closed. */
function read(text: string, pieceBytes: number): ResponseProgress {
  const reader = new HttpResponseReader()
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const progress = reader.push(bytes.subarray(at, at + pieceBytes))
    if (progress.kind !== 'more') return progress
  }
  return reader.end()
}

const sizes = [1, 7, 1_000_000]

function answer(status: number, body: string, location?: string): ResponseProgress {
  return { kind: 'done', response: { status, location, body } }
}

const brokenConnection = 'net/http: HTTP/1.x transport connection broken: '

describe('a response to a probe', () => {
  it.each<[string, string, ResponseProgress]>([
    ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore', answer(200, 'ok')],
    ['without one', 'HTTP/1.1 404 Not Found\r\n\r\nto its end', answer(404, 'to its end')],
    ['of HTTP/1.0, without a reason', 'HTTP/1.0 500\r\n\r\n', answer(500, '')],
    ['with bare line feeds', 'HTTP/1.1 200 OK\nContent-Length:1\n\n.', answer(200, '.')],
    [
      'in chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n',
      answer(200, 'abc0123456789'),
    ],
    [
      'after those that only precede it',
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 No\r\n\r\n',
      answer(204, ''),
    ],
    [
      'that leads elsewhere',
      'HTTP/1.1 302 F\r\nLOCATION:  /x \r\nContent-Length: 0\r\n\r\n',
      answer(302, '', '/x'),
    ],
    ['that never has a body', 'HTTP/1.1 304 N\r\nContent-Length: 5\r\n\r\n', answer(304, '')],
    ['that switches protocols', 'HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n', answer(101, '')],
    [
      'with a field that goes on',
      'HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n',
      answer(200, ''),
    ],
    ['in UTF-8', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\u20ac', answer(200, '\u20ac')],
    [
      'longer than what is read',
      `HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n${'x'.repeat(11_000)}`,
      answer(200, 'x'.repeat(10_240)),
    ],
  ])('%s is read, in whatever pieces it comes', (_, text, expected) => {
    for (const size of sizes) expect(read(text, size)).toEqual(expected)
  })

  it.each([
    ['nothing', '', 'EOF'],
    ['half a head', 'HTTP/1.1 200 OK\r\nX: ', 'unexpected EOF'],
    ['half a body', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab', 'unexpected EOF'],
    ['half a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab', 'unexpected EOF'],
    ['another protocol', '220 mail ESMTP\r\n', `${brokenConnection}malformed HTTP status code "mail"`],
    ['a word', 'hello\r\n', `${brokenConnection}malformed HTTP response "hello"`],
    ['another version', 'HTTP/x 200 OK\r\n', `${brokenConnection}malformed HTTP version "HTTP/x"`],
    [
      'a field without a name',
      'HTTP/1.1 200 OK\r\nwhat\r\n\r\n',
      `${brokenConnection}malformed MIME header line: what`,
    ],
    [
      'no length',
      'HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n',
      `${brokenConnection}bad Content-Length "-1"`,
    ],
    [
      'an unknown coding',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n',
      `${brokenConnection}unsupported transfer encoding: "gzip"`,
    ],
    [
      'a chunk without a length',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
      'invalid byte in chunk length',
    ],
    [
      'a chunk longer than it says',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n',
      'malformed chunked encoding',
    ],
    [
      'a chunk length without an end',
      `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1'.repeat(5000)}`,
      'http: chunk header too long',
    ],
    [
      'fields without an end',
      `HTTP/1.1 200 OK\r\n${'X: x\r\n'.repeat(200_000)}`,
      `${brokenConnection}net/http: server response headers exceeded 1048576 bytes; aborted`,
    ],
  ])('that is %s is told as Go tells it', (_, text, message) => {
    for (const size of text.length > 10_000 ? [65_536] : sizes)
      expect(read(text, size)).toEqual({ kind: 'invalid', message })
  })
})
