import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { validatePod } from '../../../src/pod/validation/validate-pod.ts'
import { formatFieldPath } from '../../../src/pod/schema/issues.ts'

function problems(image: JsonObject, mount: JsonObject): readonly string[] {
  const pod = podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: {
      containers: [
        { name: 'main', image: 'busybox', volumeMounts: [{ name: 'v', mountPath: '/v', ...mount }] },
      ],
      volumes: [{ name: 'v', image }],
    },
  })
  return validatePod(pod).map(({ path, message }) => `${formatFieldPath(path)}: ${message}`)
}

describe('an image volume', () => {
  it.each<[JsonObject, JsonObject, readonly string[]]>([
    [{ reference: 'data:1' }, {}, []],
    [
      {},
      {},
      [
        'spec.volumes[0].image.reference: Required value',
        'spec.containers[0].volumeMounts[0].name: Not found: "v"',
      ],
    ],
    [{ reference: 'data:1' }, { subPath: 'bin' }, []],
    [
      { reference: 'data:1' },
      { subPathExpr: '../bin' },
      [`spec.containers[0].volumeMounts.subPathExpr: Invalid value: "../bin": must not contain '..'`],
    ],
  ])('of %j, mounted with %j', (image, mount, expected) => {
    expect(problems(image, mount)).toEqual(expected)
  })
})
