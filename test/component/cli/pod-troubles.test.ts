import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Problem } from '../../../src/pod/objects/document.ts'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli } from '../../support/cli-rig.ts'
import type { CliOutcome } from '../../support/cli-rig.ts'
import { containerStatus, eventObject, podObject, terminated } from '../../support/pod-objects.ts'
import { formatTime } from '../../../src/base/clock.ts'

let rig: ApiRig
beforeEach(async () => {
  rig = await ApiRig.start()
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

const podd = (line: string): Promise<CliOutcome> =>
  callCli(line.split(' '), { env: { PODD_SOCKET: rig.socketPath } })

/** A pod whose container waits, after it has ended. */
function crashing(name: string, message?: string) {
  const { terminated: end } = terminated(1)
  return podObject({
    name,
    status: {
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: [
        containerStatus('main', {
          ready: false,
          restartCount: 3,
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s restarting' } },
          lastState:
            end === undefined ? {} : { terminated: { ...end, ...(message !== undefined && { message }) } },
        }),
      ],
    },
  })
}

function waiting(name: string, reason: string, message: string) {
  return podObject({
    name,
    status: {
      phase: 'Pending',
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: [containerStatus('main', { ready: false, state: { waiting: { reason, message } } })],
    },
  })
}

const problem = (path: string, severity: Problem['severity'] = 'error'): Problem => ({
  severity,
  place: { path, line: 7, column: 5 },
  field: 'spec.contaners',
  message: 'unknown field',
})

describe('podd get pods', () => {
  it('says below the table why a pod is broken', async () => {
    rig.pods.put(podObject({ name: 'fine' }))
    rig.pods.put(waiting('image', 'ImagePullBackOff', 'Back-off pulling image "nope:1": not found'))
    rig.pods.put(
      podObject({
        name: 'room',
        status: { phase: 'Pending', reason: 'Blocked', message: 'Insufficient memory' },
      }),
    )
    expect((await podd('get pods')).stderr).toBe(
      ['image: main: Back-off pulling image "nope:1": not found', 'room: Insufficient memory', ''].join('\n'),
    )
    expect((await podd('get pods -o json')).stderr).toBe('')
  })

  it('says of a crashed container how it ended, with the last line of its log', async () => {
    rig.pods.put(crashing('app'))
    rig.pods.put(crashing('told', 'exec: "httpdd": executable file not found in $PATH'))
    const logs = join(rig.podLogsDir, 'default_app_uid-app', 'main')
    await mkdir(logs, { recursive: true })
    const line = (text: string): string => `2026-01-01T00:00:00Z stdout F ${text}\n`
    await writeFile(join(logs, '2.log'), line('of the run before that'))
    await writeFile(join(logs, '3.log'), line('starting') + line('bind: address already in use'))
    const { stderr } = await podd('get pods')
    expect(stderr).toContain('app: main: exit code 1: bind: address already in use\n')
    expect(stderr).toContain('told: main: exit code 1: exec: "httpdd": executable file not found in $PATH\n')
  })

  it('says of a crashed container that writes long lines what the last one is', async () => {
    rig.pods.put(crashing('app'))
    const logs = join(rig.podLogsDir, 'default_app_uid-app', 'main')
    await mkdir(logs, { recursive: true })
    const lines = Array.from({ length: 10 }, (_, at) => `error ${at}: ${'x'.repeat(2000)} end of ${at}`)
    await writeFile(
      join(logs, '3.log'),
      lines.map((line) => `2026-01-01T00:00:00Z stdout F ${line}\n`).join(''),
    )
    expect((await podd('get pods')).stderr).toMatch(/ end of 9\n$/u)
  })

  it('says of a pod that is not ready what its probe found, and nothing before one has failed', async () => {
    const unready = (name: string) =>
      podObject({
        name,
        status: {
          conditions: [{ type: 'Ready', status: 'False' }],
          containerStatuses: [containerStatus('main', { ready: false })],
        },
      })
    rig.pods.put(unready('starts'))
    rig.pods.put(unready('web'))
    rig.events.put(
      eventObject('e', {
        type: 'Warning',
        reason: 'Unhealthy',
        message: 'Readiness probe failed: HTTP probe failed with statuscode: 404',
        involvedObject: {
          kind: 'Pod',
          namespace: 'default',
          name: 'web',
          uid: 'uid-web',
          fieldPath: 'spec.containers{main}',
        },
      }),
    )
    expect((await podd('get pods')).stderr).toBe(
      'web: main: not ready: Readiness probe failed: HTTP probe failed with statuscode: 404\n',
    )
  })

  it('counts what is more than a screen has room for', async () => {
    for (let at = 0; at < 8; at += 1) rig.pods.put(waiting(`p${at}`, 'ErrImagePull', 'x'.repeat(300)))
    const problems = [
      problem('/etc/pods/a.yaml'),
      problem('/etc/pods/b.yaml'),
      problem('/etc/pods/c.yaml', 'warning'),
    ]
    rig.status = { ...rig.status, problems }
    const lines = (await podd('get pods')).stderr.trimEnd().split('\n')
    expect(lines).toHaveLength(7)
    expect(lines.slice(5)).toEqual([
      '3 more pods with problems: `podd status` lists them',
      'error: 2 errors and 1 warning in manifests: `podd status` lists them',
    ])
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(160)
  })

  it('shows the problems of pods that run by an older version, and counts those of other documents', async () => {
    rig.pods.put(podObject({ name: 'web' }))
    const problems = [
      {
        ...problem('/etc/pods/web.yaml'),
        object: 'default/web',
        message: 'the new version is not applied: no port',
      },
      problem('/etc/pods/b.yaml'),
      { ...problem('/etc/pods/c.yaml'), object: 'default/other' },
    ]
    rig.status = { ...rig.status, problems }
    expect((await podd('get pods')).stderr).toBe(
      [
        'error: /etc/pods/web.yaml:7:5: spec.contaners: the new version is not applied: no port',
        'error: 2 errors more in manifests: `podd status` lists them',
        '',
      ].join('\n'),
    )
  })

  it('shows a single problem of the manifests itself', async () => {
    rig.status = { ...rig.status, problems: [problem('/etc/pods/a.yaml')] }
    expect((await podd('get pods')).stderr).toBe(
      'No pods found in namespace default\nerror: /etc/pods/a.yaml:7:5: spec.contaners: unknown field\n',
    )
  })

  it('has room for names, states and manifests within 100 columns with -o wide', async () => {
    rig.pods.put(
      podObject({
        name: 'home-assistant',
        metadata: { annotations: { 'podd.dev/path': '/etc/pods/home-assistant.yaml' } },
        status: { podIP: '10.88.100.100', podIPs: [{ ip: '10.88.100.100' }] },
      }),
    )
    const lines = (await podd('get pods -o wide')).stdout.split('\n')
    expect(lines[0]).toMatch(/^NAME +READY +STATUS +RESTARTS +AGE +IP +SOURCE$/u)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100)
  })
})

describe('the column STATUS', () => {
  it.each<[told: string, env: Record<string, string>, isTerminal: boolean, expected: string]>([
    ['has a colour on a terminal', {}, true, '\u{1b}[31mImagePullBackOff\u{1b}[0m'],
    ['has none in a pipe', {}, false, 'ImagePullBackOff'],
    ['has none where NO_COLOR asks for that', { NO_COLOR: '1' }, true, 'ImagePullBackOff'],
    ['has none on a dumb terminal', { TERM: 'dumb' }, true, 'ImagePullBackOff'],
  ])('%s', async (_told, env, isTerminal, expected) => {
    rig.pods.put(waiting('image', 'ImagePullBackOff', 'not found'))
    const { stdout } = await callCli(['get', 'pods'], {
      env: { PODD_SOCKET: rig.socketPath, ...env },
      isTerminal,
    })
    const [titles = '', row = ''] = stdout.split('\n')
    expect(titles).toMatch(/^NAME +READY +STATUS +RESTARTS/u)
    expect(row.split(/ {2,}/u)[2]).toBe(expected)
    // The colour takes no room.
    const plain = row.replace(expected, 'ImagePullBackOff')
    expect(plain.lastIndexOf(' 0 ') + 1).toBe(titles.indexOf('RESTARTS'))
  })
})

describe('podd status', () => {
  it('lists the broken pods with their reasons, and of other errors the newest of each cause', async () => {
    rig.pods.put(waiting('image', 'ErrImagePull', 'not found'))
    const restarted = { containerStatuses: [containerStatus('main', { restartCount: 1 })] }
    rig.pods.put(podObject({ name: 'web', status: restarted }))
    rig.pods.put(podObject({ name: 'fresh' }))
    const warning = (name: string, of: string, reason: string, message: string, second: number): void =>
      rig.events.put(
        eventObject(name, {
          type: 'Warning',
          reason,
          message,
          lastTimestamp: formatTime(Date.now() - 60_000 + second * 1000),
          involvedObject: { kind: 'Pod', namespace: 'default', name: of, uid: `uid-${of}` },
        }),
      )
    warning('a', 'image', 'Failed', 'of a pod that is broken now', 1)
    warning('b', 'web', 'Unhealthy', 'the first time', 2)
    warning('c', 'web', 'Unhealthy', 'the last time', 3)
    warning('d', 'web', 'BackOff', 'Back-off restarting failed container', 4)
    warning('e', 'web', 'Failed', 'Error: ErrImagePull', 5)
    warning('g', 'fresh', 'Unhealthy', 'of a pod that took its time to become ready', 6)
    warning('f', 'gone', 'Failed', 'of a pod that is gone', 6)
    const { stdout } = await podd('status')
    expect(stdout).toMatch(/^BROKEN PODS +STATUS +WHY\ndefault\/image +ErrImagePull +main: not found$/mu)
    expect(stdout).toContain('the last time')
    for (const left of ['the first time', 'of a pod that', 'Back-off', 'Error: ErrImagePull\n'])
      expect(stdout).not.toContain(left)
    expect(JSON.parse((await podd('status -o json')).stdout)).toMatchObject({
      troubles: [{ pod: 'default/image', status: 'ErrImagePull', why: 'main: not found' }],
    })
  })
})

describe('a pod that is not there', () => {
  it.each(['get pod press', 'describe pod press', 'logs press', 'restart press'])(
    'has its manifest named where that is not followed: podd %s',
    async (line) => {
      rig.pods.put(podObject({ name: 'xpress' }))
      rig.status = {
        ...rig.status,
        problems: [problem('/etc/pods/other.yaml'), problem('/etc/pods/press.yaml')],
      }
      expect((await podd(line)).stderr).toContain(
        'Its manifest is not followed: /etc/pods/press.yaml:7:5: spec.contaners: unknown field',
      )
      rig.status = {
        ...rig.status,
        problems: [{ ...problem('/etc/pods/all.yaml'), object: 'default/press' }],
      }
      expect((await podd(line)).stderr).toContain('/etc/pods/all.yaml:7:5')
      rig.status = { ...rig.status, problems: [problem('/etc/pods/press.yaml', 'warning')] }
      expect((await podd(line)).stderr).not.toContain('not followed')
    },
  )
})

describe('podd restart-daemon', () => {
  it('waits until podd runs again', async () => {
    const call = podd('restart-daemon')
    await expect.poll(() => rig.restarts).toBe(1)
    rig.status = { ...rig.status, startedAt: '2026-01-02T00:00:00Z', pid: 42 }
    expect(await call).toEqual({ exitCode: 0, stdout: 'podd 0.1.0 runs again (pid 42)\n', stderr: '' })
  })
})

describe('a long reason', () => {
  it('keeps its end, where the cause stands', async () => {
    const message =
      'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "httpdd": executable file not found in $PATH: unknown'
    rig.pods.put(crashing('app', message))
    const line = (await podd('get pods')).stderr.trimEnd()
    expect(line.length).toBeLessThanOrEqual(160)
    expect(line).toMatch(
      /^app: main: exit code 1: .*… .*exec: "httpdd": executable file not found in \$PATH: unknown$/u,
    )
  })

  it('of a volume that cannot be mounted is one, and the progress of a pull is none', async () => {
    const message = 'MountVolume.SetUp failed for volume "s" : secret "login" not found'
    rig.pods.put(waiting('mount', 'ContainerCreating', message))
    rig.pods.put(waiting('pull', 'ContainerCreating', 'pulling image "web:1": 1.0 MiB of 4.0 MiB'))
    for (const name of ['mount', 'pull'])
      rig.events.put(
        eventObject(name, {
          type: 'Warning',
          reason: 'FailedMount',
          message,
          involvedObject: { kind: 'Pod', namespace: 'default', name, uid: `uid-${name}` },
        }),
      )
    expect((await podd('get pods')).stderr).toBe(
      `pull: pulling image "web:1": 1.0 MiB of 4.0 MiB\nmount: main: ${message}\n`,
    )
    expect((await podd('status')).stdout).not.toContain('default/pull')
  })
})
