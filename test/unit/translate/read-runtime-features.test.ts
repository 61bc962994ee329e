import { describe, expect, it } from 'vitest'
import { readRuntimeFeatures } from '../../../src/translate/observe.ts'

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

  it.each([
    ['containerd', 'v2.0.5', [false, false, false]],
    ['containerd', 'v2.1.9', [true, false, false]],
    ['containerd', '2.2.0-rc.1', [true, true, false]],
    ['containerd', 'v2.3.0', [true, true, true]],
    ['containerd', '3.0.0', [true, true, true]],
    ['cri-o', '1.33.0', [true, true, false]],
  ])('knows of %s %s by its version what no reply says', (runtimeName, runtimeVersion, expected) => {
    const features = readRuntimeFeatures(
      { runtimeName, runtimeVersion },
      { runtimeHandlers: [], features: null, info: {} },
    )
    expect([features.imageVolumes, features.imageSubPaths, features.stopSignals]).toEqual(expected)
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
