import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { listCrashReports } from '../../../src/store/reports.ts'

let rootDir = ''

beforeEach(() => {
  rootDir = mkdtempSync(join(tmpdir(), 'podd-fatal-'))
})
afterEach(() => rmSync(rootDir, { recursive: true }))

it('leaves a crash report where the heap is full, without the environment', async () => {
  const module = join(import.meta.dirname, '../../../src/daemon/crash-guard.ts')
  const script = `
    import { keepFatalReports } from ${JSON.stringify(module)}
    keepFatalReports(${JSON.stringify(rootDir)}, 1700000000000)
    const kept = []
    for (;;) kept.push(new Array(100_000).fill({}))`
  const child = spawn(
    process.execPath,
    ['--max-old-space-size=24', '--input-type=module', '--eval', script],
    { cwd: rootDir, env: { ...process.env, NODE_OPTIONS: '', WORD: 'hunter2' }, stdio: 'ignore' },
  )
  expect(await new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal)))).toBe(
    'SIGABRT',
  )
  const [report, ...others] = listCrashReports(rootDir)
  expect(others).toEqual([])
  expect(report?.atMs).toBe(1_700_000_000_000)
  const path = report?.path ?? ''
  expect(readFileSync(path, 'utf8')).toContain('heap out of memory')
  expect(readFileSync(path, 'utf8')).not.toContain('hunter2')
  expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
})
