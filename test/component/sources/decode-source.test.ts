import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import type { DecodeSource, DecodeWorker } from '../../../src/sources/decode-source.ts'
import {
  createDecodeSource,
  largeDocumentBytes,
  smallDocumentBytes,
} from '../../../src/sources/decode-source.ts'
import { hardDocuments } from '../../support/hard-documents.ts'
import { slowness } from '../../support/slowness.ts'
import { longestTurnMs } from '../../support/longest-turn.ts'
import { eventLoopDelayMs } from '../../support/thread-time.ts'
import { podYaml } from './source-rig.ts'

const options = { path: 'large.yaml' }
const large = Buffer.from(
  [
    ...Array.from({ length: 700 }, (_, index) => podYaml(`p${index}`)),
    podYaml('bad').replace('image', 'imagee'),
  ].join('---\n'),
)

describe('createDecodeSource', () => {
  it('gives the same from a worker as from here', async () => {
    expect(large.byteLength).toBeGreaterThan(largeDocumentBytes)
    const inWorker = await createDecodeSource(systemClock)(large, options)
    expect(inWorker).toEqual(await decodeDocuments(large, options))
    expect(inWorker).toMatchObject({
      heldObjects: ['default/bad'],
      problems: [{ field: 'spec.containers[0].imagee' }],
    })
  })

  it.each([
    ['a text of some size', Buffer.from(podYaml('web').padEnd(smallDocumentBytes + 1, '\n'))],
    ['a small text with aliases', Buffer.from(`# & *a\n${podYaml('web')}`)],
  ])('decodes %s in a thread, and the next one too', async (_, text) => {
    const fault = () => Promise.reject(new Error('decoded here'))
    const decode = createDecodeSource(systemClock, fault)
    const results = await Promise.all([decode(text, options), decode(text, options)])
    for (const result of [...results, await decode(text, options)]) {
      expect(result).toEqual(await decodeDocuments(text, options))
    }
  })

  it.each([
    ['small', smallDocumentBytes],
    ['of some size', 16 * 1024],
  ])(
    'holds the event loop with no text that is %s, however hard',
    async (_, bytes) => {
      const decode = createDecodeSource(systemClock)
      await decode(Buffer.from(podYaml('web')), options)
      const delays: Record<string, number> = {}
      for (const [name, make] of Object.entries(hardDocuments)) {
        const text = Buffer.from(make(bytes)).subarray(0, bytes)
        const delayMs = await eventLoopDelayMs(() => decode(text, options), 50 * slowness)
        if (delayMs >= 50 * slowness) delays[name] = delayMs
      }
      expect(delays).toEqual({})
    },
    120_000 * slowness,
  )

  it(
    'holds the event loop with no text of many documents',
    async () => {
      const decode = createDecodeSource(systemClock)
      const pods = Array.from({ length: 10_000 }, (_, index) => ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `p${index}` },
        spec: { containers: [{ name: 'a', image: 'b' }] },
      }))
      const text = Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: pods }))
      expect((await decode(text, options)).documents).toHaveLength(10_000)
      expect(await longestTurnMs(() => decode(text, options))).toBeLessThan(50 * slowness)
    },
    120_000 * slowness,
  )

  it(
    'holds the event loop with no large document',
    async () => {
      const decode = createDecodeSource(systemClock)
      const env = Array.from({ length: 6_000 }, (_, at) => ({ name: `E${at}`, value: 'x' }))
      const data = Object.fromEntries(env.map(({ name, value }) => [name, value]))
      const documents = [
        {
          kind: 'Pod',
          metadata: { name: 'a' },
          spec: { containers: [{ name: 'a', image: 'b', env }] },
        },
        { kind: 'ConfigMap', metadata: { name: 'a' }, data },
      ]
      await decode(large, options)
      for (const document of documents) {
        const text = Buffer.from(JSON.stringify({ apiVersion: 'v1', ...document }))
        let found = 0
        const heldMs = await longestTurnMs(
          async () => (found = (await decode(text, options)).documents.length),
        )
        expect(found).toBe(1)
        expect(heldMs).toBeLessThan(50 * slowness)
      }
    },
    120_000 * slowness,
  )

  it('starts another thread once one took too long', async () => {
    let isHasty = true
    const clock: Clock = {
      ...systemClock,
      startTimer: (delayMs, fire) => systemClock.startTimer(isHasty ? 0 : delayMs, fire),
    }
    const decode = createDecodeSource(clock)
    const text = large.subarray(0, largeDocumentBytes - 1)
    await expect(decode(text, options)).rejects.toMatchObject({ code: 'DECODE_UNAVAILABLE' })
    isHasty = false
    expect((await decode(Buffer.from(`# & *a\n${podYaml('web')}`), options)).problems).toEqual([])
  })

  it('lets the main thread go on meanwhile', async () => {
    let beats = 0
    const beating = setInterval(() => (beats += 1), 2)
    await createDecodeSource(systemClock)(large, options)
    clearInterval(beating)
    expect(beats).toBeGreaterThan(10)
  })

  it('makes a problem of what goes wrong in it', async () => {
    const decode = createDecodeSource(systemClock, () => Promise.reject(new Error('a fault')))
    expect(await decode(Buffer.from('a'), options)).toEqual({
      documents: [],
      problems: [{ severity: 'error', place: options, message: 'cannot be decoded: a fault' }],
      heldObjects: [],
      holdsAll: true,
    })
  })

  it('makes a problem of a text that takes more memory than podd gives it', async () => {
    const decode = createDecodeSource(
      systemClock,
      undefined,
      () => new FakeWorker('error', errorWith({ code: 'ERR_WORKER_OUT_OF_MEMORY' })),
    )
    expect(await decode(large, options)).toMatchObject({
      problems: [{ message: 'cannot be decoded: it takes more than 1024 MiB of memory' }],
      holdsAll: true,
    })
  })
})

describe('a failure of the system is no result of decoding', () => {
  const hasty: Clock = { ...systemClock, startTimer: (_delayMs, fire) => systemClock.startTimer(0, fire) }

  it.each<[what: string, decode: DecodeSource, message: string]>([
    [
      'that no thread can be started',
      createDecodeSource(systemClock, undefined, () => {
        throw errorWith({ code: 'ERR_WORKER_INIT_FAILED', message: 'EAGAIN' })
      }),
      'no thread can be started: EAGAIN',
    ],
    [
      'that the thread fails',
      createDecodeSource(
        systemClock,
        undefined,
        () => new FakeWorker('error', errorWith({ code: 'EMFILE', message: 'too many' })),
      ),
      'too many',
    ],
    [
      'that the thread ends',
      createDecodeSource(systemClock, undefined, () => new FakeWorker('exit')),
      'the decoder ended early',
    ],
    ['that it takes too long', createDecodeSource(hasty), 'it took longer than 120 s'],
  ])('%s', async (_what, decode, message) => {
    await expect(decode(large, options)).rejects.toMatchObject({
      code: 'DECODE_UNAVAILABLE',
      message: `cannot be decoded for now: ${message}`,
    })
  })

  it('nor where no thread is needed', async () => {
    const decode = createDecodeSource(systemClock, () =>
      Promise.reject(errorWith({ code: 'EMFILE', syscall: 'open', message: 'too many' })),
    )
    await expect(decode(Buffer.from('a'), options)).rejects.toMatchObject({ code: 'DECODE_UNAVAILABLE' })
  })
})

function errorWith(fields: { code: string; message?: string; syscall?: string }): Error {
  return Object.assign(new Error(fields.message), fields)
}

/** A thread that does one thing. */
class FakeWorker extends EventEmitter implements DecodeWorker {
  constructor(event: 'error' | 'exit', ...given: readonly unknown[]) {
    super()
    setImmediate(() => this.emit(event, ...given))
  }

  postMessage(): void {}
  ref(): void {}
  unref(): void {}

  async terminate(): Promise<number> {
    this.removeAllListeners()
    return 0
  }
}
