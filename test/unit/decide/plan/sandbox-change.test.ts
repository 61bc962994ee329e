import { describe, expect, it } from 'vitest'
import { computeSandboxChange } from '../../../../src/decide/plan/compute-pod-actions.ts'
import type { ObservedSandbox } from '../../../../src/pod/state/observed.ts'
import { observedPod, observedSandbox } from '../../../support/pod-builders.ts'

const second = observedSandbox({ attempt: 1 })
const first = observedSandbox()

describe('computeSandboxChange', () => {
  it.each([
    // id: makes-the-first-one
    ['makes the first one', [], false, 0],
    // id: replaces-several-ready
    ['replaces several that are ready', [second, first], false, 2],
    [
      // id: replaces-newest-none-ready
      'replaces the newest when none is ready',
      [
        { ...second, ready: false },
        { ...first, ready: false },
      ],
      false,
      2,
    ],
    [
      'replaces the newest that is not ready although an older one is',
      [{ ...second, ready: false }, first],
      false,
      2,
    ],
    // id: replaces-on-pod-network
    ['replaces one on the pod network for a pod on the host network', [first], true, 1],
    [
      'replaces one on the host network for a pod on the pod network',
      [{ ...first, hostNetwork: true }],
      false,
      1,
    ],
    // id: replaces-without-address
    ['replaces one without an address', [{ ...first, ips: [] }], false, 1],
  ] as const satisfies readonly (readonly [string, readonly ObservedSandbox[], boolean, number])[])(
    '%s',
    (_title, sandboxes, hostNetwork, attempt) => {
      expect(computeSandboxChange(observedPod({ sandboxes }), hostNetwork)).toEqual({
        kind: 'create',
        attempt,
      })
    },
  )

  it.each([
    // id: keeps-ready-address
    ['keeps one that is ready and has an address', [first], false],
    [
      'keeps one on the host network, which has no address of its own',
      [{ ...first, hostNetwork: true, ips: [] }],
      true,
    ],
    ['keeps the newest beside older ones that are not ready', [second, { ...first, ready: false }], false],
  ] as const)('%s', (_title, sandboxes, hostNetwork) => {
    expect(computeSandboxChange(observedPod({ sandboxes }), hostNetwork)).toEqual({
      kind: 'keep',
      sandbox: sandboxes[0],
    })
  })
})
