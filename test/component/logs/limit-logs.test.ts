import { existsSync } from 'node:fs'
import { mkdtemp, readFile, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { errorMessage } from '../../../src/base/errors.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { logLimitBytes, logLimitsJob } from '../../../src/control/node/logs.ts'
import { ContainerLogDirectories, removeLogs } from '../../../src/logs/container-log-directories.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const web = { namespace: 'default', name: 'web', uid: 'uid-1' }
const old = { namespace: 'default', name: 'old', uid: 'uid-2' }
const mebibyte = 1024 * 1024
const hourMs = 3_600_000

let directory: string
let clock: ManualClock
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-limit-logs-'))
  clock = new ManualClock()
})
afterEach(() => rm(directory, { recursive: true }))

function logDirectories(keptMs: number, owner = '/var/lib/podd'): ContainerLogDirectories {
  const podLogsDir = join(directory, 'pods')
  const containerLogsDir = join(directory, 'containers')
  return new ContainerLogDirectories({ podLogsDir, containerLogsDir, removed: { keptMs, owner, clock } })
}

async function write(
  logs: ContainerLogDirectories,
  ref: typeof web,
  name: string,
  hoursOld = 0,
): Promise<void> {
  await logs.prepare(ref, 'main')
  const path = join(logs.directory(ref), 'main', name)
  await writeFile(path, 'x'.repeat(100))
  const time = new Date(clock.wallMs() - hoursOld * hourMs)
  await utimes(path, time, time)
}

/** One look at the logs, of a host where only web runs. */
async function limit(logs: ContainerLogDirectories, keptMs: number, totalBytes?: number): Promise<void> {
  await logLimitsJob({
    pods: () => [web],
    measure: (pods) => logs.measure(pods),
    remove: removeLogs,
    totalBytes: async () => totalBytes,
    keptMs,
    clock,
    logger: silentLogger,
  }).run(new AbortController().signal)
}

describe('the limit of all logs', () => {
  it('removes the oldest that were put aside, and leaves alone what is no log or being made', async () => {
    const logs = logDirectories(0)
    await write(logs, web, '0.log')
    await write(logs, web, '0.log.20260101-000000.gz', 9)
    await write(logs, web, '0.log.20260101-000001', 8)
    await write(logs, web, '0.log.20260101-000001.tmp', 99)
    await write(logs, web, 'notes.txt', 99)
    await limit(logs, 0, 350)
    expect(await readdir(join(logs.directory(web), 'main'))).toEqual([
      '0.log',
      '0.log.20260101-000001',
      '0.log.20260101-000001.tmp',
      'notes.txt',
    ])
  })

  it('fails where what may go is not enough, and says what to do', async () => {
    const logs = logDirectories(0)
    await write(logs, web, '0.log')
    await write(logs, web, '0.log.20260101-000000', 1)
    await expect(limit(logs, 0, 50)).rejects.toMatchObject({
      code: 'LOG_SPACE',
      message: expect.stringContaining('logs take more than the 50 bytes'),
    })
    expect(await readdir(join(logs.directory(web), 'main'))).toEqual(['0.log'])
  })

  it('is exceeded by the same words at each look, however much is written', async () => {
    const logs = logDirectories(0)
    await write(logs, web, '0.log')
    const failure = async () => limit(logs, 0, 50).catch((error: unknown) => errorMessage(error))
    const before = await failure()
    await writeFile(join(logs.directory(web), 'main', '0.log'), 'x'.repeat(200))
    expect(await failure()).toBe(before)
  })

  it('waits while it is not known which pods there are', async () => {
    const job = logLimitsJob({
      pods: () => undefined,
      measure: () => Promise.reject(new Error('not to be measured')),
      remove: () => Promise.reject(new Error('not to be removed')),
      totalBytes: async () => 0,
      keptMs: 0,
      clock,
      logger: silentLogger,
    })
    await expect(job.run(new AbortController().signal)).resolves.toBeUndefined()
  })

  it.each([
    [undefined, 123_456, undefined],
    [{ bytes: 5 }, 123_456, 5],
    [{ percent: 10 }, 12_345_678_901, 1_234_567_890],
    [{ percent: 10 }, 512 * mebibyte, 100 * mebibyte],
    [{ percent: 10 }, 128 * mebibyte, 64 * mebibyte],
    [{ percent: 80 }, 100 * mebibyte, 80 * mebibyte],
  ])('for %j of a disk of %d bytes is %d', async (total, capacityBytes, bytes) => {
    expect(await logLimitBytes(total, async () => ({ capacityBytes }))).toBe(bytes)
  })
})

describe('logs of removed pods', () => {
  it('go with their pod where none are kept', async () => {
    const logs = logDirectories(0)
    await write(logs, old, '0.log')
    await logs.removeAll(old)
    expect(existsSync(logs.directory(old))).toBe(false)
  })

  it('are kept for their time, without links', async () => {
    const logs = logDirectories(24 * hourMs)
    await write(logs, old, '0.log')
    await logs.link(old, { name: 'main', id: 'id-1', restartCount: 0 })
    await logs.removeAll(old)
    expect(await readdir(join(directory, 'containers'))).toEqual([])
    await clock.advance(23 * hourMs)
    await limit(logs, 24 * hourMs)
    expect(await readFile(join(logs.directory(old), 'main', '0.log'), 'utf8')).toHaveLength(100)
    await clock.advance(hourMs)
    await limit(logs, 24 * hourMs)
    expect(existsSync(logs.directory(old))).toBe(false)
  })

  it('count for the limit of all logs, and may go as a whole', async () => {
    const logs = logDirectories(24 * hourMs)
    await write(logs, web, '0.log')
    await write(logs, old, '0.log', 3)
    await logs.removeAll(old)
    await limit(logs, 24 * hourMs, 100)
    await limit(logs, 24 * hourMs, 100)
    expect(existsSync(logs.directory(old))).toBe(false)
    expect(existsSync(join(logs.directory(web), 'main', '0.log'))).toBe(true)
  })

  it('belong to the podd that kept them', async () => {
    const other = logDirectories(24 * hourMs, '/var/lib/other')
    await write(other, old, '0.log')
    await other.removeAll(old)
    const logs = logDirectories(0)
    await limit(logs, 0, 1)
    expect(existsSync(join(other.directory(old), 'main', '0.log'))).toBe(true)
  })

  it('are not those of a pod that is there again', async () => {
    const logs = logDirectories(hourMs)
    await write(logs, web, '0.log')
    await logs.removeAll(web)
    await clock.advance(2 * hourMs)
    await limit(logs, hourMs)
    expect(existsSync(join(logs.directory(web), 'main', '0.log'))).toBe(true)
  })

  it('leave nothing where there was no log', async () => {
    const logs = logDirectories(hourMs)
    await logs.removeAll(old)
    expect(existsSync(logs.directory(old))).toBe(false)
  })
})
