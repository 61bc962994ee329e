import { describe, expect, it } from 'vitest'
import { defaultPod, podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { sampleManifest, withFields } from './sample-pod.ts'

const c0 = 'spec.containers.0'
const containerOf = (fields: Parameters<typeof withFields>[0]) =>
  podFromManifest(withFields(fields)).spec.containers[0]

describe('defaults', () => {
  it.each([
    ['busybox', 'Always'],
    ['busybox:latest', 'Always'],
    ['registry.example:5000/app', 'Always'],
    ['busybox:1.36', 'IfNotPresent'],
    [`busybox@sha256:${'a'.repeat(64)}`, 'IfNotPresent'],
    [`busybox:latest@sha256:${'a'.repeat(64)}`, 'IfNotPresent'],
    ['Not An Image', 'IfNotPresent'],
  ])('imagePullPolicy of %s is %s', (image, expected) => {
    expect(containerOf({ [`${c0}.image`]: image })?.imagePullPolicy).toBe(expected)
  })

  it.each([
    [true, undefined],
    [false, false],
    [undefined, undefined],
  ])('take hostUsers: %j for %j', (given, expected) => {
    expect(podFromManifest(withFields({ 'spec.hostUsers': given })).spec.hostUsers).toBe(expected)
  })

  it.each([
    ['CHOWN', 'CHOWN'],
    ['CAP_CHOWN', 'CHOWN'],
    ['cap_net_raw', 'NET_RAW'],
    ['Net_Raw', 'NET_RAW'],
    ['all', 'ALL'],
    ['CAP_ALL', 'ALL'],
  ])('give capability %s the name that the runtime knows: %s', (written, name) => {
    const pod = podFromManifest(
      withFields({
        [`${c0}.securityContext`]: { capabilities: { add: [written], drop: [written] } },
        'spec.initContainers': [
          { name: 'init', image: 'busybox', securityContext: { capabilities: { drop: [written] } } },
        ],
      }),
    )
    expect(pod.spec.containers[0]?.securityContext?.capabilities).toEqual({ add: [name], drop: [name] })
    expect(pod.spec.initContainers[0]?.securityContext?.capabilities).toEqual({ add: [], drop: [name] })
    expect(defaultPod(pod)).toEqual(pod)
  })

  it('request what is limited, and leave what is requested', () => {
    const resources = { limits: { cpu: 1, memory: '1Gi' }, requests: { cpu: '0.25' } }
    expect(containerOf({ [`${c0}.resources`]: resources })?.resources).toEqual({
      limits: { cpu: '1', memory: '1Gi' },
      requests: { cpu: '250m', memory: '1Gi' },
    })
  })

  it('give host-network pods the container’s port on the host, and no other pods', () => {
    const ports = [{ containerPort: 80 }, { containerPort: 81, hostPort: 81 }]
    const onHost = containerOf({ 'spec.hostNetwork': true, [`${c0}.ports`]: ports })
    expect(onHost?.ports.map((port) => port.hostPort)).toEqual([80, 81])
    expect(containerOf({ [`${c0}.ports`]: ports })?.ports.map((port) => port.hostPort)).toEqual([
      undefined,
      81,
    ])
  })

  it('make a volume without a source an emptyDir, and relative mount paths absolute', () => {
    const { spec } = podFromManifest(
      withFields({
        'spec.volumes': [{ name: 'v' }],
        [`${c0}.volumeMounts`]: [{ name: 'v', mountPath: 'data' }],
      }),
    )
    expect(spec.volumes).toEqual([{ name: 'v', emptyDir: { medium: '' } }])
    expect(spec.containers[0]?.volumeMounts[0]?.mountPath).toBe('/data')
  })

  it('take zeros in a probe for nothing', () => {
    const probe = {
      httpGet: { port: 80, path: '' },
      periodSeconds: 0,
      timeoutSeconds: 0,
      failureThreshold: 0,
    }
    expect(containerOf({ [`${c0}.livenessProbe`]: probe })?.livenessProbe).toMatchObject({
      httpGet: { path: '/', scheme: 'HTTP' },
      periodSeconds: 10,
      timeoutSeconds: 1,
      failureThreshold: 3,
      successThreshold: 1,
    })
  })

  it('change nothing when they are applied again', () => {
    const pod = podFromManifest(
      withFields({
        'metadata.namespace': '',
        'spec.hostNetwork': true,
        [`${c0}.ports`]: [{ containerPort: 80 }],
      }),
    )
    expect(pod.metadata.namespace).toBe('default')
    expect(defaultPod(pod)).toEqual(pod)
  })
})

describe('podFromManifest', () => {
  it('leaves out what this version does not know', () => {
    const pod = podFromManifest(withFields({ 'spec.fromTheFuture': { a: 1 } }))
    expect(pod).toEqual(podFromManifest(sampleManifest))
  })

  it('throws for what is no pod', () => {
    expect(() => podFromManifest({ kind: 'Pod' })).toThrow(
      expect.objectContaining({ code: 'MANIFEST_UNREADABLE' }),
    )
  })
})
