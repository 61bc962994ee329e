import { describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { decodeDocuments } from '../../../src/pod/decode-documents.ts'
import { createDecodeSource, largeDocumentBytes } from '../../../src/sources/decode-source.ts'
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

  it('lets the main thread go on meanwhile', async () => {
    let beats = 0
    const beat = (): void => {
      beats += 1
      systemClock.startTimer(2, beat)
    }
    beat()
    await createDecodeSource(systemClock)(large, options)
    expect(beats).toBeGreaterThan(10)
  })

  it('gives up on a text that takes too long, and holds what was there', async () => {
    const hasty: Clock = { ...systemClock, startTimer: (_delayMs, fire) => systemClock.startTimer(0, fire) }
    expect(await createDecodeSource(hasty)(large, options)).toEqual({
      documents: [],
      problems: [{ severity: 'error', place: options, message: 'took longer than 120 s to decode' }],
      heldObjects: [],
      holdsAll: true,
    })
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
})
