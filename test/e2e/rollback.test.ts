import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { UnitObject } from '../../src/api/sources.ts'
import { freePort } from '../support/free-port.ts'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shell } from '../support/podd-program.ts'
import { slowness } from '../support/slowness.ts'

/** What each URL gives. */
const served = new Map<string, string>()
let server: Server
const port = await freePort()

beforeAll(async () => {
  server = createServer((request, response) => {
    response.end(served.get(request.url ?? '') ?? 'apiVersion: v1\nkind: List\nitems: []\n')
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const typos = {
  program: { command: ['httpdd', '-f', '-p', '8080', '-h', '/etc'] },
  command: { command: ['httpd', '-f', '-p', '8080', '-h', '/missing'] },
  readiness: { readinessProbe: { httpGet: { path: '/nope', port: 8080 }, periodSeconds: 1 } },
} as const
type Typo = keyof typeof typos

const progressDeadlineSeconds = 15
const config = {
  updates: { minReady: '2s', progressDeadline: `${progressDeadlineSeconds}s` },
  sources: Object.keys(typos).map((name) => ({
    name,
    url: `http://127.0.0.1:${port}/${name}`,
    checkFrequency: '500ms',
    push: 'Off',
  })),
  podSecurity: { url: { level: 'privileged' } },
}

/** A web server on a port of the host, which is Ready once it answers. */
function webPod(name: string, hostPort: number, change: object = {}, metadata: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'main',
          image: shell,
          command: ['httpd', '-f', '-p', '8080', '-h', '/etc'],
          ports: [{ containerPort: 8080, hostPort }],
          readinessProbe: { httpGet: { path: '/passwd', port: 8080 }, periodSeconds: 1 },
          ...change,
        },
      ],
    },
  }
}

async function answers(address: string): Promise<boolean> {
  try {
    const response = await fetch(`http://${address}/passwd`, { signal: AbortSignal.timeout(500) })
    return (await response.text()).startsWith('root:')
  } catch {
    return false
  }
}

/** Asks a service again and again, and says for how long it did not answer. */
class Customer {
  readonly #address: string
  readonly #stop = new AbortController()
  readonly #asking: Promise<void>
  longestSeconds = 0

  constructor(address: string) {
    this.#address = address
    this.#asking = this.#ask()
  }

  async #ask(): Promise<void> {
    let answeredMs = performance.now()
    while (!this.#stop.signal.aborted) {
      const isThere = await answers(this.#address)
      this.longestSeconds = Math.max(this.longestSeconds, (performance.now() - answeredMs) / 1000)
      if (isThere) answeredMs = performance.now()
      await sleep(50)
    }
  }

  async stop(): Promise<number> {
    this.#stop.abort()
    await this.#asking
    return this.longestSeconds
  }
}

/** A unit of this name, once it is in this state. */
function untilUnit(podd: PoddRig, name: string, state: UnitObject['status']['state']): Promise<UnitObject> {
  return podd.until(`${name} to be ${state}`, async () => {
    const units = await podd.get<readonly UnitObject[]>('/podd/v1/units')
    return units.find(({ metadata, status }) => metadata.name.endsWith(name) && status.state === state)
  })
}

describePodd('a bad update that starts', { config }, (rig) => {
  const addressOf = async (name: string, hostPort: number): Promise<string> =>
    `${(await rig().untilReady(name)).status.hostIP}:${hostPort}`

  it.concurrent.each([
    ['program', 'file'],
    ['command', 'file'],
    ['readiness', 'file'],
    ['program', 'url'],
    ['command', 'url'],
    ['readiness', 'url'],
  ] as const)(
    'by a mistyped %s, from a %s, is taken back, and the service answers again',
    async (typo: Typo, way) => {
      const podd = rig()
      const name = `${typo}-${way}`
      const hostPort = await freePort()
      const give = (pod: object): void => {
        if (way === 'file') podd.drop(name, pod)
        else served.set(`/${typo}`, JSON.stringify(pod))
      }
      give(webPod(name, hostPort))
      const address = await addressOf(name, hostPort)
      await podd.until('the first answer', () => answers(address))
      const unit = way === 'file' ? `${name}.yaml` : `http:${typo}`
      await untilUnit(podd, unit, 'Healthy')
      const before = (await podd.untilReady(name)).metadata.uid
      const customer = new Customer(address)
      give(webPod(name, hostPort, typos[typo]))
      await podd.untilPod(name, 'the bad version', ({ metadata }) => metadata.uid !== before)
      const { status } = await untilUnit(podd, unit, 'RolledBack')
      const after = await podd.untilPod(
        name,
        'the good version',
        (pod) => conditionOf(pod, 'podd.dev/UpToDate') === 'False' && conditionOf(pod, 'Ready') === 'True',
      )
      await podd.until('an answer', () => answers(address))
      const seconds = await customer.stop()
      console.log(`${name}: ${seconds.toFixed(1)} s without an answer`)
      expect(containerOf(after, 'main').restartCount).toBe(0)
      expect(await podd.notes()).toMatch(
        new RegExp(`revision \\d failed, and revision \\d counts again: pod default/${name}`, 'u'),
      )
      // A URL gave no pods before.
      expect(status.revisions.slice(-2).map(({ verdict }) => verdict)).toEqual(['Healthy', 'Failed'])
      // Three crashes are at once, after 10 s and after 30 s, within which the deadline for readiness is too.
      expect(seconds).toBeLessThan(30 + 5 * slowness)
      // It stays so.
      const { uid } = after.metadata
      await podd.restartDaemon()
      await sleep(1500)
      expect((await podd.untilReady(name)).metadata.uid).toBe(uid)
    },
  )
})
