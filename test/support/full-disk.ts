import { execFileSync } from 'node:child_process'
import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** An ext4 of its own, in a file, mounted on a loop device: one that a test can fill. */
export function mountSmallDisk(file: string, on: string, sizeMiB: number): void {
  const image = openSync(file, 'w')
  ftruncateSync(image, sizeMiB * 1024 * 1024)
  closeSync(image)
  execFileSync('mkfs.ext4', ['-q', '-F', '-m', '0', file])
  mkdirSync(on, { recursive: true })
  execFileSync('mount', ['-o', 'loop', file, on])
}

/** Takes all the room that a disk has; `makeRoom` gives it back. */
export function fillDisk(directory: string): void {
  const chunk = Buffer.alloc(1024 * 1024)
  for (const size of [chunk.length, 4096, 512]) {
    try {
      for (;;) writeFileSync(join(directory, fillerName), chunk.subarray(0, size), { flag: 'a' })
    } catch {
      // Full, for pieces of this size.
    }
  }
}

export function makeRoom(directory: string): void {
  rmSync(join(directory, fillerName), { force: true })
}

const fillerName = 'filler'
