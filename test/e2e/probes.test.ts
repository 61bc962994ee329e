import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import type { ProbeReportObject } from '../../src/api/usage.ts'
import { freePort } from '../support/free-port.ts'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { saidAt, shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

const exists = (path: string) => ({ exec: { command: ['test', '-e', path] } })
/** One failure counts; that a busy machine takes its time is none. */
const always = { periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 10 * slowness }

describePodd('probes', {}, (rig) => {
  it.concurrent(
    "restarts a container that fails its liveness probe, with the probe's own grace",
    proves(
      'liveness',
      'Container: livenessProbe',
      'Probe: exec periodSeconds failureThreshold terminationGracePeriodSeconds',
      'ExecAction: command',
    ),
    async () => {
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
      const startedAgain = () => wordsOf(podd.lines('liveness')).filter((word) => word === 'start').length > 1
      await podd.until('its second start', startedAgain)
      const lines = podd.lines('liveness')
      const before = lines.slice(0, wordsOf(lines).lastIndexOf('start'))
      const termSeconds = Number(before.at(-1)?.split(' ')[0]) - saidAt(lines, 'term')
      expect(termSeconds).toBeGreaterThan(1.5)
      expect(termSeconds).toBeLessThan(8 * slowness)
      expect(containerOf(pod, 'main').lastState.terminated?.exitCode).toBe(137)
      await podd.untilReady('liveness')
      podd.removeManifest('liveness')
    },
  )

  it.concurrent(
    'protects a slow start by a startup probe, and kills one that never comes up',
    proves('startup', 'Container: startupProbe'),
    async () => {
      const podd = rig()
      const slow = {
        startupProbe: { ...exists('/tmp/up'), ...always, failureThreshold: 30 },
        livenessProbe: { ...exists('/tmp/up'), ...always },
      }
      const dead = { startupProbe: { ...exists('/tmp/up'), ...always, failureThreshold: 2 } }
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
      expect(await podd.untilWords('slow', 2)).toEqual(['start', 'up'])
      await podd.untilPod('dead', 'a restart', (now) => containerOf(now, 'main').restartCount >= 1)
      await podd.untilEvent('dead', 'Killing', /failed startup probe, will be restarted/u)
      const lines = podd.lines('dead')
      expect(saidAt(lines, 'end') - saidAt(lines, 'start')).toBeGreaterThan(0.9)
      podd.removeManifest('dead')
    },
  )

  it.concurrent.each([
    ['exec', { exec: { command: ['wget', '-qO-', 'http://127.0.0.1:8080/ready'] } }],
    ['http', { httpGet: { path: '/ready', port: 'web' } }],
    ['tcp', { tcpSocket: { port: 8081 } }],
  ])(
    'flips Ready both ways by a readiness probe (%s), and restarts nothing',
    proves(
      'readiness',
      'Container: readinessProbe',
      'Probe: httpGet tcpSocket',
      'HTTPGetAction: path port',
      'TCPSocketAction: port',
    ),
    async (kind, handler) => {
      const podd = rig()
      const name = `ready-${kind}`
      const container = {
        ports: [{ name: 'web', containerPort: 8080 }],
        readinessProbe: { ...handler, ...always },
      }
      // The word in the shared directory rules both: a file that is served, and a port that listens.
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
        const before = podd.lines(name).length
        if (ready) podd.touchShared(`${name}-on`)
        else podd.removeShared(`${name}-on`)
        await podd.until('the switch', () => podd.lines(name).length > before)
        const switchedMs = performance.now()
        await podd.untilPod(
          name,
          `Ready ${ready}`,
          (pod) => conditionOf(pod, 'Ready') === (ready ? 'True' : 'False'),
        )
        // Within one period, and what a busy machine takes for a probe.
        expect(performance.now() - switchedMs).toBeLessThan(3500 * slowness)
      }
      await podd.untilEvent(name, 'Unhealthy', /^Readiness probe failed/u)
      const pod = await podd.findPod(name)
      expect(pod === undefined ? -1 : containerOf(pod, 'main').restartCount).toBe(0)
      podd.removeManifest(name)
    },
  )

  it.concurrent('flips Ready both ways by a gRPC readiness probe of a named service', async () => {
    const podd = rig()
    // It takes all of its time while nobody listens.
    const timeoutSeconds = Math.ceil(Math.min(3 * slowness, 50))
    const readinessProbe = { grpc: { port: 9000, service: 'orders' }, ...always, timeoutSeconds }
    podd.drop('grpc', shellPod('grpc', podd.shared, 'say start; stay', { container: { readinessProbe } }))
    const up = await podd.untilPod(
      'grpc',
      'its process',
      ({ status }) => status.containerStatuses?.[0]?.started === true,
    )
    const ready = (wanted: 'True' | 'False') =>
      podd.untilPod('grpc', `Ready ${wanted}`, (pod) => conditionOf(pod, 'Ready') === wanted)
    await podd.untilEvent(
      'grpc',
      'Unhealthy',
      new RegExp(`failed to connect service "[0-9.]+:9000" within ${timeoutSeconds}s`, 'u'),
    )
    const server = await serveHealth(podd.pidOf(containerOf(up, 'main').containerID ?? ''), 9000)
    try {
      await podd.untilEvent('grpc', 'Unhealthy', /rpc error: code = NotFound desc = unknown service/u)
      for (const [state, wanted] of [
        ['SERVING', 'True'],
        ['NOT_SERVING', 'False'],
        ['SERVING', 'True'],
      ] as const) {
        await server.say(`orders ${state}`)
        const saidMs = performance.now()
        await ready(wanted)
        expect(performance.now() - saidMs).toBeLessThan(3500 * slowness)
      }
      await podd.untilEvent('grpc', 'Unhealthy', /service unhealthy \(responded with "NOT_SERVING"\)/u)
    } finally {
      await server.end()
    }
    await ready('False')
    podd.removeManifest('grpc')
  })

  it.concurrent("probes a pod on the host's network at the host's address", async () => {
    const podd = rig()
    const port = await freePort()
    const container = {
      startupProbe: { tcpSocket: { port }, ...always, failureThreshold: 60 },
      readinessProbe: { httpGet: { path: '/ready', port }, ...always },
      livenessProbe: { tcpSocket: { port, host: '127.0.0.1' }, ...always },
    }
    const script = `mkdir -p /www; httpd -p ${port} -h /www; say start
      trap 'exit 0' TERM
      while :; do [ ! -e /shared/on-host-on ] || touch /www/ready; sleep 0.05; done`
    const spec = { hostNetwork: true }
    podd.drop('on-host', shellPod('on-host', podd.shared, script, { container, spec }))
    await podd.untilEvent('on-host', 'Unhealthy', /Readiness probe failed: HTTP probe failed .* 404/u)
    podd.touchShared('on-host-on')
    const pod = await podd.untilReady('on-host')
    expect(containerOf(pod, 'main')).toMatchObject({ started: true, restartCount: 0 })
    expect(pod.status.podIP).toBe(pod.status.hostIP)
    podd.removeManifest('on-host')
  })

  it.concurrent(
    'counts a probe that hangs as failed in time, although a grandchild holds its output',
    proves('timeout', 'Probe: timeoutSeconds'),
    async () => {
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
      expect(secondsToEnd).toBeLessThan(12 * slowness)
      await podd.untilEvent('hangs', 'Unhealthy', /^Liveness probe failed/u)
      podd.removeManifest('hangs')
    },
  )

  it.concurrent('shows the probes and their last failure in `describe`', async () => {
    const podd = rig()
    const readinessProbe = {
      exec: { command: ['sh', '-c', 'echo not yet; exit 1'] },
      ...always,
      timeoutSeconds: 20,
    }
    podd.drop('never', shellPod('never', podd.shared, 'stay', { container: { readinessProbe } }))
    await podd.untilEvent('never', 'Unhealthy', /not yet/u)
    const text = await podd.cliOk('describe', 'pod', 'never')
    expect(text).toMatch(
      /Readiness: +exec \[sh -c echo not yet; exit 1\] delay=0s timeout=20s period=1s #success=1 #failure=1\n +Last Failure: .*\n +Readiness probe failed: not yet\n/u,
    )
    expect(text).toMatch(/Unhealthy.*Readiness probe failed: not yet/u)
    const [report, ...more] = await podd.get<readonly ProbeReportObject[]>(
      '/podd/v1/namespaces/default/pods/never/probes',
    )
    expect(more).toEqual([])
    expect(report).toMatchObject({ container: 'main', probe: 'readiness', result: 'failure' })
    expect(report?.counts.failure).toBeGreaterThan(0)
    expect(report?.counts.success).toBe(0)
    podd.removeManifest('never')
  })
})

/** A gRPC health server in the network of the pod that the process belongs to. */
async function serveHealth(pid: number, port: number) {
  const program = new URL('../support/grpc-health-server.ts', import.meta.url).pathname
  const args = [`--net=/proc/${pid}/ns/net`, process.execPath, program, String(port)]
  const child = spawn('nsenter', args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise<void>((resolve, reject) => {
    child.once('exit', () => resolve())
    child.once('error', reject)
  })
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const hear = async (wanted: string): Promise<void> => {
    const { value } = await answers.next()
    if (value !== wanted) throw new Error(`the health server said ${value}, not ${wanted}`)
  }
  await hear('listening')
  return {
    say: async (line: string): Promise<void> => {
      child.stdin.write(`${line}\n`)
      await hear(line)
    },
    end: async (): Promise<void> => {
      child.stdin.end()
      await ended
    },
  }
}
