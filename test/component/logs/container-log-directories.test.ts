import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { gzipSync } from 'node:zlib'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ContainerLogDirectories } from '../../../src/logs/container-log-directories.ts'

const ref = { namespace: 'default', name: 'web', uid: 'uid-web' }

let directory: string
let directories: ContainerLogDirectories

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-log-directories-'))
  directories = new ContainerLogDirectories({
    podLogsDir: directory,
    containerLogsDir: join(directory, 'links'),
  })
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

describe('the directory of a container’s logs', () => {
  it('is made once, with those above it', async () => {
    expect(await directories.prepare(ref, 'main')).toBe(true)
    expect(await directories.prepare(ref, 'main')).toBe(false)
    expect(await directories.prepare(ref, 'side')).toBe(true)
    expect(readdirSync(join(directory, 'default_web_uid-web')).toSorted()).toEqual(['main', 'side'])
  })

  it.each([
    ['nothing', [], undefined],
    ['one log', ['0.log'], 0],
    ['several, by number', ['2.log', '10.log', '9.log'], 10],
    ['rotated ones alone', ['3.log.20260101-000000.gz'], 3],
    ['other files', ['notes.txt', '7.log.bak'], undefined],
  ])('knows the newest instance of %s', async (_what, files, expected) => {
    const logs = join(directories.directory(ref), 'main')
    mkdirSync(logs, { recursive: true })
    for (const file of files) writeFileSync(join(logs, file), '')
    expect(await directories.newestInstance(ref, 'main')).toBe(expected)
  })

  it('knows none where there is no directory', async () => {
    expect(await directories.newestInstance(ref, 'main')).toBeUndefined()
  })
})

describe('links to logs', () => {
  const main = { name: 'main', id: 'id-1', restartCount: 0 }
  const next = { name: 'main', id: 'id-2', restartCount: 1 }
  const links = (): readonly string[] => readdirSync(join(directory, 'links')).toSorted()
  /** Links a container's log, which is there. */
  async function link(pod: typeof ref, container: typeof main): Promise<void> {
    mkdirSync(join(directories.directory(pod), container.name), { recursive: true })
    writeFileSync(join(directories.directory(pod), container.name, `${container.restartCount}.log`), '')
    expect(await directories.link(pod, container)).toBe(true)
  }

  it('are not made where there is no log', async () => {
    await directories.prepare(ref, 'main')
    expect(await directories.link(ref, main)).toBe(false)
    expect(existsSync(join(directory, 'links'))).toBe(false)
  })

  it('are made, and left as they are where they are right', async () => {
    await link(ref, main)
    const [name = ''] = links()
    const path = join(directory, 'links', name)
    expect(name).toBe('web_default_main-id-1.log')
    expect(readlinkSync(path)).toBe(join(directories.directory(ref), 'main/0.log'))
    const { ino } = lstatSync(path)
    await link(ref, main)
    expect(lstatSync(path).ino).toBe(ino)
    rmSync(path)
    symlinkSync('/elsewhere', path)
    await link(ref, main)
    expect(readlinkSync(path)).toBe(join(directories.directory(ref), 'main/0.log'))
  })

  it('of containers that are gone are removed, and none of another pod', async () => {
    const later = { ...ref, uid: 'uid-later' }
    await link(ref, main)
    await link(ref, next)
    await link(later, { ...main, id: 'id-3' })
    await directories.retainLinks(ref, [next])
    expect(links()).toEqual(['web_default_main-id-2.log', 'web_default_main-id-3.log'])
    await directories.retainLinks(later, [])
    expect(links()).toEqual(['web_default_main-id-2.log'])
  })

  it('are removed with their pod where their names were shortened', async () => {
    const long = { ...ref, name: 'n'.repeat(210) }
    const id = 'i'.repeat(64)
    await directories.prepare(long, 'main')
    await link(long, { ...main, id })
    await link({ ...long, uid: 'other' }, { ...main, id: 'j'.repeat(64) })
    expect(links().map((name) => name.length)).toEqual([255, 255])
    await directories.removeAll(long)
    expect(links()).toEqual([expect.stringMatching(/-j+\.log$/u)])
  })

  it('are none where there is no directory', async () => {
    await expect(directories.retainLinks(ref, [])).resolves.toBeUndefined()
  })
})

describe('a pod whose name is too long for a directory, which an earlier podd accepted', () => {
  it.each([0, 60_000])('has no logs, and can be removed (logs kept for %i ms)', async (keptMs) => {
    const long = { ...ref, name: 'n'.repeat(253) }
    const own = new ContainerLogDirectories({
      podLogsDir: directory,
      containerLogsDir: join(directory, 'links'),
      removed: { keptMs, owner: 'me', clock: { wallMs: () => 1 } },
    })
    expect(await own.newestInstance(long, 'main')).toBeUndefined()
    expect(await own.tail(long, 'main', 0)).toBe('')
    expect(await own.measure([long])).toEqual({ files: [], kept: [] })
    await own.remove(long, { name: 'main', id: 'id-1', restartCount: 0 })
    await own.removeAll(long)
  })
})

describe('the end of a log, for a termination message', () => {
  const write = (content: Readonly<Record<string, string | Buffer>>): void => {
    const logs = join(directories.directory(ref), 'main')
    mkdirSync(logs, { recursive: true })
    for (const [file, text] of Object.entries(content)) writeFileSync(join(logs, file), text)
  }
  const tail = (): Promise<string> => directories.tail(ref, 'main', 0)
  const record = (text: string, tag = 'F'): string => `2026-01-01T00:00:00.000000001Z stdout ${tag} ${text}\n`
  const lines = (from: number, to: number): string =>
    Array.from({ length: to - from + 1 }, (_, index) => record(`line ${from + index}`)).join('')
  const texts = (from: number, to: number): string =>
    Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join('')
  /** What this process has read of files so far (proc(5)). */
  const readBytes = (): number => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

  it('is 80 lines and 2048 bytes at most', async () => {
    write({ '0.log': lines(1, 200) })
    expect(await tail()).toBe(texts(121, 200))
    write({ '0.log': record('x'.repeat(2000)) + record('y'.repeat(2000)) })
    expect(await tail()).toBe(`${'x'.repeat(46)}\n${'y'.repeat(2000)}\n`)
  })

  it.each([
    ['partial records', record('10 %'.padEnd(100, '.'), 'P').repeat(100_000) + record('.the end')],
    ['tiny partial records', record('.', 'P').repeat(200_000) + record('.the end')],
    ['one record', record(`${'10 %'.padEnd(8_000_000, '.')}the end`)],
    ['no record', `${'10 %'.padEnd(8_000_000, '.')}the end\n`],
  ])('is found without reading much of a huge line of %s', async (_what, log) => {
    write({ '0.log': log })
    const before = readBytes()
    const message = await tail()
    expect(readBytes() - before).toBeLessThan(2_000_000)
    expect(Buffer.byteLength(message)).toBe(2048)
    expect(message).toMatch(/\.the end\n$/u)
  })

  it('goes back to what rotation put aside, and into nothing compressed', async () => {
    write({
      '0.log.20260101-000000.gz': gzipSync(lines(1, 3)),
      '0.log.20260102-000000': lines(4, 5),
      '0.log': lines(6, 7),
    })
    expect(await tail()).toBe(texts(4, 7))
    write({ '0.log': record('.', 'P').repeat(20_000) })
    expect(await tail()).toBe('.'.repeat(2048))
  })
})
