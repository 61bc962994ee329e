import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  channels,
  chooseProtocol,
  commandProtocols,
  decodeMessage,
  encodeMessage,
  formatOutcome,
  formatTerminalSize,
  parseOutcome,
  parseTerminalSize,
} from '../../../src/api/remote-command.ts'
import type { Channel } from '../../../src/api/remote-command.ts'

const names = Object.keys(channels) as Channel[]

describe('messages', () => {
  it('come out as they went in', () => {
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.uint8Array({ maxLength: 40 }), (channel, payload) => {
        const message = decodeMessage(encodeMessage(channel, payload))
        expect({ ...message, payload: new Uint8Array(message.payload) }).toEqual({ channel, payload })
      }),
      { numRuns: 60 },
    )
  })

  it.each([
    ['text', '\u0000abc', 'stdin', 'abc'],
    ['of an unknown channel', Buffer.from([9, 65]), undefined, 'A'],
    ['empty', Buffer.alloc(0), undefined, ''],
  ])('%s are taken', (_title, message, channel, payload) => {
    const decoded = decodeMessage(message)
    expect([decoded.channel, decoded.payload.toString()]).toEqual([channel, payload])
  })
})

describe('protocols', () => {
  it.each([
    ['v5.channel.k8s.io', 'v5.channel.k8s.io'],
    ['v4.channel.k8s.io, v5.channel.k8s.io', 'v4.channel.k8s.io'],
    ['base64.binary.k8s.io,v4.channel.k8s.io', 'v4.channel.k8s.io'],
    ['channel.k8s.io', 'channel.k8s.io'],
    ['base64.channel.k8s.io', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('of %s, %s', (offered, chosen) => {
    expect(chooseProtocol(offered, commandProtocols)).toBe(chosen)
  })
})

describe('what messages say', () => {
  it.each([
    ['{"Width":80,"Height":24}\n', { columns: 80, rows: 24 }],
    ['{"Width":0,"Height":24}', undefined],
    ['{"Width":80,"Height":65536}', undefined],
    ['{"Width":"80","Height":24}', undefined],
    ['{"Width":80}', undefined],
    ['80x24', undefined],
    ['null', undefined],
  ])('a size: %s', (text, size) => {
    expect(parseTerminalSize(text)).toEqual(size)
  })

  it('a size, as kubectl says it', () => {
    expect(formatTerminalSize({ columns: 80, rows: 24 })).toBe('{"Width":80,"Height":24}\n')
  })

  it('an outcome, as the kubelet says it', () => {
    expect(formatOutcome({ kind: 'exited', exitCode: 0 })).toBe('{"metadata":{},"status":"Success"}')
    expect(formatOutcome({ kind: 'exited', exitCode: 3 })).toBe(
      '{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 3","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}',
    )
    expect(formatOutcome({ kind: 'failed', message: 'lost' })).toBe(
      '{"metadata":{},"status":"Failure","message":"Internal error occurred: lost","reason":"InternalError","details":{"causes":[{"message":"lost"}]},"code":500}',
    )
  })

  it.each([0, 3, 255])('an outcome: exit code %i', (exitCode) => {
    expect(parseOutcome(formatOutcome({ kind: 'exited', exitCode }))).toEqual({ kind: 'exited', exitCode })
  })

  it.each([
    [formatOutcome({ kind: 'failed', message: 'lost' }), 'lost'],
    ['{"status":"Failure","message":"else"}', 'else'],
    ['[]', 'podd did not report how the command ended'],
    ['', 'podd did not report how the command ended'],
  ])('an outcome: %s', (text, message) => {
    expect(parseOutcome(text)).toEqual({ kind: 'failed', message })
  })
})
