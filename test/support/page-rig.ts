import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'rolldown'
import { pageOptions } from '../../rolldown.config.ts'
import type { NodeObject } from '../../src/api/cluster-objects.ts'
import type { SourceObject } from '../../src/api/sources.ts'
import type { UsageHistoryReply, UsageSeries } from '../../src/api/usage.ts'
import { ApiRig } from './api-rig.ts'
import { containerStatus, eventObject, podObject, terminated } from './pod-objects.ts'

const gibi = 1024 ** 3

/** An API over TLS with the status page, of a host as somebody might have it. */
export class PageRig extends ApiRig {
  readonly token = 'a-token-of-the-test'
  port = 0

  get url(): string {
    return `https://127.0.0.1:${this.port}`
  }

  async listenAt(port: number): Promise<void> {
    this.port = port
    await this.listen({
      address: { host: '127.0.0.1', port },
      names: ['localhost', '127.0.0.1'],
      rootDir: this.directory,
      tokenFile: join(this.directory, 'tokens'),
      report: () => {},
    })
  }

  writeTokens(token: string): Promise<void> {
    return writeFile(join(this.directory, 'tokens'), `${token},ann,1,podd:view\n`, { mode: 0o600 })
  }

  /** Writes lines into the log of a pod's container. */
  async log(pod: string, lines: readonly string[], instance = 0): Promise<void> {
    const directory = join(this.podLogsDir, `default_${pod}_uid-${pod}`, 'main')
    await mkdir(directory, { recursive: true })
    const records = lines.map((line) => `${new Date().toISOString()} stdout F ${line}\n`)
    await appendFile(join(directory, `${instance}.log`), records.join(''))
  }

  /** Builds the page, and makes the objects that it shows. */
  async fill(): Promise<void> {
    await build(pageOptions(join(this.directory, 'page')))
    await this.writeTokens(this.token)
    const names = ['web-0', 'web-1', 'web-2', 'mqtt-broker', 'modbus-reader']
    for (const name of names) this.pods.put(podObject({ name }))
    this.pods.put(
      podObject({
        name: 'broken',
        status: {
          phase: 'Running',
          conditions: [
            { type: 'Initialized', status: 'True' },
            { type: 'Ready', status: 'False' },
          ],
          containerStatuses: [
            containerStatus('main', {
              ready: false,
              restartCount: 12,
              image: 'registry.example.com/plant/line-controller:2.14.1-with-a-long-tag',
              state: {
                waiting: {
                  reason: 'CrashLoopBackOff',
                  message: 'back-off 5m0s restarting failed container=main pod=broken_default(uid-broken)',
                },
              },
              lastState: terminated(1),
            }),
          ],
        },
      }),
    )
    this.pods.put(podObject({ name: 'dns', namespace: 'kube-system' }))
    this.nodes.put(node())
    const lastTimestamp = new Date(Date.now() - 90_000).toISOString()
    this.events.put(
      eventObject('back-off', {
        type: 'Warning',
        reason: 'BackOff',
        message: 'Back-off restarting failed container main in pod broken_default(uid-broken)',
        involvedObject: { kind: 'Pod', namespace: 'default', name: 'broken', uid: 'uid-broken' },
        count: 48,
        lastTimestamp,
      }),
    )
    this.events.put(eventObject('started', { lastTimestamp }))
    this.sources = [source('file', 'Directory', '/etc/pods'), failing()]
    this.status = {
      ...this.status,
      problems: [
        {
          severity: 'error',
          place: { path: '/etc/pods/press.yaml' },
          object: 'default/press',
          field: 'spec.containers[0].imag',
          message: 'unknown field',
          hint: 'Did you mean image?',
        },
      ],
    }
    const history = usage([...names, 'broken', 'dns'])
    this.page = { directory: join(this.directory, 'page'), usage: () => history }
    for (const pod of [...names, 'broken'])
      await this.log(
        pod,
        Array.from({ length: 20 }, (_, at) => `\u{1b}[31mline ${at + 1} of ${pod}\u{1b}[0m`),
        pod === 'broken' ? 12 : 0,
      )
  }
}

function usage(pods: readonly string[]): UsageHistoryReply {
  const untilMs = Date.now()
  const times = Array.from({ length: 120 }, (_, at) => untilMs - (119 - at) * 30_000)
  const series = (cpu: number, memory: number, missing = 0): UsageSeries => ({
    cpuMillis: times.map((_, at) =>
      at < missing ? null : Math.round(cpu * (2 + Math.sin(at / 9) + Math.sin(at * 1.7) / 3)),
    ),
    memoryBytes: times.map((_, at) => (at < missing ? null : Math.round(memory * (1 + at / 400)))),
  })
  return {
    periodSeconds: 30,
    spanSeconds: 3600,
    times,
    node: series(420, 2.1 * gibi),
    pods: pods.map((name, at) => {
      const { cpuMillis, memoryBytes } = series(8 + at * 15, (30 + at * 44) * 1024 ** 2, at * 12)
      return { uid: `uid-${name}`, cpuMillis, memoryBytes }
    }),
  }
}

function node(): NodeObject {
  const amounts = { cpu: '4', memory: '8130016Ki', pods: '110' }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'gateway-7', uid: 'uid-node', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {},
    status: {
      capacity: amounts,
      allocatable: amounts,
      conditions: [],
      addresses: [{ type: 'InternalIP', address: '192.0.2.7' }],
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
      nodeInfo: { osImage: 'Debian GNU/Linux 12 (bookworm)', kernelVersion: '6.1.0-21-amd64' },
      images: [],
    },
  }
}

function source(name: string, type: 'Directory' | 'URL', place: string): SourceObject {
  return {
    apiVersion: 'podd.dev/v1',
    kind: 'Source',
    metadata: { name },
    spec: { type, place },
    status: {
      state: 'Following',
      mode: 'watch',
      ready: true,
      pods: 7,
      objects: 2,
      errors: 1,
      warnings: 0,
      lastAnswerTime: new Date(Date.now() - 40_000).toISOString(),
      lastGood: true,
      message: 'unknown field imag',
    },
  }
}

function failing(): SourceObject {
  const found = source('http:plant', 'URL', 'https://manifests.plant.example.com/line-7/pods.yaml')
  return {
    ...found,
    status: {
      ...found.status,
      state: 'Failing',
      mode: 'poll',
      message: 'connect ECONNREFUSED 192.0.2.80:443',
    },
  }
}
