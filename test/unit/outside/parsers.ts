import { escapeControls, escapeLine, nearestName } from '../../../src/base/text.ts'
import { parseDuration } from '../../../src/config/option-type.ts'
import { makeExecProcess } from '../../../src/runtime/containerd/exec-process.ts'
import { parseLogErrors } from '../../../src/runtime/containerd/start.ts'
import { parseMountInfo } from '../../../src/host/mounts.ts'
import { LogDecoder } from '../../../src/logs/log-decoder.ts'
import { formatFieldPath } from '../../../src/pod/schema/issues.ts'
import { parseImageName } from '../../../src/pod/values/image-name.ts'
import { resolvePlain } from '../../../src/pod/decode/yaml.ts'
import { parseQuantity } from '../../../src/pod/values/quantity.ts'
import { readJsonDocument } from '../../../src/pod/decode/read-documents.ts'
import { SpdyDecoder, encodeDataHead } from '../../../src/runtime/spdy-session.ts'
import * as rules from '../../../src/pod/validation/name-rules.ts'
import { buildHttpRequest } from '../../../src/probes/http-probe.ts'
import { isBlank } from '../../../src/sources/http/http-source.ts'
import { parseResolvConf } from '../../../src/translate/network.ts'
import { parseEnvFile } from '../../../src/translate/resolve-environment.ts'
import { expandReferences } from '../../../src/translate/environment.ts'
import { computeSubPath } from '../../../src/translate/mounts.ts'

/** Something that reads what comes from outside, and what is hardest for it. */
export interface OutsideParser {
  readonly name: string
  /** The most that comes at once, in bytes. */
  readonly maxBytes: number
  /** Texts of about so many bytes. */
  readonly texts: readonly ((bytes: number) => string)[]
  readonly read: (text: string) => unknown
}

const KiB = 1024
const MiB = 1024 * KiB

const repeat =
  (unit: string, head = '', tail = '') =>
  (bytes: number): string =>
    `${head}${unit.repeat(Math.max(1, Math.floor(bytes / unit.length)))}${tail}`

/** What any reader of words may choke on. */
const anyWords = [
  'a',
  'a-',
  'a.',
  '-',
  '.',
  '/',
  'a/',
  ':',
  '0',
  '1_',
  ' ',
  '\\',
  '"',
  '(',
  '$',
  'é',
  '\n',
].flatMap((unit) => [repeat(unit), repeat(unit, 'a', '!')])

const httpGet = { port: 80, host: '', scheme: 'HTTP' as const }
const target = { podIps: ['10.0.0.1'], ports: [] }

export const outsideParsers: readonly OutsideParser[] = [
  {
    name: 'an env file',
    maxBytes: MiB,
    texts: [
      repeat('A\n', "KEY='"),
      repeat("A='1'\n"),
      repeat("A='1\n'"),
      repeat(' '),
      repeat('\n'),
      repeat('#\n'),
      repeat('=\n'),
      repeat("'"),
      repeat('\r\n', "A='", "'"),
      repeat('A'),
    ],
    read: parseEnvFile,
  },
  {
    name: 'references to variables',
    maxBytes: 128 * KiB,
    texts: [
      repeat('$('),
      repeat('$('),
      repeat('$'),
      repeat('$(A)'),
      repeat('$(', '', ')'),
      repeat(')'),
      repeat('$$('),
    ],
    read: (text) => expandReferences(text, new Map([['A', 'a']]), 2 * MiB),
  },
  {
    name: 'a subPathExpr',
    maxBytes: 64 * KiB,
    texts: [repeat('$('), repeat('$$'), repeat('a/'), repeat('$(A)')],
    read: (subPathExpr) => quietly(() => computeSubPath({ subPathExpr }, new Map([['A', 'a']]))),
  },
  {
    name: 'an answer that may be blank',
    maxBytes: 64 * KiB,
    texts: [
      repeat(' ', '', 'x'),
      repeat('--- '),
      repeat('---\n'),
      repeat('\t'),
      repeat('null '),
      repeat('~\n'),
      repeat('\r'),
    ],
    read: (text) => isBlank(Buffer.from(text)),
  },
  {
    name: 'a JSON document',
    maxBytes: 128 * KiB,
    texts: [
      repeat(' ', '{', 'x'),
      repeat('\\\\', '{"a":"', '"}'),
      repeat('\\"', '{"a":"', '"}'),
      repeat('"a" ', '{"a":["b",', '"c"]}'),
      repeat('[', '{"a":'),
    ],
    read: readJsonDocument,
  },
  { name: 'a plain scalar', maxBytes: 256 * KiB, texts: anyWords, read: resolvePlain },
  { name: 'a quantity', maxBytes: 256 * KiB, texts: anyWords, read: parseQuantity },
  {
    name: 'a duration',
    maxBytes: 64 * KiB,
    texts: [...anyWords, repeat('1s'), repeat('1s', '', 'x')],
    read: (text) => quietly(() => parseDuration(text)),
  },
  {
    name: 'the name of an image',
    maxBytes: 256 * KiB,
    texts: [...anyWords, repeat('a__'), repeat('A.', '', '/b'), repeat('f', 'a@sha256:')],
    read: parseImageName,
  },
  {
    name: 'the name of a field',
    maxBytes: 256 * KiB,
    texts: anyWords,
    read: (text) => formatFieldPath(['a', text]),
  },
  {
    name: 'a misspelled name',
    maxBytes: 256 * KiB,
    texts: anyWords,
    read: (text) => nearestName(text, ['containers', 'volumes', 'x'.repeat(60)]),
  },
  ...Object.entries(rules).map(([name, rule]) => ({
    name: `the rule ${name}`,
    maxBytes: 256 * KiB,
    texts: anyWords,
    read: rule,
  })),
  {
    name: 'text for a terminal',
    maxBytes: 64 * KiB,
    texts: [...anyWords, repeat('\u{1b}'), repeat('\u{202e}')],
    read: (text) => [escapeControls(text), escapeLine(text)],
  },
  {
    name: 'the path of a probe',
    maxBytes: 256 * KiB,
    texts: [...anyWords, repeat('#'), repeat('a', '', '://')],
    read: (path) => buildHttpRequest({ ...httpGet, path, httpHeaders: [] }, target, 'podd'),
  },
  {
    name: 'the headers of a probe',
    maxBytes: 64 * KiB,
    texts: [repeat('user-agent\n'), repeat('accept\n'), repeat('host\n')],
    read: (text) => {
      const httpHeaders = text.split('\n').map((name) => ({ name, value: '' }))
      return buildHttpRequest({ ...httpGet, path: '/', httpHeaders }, target, 'podd')
    },
  },
  {
    name: 'a resolv.conf',
    maxBytes: 256 * KiB,
    texts: [...anyWords, repeat('search a\n'), repeat(' a', 'search'), repeat('options a\n')],
    read: parseResolvConf,
  },
  {
    name: 'the mounts of the host',
    maxBytes: 256 * KiB,
    texts: [...anyWords, repeat('1 1 0:1 / /a rw - a a a\n'), repeat('\\040', '1 1 0:1 / ', ' rw - a a a')],
    read: parseMountInfo,
  },
  {
    name: 'the log of containerd',
    maxBytes: 64 * KiB,
    texts: [
      ...anyWords,
      repeat(' msg="', 'level=error '),
      repeat('\\"', 'level=error msg="'),
      repeat('level=error \n'),
    ],
    read: parseLogErrors,
  },
  {
    name: 'a log',
    maxBytes: 64 * KiB,
    texts: [
      ...anyWords,
      repeat('t stdout P a\n'),
      repeat('t stdout F a\n'),
      repeat('t stdout P'),
      repeat('t stdout P a\nt stderr P b\n'),
    ],
    read: (text) => readLog(Buffer.from(text), text.length),
  },
  {
    name: 'a log that comes in small pieces',
    maxBytes: 64 * KiB,
    texts: [repeat('a'), repeat('t stdout P a\n'), repeat('\n')],
    read: (text) => readLog(Buffer.from(text), 16),
  },
  {
    name: 'a SPDY frame that comes in pieces',
    maxBytes: 64 * KiB,
    texts: [repeat('a')],
    read: (text) => {
      const decoder = new SpdyDecoder()
      const bytes = Buffer.concat([encodeDataHead(1, text.length, false), Buffer.from(text)])
      return pieces(bytes, 4).flatMap((piece) => decoder.push(piece))
    },
  },
  {
    name: 'many small SPDY frames',
    maxBytes: 64 * KiB,
    texts: [repeat('\0\0\0\u0001\0\0\0\0')],
    read: (text) => quietly(() => new SpdyDecoder().push(Buffer.from(text))),
  },
  {
    name: 'the spec of a container',
    maxBytes: 512 * KiB,
    texts: [
      repeat('\\"', '{"process":{"env":["', '"]}}'),
      repeat('1', '{"process":{"limit":', '}}'),
      repeat('1', '{"process":{"limit":', '.5}}'),
      repeat('\\"', '{"process":{"env":["'),
    ],
    read: (text) => quietly(() => makeExecProcess(text, { command: ['a'], terminal: true })),
  },
]

function readLog(bytes: Buffer, pieceBytes: number): number {
  const decoder = new LogDecoder({ timestamps: true })
  const shown = pieces(bytes, pieceBytes).map((piece) => decoder.write(piece).length)
  return shown.reduce((sum, length) => sum + length, decoder.end().length)
}

function pieces(bytes: Buffer, pieceBytes: number): readonly Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, index) =>
    bytes.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  )
}

function quietly(read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    return error
  }
}
