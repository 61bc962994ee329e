import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  FrameDecoder,
  channels,
  encodeFrame,
  parseOutcome,
  parseTerminalSize,
} from '../../../src/api/exec-frames.ts'
import type { Channel } from '../../../src/api/exec-frames.ts'

const names = Object.keys(channels) as Channel[]

describe('frames', () => {
  it('come out as they went in, however they are cut', () => {
    const frame = fc.record({ channel: fc.constantFrom(...names), payload: fc.uint8Array({ maxLength: 40 }) })
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), fc.integer({ min: 1, max: 13 }), (frames, step) => {
        const bytes = Buffer.concat(frames.map(({ channel, payload }) => encodeFrame(channel, payload)))
        const decoder = new FrameDecoder()
        const found = []
        for (let at = 0; at < bytes.length; at += step)
          for (const { channel, payload } of decoder.push(bytes.subarray(at, at + step)))
            found.push({ channel, payload: new Uint8Array(payload) })
        expect(found).toEqual(
          frames.map(({ channel, payload }) => ({ channel, payload: new Uint8Array(payload) })),
        )
      }),
      { numRuns: 60 },
    )
  })

  it.each([
    ['of an unknown channel', Buffer.from([9, 0, 0, 0, 0])],
    ['of an absurd length', Buffer.from([0, 255, 255, 255, 255])],
  ])('%s end the conversation', (_title, bytes) => {
    expect(() => new FrameDecoder().push(bytes)).toThrow(expect.objectContaining({ code: 'BAD_FRAME' }))
  })
})

describe('what frames say', () => {
  it.each([
    ['{"columns":80,"rows":24}', { columns: 80, rows: 24 }],
    ['{"columns":0,"rows":24}', undefined],
    ['{"columns":80,"rows":65536}', undefined],
    ['{"columns":"80","rows":24}', undefined],
    ['{"columns":80}', undefined],
    ['80x24', undefined],
    ['null', undefined],
  ])('a size: %s', (text, size) => {
    expect(parseTerminalSize(text)).toEqual(size)
  })

  it.each([
    ['{"kind":"exited","exitCode":7}', { kind: 'exited', exitCode: 7 }],
    ['{"kind":"failed","message":"lost"}', { kind: 'failed', message: 'lost' }],
    ['[]', { kind: 'failed', message: 'podd did not report how the command ended' }],
    ['', { kind: 'failed', message: 'podd did not report how the command ended' }],
  ])('an outcome: %s', (text, outcome) => {
    expect(parseOutcome(text)).toEqual(outcome)
  })
})
