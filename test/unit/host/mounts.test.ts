import { expect, it } from 'vitest'
import { mountPointOf, mountSharing, mountsBelow, parseMountInfo } from '../../../src/host/mounts.ts'

const mounts = parseMountInfo(
  ['/', '/mnt', '/mnt/usb', '/mnt/usb/pods/deeper']
    .map((point, index) => `${index} 1 8:1 / ${point} rw - ext4 /dev/sda1 rw`)
    .join('\n'),
)

it.each([
  ['/etc/pods', '/'],
  ['/mnt', '/mnt'],
  ['/mnt/usb/pods', '/mnt/usb'],
  ['/mnt/usbstick', '/mnt'],
])('%s lies on what is mounted at %s', (path, expected) => {
  expect(mountPointOf(path, mounts)).toBe(expected)
})

it('finds what is mounted below a directory by its name as the kernel writes it', () => {
  const line = (point: string): string => `36 1 8:1 / ${point} rw - tmpfs tmpfs rw`
  const table = parseMountInfo(
    [line('/a\\040b\\134c'), line('/a\\040b\\134c/d'), line('/a\\040b')].join('\n'),
  )
  expect(mountsBelow('/a b\\c', table)).toEqual(['/a b\\c/d', '/a b\\c'])
  expect(mountsBelow('/a b\\c/d', table)).toEqual(['/a b\\c/d'])
  expect(mountsBelow('/a', table)).toEqual([])
  expect(mountsBelow('/elsewhere', table)).toEqual([])
})

const shared = [
  '1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw',
  '2 1 8:2 / /mnt rw shared:5 - ext4 /dev/sda2 rw',
  '3 1 8:3 / /run/a\\040b rw master:5 propagate_from:7 - ext4 /dev/sda3 rw',
  '4 1 8:4 / /data rw - ext4 /dev/sda4 rw',
  '5 4 8:5 / /data rw,noexec shared:9 master:5 - ext4 /dev/sda5 rw',
].join('\n')

it.each([
  ['/etc', 'private'],
  ['/mnt/usb', 'shared'],
  ['/run/a b/c', 'slave'],
  ['/data/x', 'shared'],
])('%s lies on a mount that is %s', (path, expected) => {
  expect(mountSharing(path, shared)).toBe(expected)
})
