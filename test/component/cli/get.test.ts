import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { parse } from 'yaml'
import { ApiRig } from '../../support/api-rig.ts'
import type { CliOutcome } from '../../support/cli-rig.ts'
import { callCli, startCli } from '../../support/cli-rig.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { podObject } from '../../support/pod-objects.ts'

let rig: ApiRig
beforeEach(async () => {
  rig = await ApiRig.start()
  // Ages are told by the second.
  vi.setSystemTime(Date.now())
  const creationTimestamp = new Date(Date.now() - 300_000).toISOString()
  const pod = (name: string, labels: Readonly<Record<string, string>>, namespace = 'default'): void =>
    rig.pods.put(podObject({ name, namespace, metadata: { creationTimestamp, labels } }))
  pod('web', { tier: 'front', app: 'web', 'example.com/env': 'prod' })
  pod('db', {})
  pod('till', { app: 'till' }, 'shop')
  rig.configmaps.put({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'conf',
      namespace: 'default',
      uid: 'uid-conf',
      creationTimestamp,
      labels: { app: 'web' },
    },
    data: { key: 'value' },
  })
})
afterEach(async () => {
  vi.useRealTimers()
  await rig[Symbol.asyncDispose]()
})

const podd = (words: readonly string[]): Promise<CliOutcome> =>
  callCli(words, { env: { PODD_SOCKET: rig.socketPath } })
const get = (line: string): Promise<CliOutcome> => podd(['get', ...line.split(' ')])

describe('tables of podd get', () => {
  it.each([
    [
      'pods --show-labels',
      `NAME   READY   STATUS    RESTARTS   AGE   LABELS
db     1/1     Running   0          5m    <none>
web    1/1     Running   0          5m    app=web,example.com/env=prod,tier=front
`,
    ],
    [
      'pods -L app,example.com/env -L tier',
      `NAME   READY   STATUS    RESTARTS   AGE   APP   ENV    TIER
db     1/1     Running   0          5m
web    1/1     Running   0          5m    web   prod   front
`,
    ],
    [
      'pods -A --no-headers -L app --show-labels',
      `default   db     1/1   Running   0     5m           <none>
default   web    1/1   Running   0     5m    web    app=web,example.com/env=prod,tier=front
shop      till   1/1   Running   0     5m    till   app=till
`,
    ],
    [
      'pods --show-kind --no-headers',
      'pod/db    1/1   Running   0     5m\npod/web   1/1   Running   0     5m\n',
    ],
    ['pods -o custom-columns=N:.metadata.name --no-headers', 'db\nweb\n'],
    [
      'pods,cm',
      `NAME      READY   STATUS    RESTARTS   AGE
pod/db    1/1     Running   0          5m
pod/web   1/1     Running   0          5m

NAME             DATA   AGE   KEYS
configmap/conf   1      5m    key
`,
    ],
    [
      'po,configmap,pods --no-headers',
      'pod/db    1/1   Running   0     5m\npod/web   1/1   Running   0     5m\nconfigmap/conf   1     5m    key\n',
    ],
    [
      'pods,secrets -L app --no-headers',
      'db    1/1   Running   0     5m\nweb   1/1   Running   0     5m    web\n',
    ],
    [
      'cm/conf pod/web --sort-by .metadata.name',
      `NAME             DATA   AGE   KEYS
configmap/conf   1      5m    key

NAME      READY   STATUS    RESTARTS   AGE
pod/web   1/1     Running   0          5m
`,
    ],
    ['all --no-headers', 'db    1/1   Running   0     5m\nweb   1/1   Running   0     5m\n'],
  ])('get %s', async (line, stdout) => {
    expect(await get(line)).toEqual({ exitCode: 0, stdout, stderr: '' })
  })

  it('go on without titles', async () => {
    using call = startCli(['get', 'pods', '-w', '--no-headers', '-L', 'app'], {
      env: { PODD_SOCKET: rig.socketPath },
    })
    await expect.poll(() => call.stdout().split('\n').length).toBe(3)
    rig.pods.put(podObject({ name: 'late', metadata: { labels: { app: 'x' } } }))
    await expect.poll(() => call.stdout()).toMatch(/^db .*\nweb .*\nlate .* x\n$/u)
  })
})

describe('the columns of podd get', () => {
  it.each(['pods', 'configmaps', 'namespaces'])(
    'show of %s the same as the Table that kubectl gets',
    async (resource) => {
      rig.namespaces.put({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'shop', uid: 'uid-shop', creationTimestamp: new Date().toISOString() },
        spec: { finalizers: [] },
        status: { phase: 'Active' },
      })
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
      const { text } = await rig.call(`/api/v1/${resource}`, 'GET', { accept })
      const table: {
        readonly columnDefinitions: readonly { readonly name: string }[]
        readonly rows: readonly { readonly cells: readonly unknown[] }[]
      } = JSON.parse(text)
      const { stdout } = await get(`${resource} -A -o wide`)
      const [titles = [], ...rows] = stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {3,}/u))
      const shared = table.columnDefinitions.flatMap(({ name }, at) => {
        const own = titles.indexOf(name.toUpperCase())
        return own === -1 ? [] : [{ name, at, own }]
      })
      expect(shared.length).toBeGreaterThan(2)
      expect(rows.length).toBeGreaterThan(0)
      for (const { at, own } of shared)
        expect(rows.map((row) => row[own])).toEqual(table.rows.map(({ cells }) => String(cells[at])))
    },
  )
})

describe('data of podd get', () => {
  it.each([
    ['pods,cm -o name', 'pod/db\npod/web\nconfigmap/conf\n'],
    ['pod/web cm/conf pod/db -o name', 'pod/web\nconfigmap/conf\npod/db\n'],
    ['pods,cm -o jsonpath={.kind}:{.items[*].metadata.name}', 'List:db web conf'],
    [
      'pods,cm -o custom-columns=N:.metadata.name,K:.kind',
      'N      K\ndb     Pod\nweb    Pod\nconf   ConfigMap\n',
    ],
    ['pods -o jsonpath-as-json={.items[*].metadata.name}', '[\n    "db",\n    "web"\n]\n'],
    ['pods web gone --ignore-not-found -o name', 'pod/web\n'],
    ['pods gone --ignore-not-found', ''],
    ['pods gone --ignore-not-found -o json', ''],
    ['pods -n empty -o name', ''],
    ['pods -n empty -o custom-columns=N:.metadata.name,K:.kind', 'N     K\n'],
    ['pods,cm -n empty -o custom-columns=N:.metadata.name', 'N\n'],
    ['pods -n empty -o custom-columns=N:.metadata.name --no-headers', ''],
    ['pods gone lost --ignore-not-found -o custom-columns=N:.metadata.name', ''],
    ['pods -l app=none -o jsonpath={.items}', '[]'],
  ])('get %s', async (line, stdout) => {
    expect(await get(line)).toEqual({ exitCode: 0, stdout, stderr: '' })
  })

  it('are printed with each change alone', async () => {
    using call = startCli(['get', 'pods', '--watch-only', '-o', 'name'], {
      env: { PODD_SOCKET: rig.socketPath },
    })
    await expect.poll(() => rig.pods.watchers).toBe(1)
    rig.pods.put(podObject({ name: 'late' }))
    await expect.poll(() => call.stdout()).toBe('pod/late\n')
  })

  it('go on to be watched after the daemon ended the watch at its time', async () => {
    await rig[Symbol.asyncDispose]()
    const clock = new ManualClock()
    rig = await ApiRig.start(clock)
    using call = startCli(['get', 'pods', '--watch-only', '-o', 'name'], {
      env: { PODD_SOCKET: rig.socketPath },
    })
    await expect.poll(() => rig.pods.watchers).toBe(1)
    const watched = rig.pods.subscriptions
    await clock.advance(3_600_000)
    await expect.poll(() => [rig.pods.watchers, rig.pods.subscriptions]).toEqual([1, watched + 1])
    rig.pods.put(podObject({ name: 'late' }))
    await expect.poll(() => call.stdout()).toBe('pod/late\n')
  })

  it('have their titles once in a watch of columns', async () => {
    const line = ['get', 'pods', '-n', 'empty', '-w', '-o', 'custom-columns=N:.metadata.name']
    using call = startCli(line, { env: { PODD_SOCKET: rig.socketPath } })
    await expect.poll(() => rig.pods.watchers).toBe(1)
    expect(call.stdout()).toBe('')
    rig.pods.put(podObject({ name: 'late', namespace: 'empty' }))
    await expect.poll(() => call.stdout()).toBe('N\nlate\n')
  })

  it('are what the API answers where that is asked for', async () => {
    const { stdout } = await get('--raw /api/v1/namespaces/default/configmaps/conf')
    expect(JSON.parse(stdout)).toMatchObject({ kind: 'ConfigMap', data: { key: 'value' } })
  })

  it('are a list as kubectl has it, in each format', async () => {
    const { stdout } = await get('pods -n shop -o json')
    expect(JSON.parse(stdout)).toEqual({
      apiVersion: 'v1',
      kind: 'List',
      metadata: { resourceVersion: '' },
      items: [expect.objectContaining({ kind: 'Pod' })],
    })
    expect(parse((await get('pods -n shop -o yaml')).stdout)).toEqual(JSON.parse(stdout))
    expect(JSON.parse((await get('pods -n shop -o jsonpath={}')).stdout)).toEqual(JSON.parse(stdout))
    expect(JSON.parse((await get('--raw /api/v1/pods')).stdout)).toMatchObject({ kind: 'PodList' })
  })

  it('of several kinds are one list', async () => {
    const { stdout } = await get('cm,pods -o json')
    expect(JSON.parse(stdout)).toMatchObject({
      kind: 'List',
      items: [{ kind: 'ConfigMap' }, { kind: 'Pod' }, { kind: 'Pod' }],
    })
  })

  it('are printed with each change', async () => {
    using call = startCli(['get', 'pods', '-w', '-o', String.raw`jsonpath={.metadata.name}{"\n"}`], {
      env: { PODD_SOCKET: rig.socketPath },
    })
    await expect.poll(() => call.stdout()).toBe('db\nweb\n')
    rig.pods.put(podObject({ name: 'late' }))
    await expect.poll(() => call.stdout()).toBe('db\nweb\nlate\n')
  })
})

describe('what podd get cannot give', () => {
  it.each([
    ['pods web gone', 1, 'podd: Error from server (NotFound): pods "gone" not found'],
    ['pods,cm -n empty', 0, 'No resources found in namespace empty'],
    ['pods -o jsonpath={.items[99].x}', 1, 'array index out of bounds: index 99, length 2'],
    ['pods -o jsonpath={len(.items)}', 2, 'unrecognized identifier len('],
    ['pods --sort-by {.metadata', 2, 'podd: unexpected path "{.metadata"\nWrite a path such as'],
    ['pods --sort-by .metadata.nothing', 1, 'couldn\'t find any field with path ".metadata.nothing"'],
    [
      'pods -o jsonpath',
      2,
      "podd: template format specified but no template given\nWrite -o jsonpath='{.items",
    ],
    ['pods -o jsonpath=', 2, 'podd: template format specified but no template given'],
    ['pods -o go-template={{.x}}', 2, 'podd: podd reads no Go templates\nWrite -o jsonpath='],
    ['pods -o json --show-labels', 2, 'podd: --show-labels option cannot be used with json printer'],
    [
      'pods -o custom-columns=N:.kind -L app',
      2,
      'podd: --label-columns option cannot be used with custom-columns',
    ],
    ['pods,cm -w', 2, 'podd: you may only specify a single resource type'],
    ['pods cm/conf', 2, 'podd: "cm/conf" names a kind again\nTry podd get cm/conf'],
    ['--raw /api/v1/nothing', 1, 'podd: Error from server (NotFound)'],
    ['--raw /version pods', 2, 'podd: arguments may not be passed when --raw is specified'],
    ['--raw version', 2, 'podd: --raw must be a path\nTry podd get --raw /podd/v1/status'],
    [
      '--raw /é',
      2,
      'podd: --raw "/é" is no path of a request\nEscape what stands in no URL: podd get --raw "/%C3%A9"',
    ],
    ['pods/web/x', 2, 'podd: get what?'],
    ['ep', 2, 'podd: podd knows no resource "ep"\n`podd get endpointslices` shows'],
    ['pods,HPA.autoscaling', 2, 'podd: podd knows no resource "HPA.autoscaling"\n`podd get deployments`'],
    ['rc/web', 2, 'podd: podd knows no resource "rc"\n`podd get deployments`'],
    ['pv', 2, '`podd get pvc` shows the claims'],
    ['ing', 2, 'hostPort or hostNetwork'],
  ])('get %s', async (line, exitCode, message) => {
    const outcome = await get(line)
    expect(outcome.exitCode).toBe(exitCode)
    expect(outcome.stderr).toContain(message)
    // A hint is one line.
    expect(outcome.stderr.split('\n').length).toBeLessThanOrEqual(3)
  })

  it('is a path with a space', async () => {
    const { exitCode, stderr } = await podd(['get', '--raw', '/a b\n'])
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('podd get --raw "/a%20b%0A"')])
  })

  it('is said for describe as well, which takes several kinds too', async () => {
    expect((await podd(['describe', 'ep'])).stderr).toContain('podd get endpointslices')
    const names = ({ stdout }: CliOutcome): readonly string[] =>
      [...stdout.matchAll(/^Name: +(\S+)$/gmu)].map(([, name = '']) => name)
    expect(names(await podd(['describe', 'pods,cm', '-l', 'app=web']))).toEqual(['web', 'conf'])
    expect(names(await podd(['describe', 'cm/conf', 'pod/db']))).toEqual(['conf', 'db'])
  })
})
