import { describe, expect, it } from 'vitest'
import {
  containerLogPath,
  containerLogSymlink,
  mayLinkToLogOf,
  parseLogFileName,
  podLogDirectory,
} from '../../../src/translate/identity.ts'

const pod = { namespace: 'shop', name: 'web', uid: 'u-1' }

describe('log paths', () => {
  it("are the kubelet's", () => {
    expect(podLogDirectory('/var/log/pods', pod)).toBe('/var/log/pods/shop_web_u-1')
    expect(containerLogPath('main', 3)).toBe('main/3.log')
    expect(containerLogSymlink('/var/log/containers', pod, 'main', 'c0ffee')).toBe(
      '/var/log/containers/web_shop_main-c0ffee.log',
    )
  })

  it('keep a link name to 255 characters, the id whole', () => {
    const link = containerLogSymlink('/l', { ...pod, name: 'n'.repeat(253) }, 'main', 'i'.repeat(64))
    expect(link).toHaveLength('/l/'.length + 255)
    expect(link.endsWith(`-${'i'.repeat(64)}.log`)).toBe(true)
  })

  it('tell a link of a pod from one of another, whatever was cut off', () => {
    const id = 'i'.repeat(64)
    for (const length of [1, 100, 153, 154, 178, 181, 182, 210, 253]) {
      const long = { ...pod, name: 'n'.repeat(length) }
      const link = containerLogSymlink('', long, 'main', id).slice(1)
      expect([length, mayLinkToLogOf(long, link)]).toEqual([length, true])
      expect(mayLinkToLogOf({ ...pod, name: `m${long.name.slice(1)}` }, link)).toBe(false)
    }
    const short = { ...pod, name: 'n'.repeat(20) }
    expect(
      mayLinkToLogOf({ ...pod, name: 'n'.repeat(30) }, containerLogSymlink('', short, 'main', id).slice(1)),
    ).toBe(false)
  })

  it.each([
    ['0.log', 0],
    ['12.log', 12],
    ['12.log.20260101-120000', 12],
    ['12.log.20260101-120000.gz', 12],
    ['x.log', undefined],
    ['12.log.tmp', undefined],
    ['12.log.20260101-120000.tmp', undefined],
    ['12', undefined],
  ])('tell of %s which restart it is of', (name, restartCount) => {
    expect(parseLogFileName(name)).toBe(restartCount)
  })
})
