import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { writeOutLayers } from '../../../src/runtime/embedded-images.ts'

const path = process.env['PATH']
let directory: string

/** A `sync` that notes its calls, waits for the file `go`, and ends with the exit code. */
function provideSync(exitCode: number): void {
  const program = join(directory, 'sync')
  const wait = `until [ -e ${directory}/go ]; do sleep 0.01; done`
  writeFileSync(
    program,
    `#!/bin/sh\necho "$*" >>${directory}/calls\n${wait}\necho no room >&2\nexit ${exitCode}\n`,
  )
  chmodSync(program, 0o755)
}
const letGo = (): void => writeFileSync(join(directory, 'go'), '')
const calls = (): readonly string[] => {
  try {
    return readFileSync(join(directory, 'calls'), 'utf8').trim().split('\n')
  } catch {
    return []
  }
}
const target = (major: number) => ({
  ctrPath: 'ctr',
  socketPath: '/run/c.sock',
  version: { major, minor: 0, patch: 0, text: `${major}.0.0` },
  rootDir: '/var/lib/podd/containerd',
})

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-sync-'))
  process.env['PATH'] = `${directory}:${path}`
})
afterEach(() => {
  process.env['PATH'] = path
  rmSync(directory, { recursive: true })
})

describe('what containerd has unpacked', () => {
  it('is written to the disk of its root directory', async () => {
    provideSync(0)
    letGo()
    await writeOutLayers(target(1))
    expect(calls()).toEqual(['--file-system /var/lib/podd/containerd'])
  })

  it('is left to containerd 2, which writes it by itself', async () => {
    provideSync(0)
    await writeOutLayers(target(2))
    expect(calls()).toEqual([])
  })

  it('is an error where the disk does not take it', async () => {
    provideSync(1)
    letGo()
    await expect(writeOutLayers(target(1))).rejects.toThrow('exited with 1: no room')
  })
})
