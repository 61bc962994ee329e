import { expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { containerCgroup, podCgroup, readCgroup } from '../support/read-cgroup.ts'
import { podOf, shellContainer } from '../support/shell-pods.ts'

const mib = 1024 * 1024

interface Size {
  readonly cpu: string
  readonly memory: string
}

function resources(limits: Size) {
  return { resources: { limits, requests: limits } }
}

/** Tells its memory limit as it sees it itself, again and again. */
const watching = `trap 'exit 0' TERM
while :; do
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes)
  [ "$limit" = "$last" ] || say "$limit"
  last=$limit
  sleep 0.1
done`

function podDirectory(podd: PoddRig, pod: PodObject): string {
  const qos = pod.status.qosClass === 'Guaranteed' ? '' : pod.status.qosClass.toLowerCase()
  return podCgroup(podd.cgroupRoot, qos, pod.metadata.uid)
}

function idOf(pod: PodObject, name: string): string {
  return containerOf(pod, name).containerID?.replace('containerd://', '') ?? ''
}

function limitOf(pod: PodObject, name: string): string | undefined {
  return containerOf(pod, name).resources?.limits?.['memory']
}

function resizeCondition(pod: PodObject) {
  return pod.status.conditions.find(({ type }) => type.startsWith('PodResize'))
}

describePodd('resizing in place', {}, (rig) => {
  // id: gives-running-container-more
  it.concurrent('gives a running container more and less, and its pod with it', async () => {
    const podd = rig()
    const pod = (size: Size) =>
      podOf('sized', podd.shared, [
        shellContainer('main', 'sized', watching, resources(size)),
        shellContainer('other', 'sized-other', 'stay', resources({ cpu: '100m', memory: '32Mi' })),
      ])
    podd.drop('sized', pod({ cpu: '100m', memory: '64Mi' }))
    const before = await podd.untilReady('sized')
    const pid = podd.pidOf(idOf(before, 'main'))
    expect(pid).toBeGreaterThan(0)
    const directory = podDirectory(podd, before)

    podd.drop('sized', pod({ cpu: '300m', memory: '128Mi' }))
    const grown = await podd.untilPod('sized', 'more', (now) => limitOf(now, 'main') === '128Mi')
    expect(containerOf(grown, 'main').allocatedResources).toEqual({ cpu: '300m', memory: '128Mi' })
    const own = containerCgroup(directory, idOf(before, 'main'))
    expect(readCgroup.memoryLimitBytes(own)).toBe(128 * mib)
    expect(readCgroup.cpuQuota(own)).toEqual({ quotaUs: 30_000, periodUs: 100_000 })
    expect(readCgroup.memoryLimitBytes(directory)).toBe(160 * mib)
    expect(readCgroup.cpuQuota(directory)).toEqual({ quotaUs: 40_000, periodUs: 100_000 })
    await podd.untilLine('sized', new RegExp(` ${128 * mib}$`, 'u'))

    podd.drop('sized', pod({ cpu: '50m', memory: '48Mi' }))
    const shrunk = await podd.untilPod('sized', 'less', (now) => limitOf(now, 'main') === '48Mi')
    expect(readCgroup.memoryLimitBytes(own)).toBe(48 * mib)
    expect(readCgroup.memoryLimitBytes(directory)).toBe(80 * mib)
    expect(readCgroup.cpuQuota(directory)).toEqual({ quotaUs: 15_000, periodUs: 100_000 })
    expect(resizeCondition(shrunk)).toBeUndefined()
    expect(shrunk.metadata.uid).toBe(before.metadata.uid)
    expect(idOf(shrunk, 'main')).toBe(idOf(before, 'main'))
    expect(idOf(shrunk, 'other')).toBe(idOf(before, 'other'))
    expect(containerOf(shrunk, 'main').restartCount).toBe(0)
    expect(podd.pidOf(idOf(shrunk, 'main'))).toBe(pid)
    await podd.untilLine('sized', new RegExp(` ${48 * mib}$`, 'u'))
  })

  it.concurrent(
    'restarts the container whose policy asks for it, and no other',
    proves('resize-policy', 'Container: resizePolicy', 'ContainerResizePolicy: resourceName restartPolicy'),
    async () => {
      const podd = rig()
      const resizePolicy = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }]
      const pod = (memory: string) =>
        podOf('policy', podd.shared, [
          shellContainer('main', 'policy', watching, { ...resources({ cpu: '100m', memory }), resizePolicy }),
          shellContainer('other', 'policy-other', 'stay', resources({ cpu: '100m', memory: '32Mi' })),
        ])
      podd.drop('policy', pod('64Mi'))
      const before = await podd.untilReady('policy')
      podd.drop('policy', pod('128Mi'))
      const after = await podd.untilPod('policy', 'its restart', (now) => {
        const main = containerOf(now, 'main')
        return main.restartCount === 1 && main.ready && limitOf(now, 'main') === '128Mi'
      })
      expect(after.metadata.uid).toBe(before.metadata.uid)
      expect(idOf(after, 'other')).toBe(idOf(before, 'other'))
      const directory = podDirectory(podd, after)
      await podd.until('the cgroup of the pod', () => readCgroup.memoryLimitBytes(directory) === 160 * mib)
      expect(readCgroup.memoryLimitBytes(containerCgroup(directory, idOf(after, 'main')))).toBe(128 * mib)

      podd.drop('policy', pod('48Mi'))
      await podd.untilPod('policy', 'the next', (now) => containerOf(now, 'main').restartCount === 2)
      await podd.until('less for the pod', () => readCgroup.memoryLimitBytes(directory) === 80 * mib)
    },
  )

  // id: refuses-memory-limit-below
  it.concurrent('refuses a memory limit below what is in use', async () => {
    const podd = rig()
    // 40 MiB in a tmpfs count as the container's memory.
    const script = `dd if=/dev/zero of=/dev/shm/full bs=1M count=40 2>/dev/null; say full; ${watching}`
    const pod = (memory: string) =>
      podOf('full', podd.shared, [shellContainer('main', 'full', script, resources({ cpu: '100m', memory }))])
    podd.drop('full', pod('96Mi'))
    const before = await podd.untilReady('full')
    await podd.untilLine('full', / full$/u)
    podd.drop('full', pod('16Mi'))
    const refused = await podd.untilPod(
      'full',
      'the refusal',
      (now) => resizeCondition(now)?.reason === 'Error',
    )
    expect(resizeCondition(refused)).toMatchObject({ type: 'PodResizeInProgress', status: 'True' })
    expect(resizeCondition(refused)?.message).toMatch(
      /^attempting to set container "main" memory limit \(16777216\) below current usage \(\d+\)$/u,
    )
    expect(limitOf(refused, 'main')).toBe('96Mi')
    await podd.untilEvent('full', 'ResizeError')
    const directory = podDirectory(podd, before)
    expect(readCgroup.memoryLimitBytes(containerCgroup(directory, idOf(before, 'main')))).toBe(96 * mib)
    expect(readCgroup.memoryLimitBytes(directory)).toBe(96 * mib)
    podd.drop('full', pod('80Mi'))
    const after = await podd.untilPod('full', 'a limit that fits', (now) => limitOf(now, 'main') === '80Mi')
    expect(resizeCondition(after)).toBeUndefined()
    expect(idOf(after, 'main')).toBe(idOf(before, 'main'))
    expect(containerOf(after, 'main').restartCount).toBe(0)
  })

  it.concurrent('says of a resize that the host has no room for that it never will', async () => {
    const podd = rig()
    const pod = (cpu: string) =>
      podOf('huge', podd.shared, [
        shellContainer('main', 'huge', 'stay', { resources: { requests: { cpu, memory: '16Mi' } } }),
      ])
    podd.drop('huge', pod('100m'))
    const before = await podd.untilReady('huge')
    podd.drop('huge', pod('5000'))
    const pending = await podd.untilPod('huge', 'the refusal', (now) => resizeCondition(now) !== undefined)
    expect(resizeCondition(pending)).toMatchObject({ type: 'PodResizePending', reason: 'Infeasible' })
    expect(containerOf(pending, 'main').allocatedResources).toEqual({ cpu: '100m', memory: '16Mi' })
    podd.drop('huge', pod('200m'))
    const after = await podd.untilPod(
      'huge',
      'one that fits',
      (now) => containerOf(now, 'main').allocatedResources?.['cpu'] === '200m',
    )
    expect(resizeCondition(after)).toBeUndefined()
    expect(idOf(after, 'main')).toBe(idOf(before, 'main'))
  })

  it('knows after a restart what its containers were given', async () => {
    const podd = rig()
    const before = await podd.untilPod('sized', 'less', (now) => limitOf(now, 'main') === '48Mi')
    await podd.restartDaemon('SIGKILL')
    const after = await podd.untilReady('sized')
    expect(limitOf(after, 'main')).toBe('48Mi')
    expect(resizeCondition(after)).toBeUndefined()
    expect(idOf(after, 'main')).toBe(idOf(before, 'main'))
    expect((await podd.events('sized')).filter(({ reason }) => reason === 'ResizeError')).toEqual([])
  })
})
