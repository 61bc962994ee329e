import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocketServer } from 'ws'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ApiClient } from '../../../src/cli/client/client.ts'
import { ManualClock } from '../../support/manual-clock.ts'

let directory: string
let server: Server
let clock: ManualClock
let client: ApiClient
/** Whether the daemon answers who asks how it is. */
let isAlive: boolean
let healthChecks: number
/** Answers what was asked, if the daemon is to. */
let answer: (() => void) | undefined

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'podd-silent-'))
  clock = new ManualClock()
  client = new ApiClient(join(directory, 'podd.sock'), clock)
  isAlive = false
  healthChecks = 0
  answer = undefined
  server = createServer((request, response) => {
    if (request.url !== '/healthz') answer = () => void response.end('["late"]')
    else {
      healthChecks += 1
      if (isAlive) response.end('ok')
    }
  })
  server.on('upgrade', (request, socket, head) => {
    const handshake = new WebSocketServer({ noServer: true })
    answer = () => handshake.handleUpgrade(request, socket, head, () => {})
  })
  server.listen(client.socketPath)
  await once(server, 'listening')
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
  rmSync(directory, { recursive: true, force: true })
})

const never = new AbortController().signal
const read = async (chunks: AsyncIterable<Uint8Array>): Promise<string> => {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all).toString()
}

const ways: readonly (readonly [way: string, ask: (signal: AbortSignal) => Promise<unknown>])[] = [
  ['a question', (signal) => client.get('/podd/v1/status', signal)],
  ['an order', (signal) => client.post('/podd/v1/images/import?path=/x', signal)],
  ['a stream', (signal) => read(client.stream('/api/v1/pods?watch=true', signal))],
  ['an upgrade', (signal) => client.openWebSocket('/exec', 'v5.channel.k8s.io', signal)],
]

describe.each(ways)('a daemon that does not answer %s', (_, ask) => {
  it('and nobody else is given up', async () => {
    const failed = ask(never).catch((error: unknown) => error)
    await expect.poll(() => answer).toBeDefined()
    await clock.advance(5000)
    await expect.poll(() => healthChecks).toBe(1)
    await clock.advance(10_000)
    expect(await failed).toMatchObject({
      code: 'DAEMON_SILENT',
      message: `podd at ${client.socketPath} does not answer`,
      hint: expect.stringMatching(/systemctl restart podd|kill that, and start it again: `setsid podd run/u),
    })
    expect(clock.pendingTimers).toBe(0)
  })

  it('while it answers others is waited for', async () => {
    isAlive = true
    const asked = ask(never)
    await expect.poll(() => answer).toBeDefined()
    for (let round = 1; round <= 30; round += 1) {
      await clock.advance(5000)
      await expect.poll(() => healthChecks).toBe(round)
      await expect.poll(() => clock.pendingTimers).toBe(1)
    }
    answer?.()
    await asked
    expect(clock.pendingTimers).toBe(0)
  })

  it('is left at once when interrupted', async () => {
    const interrupt = new AbortController()
    const failed = ask(interrupt.signal).catch((error: unknown) => error)
    await expect.poll(() => answer).toBeDefined()
    await clock.advance(5000)
    interrupt.abort()
    expect(await failed).toMatchObject({ code: 'INTERRUPTED' })
    expect(clock.pendingTimers).toBe(0)
  })
})
