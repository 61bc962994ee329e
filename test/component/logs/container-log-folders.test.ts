import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ContainerLogFolders } from '../../../src/logs/container-log-folders.ts'

const ref = { namespace: 'default', name: 'web', uid: 'uid-web' }

let folder: string
let folders: ContainerLogFolders

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podd-log-folders-'))
  folders = new ContainerLogFolders({ podLogsDir: folder, containerLogsDir: join(folder, 'links') })
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('the folder of a container’s logs', () => {
  it('is made once, with those above it', async () => {
    expect(await folders.prepare(ref, 'main')).toBe(true)
    expect(await folders.prepare(ref, 'main')).toBe(false)
    expect(await folders.prepare(ref, 'side')).toBe(true)
    expect(readdirSync(join(folder, 'default_web_uid-web')).toSorted()).toEqual(['main', 'side'])
  })

  it.each([
    ['nothing', [], undefined],
    ['one log', ['0.log'], 0],
    ['several, by number', ['2.log', '10.log', '9.log'], 10],
    ['rotated ones alone', ['3.log.20260101-000000.gz'], 3],
    ['other files', ['notes.txt', '7.log.bak'], undefined],
  ])('knows the newest instance of %s', async (_what, files, expected) => {
    const logs = join(folders.directory(ref), 'main')
    mkdirSync(logs, { recursive: true })
    for (const file of files) writeFileSync(join(logs, file), '')
    expect(await folders.newestInstance(ref, 'main')).toBe(expected)
  })

  it('knows none where there is no folder', async () => {
    expect(await folders.newestInstance(ref, 'main')).toBeUndefined()
  })
})
