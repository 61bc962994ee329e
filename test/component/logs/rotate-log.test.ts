import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { rotateLog } from '../../../src/logs/rotate-log.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-rotate-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const limits = { maxSizeBytes: 10, maxFiles: 3 }

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text)
}

/** As the runtime does it: opens the live file, making it where there is none. */
async function reopen(): Promise<void> {
  writeFileSync(join(directory, '0.log'), '', { flag: 'a' })
}

function rotate(second: number, how: () => Promise<void> = reopen): Promise<boolean> {
  const nowMs = Date.UTC(2026, 0, 1, 0, 0, second)
  const signal = new AbortController().signal
  return rotateLog({ directory, restartCount: 0, limits, nowMs, reopen: how, signal })
}

describe('rotateLog', () => {
  it('puts the live file aside, compresses it the next time, and removes it in the end', async () => {
    write('0.log', 'first text\n')
    expect(await rotate(1)).toBe(true)
    expect(readdirSync(directory).toSorted()).toEqual(['0.log', '0.log.20260101-000001'])
    write('0.log', 'second text\n')
    await rotate(2)
    expect(readdirSync(directory).toSorted()).toEqual([
      '0.log',
      '0.log.20260101-000001.gz',
      '0.log.20260101-000002',
    ])
    const packed = readFileSync(join(directory, '0.log.20260101-000001.gz'))
    expect(gunzipSync(packed).toString()).toBe('first text\n')
    write('0.log', 'third text\n')
    await rotate(3)
    expect(readdirSync(directory).toSorted()).toEqual([
      '0.log',
      '0.log.20260101-000002.gz',
      '0.log.20260101-000003',
    ])
  })

  it('does nothing below the limit, nor where there is no directory', async () => {
    write('0.log', 'short\n')
    expect(await rotate(1)).toBe(false)
    rmSync(directory, { recursive: true })
    expect(await rotate(1)).toBe(false)
  })

  it('has the live file made at the next look where the runtime did not answer', async () => {
    write('0.log', 'first text\n')
    await expect(rotate(1, () => Promise.reject(new Error('no answer')))).rejects.toThrow('no answer')
    expect(readdirSync(directory)).toEqual(['0.log.20260101-000001'])
    // The container writes on to the renamed file meanwhile.
    write('0.log.20260101-000001', 'first text\nmore\n')
    expect(await rotate(2)).toBe(true)
    expect(readdirSync(directory).toSorted()).toEqual(['0.log', '0.log.20260101-000001'])
  })

  it('leaves the files of other instances of the container alone', async () => {
    write('0.log', 'first text\n')
    write('1.log', 'another one\n')
    write('10.log.20260101-000000', 'a third\n')
    await rotate(1)
    expect(readFileSync(join(directory, '1.log'), 'utf8')).toBe('another one\n')
    expect(readFileSync(join(directory, '10.log.20260101-000000'), 'utf8')).toBe('a third\n')
  })
})
