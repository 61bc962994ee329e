import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { NodeJobs } from '../../../src/control/node/node-jobs.ts'
import { openPortJob } from '../../../src/daemon/daemon-jobs.ts'
import { NetworkApi } from '../../../src/server/network-api.ts'
import { readOnlyPort } from '../../../src/server/read-only-port.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { freePort } from '../../support/free-port.ts'
import { ManualClock } from '../../support/manual-clock.ts'

let rootDir = ''

beforeEach(() => {
  rootDir = mkdtempSync(join(tmpdir(), 'podd-port-'))
})

afterEach(() => {
  rmSync(rootDir, { recursive: true })
})

const handler = {
  handle: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  upgrades: () => false,
  open: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
}

it.each(['api.listen', 'readOnlyPort'] as const)(
  'the port of %s is opened once it is free, and podd tells why it was not until then',
  async (option) => {
    const clock = new ManualClock()
    const deps = { clock, logger: silentLogger }
    const address = { host: '127.0.0.1', port: await freePort() }
    const other = createServer().listen(address.port, address.host)
    await once(other, 'listening')
    await using rig = await ApiRig.start()
    const network = new NetworkApi(
      { address, names: ['localhost'], rootDir, tokenFile: undefined, report: () => {} },
      clock,
      silentLogger,
    )
    const readOnly = readOnlyPort(address, rig.readers(), clock, silentLogger)
    const port = option === 'api.listen' ? network.servePort(handler) : readOnly
    expect(port.problem).toBeUndefined()
    await expect(port.open()).rejects.toMatchObject({ code: 'SOCKET_FAILED' })

    const told: string[] = []
    const jobs = new NodeJobs(deps)
    const events = {
      recordNode: ({ reason, message }: { reason: string; message: string }) =>
        void told.push(`${reason}: ${message}`),
    }
    jobs.add(openPortJob(port, events))
    const stop = new AbortController()
    const running = jobs.run(stop.signal)
    const runs = async (count: number): Promise<void> =>
      expect.poll(() => jobs.reports()[0]).toMatchObject({ runs: count, running: false })
    await runs(1)
    const where = `127.0.0.1:${address.port}`
    const failure = `cannot listen at ${where}: listen EADDRINUSE: address already in use ${where}`
    expect(jobs.reports()[0]?.error).toBe(failure)
    expect(port.problem).toBe(failure)
    // Node warns of more than ten listeners of an event.
    const warnings: Error[] = []
    process.on('warning', (warning) => void warnings.push(warning))
    for (let count = 2; count < 15; count += 1) {
      await clock.advance(10_000)
      await runs(count)
    }
    const failed = `ListenFailed: ${option}: ${failure}; podd keeps trying`
    expect(told).toEqual([failed])
    expect(warnings).toEqual([])

    other.close()
    await once(other, 'close')
    await clock.advance(10_000)
    await runs(15)
    expect(jobs.reports()[0]?.error).toBeUndefined()
    expect(port.problem).toBeUndefined()
    expect(told).toEqual([failed, `Listening: ${option}: podd listens at ${where} now`])
    const client = connect(address.port, address.host)
    await once(client, 'connect')
    client.destroy()
    await clock.advance(3_600_000)
    await runs(15)

    stop.abort()
    await running
    await Promise.all([network.close(0), readOnly.close(0)])
    await expect(once(connect(address.port, address.host), 'connect')).rejects.toThrow('ECONNREFUSED')
  },
)

it('a port is closed although it was about to be opened, and is opened no more', async () => {
  const address = { host: '127.0.0.1', port: await freePort() }
  await using rig = await ApiRig.start()
  const port = readOnlyPort(address, rig.readers(), new ManualClock(), silentLogger)
  const opening = port.open()
  await port.close(0)
  await opening
  await port.open()
  await expect(once(connect(address.port, address.host), 'connect')).rejects.toThrow('ECONNREFUSED')
})
