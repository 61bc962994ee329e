import { spawn } from 'node:child_process'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findLockHolder, holdInstanceLock } from '../../../src/server/http/listen.ts'

let directory = ''
let release: (() => void) | undefined

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-lock-'))
})

afterEach(() => {
  release?.()
  release = undefined
  rmSync(directory, { recursive: true, force: true })
})

/** Runs `flock` on a file, with a program under it that says when it is there and ends with its input. */
function spawnLocker(flags: string, path: string): ChildProcessWithoutNullStreams {
  return spawn('sh', ['-c', `exec flock ${flags} "$1" sh -c 'echo ready; read end'`, 'sh', path])
}

describe('findLockHolder', () => {
  // id: one-holder-of-lock
  it('names the process that holds the lock, as long as it does', () => {
    expect(findLockHolder(join(directory, 'missing'))).toBeUndefined()
    expect(findLockHolder(directory)).toBeUndefined()
    const unlock = holdInstanceLock(directory)
    expect(findLockHolder(directory)?.pid).toBe(process.pid)
    unlock()
    expect(findLockHolder(directory)).toBeUndefined()
  })

  it('names the parent of two that share it, and none that has another file open', async () => {
    const other = join(directory, 'other')
    mkdirSync(other)
    release = holdInstanceLock(other)
    // `flock` waits for the program, which has its descriptor too.
    const child = spawnLocker('', join(directory, 'lock'))
    try {
      await once(child.stdout, 'data')
      expect(findLockHolder(directory)?.pid).toBe(child.pid)
    } finally {
      child.stdin.end()
      await once(child, 'exit')
    }
  })

  it('takes nobody who only reads the file for its holder', async () => {
    const path = join(directory, 'lock')
    writeFileSync(path, '')
    const child = spawnLocker('--shared', path)
    try {
      await once(child.stdout, 'data')
      expect(findLockHolder(directory)).toBeUndefined()
    } finally {
      child.stdin.end()
      await once(child, 'exit')
    }
  })

  it('tells when the lock is held and nobody is seen who does', () => {
    release = holdInstanceLock(directory)
    const nobody = join(directory, 'proc')
    mkdirSync(nobody)
    expect(() => findLockHolder(directory, nobody)).toThrow(
      expect.objectContaining({
        code: 'DAEMON_UNKNOWN',
        message: expect.stringContaining(`a podd works in ${directory}`) as string,
        hint: expect.stringContaining(`fuser ${directory}/lock`) as string,
      }),
    )
  })
})
