import { describe, expect, it } from 'vitest'
import table from '../../../src/api/kubernetes.wire.json' with { type: 'json' }
import { WireError, readProtobuf } from '../../../src/api/read-protobuf.ts'

type Value = number | string | readonly Field[]
type Field = readonly [number: number, value: Value]

/** A message of numbers, texts and messages. */
function message(...fields: readonly Field[]): Buffer {
  return Buffer.concat(fields.map(([number, value]) => encode(number, value)))
}

function encode(number: number, value: Value): Buffer {
  if (typeof value === 'number') return Buffer.concat([varint(number * 8), varint(value)])
  const bytes = typeof value === 'string' ? Buffer.from(value) : message(...value)
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes])
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, BigInt(value))
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(rest)])
}

function body(kind: string, raw: Buffer, apiVersion = 'v1'): Buffer {
  const meta = message([1, apiVersion], [2, kind])
  return Buffer.concat([
    Buffer.from('k8s\0'),
    varint(10),
    varint(meta.length),
    meta,
    varint(18),
    varint(raw.length),
    raw,
  ])
}

describe('a body in protobuf', () => {
  it('is read as kubectl writes a ConfigMap', () => {
    const recorded =
      '6b3873000a0f0a0276311209436f6e6669674d6170121b0a110a017812001a0022002a003200380042001206' +
      '0a01611201621a002200'
    expect(readProtobuf(Buffer.from(recorded, 'hex'), table)).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'x' },
      data: { a: 'b' },
    })
  })

  it('of hundreds of thousands of pieces is read in one pass', () => {
    const count = 200_000
    const names = Array.from({ length: count }, (_, index) => `n${index}`)
    const metadata = Buffer.concat([encode(1, 'x'), ...names.map((name) => encode(14, name))])
    const entries = names.map((name) =>
      encode(2, [
        [1, name],
        [2, 'v'],
      ]),
    )
    const raw = Buffer.concat([varint(10), varint(metadata.length), metadata, ...entries])
    const read = readProtobuf(body('ConfigMap', raw), table)
    const { data, metadata: found } = read
    expect(Object.keys(data ?? {})).toHaveLength(count)
    expect(found).toMatchObject({ name: 'x', finalizers: { length: count } })
  })

  it('flattens what is inlined, and tells a zero that was meant from one that was not', () => {
    const container: readonly Field[] = [
      [1, 'main'],
      [2, 'web:1'],
      [3, 'sh'],
      [3, '-c'],
      [
        8,
        [
          [
            1,
            [
              [1, 'cpu'],
              [2, [[1, '500m']]],
            ],
          ],
        ],
      ],
      [
        10,
        [
          [
            1,
            [
              [
                2,
                [
                  [1, '/'],
                  [
                    2,
                    [
                      [1, 1],
                      [2, 0],
                      [3, 'http'],
                    ],
                  ],
                ],
              ],
            ],
          ],
          [2, 0],
          [3, 5],
        ],
      ],
      [16, 0],
    ]
    const volume: readonly Field[] = [
      [1, 'v'],
      [2, [[2, [[1, '']]]]],
    ]
    const spec: readonly Field[] = [
      [1, volume],
      [2, container],
      [4, 0],
      [11, 0],
    ]
    const metadata: readonly Field[] = [
      [1, 'p'],
      [7, 0],
      [8, []],
      [
        11,
        [
          [1, 'a'],
          [2, 'b'],
        ],
      ],
    ]
    expect(readProtobuf(body('Pod', message([1, metadata], [2, spec], [3, []])), table)).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', labels: { a: 'b' } },
      spec: {
        volumes: [{ name: 'v', emptyDir: {} }],
        containers: [
          {
            name: 'main',
            image: 'web:1',
            command: ['sh', '-c'],
            resources: { limits: { cpu: '500m' } },
            livenessProbe: { httpGet: { path: '/', port: 'http' }, timeoutSeconds: 5 },
          },
        ],
        terminationGracePeriodSeconds: 0,
      },
    })
  })

  it('takes options in any API version, and times', () => {
    const options = message([1, 0], [4, 'Background'])
    expect(readProtobuf(body('DeleteOptions', options, 'policy/v1'), table)).toEqual({
      apiVersion: 'policy/v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      propagationPolicy: 'Background',
    })
    const event = message(
      [7, [[1, 1_767_225_600]]],
      [
        10,
        [
          [1, 1_767_225_600],
          [2, 1000],
        ],
      ],
    )
    expect(readProtobuf(body('Event', event), table)).toMatchObject({
      lastTimestamp: '2026-01-01T00:00:00Z',
    })
  })

  it.each([
    ['another format', Buffer.from('{}')],
    ['a kind that nobody knows', body('Gadget', Buffer.from(''))],
    ['a field that ends early', body('ConfigMap', Buffer.from([0x0a, 0x7f, 0x01]))],
    ['a number without an end', body('ConfigMap', Buffer.alloc(12, 0xff))],
    ['a string that is no text', body('ConfigMap', Buffer.from([0x0a, 0x03, 0x0a, 0x01, 0xff]))],
    ['an unknown wire type', body('ConfigMap', Buffer.from([0x0b]))],
  ])('is refused as %s', (_, bytes) => {
    expect(() => readProtobuf(bytes, table)).toThrow(WireError)
  })

  it('never fails otherwise, cut or changed anywhere', () => {
    const whole = body('Pod', message([1, [[1, 'p']]], [2, [[2, [[1, 'main']]]]]))
    for (let at = 0; at < whole.length; at += 1) {
      for (const bytes of [whole.subarray(0, at), flipped(whole, at)]) {
        expect(errorOf(bytes) ?? new WireError('')).toBeInstanceOf(WireError)
      }
    }
  })
})

function errorOf(bytes: Buffer): unknown {
  try {
    readProtobuf(bytes, table)
    return undefined
  } catch (error) {
    return error
  }
}

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at] = (copy[at] ?? 0) ^ 0xff
  return copy
}
