import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GarbageItem } from '../../../src/api/images.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import {
  ContainerdInventory,
  containerOrphans,
  taskOrphans,
  leaseOrphans,
  snapshotOrphans,
} from '../../../src/runtime/containerd/leaks.ts'
import { addressOrphans } from '../../../src/runtime/network/leaks.ts'
import { containerdPlaces } from '../../../src/runtime/containerd/process.ts'
import { orphanCollectionJob, Orphans, podOrphans } from '../../../src/control/node/orphans.ts'
import type { PodCgroups } from '../../../src/host/cgroups/layout.ts'
import { ContainerLogDirectories } from '../../../src/logs/container-log-directories.ts'
import type { NodeEvent } from '../../../src/pod/state/pod-event.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/**
 * A ctr whose containerd is a few files, a line for each container, task, snapshot and lease; it can't delete `hung`.
 * Containers of pods are called `pod-…`, all others are sandboxes.
 */
const ctrScript = `#!/bin/sh
cd "$(dirname "$0")"
shift 4
echo "$*" >>calls
case "$*" in
  'containers delete hung') exit 1 ;;
  'containers delete '*) sed -i "/^$3\\$/d" containers ;;
  'tasks delete --force '*) sed -i "/^$4 /d" tasks ;;
  'snapshots remove '*) sed -i "/^$3 /d" snapshots ;;
  'leases delete '*) sed -i "/^$3\\$/d" leases ;;
esac
`
const id = (letter: string): string => letter.repeat(64)

let directory = ''
let clock: ManualClock
let known: Set<string>
let pods: Set<string>
let makingSinceMs: number | undefined
let orphans: Orphans
let logs: ContainerLogDirectories

let inventory: ContainerdInventory
let sharesCgroups = false
/** The UIDs of pods that have a cgroup. */
let podCgroups: readonly string[] = []

const cgroupTree: PodCgroups = {
  ensureQosTree: async () => undefined,
  ensurePod: async () => undefined,
  async removePod(uid) {
    podCgroups = podCgroups.filter((each) => each !== uid)
    return []
  },
  listPods: () => podCgroups.map((uid) => ({ uid, qosClass: 'BestEffort' })),
  countOomKills: () => undefined,
  isRemoved: () => false,
  hasOomKills: () => false,
  hasProcesses: () => undefined,
  killProcesses: () => 0,
  removeQosTree: async () => [],
  parentOf: ({ uid }) => `/pod${uid}`,
}

function addressDirectory(): string {
  const places = containerdPlaces(join(directory, 'root'), join(directory, 'run'))
  const addresses = join(places.cniDataDir, places.networkName)
  mkdirSync(addresses, { recursive: true })
  return addresses
}

const lines = (file: string): readonly string[] =>
  readFileSync(join(directory, file), 'utf8').split('\n').filter(Boolean)

function keep(files: Readonly<Record<string, readonly string[]>>): void {
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(directory, name), content.map((line) => `${line}\n`).join(''))
}

function logsOf(owner: string): ContainerLogDirectories {
  const places = { podLogsDir: join(directory, 'logs'), containerLogsDir: join(directory, 'links') }
  return new ContainerLogDirectories({ ...places, removed: { keptMs: 60_000, owner, clock } })
}

async function collect(): Promise<readonly GarbageItem[]> {
  return (await orphans.collect(new AbortController().signal)).items
}

/** Two collections half a minute apart; what was removed in the second. */
async function collectTwice(): Promise<readonly string[]> {
  await collect()
  await clock.advance(30_000)
  return (await collect()).filter(({ outcome }) => outcome === 'removed').map((item) => item.name)
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-orphans-'))
  writeFileSync(join(directory, 'ctr'), ctrScript, { mode: 0o755 })
  keep({ containers: ['mine'], tasks: ['mine 7 RUNNING'], snapshots: [], leases: [] })
  clock = new ManualClock()
  known = new Set(['mine'])
  pods = new Set()
  makingSinceMs = undefined
  podCgroups = []
  inventory = new ContainerdInventory(
    containerdPlaces(join(directory, 'root'), join(directory, 'run')),
    () => ({ ctrPath: join(directory, 'ctr'), snapshotter: undefined, podCidrs: [] }),
    { list: async () => new Set(known), listSandboxes: async () => new Set(known) },
    {
      containers: async () =>
        lines('containers').map((each) => ({
          id: each,
          kind: each.startsWith('pod-') ? 'container' : 'sandbox',
        })),
      tasks: async () =>
        lines('tasks').map((line) => {
          const [task = '', , status = ''] = line.split(' ')
          return { id: task, status }
        }),
      snapshots: async () => lines('snapshots').map((line) => line.split(' ')[0] ?? ''),
      leases: async () => lines('leases'),
    },
  )
  logs = logsOf('this one')
  orphans = new Orphans({
    collectors: [
      taskOrphans(inventory),
      containerOrphans(inventory),
      snapshotOrphans(inventory),
      leaseOrphans(inventory),
      addressOrphans(inventory),
      ...podOrphans({
        rootDir: join(directory, 'root'),
        logs,
        cgroups: () => ({
          tree: cgroupTree,
          system: { version: 2, hierarchies: [] },
          isShared: sharesCgroups,
        }),
        isKnown: (uid) => pods.has(uid),
      }),
    ],
    makingSinceMs: () => makingSinceMs,
    clock,
    logger: silentLogger,
  })
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

describe('orphans in containerd', () => {
  it('removes a sandbox that two looks have found, its task, and then its address', async () => {
    const addresses = addressDirectory()
    writeFileSync(join(addresses, '10.86.0.2'), 'leaked\neth0')
    writeFileSync(join(addresses, '10.86.0.3'), 'mine\neth0')
    keep({ containers: ['mine', 'leaked'], tasks: ['mine 7 RUNNING', 'leaked 8 RUNNING'] })
    expect(await collectTwice()).toEqual(['leaked'])
    expect(lines('containers')).toEqual(['mine'])
    expect(lines('tasks')).toEqual(['mine 7 RUNNING'])
    expect(await collectTwice()).toEqual(['10.86.0.2 leaked'])
    expect(existsSync(join(addresses, '10.86.0.3'))).toBe(true)
  })

  it('leaves an address alone that a sandbox has which came after the look began', async () => {
    const addresses = addressDirectory()
    writeFileSync(join(addresses, '10.86.0.2'), 'a\neth0')
    await collect()
    await clock.advance(30_000)
    // The address is given again, to a sandbox that nothing lists yet.
    writeFileSync(join(addresses, '10.86.0.2'), 'b\neth0')
    expect(await collect()).toMatchObject([{ name: '10.86.0.2 b', outcome: 'waiting' }])
    expect(existsSync(join(addresses, '10.86.0.2'))).toBe(true)
  })

  it.each([
    ['another sandbox has by then', (file: string) => writeFileSync(file, 'b\neth0')],
    ['CRI lists the sandbox of by then', () => void known.add('a')],
    ['containerd has the sandbox of by then', () => keep({ containers: ['mine', 'a'] })],
  ])('leaves an address alone that %s', async (_case, change) => {
    const collector = addressOrphans(inventory)
    const file = join(addressDirectory(), '10.86.0.2')
    writeFileSync(file, 'a\neth0')
    const [orphan] = await collector.list({ signal: new AbortController().signal })
    change(file)
    expect(orphan === undefined ? true : await collector.remove(orphan)).toBe(false)
    expect(existsSync(file)).toBe(true)
  })

  it('asks again for what came after containerd was asked for all', async () => {
    const look = { signal: new AbortController().signal }
    await inventory.read(look)
    writeFileSync(join(addressDirectory(), '10.86.0.2'), 'new\neth0')
    keep({ containers: ['mine', id('e')], snapshots: [`${id('e')} x Active`], leases: [id('f')] })
    known.add('new').add(id('f'))
    const collectors = [addressOrphans(inventory), snapshotOrphans(inventory), leaseOrphans(inventory)]
    for (const collector of collectors) expect(await collector.list(look)).toEqual([])
  })

  it('removes nothing before it has been an orphan for half a minute', async () => {
    keep({ containers: ['mine', 'leaked'] })
    await collect()
    await clock.advance(29_000)
    expect(await collect()).toMatchObject([{ name: 'leaked', outcome: 'waiting' }])
    expect(lines('containers')).toEqual(['mine', 'leaked'])
  })

  it('removes a container that never ran, and leaves one that runs to others', async () => {
    keep({
      containers: ['mine', 'pod-known', 'pod-failed', 'pod-runs'],
      tasks: ['mine 7 RUNNING', 'pod-runs 8 RUNNING'],
    })
    known.add('pod-known')
    expect(await collectTwice()).toEqual(['pod-failed'])
  })

  it('leaves alone what may be in creation, for as long as it is', async () => {
    keep({ containers: ['mine', 'slow', 'leaked'] })
    makingSinceMs = clock.monotonicMs()
    expect(await collectTwice()).toEqual([])
    expect(await collectTwice()).toEqual([])
    makingSinceMs = undefined
    known.add('slow')
    expect(await collect()).toMatchObject([{ name: 'leaked', outcome: 'removed' }])
  })

  it('is not kept from it by a call that was sent later', async () => {
    keep({ containers: ['mine', 'leaked'] })
    await collect()
    makingSinceMs = clock.monotonicMs() + 1
    await clock.advance(30_000)
    expect(await collect()).toMatchObject([{ name: 'leaked', outcome: 'removed' }])
  })

  it('removes a task that was created and never started', async () => {
    keep({ tasks: ['mine 7 CREATED'] })
    await collect()
    await clock.advance(10_000)
    expect(await collect()).toMatchObject([{ kind: 'task', name: 'mine', outcome: 'removed' }])
    expect(lines('tasks')).toEqual([])
  })

  it('leaves a sandbox alone that CRI lists in the end', async () => {
    keep({ containers: ['mine', 'late'] })
    await collect()
    known.add('late')
    expect(await collectTwice()).toEqual([])
  })

  it('removes snapshots and leases of containers and sandboxes that do not exist', async () => {
    known.add(id('b'))
    keep({
      containers: ['mine', id('b')],
      tasks: ['mine 7 RUNNING', `${id('b')} 9 RUNNING`],
      snapshots: [`${id('a')} x Active`, `${id('b')} x Active`, 'sha256:aa  Committed'],
      leases: [id('c'), id('b'), '1234-random'],
    })
    expect(await collectTwice()).toEqual([id('a'), id('c')])
    expect(lines('snapshots')).toEqual([`${id('b')} x Active`, 'sha256:aa  Committed'])
    expect(lines('leases')).toEqual([id('b'), '1234-random'])
  })

  it('goes on where one cannot be removed, or a kind cannot be listed', async () => {
    keep({ containers: ['mine', 'hung', 'leaked'] })
    await collect()
    await clock.advance(30_000)
    const { items, failures } = await orphans.collect(new AbortController().signal)
    expect(items).toMatchObject([
      { name: 'hung', outcome: 'failed' },
      { name: 'leaked', outcome: 'removed' },
    ])
    expect(failures).toHaveLength(1)
    rmSync(join(directory, 'ctr'))
    expect((await orphans.collect(new AbortController().signal)).failures).not.toEqual([])
  })
})

describe('orphans of pods', () => {
  const ref = (uid: string) => ({ namespace: 'default', name: uid, uid })

  it('removes the directory, the logs and the links of a pod without a record', async () => {
    for (const uid of ['lost', 'live']) {
      mkdirSync(join(directory, 'root/pods', uid), { recursive: true })
      writeFileSync(join(directory, 'root/pods', uid, 'data'), 'x'.repeat(5000))
      await logs.prepare(ref(uid), 'main')
      writeFileSync(join(logs.directory(ref(uid)), 'main/0.log'), '')
      await logs.link(ref(uid), { name: 'main', id: uid, restartCount: 0 })
    }
    pods.add('live')
    const items = await collect()
    expect(items.map(({ kind, outcome }) => `${kind} ${outcome}`)).toEqual([
      'volumes removed',
      'logs removed',
    ])
    expect(items[0]?.sizeBytes).toBeGreaterThan(4095)
    expect(existsSync(join(directory, 'root/pods/lost'))).toBe(false)
    expect(existsSync(logs.directory(ref('lost')))).toBe(false)
    expect(await collectTwice()).toEqual([join(directory, 'links/lost_default_main-lost.log')])
    expect(existsSync(join(directory, 'root/pods/live'))).toBe(true)
    expect(existsSync(logs.directory(ref('live')))).toBe(true)
  })

  it('leaves the logs of a removed pod alone for as long as they are kept', async () => {
    await logs.prepare(ref('gone'), 'main')
    await logs.removeAll(ref('gone'))
    expect(await collectTwice()).toEqual([])
    expect(existsSync(logs.directory(ref('gone')))).toBe(true)
  })

  it('removes the logs of a pod whose directory was marked late', async () => {
    mkdirSync(join(logs.directory(ref('crashed')), 'main'), { recursive: true })
    mkdirSync(logs.directory(ref('torn')), { recursive: true })
    writeFileSync(join(logs.directory(ref('torn')), '.podd-owner'), '')
    await logs.prepare(ref('crashed'), 'main')
    await logs.prepare(ref('torn'), 'main')
    await logsOf('this one').link(ref('adopted'), { name: 'main', id: 'id-1', restartCount: 0 })
    mkdirSync(join(logs.directory(ref('adopted')), 'main'), { recursive: true })
    await logsOf('this one').link(ref('adopted'), { name: 'main', id: 'id-1', restartCount: 0 })
    const gone = (await collect()).map(({ name }) => name)
    const expected = ['adopted', 'crashed', 'torn'].map((uid) => logs.directory(ref(uid)))
    expect(gone.toSorted()).toEqual(expected)
  })

  it('leaves alone logs that another podd or a kubelet has made', async () => {
    await logsOf('another one').prepare(ref('theirs'), 'main')
    mkdirSync(join(logs.directory(ref('unmarked')), 'main'), { recursive: true })
    mkdirSync(join(directory, 'links'), { recursive: true })
    symlinkSync(join(logs.directory(ref('theirs')), 'main/0.log'), join(directory, 'links/theirs.log'))
    symlinkSync('/elsewhere/gone/0.log', join(directory, 'links/elsewhere.log'))
    expect(await collectTwice()).toEqual([])
  })
})

describe('orphaned cgroups', () => {
  const ref = (uid: string) => ({ namespace: 'default', name: uid, uid })

  it.each([
    [true, ['directory', 'known', 'logs']],
    [false, ['directory', 'known', 'logs', 'untraced']],
  ])('where others may have theirs (%s) are %j', async (isShared, expected) => {
    sharesCgroups = isShared
    podCgroups = ['directory', 'kubelets', 'known', 'live', 'logs', 'untraced']
    mkdirSync(join(directory, 'root/pods/directory'), { recursive: true })
    await logs.prepare(ref('logs'), 'main')
    await logsOf('another one').prepare(ref('kubelets'), 'main')
    pods = new Set(['known', 'live'])
    await collect()
    pods.delete('known')
    await collect()
    await clock.advance(30_000)
    const gone = (await collect()).filter(({ kind }) => kind === 'cgroup')
    expect(gone.map(({ name }) => name)).toEqual(expected)
    expect(podCgroups).toEqual(
      ['directory', 'kubelets', 'known', 'live', 'logs', 'untraced'].filter((uid) => !expected.includes(uid)),
    )
  })
})

describe('the job that collects them', () => {
  it('looks every half minute until nothing is left, then after a disturbance or ten minutes', async () => {
    let looks = 0
    let disturbances = 0
    const events: NodeEvent[] = []
    const job = orphanCollectionJob({
      orphans: {
        collect: async (signal) => {
          looks += 1
          return orphans.collect(signal)
        },
      },
      isReady: () => true,
      disturbances: () => disturbances,
      events: { recordNode: (event) => void events.push(event) },
      clock,
    })
    const run = async (forMs: number): Promise<number> => {
      const before = looks
      for (let ms = 0; ms < forMs; ms += job.periodMs) {
        await job.run(new AbortController().signal)
        await clock.advance(job.periodMs)
      }
      return looks - before
    }
    expect(await run(300_000)).toBe(3)
    disturbances += 1
    keep({ containers: ['mine', 'leaked'] })
    expect(await run(300_000)).toBe(4)
    expect(events).toMatchObject([{ type: 'Normal', reason: 'OrphansRemoved' }])
    expect(events[0]?.message).toContain('runtime-container leaked')
    expect(await run(600_000)).toBe(1)
  })
})
