import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { errorCode } from '../../../src/base/errors.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { CrashGuard } from '../../../src/daemon/crash-guard.ts'
import { rotateLog } from '../../../src/logs/rotate-log.ts'
import { OwnAuthority } from '../../../src/server/access/own-authority.ts'
import { writeVolumeFiles } from '../../../src/volumes/atomic-writer.ts'
import { writeEtcHosts, refreshResolvConf, writeResolvConf } from '../../../src/volumes/pod-directory.ts'
import { fillDisk, makeRoom } from '../../support/full-disk.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { versionedFiles } from '../../support/state-files.ts'
import { textFiles } from '../../support/text-state-files.ts'

// mount(2) is root's.
const rootOnly = process.getuid?.() !== 0

let disk = ''

beforeEach(() => {
  disk = mkdtempSync(join(tmpdir(), 'podd-test-disk-'))
  if (!rootOnly) execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'podd-test', disk])
})

afterEach(() => {
  if (!rootOnly) execFileSync('umount', [disk])
  rmSync(disk, { recursive: true })
})

/** How a disk can't be written, and how it can again. */
const faults = [
  ['ENOSPC', () => fillDisk(disk), () => makeRoom(disk)],
  ['EROFS', () => remount('ro'), () => remount('rw')],
] as const

function remount(how: 'ro' | 'rw'): void {
  execFileSync('mount', ['-o', `remount,${how}`, disk])
}

/** All files but what fills the disk, with their text. */
function filesOf(directory = disk): Readonly<Record<string, string>> {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name !== 'filler',
  )
  const files = names.filter((name) => statSync(join(directory, name)).isFile())
  return Object.fromEntries(files.sort().map((name) => [name, readFileSync(join(directory, name), 'latin1')]))
}

/** The system's code for why it failed, also where podd says more about it; undefined where it did not. */
async function codeOf(work: () => unknown): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    for (let at = error; at instanceof Error; at = at.cause) {
      const code = errorCode(at)
      if (code === 'ENOSPC' || code === 'EROFS') return code
    }
    throw error
  }
}

/** Nothing rests on these: their writers log the failure, and go on. */
const best = ['events.json', 'image-uses.json', 'image-archives.json']

describe.skipIf(rootOnly).each(faults)('on a disk that gives %s', (code, fail, mend) => {
  it.each([...versionedFiles, ...textFiles].map((file) => [file.path, file] as const))(
    '%s is not written by halves, is written when that is possible again, and can be read meanwhile',
    async (path, file) => {
      await file.write(disk)
      for (const name of Object.keys(filesOf())) rmSync(join(disk, name))
      fail()
      expect(await codeOf(() => file.write(disk))).toBe(best.includes(path) ? undefined : code)
      // A mark of whose it is may be left empty, and is written again.
      expect(Object.values(filesOf()).join('')).toBe('')
      mend()
      await file.write(disk)
      const content = JSON.stringify(await file.read(disk, () => undefined))
      const before = filesOf()
      expect(Object.keys(before)).toContain(path)
      fail()
      await codeOf(() => file.write(disk))
      expect(filesOf()).toEqual(before)
      expect(JSON.stringify(await file.read(disk, () => undefined))).toBe(content)
      expect(filesOf()).toEqual(before)
    },
  )

  it('files that containers have mounted say what they said before, or something new, and never nothing', async () => {
    const [host, other] = ['127.0.0.1 localhost\n', `127.0.0.1 localhost\n${'10.0.0.1 far\n'.repeat(900)}`]
    const hosts = await writeEtcHosts(disk, 'u', host)
    const resolv = await writeResolvConf(disk, 'u', host)
    fail()
    expect(await codeOf(() => writeEtcHosts(disk, 'u', host))).toBeUndefined()
    expect(await refreshResolvConf(disk, 'u', host)).toBe(true)
    expect(await codeOf(() => writeEtcHosts(disk, 'u', other))).toBe(code)
    expect(await codeOf(() => refreshResolvConf(disk, 'u', other))).toBe(code)
    for (const path of [hosts, resolv])
      expect(readFileSync(path, 'utf8')).toMatch(/^127\.0\.0\.1 localhost\n/u)
    mend()
    await writeEtcHosts(disk, 'u', other)
    await writeResolvConf(disk, 'u', other)
    for (const path of [hosts, resolv]) expect(readFileSync(path, 'utf8')).toBe(other)
  })

  it('a volume shows its files as they were', async () => {
    const directory = join(disk, 'volume')
    mkdirSync(directory)
    const files = (text: string) => new Map([['key', { data: Buffer.from(text), mode: 0o644 }]])
    const write = (text: string) => writeVolumeFiles(directory, files(text), { nowMs: 1_700_000_000_000 })
    await write('before')
    const before = filesOf(directory)
    fail()
    expect(await codeOf(() => write('x'.repeat(5000)))).toBe(code)
    expect(filesOf(directory)).toEqual(before)
    expect(await write('before')).toBe(false)
    mend()
    await write('after')
    expect(readFileSync(join(directory, 'key'), 'utf8')).toBe('after')
  })

  it('a log is left as it is, or rotated, and no line of it is lost', async () => {
    const directory = join(disk, 'main')
    mkdirSync(directory)
    const lines = (from: number) => Array.from({ length: 500 }, (_, at) => `line ${from + at}\n`).join('')
    writeFileSync(join(directory, '0.log'), lines(0))
    const rotate = (nowMs: number) =>
      rotateLog({
        directory,
        restartCount: 0,
        limits: { maxSizeBytes: 1000, maxFiles: 5 },
        nowMs,
        reopen: async () => writeFileSync(join(directory, '0.log'), '', { flag: 'a' }),
        signal: new AbortController().signal,
      })
    await rotate(1_700_000_000_000)
    writeFileSync(join(directory, '0.log'), lines(500))
    fail()
    await codeOf(() => rotate(1_700_000_100_000))
    const text = Object.values(filesOf(directory)).join('')
    expect([...text.matchAll(/^line \d+$/gmu)]).toHaveLength(1000)
    expect(Object.keys(filesOf(directory)).filter((name) => name.endsWith('.tmp'))).toEqual([])
    mend()
    await rotate(1_700_000_200_000)
    expect(Object.keys(filesOf(directory)).some((name) => name.endsWith('.gz'))).toBe(true)
  })

  it('the API shows a certificate that is not kept, of an authority that is', () => {
    const open = () => new OwnAuthority(disk, ['localhost'], () => {}, new ManualClock())
    const trusted = open().trusted()
    const before = filesOf()
    fail()
    const authority = open()
    const { certificate } = authority.server()
    expect(new X509Certificate(certificate).verify(new X509Certificate(trusted).publicKey)).toBe(true)
    expect(authority.server().certificate).toBe(certificate)
    expect(filesOf()).toEqual(before)
    mend()
    open().server()
    expect(Object.keys(filesOf())).toEqual(['tls/ca.pem', 'tls/server.pem'])
  })

  it('a crash leaves a whole report or none', async () => {
    const clock = new ManualClock()
    const crash = (): void => {
      const guard = new CrashGuard({
        rootDir: disk,
        clock,
        logger: silentLogger,
        replaceProcess: () => undefined,
        onDelay: () => undefined,
        describe: () => ({}),
      })
      guard.crash(new Error('x'), 'test')
    }
    crash()
    const before = filesOf()
    expect(Object.keys(before)).toHaveLength(1)
    fail()
    await clock.advance(1000)
    crash()
    expect(filesOf()).toEqual(before)
    mend()
    await clock.advance(1000)
    crash()
    expect(Object.keys(filesOf())).toHaveLength(2)
  })
})
