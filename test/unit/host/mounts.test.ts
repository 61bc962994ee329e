import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { mountPointOf, parseMountInfo, readMountsBelow } from '../../../src/host/mounts.ts'

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
  const directory = mkdtempSync(join(tmpdir(), 'podd-mounts-'))
  const file = join(directory, 'mountinfo')
  const line = (point: string): string => `36 1 8:1 / ${point} rw - tmpfs tmpfs rw`
  writeFileSync(file, [line('/a\\040b\\134c'), line('/a\\040b\\134c/d'), line('/a\\040b')].join('\n'))
  try {
    expect(readMountsBelow('/a b\\c', file)).toEqual(['/a b\\c/d', '/a b\\c'])
    expect(readMountsBelow('/a b\\c/d', file)).toEqual(['/a b\\c/d'])
    expect(readMountsBelow('/a', file)).toEqual([])
    expect(readMountsBelow('/elsewhere', file)).toEqual([])
  } finally {
    rmSync(directory, { recursive: true })
  }
})
