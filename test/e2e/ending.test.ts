import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { saidAt, shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

const sh = (script: string) => ({
  exec: {
    command: ['sh', '-c', `say() { read t _ < /proc/uptime; echo "$t $*" >> /shared/$LOG; }\n${script}`],
  },
})

describePodd('hooks and endings', {}, (rig) => {
  const hooked = (name: string, script: string, lifecycle: object, graceSeconds = 20) =>
    shellPod(name, rig().shared, script, {
      container: { lifecycle, env: [{ name: 'LOG', value: name }] },
      spec: { terminationGracePeriodSeconds: graceSeconds },
    })

  it.concurrent(
    'runs postStart before the container counts as running, and preStop before SIGTERM',
    proves('hooks', 'Container: lifecycle', 'Lifecycle: postStart preStop', 'LifecycleHandler: exec'),
    async () => {
      const podd = rig()
      const lifecycle = {
        postStart: sh(
          'say hook begins; until [ -e /shared/both-goes-on ]; do sleep 0.1; done; say hook ends',
        ),
        preStop: sh('say stop begins; sleep 1; say stop ends'),
      }
      podd.drop('both', hooked('both', 'say main; stay', lifecycle))
      await podd.untilLine('both', / hook begins$/u)
      const early = await podd.findPod('both')
      expect(early?.status.containerStatuses?.[0]?.ready ?? false).toBe(false)
      podd.touchShared('both-goes-on')
      await podd.untilReady('both')
      await podd.untilLine('both', / hook ends$/u)
      podd.removeManifest('both')
      await podd.untilGone('both')
      const words = wordsOf(podd.lines('both'))
      expect(words.toSorted()).toEqual([
        'end',
        'hook begins',
        'hook ends',
        'main',
        'stop begins',
        'stop ends',
      ])
      expect(words.slice(-3)).toEqual(['stop begins', 'stop ends', 'end'])
    },
  )

  // id: kills-container-poststart-fails
  it.concurrent('kills a container whose postStart fails, and does not tell what the hook said', async () => {
    const podd = rig()
    podd.drop('bad-start', hooked('bad-start', 'stay', { postStart: sh('say hook; echo a-secret; exit 9') }))
    const event = await podd.untilEvent('bad-start', 'FailedPostStartHook')
    expect(event.message).not.toContain('a-secret')
    const pod = await podd.untilPod(
      'bad-start',
      'a restart',
      (now) => containerOf(now, 'main').restartCount >= 1,
    )
    expect(containerOf(pod, 'main').lastState.terminated).toBeDefined()
    await podd.untilEvent('bad-start', 'Killing', /failed post-start hook/iu)
  })

  // id: counts-prestop-towards-grace
  it.concurrent('counts preStop towards the grace, and leaves SIGTERM two seconds', async () => {
    const podd = rig()
    const lifecycle = { preStop: sh('say hook; sleep 1000') }
    const script = `trap 'say term' TERM; say main; while :; do sleep 0.1; say alive; done`
    // The hook's own start is part of it.
    const graceSeconds = Math.ceil(2 * slowness)
    podd.drop('long-stop', hooked('long-stop', script, lifecycle, graceSeconds))
    await podd.untilReady('long-stop')
    podd.removeManifest('long-stop')
    await podd.untilGone('long-stop')
    const lines = podd.lines('long-stop')
    const hookAt = saidAt(lines, 'hook')
    const termAt = saidAt(lines, 'term')
    const lastAliveAt = Number(lines.at(-1)?.split(' ')[0])
    expect(termAt - hookAt).toBeGreaterThan(0.5 * graceSeconds)
    expect(termAt - hookAt).toBeLessThan(6 * slowness)
    expect(lastAliveAt - termAt).toBeGreaterThan(1)
    expect(lastAliveAt - termAt).toBeLessThan(6 * slowness)
  })

  it.concurrent(
    'runs hooks by HTTP and by waiting',
    proves('http-and-sleep-hooks', 'LifecycleHandler: httpGet sleep', 'SleepAction: seconds'),
    async () => {
      const podd = rig()
      const served = `mkdir -p /www/cgi-bin
      printf '#!/bin/sh\\nread t _ </proc/uptime; echo "$t asked $HTTP_USER_AGENT" >>/shared/http-hook; echo; echo\\n' >/www/cgi-bin/stop
      chmod +x /www/cgi-bin/stop
      httpd -p 8080 -h /www; say main; stay`
      const container = {
        ports: [{ name: 'hooks', containerPort: 8080 }],
        lifecycle: { preStop: { httpGet: { path: '/cgi-bin/stop', port: 'hooks' } } },
      }
      podd.drop('http-hook', shellPod('http-hook', podd.shared, served, { container }))
      podd.drop('sleep-hook', hooked('sleep-hook', 'say main; stay', { preStop: { sleep: { seconds: 1 } } }))
      const pods = await Promise.all([podd.untilReady('http-hook'), podd.untilReady('sleep-hook')])
      await Promise.all([podd.untilLine('http-hook', / main$/u), podd.untilLine('sleep-hook', / main$/u)])
      expect(pods).toHaveLength(2)
      podd.removeManifest('http-hook')
      await podd.untilGone('http-hook')
      const words = wordsOf(podd.lines('http-hook'))
      expect(words.map((word) => word.split('/')[0])).toEqual(['main', 'asked kube-lifecycle', 'end'])

      podd.removeManifest('sleep-hook')
      const removedAtMs = Date.now()
      await podd.untilGone('sleep-hook')
      expect(Date.now() - removedAtMs).toBeGreaterThan(950)
      expect(await podd.untilWords('sleep-hook', 2)).toEqual(['main', 'end'])
    },
  )

  it.concurrent('runs postStart by HTTP, to the host that it names, before the container is ready', async () => {
    const podd = rig()
    const name = 'post-start'
    const asked: string[] = []
    const answers: (() => void)[] = []
    const server = createServer((request, response) => {
      asked.push(`${request.headers['user-agent']} ${request.url}`)
      answers.push(() => response.writeHead(503).end())
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const { port } = server.address() as AddressInfo
      const httpGet = { host: '127.0.0.1', path: '/up', port }
      podd.drop(name, hooked(name, 'say main; stay', { postStart: { httpGet } }))
      await podd.until('the hook', () => answers.length > 0)
      await podd.untilLine(name, / main$/u)
      const early = await podd.findPod(name)
      expect(early?.status.containerStatuses?.[0]?.ready ?? false).toBe(false)
      for (const answer of answers) answer()
      // Any answer will do, whatever its status.
      const pod = await podd.untilReady(name)
      expect(containerOf(pod, 'main').restartCount).toBe(0)
      expect(asked).toEqual([expect.stringMatching(/^kube-lifecycle\/\S+ \/up$/u)])
      const told = (await podd.events(name)).filter(({ type }) => type === 'Warning')
      expect(told.map(({ reason }) => reason)).toEqual([])
    } finally {
      server.closeAllConnections()
      server.close()
    }
    podd.removeManifest(name)
  })

  it.concurrent('lets commands run in a container whose postStart does not end', async () => {
    const podd = rig()
    const postStart = sh('until [ -e /shared/may-end ]; do sleep 0.1; done')
    podd.drop('hooked-on', hooked('hooked-on', 'say main; stay', { postStart }))
    const inside = await podd.until('an answer from inside', async () => {
      // What the rig appends are arguments of sh.
      const place = ['--socket', podd.socketPath]
      const { code, stdout } = await podd.cli('exec', 'hooked-on', ...place, '--', 'sh', '-c', 'echo inside')
      return code === 0 && stdout
    })
    expect(inside).toBe('inside\n')
    const status = (await podd.findPod('hooked-on'))?.status.containerStatuses?.[0]
    expect(status).toMatchObject({ ready: false, state: { waiting: { reason: 'ContainerCreating' } } })
    podd.touchShared('may-end')
    await podd.untilReady('hooked-on')
    podd.removeManifest('hooked-on')
  })

  it.concurrent(
    'kills by force what ignores SIGTERM for its grace',
    proves('grace', 'PodSpec: terminationGracePeriodSeconds'),
    async () => {
      const podd = rig()
      const script = `trap 'say term' TERM; say main; while :; do sleep 0.1; say alive; done`
      podd.drop('deaf', hooked('deaf', script, {}, 3))
      await podd.untilReady('deaf')
      podd.removeManifest('deaf')
      await podd.untilGone('deaf')
      const lines = podd.lines('deaf')
      const livedSeconds = Number(lines.at(-1)?.split(' ')[0]) - saidAt(lines, 'term')
      expect(livedSeconds).toBeGreaterThan(2.5)
      expect(livedSeconds).toBeLessThan(6 * slowness)
    },
  )

  // id: lets-shorter-grace-cut
  it.concurrent('lets a shorter grace cut an ending short', async () => {
    const podd = rig()
    const script = `trap 'say term' TERM; say main; while :; do sleep 0.1; say alive; done`
    podd.drop('hurry', hooked('hurry', script, {}, 600))
    await podd.untilReady('hurry')
    podd.removeManifest('hurry')
    await podd.untilLine('hurry', / term$/u)
    const pod = await podd.findPod('hurry')
    expect(pod?.metadata).toMatchObject({ deletionGracePeriodSeconds: 600 })
    expect(pod?.metadata.deletionTimestamp).toBeDefined()
    // The suite's `podd down --grace-period 0` ends it, or the suite fails.
  })
})
