import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { takeServiceManager } from '../../../src/host/service-manager.ts'

const directory = mkdtempSync(join(tmpdir(), 'podd-notify-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Stands for systemd-notify. */
function plant(script: string): string {
  const path = join(directory, 'systemd-notify')
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
  return `${directory}:${process.env['PATH']}`
}

describe('the service manager', () => {
  it.each([
    ['one that wants no sign of life', { NOTIFY_SOCKET: '/n' }, { watchdogMs: undefined }],
    ['one that wants it', { NOTIFY_SOCKET: '/n', WATCHDOG_USEC: '180000000' }, { watchdogMs: 180_000 }],
    [
      'one that wants it of this process',
      { NOTIFY_SOCKET: '/n', WATCHDOG_USEC: '1000', WATCHDOG_PID: '7' },
      { watchdogMs: 1 },
    ],
    [
      'one that wants it of another process',
      { NOTIFY_SOCKET: '/n', WATCHDOG_USEC: '1000', WATCHDOG_PID: '8' },
      { watchdogMs: undefined },
    ],
    ['one whose word is no number', { NOTIFY_SOCKET: '/n', WATCHDOG_USEC: 'x' }, { watchdogMs: undefined }],
  ])('is %s', (_, variables, expected) => {
    const env: Record<string, string | undefined> = { ...variables, PATH: '/bin' }
    expect(takeServiceManager(env, 7)).toMatchObject({ ...expected, environment: variables })
    // No child of podd is the service.
    expect(env).toEqual({ PATH: '/bin' })
  })

  it.each([{}, { WATCHDOG_USEC: '180000000' }, { NOTIFY_SOCKET: '' }])('is none: %j', (env) => {
    expect(takeServiceManager(env, 7)).toBeUndefined()
  })

  it('is told by systemd-notify, which gets its socket and nothing else of podd', async () => {
    const path = plant(`printf '%s\\n' "$NOTIFY_SOCKET" "$SECRET" "$@" >${directory}/told`)
    const manager = takeServiceManager({ NOTIFY_SOCKET: '/n', PATH: path, SECRET: 'x' }, 1)
    await manager?.notify('READY=1', 'STATUS=2\npods')
    expect(readFileSync(join(directory, 'told'), 'utf8')).toBe('/n\n\nREADY=1\nSTATUS=2 pods\n')
  })

  it('that takes nothing is an error', async () => {
    const path = plant('echo "no socket" >&2; exit 1')
    const manager = takeServiceManager({ NOTIFY_SOCKET: '/n', PATH: path }, 1)
    await expect(manager?.notify('READY=1')).rejects.toMatchObject({
      code: 'HOST_COMMAND',
      message: 'systemd-notify failed: no socket',
    })
  })
})
