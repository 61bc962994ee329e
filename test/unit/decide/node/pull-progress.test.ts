import { describe, expect, it } from 'vitest'
import { derivePullState } from '../../../../src/decide/node/pull-progress.ts'
import type { PullFacts } from '../../../../src/decide/node/pull-progress.ts'

const beganAtMs = 1000
const config = { digest: 'sha256:c', sizeBytes: 10 }
const layers = [
  { digest: 'sha256:l1', sizeBytes: 100 },
  { digest: 'sha256:l2', sizeBytes: 200 },
]
const manifest = { digest: 'sha256:m', createdAtMs: 1100, isPresent: false, blobs: [config, ...layers] }
const stored = (digest: string, sizeBytes: number) => ({ digest, sizeBytes, createdAtMs: 1200 })
const ingest = (digest: string, offsetBytes: number) => ({ digest, offsetBytes })

function stateOf(facts: Partial<PullFacts>) {
  const moved = new Set((facts.ingests ?? []).map(({ digest }) => digest))
  return derivePullState({ beganAtMs, ingests: [], moved, blobs: [], manifests: [manifest], ...facts })
}

describe('how far a pull is', () => {
  it('is not known before its manifest is', () => {
    expect(stateOf({ manifests: [] })).toMatchObject({ phase: 'resolving', totalBytes: undefined })
  })

  it('does not move with the layers of others while nothing of its repository is stored', () => {
    const markerOf = (ingests: PullFacts['ingests'], blobs: PullFacts['blobs'] = []) =>
      stateOf({ manifests: [], ingests, blobs }).marker
    const layer = { ...ingest('sha256:x', 1), isPart: true }
    const later = { ...layer, offsetBytes: 2 }
    expect(markerOf([layer])).toBe(markerOf([later]))
    const ofRepository = [stored('sha256:index', 5)]
    expect(markerOf([layer], ofRepository)).not.toBe(markerOf([later], ofRepository))
    expect(markerOf([])).not.toBe(markerOf([ingest('sha256:manifest', 1)]))
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

  it('is not that of another tag whose content is stored, while something of the repository moves', () => {
    const older = { ...manifest, createdAtMs: 10 }
    const blobs = [config, ...layers].map(({ digest, sizeBytes }) => stored(digest, sizeBytes))
    expect(stateOf({ manifests: [older], blobs })).toMatchObject({ phase: 'unpacking' })
    expect(stateOf({ manifests: [older], blobs, ingests: [ingest('sha256:n', 1)] })).toMatchObject({
      phase: 'resolving',
    })
  })

  it('is unpacking when nothing is being written', () => {
    const blobs = [config, ...layers].map(({ digest, sizeBytes }) => stored(digest, sizeBytes))
    expect(stateOf({ blobs })).toMatchObject({ phase: 'unpacking', doneBytes: 310, missingBytes: 0 })
  })

  it('leaves out the manifests of other images of the repository', () => {
    const older = {
      digest: 'sha256:o',
      createdAtMs: 10,
      isPresent: false,
      blobs: [{ digest: 'sha256:l9', sizeBytes: 9000 }],
    }
    const ingests = [ingest('sha256:l1', 1)]
    expect(stateOf({ manifests: [older, manifest], ingests })).toMatchObject({ totalBytes: 310 })
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
    const ingests = [ingest('sha256:l1', 1)]
    expect(stateOf({ manifests: [manifest, other], ingests })).toMatchObject({ totalBytes: 310 })
  })

  it('does not know the total before a layer has been seen', () => {
    const blobs = [stored('sha256:m', 5), stored('sha256:c', 10)]
    expect(stateOf({ blobs })).toMatchObject({ doneBytes: 10, totalBytes: undefined })
  })

  it('leaves the layers that are unpacked already out of the total', () => {
    const facts = { ingests: [ingest('sha256:l2', 40)], blobs: [stored('sha256:c', 10)] }
    expect(stateOf(facts)).toMatchObject({ doneBytes: 50, totalBytes: 210, missingBytes: 160 })
  })

  const older = { ...manifest, createdAtMs: 10 }
  const old = (digest: string, sizeBytes: number) => ({ digest, sizeBytes, createdAtMs: 10 })
  const none: ReadonlySet<string> = new Set()

  it.each<[string, Partial<PullFacts>, string]>([
    [
      'all is stored',
      { blobs: [config, ...layers].map((each) => old(each.digest, each.sizeBytes)) },
      'unpacking',
    ],
    [
      'all is stored but the layers that are unpacked already',
      { blobs: [old('sha256:c', 10), old('sha256:l2', 200)] },
      'unpacking',
    ],
    [
      'all is stored although it is an image already',
      { manifests: [{ ...older, isPresent: true }], blobs: [old('sha256:c', 10), old('sha256:l2', 200)] },
      'resolving',
    ],
    ['the layers are gone, as of an image that is there', { blobs: [old('sha256:c', 10)] }, 'resolving'],
    ['the last layer is missing', { blobs: [old('sha256:c', 10), old('sha256:l1', 100)] }, 'resolving'],
    ['the config is missing', { blobs: [old('sha256:l1', 100), old('sha256:l2', 200)] }, 'resolving'],
    [
      'an earlier pull left a layer half written',
      { blobs: [old('sha256:c', 10), old('sha256:l2', 200)], ingests: [ingest('sha256:l1', 5)], moved: none },
      'resolving',
    ],
    [
      'something else moves, which may be of this pull',
      {
        blobs: [old('sha256:c', 10), old('sha256:l2', 200)],
        ingests: [ingest('sha256:other', 5)],
      },
      'resolving',
    ],
  ])('of an earlier pull of which %s', (_name, facts, phase) => {
    expect(stateOf({ manifests: [older], ...facts })).toMatchObject({ phase, missingBytes: 0 })
  })

  it('is unpacking also after the layer that moved has been stored', () => {
    const blobs = [old('sha256:c', 10), stored('sha256:l2', 200)]
    const facts = { manifests: [older], blobs, moved: new Set(['sha256:l2']) }
    expect(stateOf(facts)).toMatchObject({ phase: 'unpacking', doneBytes: 210, totalBytes: 210 })
  })

  describe('beside what a pull of another tag left half written', () => {
    const lower = {
      ...older,
      digest: 'sha256:m1',
      blobs: [config, layers[0]!, { digest: 'sha256:cut', sizeBytes: 900 }],
    }
    const blobs = [config, ...layers].map((each) => stored(each.digest, each.sizeBytes))
    const cut = ingest('sha256:cut', 40)

    it('is unpacking when all of its own is stored', () => {
      const facts = { manifests: [lower, manifest], ingests: [cut], blobs, moved: none }
      expect(stateOf(facts)).toMatchObject({ phase: 'unpacking', totalBytes: 310, missingBytes: 0 })
    })

    it('leaves it out also where both share a layer that moves', () => {
      const facts = {
        manifests: [lower, manifest],
        ingests: [cut, ingest('sha256:l1', 60)],
        moved: new Set(['sha256:l1']),
        blobs: [stored('sha256:c', 10), stored('sha256:l2', 200)],
      }
      expect(stateOf(facts)).toMatchObject({ phase: 'fetching', totalBytes: 310, missingBytes: 40 })
    })

    it('is fetching where its own layer was left half written', () => {
      const facts = { ingests: [ingest('sha256:l2', 40)], blobs: blobs.slice(0, 2), moved: none }
      expect(stateOf(facts)).toMatchObject({ phase: 'fetching', totalBytes: 310, missingBytes: 160 })
    })
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
