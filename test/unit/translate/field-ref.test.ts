import { describe, expect, it } from 'vitest'
import { fieldValue, resourceFieldValue } from '../../../src/translate/references.ts'
import { appOf, resources, testPod } from './pods.ts'

describe('fieldValue', () => {
  const facts = {
    pod: testPod({}, { labels: { b: '2', a: 'x "y"' }, annotations: { 'example.org/n': 'v' } }),
    uid: 'u-1',
    nodeName: 'box',
    hostIps: ['192.0.2.1', '2001:db8::1'],
    podIps: ['10.1.0.2', 'fd00::2'],
  }

  it.each([
    ['metadata.name', 'web'],
    ['metadata.namespace', 'default'],
    ['metadata.uid', 'u-1'],
    ["metadata.labels['b']", '2'],
    ["metadata.labels['none']", ''],
    ["metadata.annotations['example.org/n']", 'v'],
    ['metadata.labels', 'a="x \\"y\\""\nb="2"'],
    ['metadata.annotations', 'example.org/n="v"'],
    ['spec.nodeName', 'box'],
    ['spec.serviceAccountName', ''],
    ['status.hostIP', '192.0.2.1'],
    ['status.hostIPs', '192.0.2.1,2001:db8::1'],
    ['status.podIP', '10.1.0.2'],
    ['status.podIPs', '10.1.0.2,fd00::2'],
    ['spec.hostNetwork', undefined],
    ['metadata.labels[b]', undefined],
  ])('of %s is %j', (path, expected) => {
    expect(fieldValue(path, facts)).toBe(expected)
  })

  it.each([
    ['two\nlines\t"\\', String.raw`two\nlines\t\"\\`],
    ['\u0007\b\v\f\r', String.raw`\a\b\v\f\r`],
    ['\0\u001B[31m\u007F', String.raw`\x00\x1b[31m\x7f`],
    ['\u0085\u00A0\u200B\u2028', String.raw`\u0085\u00a0\u200b\u2028`],
    ['\u{E0001}', String.raw`\U000e0001`],
    ['<grüß & 日本 😀>', '<grüß & 日本 😀>'],
  ])('quotes the annotation %j as Go does', (text, quoted) => {
    const { pod } = facts
    const noted = { ...facts, pod: { ...pod, metadata: { ...pod.metadata, annotations: { n: text } } } }
    expect(fieldValue('metadata.annotations', noted)).toBe(`n="${quoted}"`)
  })
})

describe('resourceFieldValue', () => {
  const pod = testPod({
    containers: [
      { name: 'app', image: 'i', ...resources({ cpu: '250m', memory: '32Mi' }, { memory: '64Mi' }) },
    ],
  })
  const capacity = { cpu: '4', memory: '8Gi', 'hugepages-2Mi': '4Mi' }

  it.each([
    ['requests.cpu', undefined, '1'],
    ['requests.cpu', '1m', '250'],
    ['requests.cpu', '0', '1'],
    ['limits.cpu', undefined, '4'],
    ['limits.memory', undefined, '67108864'],
    ['limits.memory', '1Mi', '64'],
    ['limits.memory', '1M', '68'],
    ['requests.memory', '1Gi', '1'],
    ['requests.ephemeral-storage', undefined, '0'],
    ['limits.hugepages-2Mi', undefined, '4194304'],
    ['limits.gpu', undefined, undefined],
    ['cpu', undefined, undefined],
  ])('of %s by %s is %j', (resource, divisor, expected) => {
    const reference = divisor === undefined ? { resource } : { resource, divisor }
    expect(resourceFieldValue(reference, appOf(pod), { pod: pod.spec, capacity })).toBe(expected)
  })

  it('takes a limit of 0 for none', () => {
    const free = testPod({ containers: [{ name: 'app', image: 'i', ...resources({}, { cpu: '0' }) }] })
    expect(resourceFieldValue({ resource: 'limits.cpu' }, appOf(free), { pod: free.spec, capacity })).toBe(
      '4',
    )
  })

  it.each([
    ['its own limit', {}, { memory: '32Mi' }, 'limits.memory', String(32 * 2 ** 20)],
    ['the limit of the pod', {}, {}, 'limits.memory', String(64 * 2 ** 20)],
    ['the limit of the pod for one of 0', {}, { memory: '0' }, 'limits.memory', String(64 * 2 ** 20)],
    ['what the host gives, where the pod has a limit of 0', {}, {}, 'limits.cpu', '4'],
    ['what the host gives of huge pages', {}, {}, 'limits.hugepages-2Mi', '4194304'],
    ['its own request and not that of the pod', {}, {}, 'requests.memory', '0'],
  ])('is %s', (_what, requests, limits, resource, expected) => {
    const within = testPod({
      containers: [{ name: 'app', image: 'i', ...resources(requests, limits) }],
      ...resources({ memory: '48Mi' }, { memory: '64Mi', cpu: '0', 'hugepages-2Mi': '2Mi' }),
    })
    expect(resourceFieldValue({ resource }, appOf(within), { pod: within.spec, capacity })).toBe(expected)
  })
})
