import { describe, expect, it } from 'vitest'
import { containerSpecHash, isKnownHash, podManifestHash } from '../../../src/pod/values/hash.ts'

describe('hashes', () => {
  it('are what they were in every version before: a change here restarts containers on an upgrade', () => {
    expect(containerSpecHash({ name: 'web', image: 'busybox:1.36' })).toBe('v1-e2c712a0f7d69bde')
    expect(podManifestHash({ kind: 'Pod', metadata: { name: 'web' } })).toBe('v1-fed5f97e3d401e67')
  })

  it('of a container cover its name and image and nothing else', () => {
    const base = { name: 'web', image: 'busybox' }
    const more = { ...base, command: ['sleep'] }
    expect(containerSpecHash(more)).toBe(containerSpecHash(base))
    expect(containerSpecHash({ ...base, image: 'busybox:2' })).not.toBe(containerSpecHash(base))
    expect(containerSpecHash({ ...base, name: 'x' })).not.toBe(containerSpecHash(base))
  })

  it('of a manifest see every value and no order of keys', () => {
    expect(podManifestHash({ a: 1, b: [1, 2] })).toBe(podManifestHash({ b: [1, 2], a: 1 }))
    expect(podManifestHash({ a: 1, b: [2, 1] })).not.toBe(podManifestHash({ a: 1, b: [1, 2] }))
  })

  it('tell their recipe, and fit into a label', () => {
    const hash = podManifestHash({})
    expect(isKnownHash(hash)).toBe(true)
    expect(isKnownHash('v0-123')).toBe(false)
    expect(hash).toMatch(/^[a-z0-9-]{1,63}$/)
  })
})
