import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeHeaders, HeaderDecoder } from '../../../src/streams/hpack.ts'
import { decodeHuffman } from '../../../src/streams/huffman.ts'

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')

describe('header blocks', () => {
  // RFC 7541, C.5 and C.6: three answers on one connection, whose table holds 256 bytes.
  it.each([
    [
      'as they are',
      '3fe101' +
        '4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d',
      '4803333037c1c0bf',
      '88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31',
    ],
    [
      'in Huffman code',
      '3fe101' +
        '488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3',
      '4883640effc1c0bf',
      '88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007',
    ],
  ])('are read with texts %s, and what the table held', (_, first, second, third) => {
    const decoder = new HeaderDecoder()
    const location = ['location', 'https://www.example.com']
    expect(decoder.decode(bytes(first))).toEqual([
      [':status', '302'],
      ['cache-control', 'private'],
      ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
      location,
    ])
    expect(decoder.decode(bytes(second))).toEqual([
      [':status', '307'],
      ['cache-control', 'private'],
      ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
      location,
    ])
    expect(decoder.decode(bytes(third))).toEqual([
      [':status', '200'],
      ['cache-control', 'private'],
      ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'],
      location,
      ['content-encoding', 'gzip'],
      ['set-cookie', 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1'],
    ])
  })

  it('are written so that they can be read', () => {
    const text = fc.string({
      unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
      maxLength: 400,
    })
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 4 }), (headers) => {
        expect(new HeaderDecoder().decode(encodeHeaders(headers))).toEqual(headers)
      }),
    )
  })

  it.each([
    ['an index of nothing', 'ff00'],
    ['the index 0', '80'],
    ['a text that is longer than the block', '0005 61'],
    ['a length without an end', '007fffffffffffff'],
    ['a table that is too large', '3fe2ff03'],
    ['no value', '00 0161'],
    ['a text in a code that is filled up with zeros', '00 0161 81 18'],
    ['a text in the code of the end', '00 0161 84 ffffffff'],
  ])('are refused with %s', (_, hex) => {
    expect(() => new HeaderDecoder().decode(bytes(hex))).toThrow(/header/u)
  })

  it('are refused, or read to their end, whatever the bytes are', () => {
    const names = new Set<string>()
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (block) => {
        try {
          new HeaderDecoder().decode(block)
        } catch (error) {
          names.add(Object(error).constructor.name)
        }
      }),
      { numRuns: 2000 },
    )
    expect([...names]).toEqual(['Http2Error'])
  })

  it('have a code for each byte', () => {
    // 0x00 has 13 bits (1ff8), 0xff has 26 (3ffffee): RFC 7541, appendix B.
    expect(decodeHuffman(bytes('ffc7'))).toBe('\u0000')
    expect(decodeHuffman(bytes('fffffbbf'))).toBe('\u00ff')
  })
})
