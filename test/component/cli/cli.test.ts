import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile, readFile, readdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir, uptime } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it, vi } from 'vitest'
import { parse } from 'yaml'
import type { DaemonStatus } from '../../../src/api/routes.ts'
import { PoddError } from '../../../src/base/errors.ts'
import type { DaemonActions, DownRequest, RunRequest } from '../../../src/cli/arguments/verb.ts'
import { verbHelp } from '../../../src/cli/help.ts'
import { verbs } from '../../../src/cli/verbs.ts'
import { completeConfig, listOptions } from '../../../src/config/options.ts'
import type { PoddConfig } from '../../../src/config/options.ts'
import type { DoctorFinding } from '../../../src/decide/doctor/doctor-finding.ts'
import { markRemoved } from '../../../src/logs/container-log-directories.ts'
import { ApiRig } from '../../support/api-rig.ts'
import type { CliOptions, CliOutcome } from '../../support/cli-rig.ts'
import { callCli, startCli } from '../../support/cli-rig.ts'
import { containerStatus, eventObject, podObject, terminated } from '../../support/pod-objects.ts'

let rig: ApiRig
beforeEach(async () => {
  rig = await ApiRig.start()
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

const withSocket = (options: CliOptions = {}): CliOptions => ({
  ...options,
  env: { PODD_SOCKET: rig.socketPath },
})
const podd = (line: string, options: CliOptions = {}): Promise<CliOutcome> =>
  callCli(
    line.split(' ').filter((word) => word !== ''),
    withSocket(options),
  )
const recent = (secondsAgo: number): string => new Date(Date.now() - secondsAgo * 1000).toISOString()

describe('podd status', () => {
  const jobsOf = () => [
    { name: 'limit-volumes', periodSeconds: 10, running: false, runs: 0 },
    {
      name: 'rotate-logs',
      periodSeconds: 10,
      running: false,
      runs: 3,
      lastStartTime: recent(4),
      lastDurationMs: 12,
      error: 'no answer',
    },
  ]

  it('shows the host, the runtime, the sources, the pods, the last errors, and the periodic work that failed', async () => {
    vi.setSystemTime(Date.now())
    rig.status = { ...rig.status, startedAt: recent(300), jobs: jobsOf() }
    rig.pods.put(podObject({ metadata: { name: 'web' }, status: { phase: 'Running' } }))
    for (const [type, reason, message] of [
      ['Warning', 'DiskFull', 'no space'],
      ['Normal', 'Started', 'all is well'],
    ] as const)
      rig.events.put(
        eventObject(reason, {
          type,
          reason,
          message,
          lastTimestamp: recent(300),
          involvedObject: { kind: 'Node', namespace: '', name: 'box', uid: 'box' },
        }),
      )
    const { exitCode, stdout } = await podd('status')
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^Daemon: +podd 0\.1\.0 \(pid 42\), started 5m ago$/mu)
    expect(stdout).toMatch(/^Runtime: +containerd 2\.1\.0 \(embedded\), healthy$/mu)
    expect(stdout).toMatch(/^file +yes +0 +\/etc\/pods$/mu)
    expect(stdout).toMatch(/^Host: +\S+ \(.+\), Linux \S+, \d+ CPUs, .+iB, up \S+$/mu)
    expect(stdout).toMatch(/^Pods: +1: 1 Running; \d ready$/mu)
    expect(stdout).toMatch(/^Node jobs: +rotate-logs failed \ds ago: no answer$/mu)
    expect(stdout).toMatch(/^5m ago +Node +DiskFull +no space$/mu)
    expect(stdout).not.toContain('all is well')
    // One screen.
    expect(stdout.split('\n').length).toBeLessThan(24)
  })

  it('leaves out what is over: an error from before a boot, or a day ago, of the node or a pod that is ready again', async () => {
    vi.setSystemTime(Date.now())
    const ready = {
      type: 'Ready',
      status: 'True',
      lastTransitionTime: recent(60),
      observedGeneration: 1,
    } as const
    const pod = podObject({ name: 'web', status: { phase: 'Running', conditions: [ready] } })
    rig.pods.put(pod)
    const { uid } = pod.metadata
    const web = { kind: 'Pod', namespace: 'default', name: 'web', uid }
    const backup = { kind: 'Job', namespace: 'default', name: 'backup', uid: 'j' }
    const box = { kind: 'Node', namespace: '', name: 'box', uid: 'box' }
    for (const [reason, involvedObject, ageSeconds] of [
      ['FailedMount', web, 25 * 3600],
      ['RuntimeUnavailable', box, uptime() + 60],
      ['BackoffLimitExceeded', backup, 25 * 3600],
      ['FailedPreStopHook', web, 1],
    ] as const)
      rig.events.put(
        eventObject(reason, { type: 'Warning', reason, lastTimestamp: recent(ageSeconds), involvedObject }),
      )
    const reasons = async (): Promise<unknown> =>
      JSON.parse((await podd('status -o json')).stdout).lastErrors.map(
        ({ reason }: { readonly reason: string }) => reason,
      )
    expect(await reasons()).toEqual(['BackoffLimitExceeded', 'FailedPreStopHook'])
    // While it starts, nobody knows.
    rig.pods.put({ ...pod, status: { ...pod.status, phase: 'Pending', conditions: [] } })
    expect(await reasons()).toEqual(['FailedMount', 'BackoffLimitExceeded', 'FailedPreStopHook'])
  })

  it('fails where the runtime does not work, and says why', async () => {
    const runtime = { ...rig.status.runtime, healthy: false, message: 'containerd is gone' }
    rig.status = { ...rig.status, runtime }
    const { exitCode, stdout } = await podd('status')
    expect(exitCode).toBe(1)
    expect(stdout).toContain('the embedded containerd does not work: containerd is gone')
  })

  it('says why pods get no network where the runtime works otherwise', async () => {
    const runtime = { ...rig.status.runtime, message: 'container runtime network not ready: no CNI config' }
    rig.status = { ...rig.status, runtime }
    const { stdout } = await podd('status')
    expect(stdout).toMatch(/^warning: container runtime network not ready: no CNI config$/mu)
    expect((await podd('get pods')).stderr).toContain('warning: container runtime network not ready')
  })

  it('names the report of the last crash', async () => {
    vi.setSystemTime(Date.now())
    const crashes = [{ time: recent(7200), report: '/var/lib/podd/crash/1.json' }]
    rig.status = { ...rig.status, crashes }
    expect((await podd('status')).stdout).toMatch(
      /^warning: podd crashed 120m ago and restarted: \/var\/lib\/podd\/crash\/1\.json$/mu,
    )
  })

  it('reads the files of a daemon that is dead, and says that it is', async () => {
    vi.setSystemTime(Date.now())
    const runDir = join(rig.directory, 'dead')
    const state = (path: string, content: object): Promise<void> =>
      writeFile(join(rig.directory, path), JSON.stringify(content))
    for (const name of ['records', 'sources', 'crash']) await mkdir(join(rig.directory, name))
    await state('records/u.json', { version: 1, namespace: 'default', name: 'web' })
    await state('records/torn.json.unreadable', {})
    await state('sources/file.json', {
      version: 1,
      location: '/etc/pods',
      documents: [{ manifest: { kind: 'Pod' } }],
    })
    const event = { type: 'Warning', reason: 'DiskFull', message: 'no space' }
    const lastAtMs = Date.now() - 300_000
    await state('events.json', { version: 2, events: [{ event, firstAtMs: 0, lastAtMs, count: 3 }] })
    await state(`crash/${Date.now() - 60_000}.json`, {})
    const dead = (...words: readonly string[]): Promise<CliOutcome> =>
      callCli(['status', ...words, '--root-dir', rig.directory, '--run-dir', runDir], {
        env: { PODD_SOCKET: join(runDir, 'podd.sock') },
      })
    const { exitCode, stdout } = await dead()
    expect(exitCode).toBe(1)
    expect(stdout).toMatch(/^Daemon: +not running: /mu)
    expect(stdout).toMatch(/^Pods: +1 on record, 0 with processes$/mu)
    expect(stdout).toMatch(/^file +1 +\/etc\/pods$/mu)
    expect(stdout).toMatch(/^5m ago \(x3\) +Node +DiskFull +no space$/mu)
    expect(stdout).toMatch(/^warning: \S+torn\.json\.unreadable was put aside$/mu)
    expect(stdout).toMatch(/^warning: podd crashed 60s ago/mu)
    expect(JSON.parse((await dead('-o', 'json')).stdout)).toMatchObject({
      running: false,
      pods: ['default/web'],
    })
  })

  it('is a report for programs', async () => {
    const jobs = jobsOf()
    rig.status = { ...rig.status, jobs }
    const report = JSON.parse((await podd('status -o json')).stdout)
    expect(report).toMatchObject({ apiVersion: 'podd.dev/v1', kind: 'StatusReport', pid: 42, jobs })
  })
})

describe('podd get of configs and claims', () => {
  const meta = (name: string) => ({
    name,
    namespace: 'default',
    uid: `uid-${name}`,
    creationTimestamp: new Date(Date.now() - 300_500).toISOString(),
  })
  beforeEach(() => {
    rig.configmaps.put({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: meta('settings'),
      data: { b: '2', a: '1' },
    })
    rig.secrets.put({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: meta('tls'),
      type: 'Opaque',
      data: { word: Buffer.from('hunter2').toString('base64') },
    })
    rig.claims.put({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: meta('data'),
      status: { phase: 'Released', path: '/claims/data', usedBytes: 1536 },
    })
  })

  it.each([
    ['configmaps', 'NAME       DATA   AGE   KEYS\nsettings   2      5m    a,b\n'],
    ['secrets', 'NAME   TYPE     DATA   AGE   KEYS\ntls    Opaque   1      5m    word\n'],
    [
      'pvc',
      'NAME   STATUS     CAPACITY   USED    ACCESS MODES   STORAGECLASS   AGE\ndata   Released              1.5Ki                                 5m\n',
    ],
  ])('shows %s in a table', async (resource, table) => {
    expect(await podd(`get ${resource}`)).toEqual({ exitCode: 0, stdout: table, stderr: '' })
  })

  it('shows the values of a Secret to who asks for its data, and to nobody else', async () => {
    const value = Buffer.from('hunter2').toString('base64')
    const shown = await podd('get secret tls -o yaml')
    expect(parse(shown.stdout)).toMatchObject({ kind: 'Secret', type: 'Opaque', data: { word: value } })
    expect(JSON.parse((await podd('get secrets -o json')).stdout)).toMatchObject({
      kind: 'List',
      items: [{ data: { word: value } }],
    })
    for (const line of ['get secrets', 'get secrets -o wide', 'get secrets -o name', 'describe secret tls'])
      expect((await podd(line)).stdout).not.toMatch(/hunter2|aHVudGVyMg/u)
    expect((await podd('describe secret tls')).stdout).toContain('word: <7 bytes>')
  })

  it('says how much binary data a ConfigMap has', async () => {
    expect((await podd('describe cm settings')).stdout).not.toContain('BinaryData')
    rig.configmaps.put({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: meta('images'),
      data: { a: '1' },
      binaryData: { logo: Buffer.alloc(10).toString('base64'), empty: '' },
    })
    expect((await podd('describe cm images')).stdout).toMatch(
      /\nData:\n  a: 1\n\nBinaryData\n====\nempty: 0 bytes\nlogo: 10 bytes\n$/u,
    )
  })

  it.each(['configmaps', 'secrets'])('goes on with each change of %s', async (resource) => {
    using call = startCli(['get', resource, '-w'], withSocket())
    await expect.poll(() => call.stdout().split('\n').length).toBe(3)
    const late = { apiVersion: 'v1', metadata: meta('late'), data: { key: '' } } as const
    rig.configmaps.put({ ...late, kind: 'ConfigMap' })
    rig.secrets.put({ ...late, kind: 'Secret', type: 'Opaque' })
    await expect.poll(() => call.stdout()).toMatch(/\nlate .*1 +5m +key\n$/u)
    call.interrupt()
    expect((await call.outcome).exitCode).toBe(130)
  })
})

describe('podd get pods', () => {
  beforeEach(() => {
    // Ages are told by the second.
    vi.setSystemTime(Date.now())
    rig.pods.put(
      podObject({
        name: 'web',
        metadata: { creationTimestamp: recent(300), annotations: { 'podd.dev/path': '/etc/pods/web.yaml' } },
        spec: { nodeName: 'box' },
        status: { podIP: '10.88.0.2', podIPs: [{ ip: '10.88.0.2' }] },
      }),
    )
    const crashing = containerStatus('main', {
      ready: false,
      restartCount: 3,
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { exitCode: 1, finishedAt: recent(20) } },
    })
    rig.pods.put(
      podObject({
        name: 'a-longer-name',
        metadata: { creationTimestamp: recent(7200) },
        status: { containerStatuses: [crashing] },
      }),
    )
    rig.pods.put(podObject({ name: 'till', namespace: 'shop', metadata: { creationTimestamp: recent(60) } }))
  })

  afterEach(() => void vi.useRealTimers())

  it('shows a table as kubectl does', async () => {
    const { exitCode, stdout, stderr } = await podd('get pods')
    expect(exitCode).toBe(0)
    expect(stderr).toBe('a-longer-name: main: exit code 1\n')
    expect(stdout).toBe(`NAME            READY   STATUS             RESTARTS      AGE
a-longer-name   0/1     CrashLoopBackOff   3 (20s ago)   120m
web             1/1     Running            0             5m
`)
  })

  it.each<[line: string, stdout: string]>([
    ['get pods -A -o jsonpath={.items[*].metadata.name} --sort-by .metadata.name', 'a-longer-name till web'],
    ['get pod web -o jsonpath={.status.podIP}', '10.88.0.2'],
    ['get pods -A --field-selector metadata.name=till -o name', 'pod/till\n'],
    ['get pods -A --field-selector metadata.namespace!=default -o name', 'pod/till\n'],
    ['get pods -l app=none -o name', ''],
    [
      'get pods -o custom-columns=NAME:.metadata.name,IP:.status.podIP --sort-by .metadata.creationTimestamp',
      'NAME            IP\na-longer-name   <none>\nweb             10.88.0.2\n',
    ],
  ])('podd %s', async (line, stdout) => {
    expect(await podd(line)).toMatchObject({ exitCode: 0, stdout })
  })

  it('shows more when asked to', async () => {
    const { stdout } = await podd('get po web -o wide')
    expect(stdout).toBe(`NAME   READY   STATUS    RESTARTS   AGE   IP          SOURCE
web    1/1     Running   0          5m    10.88.0.2   /etc/pods/web.yaml
`)
  })

  it('shows all namespaces, one, or one pod', async () => {
    expect((await podd('get pods -A')).stdout).toMatch(/^NAMESPACE +NAME.*\n.*\n.*\nshop +till/u)
    expect((await podd('get pods -n shop -o name')).stdout).toBe('pod/till\n')
    expect((await podd('get pod/web -o name')).stdout).toBe('pod/web\n')
    expect((await podd('get pod web a-longer-name -o name')).stdout).toBe('pod/web\npod/a-longer-name\n')
  })

  it('gives real objects as JSON and YAML', async () => {
    expect(JSON.parse((await podd('get pods -ojson')).stdout)).toMatchObject({
      apiVersion: 'v1',
      kind: 'List',
      items: [{ kind: 'Pod', metadata: { name: 'a-longer-name' } }, { metadata: { name: 'web' } }],
    })
    expect(JSON.parse((await podd('get pod web -o json')).stdout)).toEqual(rig.pods.list()[1])
    expect((await podd('get pod web -o yaml')).stdout).toMatch(
      /^apiVersion: v1\nkind: Pod\nmetadata:\n {2}name: web\n/u,
    )
  })

  it('tells bad manifests and a broken runtime after the table', async () => {
    rig.status = {
      ...rig.status,
      runtime: { endpoint: 'unix:///run/c.sock', healthy: false, message: 'connection refused', calls: {} },
      sources: [{ source: 'http', path: 'https://host/pods', ready: false, pods: 0 }],
      problems: [
        {
          severity: 'error',
          place: { path: '/etc/pods/bad.yaml', line: 7, column: 5 },
          field: 'spec.contaners',
          message: 'unknown field',
          hint: 'did you mean containers?',
        },
      ],
    }
    const { exitCode, stdout, stderr } = await podd('get pods')
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^NAME/u)
    expect(stderr).toBe(`a-longer-name: main: exit code 1
error: /etc/pods/bad.yaml:7:5: spec.contaners: unknown field (did you mean containers?)
warning: https://host/pods has not been read yet (source http); pods that were removed before podd started run until it is
warning: the container runtime at unix:///run/c.sock does not work: connection refused
`)
  })

  it('shows those that are there of several, and fails for the others', async () => {
    expect(await podd('get pods web gone -o name')).toEqual({
      exitCode: 1,
      stdout: 'pod/web\n',
      stderr: 'podd: Error from server (NotFound): pods "gone" not found\n',
    })
  })

  it.each([
    ['get pod wbe', 'Did you mean web?'],
    ['describe pod wbe', 'Did you mean web?'],
    ['logs till', 'There is one in namespace shop: -n shop'],
  ])('`podd %s` says which one may have been meant', async (line, hint) => {
    const name = line.split(' ').at(-1) ?? ''
    expect(await podd(line)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `podd: Error from server (NotFound): pods "${name}" not found\n${hint}\n`,
    })
  })

  it.each(['configmap', 'secrets', 'pvc'])('fails for a %s that is not there', async (resource) => {
    const one = await podd(`get ${resource} gone`)
    expect(one).toMatchObject({ exitCode: 1, stdout: '' })
    expect(one.stderr).toMatch(/^podd: Error from server \(NotFound\): [a-z]+s "gone" not found\n$/u)
    expect((await podd(`get ${resource} gone lost`)).exitCode).toBe(1)
  })

  it('does not wait for one that is not there', async () => {
    expect(await podd('get pods web nosuch -w')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'podd: Error from server (NotFound): pods "nosuch" not found\n',
    })
  })

  it.each([
    ['-n shop get pods'],
    ['--namespace shop get pods'],
    ['-nshop get pods'],
    ['--namespace=shop get pods'],
  ])('takes the namespace before the verb too: %s', async (line) => {
    expect((await podd(`${line} -o name`)).stdout).toBe('pod/till\n')
    expect((await podd(`${line} -n default web -o name`)).stdout).toBe('pod/web\n')
  })

  it('says so where there are none', async () => {
    expect(await podd('get pods -n empty')).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'No pods found in namespace empty\n',
    })
    expect(JSON.parse((await podd('get pods -n empty -o json')).stdout)).toEqual({
      apiVersion: 'v1',
      kind: 'List',
      metadata: { resourceVersion: '' },
      items: [],
    })
  })

  it('goes on with each change until it is interrupted', async () => {
    using call = startCli(['get', 'pods', '-w'], withSocket())
    await expect.poll(() => call.stdout().split('\n').length).toBe(4)
    rig.pods.put(podObject({ name: 'late', metadata: { creationTimestamp: recent(0) } }))
    await expect.poll(() => call.stdout()).toMatch(/\nlate {12}1\/1 /u)
    call.interrupt()
    expect(await call.outcome).toMatchObject({ exitCode: 130, stderr: '' })
    expect(call.stdout().match(/NAME/gu)).toHaveLength(1)
  })

  it.each([['get pods -w'], ['get events -w'], ['events -w']])('fails when podd ends: %s', async (line) => {
    rig.events.put(eventObject('e1'))
    const starting = containerStatus('main', { state: { waiting: { reason: 'ContainerCreating' } } })
    rig.pods.put(podObject({ status: { containerStatuses: [starting] } }))
    const call = startCli(line.split(' '), withSocket())
    await expect.poll(() => rig.pods.watchers + rig.events.watchers).toBe(1)
    await rig.close()
    expect(await call.outcome).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(
        /^podd: the connection to podd at .* broke: .*\npodd may have been stopped or restarted; try again.\n$/u,
      ) as string,
    })
  })

  it('fails when a podd that says goodbye ends the watch', async () => {
    await rig.close()
    const polite = createServer((request, response) =>
      response.end(
        request.url?.includes('watch') === true
          ? ''
          : JSON.stringify({ ...rig.status, items: [], metadata: { resourceVersion: '1' } }),
      ),
    ).listen(rig.socketPath)
    await once(polite, 'listening')
    expect(await podd('get pods -w')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('has ended') as string,
    })
    polite.close()
  })

  it('ends quietly when nobody reads', async () => {
    const call = startCli(['get', 'pods', '-w'], withSocket({ closeAfterBytes: 10 }))
    expect(await call.outcome).toMatchObject({ exitCode: 0, stderr: '' })
  })
})

describe('podd without a daemon', () => {
  it('says how to start it', async () => {
    const { exitCode, stdout, stderr } = await callCli([
      'get',
      'pods',
      '--socket',
      join(rig.directory, 'none'),
    ])
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
    expect(stderr).toContain("podd isn't running")
    expect(stderr).toMatch(/`(?:systemctl start podd|setsid podd run >>\/var\/log\/podd\.log 2>&1 &)`/u)
  })

  it('still knows its version', async () => {
    const outcome = await callCli(['--socket', join(rig.directory, 'none'), '--version'])
    expect(outcome).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^podd \d.*\nno daemon is running\n$/u),
    })
    expect((await podd('version')).stdout).toMatch(
      /\ndaemon 0\.1\.0 \(pid 42\)\ncontainerd 2\.1\.0 \(embedded\)\n$/u,
    )
  })

  it('tells programs of it', async () => {
    expect(JSON.parse((await podd('version -o json')).stdout)).toEqual({
      apiVersion: 'podd.dev/v1',
      kind: 'VersionReport',
      client: { version: expect.stringMatching(/^\d/u), node: process.versions.node },
      daemon: { version: '0.1.0', pid: 42 },
      runtime: { name: 'containerd', version: '2.1.0', endpoint: 'embedded' },
    })
    expect((await podd('version --client -o yaml')).stdout).toMatch(
      /^apiVersion: podd\.dev\/v1\nkind: VersionReport\nclient:\n {2}version: \S+\n {2}node: \S+\n$/u,
    )
    const away = await callCli(['--socket', join(rig.directory, 'none'), 'version', '-o', 'json'])
    expect(JSON.parse(away.stdout)).toMatchObject({ problem: 'no daemon is running' })
    expect(await podd('version -o wide')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('unknown output format "wide"'),
    })
  })
})

describe('wrong usage', () => {
  it.each<[line: string, message: string]>([
    ['gt pods', 'podd: unknown verb "gt"\nDid you mean get?'],
    ['frobnicate', 'podd: unknown verb "frobnicate"\n`podd --help` lists them.'],
    ['get', 'podd: get what?'],
    ['constructor', 'podd: unknown verb "constructor"\n`podd --help` lists them.'],
    ['get constructor', 'podd: podd knows no resource "constructor"\nThere are configmaps,'],
    ['get pds', 'podd: podd knows no resource "pds"\nDid you mean pod'],
    ['get pods --wacth', 'podd: unknown flag --wacth\nDid you mean --watch?'],
    ['get pods -o jsn', 'podd: unknown output format "jsn"\nDid you mean json?'],
    ['describe', 'podd: describe what?'],
    ['describe web', 'A pod is named with its kind: pod web'],
    ['describe pod/web db', 'podd: describe what?'],
    ['describe pod web -A', 'podd: a pod cannot be asked for by its name in all namespaces'],
    ['describe pod web -l app=web', 'podd: name cannot be provided when a selector is specified'],
    ['logs', 'podd: logs of which pod?'],
    ['logs web --since never', 'podd: --since must be a duration'],
    ['logs web --tail x', 'podd: --tail must be a whole number, -1 or more'],
    [
      'logs web -c a --all-containers',
      'podd: --all-containers=true should not be specified with container name a',
    ],
    ['logs web a -c a', 'podd: only one of -c or an inline [CONTAINER] arg is allowed'],
    ['logs web --tail -2', 'podd: --tail must be greater than or equal to -1'],
    ['logs web --limit-bytes -1', 'podd: --limit-bytes must be greater than 0'],
    ['logs web --since -5s', 'podd: --since must be greater than 0'],
    [
      'logs web --since 5s --since-time 2026-01-01T00:00:00Z',
      'podd: at most one of `sinceTime` or `sinceSeconds` may be specified',
    ],
    ['events web', 'podd: events takes no argument "web"\nTry --for web.'],
    ['events --types foo', 'podd: there are no events of type "foo"\nValid --types are Normal and Warning.'],
    ['events --types Normal,Wrning -w', 'podd: there are no events of type "Wrning"'],
    ['images import', 'podd: images import needs a file'],
    ['images pull', 'podd: images pull needs an image'],
    ['images export', 'podd: images export needs an image'],
    ['images rm', 'podd: images rm needs an image'],
    ['images prune all', 'podd: images prune takes no argument "all"'],
    [
      'get pods -o table',
      'There are wide, json, yaml, name, jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE and custom-columns=TITLE:PATH,…',
    ],
    ['get pods -o jsonpth={.items}', 'podd: unknown output format "jsonpth"\nDid you mean jsonpath?'],
    ['--socket /nowhere get pods -o jsonpath={.items', 'podd: '],
    ['--socket /nowhere get pods -o custom-columns=', 'podd: unexpected custom-columns spec'],
    ['--socket /nowhere kubeconfig --role boss', 'podd: no role is called "boss"'],
    ['--socket /nowhere kubeconfig --days x', 'podd: --days must be a whole number'],
    ['images pull web -o json', 'podd: unknown flag -o'],
    ['gc now', 'podd: gc takes no argument "now"'],
    ['images pin', 'podd: images pin needs an image'],
    ['images delete', 'podd: unknown action "delete"'],
    ['validate', 'podd: validate which files?'],
    ['run --max-pods many', 'podd: --max-pods must be a whole number'],
    ['run now', 'podd: run takes no argument "now"'],
    ['logs web main more', 'podd: logs takes no argument "more"'],
    ['get pods --sorted name', 'podd: unknown flag --sorted\nWith --help the verb lists its flags.'],
    ['get pods web -l app=web', 'podd: name cannot be provided when a selector is specified'],
    ['get pods -w --sort-by .metadata.name', 'podd: a watch cannot be sorted'],
    ['get pods -o custom-columns=NAME', 'podd: unexpected custom-columns spec: NAME'],
    ['attach', 'podd: attach to which pod?'],
    ['attach web more', 'podd: attach takes no argument "more"'],
    ['get pods web -A', 'podd: a pod cannot be asked for by its name in all namespaces'],
    ['get pods web -A -w', 'podd: a pod cannot be asked for by its name in all namespaces'],
    ['top pod web -A', 'podd: a pod cannot be asked for by its name in all namespaces'],
    ['top pod/web more', 'podd: top shows pods'],
    ['get secret tls -A', 'podd: a secret cannot be asked for by its name in all namespaces'],
    ['get secrets --show-values', 'podd: unknown flag --show-values'],
    ['describe hpa box', 'podd: podd knows no resource "hpa"\n'],
    ['-n', 'podd: -n needs a value'],
    ['-n shop images', 'podd: unknown flag -n'],
    ['create -f web.yaml', 'podd: podd creates nothing from files\n`podd apply FILE` writes'],
    ['ps -a', 'podd: podd has no verb "ps"\n`podd get pods` lists pods'],
    ['inspect web', 'podd: podd has no verb "inspect"\n`podd describe pod POD` tells'],
    ['stop web', 'podd: podd has no verb "stop"\n`podd delete pod POD` ends a pod'],
    ['pull nginx', 'podd: podd has no verb "pull"\n`podd images pull IMAGE`'],
    ['version 2', 'podd: version takes no argument "2"'],
    ['', 'podd runs Kubernetes Pods'],
  ])('exits 2 for `podd %s`', async (line, message) => {
    rig.pods.put(podObject())
    const { exitCode, stdout, stderr } = await podd(line)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('is helped by a list of all settings', async () => {
    const { stdout } = await podd('run --help')
    const words = stdout.split(/\s+/u)
    const names = listOptions().map(([, { flag, field }]) => (flag === undefined ? field : `--${flag}`))
    expect(names.filter((name) => !words.includes(name))).toEqual([])
  })

  it('is helped by a text for each verb, with examples', async () => {
    const overview = await podd('--help')
    expect(overview.exitCode).toBe(0)
    for (const { name } of verbs) {
      expect(overview.stdout).toContain(`  ${name} `)
      const { exitCode, stdout } = await podd(`${name} --help`)
      expect(exitCode).toBe(0)
      expect(stdout).toContain(`Usage: podd ${name}`)
      expect(stdout).toContain('Examples:')
      expect(await podd(`help ${name}`)).toEqual({ exitCode, stdout, stderr: '' })
    }
  })

  it('has a help of podd down that a screen of 24 lines shows whole', async () => {
    const verb = await verbs.find(({ name }) => name === 'down')?.load()
    if (verb === undefined) throw new Error('no such verb')
    expect(verbHelp(verb, 80).trimEnd().split('\n').length).toBeLessThan(24)
  })

  it.each([60, 80, 200])('is helped by lines that a terminal of %i columns shows whole', async (width) => {
    for (const verb of verbs) {
      const lines = verbHelp(await verb.load(), width).split('\n')
      // A usage, a flag or an example that can't be broken has a line of its own.
      const long = lines.filter((line) => line.length > Math.min(width, 110) && /\S +\S/u.test(line.trim()))
      const prose = long.filter((line) => !/^ {2}(?:podd |-| {4}--|[A-Za-z[])/u.test(line))
      expect(prose).toEqual([])
    }
  })
})

describe('podd logs', () => {
  const record = (text: string): string => `2026-01-01T00:00:00.000000001Z stdout F ${text}\n`
  const write = async (container: string, text: string, restartCount = 0): Promise<void> => {
    const directory = join(rig.podLogsDir, 'default_web_uid-web', container)
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, `${restartCount}.log`), text)
  }

  it('prints what a container wrote', async () => {
    rig.pods.put(podObject())
    await write('main', record('one') + record('two'))
    expect(await podd('logs web')).toEqual({ exitCode: 0, stdout: 'one\ntwo\n', stderr: '' })
    expect((await podd('logs pod/web --tail=1 --timestamps')).stdout).toBe(
      '2026-01-01T00:00:00.000000001Z two\n',
    )
  })

  it.each<[annotation: string, stdout: string, stderr: string]>([
    ['init', 'init\n', ''],
    [
      'nobody',
      'main\n',
      'Default container name "nobody" not found in pod web\nDefaulted container "main" out of: main, debug (ephem), init (init)\n',
    ],
    ['', 'main\n', 'Defaulted container "main" out of: main, debug (ephem), init (init)\n'],
  ])('chooses a container by the annotation %j', async (annotation, stdout, stderr) => {
    const spec = {
      containers: [{ name: 'main' }],
      initContainers: [{ name: 'init' }],
      ephemeralContainers: [{ name: 'debug' }],
    }
    const annotations = { 'kubectl.kubernetes.io/default-container': annotation }
    rig.pods.put(podObject({ spec, metadata: { annotations } }))
    await write('main', record('main'))
    await write('init', record('init'))
    expect(await podd('logs web')).toEqual({ exitCode: 0, stdout, stderr })
  })

  it('runs no command in a container that only an annotation knows', async () => {
    const annotations = { 'kubectl.kubernetes.io/default-container': 'nobody' }
    rig.pods.put(podObject({ metadata: { annotations } }))
    expect(await podd('exec web -- true')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('container nobody is not valid for pod web out of: main\n'),
    })
  })

  it('chooses the first container, and says so', async () => {
    rig.pods.put(podObject({ spec: { containers: [{ name: 'main' }, { name: 'side' }] } }))
    await write('main', record('main'))
    await write('side', record('side'))
    expect(await podd('logs web')).toEqual({
      exitCode: 0,
      stdout: 'main\n',
      stderr: 'Defaulted container "main" out of: main, side\n',
    })
    expect((await podd('logs web -c side')).stdout).toBe('side\n')
    expect((await podd('logs web side')).stdout).toBe('side\n')
    expect((await podd('logs web --all-containers --prefix')).stdout).toBe(
      '[pod/web/main] main\n[pod/web/side] side\n',
    )
  })

  it('takes the last ten lines of all pods with given labels', async () => {
    const text = Array.from({ length: 12 }, (_, index) => record(`${index}`)).join('')
    await write('main', text)
    rig.pods.put(podObject({ metadata: { labels: { app: 'web' } } }))
    expect((await podd('logs -l app=web --prefix')).stdout).toBe(
      Array.from({ length: 10 }, (_, index) => `[pod/web/main] ${index + 2}\n`).join(''),
    )
    expect((await podd('logs -l app=web --tail -1')).stdout.split('\n')).toHaveLength(13)
    expect(await podd('logs -l app=db')).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'No resources found in default namespace.\n',
    })
    expect((await podd('logs web -l app=web')).stderr).toContain(
      'only a selector (-l) or a POD name is allowed',
    )
  })

  it('prints what is kept of a removed pod, and says so', async () => {
    await write('main', record('before'), 0)
    await write('main', record('last words'), 1)
    await write('side', record('side'))
    const directory = join(rig.podLogsDir, 'default_web_uid-web')
    expect(await podd('logs web')).toMatchObject({ exitCode: 1, stdout: '' })
    await markRemoved(directory, '/var/lib/podd', Date.now())
    const note = 'Pod "web" was removed; its log was kept.\n'
    expect(await podd('logs web -c main -f')).toEqual({ exitCode: 0, stdout: 'last words\n', stderr: note })
    expect(await podd('logs web main -p --prefix')).toEqual({
      exitCode: 0,
      stdout: '[pod/web/main] before\n',
      stderr: note,
    })
    expect((await podd('logs web')).stderr).toContain(
      'a container name must be specified for pod web, choose one of: [main side]',
    )
    expect((await podd('logs web other')).stderr).toContain(
      'container other of the removed pod web has left no log',
    )
    expect((await podd('logs we')).stderr).toContain('NotFound')
    // A pod of its name that is there comes first.
    rig.pods.put(podObject({ metadata: { uid: 'another' } }))
    expect((await podd('logs web -c main')).stdout).toBe('')
  })

  it('follows no more containers at once than it may, as kubectl', async () => {
    const containers = Array.from({ length: 6 }, (_, index) => ({ name: `c${index}` }))
    rig.pods.put(podObject({ spec: { containers }, status: { phase: 'Succeeded', containerStatuses: [] } }))
    for (const { name } of containers) await write(name, record(name))
    expect((await podd('logs web -f --all-containers')).stderr).toContain(
      'you are attempting to follow 6 log streams, but maximum allowed concurrency is 5, use --max-log-requests to increase the limit',
    )
    const followed = await podd('logs web -f --all-containers --max-log-requests 6')
    expect(followed).toMatchObject({ exitCode: 0, stderr: '' })
    expect(followed.stdout.split('\n').toSorted().join(' ')).toBe(' c0 c1 c2 c3 c4 c5')
    // One after the other there may be any number.
    expect((await podd('logs web --all-containers')).stdout).toBe('c0\nc1\nc2\nc3\nc4\nc5\n')
  })

  it('knows no container that the pod does not have, whatever errors are ignored', async () => {
    rig.pods.put(podObject())
    expect(await podd('logs web -c nobody --ignore-errors')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'podd: container nobody is not valid for pod web out of: main\n',
    })
  })

  it('goes on with other containers after an error where that is asked for', async () => {
    rig.pods.put(podObject({ spec: { containers: [{ name: 'main' }, { name: 'side' }] } }))
    await write('side', record('side'))
    expect(await podd('logs web --all-containers --ignore-errors')).toEqual({
      exitCode: 0,
      stdout: 'side\n',
      stderr: expect.stringMatching(/^error: Error from server \(BadRequest\): /u),
    })
    expect((await podd('logs web --all-containers')).exitCode).toBe(1)
  })

  it('takes 0 for no limit', async () => {
    rig.pods.put(podObject())
    await write('main', record('one') + record('two'))
    const all = await podd('logs web --limit-bytes 0 --since 0s --tail -1')
    expect(all).toEqual({ exitCode: 0, stdout: 'one\ntwo\n', stderr: '' })
  })

  it('follows all containers at once until they have ended', async () => {
    const spec = { containers: [{ name: 'main' }, { name: 'side' }], restartPolicy: 'Never' }
    rig.pods.put(podObject({ spec }))
    await write('main', record('main'))
    await write('side', record('side'))
    const call = startCli(['logs', 'web', '-f', '--all-containers'], withSocket())
    await expect.poll(() => call.stdout().split('\n').sort().join(' ')).toBe(' main side')
    rig.pods.put(podObject({ spec, status: { phase: 'Succeeded', containerStatuses: [] } }))
    expect(await call.outcome).toMatchObject({ exitCode: 0, stderr: '' })
  })

  it('shows what came before a restart', async () => {
    const again = containerStatus('main', { restartCount: 1, lastState: terminated(1) })
    rig.pods.put(podObject({ status: { containerStatuses: [again] } }))
    await write('main', record('before'), 0)
    await write('main', record('now'), 1)
    expect((await podd('logs web -p')).stdout).toBe('before\n')
  })

  it('ends with 130 when it is interrupted', async () => {
    rig.pods.put(podObject())
    await write('main', record('one'))
    using call = startCli(['logs', 'web', '-f'], withSocket())
    await expect.poll(() => call.stdout()).toBe('one\n')
    call.interrupt()
    expect(await call.outcome).toEqual({ exitCode: 130, stdout: 'one\n', stderr: '' })
  })

  it('fails for a pod that is not there', async () => {
    expect(await podd('logs gone')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'podd: Error from server (NotFound): pods "gone" not found\n',
    })
  })
})

describe('podd events', () => {
  beforeEach(() => {
    rig.events.put(eventObject('e1', { lastTimestamp: recent(60) }))
    rig.events.put(
      eventObject('e2', {
        type: 'Warning',
        reason: 'BackOff',
        count: 4,
        firstTimestamp: recent(120),
        lastTimestamp: recent(5),
        message: 'Back-off\n',
      }),
    )
    rig.events.put(
      eventObject('e3', {
        involvedObject: { kind: 'Pod', namespace: 'default', name: 'db', uid: 'u' },
        lastTimestamp: recent(1),
      }),
    )
  })

  it('lists them oldest first', async () => {
    expect((await podd('events')).stdout).toBe(`LAST SEEN         TYPE      REASON    OBJECT    MESSAGE
60s               Normal    Started   pod/web   Container started
5s (x4 over 2m)   Warning   BackOff   pod/web   Back-off
1s                Normal    Started   pod/db    Container started
`)
    expect((await podd('get events -o name')).stdout).toBe('event/e1\nevent/e2\nevent/e3\n')
  })

  it('lists one from before the clock was set back where it happened', async () => {
    rig.events.put(eventObject('e4', { lastTimestamp: recent(3600) }))
    expect((await podd('events -o name')).stdout).toBe('event/e1\nevent/e2\nevent/e3\nevent/e4\n')
  })

  it('lists those of a Job apart from those of a pod of its name', async () => {
    const job = { kind: 'Job', namespace: 'default', name: 'db', uid: 'j' }
    rig.events.put(eventObject('e9', { involvedObject: job }))
    expect((await podd('events --for job/db -o name')).stdout).toBe('event/e9\n')
    expect((await podd('events --for db -o name')).stdout).toBe('event/e3\n')
  })

  it('lists those of one pod or type', async () => {
    expect((await podd('events --for pod/db -o name')).stdout).toBe('event/e3\n')
    expect((await podd('events --types warning -o name')).stdout).toBe('event/e2\n')
    expect((await podd('events --types NORMAL,Warning -o name')).stdout).toBe(
      'event/e1\nevent/e2\nevent/e3\n',
    )
    expect(await podd('events --for nobody')).toMatchObject({
      stdout: '',
      stderr: 'No events found in namespace default\n',
    })
  })

  it('goes on with those that come', async () => {
    using call = startCli(['events', '-w', '-o', 'name'], withSocket())
    await expect.poll(() => call.stdout().split('\n').length).toBe(4)
    rig.events.put(eventObject('e4'))
    await expect.poll(() => call.stdout()).toMatch(/event\/e4\n$/u)
    call.interrupt()
    expect((await call.outcome).exitCode).toBe(130)
  })
})

describe('podd describe pod', () => {
  it('tells all about it', async () => {
    rig.pods.put(
      podObject({
        metadata: { labels: { app: 'web', tier: 'front' } },
        spec: {
          nodeName: 'box',
          containers: [
            {
              name: 'main',
              image: 'busybox:1',
              command: ['sh', '-c'],
              ports: [{ containerPort: 80, hostPort: 8080 }],
              env: [{ name: 'A', value: 'b' }],
              resources: { limits: { memory: '64Mi' } },
              livenessProbe: { httpGet: { port: 80, path: '/live' } },
              volumeMounts: [{ name: 'data', mountPath: '/data', readOnly: true }],
            },
          ],
          volumes: [{ name: 'data', hostPath: { path: '/srv' } }],
        },
        status: {
          hostIP: '10.0.0.1',
          podIP: '10.88.0.2',
          containerStatuses: [
            containerStatus('main', { restartCount: 1, lastState: terminated(137, 'OOMKilled') }),
          ],
        },
      }),
    )
    rig.events.put(eventObject('e1', { lastTimestamp: recent(60) }))
    rig.probes = [
      {
        container: 'main',
        probe: 'liveness',
        result: 'success',
        counts: { success: 5, failure: 1, unknown: 0, repeated: 0 },
        lastFailure: { time: '2026-01-01T00:00:01Z', message: 'Liveness probe failed: one\ntwo\n' },
      },
    ]
    rig.status = {
      ...rig.status,
      problems: [
        {
          severity: 'warning',
          place: { path: '/etc/pods/web.yaml' },
          object: 'default/web',
          message: 'careful',
        },
      ],
    }
    const { exitCode, stdout } = await podd('describe pod web')
    expect(exitCode).toBe(0)
    expect(stdout).toMatchInlineSnapshot(`
      "Name:             web
      Namespace:        default
      UID:              uid-web
      Node:             box/10.0.0.1
      Start Time:       <none>
      Labels:           app=web
                        tier=front
      Annotations:      <none>
      Status:           Running
      IP:               10.88.0.2
      IPs:              <none>
      Containers:
        main:
          Container ID:
          Image:          busybox:1
          Image ID:       sha256:0123
          Port:           80/TCP
          Host Port:      8080/TCP
          Command:
            sh
            -c
          State:          Running
            Started:      Thu, 01 Jan 2026 00:00:00 +0000
          Last State:     Terminated
            Reason:       OOMKilled
            Exit Code:    137
            Started:      <unknown>
            Finished:     Thu, 01 Jan 2026 00:00:00 +0000
          Ready:          True
          Restart Count:  1
          Limits:
            memory: 64Mi
          Liveness:       http-get http://:80/live delay=0s timeout=1s period=10s #success=1 #failure=3
            Last Failure: Thu, 01 Jan 2026 00:00:01 +0000
                          Liveness probe failed: one
                          two
          Environment:
            A:  b
          Mounts:
            /data from data (ro)
      Conditions:
        Type          Status
        Initialized   True
        Ready         True
      Volumes:
        data:
          Type:           hostPath
          path:           /srv
      QoS Class:        BestEffort
      Manifest:
        /etc/pods/web.yaml: careful
      Events:
        Type     Reason    Age   From      Message
        ----     ------    ---   ----      -------
        Normal   Started   60s   kubelet   Container started
      "
    `)
  })
})

describe('podd describe', () => {
  const namesIn = async (line: string): Promise<readonly string[]> => {
    const { exitCode, stdout } = await podd(line)
    expect(exitCode).toBe(0)
    return [...stdout.matchAll(/^Name: +(.*)$/gmu)].map(([, name = '']) => name)
  }

  it('shows several objects, by their names, labels, namespaces or the beginning of their names', async () => {
    for (const name of ['web-1', 'web-2', 'db'])
      rig.pods.put(podObject({ name, uid: name, metadata: { labels: { app: name } } }))
    rig.pods.put(podObject({ name: 'till', uid: 'till', metadata: { namespace: 'shop' } }))
    expect(await namesIn('describe pods')).toEqual(['db', 'web-1', 'web-2'])
    expect(await namesIn('describe pods -A')).toEqual(['db', 'web-1', 'web-2', 'till'])
    expect(await namesIn('describe pods -l app=db')).toEqual(['db'])
    expect(await namesIn('describe pod web-2 db')).toEqual(['web-2', 'db'])
    expect(await namesIn('describe pod/web-2 pods/db')).toEqual(['web-2', 'db'])
    expect(await namesIn('describe pod web')).toEqual(['web-1', 'web-2'])
    expect((await podd('describe pod web-2 db')).stdout).toMatch(/\n\n\nName: +db\n/u)
    expect(await podd('describe pods -n empty')).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'No pods found in namespace empty\n',
    })
    expect(await podd('describe pod web-1 gone')).toMatchObject({ exitCode: 1, stdout: '' })
  })
})

describe('podd describe pod, of a container,', () => {
  it('tells where variables come from, what is in files, and what is mounted', async () => {
    rig.pods.put(
      podObject({
        spec: {
          containers: [
            {
              name: 'main',
              image: 'busybox:1',
              envFrom: [
                { configMapRef: { name: 'settings', optional: true } },
                { prefix: 'DB_', secretRef: { name: 'login' } },
              ],
              env: [
                { name: 'A', value: 'one\nB:  two\n' },
                { name: 'C', valueFrom: { configMapKeyRef: { name: 'settings', key: 'c' } } },
                { name: 'D', valueFrom: { secretKeyRef: { name: 'login', key: 'd', optional: true } } },
                { name: 'E', valueFrom: { fileKeyRef: { volumeName: 'made', path: 'env', key: 'e' } } },
              ],
              volumeMounts: [
                { name: 'data', mountPath: '/a', subPath: 'part' },
                { name: 'data', mountPath: '/b', subPathExpr: '$(NAME)/x' },
              ],
            },
          ],
        },
      }),
    )
    const { stdout } = await podd('describe pod web')
    expect(stdout).toContain(
      `    Environment Variables from:
      settings  ConfigMap  Optional: true
      login  Secret with prefix 'DB_'  Optional: false
    Environment:
      A:  one
        B:  two
      C:  <set to the key 'c' of config map 'settings'>  Optional: false
      D:  <set to the key 'd' in secret 'login'>  Optional: true
      E:  <set to the key 'e' in file 'env' of volume 'made'>  Optional: false
    Mounts:
      /a from data (rw,path="part")
      /b from data (rw,path expression="$(NAME)/x")
`,
    )
  })
})

describe('podd restart', () => {
  it('of several pods restarts those it can, and tells of the others', async () => {
    rig.pods.put(podObject())
    rig.reach = { ...rig.reach, restart: async () => ['main'] }
    const { exitCode, stdout, stderr } = await podd('restart gone web')
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: 'pod/web: restarting main\n' })
    expect(stderr).toContain('"gone" not found')
  })
})

describe('a namespace', () => {
  it('that is empty is the default one', async () => {
    rig.pods.put(podObject())
    const { stdout } = await callCli(['get', 'pods', '-n', '', '-o', 'name'], withSocket())
    expect(stdout).toBe('pod/web\n')
  })

  it.each([
    ['..', 'a lowercase RFC 1123 label'],
    ['A', 'a lowercase RFC 1123 label'],
    ['a/b', 'a lowercase RFC 1123 label'],
    ['a.b', 'must not contain dots'],
  ])('is not called %s', async (name, why) => {
    const { exitCode, stderr } = await callCli(['get', 'pods', '-n', name], withSocket())
    expect(exitCode).toBe(2)
    expect(stderr).toContain(`podd: no namespace is called "${name}"\n${why}`)
  })
})

describe('control characters of pods', () => {
  const evil = '\u001B[2J\u009B1A'
  beforeEach(() => {
    const waiting = { waiting: { reason: `Crash${evil}`, message: `back-off${evil}` } }
    rig.pods.put(
      podObject({
        metadata: { annotations: { note: evil } },
        spec: { containers: [{ name: 'main', image: 'busybox', env: [{ name: 'A', value: evil }] }] },
        status: { message: evil, containerStatuses: [containerStatus('main', { state: waiting })] },
      }),
    )
    rig.events.put(eventObject('e1', { message: evil, lastTimestamp: recent(1) }))
    rig.status = {
      ...rig.status,
      problems: [{ severity: 'error', place: { path: evil }, message: evil, object: 'default/web' }],
    }
  })

  it.each([['get pods'], ['get pods -o wide'], ['describe pod web'], ['events'], ['get events']])(
    'are shown, and never sent to the terminal: %s',
    async (line) => {
      const { exitCode, stdout, stderr } = await podd(line)
      expect(exitCode).toBe(0)
      expect(stdout + stderr).toContain('^[[2J\\u009b1A')
      expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]/u)
    },
  )

  it('are left to programs as they are', async () => {
    expect(JSON.parse((await podd('get pod web -o json')).stdout)).toEqual(rig.pods.list()[0])
    expect(parse((await podd('get pod web -o yaml')).stdout)).toEqual(rig.pods.list()[0])
    const directory = join(rig.podLogsDir, 'default_web_uid-web', 'main')
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, '0.log'), `2026-01-01T00:00:00.000000001Z stdout F ${evil}\n`)
    expect((await podd('logs web')).stdout).toBe(`${evil}\n`)
  })

  it('are shown in what a server says', async () => {
    const { stderr } = await callCli(['get', 'pod', evil], withSocket())
    expect(stderr).toMatch(/not found/u)
    expect(stderr).not.toContain('\u009B')
  })
})

describe('podd images', () => {
  it('lists them, one line for each tag', async () => {
    rig.images.push(
      {
        id: 'sha256:0123456789abcdef',
        tags: ['localhost:5000/web:1', 'localhost:5000/web:2'],
        digests: [],
        sizeBytes: 1_234_567,
        pinned: true,
      },
      {
        id: 'sha256:ff',
        tags: [],
        digests: ['docker.io/library/busybox@sha256:aa'],
        sizeBytes: 999,
        pinned: false,
      },
    )
    expect((await podd('images')).stdout)
      .toBe(`IMAGE                       TAG      IMAGE ID        SIZE     PINNED
docker.io/library/busybox   <none>   ff              999B     no
localhost:5000/web          1        0123456789abc   1.23MB   yes
localhost:5000/web          2        0123456789abc   1.23MB   yes
`)
  })

  it('imports a file of the caller’s directory', async () => {
    expect(await podd('images import web.tar')).toEqual({
      exitCode: 0,
      stdout: 'imported localhost/web:1\n',
      stderr: '',
    })
    expect(rig.imported).toEqual([join(process.cwd(), 'web.tar')])
    await podd('images import web.tar --no-pin')
    expect(rig.imported[1]).toBe(`${join(process.cwd(), 'web.tar')} unpinned`)
  })

  it('shows digests, whole ids and users where asked', async () => {
    const digest = `sha256:${'ab'.repeat(32)}`
    rig.images.push({
      id: `sha256:${'12'.repeat(32)}`,
      tags: ['localhost/web:1'],
      digests: [`localhost/other@sha256:00`, `localhost/web@${digest}`],
      sizeBytes: 1_000,
      pinned: false,
    })
    expect((await podd('images ls --digests -o wide')).stdout)
      .toBe(`IMAGE           TAG   DIGEST          IMAGE ID        SIZE   PINNED   USED BY
localhost/web   1     ababababababa   1212121212121   1kB    no       pod default/web
`)
    const { stdout } = await podd('images --digests --no-trunc')
    expect(stdout).toContain(` ${digest.slice(7)}   ${'12'.repeat(32)} `)
    expect(JSON.parse((await podd('images -o json')).stdout)).toMatchObject({
      kind: 'ImageList',
      items: [{ kind: 'Image', usedBy: ['pod default/web'] }],
    })
    expect((await podd('images ls -o name')).stdout).toBe('image/localhost/web:1\n')
  })

  it('names what of the directory of archives could not be imported', async () => {
    const images: readonly string[] = []
    rig.archives = [
      { path: '/images/a.tar', type: 'archive', state: 'imported', images },
      { path: '/images/b.tar', type: 'archive', state: 'failed', message: 'it is not a tar archive', images },
      { path: '/images/c.txt', type: 'list', state: 'pending', message: 'to be pulled', images },
    ]
    expect(await podd('images')).toMatchObject({
      exitCode: 0,
      stderr: `No images found
error: /images/b.tar: it is not a tar archive
pending: /images/c.txt: to be pulled
`,
    })
  })

  it('imports several files, and what comes on standard input', async () => {
    rig.importImages = async (path) => {
      if (path.endsWith('bad.tar')) throw new PoddError('IMAGE_IMPORT', 'cannot import bad.tar')
      const text = path.endsWith('/image.tar') ? await readFile(path, 'utf8') : ''
      rig.imported.push(text)
      return [`localhost/${rig.imported.length}`]
    }
    expect(await podd('images import a.tar bad.tar b.tar.zst')).toEqual({
      exitCode: 1,
      stdout: 'imported localhost/1\nimported localhost/2\n',
      stderr: 'podd: Error from server (InternalError): cannot import bad.tar\n',
    })
    expect(await podd('images import - -q', { stdin: 'the archive' })).toEqual({
      exitCode: 0,
      stdout: 'localhost/3\n',
      stderr: '',
    })
    expect(rig.imported[2]).toBe('the archive')
  })

  it('pulls, with a line for each tenth where there is no terminal', async () => {
    rig.pullImage = async (image, onProgress) => {
      if (image === 'bad') throw new PoddError('RUNTIME_NOT_FOUND', 'not found: bad', { hint: 'Look again.' })
      onProgress({ doneBytes: 250_000, totalBytes: 1_000_000 })
      await new Promise((resolve) => setImmediate(resolve))
      return { id: 'sha256:1', sizeBytes: 1_000_000 }
    }
    expect(await podd('images pull web:1')).toEqual({
      exitCode: 0,
      stdout: 'pulled web:1: sha256:1, 1MB\n',
      stderr: 'web:1: 20%, 250kB of 1MB\n',
    })
    expect(await podd('images pull -q web:1 bad')).toEqual({
      exitCode: 1,
      stdout: 'pulled web:1: sha256:1, 1MB\n',
      stderr: 'podd: Error from server (InternalError): not found: bad\nLook again.\n',
    })
    expect(await podd('images pull bad')).toMatchObject({ exitCode: 1, stdout: '' })
  })

  it('exports to a file, which is there only when it is complete, and to standard output', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'podd-cli-'))
    const file = join(directory, 'web.tar')
    expect(await podd(`images export web:1 db:1 -o ${file}`)).toEqual({
      exitCode: 0,
      stdout: `exported web:1, db:1 to ${file} (21B)\n`,
      stderr: '',
    })
    expect(await readFile(file, 'utf8')).toBe('archive of web:1 db:1')
    expect((await podd('images export web:1')).stdout).toBe('archive of web:1')
    await rm(file)
    rig.exportImages = async function* () {
      yield Buffer.from('half')
      await new Promise((resolve) => setTimeout(resolve, 20))
      throw new PoddError('IMAGE_EXPORT', 'content is missing')
    }
    expect(await podd(`images export web:1 -o ${file}`)).toMatchObject({ exitCode: 1, stdout: '' })
    expect(await readdir(directory)).toEqual([])
    rig.exportImages = async function* (images) {
      if (images.includes('none')) throw new PoddError('IMAGE_NOT_FOUND', 'there is no image none')
      yield Buffer.from('archive')
    }
    expect(await podd(`images export none -o ${file}`)).toMatchObject({
      exitCode: 1,
      stderr: 'podd: Error from server (NotFound): there is no image none\n',
    })
    await rm(directory, { recursive: true })
  })

  it('removes images, and says what that frees, or who uses them', async () => {
    rig.images.push({
      id: 'sha256:1',
      tags: ['a:1', 'b:1'],
      digests: [],
      sizeBytes: 2_000_000,
      pinned: false,
    })
    expect(await podd('images rm a:1 none')).toEqual({
      exitCode: 1,
      stdout: 'removed a:1, b:1: 2MB freed\n',
      stderr: 'podd: Error from server (NotFound): there is no image none\n',
    })
    rig.removeImage = async (image, force) => {
      if (force) return { id: 'sha256:1', names: [image], freedBytes: 0 }
      throw new PoddError('IMAGE_IN_USE', 'a:1 is used by pod default/web', { hint: 'With --force.' })
    }
    expect(await podd('images rm a:1')).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'podd: Error from server (Conflict): a:1 is used by pod default/web\nWith --force.\n',
    })
    expect((await podd('images rm a:1 --force')).stdout).toBe('removed a:1: 0B freed\n')
  })

  it('prunes by the rules of garbage collection', async () => {
    expect(await podd('images prune --dry-run')).toEqual({
      exitCode: 0,
      stdout: '0 images (0B) would be removed, 0 kept; /images was 50% full\n',
      stderr: '',
    })
  })

  it('has a help for each action', async () => {
    const { stdout } = await podd('images --help')
    for (const action of ['pull NAME…', 'import FILE…|-', 'export NAME… -o FILE.tar', 'rm NAME…', 'prune'])
      expect(stdout).toContain(`images ${action}`)
    for (const action of ['ls', 'pull', 'import', 'export', 'rm', 'prune', 'pin', 'unpin']) {
      const help = await podd(`images ${action} --help`)
      expect(help.exitCode).toBe(0)
      expect(help.stdout).toMatch(new RegExp(`^Usage: podd images \\[?${action}`, 'mu'))
      expect(help.stdout).toContain('Examples:')
      expect((await podd(`help images ${action}`)).stdout).toBe(help.stdout)
    }
  })

  it('pins and unpins one', async () => {
    rig.images.push({ id: 'sha256:1', tags: ['localhost/a:1'], digests: [], sizeBytes: 1, pinned: false })
    expect((await podd('images pin localhost/a:1')).stdout).toBe('pinned localhost/a:1\n')
    expect((await podd('images unpin localhost/a:1')).stdout).toBe('unpinned localhost/a:1\n')
    expect(rig.pins).toEqual(['localhost/a:1 true', 'localhost/a:1 false'])
    expect(await podd('images pin nobody')).toMatchObject({
      exitCode: 1,
      stderr: 'podd: Error from server (NotFound): there is no image nobody\n',
    })
  })
})

describe('podd gc', () => {
  const unused = {
    id: 'sha256:1',
    names: ['localhost/old:1'],
    sizeBytes: 2_000_000,
    reason: 'unused',
    message: 'unused for 3d',
  }
  const kept = { ...unused, id: 'sha256:2', names: [], reason: 'pinned', message: 'pinned' }
  const asked: unknown[] = []
  beforeEach(() => {
    asked.length = 0
    const before = rig.collect
    rig.collect = (options) => {
      asked.push(options)
      const { dryRun, images, items } = before(options)
      return { dryRun, items, images: { ...images, removed: [unused], kept: [kept], freedBytes: 2_100_000 } }
    }
  })

  it('tells what was removed, and how much room that made', async () => {
    expect(await podd('gc')).toEqual({
      exitCode: 0,
      stdout: `IMAGE             SIZE   WHY
localhost/old:1   2MB    unused for 3d
1 image removed, 2.1MB freed, 1 kept; /images was 50% full
`,
      stderr: '',
    })
    expect(asked).toEqual([{ dryRun: false, young: false, imagesOnly: false }])
  })

  it('tells what would be removed', async () => {
    const { stdout } = await podd('gc --dry-run --all')
    expect(stdout).toContain('1 image (2.1MB) would be removed, 1 kept')
    expect(asked).toEqual([{ dryRun: true, young: true, imagesOnly: false }])
  })

  it('gives all of it to programs', async () => {
    expect(JSON.parse((await podd('gc --dry-run -o json')).stdout)).toMatchObject({
      kind: 'GarbageReport',
      dryRun: true,
      images: { removed: [unused], kept: [kept], failed: [] },
    })
  })

  it('asks to wait while it is not known what pods need', async () => {
    rig.collect = () => {
      throw new PoddError('IMAGES_NOT_KNOWN', 'not known yet', { hint: 'Wait.' })
    }
    expect(await podd('gc')).toMatchObject({
      exitCode: 1,
      stderr: 'podd: Error from server (ServiceUnavailable): not known yet\nWait.\n',
    })
  })

  const orphan = {
    kind: 'cgroup',
    id: 'lost',
    name: 'lost',
    reason: 'orphan',
    message: 'without a pod',
  } as const

  it('tells what else was removed, and what may be in use', async () => {
    const before = rig.collect
    rig.collect = (options) => ({
      ...before(options),
      items: [
        { ...orphan, outcome: 'removed' },
        { ...orphan, kind: 'volumes', sizeBytes: 4_200_000, outcome: 'waiting' },
      ],
    })
    expect((await podd('gc')).stdout.split('\n').slice(0, 5)).toEqual([
      'KIND      NAME   SIZE    WHY',
      'cgroup    lost   -       without a pod',
      'volumes   lost   4.2MB   without a pod; waiting for calls in flight',
      '1 removed, 1 waiting',
      '',
    ])
  })

  it('fails where something cannot be removed', async () => {
    rig.collect = () => ({
      dryRun: false,
      images: {
        disk: { path: '/images', capacityBytes: 1000, availableBytes: 0, usedPercent: 100 },
        removed: [],
        kept: [],
        failed: [{ ...unused, reason: 'failed', message: 'read-only file system' }],
        freedBytes: 0,
      },
      items: [{ ...orphan, outcome: 'failed', message: 'device or resource busy' }],
    })
    expect(await podd('gc')).toEqual({
      exitCode: 1,
      stdout: '0 images removed, 0B freed, 0 kept; /images was 100% full\n',
      stderr:
        'localhost/old:1 could not be removed: read-only file system\n' +
        'cgroup lost could not be removed: device or resource busy\n',
    })
  })
})

describe('podd validate', () => {
  let directory: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'podd-validate-'))
    const pod = (name: string, extra = ''): string =>
      `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\nspec:\n  containers:\n  - name: main\n    image: busybox:1\n${extra}`
    await writeFile(join(directory, 'good.yaml'), pod('good'))
    await writeFile(join(directory, 'again.yml'), pod('good'))
    await writeFile(join(directory, 'bad.yaml'), pod('bad', '    imag: x\n'))
    await writeFile(join(directory, '.hidden.yaml'), 'nonsense')
    await writeFile(join(directory, 'notes.txt'), 'nonsense')
  })
  afterAll(() => rm(directory, { recursive: true }))

  it('is content with a good file, without a daemon', async () => {
    expect(await callCli(['validate', join(directory, 'good.yaml')])).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: '1 valid pod, 0 errors in 1 file\n',
    })
  })

  it('prints every problem with its place and exits 1', async () => {
    expect(await callCli(['validate', '-f', join(directory, 'good.yaml')])).toMatchObject({ exitCode: 0 })
    const json = await callCli(['validate', join(directory, 'bad.yaml'), '-o', 'json'])
    expect(JSON.parse(json.stdout)).toMatchObject({
      kind: 'ManifestReport',
      problems: [{ severity: 'error', place: { path: join(directory, 'bad.yaml') } }],
    })
    const { exitCode, stdout } = await callCli(['validate', join(directory, 'bad.yaml')])
    expect(exitCode).toBe(1)
    expect(stdout).toMatch(/bad\.yaml:9:5: spec\.containers\[0\]\.imag: .*image/u)
  })

  it('reads a directory as the daemon does, and finds the same pod in two files', async () => {
    const { exitCode, stdout, stderr } = await callCli(['validate', directory])
    expect(exitCode).toBe(1)
    expect(stdout).toContain(
      `good.yaml:1:1: metadata.name: pod default/good stands in ${directory}/again.yml:1:1 already`,
    )
    expect(stderr).toBe('2 valid pods, 2 errors in 3 files\n')
  })

  it('says of a directory what cannot be read in it, and does not wait for it', async () => {
    const odd = join(directory, 'odd')
    await mkdir(join(odd, 'directory.yaml'), { recursive: true })
    execFileSync('mkfifo', [join(odd, 'pipe.yaml')])
    await symlink('nowhere', join(odd, 'link.json'))
    await writeFile(join(odd, '#draft.yaml'), 'nonsense')
    await writeFile(join(odd, 'ok.yaml'), 'apiVersion: v1\nkind: PodList\nitems: []\n')
    expect(await callCli(['validate', odd])).toEqual({
      exitCode: 1,
      stdout: `${odd}/directory.yaml: is a directory: what is in it is not read
${odd}/link.json: is a symlink to a file that is missing
${odd}/pipe.yaml: is not a regular file
`,
      stderr: '0 valid pods, 3 errors in 4 files\n',
    })
  })

  it('reads standard input', async () => {
    const { exitCode, stdout } = await callCli(['validate', '-'], { stdin: 'kind: Pod\n' })
    expect(exitCode).toBe(1)
    expect(stdout).toContain('<stdin>:1:1')
    const stdin = '\n'
    expect((await callCli(['validate', '-'], { stdin })).stdout).toBe(
      '<stdin>: empty: standard input ended without a manifest\n',
    )
  })

  it('reads a pipe that somebody writes to, and waits for none that nobody does', async () => {
    const pipe = join(directory, 'pipe')
    execFileSync('mkfifo', [pipe])
    expect(await callCli(['validate', pipe])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(
        `cannot read ${pipe}: it is a pipe, and no process writes to it`,
      ) as string,
    })
    const text = await readFile(join(directory, 'good.yaml'), 'utf8')
    const [read] = await Promise.all([callCli(['validate', pipe]), writeFile(pipe, text)])
    expect(read).toMatchObject({ exitCode: 0, stderr: '1 valid pod, 0 errors in 1 file\n' })
  })

  it('reads no more of what does not end than a manifest may have', async () => {
    const { exitCode, stdout } = await callCli(['validate', '/dev/zero'])
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '/dev/zero: larger than 10 MiB\n' })
    let givenBytes = 0
    const endless = async function* (): AsyncGenerator<string> {
      for (;;) {
        givenBytes += 2 ** 16
        yield 'a'.repeat(2 ** 16)
      }
    }
    expect(await callCli(['validate', '-'], { stdin: endless() })).toMatchObject({
      exitCode: 1,
      stdout: '<stdin>: larger than 10 MiB\n',
    })
    expect(givenBytes).toBeLessThan(11 * 2 ** 20)
  })

  it('turns unknown fields into warnings when asked to', async () => {
    const { exitCode, stdout } = await callCli([
      'validate',
      '--field-validation=Warn',
      join(directory, 'bad.yaml'),
    ])
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/bad\.yaml:9:5: warning: spec\.containers\[0\]\.imag: /u)
  })

  it('fails for a file that is not there', async () => {
    expect(await callCli(['validate', '/nowhere/x.yaml'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('cannot read /nowhere/x.yaml') as string,
    })
  })
})

describe('podd run, down and doctor', () => {
  it('start the daemon with flags, file and defaults', async () => {
    const config = join(rig.directory, 'config.yaml')
    await writeFile(
      config,
      'apiVersion: podd.dev/v1\nkind: PoddConfiguration\nmaxPods: 5\nrunDir: /run/file\nfailSwapOn: true\n',
    )
    const requests: RunRequest[] = []
    const daemon = {
      startDaemon: async (request: RunRequest) => {
        requests.push(request)
        return 3
      },
    }
    expect((await podd(`run --config ${config} --run-dir /run/flag`, { daemon })).exitCode).toBe(3)
    expect(requests).toMatchObject([
      {
        config: { ...completeConfig({}), maxPods: 5, runDir: '/run/flag' },
        configPath: config,
        warnings: [{ field: 'failSwapOn' }],
      },
    ])
  })

  it('list every error of the config file', async () => {
    const config = join(rig.directory, 'config.yaml')
    await writeFile(config, 'apiVersion: podd.dev/v1\nkind: PoddConfiguration\nmaxPod: 5\nrunDir: x\n')
    const { exitCode, stderr } = await podd(`run --config ${config}`)
    expect(exitCode).toBe(1)
    expect(stderr).toBe(`podd: ${config}:3:1: maxPod: unknown field (Did you mean maxPods?)
${config}:4:1: runDir: must be an absolute path
docs/OPTIONS.md lists the fields.
`)
    expect((await podd('run --config /nowhere.yaml')).stderr).toContain(
      'cannot read the config file /nowhere.yaml',
    )
  })

  it('refuse settings that do not fit together', async () => {
    const { exitCode, stderr } = await podd('run --image-gc-high-threshold 70')
    expect(exitCode).toBe(1)
    expect(stderr)
      .toBe(`podd: imageGCLowThresholdPercent must be less than imageGCHighThresholdPercent, and 80 is not less than 70
docs/OPTIONS.md lists the fields.
`)
  })

  it('report what down could not end', async () => {
    const graces: (number | undefined)[] = []
    const daemon = {
      down: async ({ graceSeconds, report }: DownRequest) => {
        graces.push(graceSeconds)
        report('ending default/web')
        return { podsStopped: 1, leftovers: ['bridge podd0'] }
      },
    }
    expect(await callCli(['down', '--grace-period=2'], { daemon })).toEqual({
      exitCode: 1,
      stdout: '1 pod ended\n',
      stderr: 'ending default/web\nleft over: bridge podd0\n',
    })
    expect(graces).toEqual([2])
  })

  describe('down, where a socket is named,', () => {
    const places = {
      rootDir: '/data/podd',
      runDir: '/run/other',
      podLogsDir: '/data/logs',
      containerLogsDir: '/data/links',
      containerRuntimeEndpoint: 'embedded',
      cgroupRoot: '/other',
      cgroupDriver: 'cgroupfs',
    } as const
    const requests: DownRequest[] = []
    const daemon = {
      down: async (request: DownRequest) => {
        requests.push(request)
        return { podsStopped: 2, leftovers: [] }
      },
    }
    const down = (line: string, socket = rig.socketPath): Promise<CliOutcome> =>
      callCli(`down --socket ${socket} ${line}`.trim().split(/ +/u), { daemon })
    const noSocket = (): string => join(rig.directory, 'none.sock')
    let older: DaemonStatus
    beforeEach(() => {
      requests.length = 0
      older = rig.status
      rig.status = { ...older, places }
    })

    it.each(['--socket', 'PODD_SOCKET'])('ends what the daemon there says is its own: %s', async (way) => {
      const outcome = way === '--socket' ? await down('') : await podd('down', { daemon })
      expect(outcome).toEqual({ exitCode: 0, stdout: '2 pods ended\n', stderr: '' })
      expect(requests).toMatchObject([
        {
          config: { ...completeConfig({}), ...places },
          socketPath: rig.socketPath,
          graceSeconds: undefined,
          removesEnded: false,
        },
      ])
    })

    it('takes places that are the same, too', async () => {
      expect((await down('--root-dir /data/podd --run-dir=/run/other --grace-period 1 --all')).exitCode).toBe(
        0,
      )
      expect(requests).toMatchObject([{ config: places, graceSeconds: 1, removesEnded: true }])
    })

    it.each([
      ['--root-dir /data/third', 'rootDir "/data/podd", not "/data/third"'],
      ['--run-dir /run/podd', 'runDir "/run/other", not "/run/podd"'],
      ['--cgroup-root /third', 'cgroupRoot "/other", not "/third"'],
      ['--config /dev/null', 'rootDir "/data/podd", not "/var/lib/podd"'],
    ])('does nothing where flags name other places: %s', async (flags, words) => {
      const outcome = await down(flags)
      expect(outcome).toMatchObject({ exitCode: 1, stdout: '' })
      expect(outcome.stderr).toMatch(`podd: podd at ${rig.socketPath} has ${words}\n`)
      expect(requests).toEqual([])
    })

    it.each(['', '--grace-period 0', '--root-dir /data/podd', '--run-dir /run/other'])(
      'does nothing where nobody answers and the places are not named: %s',
      async (flags) => {
        const outcome = await down(flags, noSocket())
        expect(outcome).toMatchObject({ exitCode: 1, stdout: '' })
        expect(outcome.stderr).toContain(`no daemon listens at ${noSocket()}`)
        expect(outcome.stderr).toContain('podd down --root-dir DIR --run-dir DIR')
        expect(requests).toEqual([])
      },
    )

    it.each([
      ['--root-dir /data/podd --run-dir /run/other', { rootDir: '/data/podd', runDir: '/run/other' }],
      ['--config /dev/null', {}],
    ])('goes by the flags where nobody answers: %s', async (flags, named) => {
      expect((await down(flags, noSocket())).exitCode).toBe(0)
      expect(requests).toMatchObject([{ config: { ...completeConfig({}), ...named } }])
      expect(requests[0]?.socketPath).toBeUndefined()
    })

    it('has doctor look at those places, too', async () => {
      const looked: PoddConfig[] = []
      const others: unknown[] = []
      const doctor: DaemonActions['doctor'] = async (config, _signal, options) => {
        looked.push(config)
        others.push(options)
        return []
      }
      expect((await podd('doctor', { daemon: { doctor } })).exitCode).toBe(0)
      const away = await callCli(['doctor', '--socket', noSocket()], { daemon: { doctor } })
      expect(away.stderr).toContain(`no daemon listens at ${noSocket()}`)
      expect(looked).toEqual([{ ...completeConfig({}), ...places }, completeConfig({})])
      expect(others).toEqual([{ isOther: true }, undefined])
    })

    it('has doctor look at its network, its programs and its manifests, if it has any', async () => {
      const looked: PoddConfig[] = []
      const doctor = async (config: PoddConfig): Promise<readonly DoctorFinding[]> => {
        looked.push(config)
        return []
      }
      const more = { podCidrs: ['10.9.0.0/24'], registryConfigDir: '/data/certs.d', ociRuntimes: ['crun'] }
      for (const staticPodPath of ['/data/pods', undefined]) {
        rig.status = {
          ...rig.status,
          places: { ...places, ...more, ...(staticPodPath !== undefined && { staticPodPath }) },
        }
        expect((await podd('doctor', { daemon: { doctor } })).exitCode).toBe(0)
        expect(looked.pop()).toEqual({ ...completeConfig({}), ...places, ...more, staticPodPath })
      }
    })

    it('goes by the flags where the daemon is too old to say, if they do', async () => {
      rig.status = older
      expect((await down('--config /dev/null')).exitCode).toBe(0)
      expect(requests).toMatchObject([{ config: completeConfig({}), socketPath: rig.socketPath }])
    })

    it('does nothing where the daemon is too old to say', async () => {
      rig.status = older
      expect(await down('')).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining('does not report its directories'),
      })
      expect(requests).toEqual([])
    })
  })

  describe('down, with a config file that has errors,', () => {
    const down = async (flags: string, ...lines: readonly string[]) => {
      const file = join(rig.directory, 'config.yaml')
      await writeFile(file, ['apiVersion: podd.dev/v1', 'kind: PoddConfiguration', ...lines, ''].join('\n'))
      const requests: DownRequest[] = []
      const daemon = {
        down: async (request: DownRequest) => {
          requests.push(request)
          return { podsStopped: 2, leftovers: [] }
        },
      }
      return {
        file,
        requests,
        outcome: await callCli(`down --config ${file}${flags}`.split(' '), { daemon }),
      }
    }

    it('ends the pods where the file says that they are', async () => {
      const { file, requests, outcome } = await down(
        ' --run-dir /run/flag',
        'maxPods: many',
        'rootDir: /data',
      )
      expect(outcome).toEqual({
        exitCode: 0,
        stdout: '2 pods ended\n',
        stderr: `ignored: ${file}:3:1: maxPods: must be a whole number, not string "many"\n`,
      })
      expect(requests.map(({ config }) => config)).toEqual([
        { ...completeConfig({}), rootDir: '/data', runDir: '/run/flag' },
      ])
    })

    it.each([
      ['rootDir: data'],
      ['rootdir: /data'],
      ['containerRuntimeEndpoint: tcp://box'],
      ['kind: PoddConfig'],
      ['maxPods: [1'],
    ])('does nothing where that can not be told: %s', async (line) => {
      const { requests, outcome } = await down('', line)
      expect(outcome).toMatchObject({ exitCode: 1, stdout: '' })
      expect(outcome.stderr).toContain('--config /dev/null')
      expect(requests).toEqual([])
    })

    it('goes without the file when told to', async () => {
      const { requests } = await down(' --config /dev/null', 'rootDir: data')
      expect(requests.map(({ config }) => config)).toEqual([completeConfig({})])
    })
  })

  it('show what doctor found to programs too', async () => {
    const findings: DoctorFinding[] = [
      { name: 'containerd', status: 'ok', message: '2.1.0' },
      { name: 'runc', status: 'error', message: 'not found', hint: 'apt-get install runc' },
    ]
    const doctor = async (): Promise<readonly DoctorFinding[]> => findings
    const json = await podd('doctor -o json', { daemon: { doctor } })
    expect(json).toMatchObject({ exitCode: 1, stderr: '' })
    const report = { apiVersion: 'podd.dev/v1', kind: 'DoctorReport', items: findings }
    expect(JSON.parse(json.stdout)).toEqual(report)
    expect(parse((await podd('doctor --output=yaml', { daemon: { doctor } })).stdout)).toEqual(report)
    expect(await podd('doctor -o jsn', { daemon: { doctor } })).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: 'podd: unknown output format "jsn"\nDid you mean json?\n',
    })
  })

  it('show what doctor found, and how to mend it', async () => {
    const findings: DoctorFinding[] = [
      { name: 'containerd', status: 'ok', message: '2.1.0' },
      {
        name: 'cni-plugins',
        status: 'error',
        message: 'not found',
        hint: 'apt-get install containernetworking-plugins',
      },
    ]
    expect(await podd('doctor', { daemon: { doctor: async () => findings } })).toEqual({
      exitCode: 1,
      stdout: `ok      containerd    2.1.0
error   cni-plugins   not found
                      fix: apt-get install containernetworking-plugins
1 error, 0 warnings
`,
      stderr: '',
    })
  })
})
