import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { gatherExternalFacts, gatherPortFacts, runDoctor } from '../../../src/cli/local/doctor.ts'
import type { DaemonPorts } from '../../../src/cli/local/doctor.ts'
import { formatAddress } from '../../../src/config/api-options.ts'
import { completeConfig } from '../../../src/config/options.ts'
import { apiSocketPath } from '../../../src/config/places.ts'
import type { DoctorFinding } from '../../../src/decide/doctor/doctor-finding.ts'
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

describe('runDoctor, of the ports', () => {
  const portFinding = async (status: object | undefined): Promise<DoctorFinding | undefined> => {
    const runDir = join(directory, 'run')
    await mkdir(runDir)
    const server = createHttpServer((_request, response) => {
      if (status === undefined) response.destroy()
      else response.end(JSON.stringify(status))
    }).listen(apiSocketPath(runDir))
    await once(server, 'listening')
    const port = await freePort()
    const holder = createServer().listen(port, '127.0.0.1')
    await once(holder, 'listening')
    try {
      const config = completeConfig({
        rootDir: join(directory, 'root'),
        runDir,
        apiListen: { host: '127.0.0.1', port },
      })
      return (await runDoctor(config, signal)).find(({ name }) => name === 'api-port')
    } finally {
      holder.close()
      server.close()
    }
  }

  it('blames nobody for a port that a podd may have that does not say', async () => {
    expect(await portFinding({ runtime: {}, jobs: [] })).toMatchObject({
      status: 'skipped',
      message: expect.stringContaining('it does not say') as string,
    })
  })

  it('blames nobody for a port that a podd may have that does not answer', async () => {
    expect(await portFinding(undefined)).toMatchObject({
      status: 'skipped',
      message: expect.stringContaining('the connection to podd') as string,
    })
  })

  it('names the port at which podd listens since before the settings changed', async () => {
    const ports = [{ option: 'api.listen', address: '127.0.0.1:1' }]
    expect(await portFinding({ runtime: {}, jobs: [], ports })).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('podd was started with api.listen 127.0.0.1:1') as string,
    })
  })
})

describe('gatherPortFacts', () => {
  it('goes by what podd says, and tries where it does not run', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const taken = server.address()
    const port = typeof taken === 'object' && taken !== null ? taken.port : 0
    const config = {
      address: '127.0.0.1',
      apiListen: { host: '::1', port: await freePort() },
      readOnlyPort: port,
    }
    const states = async (daemon: DaemonPorts): Promise<readonly (readonly [string, unknown])[]> => {
      const facts = await gatherPortFacts(config, async () => daemon)
      return facts.map(({ option, state }) => [option, state])
    }
    try {
      const message = `cannot listen at 127.0.0.1:${port}: listen EADDRINUSE: address already in use 127.0.0.1:${port}`
      expect(await states({ kind: 'none' })).toEqual([
        ['api.listen', { kind: 'free' }],
        ['readOnlyPort', { kind: 'fails', message }],
      ])
      const api = {
        option: 'api.listen',
        address: formatAddress(config.apiListen),
        error: 'no such address',
      } as const
      const readOnly = { option: 'readOnlyPort', address: `127.0.0.1:${port}` } as const
      expect(await states({ kind: 'known', ports: [api, readOnly] })).toEqual([
        ['api.listen', { kind: 'fails', message: 'no such address' }],
        ['readOnlyPort', { kind: 'open' }],
      ])
      const moved = [{ ...api, address: '127.0.0.1:6443' }]
      expect(await states({ kind: 'known', ports: moved })).toEqual([
        ['api.listen', { kind: 'changed', served: '127.0.0.1:6443' }],
        ['readOnlyPort', { kind: 'changed', served: undefined }],
      ])
      const unknown = { kind: 'unknown', reason: 'it hangs' } as const
      expect(await states(unknown)).toEqual([
        ['api.listen', unknown],
        ['readOnlyPort', unknown],
      ])
      const neverAsked = async (): Promise<never> => expect.unreachable()
      expect(await gatherPortFacts(completeConfig({}), neverAsked)).toEqual([])
      expect(await gatherPortFacts(undefined, async () => ({ kind: 'known', ports: moved }))).toMatchObject([
        { option: 'api.listen', address: '127.0.0.1:6443', state: { kind: 'fails' } },
      ])
      expect(await gatherPortFacts(undefined, async () => unknown)).toEqual([])
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
