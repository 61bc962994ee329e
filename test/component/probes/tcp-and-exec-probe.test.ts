import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { RuntimePulse } from '../../../src/control/runtime/runtime-watch.ts'
import { runExecProbe } from '../../../src/probes/exec-probe.ts'
import type { ExecSync, ExecSyncRequest } from '../../../src/probes/exec-probe.ts'
import type { ProbeOutcome, ProbeTarget } from '../../../src/probes/probe-outcome.ts'
import { runTcpProbe } from '../../../src/probes/run-probe.ts'
import { serveTcp } from './bad-servers.ts'
import type { RunningServer } from './bad-servers.ts'
import { freePort } from '../../support/free-port.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { slowness } from '../../support/slowness.ts'

const open: RunningServer[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()))
})

const target: ProbeTarget = {
  containerId: 'c1',
  podIps: ['127.0.0.1'],
  ports: [],
  env: [{ name: 'FILE', value: '/tmp/x' }],
}

function bounds(timeoutMs: number, signal = new AbortController().signal) {
  return { clock: systemClock, timeoutMs, signal }
}

describe('a tcp probe', () => {
  it('succeeds on a port that accepts and says nothing, and closes', async () => {
    const ended = Promise.withResolvers<void>()
    const server = await serveTcp((socket) => {
      socket.resume()
      socket.on('close', () => ended.resolve())
    })
    open.push(server)
    expect(await runTcpProbe({ port: server.port }, target, bounds(2_000))).toEqual({
      result: 'success',
      output: '',
    })
    await ended.promise
  })

  it('succeeds by name and on IPv6', async () => {
    const server = await serveTcp(() => undefined, '::1')
    open.push(server)
    const named: ProbeTarget = {
      ...target,
      podIps: ['::1'],
      ports: [{ name: 'db', containerPort: server.port, protocol: 'TCP' }],
    }
    expect(await runTcpProbe({ port: 'db' }, named, bounds(2_000))).toMatchObject({ result: 'success' })
  })

  it('goes to the host that the manifest names', async () => {
    const server = await serveTcp(() => undefined)
    open.push(server)
    const elsewhere = { ...target, podIps: ['192.0.2.1'] }
    const action = { port: server.port, host: '127.0.0.1' }
    expect(await runTcpProbe(action, elsewhere, bounds(2_000))).toMatchObject({ result: 'success' })
  })

  it('fails where nobody listens', async () => {
    const port = await freePort()
    expect(await runTcpProbe({ port }, target, bounds(2_000))).toEqual({
      result: 'failure',
      output: `dial tcp 127.0.0.1:${port}: connect: connection refused`,
    })
  })

  it.each<[string, ProbeTarget, number | string, string]>([
    ['without such a port', target, 'nope', 'port nope not found'],
    ['without an address', { ...target, podIps: [] }, 80, 'the pod has no IP address yet'],
  ])('%s errs', async (_what, at, port, output) => {
    expect(await runTcpProbe({ port }, at, bounds(1_000))).toEqual({ result: 'unknown', output })
  })

  it('called off says nothing', async () => {
    const outcome = await runTcpProbe({ port: 80 }, target, bounds(1_000, AbortSignal.abort()))
    expect(outcome.result).toBe('unknown')
  })
})

describe('an exec probe', () => {
  const pulse = (): RuntimePulse => new RuntimePulse(systemClock, () => Promise.resolve())
  const answering =
    (exitCode: number, output = ''): ExecSync =>
    () =>
      Promise.resolve({ exitCode, output })
  const run = (execSync: ExecSync, timeoutMs = 1_000, signal?: AbortSignal, command = ['cat', '$(FILE)']) =>
    runExecProbe({ execSync, pulse: pulse() }, { command }, target, bounds(timeoutMs, signal))

  it.each([
    [0, 'success'],
    [1, 'failure'],
    [126, 'failure'],
    [-1, 'failure'],
  ] as const)('that exits with %i is a %s', async (exitCode, result) => {
    expect(await run(answering(exitCode, 'said'))).toEqual({ result, output: 'said' })
  })

  it('expands what the manifest states, and only that', async () => {
    const asked: ExecSyncRequest[] = []
    await run(
      (request) => {
        asked.push(request)
        return Promise.resolve({ exitCode: 0, output: '' })
      },
      3_000,
      undefined,
      ['cat', '$(FILE)', '$(OTHER)', '$$(FILE)'],
    )
    expect(asked[0]).toMatchObject({
      containerId: 'c1',
      cmd: ['cat', '/tmp/x', '$(OTHER)', '$(FILE)'],
      timeoutMs: 3_000,
    })
  })

  it.each([
    ['x'.repeat(20_000), 10_240],
    ['ü'.repeat(20_000), 5_120],
    ['short', 5],
  ])('keeps 10 KiB of its output', async (output, chars) => {
    expect((await run(answering(1, output))).output).toHaveLength(chars)
  })

  it('that the runtime ends in time is a failure', async () => {
    const timedOut: ExecSync = () => Promise.resolve({ exitCode: -1, output: '', timedOut: true })
    expect(await run(timedOut)).toEqual({
      result: 'failure',
      timedOut: true,
      output: 'command timed out: "cat /tmp/x" timed out after 1s',
    })
  })

  it('that a runtime which answers else never answers is a failure in time', async () => {
    const startMs = performance.now()
    const outcome = await run(({ onSent }) => {
      onSent?.()
      return new Promise(() => undefined)
    }, 100)
    expect(outcome).toMatchObject({ result: 'failure', timedOut: true })
    expect(performance.now() - startMs).toBeLessThan(1_000 * slowness)
  })

  describe('of a silent runtime', () => {
    const answer = (): { promise: Promise<void>; resolve(): void; reject(error: Error): void } =>
      Promise.withResolvers<void>()
    let clock = new ManualClock()
    let asked = answer()
    beforeEach(() => {
      clock = new ManualClock()
      asked = answer()
    })
    /** The probe, and what came of it so far. */
    function begin(execSync: ExecSync, timeoutMs: number) {
      const probe: { outcome?: ProbeOutcome; signal?: AbortSignal } = {}
      const sending: ExecSync = (request) => {
        probe.signal = request.signal
        request.onSent?.()
        return execSync(request)
      }
      const means = { execSync: sending, pulse: new RuntimePulse(clock, () => asked.promise) }
      const { signal } = new AbortController()
      void runExecProbe(means, { command: ['true'] }, target, { clock, timeoutMs, signal }).then(
        (outcome) => (probe.outcome = outcome),
      )
      return probe
    }
    const silence: ExecSync = () => new Promise(() => undefined)

    it('is waited for, and says how long that was', async () => {
      const probe = begin(silence, 2_000)
      await clock.advance(30_000)
      expect(probe.outcome).toBeUndefined()
      expect(probe.signal?.aborted).toBe(false)
      asked.resolve()
      await clock.advance(0)
      expect(probe.outcome).toMatchObject({ result: 'failure', timedOut: true, silentMs: 29_500 })
      await clock.advance(2_000)
      expect(probe.signal?.aborted).toBe(true)
      expect(clock.pendingTimers).toBe(0)
    })

    it('that is gone in the end says nothing about the container', async () => {
      const probe = begin(silence, 2_000)
      await clock.advance(5_000)
      asked.reject(new Error('gone'))
      await clock.advance(0)
      expect(probe.outcome).toEqual({ result: 'unknown', output: 'the container runtime does not answer' })
      expect(probe.signal?.aborted).toBe(true)
    })

    it('that answers late says how late', async () => {
      const probe = begin(async () => {
        await clock.sleep(20_000)
        return { exitCode: 1, output: 'stale' }
      }, 2_000)
      await clock.advance(20_000)
      expect(probe.outcome).toEqual({ result: 'failure', output: 'stale', silentMs: 19_500 })
      asked.resolve()
      await clock.advance(0)
      expect(clock.pendingTimers).toBe(0)
    })
  })

  it('that never reaches the runtime says nothing about the container, and is called off', async () => {
    let seen: AbortSignal | undefined
    const outcome = await run(({ signal }) => {
      seen = signal
      return new Promise(() => undefined)
    }, 50)
    expect(outcome).toEqual({ result: 'unknown', output: 'the container runtime is away' })
    expect(seen?.aborted).toBe(true)
  })

  it('that reaches the runtime late has its whole time from then on', async () => {
    const timeoutMs = 300 * slowness
    let sentMs = Infinity
    const outcome = await run(async ({ onSent }) => {
      await systemClock.sleep(timeoutMs / 2)
      sentMs = performance.now()
      onSent?.()
      return new Promise<never>(() => undefined)
    }, timeoutMs)
    expect(outcome).toMatchObject({ result: 'failure', timedOut: true })
    expect(performance.now() - sentMs).toBeGreaterThan(timeoutMs)
  })

  it('that the runtime cannot run errs', async () => {
    expect(await run(() => Promise.reject(new Error('no such container')))).toEqual({
      result: 'unknown',
      output: 'no such container',
    })
  })

  it('called off ends the wait, and the call', async () => {
    const controller = new AbortController()
    let seen: AbortSignal | undefined
    const running = run(
      ({ signal }) => {
        seen = signal
        return new Promise(() => undefined)
      },
      60_000,
      controller.signal,
    )
    controller.abort()
    expect((await running).result).toBe('unknown')
    expect(seen?.aborted).toBe(true)
  })
})
