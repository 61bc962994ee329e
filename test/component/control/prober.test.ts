import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { Prober } from '../../../src/control/pod/prober.ts'
import type { ProbeResultEvent } from '../../../src/control/pod/prober.ts'
import { RuntimePulse } from '../../../src/control/runtime/runtime-watch.ts'
import type { Probe } from '../../../src/pod/schema/container-schema.ts'
import type { PodEvent } from '../../../src/pod/state/pod-event.ts'
import { createProbeRunner } from '../../../src/probes/run-probe.ts'
import { serveHttp, serveTcp } from '../probes/bad-servers.ts'
import { freePort } from '../../support/free-port.ts'
import { slowness } from '../../support/slowness.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()))
})

/** Fractions, which a manifest couldn't have, keep the tests short. */
const base: Probe = {
  initialDelaySeconds: 0,
  timeoutSeconds: 0.25,
  periodSeconds: 0.25,
  successThreshold: 1,
  failureThreshold: 1,
}

/** The prober with its real handlers and the real clock, on one pod with one container. */
function rig(spec: { readonly livenessProbe?: Probe; readonly readinessProbe?: Probe }) {
  const results: ProbeResultEvent[] = []
  const events: PodEvent[] = []
  const changed: (() => void)[] = []
  const prober = new Prober({
    clock: systemClock,
    random: () => 0,
    runProbe: createProbeRunner({
      clock: systemClock,
      execSync: () => Promise.reject(new Error('no runtime here')),
      pulse: new RuntimePulse(systemClock, () => Promise.resolve()),
      kubernetesVersion: '1.36',
    }),
    events: { record: (event) => events.push(event) },
    onResult: (event) => {
      results.push(event)
      for (const tell of changed.splice(0)) tell()
    },
  })
  closers.push(() => prober.stop())
  prober.setPod({
    pod: { namespace: 'default', name: 'web', uid: 'u1' },
    podIps: ['127.0.0.1'],
    ending: false,
    containers: [
      { name: 'app', containerId: 'c1', startedAtMs: systemClock.wallMs(), spec: { ports: [], ...spec } },
    ],
  })
  const change = (): Promise<void> => new Promise((resolve) => changed.push(resolve))
  return { prober, results, events, change }
}

describe('the prober', () => {
  it('flips readiness both ways within one period', async () => {
    let healthy = true
    const server = await serveHttp((_request, response) => response.writeHead(healthy ? 200 : 503).end())
    closers.push(server.close)
    const httpGet = { path: '/', port: server.port, scheme: 'HTTP', httpHeaders: [] } as const
    const { change, results, events } = rig({ readinessProbe: { ...base, httpGet } })
    await change()
    healthy = false
    const fellMs = performance.now()
    await change()
    healthy = true
    expect(performance.now() - fellMs).toBeLessThan(600 * slowness)
    await change()
    expect(performance.now() - fellMs).toBeLessThan(1_100 * slowness)
    expect(results.map(({ result }) => result)).toEqual(['success', 'failure', 'success'])
    expect(events).toMatchObject([
      { reason: 'Unhealthy', message: 'Readiness probe failed: HTTP probe failed with statuscode: 503' },
    ])
  })

  it.each<[string, Partial<Probe>, string]>([
    [
      'tcp',
      { tcpSocket: { port: 1 } },
      'Liveness probe failed: dial tcp 127.0.0.1:1: connect: connection refused',
    ],
    ['nothing', {}, 'Liveness probe errored and resulted in unknown state: missing probe handler'],
    [
      'exec',
      { exec: { command: ['x'] } },
      'Liveness probe errored and resulted in unknown state: no runtime here',
    ],
    [
      'grpc',
      { grpc: { port: 1, service: '' } },
      'Liveness probe failed: timeout: failed to connect service "127.0.0.1:1" within 250ms: context deadline exceeded',
    ],
  ])('words the events of a failing %s probe as the kubelet does', async (_what, handler, message) => {
    const { prober, events } = rig({ livenessProbe: { ...base, ...handler, periodSeconds: 10 } })
    await expect.poll(() => events.length, { timeout: 2_000 * slowness }).toBeGreaterThan(0)
    expect(events[0]?.message).toBe(message)
    expect(prober.reports('u1')[0]?.lastFailure?.message).toBe(message)
  })

  it('does not hold its own blocked loop against a container', async () => {
    let connections = 0
    const server = await serveTcp((socket) => {
      connections += 1
      socket.once('data', () => {
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
        // The answer is there long before the timeout, while the prober cannot read it.
        if (connections === 1) block(300)
      })
    })
    closers.push(server.close)
    const httpGet = { path: '/', port: server.port, scheme: 'HTTP', httpHeaders: [] } as const
    const { prober, results, events } = rig({ livenessProbe: { ...base, periodSeconds: 60, httpGet } })
    await expect.poll(() => prober.reports('u1')[0]?.counts.success, { timeout: 3_000 * slowness }).toBe(1)
    const counts = prober.reports('u1')[0]?.counts
    expect(counts?.failure).toBe(0)
    // A busy host may hold up the second one too.
    expect(counts?.repeated).toBeGreaterThanOrEqual(1)
    expect([results, events]).toEqual([[], []])
  })

  it('ends a hanging probe as soon as its container is gone', async () => {
    const accepted = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    const server = await serveTcp((socket) => {
      accepted.resolve()
      socket.resume()
      socket.on('close', () => closed.resolve())
    })
    closers.push(server.close)
    const httpGet = { path: '/', port: server.port, scheme: 'HTTP', httpHeaders: [] } as const
    const { prober, results, events } = rig({ livenessProbe: { ...base, timeoutSeconds: 30, httpGet } })
    await accepted.promise
    prober.removePod('u1')
    await closed.promise
    expect([results, events]).toEqual([[], []])
  })

  it('reads a port that came up between two probes', async () => {
    const port = await freePort()
    const { change, results } = rig({ readinessProbe: { ...base, tcpSocket: { port } } })
    const server = await serveTcpOn(port)
    closers.push(server.close)
    await change()
    expect(results).toMatchObject([{ probe: 'readiness', result: 'success', message: '' }])
  })
})

/** Keeps the event loop from turning. */
function block(ms: number): void {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

async function serveTcpOn(port: number) {
  const { createServer } = await import('node:net')
  const server = createServer((socket) => void socket.destroy())
  await new Promise<void>((resolve) => {
    server.listen(port, '127.0.0.1', resolve)
  })
  return { close: () => new Promise((resolve) => server.close(resolve)) }
}
