import { describe, expect, it } from 'vitest'
import { diffPod, makesNewPod } from '../../../src/decide/sources/diff-pod.ts'
import { makePod, sidecar } from '../../support/pod-builders.ts'
import type { PodChanges } from '../../support/pod-builders.ts'

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
})
