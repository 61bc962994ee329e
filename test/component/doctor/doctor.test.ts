import { once } from 'node:events'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { runDoctor } from '../../../src/cli/local/doctor.ts'
import { gatherExternalFacts } from '../../../src/cli/local/gather-external-facts.ts'
import { gatherPortFacts } from '../../../src/cli/local/gather-port-facts.ts'
import type { DaemonKnowledge } from '../../../src/cli/local/gather-port-facts.ts'
import { completeConfig } from '../../../src/config/options.ts'
import { freePort } from '../../support/free-port.ts'

let directory = ''
const { signal } = new AbortController()

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-doctor-'))
})

afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

describe('runDoctor', () => {
  it('looks at the host without a daemon, and makes nothing', async () => {
    const config = completeConfig({
      rootDir: join(directory, 'root'),
      runDir: join(directory, 'run'),
      podLogsDir: join(directory, 'logs'),
      staticPodPath: join(directory, 'manifests'),
    })
    const findings = await runDoctor(config, signal)
    const names = findings.map(({ name }) => name)
    expect(names).toContain('containerd')
    expect(names).toContain('cgroups')
    expect(findings.find(({ name }) => name === 'manifests')).toMatchObject({ status: 'warning' })
    expect(await readdir(directory)).toEqual([])
    const troubles = findings.filter(({ status }) => status === 'error' || status === 'warning')
    expect(troubles.filter(({ hint }) => hint === undefined)).toEqual([])
  })

  it('says that a runtime is not there', async () => {
    const config = completeConfig({ containerRuntimeEndpoint: `unix://${directory}/none.sock` })
    const findings = await runDoctor(config, signal)
    expect(findings.find(({ name }) => name === 'runtime')).toMatchObject({
      status: 'error',
      message: expect.stringContaining('no socket') as string,
      hint: expect.stringContaining('embedded') as string,
    })
  })
})

describe('gatherPortFacts', () => {
  it('goes by what podd says, and tries where it does not run', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const taken = server.address()
    const port = typeof taken === 'object' && taken !== null ? taken.port : 0
    const config = completeConfig({ apiListen: { host: '::1', port: await freePort() }, readOnlyPort: port })
    const states = async (daemon: DaemonKnowledge): Promise<readonly (readonly [string, unknown])[]> => {
      const facts = await gatherPortFacts(config, async () => daemon)
      return facts.map(({ option, state }) => [option, state])
    }
    try {
      const message = `cannot listen at 127.0.0.1:${port}: listen EADDRINUSE: address already in use 127.0.0.1:${port}`
      expect(await states('none')).toEqual([
        ['api.listen', { kind: 'free' }],
        ['readOnlyPort', { kind: 'fails', message }],
      ])
      const job = { periodSeconds: 10, running: false, runs: 1 }
      const jobs = [
        { ...job, name: 'listen-api', error: 'no such address' },
        { ...job, name: 'listen-read-only' },
      ]
      expect(await states({ jobs })).toEqual([
        ['api.listen', { kind: 'fails', message: 'no such address' }],
        ['readOnlyPort', { kind: 'open' }],
      ])
      expect(await states('unknown')).toEqual([
        ['api.listen', { kind: 'unknown' }],
        ['readOnlyPort', { kind: 'unknown' }],
      ])
      expect(await gatherPortFacts(completeConfig({}), async () => 'none')).toEqual([])
    } finally {
      server.close()
    }
  })
})

describe('gatherExternalFacts', () => {
  const ask = (path: string) => gatherExternalFacts(`unix://${path}`, systemClock, signal)

  it('tells a dead socket', async () => {
    const path = join(directory, 'dead.sock')
    await writeFile(path, '')
    expect(await ask(path)).toMatchObject({
      failure: { hint: expect.stringContaining('embedded') as string },
    })
  })

  it('tells a server that has nothing to say', async () => {
    const path = join(directory, 'other.sock')
    const server = createServer((socket) => socket.end('no gRPC here')).listen(path)
    try {
      expect((await ask(path)).failure).toBeDefined()
    } finally {
      server.close()
    }
  })

  it('tells a containerd whose CRI plugin is off, and how to switch it on', async () => {
    const path = join(directory, 'docker.sock')
    const server = new Server()
    await new Promise((resolve, reject) => {
      server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      )
    })
    try {
      expect((await ask(path)).failure).toMatchObject({
        message: expect.stringContaining('no CRI') as string,
        hint: expect.stringContaining('disabled_plugins') as string,
      })
    } finally {
      server.forceShutdown()
    }
  })
})
