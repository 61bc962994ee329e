import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { EventObject } from '../../src/api/resource.ts'
import { callApi } from '../support/call-api.ts'
import { FakeSystemd } from '../support/fake-systemd.ts'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import { shell } from '../support/podd-program.ts'
import { saidAt, shellPod, wordsOf } from '../support/shell-pods.ts'

// Kubernetes' own: test/e2e_node/node_shutdown_linux_test.go, "after restart dbus, should be able to gracefully shutdown"
// and "should be able to gracefully shutdown pods with various grace periods", without logind.
describePodd(
  'podd drain',
  {
    config: {
      shutdownGracePeriodByPodPriority: [
        { priority: 0, shutdownGracePeriodSeconds: 4 },
        { priority: 1000, shutdownGracePeriodSeconds: 3 },
        { priority: 2_000_000_000, shutdownGracePeriodSeconds: 2 },
      ],
    },
  },
  (rig) => {
    // id: drains-by-priority
    it('ends pods in the order of their priorities, admits none meanwhile, and starts them again when undone', async () => {
      const podd = rig()
      const spec = (priorityClassName: string) => ({
        spec: { terminationGracePeriodSeconds: 30, priorityClassName },
      })
      podd.drop('classes', {
        apiVersion: 'scheduling.k8s.io/v1',
        kind: 'PriorityClass',
        metadata: { name: 'middle' },
        value: 1000,
      })
      podd.drop('low', shellPod('low', podd.shared, 'say start; stay'))
      // It takes no notice of SIGTERM: its range is over after 3 s.
      podd.drop(
        'middle',
        shellPod('middle', podd.shared, "trap '' TERM; say start; while :; do sleep 1; done", spec('middle')),
      )
      podd.drop('vital', shellPod('vital', podd.shared, 'say start; stay', spec('system-node-critical')))
      podd.drop('job', shellPod('job', podd.shared, 'say done', { spec: { restartPolicy: 'Never' } }))
      for (const name of ['low', 'vital']) await podd.untilReady(name)
      await podd.untilWords('middle', 1)
      const job = await podd.untilPhase('job', 'Succeeded')
      const uid = (await podd.findPod('low'))?.metadata.uid

      expect(await podd.cliOk('drain')).toBe('drained: 3 pods have ended\n')
      const low = await podd.findPod('low')
      expect(low?.status).toMatchObject({
        phase: 'Failed',
        reason: 'Terminated',
        message: 'Pod was terminated in response to imminent node shutdown.',
      })
      if (low === undefined) throw new Error('the pod is not shown')
      expect(conditionOf(low, 'DisruptionTarget')).toBe('True')
      // The middle one kept its range waiting until it was killed.
      expect(saidAt(podd.lines('vital'), 'end') - saidAt(podd.lines('low'), 'end')).toBeGreaterThan(2)
      expect((await podd.findPod('job'))?.metadata.uid).toBe(job.metadata.uid)

      podd.drop('late', shellPod('late', podd.shared, 'say start; stay'))
      const late = await podd.untilPod('late', 'refused', ({ status }) => status.reason === 'NodeShutdown')
      expect(late.status).toMatchObject({
        phase: 'Pending',
        message: 'Pod was rejected as the node is shutting down.',
      })

      // Another podd of the same boot goes on with it.
      await podd.restartDaemon('SIGKILL')
      await podd.until('the drain', async () => (await podd.status()).draining === true)
      expect((await podd.findPod('low'))?.status.phase).toBe('Failed')
      expect(existsSync(join(podd.runDir, 'draining'))).toBe(true)

      await podd.cliOk('drain', '--undo')
      const again = await podd.untilReady('low')
      expect(again.metadata.uid).not.toBe(uid)
      for (const name of ['vital', 'late']) await podd.untilReady(name)
      await podd.untilWords('middle', 2)
      expect(wordsOf(podd.lines('job'))).toEqual(['done'])
      expect((await podd.status()).draining).toBeUndefined()

      // After a boot the mark is that of another one: what was drained comes back by itself.
      await podd.cliOk('drain')
      const drained = (await podd.findPod('low'))?.metadata.uid
      writeFileSync(join(podd.runDir, 'draining'), 'another boot')
      await podd.restartDaemon('SIGKILL')
      expect((await podd.untilReady('low')).metadata.uid).not.toBe(drained)
      expect(wordsOf(podd.lines('job'))).toEqual(['done'])
    })

    it('starts pods that were written over the API again as themselves', async () => {
      const podd = rig()
      const path = '/api/v1/namespaces/default/pods'
      const policies = ['Always', 'OnFailure', 'Never']
      const names = policies.map((policy) => `written-${policy.toLowerCase()}`)
      for (const [at, restartPolicy] of policies.entries()) {
        const name = names[at] ?? ''
        const container = {
          name: 'main',
          image: shell,
          command: ['sh', '-c', 'trap "exit 0" TERM; sleep 1000 & wait'],
        }
        const spec = { restartPolicy, terminationGracePeriodSeconds: 2, containers: [container] }
        const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }
        expect(await callApi(podd.socketPath, 'POST', path, manifest)).toMatchObject({ code: 201 })
      }
      const uids = new Map<string, string>()
      for (const name of names) uids.set(name, (await podd.untilReady(name)).metadata.uid)
      await podd.cliOk('drain')
      await podd.cliOk('drain', '--undo')
      for (const name of names) expect((await podd.untilReady(name)).metadata.uid).toBe(uids.get(name))
      const reserved = (await podd.get<{ items: EventObject[] }>('/api/v1/events')).items.filter(
        ({ reason }) => /^FailedCreatePodSandBox$/u.test(reason),
      )
      expect(reserved).toEqual([])
      for (const name of names) {
        await callApi(podd.socketPath, 'DELETE', `${path}/${name}`)
        await podd.untilGone(name)
      }
    })
  },
)

describePodd('a shutdown by systemd', {}, (rig) => {
  it('starts nothing that ends meanwhile, and leaves no error after the boot', async () => {
    const podd = rig()
    await podd.stopDaemon()
    // podd sees a /run/systemd of its own.
    const directory = join(podd.directory, 'systemd')
    mkdirSync(directory)
    const systemd = new FakeSystemd(join(directory, 'private'))
    const bind = `mount --make-rprivate / && mount --bind '${directory}' /run/systemd && exec "$@"`
    podd.boots = ['unshare', '--mount', 'sh', '-c', bind, 'sh']
    try {
      await podd.startDaemon()
      const probe = { exec: { command: ['test', '-e', '/shared/healthy'] }, periodSeconds: 1 }
      podd.touchShared('healthy')
      podd.drop(
        'web',
        shellPod('web', podd.shared, 'say start; stay', { container: { readinessProbe: probe } }),
      )
      podd.drop('other', shellPod('other', podd.shared, 'say start; stay'))
      const { containerID } = containerOf(await podd.untilReady('web'), 'main')
      await podd.untilReady('other')

      // As where the boot never finished.
      systemd.state = 'starting'
      systemd.shutdownJob = 'start'
      podd.removeShared('healthy')
      await podd.untilPod('web', 'to be unready', (pod) => conditionOf(pod, 'Ready') === 'False')
      process.kill(podd.pidOf(containerID ?? ''), 'SIGKILL')
      await podd.untilPod(
        'web',
        'to have ended',
        (pod) => containerOf(pod, 'main').state.terminated?.exitCode === 137,
      )
      podd.drop('late', shellPod('late', podd.shared, 'say start; stay'))
      await podd.until(
        'the late pod',
        async () => (await podd.findPod('late'))?.status.reason === 'NodeShutdown',
      )
      expect(podd.lines('web')).toHaveLength(1)
      await podd.stopDaemon('SIGTERM')

      systemd.state = 'running'
      systemd.shutdownJob = undefined
      podd.touchShared('healthy')
      await podd.startDaemon()
      for (const name of ['web', 'other', 'late']) await podd.untilReady(name)
      expect(await podd.untilWords('web', 2)).toEqual(['start', 'start'])
      expect(await podd.untilWords('other', 1)).toEqual(['start'])
      expect(await podd.cliOk('status')).not.toContain('LAST ERRORS')
      expect(await podd.cliOk('get', 'events', '-A')).not.toContain('Warning')
    } finally {
      await podd.stopDaemon()
      podd.boots = []
      await systemd.close()
    }
  })
})
