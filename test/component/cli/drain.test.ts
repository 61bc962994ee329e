import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Server, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { parseArguments } from '../../../src/cli/arguments/parse-arguments.ts'
import type { VerbResult } from '../../../src/cli/arguments/verb.ts'
import { ApiClient } from '../../../src/cli/client/client.ts'
import { drainVerb } from '../../../src/cli/verbs/drain.ts'
import { ManualClock } from '../../support/manual-clock.ts'

let directory: string
let server: Server
let clock: ManualClock
/** The drains that podd was asked for, and what it does about the next one. */
let drains: number
let handle: (response: ServerResponse) => void
let notes: string[]

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'podd-drain-'))
  clock = new ManualClock()
  drains = 0
  notes = []
  handle = (response) => void response.end('{"ended":2,"stuck":[]}')
  // Stands for systemd-notify.
  const program = join(directory, 'systemd-notify')
  writeFileSync(join(directory, 'told'), '')
  writeFileSync(program, `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >>${directory}/told\n`)
  chmodSync(program, 0o755)
  server = createServer((request, response) => {
    if (request.url === '/healthz') return void response.end('ok')
    drains += 1
    return handle(response)
  })
  server.listen(join(directory, 'podd.sock'))
  await once(server, 'listening')
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
  rmSync(directory, { recursive: true, force: true })
})

const told = (): readonly string[] =>
  readFileSync(join(directory, 'told'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
const extension = '/n EXTEND_TIMEOUT_USEC=300000000 STATUS=ending the pods'
const done = { kind: 'text', text: 'drained: 2 pods have ended\n', notes: [], exitCode: 0 }

async function until(holds: () => boolean): Promise<void> {
  await expect.poll(holds, { interval: 5 }).toBe(true)
}

function runDrain(env: Readonly<Record<string, string>>): Promise<VerbResult> {
  const refuse = async () => {
    throw new Error('not for a drain')
  }
  return drainVerb.run({
    args: parseArguments([], drainVerb.flags),
    // It asks a real server how it is.
    client: new ApiClient(join(directory, 'podd.sock'), systemClock),
    daemon: { startDaemon: refuse, down: refuse, doctor: refuse },
    clock,
    env: { PATH: `${directory}:${process.env['PATH']}`, ...env },
    usual: { configPath: join(directory, 'config.yaml'), runDir: directory },
    signal: new AbortController().signal,
    stdio: process,
    notify: (line) => void notes.push(line),
  })
}

describe('podd drain as the ExecStop of a unit', () => {
  it('has systemd wait for as long as the pods take to end', async () => {
    let finish: (() => void) | undefined
    handle = (response) => {
      finish = () => void response.end('{"ended":2,"stuck":[]}')
    }
    const result = runDrain({ NOTIFY_SOCKET: '/n' })
    await until(() => told().length === 1 && clock.pendingTimers === 1)
    await clock.advance(60_000)
    await until(() => told().length === 2)
    expect(told()).toEqual([extension, extension])
    finish?.()
    expect(await result).toEqual(done)
    expect(clock.pendingTimers).toBe(0)
  })

  it('asks again where podd crashes meanwhile', async () => {
    const usual = handle
    handle = (response) => {
      handle = usual
      response.destroy()
    }
    const result = runDrain({ NOTIFY_SOCKET: '/n' })
    await until(() => notes.length === 1)
    expect(notes).toEqual([expect.stringMatching(/ broke: .*; trying again$/)])
    await clock.advance(2000)
    expect(await result).toEqual(done)
    expect(drains).toBe(2)
  })

  it('holds up no shutdown for a podd that does not run', async () => {
    server.close()
    await expect(runDrain({ NOTIFY_SOCKET: '/n' })).rejects.toMatchObject({ code: 'DAEMON_NOT_RUNNING' })
  })
})

it('podd drain in a terminal says at once what went wrong', async () => {
  handle = (response) => response.destroy()
  await expect(runDrain({})).rejects.toMatchObject({ code: 'DAEMON_GONE' })
  expect(told()).toEqual([])
})
