import { describe, expect, it } from 'vitest'
import type { HostProcess } from '../../../src/host/processes.ts'
import { selectLeakedShims } from '../../../src/runtime/containerd/leaks.ts'

function shim(pid: number, args: readonly string[]): HostProcess {
  return { pid, parentPid: 1, startTicks: 1, zombie: false, argv: ['containerd-shim-runc-v2', ...args] }
}

describe('selectLeakedShims', () => {
  it.each([
    ['one whose container is known', ['-namespace', 'k8s.io', '-id', 'abc'], ['abc', ''], []],
    ['one whose container is not', ['-namespace', 'k8s.io', '-id', 'abc'], ['abd'], [7]],
    ["somebody else's", ['-namespace', 'default', '-id', 'abc'], [], []],
    ['one of no namespace', ['-id', 'abc'], [], []],
    ['one that names none', ['-namespace', 'k8s.io'], [], []],
    ['one whose id is no id', ['-namespace', 'k8s.io', '-id', '../..'], [], []],
  ])('judges %s', (_title, args, known, expected) => {
    expect(selectLeakedShims([shim(7, args)], new Set(known)).map((leak) => leak.shim.pid)).toEqual(expected)
  })
})
