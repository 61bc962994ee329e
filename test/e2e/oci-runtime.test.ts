import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { containerCgroup, podCgroup, readCgroup } from '../support/read-cgroup.ts'
import { podOf, shellContainer, shellPod, wordsOf } from '../support/shell-pods.ts'

const mib = 1024 * 1024

function idOf(pod: PodObject): string {
  return containerOf(pod, 'main').containerID?.replace('containerd://', '') ?? ''
}

/** By the file that each keeps of a container: `status` is crun's, `state.json` runc's. */
function runtimeOf(podd: PoddRig, pod: PodObject): string {
  const { runcStateDir } = containerdPlaces(podd.rootDir, podd.runDir)
  const directory = join(runcStateDir, 'k8s.io', idOf(pod))
  if (existsSync(join(directory, 'status'))) return 'crun'
  return existsSync(join(directory, 'state.json')) ? 'runc' : 'none'
}

describePodd('crun as the OCI runtime', { ociRuntime: 'crun' }, (rig) => {
  // id: crun-runs-what-runc-runs
  it.concurrent('runs pods, hooks, probes and programs in them, and ends them politely', async () => {
    const podd = rig()
    const script = 'echo hello; stay'
    const container = {
      lifecycle: {
        postStart: { exec: { command: ['sh', '-c', 'echo x post >> /shared/life'] } },
        preStop: { exec: { command: ['sh', '-c', 'echo x pre >> /shared/life'] } },
      },
      readinessProbe: { exec: { command: ['test', '-e', '/shared/ready'] }, periodSeconds: 1 },
    }
    podd.drop('life', shellPod('life', podd.shared, script, { container }))
    await podd.untilWords('life', 1)
    expect(containerOf(await podd.untilPhase('life', 'Running'), 'main').ready).toBe(false)
    podd.touchShared('ready')
    const pod = await podd.untilReady('life')
    expect(runtimeOf(podd, pod)).toBe('crun')
    expect(await podd.cliOk('logs', 'life')).toBe('hello\n')
    expect(await podd.cliOk('exec', 'life', '--', 'sh', '-c', 'echo $((40 + 2))')).toBe('42\n')
    expect((await podd.cli('exec', 'life', '--', 'sh', '-c', 'exit 7')).code).toBe(7)
    podd.removeManifest('life')
    await podd.untilGone('life')
    expect(wordsOf(podd.lines('life'))).toEqual(['post', 'pre', 'end'])
  })

  // id: crun-restarts
  it.concurrent('restarts what crashes, fails its liveness probe or is out of memory', async () => {
    const podd = rig()
    const crash = '[ -e /shared/crashed ] && stay; touch /shared/crashed; exit 3'
    podd.drop('crash', shellPod('crash', podd.shared, crash))
    const ill = '[ -e /shared/cured ] && stay; touch /shared/cured; trap "exit 0" TERM; sleep 1000000 & wait'
    const livenessProbe = {
      exec: { command: ['sh', '-c', 'grep -q stay /proc/1/cmdline && [ -e /shared/healthy ]'] },
      periodSeconds: 1,
      failureThreshold: 1,
    }
    podd.drop('ill', shellPod('ill', podd.shared, ill, { container: { livenessProbe } }))
    const limits = { memory: '16Mi' }
    const eat = '[ -e /shared/eaten ] && stay; touch /shared/eaten; x=x; while :; do x=$x$x; done'
    podd.drop('hungry', shellPod('hungry', podd.shared, eat, { container: { resources: { limits } } }))
    const lastOf = async (name: string) => {
      const again = await podd.untilPod(name, 'a restart', (now) => containerOf(now, 'main').restartCount > 0)
      podd.touchShared('healthy')
      return containerOf(again, 'main').lastState?.terminated
    }
    expect(await lastOf('crash')).toMatchObject({ exitCode: 3, reason: 'Error' })
    expect(await lastOf('ill')).toMatchObject({ exitCode: 0 })
    expect(await lastOf('hungry')).toMatchObject({ exitCode: 137, reason: 'OOMKilled' })
  })

  // id: crun-limits
  it.concurrent('holds limits, and changes those of a container that runs', async () => {
    const podd = rig()
    const sized = (memory: string, cpu: string) => {
      const limits = { memory, cpu }
      return podOf('sized', podd.shared, [
        shellContainer('main', 'sized', 'stay', { resources: { limits, requests: limits } }),
      ])
    }
    podd.drop('sized', sized('64Mi', '100m'))
    const pod = await podd.untilReady('sized')
    const own = containerCgroup(podCgroup(podd.cgroupRoot, '', pod.metadata.uid), idOf(pod))
    expect(readCgroup.memoryLimitBytes(own)).toBe(64 * mib)
    expect(readCgroup.cpuQuota(own)).toEqual({ quotaUs: 10_000, periodUs: 100_000 })
    podd.drop('sized', sized('128Mi', '300m'))
    const grown = await podd.untilPod(
      'sized',
      'more',
      (now) => containerOf(now, 'main').resources?.limits?.['memory'] === '128Mi',
    )
    expect(readCgroup.memoryLimitBytes(own)).toBe(128 * mib)
    expect(readCgroup.cpuQuota(own)).toEqual({ quotaUs: 30_000, periodUs: 100_000 })
    expect(idOf(grown)).toBe(idOf(pod))
  })

  // id: oci-runtime-by-class
  it.concurrent('tells why a program does not start, and leaves runc to the pods of its RuntimeClass', async () => {
    const podd = rig()
    const absent = { command: ['/no/such/program'] }
    podd.drop('absent', shellPod('absent', podd.shared, '', { container: absent }))
    const classes = [
      { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'older' }, handler: 'runc' },
    ]
    const byClass = shellPod('by-class', podd.shared, 'stay', { spec: { runtimeClassName: 'older' } })
    podd.drop('by-class', ...classes, byClass)
    expect(runtimeOf(podd, await podd.untilReady('by-class'))).toBe('runc')
    const failed = await podd.untilEvent('absent', 'Failed', /no such file|not found/iu)
    expect(failed.message).toContain('/no/such/program')
  })
})
