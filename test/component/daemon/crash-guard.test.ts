import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { CrashGuard } from '../../../src/daemon/crash-guard.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const signals = ['SIGTERM', 'SIGINT'] as const
/** Those of who runs the tests. */
const listeners = new Set(signals.flatMap((signal) => process.listeners(signal)))

let rootDir: string
let clock: ManualClock
/** The counts of restarts that each new process was given, and how often a restart was put off. */
let replaced: number[]
let delays: number

beforeEach(() => {
  rootDir = mkdtempSync(join(tmpdir(), 'podd-crash-'))
  clock = new ManualClock()
  replaced = []
  delays = 0
})
afterEach(() => {
  for (const signal of signals)
    for (const listener of process.listeners(signal))
      if (!listeners.has(listener)) process.removeListener(signal, listener)
  rmSync(rootDir, { recursive: true, force: true })
})

function guardOf(change: Partial<ConstructorParameters<typeof CrashGuard>[0]> = {}): CrashGuard {
  return new CrashGuard({
    rootDir,
    clock,
    logger: silentLogger,
    replaceProcess: (count) => void replaced.push(count),
    onDelay: () => void (delays += 1),
    describe: () => ({ pods: 2 }),
    ...change,
  })
}

async function crash(error: unknown = new Error('planted')): Promise<CrashGuard> {
  const guard = guardOf()
  guard.crash(error, 'run')
  await guard.restart()
  return guard
}

describe('a crash', () => {
  it('leaves a report of a page, whatever the error says', async () => {
    const cause = new Error('z'.repeat(100_000))
    const guard = await crash(new Error('y'.repeat(100_000), { cause }))
    const [report] = guard.reports()
    expect(report?.path).toBe(join(rootDir, 'crash', `${clock.wallMs()}.json`))
    const text = readFileSync(report?.path ?? '', 'utf8')
    expect(text.length).toBeLessThan(8000)
    expect(JSON.parse(text)).toMatchObject({ origin: 'run', state: { pods: 2 } })
    expect(statSync(report?.path ?? '').mode & 0o777).toBe(0o600)
  })

  it('is reported also where podd cannot tell how it is', () => {
    const guard = guardOf({
      describe: () => {
        throw new Error('no idea')
      },
    })
    expect(guard.crash(new Error('planted'), 'run')).toBe(true)
    expect(guard.crash(new Error('another'), 'run')).toBe(false)
    expect(guard.reports()).toHaveLength(1)
    expect(JSON.parse(readFileSync(guard.reports()[0]?.path ?? '', 'utf8'))).toMatchObject({
      state: { unknown: 'no idea' },
    })
  })

  it('keeps the newest ten reports', async () => {
    for (let day = 0; day < 12; day += 1) {
      await crash()
      await clock.advance(86_400_000)
    }
    expect(readdirSync(join(rootDir, 'crash'))).toHaveLength(10)
    expect(replaced).toHaveLength(12)
  })

  it('is followed by a restart at once, and by one after a minute where it comes again and again', async () => {
    for (let count = 0; count < 3; count += 1) {
      await crash()
      await clock.advance(1000)
    }
    expect([replaced.length, delays]).toEqual([3, 0])
    const last = crash()
    await clock.advance(59_000)
    expect([replaced.length, delays]).toEqual([3, 1])
    await clock.advance(1000)
    await last
    expect(replaced).toEqual([0, 0, 0, 0])
  })

  it('that cannot be reported waits, as nothing tells how often it comes', async () => {
    writeFileSync(join(rootDir, 'crash'), 'no directory')
    const restart = crash()
    await clock.advance(59_000)
    expect([replaced.length, delays]).toEqual([0, 1])
    await clock.advance(1000)
    await restart
    expect(replaced).toEqual([0])
  })
})

describe('a restart for the memory that podd takes', () => {
  it('is no crash, and hands on its count', async () => {
    const guard = guardOf()
    let letGo = 0
    guard.renew(3, () => (letGo += 1))
    guard.renew(4, () => (letGo += 1))
    expect([guard.mustRestart, guard.hasCrashed, letGo]).toEqual([true, false, 1])
    await guard.restart()
    expect(replaced).toEqual([3])
    expect(guard.reports()).toEqual([])
  })

  it('does not come to pass where podd is told to stop', () => {
    const guard = guardOf()
    guard.noteStop()
    guard.renew(1, () => {
      throw new Error('it let go')
    })
    expect(guard.mustRestart).toBe(false)
  })
})
