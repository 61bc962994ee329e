import { cpus } from 'node:os'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { podCgroup, readCgroup, removeCgroup } from '../support/read-cgroup.ts'
import { podOf, shellContainer, shellPod } from '../support/shell-pods.ts'

const mib = 2 ** 20

const runtimeClass = (name: string, handler: string, overhead?: object) => ({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name },
  handler,
  ...(overhead === undefined ? {} : { overhead: { podFixed: overhead } }),
})

const priorityClass = (name: string, value: number) => ({
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name },
  value,
})

/** The cgroup of a pod, below the mount point of its hierarchy. */
function cgroupOf(podd: PoddRig, uid: string, qos: '' | 'burstable' | 'besteffort'): string {
  return podCgroup(podd.cgroupRoot, qos, uid)
}

/** What a container reads of its own cgroup, whichever version the host has. */
const ownMemoryLimit =
  'cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max'
const ownCpuLimit =
  'cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us 2>/dev/null || cat /sys/fs/cgroup/cpu.max'

const config = {
  podPidsLimit: 57,
  cpuCFSQuotaPeriod: '20ms',
  systemReserved: { cpu: '100m', memory: '64Mi' },
  kubeReserved: { cpu: '100m' },
  runtimeClasses: { configured: { handler: 'runc', overhead: { memory: '8Mi' } } },
}

describePodd('resources', { config }, (rig) => {
  // id: limits-processes-of-pod
  it.concurrent('enforces limits over the period that is set, and a number of processes', async () => {
    const podd = rig()
    // Half of a processor's time: the host may have one.
    const resources = { limits: { cpu: '500m', memory: '48Mi' } }
    const script = `say limits $(${ownCpuLimit}) $(${ownMemoryLimit}); stay`
    podd.drop('limits', shellPod('limits', podd.shared, script, { container: { resources } }))
    await podd.untilLine('limits', new RegExp(`limits 10000 20000 ${48 * mib}$`, 'u'))
    const { metadata, status } = await podd.untilReady('limits')
    expect(status.qosClass).toBe('Guaranteed')
    const pod = cgroupOf(podd, metadata.uid, '')
    expect(readCgroup.cpuQuota(pod)).toEqual({ quotaUs: 10_000, periodUs: 20_000 })
    expect(readCgroup.pidsLimit(pod)).toBe(57)
    podd.removeManifest('limits')
    await podd.untilGone('limits')
  })

  it.concurrent('tells a container without limits what the host gives pods', async () => {
    const podd = rig()
    const resourceFieldRef = { resource: 'limits.cpu', divisor: '1m' }
    const env = [{ name: 'MILLIS', valueFrom: { resourceFieldRef } }]
    podd.drop('unbound', shellPod('unbound', podd.shared, 'say millis $MILLIS; stay', { container: { env } }))
    const [said] = await podd.untilLine('unbound', / millis /u)
    // Without what is kept for the system and for podd.
    expect(said?.split(' ').at(-1)).toBe(String(cpus().length * 1000 - 200))
    podd.removeManifest('unbound')
    await podd.untilGone('unbound')
  })

  it.concurrent(
    'binds containers without limits of their own by those of the pod',
    proves('pod-resources', 'PodSpec: resources'),
    async () => {
      const podd = rig()
      const spec = { resources: { requests: { cpu: '100m' }, limits: { cpu: '1', memory: '64Mi' } } }
      const containers = [
        shellContainer('free', 'level', `say free $(${ownMemoryLimit}); stay`),
        shellContainer('bound', 'level', `say bound $(${ownMemoryLimit}); stay`, {
          resources: { limits: { memory: '32Mi' } },
        }),
      ]
      podd.drop('level', podOf('level', podd.shared, containers, { spec }))
      await podd.untilLine('level', new RegExp(` free ${64 * mib}$`, 'u'))
      await podd.untilLine('level', new RegExp(` bound ${32 * mib}$`, 'u'))
      const { metadata, status } = await podd.untilReady('level')
      expect(status.qosClass).toBe('Burstable')
      const pod = cgroupOf(podd, metadata.uid, 'burstable')
      expect(readCgroup.memoryLimitBytes(pod)).toBe(64 * mib)
      expect(readCgroup.cpuQuota(pod)).toEqual({ quotaUs: 20_000, periodUs: 20_000 })
      podd.removeManifest('level')
      await podd.untilGone('level')
    },
  )

  it.concurrent.each([
    ['cpu', { cpu: '4000' }, `requested: 4000000, used: \\d+, capacity: ${cpus().length * 1000 - 200}`],
    ['memory', { memory: '900Ti' }, 'requested: 989560464998400, used: \\d+, capacity: \\d+'],
    ['hugepages-64Mi', { cpu: '1m', 'hugepages-64Mi': '64Mi' }, 'requested: 67108864, used: 0, capacity: 0'],
  ])('has a pod wait that asks for more %s than the host has', async (name, limits, numbers) => {
    const podd = rig()
    const pod = `greedy-${name.toLowerCase()}`
    podd.drop(pod, shellPod(pod, podd.shared, 'stay', { container: { resources: { limits } } }))
    const { status } = await podd.untilPod(pod, 'its wait', (shown) => shown.status.reason === 'Blocked')
    expect(status.phase).toBe('Pending')
    expect((await podd.cliOk('get', 'pods', pod)).split('\n')[1]).toMatch(
      new RegExp(`^${pod} +0/1 +Blocked `, 'u'),
    )
    expect(status.message).toMatch(new RegExp(`^Node didn't have enough resource: ${name}, ${numbers}$`, 'u'))
    podd.removeManifest(pod)
    await podd.untilGone(pod)
  })

  it.concurrent(
    'gives a pod the handler, the overhead and the priority of its classes',
    proves(
      'classes',
      'PodSpec: runtimeClassName priorityClassName',
      'RuntimeClass: apiVersion kind metadata handler overhead',
      'Overhead: podFixed',
      'PriorityClass: apiVersion kind metadata value',
    ),
    async () => {
      const podd = rig()
      podd.drop(
        'classes',
        runtimeClass('with-overhead', 'runc', { memory: '16Mi', cpu: '10m' }),
        priorityClass('important', 4711),
      )
      podd.drop(
        'classed',
        shellPod('classed', podd.shared, `say limit $(${ownMemoryLimit}); stay`, {
          spec: { runtimeClassName: 'with-overhead', priorityClassName: 'important' },
          container: { resources: { limits: { cpu: '100m', memory: '32Mi' } } },
        }),
      )
      await podd.untilLine('classed', new RegExp(` limit ${32 * mib}$`, 'u'))
      const { metadata } = await podd.untilReady('classed')
      expect(readCgroup.memoryLimitBytes(cgroupOf(podd, metadata.uid, ''))).toBe(48 * mib)
      const shown: unknown = JSON.parse(await podd.cliOk('get', 'pod', 'classed', '-o', 'json'))
      expect(JSON.stringify(shown)).toContain('"priority":4711')
      expect(JSON.stringify(shown)).toContain('"overhead":{"memory":"16Mi","cpu":"10m"}')
      // A class that changes later changes no pod that is there.
      podd.drop(
        'classes',
        runtimeClass('with-overhead', 'runc', { memory: '99Mi' }),
        priorityClass('important', 1),
      )
      await podd.restartDaemon('SIGKILL')
      const again = await podd.untilReady('classed')
      expect(again.metadata.uid).toBe(metadata.uid)
      expect(JSON.stringify(again)).toContain('"priority":4711')
      expect(readCgroup.memoryLimitBytes(cgroupOf(podd, metadata.uid, ''))).toBe(48 * mib)
    },
  )
})

describePodd('classes', { config }, (rig) => {
  it.concurrent('waits for a RuntimeClass, names those there are, and starts when it comes', async () => {
    const podd = rig()
    podd.drop('late', shellPod('late', podd.shared, 'say up; stay', { spec: { runtimeClassName: 'later' } }))
    const pod = await podd.untilPod('late', 'its wait', ({ status }) => status.reason === 'FailedCreate')
    expect(pod.status.phase).toBe('Pending')
    expect(pod.status.message).toMatch(/^RuntimeClass "later" not found; there are .*configured/u)
    podd.drop('later-class', runtimeClass('later', 'runc'))
    await podd.untilReady('late')
    podd.removeManifest('late')
    await podd.untilGone('late')
  })

  it.concurrent('refuses a handler that the runtime hasn’t, and names those it has', async () => {
    const podd = rig()
    podd.drop(
      'kata',
      runtimeClass('kata', 'kata-qemu'),
      shellPod('boxed', podd.shared, 'stay', { spec: { runtimeClassName: 'kata' } }),
    )
    const reason = 'FailedCreatePodSandBox'
    const pod = await podd.untilPod('boxed', 'its refusal', ({ status }) => status.reason === reason)
    expect(pod.status.message).toBe(
      'Failed to create pod sandbox: the container runtime has no handler "kata-qemu" of RuntimeClass "kata"; it has runc',
    )
    expect((await podd.untilEvent('boxed', reason)).message).toBe(pod.status.message)
    podd.removeManifest('kata')
    await podd.untilGone('boxed')
  })

  it.concurrent('takes RuntimeClasses from the config', async () => {
    const podd = rig()
    podd.drop(
      'by-config',
      shellPod('by-config', podd.shared, 'say up; stay', { spec: { runtimeClassName: 'configured' } }),
    )
    const pod = await podd.untilReady('by-config')
    expect(JSON.stringify(pod)).toContain('"overhead":{"memory":"8Mi"}')
    podd.removeManifest('by-config')
    await podd.untilGone('by-config')
  })

  it.concurrent('knows the system’s priorities, and refuses a class that isn’t there', async () => {
    const podd = rig()
    podd.drop(
      'critical',
      shellPod('critical', podd.shared, 'say $(cat /proc/self/oom_score_adj); stay', {
        spec: { priorityClassName: 'system-node-critical' },
      }),
    )
    podd.drop(
      'nobody',
      shellPod('nobody', podd.shared, 'stay', { spec: { priorityClassName: 'nobody-knows' } }),
    )
    const pod = await podd.untilReady('critical')
    expect(JSON.stringify(pod)).toContain('"priority":2000001000')
    // Not below what this process has: a host may not let anybody lower it.
    const least = Math.max(
      -997,
      hasSysResource() ? -1000 : Number(readFileSync('/proc/self/oom_score_adj', 'utf8')),
    )
    await podd.untilLine('critical', new RegExp(` ${least}$`, 'u'))
    const { status } = await podd.untilPod(
      'nobody',
      'its wait',
      (now) => now.status.reason === 'FailedCreate',
    )
    expect(status.message).toMatch(
      /^no PriorityClass with name nobody-knows was found; there are .*system-node-critical/u,
    )
    for (const name of ['critical', 'nobody']) podd.removeManifest(name)
    await podd.untilGone('critical')
  })
})

describePodd('a host whose pods ask for more than it has', { config: { ...config, maxPods: 20 } }, (rig) => {
  it('runs a service once the job beside it, with which it had no room, has completed', async () => {
    const podd = rig()
    const resources = { requests: { cpu: `${Math.ceil(cpus().length * 1000 * 0.6)}m` } }
    const asking = (name: string, script: string, restartPolicy: string) =>
      shellPod(name, podd.shared, script, { container: { resources }, spec: { restartPolicy } })
    const gate = 'until [ -e /shared/go ]; do sleep 0.1; done'
    podd.drop('both', asking('a-job', gate, 'Never'), asking('service', 'say up; stay', 'Always'))
    const { status } = await podd.untilPod('service', 'its wait', (pod) => pod.status.reason === 'Blocked')
    expect(status).toMatchObject({ phase: 'Pending', message: expect.stringContaining('resource: cpu') })
    expect(status.containerStatuses?.[0]?.state.waiting?.reason).toBe('Blocked')
    const refused = await podd.cli('restart', 'service')
    expect(refused.stderr).toContain('pod service cannot run now: ')
    // podd is another one when there is room.
    await podd.restartDaemon('SIGKILL')
    await podd.untilPod('service', 'its wait', (pod) => pod.status.reason === 'Blocked')
    writeFileSync(join(podd.shared, 'go'), '')
    await podd.untilPhase('a-job', 'Succeeded')
    await podd.untilReady('service')
    podd.removeManifest('both')
    await podd.untilGone('service')
  })
})

describePodd('a cgroup that is removed', { config: { ...config, syncFrequency: '6s' } }, (rig) => {
  it('has its pod killed and recreated with its limits within a period, and no other', async () => {
    const podd = rig()
    const resources = { limits: { cpu: '500m', memory: '48Mi' } }
    for (const name of ['moved', 'beside'])
      podd.drop(name, shellPod(name, podd.shared, 'say up; stay', { container: { resources } }))
    const before = await podd.untilReady('moved')
    const beside = await podd.untilReady('beside')
    const path = cgroupOf(podd, before.metadata.uid, '')
    removeCgroup(path)
    expect(existsSync(readCgroup.directory(path))).toBe(false)
    await podd.untilEvent('moved', 'CgroupRemoved')
    const restarts = ({ status }: typeof before) => status.containerStatuses?.[0]?.restartCount
    const after = await podd.untilPod(
      'moved',
      'its restart',
      (pod) =>
        restarts(pod) === 1 &&
        pod.status.conditions.some(({ type, status }) => type === 'Ready' && status === 'True'),
    )
    expect(after.metadata.uid).toBe(before.metadata.uid)
    expect(readCgroup.memoryLimitBytes(cgroupOf(podd, after.metadata.uid, ''))).toBe(48 * mib)
    expect(restarts(await podd.untilReady('beside'))).toBe(0)
    expect((await podd.untilReady('beside')).status.podIP).toBe(beside.status.podIP)
    for (const name of ['moved', 'beside']) podd.removeManifest(name)
    for (const name of ['moved', 'beside']) await podd.untilGone(name)
  })
})

function hasSysResource(): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/mu.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return (BigInt(`0x${effective}`) & (1n << 24n)) !== 0n
}
