import { networkInterfaces } from 'node:os'
import { expect, it } from 'vitest'
import { untilAddressesChange, withoutLinkLocal } from '../../../src/host/addresses.ts'

function rig() {
  const host: { files: string | undefined; failure?: Error } = { files: '192.0.2.1' }
  let computed = 0
  const read = untilAddressesChange(
    () => {
      if (host.failure !== undefined) throw host.failure
      computed += 1
      return computed
    },
    () => host.files,
  )
  return { host, read }
}

it('computes again when the addresses or routes have changed, and when asked to', () => {
  const { host, read } = rig()
  expect([read(), read()]).toEqual([1, 1])
  host.files = '192.0.2.2'
  expect([read(), read()]).toEqual([2, 2])
  expect([read({ isFresh: true }), read()]).toEqual([3, 3])
})

it('computes each time where there is too much to compare', () => {
  const { host, read } = rig()
  host.files = undefined
  expect([read(), read()]).toEqual([1, 2])
})

it('remembers nothing of a failure', () => {
  const { host, read } = rig()
  read()
  host.failure = new Error('no interfaces')
  expect(() => read({ isFresh: true })).toThrow('no interfaces')
  delete host.failure
  expect(read()).toBe(2)
})

it("knows this host's addresses by its files", () => {
  const read = untilAddressesChange(() => networkInterfaces()['lo'])
  expect(read()).toEqual(networkInterfaces()['lo'])
})

it("computes nothing again for the link-local address of a pod's link", () => {
  const own = '20010db8000000000000000000000001 02 40 00 80     eth0\n'
  const link = 'fe80000000000000d88f9efffed7faa0 b67 40 20 80 veth30f3ce1f\n'
  expect(withoutLinkLocal(`${own}${link}${own}${link}`)).toBe(`${own}${own}`)
})
