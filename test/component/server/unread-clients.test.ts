import { once } from 'node:events'
import { appendFile, mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { encodeMessage, forwardProtocol } from '../../../src/api/remote-command.ts'
import { heldMemory } from '../../support/held-memory.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { clientFrame, handshakeOf } from '../../support/web-sockets.ts'
import { openingFrames } from '../../support/spdy-client.ts'
import { containerStatus, podObject } from '../../support/pod-objects.ts'

const podsPath = '/api/v1/namespaces/default/pods'
const mebibyte = 1024 * 1024

let rig: ApiRig
let clock: ManualClock
let sockets: Socket[]
let streams: Duplex[]
beforeEach(async () => {
  clock = new ManualClock()
  sockets = []
  streams = []
  rig = await ApiRig.start(clock)
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  // Who has hung up lets them run dry: without an end they would keep this process busy.
  for (const stream of streams) stream.destroy()
  const closed = rig[Symbol.asyncDispose]()
  await clock.advance(1)
  await closed
})

/** Sends a request and never reads a byte of the answer. */
async function askWithoutReading(path: string, protocol?: string): Promise<Socket> {
  // One byte into a buffer of its own, and then no more: what this end reads must not count.
  const socket = connect({
    path: rig.socketPath,
    onread: { buffer: Buffer.alloc(1), callback: () => false },
  })
  socket.on('error', () => {})
  sockets.push(socket)
  await once(socket, 'connect')
  if (protocol === undefined) socket.write(`GET ${path} HTTP/1.1\r\nHost: podd\r\n\r\n`)
  else socket.write(handshakeOf(path, protocol))
  return socket
}

/** What this process holds, its garbage not counted. */
function heldBytes(): number {
  const { heapUsed, external, arrayBuffers } = heldMemory()
  return heapUsed + external + arrayBuffers
}

/** Bytes without end, and how many of them were taken. */
function endlessBytes(): { readonly stream: Duplex; readonly taken: () => number } {
  let takenBytes = 0
  const stream = new Duplex({
    write: (_chunk, _encoding, done) => done(),
    read() {
      takenBytes += 65_536
      setImmediate(() => this.push(Buffer.alloc(65_536, 'x')))
    },
  })
  streams.push(stream)
  return { stream, taken: () => takenBytes }
}

/** The number, once it has stayed the same for some turns of the loop. */
async function settled(read: () => number): Promise<number> {
  let before = -1
  await expect.poll(() => before === (before = read()), { interval: 100 }).toBe(true)
  return before
}

describe('clients that never read', () => {
  const padding = 'x'.repeat(4000)
  const change = (round: number): void =>
    rig.pods.put(podObject({ metadata: { annotations: { round: `${round} ${padding}` } } }))
  const fill = (count = 100): void => {
    for (let at = 0; at < count; at += 1)
      rig.pods.put(podObject({ name: `p${at}`, metadata: { annotations: { padding } } }))
  }

  it('hold little while they watch, are cut off, and what they held is given back', async () => {
    fill()
    const before = heldBytes()
    for (let client = 0; client < 100; client += 1) await askWithoutReading(`${podsPath}?watch=true`)
    await expect.poll(() => rig.pods.watchers).toBe(100)
    for (let round = 0; round < 100; round += 1) change(round)
    await expect.poll(() => heldBytes() - before, { interval: 250 }).toBeLessThan(100 * 88 * 1024)
    expect(rig.pods.watchers).toBe(100)
    for (let round = 0; round < 400; round += 1) change(round)
    expect(rig.pods.watchers).toBe(100)
    await clock.advance(1000)
    await expect.poll(() => rig.pods.watchers).toBe(0)
    await expect.poll(() => heldBytes() - before, { interval: 250 }).toBeLessThan(8 * mebibyte)
  })

  it('differ from one that reads, to which all changes come that were made at once', async () => {
    const response = await rig.open(`${podsPath}?watch=true`)
    await expect.poll(() => rig.pods.watchers).toBe(1)
    for (let round = 0; round < 1000; round += 1) change(round)
    let lines = 0
    for await (const chunk of response) {
      lines += String(chunk).split('\n').length - 1
      if (lines === 1000) break
    }
    await clock.advance(1000)
    expect(lines).toBe(1000)
  })

  it('are cut off when they have taken nothing of a watch for a minute', async () => {
    fill()
    await askWithoutReading(`${podsPath}?watch=true`)
    // Beside the one that ends the watch after half an hour or more.
    await expect.poll(() => clock.pendingTimers).toBe(2)
    await clock.advance(59_000)
    expect(rig.pods.watchers).toBe(1)
    await clock.advance(1000)
    await expect.poll(() => rig.pods.watchers).toBe(0)
  })

  it('leave a watch alone that has nothing to say', async () => {
    const socket = await askWithoutReading(`${podsPath}?watch=true`)
    await expect.poll(() => rig.pods.watchers).toBe(1)
    await clock.advance(1_790_000)
    change(1)
    expect(rig.pods.watchers).toBe(1)
    expect(socket.destroyed).toBe(false)
  })

  it('hold little of a list, and are cut off after a minute', async () => {
    fill(400)
    const before = heldBytes()
    for (let client = 0; client < 50; client += 1) await askWithoutReading('/api/v1/pods')
    await expect.poll(() => clock.pendingTimers).toBe(50)
    expect(heldBytes() - before).toBeLessThan(50 * 200 * 1024)
    await clock.advance(60_000)
    await expect.poll(() => heldBytes() - before, { interval: 250 }).toBeLessThan(2 * mebibyte)
    expect(clock.pendingTimers).toBe(0)
  })

  it.each(['follow=true', 'follow=false'])('are waited for by a log with %s', async (query) => {
    rig.pods.put(podObject({ status: { containerStatuses: [containerStatus('main')] } }))
    const directory = join(rig.podLogsDir, 'default_web_uid-web', 'main')
    await mkdir(directory, { recursive: true })
    const lines = `2026-01-01T00:00:00.000000001Z stdout F ${'x'.repeat(980)}\n`.repeat(8192)
    await appendFile(join(directory, '0.log'), lines)
    const before = heldBytes()
    for (let client = 0; client < 10; client += 1) await askWithoutReading(`${podsPath}/web/log?${query}`)
    const late = await rig.open(`${podsPath}/web/log?${query}`)
    await appendFile(join(directory, '0.log'), lines)
    await settled(() => Math.round(heldBytes() / mebibyte))
    expect(heldBytes() - before).toBeLessThan(10 * mebibyte)
    await clock.advance(3_600_000)
    let receivedBytes = 0
    for await (const chunk of late) {
      if (Buffer.isBuffer(chunk)) receivedBytes += chunk.length
      if (receivedBytes >= 8192 * 981) break
    }
    expect(receivedBytes).toBeGreaterThanOrEqual(8192 * 981)
  })

  it('stop the output of a command that they run', async () => {
    rig.pods.put(
      podObject({ status: { containerStatuses: [containerStatus('main', { containerID: 'c://1' })] } }),
    )
    const [stdout, stderr] = [endlessBytes(), endlessBytes()]
    let hangUps = 0
    rig.reach = {
      ...rig.reach,
      startCommand: async () => ({
        stdout: stdout.stream,
        stderr: stderr.stream,
        ended: new Promise(() => {}),
        write: async () => {},
        closeStdin: async () => {},
        resize: async () => {},
        async hangUp() {
          hangUps += 1
        },
      }),
    }
    const socket = await askWithoutReading(
      `${podsPath}/web/exec?command=yes&stdout=true&stderr=true`,
      'v5.channel.k8s.io',
    )
    await expect.poll(() => stdout.taken()).toBeGreaterThan(0)
    expect(await settled(stdout.taken)).toBeLessThan(mebibyte)
    expect(await settled(stderr.taken)).toBeLessThan(mebibyte)
    await clock.advance(3_600_000)
    expect(hangUps).toBe(0)
    socket.destroy()
    await expect.poll(() => hangUps).toBe(1)
  })

  it('send no more input than fits while their command takes none', async () => {
    rig.pods.put(
      podObject({ status: { containerStatuses: [containerStatus('main', { containerID: 'c://1' })] } }),
    )
    const { stream } = endlessBytes()
    let writes = 0
    rig.reach = {
      ...rig.reach,
      startCommand: async () => ({
        stdout: stream,
        stderr: undefined,
        ended: new Promise(() => {}),
        write: () => {
          writes += 1
          return new Promise(() => {})
        },
        closeStdin: async () => {},
        resize: async () => {},
        hangUp: async () => {},
      }),
    }
    const socket = await askWithoutReading(
      `${podsPath}/web/exec?command=yes&stdin=true&stdout=true`,
      'v5.channel.k8s.io',
    )
    const input = (bytes: Uint8Array) => socket.write(clientFrame(encodeMessage('stdin', bytes)))
    input(Buffer.from('input'))
    await expect.poll(() => writes).toBe(1)
    for (let round = 0; round < 40; round += 1) input(Buffer.alloc(65_536))
    const before = heldBytes()
    await clock.advance(100_000)
    await settled(() => Math.round(heldBytes() / mebibyte))
    expect(writes).toBe(1)
    expect(heldBytes() - before).toBeLessThan(mebibyte)
  })

  it('stop what comes over a forwarded port', async () => {
    rig.pods.put(podObject())
    const { stream, taken } = endlessBytes()
    rig.reach = {
      ...rig.reach,
      dial: async () => stream,
    }
    const socket = await askWithoutReading(`${podsPath}/web/portforward`, forwardProtocol)
    socket.write(clientFrame(openingFrames(80)))
    await expect.poll(taken).toBeGreaterThan(0)
    expect(await settled(taken)).toBeLessThan(mebibyte)
  })
})
