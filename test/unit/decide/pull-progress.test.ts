import { describe, expect, it } from 'vitest'
import { derivePullState } from '../../../src/decide/node/pull-progress.ts'
import type { PullFacts } from '../../../src/decide/node/pull-progress.ts'

const beganAtMs = 1000
const config = { digest: 'sha256:c', sizeBytes: 10 }
const layers = [
  { digest: 'sha256:l1', sizeBytes: 100 },
  { digest: 'sha256:l2', sizeBytes: 200 },
]
const manifest = { digest: 'sha256:m', createdAtMs: 1100, blobs: [config, ...layers] }
const stored = (digest: string, sizeBytes: number) => ({ digest, sizeBytes, createdAtMs: 1200 })
const ingest = (digest: string, offsetBytes: number) => ({ digest, offsetBytes })

function stateOf(facts: Partial<PullFacts>) {
  return derivePullState({ beganAtMs, ingests: [], blobs: [], manifests: [manifest], ...facts })
}

describe('how far a pull is', () => {
  it('is not known before its manifest is', () => {
    expect(stateOf({ manifests: [] })).toMatchObject({ phase: 'resolving', totalBytes: undefined })
  })

  it('counts what has been stored and what is being written', () => {
    const facts = {
      ingests: [ingest('sha256:l1', 40), ingest('sha256:other', 7)],
      blobs: [stored('sha256:m', 5), stored('sha256:c', 10)],
    }
    expect(stateOf(facts)).toMatchObject({
      phase: 'fetching',
      doneBytes: 50,
      totalBytes: 310,
      missingBytes: 60,
    })
  })

  it('is unpacking when nothing is being written', () => {
    const blobs = [config, ...layers].map(({ digest, sizeBytes }) => stored(digest, sizeBytes))
    expect(stateOf({ blobs })).toMatchObject({ phase: 'unpacking', doneBytes: 310, missingBytes: 0 })
  })

  it('leaves out the manifests of other images of the repository', () => {
    const older = { digest: 'sha256:o', createdAtMs: 10, blobs: [{ digest: 'sha256:l9', sizeBytes: 9000 }] }
    expect(stateOf({ manifests: [older, manifest] })).toMatchObject({ totalBytes: 310 })
    expect(stateOf({ manifests: [older] })).toMatchObject({ phase: 'resolving' })
  })

  it('takes an older manifest whose layer is being written', () => {
    const older = { ...manifest, createdAtMs: 10 }
    expect(stateOf({ manifests: [older], ingests: [ingest('sha256:l2', 1)] })).toMatchObject({
      phase: 'fetching',
      doneBytes: 1,
    })
  })

  it('counts a layer that several manifests share once', () => {
    const other = { ...manifest, digest: 'sha256:m2', blobs: [layers[0]!] }
    expect(stateOf({ manifests: [manifest, other] })).toMatchObject({ totalBytes: 310 })
  })

  it.each<[string, Partial<PullFacts>, Partial<PullFacts>]>([
    ['a byte', { ingests: [ingest('sha256:l1', 40)] }, { ingests: [ingest('sha256:l1', 41)] }],
    ['a stored layer', {}, { blobs: [stored('sha256:l1', 100)] }],
    [
      'a byte of anything before the manifest is known',
      { manifests: [], ingests: [ingest('sha256:x', 1)] },
      { manifests: [], ingests: [ingest('sha256:x', 2)] },
    ],
  ])('has another marker after %s', (_name, before, after) => {
    expect(stateOf(before).marker).not.toBe(stateOf(after).marker)
  })

  it('has the same marker where only other pulls progress', () => {
    const own = ingest('sha256:l1', 40)
    const before = stateOf({ ingests: [own, ingest('sha256:other', 1)] })
    const after = stateOf({ ingests: [ingest('sha256:other', 2), own] })
    expect(before.marker).toBe(after.marker)
  })
})
