import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import type { NodeObject } from '../../../src/api/cluster-objects.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { podObject } from '../../support/pod-objects.ts'
import { ask, readKubeconfig } from '../../support/tls-client.ts'
import type { Login } from '../../support/tls-client.ts'

const asTable =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json'
const pods = '/api/v1/namespaces/default/pods'
const initial = 'allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true'

let rig: ApiRig
let admin: Login
let token: string

beforeEach(async () => {
  rig = new ApiRig(await mkdtemp(join(tmpdir(), 'podd-dashboards-')))
  const tokenFile = join(rig.directory, 'tokens')
  await writeFile(tokenFile, 'v1,ann,1,podd:view\nn1,bob,2\n', { mode: 0o600 })
  token = 'v1'
  await rig.listen({
    address: { host: '127.0.0.1', port: 0 },
    names: ['127.0.0.1'],
    rootDir: rig.directory,
    tokenFile,
    report: () => {},
  })
  admin = readKubeconfig((await rig.call('/podd/v1/kubeconfig', 'POST')).text)
  const pod = podObject({ name: 'web' })
  rig.pods.put({ ...pod, metadata: { ...pod.metadata, labels: { app: 'web' } } })
  rig.nodes.put(node)
  await mkdir(join(rig.podLogsDir, 'default_web_uid-web', 'main'), { recursive: true })
  await writeFile(
    join(rig.podLogsDir, 'default_web_uid-web', 'main', '0.log'),
    '2026-01-01T00:00:00.000000001Z stdout F größe\n',
  )
})
afterEach(async () => {
  await rig.close(0)
  await rm(rig.directory, { recursive: true, force: true })
})

const node: NodeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'box', uid: 'uid-box', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: {},
  status: {
    capacity: { cpu: '4', memory: '8Gi' },
    allocatable: { cpu: '4', memory: '8Gi' },
    conditions: [],
    addresses: [
      { type: 'InternalIP', address: '192.0.2.1' },
      { type: 'Hostname', address: 'box' },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 10255 } },
    nodeInfo: {},
    images: [],
  },
}

const call = async (
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  body?: string | Buffer,
) => {
  const answer = await ask(`${admin.server}${path}`, {
    rejectUnauthorized: false,
    method,
    headers: { authorization: `Bearer ${token}`, ...headers },
    ...(body !== undefined && { body }),
  })
  return { ...answer, json: (): unknown => JSON.parse(answer.text) }
}

/** The events of a watch that ends by itself. */
const events = async (path: string, headers: Record<string, string> = {}): Promise<readonly unknown[]> => {
  const { code, text } = await call(`${path}&timeoutSeconds=1`, headers)
  expect(code).toBe(200)
  return text
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
}

/** As a browser opens it, which sends its token as a protocol. */
function browse(path: string, ...protocols: readonly string[]): WebSocket {
  const login = `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`
  return new WebSocket(`${admin.server.replace('https', 'wss')}${path}`, [login, ...protocols], {
    rejectUnauthorized: false,
    origin: 'https://dashboard.example',
  })
}

async function messages(socket: WebSocket): Promise<readonly { text: string; isBinary: boolean }[]> {
  const found: { text: string; isBinary: boolean }[] = []
  socket.on('message', (data: Buffer, isBinary) => found.push({ text: data.toString(), isBinary }))
  const [code] = (await once(socket, 'close')) as [number]
  expect(code).toBe(1000)
  return found
}

it('answers what k9s asks when it starts', async () => {
  expect((await call('/version')).json()).toMatchObject({
    gitVersion: expect.stringMatching(/^v1\.36/u) as string,
  })
  for (const path of ['/api', '/apis']) expect((await call(path)).code).toBe(200)
  const groups = (await call('/apis')).json() as { groups: { name: string }[] }
  expect(groups.groups.map(({ name }) => name)).toEqual(expect.arrayContaining(['metrics.k8s.io']))
  const allowed: Record<string, boolean> = {}
  for (const resource of ['namespaces', 'pods', 'nodes', 'customresourcedefinitions', 'secrets'])
    for (const verb of ['get', 'list', 'watch']) {
      const group = resource.startsWith('custom') ? 'apiextensions.k8s.io' : ''
      const body = JSON.stringify({ spec: { resourceAttributes: { verb, resource, group } } })
      const review = await call(
        '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        { 'content-type': 'application/json' },
        'POST',
        body,
      )
      const { status } = review.json() as { status: { allowed: boolean } }
      allowed[resource] = (allowed[resource] ?? true) && status.allowed
    }
  expect(allowed).toEqual({
    namespaces: true,
    pods: true,
    nodes: true,
    customresourcedefinitions: true,
    secrets: false,
  })
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  expect((await call(definitions)).json()).toMatchObject({ kind: 'CustomResourceDefinitionList', items: [] })
  expect(await events(`${definitions}?${initial}`)).toMatchObject([
    { type: 'BOOKMARK', object: { metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } } },
  ])
  expect(await events(`${pods}?${initial}`)).toMatchObject([
    { type: 'ADDED', object: { kind: 'Pod', metadata: { name: 'web' } } },
    { type: 'BOOKMARK', object: { kind: 'Pod' } },
  ])
  const table = await call(`${pods}?includeObject=Object`, { accept: asTable })
  expect(table.json()).toMatchObject({ kind: 'Table', rows: [{ object: { kind: 'Pod', spec: {} } }] })
  expect((await call('/apis/metrics.k8s.io/v1beta1/pods')).json()).toMatchObject({ kind: 'PodMetricsList' })
  expect((await call('/apis/metrics.k8s.io/v1beta1/nodes')).json()).toMatchObject({ kind: 'NodeMetricsList' })
})

it('answers what Prometheus asks to find pods and nodes', async () => {
  const headers = { accept: 'application/vnd.kubernetes.protobuf,application/json' }
  expect(await events(`/api/v1/pods?${initial}&labelSelector=app%3Dweb`, headers)).toMatchObject([
    {
      type: 'ADDED',
      object: {
        metadata: { uid: 'uid-web' },
        spec: { containers: [{ name: 'main' }] },
        status: { phase: 'Running' },
      },
    },
    { type: 'BOOKMARK' },
  ])
  expect(await events(`/api/v1/nodes?${initial}`, headers)).toMatchObject([
    {
      type: 'ADDED',
      object: {
        metadata: { name: 'box' },
        status: {
          addresses: [{ type: 'InternalIP', address: '192.0.2.1' }, {}],
          daemonEndpoints: { kubeletEndpoint: { Port: 10255 } },
        },
      },
    },
    { type: 'BOOKMARK' },
  ])
  expect(await events(`/api/v1/namespaces?${initial}`, headers)).toMatchObject([{ type: 'BOOKMARK' }])
})

it('lists and watches the lease of the node', async () => {
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases'
  const lease = {
    kind: 'Lease',
    metadata: { name: 'box' },
    spec: { holderIdentity: 'box', leaseDurationSeconds: 40 },
  }
  expect((await call(`${leases}/box`)).json()).toMatchObject(lease)
  expect((await call(leases)).json()).toMatchObject({ kind: 'LeaseList', items: [lease] })
  expect((await call(leases, { accept: asTable })).json()).toMatchObject({
    columnDefinitions: [{ name: 'Name' }, { name: 'Holder' }, { name: 'Age' }],
    rows: [{ cells: ['box', 'box', expect.any(String)] }],
  })
  expect(await events(`${leases}?watch=true`)).toMatchObject([{ type: 'ADDED', object: lease }])
  expect((await call('/apis/coordination.k8s.io/v1/namespaces/default/leases')).json()).toMatchObject({
    items: [],
  })
  expect((await call(`${leases}/other`)).json()).toMatchObject({
    message: 'leases.coordination.k8s.io "other" not found',
  })
})

describe('a browser, over WebSocket', () => {
  it('watches: an event in each message of text, until its time is over', async () => {
    const socket = browse(`${pods}?watch=1&resourceVersion=&timeoutSeconds=2`, 'base64.binary.k8s.io')
    await once(socket, 'open')
    expect(socket.protocol).toBe('base64.binary.k8s.io')
    const received = messages(socket)
    await expect.poll(() => rig.pods.watchers).toBe(1)
    rig.pods.put(podObject({ name: 'other' }))
    expect(
      (await received).map(({ text, isBinary }) => [
        isBinary,
        (JSON.parse(text) as { object: { metadata: { name: string } } }).object.metadata.name,
      ]),
    ).toEqual([
      [false, 'web'],
      [false, 'other'],
    ])
    await expect.poll(() => rig.pods.watchers).toBe(0)
  })

  it('leaves no watch behind when it goes', async () => {
    const socket = browse(`${pods}?watch=1`, 'base64.binary.k8s.io')
    await once(socket, 'open')
    await expect.poll(() => rig.pods.watchers).toBe(1)
    socket.close()
    await expect.poll(() => rig.pods.watchers).toBe(0)
  })

  it.each([
    ['base64.binary.k8s.io', Buffer.from('größe\n').toString('base64'), false],
    ['binary.k8s.io', 'größe\n', true],
  ])('reads a log as %s', async (protocol, text, isBinary) => {
    const received = await messages(browse(`${pods}/web/log?container=main`, protocol))
    // The first message says that the log begins.
    expect(received.map((each) => each.text)).toEqual(['', text])
    expect(received.at(-1)?.isBinary).toBe(isBinary)
  })

  it.each<[string, string, string, number]>([
    ['whose token is not known', 'nobody', `${pods}?watch=1`, 401],
    ['that may not', 'n1', `${pods}?watch=1`, 403],
    ['that asks for Secrets as a viewer', 'v1', '/api/v1/secrets?watch=1', 403],
    ['that asks for no pod', 'v1', `${pods}/none/log`, 404],
  ])('%s is refused before the upgrade', async (_, login, path, code) => {
    token = login
    const socket = browse(path, 'base64.binary.k8s.io')
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }]
    expect(response.statusCode).toBe(code)
    socket.on('error', () => {}).terminate()
  })

  it('of another site runs nothing with the certificate of its user, but for a proxy of the user’s own', async () => {
    const upgrade = (headers: Record<string, string>): Promise<number> =>
      new Promise((resolve, reject) => {
        const { key, cert, server } = admin
        const socket = new WebSocket(`${server.replace('https', 'wss')}${pods}?watch=1`, {
          key,
          cert,
          rejectUnauthorized: false,
          headers,
        })
        socket.on('error', reject)
        socket.once('open', () => resolve(101))
        socket.once('unexpected-response', (_, { statusCode = 0 }) => resolve(statusCode))
        socket.once('open', () => socket.close())
      })
    expect(await upgrade({})).toBe(101)
    expect(await upgrade({ 'sec-fetch-site': 'same-origin' })).toBe(101)
    expect(await upgrade({ 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await upgrade({ 'sec-fetch-site': 'same-site' })).toBe(403)
    expect(await upgrade({ 'sec-fetch-site': 'cross-site', 'x-forwarded-for': '127.0.0.1' })).toBe(101)
  })
})
