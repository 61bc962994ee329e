import { expect, it } from 'vitest'
import { mountPointOf, parseMountInfo } from '../../../src/host/mounts.ts'

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
