import { spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { Clock } from '../../../src/base/clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import type { Logger } from '../../../src/base/logger.ts'
import { setPoddUmask } from '../../../src/base/umask.ts'
import { openImageRecords } from '../../../src/control/runtime/embedded-runtime.ts'
import { readProcess, readUmask, waitForExit } from '../../../src/host/processes.ts'
import { containerdPlaces, findContainerd, findShims } from '../../../src/runtime/containerd/process.ts'
import type { EmbeddedContainerdError } from '../../../src/runtime/containerd/process.ts'
import { EmbeddedContainerd } from '../../../src/runtime/embedded-containerd.ts'
import type { EmbeddedContainerdOptions } from '../../../src/runtime/embedded-containerd.ts'
import { removeEmbeddedContainerd } from '../../../src/runtime/remove-embedded.ts'
import { slowness } from '../../support/slowness.ts'

// As podd does when it starts.
setPoddUmask()

let directory = ''
let containerdPath = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-ctd-'))
  containerdPath = join(directory, 'containerd')
  await writeProgram('containerd github.com/containerd/containerd 1.7.0', 'containerd: no space left')
})

afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

/** A program with containerd's version that says something and ends, whenever it is told to run. */
async function writeProgram(version: string, lastWords: string): Promise<void> {
  const script = `#!/bin/sh
if [ "$1" = --version ]; then echo '${version} abc'; exit 0; fi
echo '${lastWords}'
exit 1
`
  await writeFile(containerdPath, script)
  await chmod(containerdPath, 0o755)
}

function script(lines: string): string {
  return `#!/bin/sh\n${lines}`
}

/** A containerd that answers all that `start` asks, and runs until it is killed. */
async function writeAnswering(): Promise<void> {
  await writeFile(
    containerdPath,
    `#!${process.execPath}
if (process.argv[2] === '--version') {
  console.log('containerd github.com/containerd/containerd 1.7.0 abc')
} else {
  const { Server, ServerCredentials } = require(${JSON.stringify(createRequire(import.meta.url).resolve('@grpc/grpc-js'))})
  const asBytes = (bytes) => bytes
  const serve = (path) => ({
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: asBytes,
    requestDeserialize: asBytes,
    responseSerialize: asBytes,
    responseDeserialize: asBytes,
  })
  const answer = (call, reply) => reply(null, Buffer.alloc(0))
  const server = new Server()
  server.addService({ Version: serve('/runtime.v1.RuntimeService/Version') }, { Version: answer })
  server.addService({ Get: serve('/containerd.services.images.v1.Images/Get') }, { Get: answer })
  const socket = ${JSON.stringify(containerdPlaces(join(directory, 'root'), join(directory, 'run')).socketPath)}
  require('node:fs').rmSync(socket, { force: true })
  server.bindAsync('unix://' + socket, ServerCredentials.createInsecure(), () => {})
  // A real one takes its time to end.
  process.on('SIGTERM', () => setTimeout(() => process.exit(), 200))
}
`,
    { mode: 0o755 },
  )
}

/** Time passes at once, but for what programs take that were started; what was slept is written down. */
function hastyClock(slept: number[]): Clock {
  let passedMs = 0
  return {
    ...systemClock,
    monotonicMs: () => passedMs,
    async sleep(delayMs, signal) {
      signal?.throwIfAborted()
      slept.push(delayMs)
      const isForProgram = delayMs < 1000
      passedMs += isForProgram ? delayMs / slowness : delayMs
      await (isForProgram ? systemClock.sleep(5) : nextTurn())
    },
  }
}

function options(change: Partial<EmbeddedContainerdOptions> = {}): EmbeddedContainerdOptions {
  return {
    rootDir: join(directory, 'root'),
    runDir: join(directory, 'run'),
    cgroupDriver: 'cgroupfs',
    registryConfigDir: '/nowhere',
    sandboxImage: { name: 'localhost/none:1', build: () => Promise.reject(new Error('not asked for')) },
    containerdPath,
    ctrPath: '/bin/false',
    cniBinDirs: ['/none'],
    podCidrs: ['10.99.0.0/24'],
    launchMode: 'detached',
    known: { list: async () => new Set(), listSandboxes: async () => new Set() },
    openImageRecords: (socketPath) => openImageRecords(socketPath, systemClock),
    clock: systemClock,
    logger: silentLogger,
    ...change,
  }
}

describe('start', () => {
  it.each<[string, () => Promise<Partial<EmbeddedContainerdOptions>>, string, string]>([
    [
      'an old containerd',
      async () => {
        await writeProgram('containerd containerd.io 1.5.11', '')
        return {}
      },
      '1.5.11 is too old',
      'newer',
    ],
    [
      'a program that is not containerd',
      async () => {
        await writeProgram('nothing', '')
        return {}
      },
      'no version',
      '',
    ],
    [
      'no CNI plugins',
      () => Promise.resolve({ cniBinDirs: [] }),
      'CNI plugins',
      'containernetworking-plugins',
    ],
    [
      'a run directory that is too deep',
      () => Promise.resolve({ runDir: `/run/${'x'.repeat(100)}` }),
      'too long for a unix socket',
      '--run-dir',
    ],
    [
      'a root directory that cannot be made',
      async () => {
        await writeFile(join(directory, 'file'), '')
        return { rootDir: join(directory, 'file/root') }
      },
      "cannot write containerd's files",
      'writable',
    ],
    ['one that ends at once', () => Promise.resolve({}), 'does not start: no space left', 'containerd.log'],
  ])('%s is one clear error', async (_, prepare, message, hint) => {
    const containerd = new EmbeddedContainerd(options(await prepare()))
    const error = await containerd.start().then(
      () => undefined,
      (reason: EmbeddedContainerdError) => reason,
    )
    expect(error).toMatchObject({
      code: 'EMBEDDED_CONTAINERD',
      message: expect.stringContaining(message) as string,
    })
    expect(error?.hint ?? '').toContain(hint)
  })

  it('writes the config and the network, readable and whole, before anything runs', async () => {
    const containerd = new EmbeddedContainerd(options())
    await expect(containerd.start()).rejects.toThrow('no space left')
    const { places } = containerd
    expect(await readFile(places.configPath, 'utf8')).toContain(places.socketPath)
    expect(await readFile(places.conflistPath, 'utf8')).toContain('10.99.0.0/24')
    expect((await stat(places.rootDir)).mode & 0o777).toBe(0o700)
  })

  it('starts containerd although the older part of its log cannot be kept', async () => {
    const said: string[] = []
    const logger: Logger = { ...silentLogger, warn: (_, message) => said.push(message) }
    const containerd = new EmbeddedContainerd(options({ logger }))
    const { logPath } = containerd.places
    await mkdir(`${logPath}.1`, { recursive: true })
    await writeFile(logPath, Buffer.alloc(5 * 1024 * 1024 + 1, 'y'))
    await expect(containerd.start()).rejects.toThrow('no space left')
    expect(await readFile(logPath, 'utf8')).toBe('containerd: no space left\n')
    expect(said).toEqual(["cannot bound containerd's log"])
  })
})

describe('supervise', () => {
  it('tries again with growing pauses, says the same trouble once, and ends with the signal', async () => {
    const slept: number[] = []
    const said: string[] = []
    const stop = new AbortController()
    const logger: Logger = { ...silentLogger, error: (_, message) => said.push(message) }
    const containerd = new EmbeddedContainerd(options({ clock: hastyClock(slept), logger }))
    const states: string[] = []
    containerd.onChange((state) => {
      states.push(state.kind)
      if (states.length === 7) stop.abort()
    })
    await containerd.supervise(stop.signal)
    expect(slept.filter((delayMs) => delayMs >= 1000)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000])
    expect(states).toEqual(Array.from({ length: 7 }, () => 'down'))
    expect(said).toEqual(['containerd does not start, retrying'])
    expect(containerd.state).toMatchObject({
      kind: 'down',
      message: expect.stringContaining('no space') as string,
    })
  })

  describe('of one that comes up', () => {
    const path = process.env['PATH']

    beforeEach(async () => {
      await writeAnswering()
      // What opens the firewall for pods shall not reach this host's.
      for (const name of ['iptables', 'ip6tables'])
        await writeFile(join(directory, name), script(''), { mode: 0o755 })
      process.env['PATH'] = `${directory}:${path ?? ''}`
    })

    afterEach(async () => {
      process.env['PATH'] = path ?? ''
      await removeEmbeddedContainerd({ ...options(), clock: systemClock })
    })

    it('adopts one that was started a moment ago and does not answer yet', async () => {
      const containerd = new EmbeddedContainerd(options())
      const first = await containerd.start()
      const before = readProcess(first.pid)
      process.kill(first.pid, 'SIGKILL')
      if (before !== undefined) await waitForExit(before, 5000, systemClock)
      const another = spawn(containerdPath, ['--config', containerd.places.configPath], { stdio: 'ignore' })
      expect(await containerd.start()).toMatchObject({ adopted: true, pid: another.pid })
    })

    it('restarts one that an older podd started under another umask', async () => {
      const containerd = new EmbeddedContainerd(options())
      const first = await containerd.start()
      const before = readProcess(first.pid)
      process.kill(first.pid, 'SIGKILL')
      if (before !== undefined) await waitForExit(before, 5000, systemClock)
      const strict = spawn(
        'sh',
        ['-c', 'umask 077; exec "$@"', 'sh', containerdPath, '--config', containerd.places.configPath],
        { stdio: 'ignore' },
      )
      await expect.poll(() => findContainerd(containerd.places)?.pid).toBe(strict.pid)
      // Where the umask is the unit's, a restart would change nothing.
      const unit = new EmbeddedContainerd(options({ launchMode: 'systemd' }))
      expect(await unit.start()).toMatchObject({ adopted: true, pid: strict.pid })
      const second = await containerd.start()
      expect(second.adopted).toBe(false)
      expect(readUmask(second.pid)).toBe(0o022)
    })

    it('starts no older one while pods run, tells that it is installed, and goes on once it no longer is', async () => {
      const events: string[] = []
      const recorder = { recordNode: ({ reason }: { readonly reason: string }) => void events.push(reason) }
      const containerd = new EmbeddedContainerd(options({ events: recorder }))
      const first = await containerd.start()
      const answering = await readFile(containerdPath, 'utf8')
      const older = answering.replace('1.7.0', '1.6.9')
      expect(await containerd.start()).toMatchObject({ adopted: true, pid: first.pid })
      await writeFile(containerdPath, older)
      // No pod runs.
      expect(await containerd.start()).toMatchObject({ version: { text: '1.6.9' } })
      await writeFile(containerdPath, answering)
      await removeEmbeddedContainerd({ ...options(), clock: systemClock })
      await containerd.start()
      const stay = ['-e', 'setInterval(() => {}, 1000)', '--', '-address', containerd.places.socketPath]
      const shim = spawn(process.execPath, stay, { argv0: 'containerd-shim-runc-v2', stdio: 'ignore' })
      try {
        await expect.poll(() => findShims(containerd.places)).toHaveLength(1)
        await writeFile(containerdPath, older)
        // Another config alone would not do either.
        const changed = new EmbeddedContainerd(options({ events: recorder, registryConfigDir: '/elsewhere' }))
        const kept = await changed.start()
        expect(kept).toMatchObject({ adopted: true, version: { text: '1.7.0' } })
        expect(changed.problems()).toMatchObject([
          { severity: 'warning', message: expect.stringContaining('1.6.9 is installed') as string },
        ])
        await expect(changed.restart('for the test')).rejects.toThrow('no other would start')
        expect(events).toEqual(['ContainerdOlder'])
        const before = readProcess(kept.pid)
        process.kill(kept.pid, 'SIGKILL')
        if (before !== undefined) await waitForExit(before, 5000, systemClock)
        await expect(changed.start()).rejects.toMatchObject({
          message: expect.stringContaining('which an older one would lose') as string,
          hint: expect.stringContaining('Install containerd 1.7.0') as string,
        })
        await writeFile(containerdPath, answering)
        expect(await changed.start()).toMatchObject({ adopted: false, version: { text: '1.7.0' } })
        expect(changed.problems()).toEqual([])
      } finally {
        shim.kill('SIGKILL')
      }
    })

    it.each<[how: string, lose: (path: string) => Promise<void>]>([
      ['removed', (path) => rm(path)],
      ['replaced', (path) => rm(path).then(() => writeFile(path, 'not a socket'))],
    ])('restarts one whose socket somebody has %s', async (how, lose) => {
      const stop = new AbortController()
      const events: string[] = []
      const recorder = {
        recordNode: ({ message }: { readonly message: string }) => void events.push(message),
      }
      const containerd = new EmbeddedContainerd(options({ events: recorder }))
      const pids: number[] = []
      containerd.onChange((state) => {
        if (state.kind === 'running') pids.push(state.running.pid)
        if (pids.length === 2) stop.abort()
      })
      const supervised = containerd.supervise(stop.signal)
      await expect.poll(() => pids).toHaveLength(1)
      await lose(containerd.places.socketPath)
      await supervised
      expect(new Set(pids).size).toBe(2)
      expect(events).toEqual([
        `podd restarts containerd: its socket has been ${how}; running containers run on`,
      ])
    })

    it('kills one that is silent and does nothing, and lets the next one start, whatever was silent before', async () => {
      const stop = new AbortController()
      const events: string[] = []
      const recorder = { recordNode: ({ reason }: { readonly reason: string }) => void events.push(reason) }
      const containerd = new EmbeddedContainerd(options({ events: recorder }))
      const pids: number[] = []
      containerd.onChange((state) => {
        if (state.kind === 'running') pids.push(state.running.pid)
      })
      const supervised = containerd.supervise(stop.signal)
      await expect.poll(() => pids).toHaveLength(1)
      let silentMs = 0
      while (silentMs < 60_000) containerd.noteSilence((silentMs += 5000))
      expect(events).toEqual(['ContainerdFrozen'])
      // It is about to be started.
      await expect
        .poll(() => {
          if (pids.length === 1) containerd.noteSilence((silentMs += 1))
          return pids
        })
        .toHaveLength(2)
      containerd.noteSilence(silentMs + 55_000)
      expect(new Set(pids).size).toBe(2)
      expect(events.filter((reason) => reason === 'ContainerdFrozen')).toHaveLength(1)
      stop.abort()
      await supervised
    })

    it('starts another at once where it was told to restart', async () => {
      const slept: number[] = []
      const said: string[] = []
      const stop = new AbortController()
      const logger: Logger = { ...silentLogger, warn: (_, message) => said.push(message) }
      const hasty = hastyClock(slept)
      const clock: Clock = {
        ...hasty,
        sleep: (delayMs, signal) =>
          delayMs >= 3000 ? systemClock.sleep(delayMs, signal) : hasty.sleep(delayMs, signal),
      }
      const containerd = new EmbeddedContainerd(options({ clock, logger }))
      const pids: number[] = []
      const states: string[] = []
      containerd.onChange((state) => {
        states.push(state.kind)
        if (state.kind === 'running') pids.push(state.running.pid)
        if (pids.length === 2) return stop.abort()
        void containerd.restart('for the test')
      })
      await containerd.supervise(stop.signal)
      expect(states).toEqual(['running', 'running'])
      expect(new Set(pids).size).toBe(2)
      expect(said).toContain('restarting containerd')
      expect(said).not.toContain('containerd exited, restarting it')
    })

    it('pauses longer each time that it has died soon, and not where it had lived long', async () => {
      const slept: number[] = []
      const stop = new AbortController()
      const hasty = hastyClock(slept)
      const clock: Clock = {
        ...hasty,
        // Between the looks for leaks there's time enough for all of this.
        sleep: (delayMs, signal) =>
          delayMs === 30_000 ? systemClock.sleep(delayMs, signal) : hasty.sleep(delayMs, signal),
      }
      const containerd = new EmbeddedContainerd(options({ clock }))
      const states: string[] = []
      containerd.onChange((state) => {
        states.push(state.kind)
        if (state.kind !== 'running') return
        const starts = states.filter((kind) => kind === 'running').length
        if (starts === 6) return stop.abort()
        // The fourth lives long.
        const livesMs = starts === 4 ? 60_001 : 0
        setImmediate(() => {
          void clock.sleep(livesMs).then(() => process.kill(state.running.pid, 'SIGKILL'))
        })
      })
      await containerd.supervise(stop.signal)
      // Where none is down between two, the next one was started at once.
      expect(states.join(' ')).toBe('running down running down running down running running down running')
      // Others sleep for milliseconds, and the search for leaks for 3 s.
      const pauses = slept.filter((delayMs) => delayMs >= 1000 && delayMs !== 3000 && delayMs !== 60_001)
      expect(pauses).toEqual([1000, 2000, 4000, 1000])
    })
  })
})

describe('importImages', () => {
  it('waits for a containerd that is still starting, for a while', async () => {
    const slept: number[] = []
    const containerd = new EmbeddedContainerd(options({ clock: hastyClock(slept) }))
    await expect(containerd.images.importImages({ path: '/x.tar' })).rejects.toMatchObject({
      code: 'RUNTIME_UNAVAILABLE',
      message: 'containerd is not ready: it is still starting',
      hint: expect.stringContaining('Try again') as string,
    })
    expect(slept).toEqual([30_000])
  })

  it('says at once why one that is down does not start', async () => {
    const stop = new AbortController()
    const containerd = new EmbeddedContainerd(options())
    containerd.onChange(() => stop.abort())
    const waiting = containerd.images.importImages({ path: '/x.tar' })
    const supervising = containerd.supervise(stop.signal)
    const failure = {
      code: 'RUNTIME_UNAVAILABLE',
      message: expect.stringMatching(
        /^containerd is not ready: containerd does not start: no space/u,
      ) as string,
    }
    await expect(waiting).rejects.toMatchObject(failure)
    await supervising
    await expect(containerd.images.importImages({ path: '/x.tar' })).rejects.toMatchObject(failure)
  })
})

describe('removeEmbeddedContainerd', () => {
  it('is content where nothing ever ran', async () => {
    await removeEmbeddedContainerd({ ...options(), clock: systemClock })
    await expect(stat(join(directory, 'root'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('removes the run directory and leaves the root directory', async () => {
    const containerd = new EmbeddedContainerd(options())
    await expect(containerd.start()).rejects.toThrow('no space left')
    await mkdir(containerd.places.cniDataDir, { recursive: true })
    await removeEmbeddedContainerd({ ...options(), clock: systemClock })
    await expect(stat(containerd.places.runDir)).rejects.toMatchObject({ code: 'ENOENT' })
    expect((await stat(containerd.places.configPath)).isFile()).toBe(true)
  })
})
