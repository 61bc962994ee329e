import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

const clients = 300

/** What the daemon has of the host's memory, in MiB. */
function residentMiB(podd: PoddRig): number {
  const status = readFileSync(`/proc/${podd.daemonPid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/mu.exec(status)?.[1]) / 1024
}

/** How many clients the daemon is connected with: the kernel lists its end of each under the socket's path. */
function connections(podd: PoddRig): number {
  const connected = new RegExp(` 03 +\\d+ ${podd.socketPath}$`, 'gmu')
  return readFileSync('/proc/net/unix', 'utf8').match(connected)?.length ?? 0
}

/** A client that asks for a watch and reads one byte of it. */
async function watchWithoutReading(podd: PoddRig): Promise<Socket> {
  const socket = connect({
    path: podd.socketPath,
    onread: { buffer: Buffer.alloc(1), callback: () => false },
  })
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write('GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: podd\r\n\r\n')
  return socket
}

describePodd('clients that watch and never read', {}, (rig) => {
  it(`cost little each, ${clients} of them, and are cut off once much waits for them`, async () => {
    const podd = rig()
    const pod = shellPod('web', podd.shared, 'say start; stay')
    const change = async (round: number): Promise<void> => {
      const note = `${round} ${'x'.repeat(100_000)}`
      podd.drop('web', { ...pod, metadata: { name: 'web', annotations: { note } } })
      await podd.untilPod('web', `change ${round}`, ({ metadata }) => metadata.annotations?.['note'] === note)
    }
    podd.drop('web', pod)
    await podd.untilReady('web')
    const beforeMiB = residentMiB(podd)
    const sockets: Socket[] = []
    try {
      for (let client = 0; client < clients; client += 1) sockets.push(await watchWithoutReading(podd))
      await podd.until('the watches', () => connections(podd) >= clients)
      for (let round = 0; round < 8; round += 1) await change(round)
      expect(connections(podd)).toBeGreaterThanOrEqual(clients)
      expect(residentMiB(podd)).toBeLessThan(beforeMiB + 80)
      for (let round = 8; round < 16; round += 1) await change(round)
      await podd.until('the end of the watches', () => connections(podd) < 10)
      expect(residentMiB(podd)).toBeLessThan(beforeMiB + 80)
    } finally {
      for (const socket of sockets) socket.destroy()
    }
  })
})
