import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { UnitObject } from '../../src/api/sources.ts'
import { freePort } from '../support/free-port.ts'
import { fillDisk, makeRoom } from '../support/full-disk.ts'
import { isNightly } from '../support/nightly.ts'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { cutPower } from '../support/power-cut.ts'
import { shell } from '../support/podd-program.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'
import { seededRandom } from '../support/seeded-random.ts'
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
  /** The UIDs of the pods that came back, by their names. */
  const returned = new Map<string, string>()
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
      expect((await podd.cli('status')).stdout).toMatch(
        new RegExp(`revision \\d failed, and revision \\d counts again: pod default/${name}`, 'u'),
      )
      // A URL gave no pods before.
      expect(status.revisions.slice(-2).map(({ verdict }) => verdict)).toEqual(['Healthy', 'Failed'])
      // By the default backoff three crashes are within half a minute.
      expect(seconds).toBeLessThan(30 + 5 * slowness)
      returned.set(name, after.metadata.uid)
    },
  )

  it('is not tried again when podd is killed and started again', async () => {
    const podd = rig()
    await podd.restartDaemon('SIGKILL')
    // Each URL has been asked, and each file read.
    for (const name of returned.keys())
      await podd.until(`the status of ${name}`, async () =>
        (await podd.cli('status')).stdout.includes(`counts again: pod default/${name} `),
      )
    const pods = await Promise.all([...returned.keys()].map((name) => podd.untilReady(name)))
    expect(pods.map(({ metadata }) => [metadata.name, metadata.uid])).toEqual([...returned])
  })
})

describePodd('revisions of a held source', { config: { updates: { minReady: '1s', crashes: 1 } } }, (rig) => {
  it('are listed, also by a podd that is started while it is held', async () => {
    const podd = rig()
    podd.drop('held', shellPod('held', podd.shared, 'say good; stay'))
    await untilUnit(podd, '/held.yaml', 'Healthy')
    podd.drop('held', shellPod('held', podd.shared, 'say bad; exit 1'))
    await untilUnit(podd, '/held.yaml', 'RolledBack')
    await podd.cliOk('hold', 'file')
    podd.drop('held', shellPod('held', podd.shared, 'say other; stay'))
    const listed = /\/held\.yaml +RolledBack +1 +2 /u
    expect(await podd.cliOk('history')).toMatch(listed)
    await podd.restartDaemon('SIGKILL')
    await podd.untilReady('held')
    expect(await podd.cliOk('history')).toMatch(listed)
    await podd.cliOk('resume', 'file')
    await podd.untilLine('held', / other$/u)
    await untilUnit(podd, '/held.yaml', 'Healthy')
  })
})

describePodd('revisions', { config }, (rig) => {
  it.concurrent('of files that change at once go forward and back each by itself, and are listed', async () => {
    const podd = rig()
    const said = (word: string) => `say ${word}; stay`
    podd.drop('forward', shellPod('forward', podd.shared, said('one')))
    podd.drop('back', shellPod('back', podd.shared, said('one')))
    await untilUnit(podd, '/forward.yaml', 'Healthy')
    await untilUnit(podd, '/back.yaml', 'Healthy')
    podd.drop('forward', shellPod('forward', podd.shared, said('two')))
    podd.drop('back', shellPod('back', podd.shared, 'echo no such thing >&2; exit 3'))
    await untilUnit(podd, '/back.yaml', 'RolledBack')
    await podd.until('the update', () => wordsOf(podd.lines('forward')).includes('two'))
    const forward = await podd.until('a healthy update', async () => {
      const unit = await untilUnit(podd, '/forward.yaml', 'Healthy')
      return unit.status.active === 2 ? unit : undefined
    })
    expect(forward.status).toMatchObject({ offered: 2, lastHealthy: 2 })
    const history = await podd.cli('history', 'back')
    expect(history.stdout).toMatch(/^1 +Healthy +1 +\S+ +active +<none>$/mu)
    expect(history.stdout).toMatch(/^2 +Failed +1 +\S+ +offered +CrashLoopBackOff$/mu)
    expect(history.stderr).toMatch(
      /default\/back, container main: exit code 3 \(Error\)\n +\| no such thing/u,
    )
    await podd.untilEvent(
      'back',
      'RolledBack',
      /revision 2 of .*\/back\.yaml failed, and revision 1 counts again/u,
    )
    await podd.until('the first one', () => wordsOf(podd.lines('back')).length === 3)
    expect(wordsOf(podd.lines('back'))).toEqual(['one', 'end', 'one'])

    // A good one after the bad one; then back and forth by hand.
    podd.drop('back', shellPod('back', podd.shared, said('three')))
    await podd.untilLine('back', / three$/u)
    await podd.until(
      'revision 3',
      async () => (await untilUnit(podd, '/back.yaml', 'Healthy')).status.active === 3,
    )
    expect(await podd.notes()).not.toContain('back.yaml')
    expect(await podd.cliOk('rollback', 'back')).toMatch(/^revision 1 of .*\/back\.yaml counts until/u)
    await podd.until('the first one', () => wordsOf(podd.lines('back')).at(-1) === 'one')
    expect(await podd.notes()).toMatch(/revision 1 counts on request, and revision 3 is offered/u)
    expect(await podd.cliOk('resume', 'back')).toMatch(/^unit .*\/back\.yaml is followed again/u)
    await podd.until('the third one', () => wordsOf(podd.lines('back')).at(-1) === 'three')
  })

  it.concurrent('that fail by their ConfigMap are mended by it', async () => {
    const podd = rig()
    const settings = (level: string) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'mended-settings' },
      data: { LEVEL: level },
    })
    const pod = shellPod('mended', podd.shared, 'say $LEVEL; [ $LEVEL = bad ] && exit 1; stay', {
      metadata: { annotations: { 'podd.dev/restart-on-config-change': 'true' } },
      container: { envFrom: [{ configMapRef: { name: 'mended-settings' } }] },
    })
    podd.drop('mended', pod, settings('good'))
    await untilUnit(podd, '/mended.yaml', 'Healthy')
    podd.drop('mended', pod, settings('bad'))
    await untilUnit(podd, '/mended.yaml', 'RolledBack')
    await podd.untilReady('mended')
    await podd.until('the good one', () => wordsOf(podd.lines('mended')).at(-1) === 'good')
    podd.drop('mended', pod, settings('better'))
    await podd.untilLine('mended', / better$/u)
    const mended = await untilUnit(podd, '/mended.yaml', 'Healthy')
    expect(mended.status).toMatchObject({ active: 3, offered: 3 })
  })
})

/** Where podd is killed, in milliseconds after the bad version was given. */
const seed = Number(process.env['PODD_ROLLBACK_SEED'] ?? 7)
const kills = isNightly ? 20 : 5

describePodd('a rollback', { config: { updates: { minReady: '1s', crashes: 1 } } }, (rig) => {
  it(`is carried out although podd is killed at one of ${kills} moments (seed ${seed}), and what failed stays refused`, async () => {
    const podd = rig()
    const random = seededRandom(seed)
    const bad = shellPod('killed', podd.shared, 'say bad; exit 1')
    const good = (round: number): object => shellPod('killed', podd.shared, `say good ${round}; stay`)
    for (let round = 0; round < kills; round += 1) {
      podd.drop('killed', good(round))
      await podd.until(`round ${round}`, async () => {
        const { status } = await untilUnit(podd, '/killed.yaml', 'Healthy')
        return status.active === status.offered && wordsOf(podd.lines('killed')).at(-1) === `good ${round}`
      })
      const atMs = Math.floor(random() * 2500)
      podd.drop('killed', bad)
      await sleep(atMs)
      await podd.restartDaemon('SIGKILL')
      const { status } = await untilUnit(podd, '/killed.yaml', 'RolledBack')
      await podd.until(`round ${round} again, killed after ${atMs} ms`, async () => {
        const isGood = wordsOf(podd.lines('killed')).at(-1) === `good ${round}`
        return isGood && conditionOf(await podd.untilReady('killed'), 'podd.dev/UpToDate') === 'False'
      })
      expect(status.revisions.at(-1)?.verdict).toBe('Failed')
      const count = podd.lines('killed').length
      await podd.restartDaemon('SIGKILL')
      await podd.untilReady('killed')
      expect(podd.lines('killed')).toHaveLength(count)
    }
  }, 600_000)
})

/** The power cuts are at these moments too; after every fourth one comes another, once the rollback is there. */
const cuts = 20

describePodd(
  'a rollback that the power is cut in',
  { config: { updates: { minReady: '1s', crashes: 1 } }, rootDisk: { sizeMiB: 600, ext4: true } },
  (rig) => {
    const title = `is carried out after the boot, at each of ${cuts} moments (seed ${seed}), and what failed stays refused`
    it(title, { tags: ['nightly'], timeout: 1_800_000 }, async () => {
      const podd = rig()
      const random = seededRandom(seed)
      const bad = shellPod('cut', podd.shared, 'say bad; exit 1')
      const good = (round: number): object => shellPod('cut', podd.shared, `say good ${round}; stay`)
      const tries = (): number => wordsOf(podd.lines('cut')).filter((word) => word === 'bad').length
      const boot = async (): Promise<void> => {
        await cutPower(podd)
        await podd.startDaemon()
      }
      for (let round = 0; round < cuts; round += 1) {
        podd.drop('cut', good(round))
        await podd.until(`round ${round}`, async () => {
          const { status } = await untilUnit(podd, '/cut.yaml', 'Healthy')
          return status.active === status.offered && wordsOf(podd.lines('cut')).at(-1) === `good ${round}`
        })
        // The image alone is not podd's to make last.
        if (round === 0) execFileSync('sync', ['--file-system', podd.rootDir])
        const atMs = Math.floor(random() * 2500)
        podd.drop('cut', bad)
        await sleep(atMs)
        await boot()
        const { status } = await untilUnit(podd, '/cut.yaml', 'RolledBack')
        await podd.until(`round ${round} again, cut after ${atMs} ms`, async () => {
          const isGood = wordsOf(podd.lines('cut')).at(-1) === `good ${round}`
          return isGood && conditionOf(await podd.untilReady('cut'), 'podd.dev/UpToDate') === 'False'
        })
        expect(status.revisions.at(-1)?.verdict).toBe('Failed')
        if (round % 4 !== 3) continue
        const before = tries()
        await boot()
        await podd.untilReady('cut')
        expect((await untilUnit(podd, '/cut.yaml', 'RolledBack')).status.active).toBe(status.active)
        expect(tries()).toBe(before)
      }
    })
  },
)

describePodd(
  'a rollback on a full disk',
  { config: { updates: { minReady: '1s', crashes: 2 } }, rootDisk: { sizeMiB: 300, ext4: true } },
  (rig) => {
    afterAll(() => makeRoom(rig().rootDir))

    it('is carried out once there is room, also by a podd that was killed meanwhile, and recorded', async () => {
      const podd = rig()
      podd.drop('full', shellPod('full', podd.shared, 'say good; stay'))
      await untilUnit(podd, '/full.yaml', 'Healthy')
      podd.drop('full', shellPod('full', podd.shared, 'say bad; exit 1'))
      await podd.untilLine('full', / bad$/u)
      fillDisk(podd.rootDir)
      await untilUnit(podd, '/full.yaml', 'RolledBack')
      await podd.restartDaemon('SIGKILL')
      await podd.until('the runtime', async () => (await podd.status()).runtime.healthy)
      makeRoom(podd.rootDir)
      const roomMs = performance.now()
      await podd.until('the good version', async () => {
        const isGood = wordsOf(podd.lines('full')).at(-1) === 'good'
        return isGood && conditionOf(await podd.untilReady('full'), 'podd.dev/UpToDate') === 'False'
      })
      console.log(`${((performance.now() - roomMs) / 1000).toFixed(1)} s after there was room`)
      const { status } = await untilUnit(podd, '/full.yaml', 'RolledBack')
      expect(status).toMatchObject({ active: 1, offered: 2 })
      const count = podd.lines('full').length
      await podd.restartDaemon('SIGKILL')
      await podd.untilNote(/revision 2 failed, and revision 1 counts again/u)
      await podd.untilReady('full')
      expect(podd.lines('full')).toHaveLength(count)
    })
  },
)
