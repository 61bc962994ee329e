import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import {
  containerAnnotations,
  containerLabels,
  instanceSelector,
  labelKeys,
  orphanManifest,
  readContainerFacts,
  readManifestHash,
  readPodRef,
  sandboxAnnotations,
  sandboxLabels,
} from '../../../src/translate/identity.ts'
import { observedContainer, observedPod } from '../../support/pod-builders.ts'
import { appOf, testPod } from './pods.ts'

const owner = { uid: 'u-1', instance: 'edge' }

function factsOf(container: JsonObject) {
  const pod = testPod({ containers: [{ name: 'app', image: 'i', ...container }] })
  return readContainerFacts(containerAnnotations(pod.spec, appOf(pod), 'v1-ab', 3))
}

describe('labels', () => {
  it('say whose a sandbox is, whatever the manifest labels', () => {
    const pod = testPod({}, { labels: { app: 'web', [labelKeys.podUid]: 'stolen' } })
    const labels = sandboxLabels({ pod, ...owner })
    expect(labels['app']).toBe('web')
    expect(readPodRef(labels)).toEqual({ name: 'web', namespace: 'default', uid: 'u-1' })
    expect(labels).toMatchObject(instanceSelector('edge'))
  })

  it('say whose a container is', () => {
    const pod = testPod({}, { labels: { app: 'web' } })
    const labels = containerLabels({ pod, ...owner, container: appOf(pod) })
    expect(labels).toEqual({
      'io.kubernetes.pod.name': 'web',
      'io.kubernetes.pod.namespace': 'default',
      'io.kubernetes.pod.uid': 'u-1',
      'io.kubernetes.container.name': 'app',
      'podd.dev/instance': 'edge',
    })
  })

  it('name no instance where there is one podd', () => {
    expect(sandboxLabels({ pod: testPod(), uid: 'u', instance: '' })).not.toHaveProperty([labelKeys.instance])
    expect(instanceSelector('')).toEqual({})
  })

  it.each([
    {},
    { [labelKeys.podName]: 'a' },
    { 'io.kubernetes.pod.name': 'a', 'io.kubernetes.pod.namespace': 'b' },
  ])('that are incomplete are nobody’s: %j', (labels: Readonly<Record<string, string>>) => {
    expect(readPodRef(labels)).toBeUndefined()
  })
})

describe('readPodRef', () => {
  const labels = {
    [labelKeys.podName]: 'web',
    [labelKeys.podNamespace]: 'default',
    [labelKeys.podUid]: 'u-1',
  }

  it.each([labelKeys.podName, labelKeys.podNamespace, labelKeys.podUid])('finds no pod without %s', (key) => {
    const { [key]: _, ...others } = labels
    expect(readPodRef(labels)).toEqual({ name: 'web', namespace: 'default', uid: 'u-1' })
    expect(readPodRef(others)).toBeUndefined()
  })

  it('finds no pod of an empty UID', () => {
    expect(readPodRef({ ...labels, [labelKeys.podUid]: '' })).toBeUndefined()
  })
})

describe('orphanManifest', () => {
  it('has the longest grace of the containers, and two seconds at least', () => {
    const of = (...graces: readonly number[]) =>
      orphanManifest(
        observedPod({
          sandboxes: [],
          containers: graces.map((seconds, at) =>
            observedContainer(`c${at}`, {
              annotations: { 'io.kubernetes.pod.terminationGracePeriod': String(seconds) },
            }),
          ),
        }),
      )['spec']
    expect(of()).toEqual({ terminationGracePeriodSeconds: 2, hostNetwork: false, containers: [] })
    expect(of(1)).toMatchObject({ terminationGracePeriodSeconds: 2 })
    expect(of(30, 5)).toMatchObject({ terminationGracePeriodSeconds: 30 })
  })
})

describe('annotations', () => {
  it('keep the manifest’s hash, which a manifest can’t fake', () => {
    const pod = testPod({}, { annotations: { note: 'x', 'podd.dev/manifest-hash': 'fake' } })
    const annotations = sandboxAnnotations(pod, 'v1-cd')
    expect(annotations['note']).toBe('x')
    expect(readManifestHash(annotations)).toBe('v1-cd')
  })

  it('read back as they were written', () => {
    expect(
      factsOf({ terminationMessagePolicy: 'FallbackToLogsOnError', ports: [{ containerPort: 80 }] }),
    ).toEqual({
      specHash: 'v1-ab',
      restartCount: 3,
      image: 'i',
      resources: { limits: {}, requests: {} },
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'FallbackToLogsOnError',
      terminationGraceSeconds: 30,
      preStop: undefined,
      ports: [{ containerPort: 80, protocol: 'TCP' }],
    })
  })

  it.each<JsonObject>([
    { containerPort: 80, protocol: 'TCP' },
    { containerPort: 53, protocol: 'UDP', name: 'dns', hostIP: '127.0.0.1', hostPort: 5353 },
    { containerPort: 9, protocol: 'SCTP' },
  ])('keep the port %j', (port) => {
    expect(factsOf({ ports: [port] }).ports).toEqual([port])
  })

  it('that were garbled give no port', () => {
    const ports = (text: string) => readContainerFacts({ 'io.kubernetes.container.ports': text }).ports
    expect(
      ports('[3,{"containerPort":"80"},{"containerPort":81,"protocol":"X"},{"containerPort":80}]'),
    ).toEqual([{ containerPort: 80, protocol: 'TCP' }])
  })

  it.each<JsonObject>([
    { exec: { command: ['sh', '-c', 'sleep 1'] } },
    { sleep: { seconds: 4 } },
    {
      httpGet: {
        path: '/bye',
        port: 'http',
        scheme: 'HTTPS',
        host: 'h',
        httpHeaders: [{ name: 'A', value: 'b' }],
      },
    },
  ])('keep the preStop hook %j', (preStop) => {
    expect(factsOf({ lifecycle: { preStop } }).preStop).toEqual(preStop)
  })

  it.each(['', '{', 'null', '[]', '{"httpGet":{"path":"/"}}', '{"sleep":{"seconds":"1"}}'])(
    'that were garbled give no hook: %s',
    (text) => {
      const facts = readContainerFacts({
        'io.kubernetes.container.preStopHandler': text,
        'io.kubernetes.container.ports': text,
        'io.kubernetes.container.restartCount': text,
      })
      expect(facts).toMatchObject({ preStop: undefined, ports: [], restartCount: undefined })
    },
  )
})
