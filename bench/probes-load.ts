/** What bench/probes.ts sends, by podd's prober and by a bare loop. */
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { Client } from 'undici'
import { systemClock } from '../src/base/clock.ts'
import { Prober } from '../src/control/pod/prober.ts'
import { RuntimePulse } from '../src/control/runtime/runtime-watch.ts'
import type { Probe } from '../src/pod/schema/container-schema.ts'
import type { ExecSync } from '../src/probes/exec-probe.ts'
import { createProbeRunner } from '../src/probes/run-probe.ts'
import type { ExecPlace } from './probes-exec.ts'

export interface Ports {
  readonly http: number
  readonly tcp: number
  readonly grpc: number
}

/** How many of each are sent a second. */
export interface Rates {
  readonly http: number
  readonly tcp: number
  readonly grpc: number
}

/** Exec probes on real containers, where there is a runtime. */
interface ExecLoad extends ExecPlace {
  readonly execSync: ExecSync
}

export interface Load {
  /** Milliseconds by which each probe started late. */
  readonly latenessMs: readonly number[]
  readonly succeeded: () => number
  readonly failed: () => number
  readonly stop: () => void
}

const base: Probe = {
  initialDelaySeconds: 0,
  timeoutSeconds: 1,
  periodSeconds: 1,
  successThreshold: 1,
  failureThreshold: 3,
}

/** One pod with one readiness probe each. */
export function startProber(ports: Ports, rates: Rates, exec?: ExecLoad): Load {
  const latenessMs: number[] = []
  const noRuntime: ExecSync = () => Promise.reject(new Error('no runtime'))
  const prober = new Prober({
    clock: systemClock,
    random: Math.random,
    runProbe: createProbeRunner({
      clock: systemClock,
      execSync: exec?.execSync ?? noRuntime,
      pulse: new RuntimePulse(systemClock, () => Promise.resolve()),
      kubernetesVersion: '1.36',
    }),
    events: { record: ({ message }) => console.error(message) },
    onResult: () => undefined,
    onStart: (lateMs) => latenessMs.push(lateMs),
  })
  const uids: string[] = []
  const add = (probe: Probe, containerId = `c${uids.length}`): void => {
    const uid = `u${uids.length}`
    uids.push(uid)
    prober.setPod({
      pod: { namespace: 'bench', name: uid, uid },
      podIps: ['127.0.0.1'],
      ending: false,
      containers: [{ name: 'a', containerId, startedAtMs: 0, spec: { ports: [], readinessProbe: probe } }],
    })
  }
  const httpGet = { path: '/healthz', port: ports.http, scheme: 'HTTP', httpHeaders: [] } as const
  for (let i = 0; i < rates.http; i += 1) add({ ...base, httpGet })
  for (let i = 0; i < rates.tcp; i += 1) add({ ...base, tcpSocket: { port: ports.tcp } })
  for (let i = 0; i < rates.grpc; i += 1) add({ ...base, grpc: { port: ports.grpc, service: '' } })
  for (const id of exec?.containerIds ?? []) add({ ...base, exec: { command: exec?.command ?? [] } }, id)
  const count = (what: 'success' | 'failure' | 'unknown'): number =>
    uids.reduce((sum, uid) => sum + (prober.reports(uid)[0]?.counts[what] ?? 0), 0)
  return {
    latenessMs,
    succeeded: () => count('success'),
    failed: () => count('failure') + count('unknown'),
    stop: () => prober.stop(),
  }
}

/** The same probes with the same clients, each on a timer of its own, and nothing around them. */
export function startBareLoop(ports: Ports, rates: Rates, exec?: ExecLoad): Load {
  const latenessMs: number[] = []
  let stopped = false
  let succeeded = 0
  let failed = 0
  const every = (times: number, send: (index: number) => Promise<boolean>): void => {
    for (let i = 0; i < times; i += 1) {
      const once = (dueMs: number): void => {
        if (stopped) return
        const nowMs = performance.now()
        latenessMs.push(nowMs - dueMs)
        setTimeout(() => once(dueMs + 1_000), dueMs + 1_000 - nowMs)
        send(i).then(
          (good) => (good ? (succeeded += 1) : (failed += 1)),
          () => (failed += 1),
        )
      }
      const firstMs = performance.now() + Math.random() * 1_000
      setTimeout(() => once(firstMs), firstMs - performance.now())
    }
  }
  every(rates.http, () => bareHttp(ports.http))
  every(rates.tcp, () => bareTcp(ports.tcp))
  every(rates.grpc, () => bareGrpc(ports.grpc))
  every(exec?.containerIds.length ?? 0, async (index) => {
    const reply = await exec?.execSync({
      containerId: exec.containerIds[index] ?? '',
      cmd: exec.command,
      timeoutMs: 1_000,
      signal: new AbortController().signal,
    })
    return reply?.exitCode === 0
  })
  return {
    latenessMs,
    succeeded: () => succeeded,
    failed: () => failed,
    stop: () => {
      stopped = true
    },
  }
}

function bareHttp(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const client = new Client(`http://127.0.0.1:${port}`, { pipelining: 0 })
    let status = 0
    client.dispatch(
      { method: 'GET', path: '/healthz', headers: ['Accept', '*/*', 'User-Agent', 'bare'], reset: true },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, statusCode) => (status = statusCode),
        onResponseData: () => undefined,
        onResponseEnd: () => {
          resolve(status === 200)
          void client.destroy()
        },
        onResponseError: (_controller, error) => reject(error),
      },
    )
  })
}

function bareTcp(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp({ host: '127.0.0.1', port }, () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', reject)
  })
}

function bareGrpc(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    session.on('error', reject)
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    let status: unknown
    let reply = Buffer.alloc(0)
    stream.on('trailers', (trailers) => (status = trailers['grpc-status']))
    stream.on('data', (chunk: Buffer) => (reply = Buffer.concat([reply, chunk])))
    stream.on('error', reject)
    stream.on('close', () => {
      session.destroy()
      resolve(status === '0' && reply.at(-1) === 1)
    })
    stream.end(Buffer.from([0, 0, 0, 0, 0]))
  })
}
