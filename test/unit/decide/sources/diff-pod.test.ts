import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import { diffPod, explainChange, makesNewPod } from '../../../../src/decide/sources/diff-pod.ts'
import { makePod, sidecar } from '../../../support/pod-builders.ts'
import type { PodChanges } from '../../../support/pod-builders.ts'

const base: PodChanges = {
  metadata: { labels: { app: 'web' } },
  containers: [{ name: 'a', env: [{ name: 'X', value: '1' }] }],
  init: ['i', sidecar('s')],
  ephemeral: ['e'],
  spec: { activeDeadlineSeconds: 60 },
}

describe('diffPod', () => {
  it.each([
    ['nothing', {}, 'same'],
    ['a label', { metadata: { labels: { app: 'shop' } } }, 'in-place'],
    ['an annotation', { metadata: { labels: { app: 'web' }, annotations: { note: 'x' } } }, 'in-place'],
    [
      'the image of a container',
      { containers: [{ name: 'a', image: 'busybox:2', env: [{ name: 'X', value: '1' }] }] },
      'in-place',
    ],
    [
      'the image of a container to one that is always pulled',
      { containers: [{ name: 'a', image: 'busybox', env: [{ name: 'X', value: '1' }] }] },
      'in-place',
    ],
    [
      'the image of an init container',
      { init: [{ name: 'i', image: 'busybox:2' }, sidecar('s')] },
      'in-place',
    ],
    ['the image of a sidecar', { init: ['i', sidecar('s', { image: 'busybox:2' })] }, 'in-place'],
    ['the deadline', { spec: { activeDeadlineSeconds: 30 } }, 'in-place'],
    // Records of podds that knew no Services lack it.
    [
      'whether it gets the variables of Services',
      { spec: { activeDeadlineSeconds: 60, enableServiceLinks: false } },
      'in-place',
    ],
    [
      'a toleration more',
      { spec: { activeDeadlineSeconds: 60, tolerations: [{ key: 'dedicated', operator: 'Exists' }] } },
      'in-place',
    ],
    ['an environment variable', { containers: [{ name: 'a', env: [{ name: 'X', value: '2' }] }] }, 'replace'],
    [
      'the command',
      { containers: [{ name: 'a', command: ['x'], env: [{ name: 'X', value: '1' }] }] },
      'replace',
    ],
    ['a container more', { containers: [{ name: 'a', env: [{ name: 'X', value: '1' }] }, 'b'] }, 'replace'],
    ['the name of a container', { containers: [{ name: 'b', env: [{ name: 'X', value: '1' }] }] }, 'replace'],
    ['the order of the init containers', { init: [sidecar('s'), 'i'] }, 'replace'],
    [
      'a probe',
      {
        containers: [
          { name: 'a', env: [{ name: 'X', value: '1' }], livenessProbe: { tcpSocket: { port: 80 } } },
        ],
      },
      'replace',
    ],
    ['an ephemeral container more', { ephemeral: ['e', 'f'] }, 'in-place'],
    ['an ephemeral container more, before the others', { ephemeral: ['f', 'e'] }, 'in-place'],
    ['no ephemeral container any more', { ephemeral: [] }, 'replace'],
    ['another ephemeral container', { ephemeral: ['f'] }, 'replace'],
    ['the image of an ephemeral container', { ephemeral: [{ name: 'e', image: 'busybox:2' }] }, 'replace'],
    [
      'an ephemeral container more and the command of another',
      { ephemeral: [{ name: 'e', command: ['x'] }, 'f'] },
      'replace',
    ],
    ['the restart policy', { restartPolicy: 'Never' }, 'replace'],
    ['the network', { spec: { activeDeadlineSeconds: 60, hostNetwork: true } }, 'replace'],
    ['the grace', { spec: { activeDeadlineSeconds: 60, terminationGracePeriodSeconds: 5 } }, 'replace'],
  ] as const satisfies readonly (readonly [string, PodChanges, string])[])(
    '%s: %s',
    (_what, changes, expected) => {
      expect(diffPod(makePod(base), makePod({ ...base, ...changes }))).toBe(expected)
    },
  )

  it('compares each of several ephemeral containers', () => {
    const before = makePod({ ephemeral: ['e', 'f'] })
    expect(diffPod(before, makePod({ ephemeral: ['e', { name: 'f', image: 'busybox:2' }] }))).toBe('replace')
    expect(diffPod(before, makePod({ ephemeral: ['g', 'f', 'e'] }))).toBe('in-place')
  })

  it('replaces a pod where one of two containers loses a limit', () => {
    const second = (resources: JsonObject): PodChanges => ({
      containers: [
        { name: 'a', resources: { limits: { cpu: '1' }, requests: { cpu: '1' } } },
        { name: 'b', resources },
      ],
    })
    const before = makePod(second({ limits: { cpu: '1' }, requests: { cpu: '500m' } }))
    expect(diffPod(before, makePod(second({ limits: { cpu: '2' }, requests: { cpu: '500m' } })))).toBe(
      'in-place',
    )
    expect(diffPod(before, makePod(second({ requests: { cpu: '500m' } })))).toBe('replace')
  })

  it('takes another spelling of a capability for no change', () => {
    const dropping = (...drop: string[]) =>
      makePod({ containers: [{ name: 'a', securityContext: { capabilities: { drop } } }] })
    expect(diffPod(dropping('CAP_CHOWN', 'all'), dropping('CHOWN', 'ALL'))).toBe('same')
    expect(diffPod(dropping('CAP_CHOWN'), dropping('CHOWN', 'ALL'))).toBe('replace')
  })

  it('takes a default that is written out for no change', () => {
    const spec = { activeDeadlineSeconds: 60, terminationGracePeriodSeconds: 30, dnsPolicy: 'ClusterFirst' }
    expect(diffPod(makePod(base), makePod({ ...base, spec }))).toBe('same')
  })
})

describe('makesNewPod', () => {
  const before = makePod(base)
  const relabelled = makePod({ ...base, metadata: { labels: { app: 'shop' } } })
  const slower = makePod({ ...base, spec: { activeDeadlineSeconds: 90 } })
  const replaced = makePod({ ...base, spec: { hostNetwork: true } })

  it('is what cannot change in place', () => {
    expect([relabelled, slower, replaced].map((after) => makesNewPod(before, after, false))).toEqual([
      false,
      false,
      true,
    ])
  })

  it('is any other spec where the pod is past that', () => {
    expect([relabelled, slower, replaced].map((after) => makesNewPod(before, after, true))).toEqual([
      false,
      true,
      true,
    ])
  })

  it('is not said of one that has ended for the field that records of an older podd lack', () => {
    const after = makePod({ ...base, spec: { ...base.spec, enableServiceLinks: false } })
    expect(makesNewPod(before, after, true)).toBe(false)
  })
})

const requests = (cpu: string): JsonObject => ({ requests: { cpu }, limits: { cpu: '2' } })

function change(before: PodChanges, after: PodChanges, isPastChange = false) {
  return explainChange({ pod: makePod(before), isPastChange }, makePod(after))
}

describe('explainChange', () => {
  it('tells starts, ends and what stays', () => {
    const pod = makePod()
    expect(explainChange(undefined, pod)).toEqual({ verdict: 'create', details: [] })
    expect(explainChange({ pod, isPastChange: false }, undefined)).toEqual({ verdict: 'end', details: [] })
    expect(explainChange({ pod, isPastChange: true }, pod)).toEqual({ verdict: 'unchanged', details: [] })
    expect(explainChange(undefined, undefined)).toEqual({ verdict: 'unchanged', details: [] })
  })

  it('names the containers that restart or are resized, and what else changes in place', () => {
    const main = (image: string, cpu: string): PodChanges => ({
      containers: [{ name: 'main', image, resources: requests(cpu) }, { name: 'side' }],
    })
    const labelled = { ...main('web:2', '200m'), metadata: { labels: { tier: 'front' } } }
    const { verdict, details } = change(main('web:1', '100m'), {
      ...labelled,
      spec: { activeDeadlineSeconds: 60 },
    })
    expect(verdict).toBe('update')
    expect(details).toEqual([
      'container main restarts: image web:1 -> web:2',
      'container main is resized: requests.cpu 100m -> 200m',
      'metadata.labels.tier unset -> front',
      'spec.activeDeadlineSeconds unset -> 60',
    ])
  })

  it('says where a resize restarts its container', () => {
    const sized = (cpu: string): PodChanges => ({
      containers: [
        {
          name: 'main',
          resources: requests(cpu),
          resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
        },
      ],
    })
    expect(change(sized('100m'), sized('200m')).details).toEqual([
      'container main restarts, resized: requests.cpu 100m -> 200m',
    ])
  })

  it('goes by the resize policy of the resource that changes', () => {
    const sized = (cpu: string): PodChanges => ({
      containers: [
        {
          name: 'main',
          resources: requests(cpu),
          resizePolicy: [
            { resourceName: 'cpu', restartPolicy: 'NotRequired' },
            { resourceName: 'memory', restartPolicy: 'RestartContainer' },
          ],
        },
      ],
    })
    expect(change(sized('100m'), sized('200m')).details).toEqual([
      'container main is resized: requests.cpu 100m -> 200m',
    ])
  })

  it('names the ephemeral containers that are new', () => {
    expect(change({ ephemeral: ['e', 'f'] }, { ephemeral: ['e', 'f', 'g'] })).toEqual({
      verdict: 'update',
      details: ['ephemeral container g starts'],
    })
  })

  it('names a list or a mapping that is gone as a whole', () => {
    const before = { name: 'main', command: ['run'], livenessProbe: { tcpSocket: { port: 80 } } }
    const { details } = change({ containers: [before] }, { containers: ['main'] })
    expect(details.toSorted()).toEqual([
      'spec.containers[0].command ["run"] -> []',
      'spec.containers[0].livenessProbe 6 fields -> unset',
    ])
  })

  it('names the fields that need a new pod, and not those that do not', () => {
    const before: PodChanges = {
      containers: [{ name: 'main', image: 'web:1', env: [{ name: 'A', value: '1' }] }],
    }
    const after: PodChanges = {
      containers: [{ name: 'main', image: 'web:2', env: [{ name: 'A', value: '2' }] }],
      spec: { hostNetwork: true },
    }
    const { verdict, details } = change(before, after)
    expect(verdict).toBe('replace')
    expect(details).toContain('spec.containers[0].env[0].value 1 -> 2')
    expect(details).toContain('spec.hostNetwork false -> true')
    expect(details.join(' ')).not.toContain('spec.containers[0].image')
  })

  it('names resources where changing them so changes the QoS class', () => {
    const sized = (resources: JsonObject): PodChanges => ({ containers: [{ name: 'main', resources }] })
    const { verdict, details } = change(
      sized({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } }),
      sized({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } }),
    )
    expect({ verdict, details }).toEqual({
      verdict: 'replace',
      details: ['spec.containers[0].resources.limits.cpu 1 -> 2'],
    })
  })

  it('replaces a pod that has finished for any change of its spec', () => {
    expect(change({ containers: ['a'] }, { containers: [{ name: 'a', image: 'web:2' }] }, true)).toEqual({
      verdict: 'replace',
      details: ['spec.containers[0].image busybox:1 -> web:2'],
    })
  })

  it('names a few fields of many', () => {
    const env = (value: string): PodChanges => ({
      containers: [{ name: 'main', env: Array.from({ length: 12 }, (_, at) => ({ name: `V${at}`, value })) }],
    })
    const { details } = change(env('1'), env('2'))
    expect(details).toHaveLength(9)
    expect(details.at(-1)).toBe('4 more fields')
  })

  it('names eight fields without a remark on more', () => {
    const env = (value: string): PodChanges => ({
      containers: [{ name: 'main', env: Array.from({ length: 8 }, (_, at) => ({ name: `V${at}`, value })) }],
    })
    const { details } = change(env('1'), env('2'))
    expect(details).toHaveLength(8)
    expect(details.at(-1)).toBe('spec.containers[0].env[7].value 1 -> 2')
  })
})
