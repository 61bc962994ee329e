import { readFileSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import type { ProbeReportObject } from '../../src/api/usage.ts'
import type { PodRecord } from '../../src/pod/state/pod-record.ts'
import { isNightly } from '../support/nightly.ts'
import { podIdentity } from '../support/pod-identity.ts'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { podOf, saidAt, shellContainer, shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

const config = { crashLoopBackOff: { maxContainerRestartPeriod: '300s' } }

/** Files for all that a restart of podd must leave alone; gives the pods as they are then. */
async function startSeveral(podd: PoddRig): Promise<Map<string, PodObject>> {
  const sidecar = { restartPolicy: 'Always' }
  podd.drop('plain', shellPod('plain', podd.shared, 'say start; stay'))
  podd.drop(
    'rich',
    podOf('rich', podd.shared, [shellContainer('main', 'rich', 'say main; stay')], {
      spec: {
        initContainers: [
          shellContainer('setup', 'rich', 'say setup'),
          shellContainer('proxy', 'rich', 'say proxy; stay', sidecar),
        ],
      },
    }),
  )
  const readinessProbe = { exec: { command: ['true'] }, periodSeconds: 1, timeoutSeconds: 10 }
  podd.drop('probed', shellPod('probed', podd.shared, 'say start; stay', { container: { readinessProbe } }))
  // Restarted once, for free; then it stays.
  podd.drop(
    'counted',
    shellPod('counted', podd.shared, 'say start; [ $(wc -l </shared/counted) -ge 2 ] && stay; exit 1'),
  )
  for (const name of ['plain', 'rich', 'probed', 'counted']) await podd.untilReady(name)
  const counted = await podd.untilPod(
    'counted',
    'its restart',
    (pod) => containerOf(pod, 'main').restartCount === 1 && conditionOf(pod, 'Ready') === 'True',
  )
  expect(containerOf(counted, 'main').lastState.terminated?.exitCode).toBe(1)
  const pods = await podd.pods()
  return new Map(pods.map((pod) => [pod.metadata.name, pod]))
}

async function expectUntouched(podd: PoddRig, before: ReadonlyMap<string, PodObject>): Promise<void> {
  // A pod that is dropped now shows that podd has taken everything up.
  podd.drop('marker', shellPod('marker', podd.shared, 'say start; stay'))
  await podd.untilReady('marker')
  podd.removeManifest('marker')
  await podd.untilGone('marker')
  rmSync(join(podd.shared, 'marker'))
  for (const [name, pod] of before) {
    const now = await podd.untilReady(name)
    expect(podIdentity(now)).toEqual(podIdentity(pod))
  }
  expect(await podd.untilWords('plain', 1)).toEqual(['start'])
  expect(await podd.untilWords('rich', 3)).toEqual(['setup', 'proxy', 'main'])
  expect(await podd.untilWords('probed', 1)).toEqual(['start'])
  expect(await podd.untilWords('counted', 2)).toEqual(['start', 'start'])
}

/** How podd ends in the middle of an ending; the component tests hold it to both. */
const breakingSignals = isNightly ? (['SIGTERM', 'SIGKILL'] as const) : (['SIGKILL'] as const)

describePodd('podd is restarted', { config }, (rig) => {
  let before = new Map<string, PodObject>()

  beforeEach(() => rig().ensureDaemon())

  // id: restarts-nothing-forgets-nothing
  it('restarts nothing and forgets nothing after kill -9', async () => {
    const podd = rig()
    before = await startSeveral(podd)
    expect([...before.keys()].toSorted()).toEqual(['counted', 'plain', 'probed', 'rich'])
    // Events are written together, every two seconds.
    await podd.until('its events on disk', () =>
      readFileSync(join(podd.rootDir, 'events.json'), 'utf8').includes('"counted"'),
    )
    await podd.restartDaemon('SIGKILL')
    await expectUntouched(podd, before)
  })

  it('leaves the pods running on SIGTERM, and takes them up again', async () => {
    const podd = rig()
    expect(await podd.stopDaemon('SIGTERM')).toBe(0)
    for (const pod of before.values())
      for (const { containerID = '' } of pod.status.containerStatuses ?? [])
        expect(podd.pidOf(containerID), `process of ${pod.metadata.name}`).toBeGreaterThan(0)
    podd.launch()
    const first = await podd.until('the first answer', () => podd.pods())
    expect(first.map(({ metadata }) => metadata.name)).toEqual([...before.keys()].toSorted())
    for (const pod of first) expect(conditionOf(pod, 'Ready')).toBe('True')
    await podd.until('the runtime', async () => (await podd.status()).runtime.healthy)
    await expectUntouched(podd, before)
    const events = await podd.events('counted')
    expect(events.map(({ reason }) => reason)).toContain('Started')
  })

  it('links the logs that the podd before did not come to, and unlinks those of containers that are gone', async () => {
    const podd = rig()
    const links = () => readdirSync(podd.linksDir).toSorted()
    const linked = links()
    const ofPlain = linked.filter((name) => name.startsWith('plain_'))
    expect(ofPlain).toHaveLength(1)
    await podd.stopDaemon('SIGKILL')
    const path = join(podd.linksDir, ofPlain[0] ?? '')
    const target = readlinkSync(path)
    rmSync(path)
    symlinkSync(target, join(podd.linksDir, `plain_default_main-${'0'.repeat(64)}.log`))
    await podd.startDaemon()
    await podd.untilReady('plain')
    await podd.until('the links', () => links().join() === linked.join())
    expect(readlinkSync(path)).toBe(target)
  })

  // id: takes-up-pods-records
  it('takes up pods whose records are lost, by their manifests', async () => {
    const podd = rig()
    await podd.stopDaemon('SIGKILL')
    const records = join(podd.rootDir, 'records')
    for (const name of readdirSync(records)) rmSync(join(records, name))
    await podd.startDaemon()
    await podd.until('the pods', async () => (await podd.pods()).length === before.size)
    for (const [name, pod] of before) {
      const now = await podd.untilReady(name)
      expect(now.metadata.uid).toBe(pod.metadata.uid)
      expect(
        now.status.containerStatuses?.map(({ containerID, restartCount }) => [containerID, restartCount]),
      ).toEqual(
        pod.status.containerStatuses?.map(({ containerID, restartCount }) => [containerID, restartCount]),
      )
    }
    expect(await podd.untilWords('plain', 1)).toEqual(['start'])
    expect(await podd.untilWords('counted', 2)).toEqual(['start', 'start'])
    expect(readdirSync(records).filter((name) => !name.startsWith('.'))).toHaveLength(before.size)
  })

  it('puts a record aside that it cannot read, and takes the pod up all the same', async () => {
    const podd = rig()
    const uid = before.get('plain')?.metadata.uid ?? ''
    await podd.stopDaemon('SIGKILL')
    writeFileSync(join(podd.rootDir, 'records', `${uid}.json`), '{"version": 1, "uid": "half')
    await podd.startDaemon()
    const pod = await podd.untilReady('plain')
    expect(pod.metadata.uid).toBe(uid)
    expect(await podd.untilWords('plain', 1)).toEqual(['start'])
    expect(readFileSync(join(podd.directory, 'podd.log'), 'utf8')).toContain('cannot read a state file')
    rmSync(join(podd.rootDir, 'records', `${uid}.json.unreadable`))
  })

  it('neither ends nor restarts pods whose records are of version 1, of a newer version, or corrupt', async () => {
    const podd = rig()
    const names = ['first', 'newer', 'corrupt']
    for (const name of names) podd.drop(name, shellPod(name, podd.shared, 'say start; stay'))
    const pods = await Promise.all(names.map((name) => podd.untilReady(name)))
    const [first = '', newer = '', corrupt = ''] = pods.map(({ metadata }) => metadata.uid)
    const ids = (): string[] => [first, newer, corrupt].flatMap((uid) => podd.containerIds(uid))
    const running = ids()
    const file = (uid: string): string => join(podd.rootDir, 'records', `${uid}.json`)
    const recordOf = (uid: string): PodRecord => JSON.parse(readFileSync(file(uid), 'utf8'))
    await podd.stopDaemon('SIGKILL')
    // What the first podd wrote of a pod that runs.
    const { uid, namespace, name, source, path, manifest, acceptedAtMs, startedAtMs } = recordOf(first)
    writeFileSync(
      file(first),
      JSON.stringify({
        version: 1,
        uid,
        namespace,
        name,
        source,
        path,
        manifest,
        acceptedAtMs,
        startedAtMs,
        conditions: {},
        containers: {},
      }),
    )
    const fromNewer = JSON.stringify({ ...recordOf(newer), version: 1000, manifest: ['otherwise'] })
    writeFileSync(file(newer), fromNewer)
    writeFileSync(file(corrupt), '{"version": 1, "uid": "half')
    podd.removeManifest('newer')
    podd.removeManifest('corrupt')
    // It is left alone on the second start, too.
    for (let start = 0; start < 2; start += 1) {
      await podd.startDaemon()
      expect((await podd.untilReady('first')).metadata.uid).toBe(first)
      const { problems } = await podd.status()
      const leftAlone = problems.filter(({ message }) => message.includes('is left alone'))
      expect(new Set(leftAlone.map(({ object }) => object))).toEqual(
        new Set(['default/newer', 'default/corrupt']),
      )
      expect(ids()).toEqual(running)
      await podd.stopDaemon('SIGKILL')
    }
    expect(readFileSync(`${file(newer)}.unreadable`, 'utf8')).toBe(fromNewer)
    for (const each of names) expect(await podd.untilWords(each, 1)).toEqual(['start'])
    // Without its record it is an orphan.
    for (const each of [newer, corrupt]) rmSync(`${file(each)}.unreadable`)
    podd.removeManifest('first')
    await podd.startDaemon()
    await podd.until('their end', () => ids().length === 0)
  })

  // id: ends-nobody-wants-any
  it('ends what nobody wants any more, with its preStop hook, although its record is lost', async () => {
    const podd = rig()
    const exec = { command: ['sh', '-c', 'read t _ </proc/uptime; echo "$t hook" >>/shared/orphan'] }
    podd.drop(
      'orphan',
      shellPod('orphan', podd.shared, 'say start; stay', {
        container: { lifecycle: { preStop: { exec } } },
        // It counts towards the hook, too.
        spec: { terminationGracePeriodSeconds: 20 },
      }),
    )
    const { uid } = (await podd.untilReady('orphan')).metadata
    await podd.stopDaemon('SIGKILL')
    rmSync(join(podd.rootDir, 'records', `${uid}.json`))
    podd.removeManifest('orphan')
    await podd.startDaemon()
    await podd.untilLine('orphan', / end$/u)
    await podd.until('its end in the runtime', () => podd.containerIds(uid).length === 0)
    await podd.untilGone('orphan')
    expect(await podd.untilWords('orphan', 3)).toEqual(['start', 'hook', 'end'])
    expect(await podd.untilWords('plain', 1)).toEqual(['start'])
  })

  // id: ends-pod-file-went
  it('ends a pod whose file went while podd was not there', async () => {
    const podd = rig()
    await podd.stopDaemon('SIGTERM')
    podd.removeManifest('probed')
    before.delete('probed')
    await podd.startDaemon()
    expect(wordsOf(await podd.untilLine('probed', / end$/u))).toEqual(['start', 'end'])
    await podd.untilGone('probed')
  })

  it('notices a container that died while podd was not there', async () => {
    const podd = rig()
    const pod = await podd.untilReady('plain')
    const pid = podd.pidOf(containerOf(pod, 'main').containerID ?? '')
    await podd.stopDaemon('SIGKILL')
    process.kill(pid, 'SIGKILL')
    await podd.startDaemon()
    const after = await podd.untilPod(
      'plain',
      'its restart',
      (now) => containerOf(now, 'main').restartCount === 1 && conditionOf(now, 'Ready') === 'True',
    )
    expect(after.metadata.uid).toBe(pod.metadata.uid)
    expect(containerOf(after, 'main').lastState.terminated?.exitCode).toBe(137)
  })

  it('asks no container again whether it has started up, also in a pod that is not ready', async () => {
    const podd = rig()
    const ask = {
      exec: { command: ['sh', '-c', 'echo 0 asked >>/shared/half-asked'] },
      periodSeconds: 1,
      timeoutSeconds: 10,
    }
    const readinessProbe = { exec: { command: ['false'] }, periodSeconds: 1, timeoutSeconds: 10 }
    const container = { startupProbe: ask, readinessProbe }
    podd.drop('half', shellPod('half', podd.shared, 'say start; stay', { container }))
    const pod = await podd.untilPod('half', 'its start', (now) => containerOf(now, 'main').started === true)
    const record = join(podd.rootDir, 'records', `${pod.metadata.uid}.json`)
    await podd.until('its record', () => readFileSync(record, 'utf8').includes('"startedUp"'))
    await podd.restartDaemon('SIGKILL')
    const reports = () =>
      podd.get<readonly ProbeReportObject[]>('/podd/v1/namespaces/default/pods/half/probes')
    await podd.until('its readiness probe', async () =>
      (await reports()).some(({ probe, counts }) => probe === 'readiness' && counts.failure > 0),
    )
    expect(await podd.findPod('half')).toMatchObject({
      status: { containerStatuses: [{ name: 'main', started: true, ready: false, restartCount: 0 }] },
    })
    expect(await podd.untilWords('half-asked', 1)).toEqual(['asked'])
    podd.removeManifest('half')
    await podd.untilGone('half')
  })

  it.each(breakingSignals)(
    // id: goes-on-ending-s
    'goes on with an ending that %s broke off, by its deadline, and runs no preStop twice',
    async (signal) => {
      const podd = rig()
      const name = `ending-${signal.toLowerCase()}`
      const exec = { command: ['sh', '-c', `read t _ </proc/uptime; echo "$t hook" >>/shared/${name}`] }
      const script = `trap 'say term' TERM; say start; while :; do sleep 0.1; say alive; done`
      const pod = shellPod(name, podd.shared, script, {
        container: { lifecycle: { preStop: { exec } } },
        spec: { terminationGracePeriodSeconds: 8 },
      })
      podd.drop(name, pod)
      await podd.untilReady(name)
      podd.removeManifest(name)
      await podd.untilLine(name, / term$/u)
      const stoppedMs = performance.now()
      await podd.stopDaemon(signal)
      // It doesn't wait for what ends: the next podd goes on with that.
      expect(performance.now() - stoppedMs).toBeLessThan(5000 * slowness)
      await podd.startDaemon()
      await podd.untilGone(name)
      const lines = podd.lines(name)
      expect(wordsOf(lines).filter((word) => word === 'hook')).toHaveLength(1)
      const livedSeconds = Number(lines.at(-1)?.split(' ')[0]) - saidAt(lines, 'hook')
      expect(livedSeconds).toBeGreaterThan(5)
      expect(livedSeconds).toBeLessThan(15 * slowness)
    },
  )

  it.each(breakingSignals)(
    'runs no preStop twice that lasts when %s ends podd, and ends the pod within its grace',
    async (signal) => {
      const podd = rig()
      const name = `in-hook-${signal.toLowerCase()}`
      const graceSeconds = 10
      const hook = `read t _ </proc/uptime; echo "$t hook" >>/shared/${name}; exec sleep 1000`
      const preStop = { exec: { command: ['sh', '-c', hook] } }
      const script = `trap 'say term' TERM; say start; while :; do sleep 0.1; say alive; done`
      podd.drop(
        name,
        shellPod(name, podd.shared, script, {
          container: { lifecycle: { preStop } },
          spec: { terminationGracePeriodSeconds: graceSeconds },
        }),
      )
      await podd.untilReady(name)
      podd.removeManifest(name)
      await podd.untilLine(name, / hook$/u)
      const hookMs = performance.now()
      await podd.stopDaemon(signal)
      expect(wordsOf(podd.lines(name))).not.toContain('term')
      await podd.startDaemon()
      // As SIGTERM always gets two seconds, a host that is slow to start podd lengthens the ending.
      const latestSeconds = Math.max(graceSeconds, (performance.now() - hookMs) / 1000 + 2)
      await podd.untilGone(name)
      const lines = podd.lines(name)
      const words = wordsOf(lines)
      expect(words.filter((word) => word === 'hook')).toHaveLength(1)
      expect(words.filter((word) => word === 'term')).toHaveLength(1)
      const livedSeconds = Number(lines.at(-1)?.split(' ')[0]) - saidAt(lines, 'hook')
      expect(livedSeconds).toBeGreaterThan(graceSeconds - 2)
      expect(livedSeconds).toBeLessThan(latestSeconds + 6 * slowness)
    },
  )

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'waits for hooks that run in containers when %s ends podd, and runs none twice',
    async (signal) => {
      const podd = rig()
      const name = `hooks-${signal.toLowerCase()}`
      const hook = (word: string): object => {
        const wait = `until [ -e /shared/${name}-${word} ]; do sleep 0.1; done`
        const say = (said: string): string => `read t _ </proc/uptime; echo "$t ${said}" >>/shared/${name}`
        return { exec: { command: ['sh', '-c', `${say(word)}; ${wait}; ${say(`${word} done`)}`] } }
      }
      const lifecycle = { postStart: hook('post'), preStop: hook('pre') }
      const script = `trap 'say term; exit 0' TERM; say start; while :; do sleep 0.1; done`
      podd.drop(
        name,
        shellPod(name, podd.shared, script, {
          container: { lifecycle },
          spec: { terminationGracePeriodSeconds: 600 },
        }),
      )
      await podd.untilLine(name, / post$/u)
      const { metadata } = await podd.untilPod(name, 'its container', ({ status }) => {
        return status.containerStatuses?.[0]?.state['waiting'] !== undefined
      })
      await podd.stopDaemon(signal)
      // One ends while there is no podd, the other one afterwards.
      if (signal === 'SIGKILL') podd.touchShared(`${name}-post`)
      await podd.startDaemon()
      if (signal === 'SIGTERM') {
        await podd.untilPod(name, 'its wait', ({ status }) => {
          return status.containerStatuses?.[0]?.state['waiting'] !== undefined
        })
        // containerd's end is no end of the hook either.
        const killed = podd.containerdPid
        process.kill(killed, 'SIGKILL')
        await podd.until('another containerd', () => ![0, killed].includes(podd.containerdPid))
        podd.touchShared(`${name}-post`)
      }
      const ready = await podd.untilReady(name)
      expect(ready.metadata.uid).toBe(metadata.uid)
      expect(containerOf(ready, 'main').restartCount).toBe(0)
      podd.removeManifest(name)
      await podd.untilLine(name, / pre$/u)
      await podd.stopDaemon(signal)
      if (signal === 'SIGTERM') podd.touchShared(`${name}-pre`)
      await podd.startDaemon()
      if (signal === 'SIGKILL') {
        // Something that podd does after it has listed the pods.
        podd.drop('marker', shellPod('marker', podd.shared, 'stay'))
        await podd.untilReady('marker')
        podd.removeManifest('marker')
        podd.touchShared(`${name}-pre`)
      }
      await podd.untilGone(name)
      const words = wordsOf(podd.lines(name))
      expect(words.toSorted()).toEqual(['start', 'post', 'post done', 'pre', 'pre done', 'term'].toSorted())
      expect(words.slice(-3)).toEqual(['pre', 'pre done', 'term'])
    },
  )

  it('restarts a container whose postStart hook failed while podd was not there', async () => {
    const podd = rig()
    const name = 'failing-hook'
    const wait = `[ -e /shared/${name}-go ] && exit 0; echo "0 hook" >>/shared/${name}; until [ -e /shared/${name}-go ]; do sleep 0.1; done; echo why; exit 3`
    const lifecycle = { postStart: { exec: { command: ['sh', '-c', wait] } } }
    podd.drop(name, shellPod(name, podd.shared, 'say start; stay', { container: { lifecycle } }))
    await podd.untilLine(name, / hook$/u)
    await podd.stopDaemon('SIGKILL')
    podd.touchShared(`${name}-go`)
    await podd.startDaemon()
    const ready = await podd.untilReady(name)
    expect(containerOf(ready, 'main').restartCount).toBe(1)
    const events = await podd.events(name)
    expect(events.map(({ reason }) => reason)).toContain('FailedPostStartHook')
    expect(wordsOf(podd.lines(name)).filter((word) => word === 'hook')).toHaveLength(1)
    podd.removeManifest(name)
    await podd.untilGone(name)
  })
})
