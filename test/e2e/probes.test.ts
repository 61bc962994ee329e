import { expect, it } from 'vitest'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import { saidAt, shellPod, wordsOf } from '../support/shell-pods.ts'

const exists = (path: string) => ({ exec: { command: ['test', '-e', path] } })
const always = { periodSeconds: 1, failureThreshold: 1 }

describePodd('probes', { config: { crashLoopBackOff: { maxContainerRestartPeriod: '1s' } } }, (rig) => {
  it.concurrent("restarts a container that fails its liveness probe, with the probe's own grace", async () => {
    const podd = rig()
    const livenessProbe = { ...exists('/tmp/alive'), ...always, terminationGracePeriodSeconds: 2 }
    const script = `trap 'say term' TERM; touch /tmp/alive; say start
      [ $(grep -c start /shared/liveness) -ge 2 ] && stay
      sleep 2; rm /tmp/alive; while :; do sleep 0.1; say alive; done`
    podd.drop(
      'liveness',
      shellPod('liveness', podd.shared, script, {
        container: { livenessProbe },
        spec: { terminationGracePeriodSeconds: 120 },
      }),
    )
    const pod = await podd.untilPod(
      'liveness',
      'a restart',
      (now) => containerOf(now, 'main').restartCount === 1,
    )
    await podd.untilEvent('liveness', 'Unhealthy', /^Liveness probe failed/u)
    await podd.untilEvent('liveness', 'Killing', /Container main failed liveness probe, will be restarted/u)
    const lines = podd.lines('liveness')
    const before = lines.slice(0, wordsOf(lines).lastIndexOf('start'))
    const termSeconds = Number(before.at(-1)?.split(' ')[0]) - saidAt(lines, 'term')
    expect(termSeconds).toBeGreaterThan(1.5)
    expect(termSeconds).toBeLessThan(8)
    expect(containerOf(pod, 'main').lastState.terminated?.exitCode).toBe(137)
    await podd.untilReady('liveness')
    podd.removeManifest('liveness')
  })

  it.concurrent('protects a slow start by a startup probe, and kills one that never comes up', async () => {
    const podd = rig()
    const slow = {
      startupProbe: { ...exists('/tmp/up'), periodSeconds: 1, failureThreshold: 30 },
      livenessProbe: { ...exists('/tmp/up'), ...always },
    }
    const dead = { startupProbe: { ...exists('/tmp/up'), periodSeconds: 1, failureThreshold: 2 } }
    podd.drop(
      'slow',
      shellPod('slow', podd.shared, 'say start; sleep 4; touch /tmp/up; say up; stay', { container: slow }),
    )
    podd.drop('dead', shellPod('dead', podd.shared, 'say start; stay', { container: dead }))
    const early = await podd.untilPod(
      'slow',
      'its process',
      ({ status }) => status.containerStatuses?.[0]?.state.running !== undefined,
    )
    expect(containerOf(early, 'main')).toMatchObject({ started: false, ready: false })
    const pod = await podd.untilReady('slow')
    expect(containerOf(pod, 'main')).toMatchObject({ started: true, restartCount: 0 })
    expect(wordsOf(podd.lines('slow'))).toEqual(['start', 'up'])
    await podd.untilPod('dead', 'a restart', (now) => containerOf(now, 'main').restartCount >= 1)
    await podd.untilEvent('dead', 'Killing', /failed startup probe, will be restarted/u)
    const lines = podd.lines('dead')
    expect(saidAt(lines, 'end') - saidAt(lines, 'start')).toBeGreaterThan(0.9)
    podd.removeManifest('dead')
  })

  it.concurrent.each([
    ['exec', { exec: { command: ['wget', '-qO-', 'http://127.0.0.1:8080/ready'] } }],
    ['http', { httpGet: { path: '/ready', port: 'web' } }],
    ['tcp', { tcpSocket: { port: 8081 } }],
  ])('flips Ready both ways by a readiness probe (%s), and restarts nothing', async (kind, handler) => {
    const podd = rig()
    const name = `ready-${kind}`
    const container = {
      ports: [{ name: 'web', containerPort: 8080 }],
      readinessProbe: { ...handler, ...always },
    }
    // The word in the shared folder rules both: a file that is served, and a port that listens.
    const script = `mkdir -p /www; httpd -p 8080 -h /www; say start
      trap 'exit 0' TERM
      while :; do
        if [ -e /shared/${name}-on ]; then
          [ -e /www/ready ] || { touch /www/ready; httpd -f -p 8081 & pid=$!; say on; }
        else
          [ ! -e /www/ready ] || { rm /www/ready; kill $pid; say off; }
        fi
        sleep 0.05
      done`
    podd.drop(name, shellPod(name, podd.shared, script, { container }))
    const up = await podd.untilPod(
      name,
      'its process',
      ({ status }) => status.containerStatuses?.[0]?.started === true,
    )
    expect(conditionOf(up, 'Ready')).toBe('False')
    expect(conditionOf(up, 'ContainersReady')).toBe('False')
    for (const ready of [true, false, true]) {
      if (ready) podd.touchShared(`${name}-on`)
      else podd.removeShared(`${name}-on`)
      const before = podd.lines(name).length
      await podd.until('the switch', () => podd.lines(name).length > before)
      const switchedMs = performance.now()
      await podd.untilPod(
        name,
        `Ready ${ready}`,
        (pod) => conditionOf(pod, 'Ready') === (ready ? 'True' : 'False'),
      )
      // Within one period, and what a busy machine takes for a probe.
      expect(performance.now() - switchedMs).toBeLessThan(3500)
    }
    await podd.untilEvent(name, 'Unhealthy', /^Readiness probe failed/u)
    const pod = await podd.findPod(name)
    expect(pod === undefined ? -1 : containerOf(pod, 'main').restartCount).toBe(0)
    podd.removeManifest(name)
  })

  it.concurrent('counts a probe that hangs as failed in time, although a grandchild holds its output', async () => {
    const podd = rig()
    const livenessProbe = {
      exec: { command: ['sh', '-c', 'sleep 1000 & sleep 1000'] },
      periodSeconds: 1,
      timeoutSeconds: 1,
      failureThreshold: 2,
      terminationGracePeriodSeconds: 2,
    }
    podd.drop('hangs', shellPod('hangs', podd.shared, 'say start; stay', { container: { livenessProbe } }))
    await podd.untilPod('hangs', 'a restart', (pod) => containerOf(pod, 'main').restartCount >= 1)
    const lines = podd.lines('hangs')
    // Two probes of one second each, and the restart.
    const secondsToEnd = saidAt(lines, 'end') - saidAt(lines, 'start')
    expect(secondsToEnd).toBeGreaterThan(1.5)
    expect(secondsToEnd).toBeLessThan(12)
    await podd.untilEvent('hangs', 'Unhealthy', /^Liveness probe failed/u)
    podd.removeManifest('hangs')
  })

  it.concurrent('shows the probes and their last failure in `describe`', async () => {
    const podd = rig()
    const readinessProbe = { exec: { command: ['sh', '-c', 'echo not yet; exit 1'] }, ...always }
    podd.drop('never', shellPod('never', podd.shared, 'stay', { container: { readinessProbe } }))
    await podd.untilEvent('never', 'Unhealthy', /not yet/u)
    const text = await podd.cliOk('describe', 'pod', 'never')
    expect(text).toMatch(
      /Readiness: +exec \[sh -c echo not yet; exit 1\] delay=0s timeout=1s period=1s #success=1 #failure=1/u,
    )
    expect(text).toMatch(/Unhealthy.*Readiness probe failed: not yet/u)
    podd.removeManifest('never')
  })
})
