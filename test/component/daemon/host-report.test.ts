import { createServer } from 'node:http'
import type { IncomingHttpHeaders, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { HostReport } from '../../../src/api/host-report.ts'
import type { DaemonStatus } from '../../../src/api/routes.ts'
import { createShown } from '../../../src/control/serving/resource-store.ts'
import { HostReporter } from '../../../src/daemon/host-report.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { containerStatus, eventObject, podObject } from '../../support/pod-objects.ts'

interface Received {
  readonly headers: IncomingHttpHeaders
  readonly report: HostReport
  readonly text: string
}

let server: Server
let received: Received[] = []
let code = 204

beforeEach(async () => {
  received = []
  code = 204
  server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = gunzipSync(Buffer.concat(chunks)).toString()
      received.push({ headers: request.headers, report: JSON.parse(text), text })
      response.writeHead(code).end('thank you')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})

afterEach(() => {
  server.closeAllConnections()
  server.close()
})

const status: DaemonStatus = {
  version: '1.2.3',
  pid: 1,
  startedAt: '2026-01-01T00:00:00Z',
  runtime: {
    endpoint: 'embedded',
    healthy: true,
    name: 'containerd',
    version: '2.1.0',
    calls: { Version: 1 },
  },
  sources: [],
  problems: [],
  crashes: [],
  jobs: [],
}

/** A reporter whose job runs when it is woken. */
function rig(changes: { readonly status?: Partial<DaemonStatus> } = {}) {
  const clock = new ManualClock()
  const shown = createShown(0)
  const facts = { status: { ...status, ...changes.status } }
  const stop = new AbortController()
  const failures: unknown[] = []
  let running: Promise<unknown> = Promise.resolve()
  const { port } = server.address() as AddressInfo
  const reporter = new HostReporter(
    {
      url: `http://fleet:secret@127.0.0.1:${port}/report?key=hidden`,
      periodMs: 300_000,
      allowHttp: false,
      headers: { 'X-Site': ['berlin'] },
      headerFiles: {},
      caFile: undefined,
      certFile: undefined,
      keyFile: undefined,
    },
    {
      hostName: 'box',
      hostInfo: { bootId: 'boot-1', kernel: '6.1.0' },
      shown,
      status: () => facts.status,
      sources: () => [
        {
          apiVersion: 'podd.dev/v1',
          kind: 'Source',
          metadata: { name: 'http:fleet' },
          spec: { type: 'URL', place: 'https://fleet.example/pods' },
          status: {
            state: 'Following',
            mode: 'poll',
            ready: true,
            pods: 1,
            objects: 0,
            errors: 0,
            warnings: 0,
            lastGood: false,
          },
        },
      ],
      units: () => [],
      sight: () => ({ revision: 'abc', health: 'failed' }),
      wake: () => {
        running = reporter
          .job()
          .run(AbortSignal.timeout(10_000))
          .catch((error: unknown) => failures.push(error))
      },
      clock,
      env: {},
    },
  )
  return {
    clock,
    shown,
    facts,
    stop,
    reporter,
    failures,
    /** Lets time pass, and what is sent arrive. */
    pass: async (ms: number): Promise<void> => {
      await clock.advance(ms)
      await running
    },
  }
}

it('tells what the host is and runs, without what containers wrote', async () => {
  const { shown, reporter } = rig({
    status: {
      problems: [{ severity: 'error', place: { path: '/etc/pods/a.yaml' }, message: 'no image' }],
      pressure: { conditions: ['MemoryPressure'], signals: [] },
    },
  })
  const crashed = { exitCode: 3, reason: 'Error', message: 'password=secret' }
  shown.pods.put(
    'uid-web',
    podObject({
      metadata: { annotations: { 'podd.dev/source': 'http:fleet' } },
      status: {
        conditions: [{ type: 'Ready', status: 'False', reason: 'ContainersNotReady', message: 'no' }],
        containerStatuses: [
          containerStatus('main', {
            ready: false,
            restartCount: 4,
            state: { waiting: { reason: 'CrashLoopBackOff', message: 'secret' } },
            lastState: { terminated: crashed },
          }),
        ],
      },
    }),
  )
  shown.events.put(
    'e1',
    eventObject('e1', {
      type: 'Warning',
      reason: 'Unhealthy',
      message: 'said: secret',
      lastTimestamp: '2026-01-01T00:00:05Z',
    }),
  )
  shown.events.put('e2', eventObject('e2', { type: 'Warning', reason: 'BackOff', message: 'back-off' }))
  shown.events.put('e3', eventObject('e3'))
  await reporter.job().run(AbortSignal.timeout(10_000))
  const [{ headers, report, text } = {}] = received
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'content-encoding': 'gzip',
    'x-site': 'berlin',
    authorization: `Basic ${Buffer.from('fleet:secret').toString('base64')}`,
  })
  expect(report).toMatchObject({
    kind: 'HostReport',
    version: 1,
    node: 'box',
    host: { bootId: 'boot-1', podd: '1.2.3', runtime: { name: 'containerd', version: '2.1.0' } },
    health: 'failed',
    sources: [{ name: 'http:fleet', state: 'Following', revision: 'abc', health: 'failed' }],
    pods: [
      {
        namespace: 'default',
        name: 'web',
        source: 'http:fleet',
        ready: false,
        reason: 'ContainersNotReady',
        containers: [
          {
            name: 'main',
            restarts: 4,
            state: 'waiting',
            reason: 'CrashLoopBackOff',
            last: { reason: 'Error', exitCode: 3 },
          },
        ],
      },
    ],
    pressure: { conditions: ['MemoryPressure'] },
  })
  expect(report?.errors.map(({ about, reason, message }) => [about, reason, message])).toEqual([
    ['/etc/pods/a.yaml', 'BadDocument', 'no image'],
    ['Pod default/web', 'Unhealthy', ''],
    ['Pod default/web', 'BackOff', 'back-off'],
  ])
  expect(text).not.toContain('secret')
  expect(text).not.toContain('hidden')
})

it('is sent once for changes that come together, and not for what changes by itself', async () => {
  const { shown, facts, stop, reporter, pass } = rig()
  reporter.follow(stop.signal)
  shown.pods.put('uid-a', podObject({ name: 'a' }))
  shown.pods.put('uid-b', podObject({ name: 'b' }))
  await pass(1900)
  expect(received).toEqual([])
  await pass(200)
  expect(received.map(({ report }) => report.pods.map(({ name }) => name))).toEqual([['a', 'b']])
  const signals = [{ signal: 'memory.available', available: 5, capacity: 9 }]
  facts.status = { ...facts.status, pressure: { conditions: [], signals } }
  reporter.note()
  await pass(2000)
  facts.status = { ...facts.status, pressure: { conditions: [], signals: [] } }
  reporter.note()
  await pass(2000)
  expect(received).toHaveLength(2)
  stop.abort()
  shown.pods.put('uid-c', podObject({ name: 'c' }))
  await pass(10_000)
  expect(received).toHaveLength(2)
})

it('is sent again, and then the newest alone, where the server did not take it', async () => {
  const { shown, failures, reporter, pass } = rig()
  code = 401
  reporter.note()
  await pass(2000)
  expect(failures).toMatchObject([
    {
      code: 'REPORT_FAILED',
      message: 'the report cannot be sent: the server answered 401',
      hint: 'check the credentials in the URL or the headers',
    },
  ])
  shown.pods.put('uid-a', podObject({ name: 'a' }))
  await pass(14_000)
  shown.pods.put('uid-b', podObject({ name: 'b' }))
  await pass(1000)
  code = 204
  await pass(30_000)
  await pass(600_000)
  expect(received.map(({ report }) => report.pods.length)).toEqual([0, 2, 2])
})

it('leaves out pods that are ready where they are too many, and says how many', async () => {
  const { shown, reporter } = rig()
  for (let index = 0; index < 2000; index += 1)
    shown.pods.put(`uid-${index}`, podObject({ name: `p${index}` }))
  const bad = podObject({ name: 'z', status: { conditions: [{ type: 'Ready', status: 'False' }] } })
  shown.pods.put('uid-z', bad)
  await reporter.job().run(AbortSignal.timeout(10_000))
  const [{ report, text } = { text: '' }] = received
  expect(text.length).toBeLessThanOrEqual(256 * 1024)
  expect(report?.omittedPods).toBe(2001 - (report?.pods.length ?? 0))
  expect(report?.pods.map(({ name }) => name)).toContain('z')
})
