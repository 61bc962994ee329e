import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { computeSubPath, whenSubPathMissing } from '../../../src/translate/mounts.ts'
import type { MissingSubPath } from '../../../src/translate/mounts.ts'
import { testPod } from './pods.ts'

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
