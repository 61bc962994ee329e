import { spawn } from 'node:child_process'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findLockHolder, holdInstanceLock } from '../../../src/server/instance-lock.ts'

let folder = ''
let release: (() => void) | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podd-lock-'))
})

afterEach(() => {
  release?.()
  release = undefined
  rmSync(folder, { recursive: true, force: true })
})

/** Runs `flock` on a file, with a program under it that says when it is there and ends with its input. */
function spawnLocker(flags: string, path: string): ChildProcessWithoutNullStreams {
  return spawn('sh', ['-c', `exec flock ${flags} "$1" sh -c 'echo ready; read end'`, 'sh', path])
}

describe('findLockHolder', () => {
  it('names the process that holds the lock, as long as it does', () => {
    expect(findLockHolder(join(folder, 'missing'))).toBeUndefined()
    expect(findLockHolder(folder)).toBeUndefined()
    const unlock = holdInstanceLock(folder)
    expect(findLockHolder(folder)?.pid).toBe(process.pid)
    unlock()
    expect(findLockHolder(folder)).toBeUndefined()
  })

  it('names the parent of two that share it, and none that has another file open', async () => {
    const other = join(folder, 'other')
    mkdirSync(other)
    release = holdInstanceLock(other)
    // `flock` waits for the program, which has its descriptor too.
    const child = spawnLocker('', join(folder, 'lock'))
    try {
      await once(child.stdout, 'data')
      expect(findLockHolder(folder)?.pid).toBe(child.pid)
    } finally {
      child.stdin.end()
      await once(child, 'exit')
    }
  })

  it('takes nobody who only reads the file for its holder', async () => {
    const path = join(folder, 'lock')
    writeFileSync(path, '')
    const child = spawnLocker('--shared', path)
    try {
      await once(child.stdout, 'data')
      expect(findLockHolder(folder)).toBeUndefined()
    } finally {
      child.stdin.end()
      await once(child, 'exit')
    }
  })

  it('tells when the lock is held and nobody is seen who does', () => {
    release = holdInstanceLock(folder)
    const nobody = join(folder, 'proc')
    mkdirSync(nobody)
    expect(() => findLockHolder(folder, nobody)).toThrow(
      expect.objectContaining({
        code: 'DAEMON_UNKNOWN',
        message: expect.stringContaining(`a podd works in ${folder}`) as string,
        hint: expect.stringContaining(`fuser ${folder}/lock`) as string,
      }),
    )
  })
})
