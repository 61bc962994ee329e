import { describe, expect, it } from 'vitest'
import { isStorageLimited, judgeStorage } from '../../../../src/decide/node/judge-pressure.ts'
import { makePod } from '../../../support/pod-builders.ts'

const mebibyte = 1024 ** 2
const limited = (limits: Readonly<Record<string, string>>, spec = {}) =>
  makePod({
    containers: [{ name: 'a', resources: { limits } }, 'b'],
    spec,
  }).spec
const limits = { 'ephemeral-storage': '5Mi' }

describe('a limit of ephemeral storage', () => {
  it.each([
    ['nothing', 0, {}, undefined],
    ['as much as the limit', 5 * mebibyte, { a: 5 * mebibyte }, undefined],
    [
      'more in all than the limits of all containers',
      6 * mebibyte,
      { a: 0, b: 6 * mebibyte },
      'Pod ephemeral local storage usage exceeds the total limit of containers 5Mi. ',
    ],
    [
      'more in one container',
      0,
      { a: 6 * mebibyte },
      'Container a exceeded its local ephemeral storage limit "5Mi". ',
    ],
    ['more in a container without one', 0, { b: 6 * mebibyte }, undefined],
  ])('of a pod that takes %s', (_case, podBytes, containers, message) => {
    expect(judgeStorage(limited(limits), { podBytes, containers: new Map(Object.entries(containers)) })).toBe(
      message,
    )
  })

  it('is none where no container has it, and of critical pods', () => {
    expect(isStorageLimited(limited(limits))).toBe(true)
    expect(isStorageLimited(limited({ memory: '1Mi' }))).toBe(false)
    expect(isStorageLimited(limited(limits, { priority: 2_000_000_000 }))).toBe(false)
  })
})
