import { describe, expect, it } from 'vitest'
import { readRuntimeFeatures } from '../../../src/translate/read-runtime-features.ts'

const version = { runtimeName: 'containerd', runtimeVersion: 'v2.1.9' }

describe('readRuntimeFeatures', () => {
  it('takes what a runtime lists', () => {
    const features = readRuntimeFeatures(version, {
      runtimeHandlers: [
        { name: '', features: { userNamespaces: true, recursiveReadOnlyMounts: true } },
        { name: 'kata', features: null },
      ],
      features: { supplementalGroupsPolicy: true, userNamespacesHostNetwork: false, mountOptions: false },
      info: {},
    })
    expect(features).toMatchObject({
      runtime: 'containerd 2.1.9',
      supplementalGroupsPolicy: true,
      handlers: new Map([
        ['', { userNamespaces: true, recursiveReadOnlyMounts: true }],
        ['kata', { userNamespaces: false, recursiveReadOnlyMounts: false }],
      ]),
    })
  })

  it('finds the names alone in the configuration of an older one', () => {
    const info = { config: JSON.stringify({ containerd: { runtimes: { runc: {}, runsc: {} } } }) }
    const old = { runtimeName: 'containerd', runtimeVersion: '1.6.20~ds1' }
    const features = readRuntimeFeatures(old, { runtimeHandlers: [], features: null, info })
    expect(features.runtime).toBe('containerd 1.6.20')
    expect([...(features.handlers?.keys() ?? [])]).toEqual(['', 'runc', 'runsc'])
    expect(features.supplementalGroupsPolicy).toBe(false)
  })

  it.each([{}, { config: 'no JSON' }, { config: '{"containerd": 3}' }])(
    'knows of no handlers by %j',
    (info) => {
      const features = readRuntimeFeatures(version, { runtimeHandlers: [], features: null, info })
      expect(features.handlers).toBeUndefined()
    },
  )
})
