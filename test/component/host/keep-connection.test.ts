import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { keepConnection } from '../../../src/host/keep-connection.ts'
import { slowness } from '../../support/slowness.ts'

let directory: string
let server: Server
let accepted: Promise<Socket>
const socketPath = (): string => join(directory, 'server.sock')

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'podd-keep-'))
  server = createServer()
  accepted = once(server, 'connection').then(([socket]: Socket[]) => {
    if (socket === undefined) throw new Error('no connection')
    return socket
  })
  await once(server.listen(socketPath()), 'listening')
})
afterEach(() => {
  server.close()
  rmSync(directory, { recursive: true })
})

/** Another process, which connects, has its connection kept, says so, and stays. */
const keeper = `
import { connect } from 'node:net'
import { keepConnection } from ${JSON.stringify(new URL('../../../src/host/keep-connection.ts', import.meta.url).href)}
const socket = connect(process.argv[1], () => {
  keepConnection(socket, { lingerSeconds: Number(process.argv[2]), onFailure: (error) => { throw error } })
  socket.write('kept')
})
setInterval(() => {}, 60_000)
`

it('keeps what podd has closed open until it is released, and reads on meanwhile', async () => {
  const socket = connect(socketPath())
  await once(socket, 'connect')
  const peer = await accepted
  peer.write('before')
  const failures: Error[] = []
  socket.on('data', () => {})
  const release = keepConnection(socket, {
    lingerSeconds: 60,
    onFailure: (error) => void failures.push(error),
  })
  const read = once(socket, 'data')
  peer.write('after')
  expect(String(await read)).toContain('after')

  const ended = closed(peer)
  socket.destroy()
  await once(socket, 'close')
  expect(await Promise.race([ended, writes(peer)])).toBe('open')
  release()
  await ended
  expect(failures).toEqual([])
})

it('outlives a process that is killed, for as long as was said', async () => {
  const child = spawn(
    process.execPath,
    ['--input-type=module', '-e', keeper, socketPath(), String(2 * slowness)],
    {
      stdio: 'inherit',
    },
  )
  const peer = await accepted
  expect(String((await once(peer, 'data'))[0])).toBe('kept')
  const ended = closed(peer)
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(await Promise.race([ended, writes(peer)])).toBe('open')
  await ended
})

/** What it was sent and didn't read resets a unix socket. */
async function closed(peer: Socket): Promise<string> {
  peer.resume().on('error', () => {})
  await new Promise((resolve) => peer.once('close', resolve))
  return 'ended'
}

/** `open` where the other side still takes bytes. */
async function writes(peer: Socket): Promise<string> {
  const error = await new Promise((resolve) => peer.write('more', resolve))
  return error instanceof Error ? 'ended' : 'open'
}
