import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { downHost, endDaemon } from '../../../src/cli/local/down-host.ts'
import { completeConfig } from '../../../src/config/options.ts'
import { apiSocketPath } from '../../../src/config/places.ts'
import { ManualClock } from '../../support/manual-clock.ts'

let directory = ''
let reports: string[] = []
let child: ChildProcess | undefined
let server: Server | undefined
const sockets = new Set<Socket>()

const runDir = (): string => join(directory, 'run')
const request = () => ({
  config: completeConfig({ rootDir: join(directory, 'root'), runDir: runDir() }),
  graceSeconds: undefined,
  removesEnded: false,
  signal: new AbortController().signal,
  report: (line: string) => void reports.push(line),
})

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-end-'))
  reports = []
  mkdirSync(join(directory, 'root'))
  mkdirSync(runDir())
})

afterEach(async () => {
  if (child !== undefined && child.exitCode === null && child.signalCode === null) {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  server?.close()
  child = undefined
  server = undefined
  rmSync(directory, { recursive: true, force: true })
})

/** A process that holds the lock of a directory as a daemon does. */
async function holdLock(directory: string): Promise<number> {
  const script = 'exec 3>>"$1"; flock --nonblock 3; echo ready; exec sleep 1000'
  child = spawn('sh', ['-c', script, 'sh', join(directory, 'lock')], { stdio: ['ignore', 'pipe', 'ignore'] })
  if (child.stdout !== null) await once(child.stdout, 'data')
  return child.pid ?? 0
}

/** Takes connections, and never says anything. */
async function listenSilently(): Promise<void> {
  server = createServer((socket) => void sockets.add(socket)).listen(apiSocketPath(runDir()))
  await once(server, 'listening')
}

/** A daemon's socket elsewhere, as a container's is seen from the host. */
async function answerWith(pid: number): Promise<string> {
  const socketPath = join(directory, 'named.sock')
  server = createHttpServer((_request, response) => void response.end(JSON.stringify({ pid })))
  server.listen(socketPath)
  await once(server, 'listening')
  return socketPath
}

/** The outcome, with as much time as it takes. */
async function endWithTime(): Promise<unknown> {
  const clock = new ManualClock()
  const end = { isOver: false }
  const ended = endDaemon(request(), clock)
    .catch((error: unknown) => error)
    .finally(() => (end.isOver = true))
  while (!end.isOver) await clock.advance(100)
  return ended
}

describe('endDaemon', () => {
  it('has nothing to do where there is none', async () => {
    await endDaemon(request(), systemClock)
    expect(reports).toEqual([])
  })

  it.each(['root', 'run'])('ends one whose socket is gone, by its lock on the %s directory', async (name) => {
    const pid = await holdLock(join(directory, name))
    await endDaemon(request(), systemClock)
    expect(reports).toEqual([`ending the daemon (pid ${pid})`])
    await expect.poll(() => child?.signalCode).toBe('SIGTERM')
  })

  it('ends the one whose socket was named', async () => {
    const pid = await holdLock(join(directory, 'root'))
    const socketPath = await answerWith(pid)
    await endDaemon({ ...request(), socketPath }, systemClock)
    expect(reports).toEqual([`ending the daemon (pid ${pid})`])
    await expect.poll(() => child?.signalCode).toBe('SIGTERM')
  })

  it('ends none where another one answers at the socket that was named', async () => {
    const pid = await holdLock(join(directory, 'root'))
    const socketPath = await answerWith(pid + 1)
    await expect(endDaemon({ ...request(), socketPath }, systemClock)).rejects.toMatchObject({
      code: 'DAEMON_UNKNOWN',
      message: `the podd that answers at ${socketPath} is not the one that works in ${runDir()}`,
    })
    expect(reports).toEqual([])
    expect(child?.signalCode).toBeNull()
  })

  it('does not mind that the one at the socket that was named has ended meanwhile', async () => {
    await endDaemon({ ...request(), socketPath: join(directory, 'none.sock') }, systemClock)
    expect(reports).toEqual([])
  })

  it('tells of one that is stopped, neither answers nor ends', async () => {
    const pid = await holdLock(join(directory, 'root'))
    await listenSilently()
    process.kill(pid, 'SIGSTOP')
    expect(await endWithTime()).toMatchObject({
      code: 'DAEMON_STUCK',
      hint: expect.stringContaining(`kill -9 ${pid}`) as string,
    })
    expect(child?.signalCode).toBeNull()
  })

  it('goes no further where somebody is at the socket who does not say who', async () => {
    await listenSilently()
    expect(await endWithTime()).toMatchObject({
      code: 'DAEMON_UNKNOWN',
      hint: expect.stringContaining(apiSocketPath(runDir())) as string,
    })
    expect(reports).toEqual([])
  })
})

describe('downHost', () => {
  it('does nothing without root, and says so', async () => {
    const pid = await holdLock(join(directory, 'root'))
    await expect(downHost(request(), false)).rejects.toMatchObject({
      code: 'ROOT_NEEDED',
      hint: expect.stringContaining('sudo') as string,
    })
    expect(reports).toEqual([])
    process.kill(pid, 0)
  })
})
