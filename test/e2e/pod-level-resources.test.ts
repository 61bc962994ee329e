import { expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { containerCgroup, podCgroup, readCgroup } from '../support/read-cgroup.ts'
import { podOf, shellContainer } from '../support/shell-pods.ts'

const mib = 1024 * 1024

interface Size {
  readonly cpu: string
  readonly memory: string
}

/** A pod of two containers, `own` with limits of its own and `free` with none. */
function within(
  podd: PoddRig,
  name: string,
  limits: Size,
  script: string,
  free: Readonly<Record<string, unknown>> = {},
): object {
  const own = { limits: { cpu: '50m', memory: '24Mi' } }
  const containers = [
    shellContainer('free', name, script, free),
    shellContainer('own', `${name}-own`, 'stay', { resources: own }),
  ]
  const volumes = [
    {
      name: 'limits',
      downwardAPI: {
        items: [
          { path: 'memory', resourceFieldRef: { containerName: 'free', resource: 'limits.memory' } },
          {
            path: 'cpu',
            resourceFieldRef: { containerName: 'free', resource: 'limits.cpu', divisor: '1m' },
          },
          { path: 'own', resourceFieldRef: { containerName: 'own', resource: 'limits.memory' } },
        ],
      },
    },
  ]
  return podOf(name, podd.shared, containers, { spec: { resources: { limits, requests: limits } }, volumes })
}

const idOf = (pod: PodObject, name: string): string =>
  containerOf(pod, name).containerID?.replace('containerd://', '') ?? ''

const podLimit = (pod: PodObject): string | undefined => pod.status.resources?.limits?.['memory']

const resizeCondition = (pod: PodObject) =>
  pod.status.conditions.find(({ type }) => type.startsWith('PodResize'))

const directoryOf = (podd: PoddRig, { metadata }: PodObject): string =>
  podCgroup(podd.cgroupRoot, '', metadata.uid)

describePodd('resources of a pod as a whole', {}, (rig) => {
  it.concurrent('are what the downward API gives a container without a limit, and the volume follows', async () => {
    const podd = rig()
    const script = `say "env $MEMORY $CPU"
trap 'exit 0' TERM
while :; do
  now="$(cat /limits/memory) $(cat /limits/cpu) $(cat /limits/own)"
  [ "$now" = "$last" ] || say "file $now"
  last=$now
  sleep 0.2
done`
    const limit = (resource: string, divisor: string) => ({
      valueFrom: { resourceFieldRef: { resource, divisor } },
    })
    const free = {
      env: [
        { name: 'MEMORY', ...limit('limits.memory', '1Mi') },
        { name: 'CPU', ...limit('limits.cpu', '1m') },
      ],
      volumeMounts: [{ name: 'limits', mountPath: '/limits' }],
    }
    podd.drop('told', within(podd, 'told', { cpu: '200m', memory: '96Mi' }, script, free))
    await podd.untilLine('told', / env 96 200$/u)
    await podd.untilLine('told', new RegExp(` file ${96 * mib} 200 ${24 * mib}$`, 'u'))
    const before = await podd.untilReady('told')
    podd.drop('told', within(podd, 'told', { cpu: '400m', memory: '128Mi' }, script, free))
    await podd.untilLine('told', new RegExp(` file ${128 * mib} 400 ${24 * mib}$`, 'u'))
    const after = await podd.untilReady('told')
    expect(idOf(after, 'free')).toBe(idOf(before, 'free'))
  })

  it.concurrent('change in place, with the containers that they bind', async () => {
    const podd = rig()
    const pod = (size: Size) => within(podd, 'whole', size, 'stay')
    podd.drop('whole', pod({ cpu: '200m', memory: '96Mi' }))
    const before = await podd.untilReady('whole')
    expect(before.status).toMatchObject({
      qosClass: 'Guaranteed',
      allocatedResources: { cpu: '200m', memory: '96Mi' },
      resources: { limits: { cpu: '200m', memory: '96Mi' }, requests: { cpu: '200m', memory: '96Mi' } },
    })
    const directory = directoryOf(podd, before)
    const cgroups = (id: string) => containerCgroup(directory, idOf(before, id))
    expect(readCgroup.memoryLimitBytes(directory)).toBe(96 * mib)
    expect(readCgroup.memoryLimitBytes(cgroups('free'))).toBe(96 * mib)

    podd.drop('whole', pod({ cpu: '400m', memory: '160Mi' }))
    const grown = await podd.untilPod('whole', 'more', (now) => podLimit(now) === '160Mi')
    expect(grown.status.allocatedResources).toEqual({ cpu: '400m', memory: '160Mi' })
    await podd.untilPod('whole', 'its completion', (now) => resizeCondition(now) === undefined)
    expect(readCgroup.memoryLimitBytes(directory)).toBe(160 * mib)
    expect(readCgroup.cpuQuota(directory)).toEqual({ quotaUs: 40_000, periodUs: 100_000 })
    expect(readCgroup.memoryLimitBytes(cgroups('free'))).toBe(160 * mib)
    expect(readCgroup.cpuQuota(cgroups('free'))).toEqual({ quotaUs: 40_000, periodUs: 100_000 })
    expect(readCgroup.memoryLimitBytes(cgroups('own'))).toBe(24 * mib)
    await podd.untilEvent('whole', 'ResizeCompleted', /the pod itself/u)

    podd.drop('whole', pod({ cpu: '150m', memory: '64Mi' }))
    const shrunk = await podd.untilPod('whole', 'less', (now) => podLimit(now) === '64Mi')
    expect(readCgroup.memoryLimitBytes(directory)).toBe(64 * mib)
    expect(readCgroup.cpuQuota(directory)).toEqual({ quotaUs: 15_000, periodUs: 100_000 })
    expect(readCgroup.memoryLimitBytes(cgroups('free'))).toBe(64 * mib)
    expect(shrunk.metadata.uid).toBe(before.metadata.uid)
    for (const name of ['free', 'own']) {
      expect(idOf(shrunk, name)).toBe(idOf(before, name))
      expect(containerOf(shrunk, name).restartCount).toBe(0)
    }
  })

  it.concurrent('restart a container that they bind where its policy asks for it', async () => {
    const podd = rig()
    const resizePolicy = [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }]
    const pod = (memory: string) =>
      within(podd, 'bound', { cpu: '200m', memory }, 'say start; stay', { resizePolicy })
    podd.drop('bound', pod('96Mi'))
    const before = await podd.untilReady('bound')
    podd.drop('bound', pod('128Mi'))
    const after = await podd.untilPod('bound', 'its restart', (now) => {
      const free = containerOf(now, 'free')
      return free.restartCount === 1 && free.ready && resizeCondition(now) === undefined
    })
    expect(after.metadata.uid).toBe(before.metadata.uid)
    expect(idOf(after, 'own')).toBe(idOf(before, 'own'))
    const directory = directoryOf(podd, after)
    expect(readCgroup.memoryLimitBytes(containerCgroup(directory, idOf(after, 'free')))).toBe(128 * mib)
    expect(readCgroup.memoryLimitBytes(directory)).toBe(128 * mib)
    expect(await podd.untilWords('bound', 3)).toEqual(['start', 'end', 'start'])
  })

  it.concurrent('are refused below what is in use, and beyond what the host has', async () => {
    const podd = rig()
    const script = 'dd if=/dev/zero of=/dev/shm/full bs=1M count=40 2>/dev/null; say full; stay'
    const pod = (size: Size) => within(podd, 'sized', size, script)
    podd.drop('sized', pod({ cpu: '200m', memory: '96Mi' }))
    const before = await podd.untilReady('sized')
    await podd.untilLine('sized', / full$/u)
    podd.drop('sized', pod({ cpu: '200m', memory: '32Mi' }))
    const refused = await podd.untilPod(
      'sized',
      'the refusal',
      (now) => resizeCondition(now)?.reason === 'Error',
    )
    expect(resizeCondition(refused)?.message).toMatch(
      /^attempting to set pod memory limit \(33554432\) below current usage \(\d+\)$/u,
    )
    expect(podLimit(refused)).toBe('96Mi')
    expect(readCgroup.memoryLimitBytes(directoryOf(podd, before))).toBe(96 * mib)

    podd.drop('sized', pod({ cpu: '200m', memory: '96Mi' }))
    await podd.untilPod('sized', 'what it had', (now) => resizeCondition(now) === undefined)
    podd.drop('sized', pod({ cpu: '5000', memory: '96Mi' }))
    const pending = await podd.untilPod(
      'sized',
      'its wait',
      (now) => resizeCondition(now)?.type === 'PodResizePending',
    )
    expect(resizeCondition(pending)?.reason).toBe('Infeasible')
    expect(pending.status.allocatedResources).toEqual({ cpu: '200m', memory: '96Mi' })
    podd.drop('sized', pod({ cpu: '250m', memory: '80Mi' }))
    const after = await podd.untilPod('sized', 'one that fits', (now) => podLimit(now) === '80Mi')
    expect(resizeCondition(after)).toBeUndefined()
    expect(idOf(after, 'free')).toBe(idOf(before, 'free'))
  })

  it('are known after a restart', async () => {
    const podd = rig()
    const before = await podd.untilPod('whole', 'less', (now) => podLimit(now) === '64Mi')
    await podd.restartDaemon('SIGKILL')
    // What a podd shows at first is what the one before had on record.
    const after = await podd.untilPod('whole', 'as before', (now) => podLimit(now) === '64Mi')
    expect(resizeCondition(after)).toBeUndefined()
    expect(idOf(after, 'free')).toBe(idOf(before, 'free'))
    expect(readCgroup.memoryLimitBytes(directoryOf(podd, after))).toBe(64 * mib)
  })
})
