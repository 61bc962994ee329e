import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import {
  computeSubPath,
  containerMounts,
  selectNestedMounts,
  whenSubPathMissing,
} from '../../../src/translate/mounts.ts'
import type { MissingSubPath } from '../../../src/translate/mounts.ts'
import { appOf, testPod } from './pods.ts'

const volumes = new Map([
  ['own', { hostPath: '/root/own', selinuxRelabel: true }],
  ['host', { hostPath: '/srv', selinuxRelabel: false }],
])

function mountsOf(
  container: JsonObject,
  around: {
    readonly selinux?: boolean
    readonly etcHostsPath?: undefined
    readonly terminationLogPath?: undefined
  } = {},
) {
  const pod = testPod({ containers: [{ name: 'app', image: 'i', ...container }] })
  return containerMounts({
    container: appOf(pod),
    volumes,
    etcHostsPath: '/root/etc-hosts',
    terminationLogPath: '/root/log',
    selinux: false,
    ...around,
  })
}

const etcHosts = { containerPath: '/etc/hosts', hostPath: '/root/etc-hosts', selinuxRelabel: false }
const log = { containerPath: '/dev/termination-log', hostPath: '/root/log', selinuxRelabel: false }

describe('containerMounts', () => {
  it('are volumes, hosts file and termination log', () => {
    const volumeMounts = [
      { name: 'own', mountPath: '/data' },
      { name: 'host', mountPath: 'relative', readOnly: true },
    ]
    const propagation = 'PROPAGATION_PRIVATE'
    expect(mountsOf({ volumeMounts })).toEqual([
      { containerPath: '/data', hostPath: '/root/own', readonly: false, selinuxRelabel: false, propagation },
      { containerPath: '/relative', hostPath: '/srv', readonly: true, selinuxRelabel: false, propagation },
      etcHosts,
      log,
    ])
  })

  it('leave a hosts file of the container’s own alone', () => {
    const mounts = mountsOf({ volumeMounts: [{ name: 'own', mountPath: '/etc/hosts' }] })
    expect(mounts.map(({ hostPath }) => hostPath)).toEqual(['/root/own', '/root/log'])
  })

  it('are where the container wants its termination message', () => {
    expect(mountsOf({ terminationMessagePath: 'tmp/end' })).toEqual([
      etcHosts,
      { ...log, containerPath: '/tmp/end' },
    ])
  })

  it('have no termination log where there is none, or where the container wants none', () => {
    expect(mountsOf({}, { terminationLogPath: undefined })).toEqual([etcHosts])
    expect(mountsOf({ terminationMessagePath: '' }).map(({ hostPath }) => hostPath)).toContain(
      '/root/etc-hosts',
    )
  })

  it('have no hosts file where the runtime’s own shall do', () => {
    expect(mountsOf({}, { etcHostsPath: undefined })).toEqual([log])
  })

  it('are labelled under SELinux, but never the host’s own', () => {
    const volumeMounts = [
      { name: 'own', mountPath: '/data' },
      { name: 'host', mountPath: '/srv' },
    ]
    const labels = mountsOf({ volumeMounts }, { selinux: true }).map(({ selinuxRelabel }) => selinuxRelabel)
    expect(labels).toEqual([true, false, true, true])
  })

  it('need every volume prepared', () => {
    expect(() => mountsOf({ volumeMounts: [{ name: 'none', mountPath: '/x' }] })).toThrow(
      'volume none was not prepared',
    )
  })
})

describe('selectNestedMounts', () => {
  const volumes = new Map([
    ['files', { hostPath: '/pods/files', selinuxRelabel: true, files: true }],
    ['more', { hostPath: '/pods/more', selinuxRelabel: true, files: true }],
    ['data', { hostPath: '/pods/data', selinuxRelabel: true }],
  ])
  const nested = (...mounts: readonly (readonly [string, string, string?])[]) =>
    selectNestedMounts(
      {
        volumeMounts: mounts.map(([name, mountPath, subPath = '']) => ({
          name,
          mountPath,
          subPath,
          readOnly: false,
        })),
      },
      volumes,
      mounts.map(([name, mountPath, subPath]) => ({
        containerPath: mountPath,
        hostPath: subPath === undefined ? `/pods/${name}` : `/pods/sub/${subPath}`,
      })),
    ).map(({ directory, path, source }) => `${directory} ${path} ${source}`)

  it('gives what lies inside a directory of files, however the paths are written', () => {
    expect(nested(['data', '/cfg/cache/'], ['files', '/cfg/'])).toEqual(['/pods/files cache /pods/data'])
    expect(nested(['files', '/cfg'], ['data', '/cfg//a/./b'])).toEqual(['/pods/files a/b /pods/data'])
    expect(nested(['files', '/cfg'], ['more', '/cfg/x', 'key'])).toEqual(['/pods/files x /pods/sub/key'])
  })

  it('gives each the innermost directory that it lies in', () => {
    expect(nested(['files', '/cfg'], ['more', '/cfg/more'], ['data', '/cfg/more/data'])).toEqual([
      '/pods/files more /pods/more',
      '/pods/more data /pods/data',
    ])
    expect(nested(['files', '/cfg'], ['data', '/cfg/data'], ['more', '/cfg/data/more'])).toEqual([
      '/pods/files data /pods/data',
    ])
  })

  it('leaves alone what lies beside one, or in a directory that can be written', () => {
    expect(nested(['files', '/cfg'], ['data', '/cfg2'], ['more', '/'])).toEqual([])
    expect(nested(['files', '/cfg', 'key'], ['data', '/cfg/x'])).toEqual([])
    expect(nested(['data', '/data'], ['files', '/data/files'])).toEqual([])
  })
})

const environment = new Map([
  ['NAME', 'web-0'],
  ['UP', '..'],
  ['ROOT', '/etc'],
])

describe('computeSubPath', () => {
  it.each([
    [{}, undefined],
    [{ subPath: '' }, undefined],
    [{ subPath: 'a/$(NAME)' }, 'a/$(NAME)'],
    [{ subPathExpr: 'a/$(NAME)' }, 'a/web-0'],
    [{ subPathExpr: '$$(NONE)' }, '$(NONE)'],
  ])('of %j is %j', (mount, path) => {
    expect(computeSubPath(mount, environment)).toBe(path)
  })

  it.each([
    ['$(NONE)', 'missing value for "NONE"'],
    ['a/$(UP)/b', "must not contain '..'"],
    ['$(ROOT)', 'must not be an absolute path'],
  ])('of %j is refused', (subPathExpr, message) => {
    expect(() => computeSubPath({ subPathExpr }, environment)).toThrow(message)
  })
})

describe('whenSubPathMissing', () => {
  function missing(volume: JsonObject, subPath: string): MissingSubPath {
    const { spec } = testPod({
      containers: [{ name: 'app', image: 'i' }],
      volumes: [{ name: 'v', ...volume }],
    })
    const [found] = spec.volumes
    if (found === undefined) throw new Error('no volume')
    return whenSubPathMissing(found, subPath)
  }
  const a = { key: 'a', path: 'a' }

  it.each([
    [{ emptyDir: {} }, 'a', 'make'],
    [{ hostPath: { path: '/srv' } }, 'a', 'make'],
    [{ persistentVolumeClaim: { claimName: 'c' } }, 'a', 'make'],
    [{ configMap: { name: 'c' } }, 'a', 'fail'],
    [{ configMap: { name: 'c', optional: true } }, './a/', 'empty'],
    [{ configMap: { name: 'c', optional: true } }, 'a/b', 'fail'],
    [{ configMap: { name: 'c', optional: true, items: [a] } }, 'a', 'empty'],
    [{ configMap: { name: 'c', optional: true, items: [{ key: 'a', path: 'x/y/a' }] } }, 'x/y', 'empty'],
    [{ configMap: { name: 'c', optional: true, items: [a] } }, 'b', 'fail'],
    [{ secret: { secretName: 's', optional: true } }, 'a', 'empty'],
    [{ downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } }, 'a', 'fail'],
    [{ projected: { sources: [{ configMap: { name: 'c' } }, { secret: { name: 's' } }] } }, 'a', 'fail'],
    [
      { projected: { sources: [{ configMap: { name: 'c' } }, { secret: { name: 's', optional: true } }] } },
      'a',
      'empty',
    ],
    [
      {
        projected: {
          sources: [{ configMap: { name: 'c' } }, { secret: { name: 's', optional: true, items: [a] } }],
        },
      },
      'b',
      'fail',
    ],
  ])('of %j, path %s: %s', (volume, subPath, kind) => {
    expect(missing(volume, subPath).kind).toBe(kind)
  })

  it.each([
    [{ configMap: { name: 'c' } }, 'a', 'add the key "a" to ConfigMap "c"'],
    [{ secret: { secretName: 's' } }, 'a', 'add the key "a" to Secret "s"'],
    [
      { projected: { sources: [{ configMap: { name: 'c' } }, { secret: { name: 's' } }] } },
      'a',
      'add the key "a" to ConfigMap "c" or Secret "s"',
    ],
    [{ configMap: { name: 'c' } }, 'a/b', 'give one of the items of the volume that path'],
    [{ configMap: { name: 'c', items: [a] } }, 'b', 'give one of the items of the volume that path'],
  ])('of %j, path %s says what to do', (volume, path, remedy) => {
    expect(missing(volume, path)).toEqual({
      kind: 'fail',
      message: `volume "v" has no file "${path}": ${remedy}, or correct the subPath; the container starts by itself then`,
    })
  })
})
