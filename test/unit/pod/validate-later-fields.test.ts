import { describe, expect, it } from 'vitest'
import type { Json } from '../../../src/base/json.ts'
import { formatFieldPath } from '../../../src/pod/schema/issues.ts'
import { fillDefaults } from '../../../src/pod/schema/types.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { containerSchema } from '../../../src/pod/schema/container-schema.ts'
import { podSpecSchema } from '../../../src/pod/schema/pod-schema.ts'
import type { Fields } from '../../../src/pod/schema/types.ts'
import { volumeSchema } from '../../../src/pod/schema/volume-schema.ts'
import { validatePod } from '../../../src/pod/validation/validate-pod.ts'
import { sampleManifest } from './sample-pod.ts'

/** What validation says when the schema takes the fields that it may refuse today. */
function problemsOf(
  part: 'spec' | 'container' | 'volume' | 'variable',
  fields: Record<string, Json>,
): readonly string[] {
  const pod = podFromManifest(sampleManifest)
  const [container] = pod.spec.containers
  const schemas: Record<string, Fields> = {
    spec: podSpecSchema.fields,
    container: containerSchema.fields,
    volume: volumeSchema.fields,
    variable: (containerSchema.fields.env.type as unknown as { item: { fields: Fields } }).item.fields,
  }
  const filled = Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, fillDefaults(schemas[part]![key]!.type, value)]),
  )
  const variable = { name: 'A', value: '', ...filled }
  const spec = {
    ...pod.spec,
    ...(part === 'spec' && filled),
    ...(part === 'volume' && { volumes: [{ name: 'v', ...filled }] }),
    containers: [
      { ...container!, ...(part === 'container' && filled), ...(part === 'variable' && { env: [variable] }) },
    ],
  }
  return validatePod({ ...pod, spec }).map(({ path, message }) => `${formatFieldPath(path)}: ${message}`)
}

const item = (fields: Record<string, Json>): Record<string, Json> => ({ key: 'k', path: 'p', ...fields })
const label = { fieldRef: { fieldPath: "metadata.labels['app']" } }

describe('fields that a later version takes are valid', () => {
  it.each<[Parameters<typeof problemsOf>[0], Record<string, Json>]>([
    ['container', { envFrom: [{ prefix: 'A_', configMapRef: { name: 'c' } }, { secretRef: { name: 's' } }] }],
    ['variable', { valueFrom: label }],
    ['variable', { valueFrom: { fieldRef: { fieldPath: 'status.podIPs' } } }],
    ['variable', { valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } }],
    ['variable', { valueFrom: { configMapKeyRef: { name: 'c', key: 'a.b' } } }],
    ['volume', { configMap: { name: 'c', items: [item({ path: 'a/b', mode: 0o400 })] } }],
    ['volume', { secret: { secretName: 's', defaultMode: 0o777 } }],
    ['volume', { downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } }],
    [
      'volume',
      {
        projected: {
          sources: [
            { configMap: { name: 'c' } },
            {
              downwardAPI: {
                items: [{ path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'limits.cpu' } }],
              },
            },
          ],
        },
      },
    ],
    [
      'spec',
      {
        dnsPolicy: 'None',
        dnsConfig: {
          nameservers: ['10.0.0.1', '::1'],
          searches: ['a.b.', '.', '_x.y', 'a_b'],
          options: [{ name: 'ndots', value: '2' }, { name: 'rotate' }],
        },
      },
    ],
    ['spec', { hostAliases: [{ ip: '10.0.0.1', hostnames: ['a', 'b.c'] }] }],
  ])('%s %j', (part, fields) => {
    expect(problemsOf(part, fields)).toEqual([])
  })
})

describe('fields that a later version takes are invalid', () => {
  it.each<[Parameters<typeof problemsOf>[0], Record<string, Json>, string]>([
    [
      'container',
      { envFrom: [{ prefix: 'a=', configMapRef: { name: 'c' } }] },
      'envFrom[0].prefix: Invalid value',
    ],
    [
      'container',
      { envFrom: [{}] },
      'envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
    ],
    [
      'container',
      { envFrom: [{ configMapRef: { name: 'C' } }] },
      'envFrom[0].configMapRef.name: Invalid value: "C"',
    ],
    [
      'container',
      { volumeMounts: [], securityContext: { runAsUser: -1 } },
      'securityContext.runAsUser: Invalid value: -1',
    ],
    [
      'variable',
      { valueFrom: { ...label, secretKeyRef: { name: 's', key: 'k' } } },
      'may not have more than one field specified at a time',
    ],
    ['variable', { value: 'x', valueFrom: label }, 'may not be specified when `value` is not empty'],
    [
      'variable',
      { valueFrom: { fieldRef: { fieldPath: 'spec.x' } } },
      'fieldPath: Invalid value: "spec.x": error converting fieldPath: field label not supported: spec.x',
    ],
    ['variable', { valueFrom: { resourceFieldRef: { resource: 'cpu' } } }, 'Unsupported value: "cpu"'],
    [
      'variable',
      { valueFrom: { configMapKeyRef: { name: 'c', key: 'a/x' } } },
      'valueFrom.configMapKeyRef.key: Invalid value: "a/x"',
    ],
    ['volume', { configMap: { name: '' } }, 'spec.volumes[0].configMap.name: Required value'],
    ['volume', { configMap: { name: 'c', items: [item({ path: '/a' })] } }, 'must be a relative path'],
    ['volume', { configMap: { name: 'c', items: [item({ path: 'a/../b' })] } }, "must not contain '..'"],
    ['volume', { configMap: { name: 'c', items: [item({ path: '..a' })] } }, "must not start with '..'"],
    ['volume', { configMap: { name: 'c', items: [item({ key: '' })] } }, 'items[0].key: Required value'],
    ['volume', { secret: { secretName: 's', defaultMode: 0o1000 } }, 'must be a number between 0 and 0777'],
    [
      'volume',
      { downwardAPI: { items: [{ path: 'a' }] } },
      'one of fieldRef and resourceFieldRef is required',
    ],
    [
      'volume',
      { downwardAPI: { items: [{ path: 'a', fieldRef: { fieldPath: 'status.podIP' } }] } },
      'Unsupported value: "status.podIP"',
    ],
    [
      'volume',
      { downwardAPI: { items: [{ path: 'a', resourceFieldRef: { resource: 'limits.cpu' } }] } },
      'resourceFieldRef.containerName: Required value',
    ],
    [
      'volume',
      { projected: { sources: [{ configMap: { name: 'c' }, secret: { name: 's' } }] } },
      'may not specify more than 1 volume type per source',
    ],
    [
      'spec',
      { dnsConfig: { nameservers: ['a'] } },
      'spec.dnsConfig.nameservers[0]: Invalid value: "a": must be a valid IP address',
    ],
    [
      'spec',
      { dnsConfig: { nameservers: ['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4'] } },
      'must not have more than 3 nameservers',
    ],
    ['spec', { dnsConfig: { searches: ['A B'] } }, 'spec.dnsConfig.searches[0]: Invalid value'],
    ['spec', { dnsConfig: { searches: Array(33).fill('a') } }, 'must not have more than 32 search paths'],
    ['spec', { dnsConfig: { options: [{ name: '' }] } }, 'spec.dnsConfig.options[0]: Required value'],
    ['spec', { dnsConfig: { nameservers: ['1.1.1.1\nnameserver 2.2.2.2'] } }, 'must be a valid IP address'],
    ['spec', { dnsConfig: { nameservers: ['fe80::1%eth0'] } }, 'must be a valid IP address'],
    ['spec', { dnsConfig: { nameservers: ['010.0.0.1'] } }, 'must not have leading 0s'],
    ['spec', { dnsConfig: { nameservers: ['::ffff:1.2.3.4'] } }, 'must not be an IPv4-mapped IPv6 address'],
    [
      'spec',
      { dnsConfig: { searches: ['a\nnameserver 2.2.2.2'] } },
      'spec.dnsConfig.searches[0]: Invalid value: "a\\nnameserver 2.2.2.2": a lowercase RFC 1123 subdomain must',
    ],
    ['spec', { dnsConfig: { searches: ['a.\n'] } }, 'spec.dnsConfig.searches[0]: Invalid value'],
    ['spec', { dnsConfig: { searches: ['a_'] } }, "characters, '_', '-' or '.'"],
    [
      'spec',
      { dnsConfig: { options: [{ name: 'ndots\nnameserver 2.2.2.2' }] } },
      'spec.dnsConfig.options[0].name: Invalid value: "ndots\\nnameserver 2.2.2.2": must not contain line breaks',
    ],
    [
      'spec',
      { dnsConfig: { options: [{ name: 'ndots', value: '5\rnameserver 2.2.2.2' }] } },
      'spec.dnsConfig.options[0].value: Invalid value: "5\\rnameserver 2.2.2.2": must not contain line breaks',
    ],
    [
      'spec',
      { hostAliases: [{ ip: '1.1.1.1\n2.2.2.2 b', hostnames: ['a'] }] },
      'spec.hostAliases[0].ip: Invalid value',
    ],
    [
      'spec',
      { hostAliases: [{ ip: 'fe80::1%a', hostnames: ['a'] }] },
      'spec.hostAliases[0].ip: Invalid value',
    ],
    [
      'spec',
      { hostAliases: [{ ip: '1.1.1.1', hostnames: ['a\n2.2.2.2 b'] }] },
      'spec.hostAliases[0].hostnames[0]: Invalid value',
    ],
    ['spec', { hostAliases: [{ ip: 'x', hostnames: ['a'] }] }, 'spec.hostAliases[0].ip: Invalid value: "x"'],
    [
      'spec',
      { hostAliases: [{ ip: '::1', hostnames: ['A'] }] },
      'spec.hostAliases[0].hostnames[0]: Invalid value: "A"',
    ],
  ])('%s %j', (part, fields, expected) => {
    const problems = problemsOf(part, fields)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(expected)
  })
})
