import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeObject } from '../../../src/server/protobuf/decode-object.ts'
import { ApiError } from '../../../src/server/requests/api-error.ts'

/** A field: a number, or bytes of their own length; text and messages are bytes. */
type Value = number | string | readonly (readonly [id: number, value: Value])[]

function encode(fields: readonly (readonly [number, Value])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([id, value]) => {
      if (typeof value === 'number') return [varint(id * 8), varint(value)]
      const bytes = typeof value === 'string' ? Buffer.from(value) : encode(value)
      return [varint(id * 8 + 2), varint(bytes.length), bytes]
    }),
  )
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, BigInt(value))
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128)
  return Buffer.from([...bytes, Number(rest)])
}

function body(apiVersion: string, kind: string, fields: readonly (readonly [number, Value])[]): Buffer {
  const type = [
    [1, apiVersion],
    [2, kind],
  ] as const
  return Buffer.concat([
    Buffer.from('k8s\0'),
    encode([[1, type]]),
    Buffer.from([0x12]),
    varint(encode(fields).length),
    encode(fields),
    Buffer.from('1a002200', 'hex'),
  ])
}

describe('an object as protobuf', () => {
  it('is what kubectl sends for `create configmap x --from-literal=a=b`', async () => {
    const hex =
      '6b387300 0a0f0a0276311209436f6e6669674d6170 121b 0a110a0178 1200 1a00 2200 2a00 3200 3800 4200 1206 0a0161 120162 1a00 2200'
    expect(await decodeObject(Buffer.from(hex.replaceAll(' ', ''), 'hex'))).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'x' },
      data: { a: 'b' },
    })
  })

  it('has its parts in the form that JSON has', async () => {
    const time = [
      [1, 1_767_225_600],
      [2, 0],
    ] as const
    const selector = [
      [1, [[1, 'conf']]],
      [2, 'key'],
      [3, 0],
    ] as const
    const container = [
      [1, 'main'],
      [2, 'busybox'],
      [
        6,
        [
          [2, 0],
          [3, 8080],
        ],
      ],
      [
        7,
        [
          [1, 'VALUE'],
          [2, ''],
          [3, [[3, selector]]],
        ],
      ],
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
                  [1, '/up'],
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
          [2, 5],
        ],
      ],
      [
        15,
        [
          [2, 0],
          [4, 0],
        ],
      ],
      [18, 0],
    ] as const
    const pod = [
      [
        1,
        [
          [1, 'web'],
          [8, time],
          [
            11,
            [
              [1, 'app'],
              [2, 'web'],
            ],
          ],
        ],
      ],
      [
        2,
        [
          [
            1,
            [
              [1, 'data'],
              [2, [[2, [[1, '']]]]],
            ],
          ],
          [2, container],
          [4, 0],
          [11, 0],
          [
            22,
            [
              [1, 'key'],
              [5, -1],
            ],
          ],
        ],
      ],
    ] as const
    expect(await decodeObject(body('v1', 'Pod', pod))).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', creationTimestamp: '2026-01-01T00:00:00Z', labels: { app: 'web' } },
      spec: {
        volumes: [{ name: 'data', emptyDir: {} }],
        containers: [
          {
            name: 'main',
            image: 'busybox',
            ports: [{ containerPort: 8080 }],
            env: [
              {
                name: 'VALUE',
                valueFrom: { configMapKeyRef: { name: 'conf', key: 'key', optional: false } },
              },
            ],
            resources: { limits: { cpu: '500m' } },
            livenessProbe: { httpGet: { path: '/up', port: 'http' }, initialDelaySeconds: 5 },
            securityContext: { privileged: false, runAsUser: 0 },
          },
        ],
        terminationGracePeriodSeconds: 0,
        tolerations: [{ key: 'key', tolerationSeconds: -1 }],
      },
    })
  })

  it('may be empty', async () => {
    expect(await decodeObject(body('v1', 'DeleteOptions', []))).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
    })
  })

  it.each([
    ['JSON', Buffer.from('{"kind":"Pod"}')],
    ['nothing', Buffer.alloc(0)],
    ['a kind that podd does not know', body('apps/v1', 'Deployment', [])],
    ['one that is cut short', body('v1', 'Pod', [[1, [[1, 'web']]]]).subarray(0, -8)],
  ])('is refused where it is %s', async (_, bytes) => {
    await expect(decodeObject(bytes)).rejects.toMatchObject({ httpCode: 400 })
  })

  it('is read or refused, whatever its bytes are', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 300 }),
        fc.constantFrom('Pod', 'Event'),
        async (bytes, kind) => {
          const whole = Buffer.concat([
            Buffer.from('k8s\0'),
            encode([[1, [[2, kind]]]]),
            Buffer.from([0x12]),
            varint(bytes.length),
            bytes,
          ])
          const result = await decodeObject(whole).catch((error: unknown) => error)
          expect(result instanceof ApiError || !(result instanceof Error)).toBe(true)
        },
      ),
      { numRuns: 2000 },
    )
  })
})
