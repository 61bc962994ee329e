import { PassThrough } from 'node:stream'

import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import type { ResourceList, ResourceObject, WatchEvent } from '../../../src/api/resource.ts'
import type { JsonObject } from '../../../src/base/json.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createHandler } from '../../../src/server/create-handler.ts'
import type { ApiHandler, ApiResponse, Identity } from '../../../src/server/requests/request.ts'
import { authenticatedGroup, root } from '../../../src/server/requests/request.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { eventObject, podObject } from '../../support/pod-objects.ts'

const unprivileged: Identity = { name: 'ann', groups: ['shop', authenticatedGroup] }

const noBody = async (): Promise<Buffer> => Buffer.alloc(0)

let rig: ApiRig
let clock: ManualClock
let handler: ApiHandler
let ending: AbortController

beforeEach(() => {
  begin()
})

/** A handler over empty stores; there is no socket. */
function begin(): void {
  rig = new ApiRig('/nowhere')
  clock = new ManualClock()
  ending = new AbortController()
  handler = createHandler(rig.readers(), '/nowhere', undefined, clock, silentLogger)
}

function ask(target: string, identity: Identity = root, method = 'GET'): Promise<ApiResponse> {
  return handler.handle({ method, target, headers: {}, identity, readBody: noBody, signal: ending.signal })
}

async function bodyOf({ body }: ApiResponse): Promise<string> {
  if (typeof body === 'string') return body
  const decoder = new TextDecoder()
  let all = ''
  for await (const piece of body) all += decoder.decode(piece)
  return all
}

async function askJson<T>(target: string): Promise<T> {
  return JSON.parse(await bodyOf(await ask(target))) as T
}

const namesOf = async (target: string): Promise<readonly string[]> =>
  (await askJson<ResourceList>(target)).items.map(({ metadata }) => metadata.name)

interface Line extends Omit<WatchEvent<ResourceObject>, 'type'> {
  readonly type: string
}

/** A watch that the test reads line by line. */
async function watch(target: string) {
  const { body } = await ask(target)
  if (typeof body === 'string' || !(Symbol.asyncIterator in body)) throw new Error('this is no watch')
  const pieces = body[Symbol.asyncIterator]()
  const next = async (): Promise<Line | undefined> => {
    const { value, done } = await pieces.next()
    return done === true ? undefined : (JSON.parse(new TextDecoder().decode(value)) as Line)
  }
  const take = async (count: number): Promise<readonly string[]> => {
    const lines: string[] = []
    for (let at = 0; at < count; at += 1) {
      const line = await next()
      lines.push(line === undefined ? 'end' : `${line.type} ${line.object.metadata.name}`)
    }
    return lines
  }
  return { next, take, stop: () => pieces.return?.() }
}

describe('who asks', () => {
  it.each([
    ['GET', '/api/v1/pods', 'list resource "pods" in API group "" at the cluster scope'],
    [
      'GET',
      '/api/v1/namespaces/default/secrets/tls',
      'get resource "secrets" in API group "" in the namespace "default"',
    ],
    ['GET', '/podd/v1/secrets', 'list resource "secrets" in API group "podd.dev" at the cluster scope'],
    ['GET', '/podd/v1/status', 'get path "/podd/v1/status"'],
    ['POST', '/podd/v1/gc', 'post path "/podd/v1/gc"'],
  ])('may not %s %s unless it is root', async (method, target, what) => {
    const answer = await ask(target, unprivileged, method)
    expect(answer.status).toBe(403)
    expect(JSON.parse(await bodyOf(answer))).toMatchObject({
      kind: 'Status',
      reason: 'Forbidden',
      code: 403,
      message: expect.stringContaining(`forbidden: User "ann" cannot ${what}`) as string,
    })
  })

  it('may not run commands unless it is root, and may always ask how podd is', async () => {
    rig.pods.put(podObject())
    const opened = await handler.open(
      {
        method: 'GET',
        target: '/api/v1/namespaces/default/pods/web/exec?command=ls',
        headers: { upgrade: 'websocket' },
        identity: unprivileged,
        readBody: noBody,
        signal: ending.signal,
      },
      new PassThrough(),
    )
    expect(opened).toMatchObject({ status: 403 })
    expect(await bodyOf(await ask('/healthz', unprivileged))).toBe('ok')
  })
})

describe('a path that ends in a slash', () => {
  it.each([
    '/version',
    '/api',
    '/apis',
    '/apis/apps',
    '/api/v1',
    '/api/v1/namespaces/default/pods',
    '/healthz',
  ])('is that without it: %s', async (target) => {
    const answer = await bodyOf(await ask(target))
    expect(await bodyOf(await ask(`${target}/`))).toBe(answer)
    const refusal = (await ask(target, unprivileged)).status
    expect((await ask(`${target}/`, unprivileged)).status).toBe(refusal)
  })
})

describe('a check of podd itself', () => {
  const failing = {
    nowMs: 1_000_000,
    relistPeriodMs: 60_000,
    eventWaitsSinceMs: 0,
    isRuntimeDown: true,
    isNetworkDown: true,
  }
  const loop = '[-]sync-loop failed: an event has waited for 1000 s'
  const lines = async (target: string) => {
    const answer = await ask(target, unprivileged)
    return [answer.status, ...(await bodyOf(answer)).trimEnd().split('\n')]
  }

  it.each<[target: string, lines: readonly (string | number)[]]>([
    ['/healthz', [200, 'ok']],
    ['/readyz', [200, 'ok']],
    [
      '/healthz?verbose',
      [200, '[+]ping ok', '[+]sync-loop ok', '[+]relist ok', '[+]event-loop ok', 'healthz check passed'],
    ],
    ['/readyz/runtime', [200, 'ok']],
    ['/readyz/network', [200, 'ok']],
  ])('that passes: %s', async (target, expected) => {
    expect(await lines(target)).toEqual(expected)
  })

  it.each<[target: string, lines: readonly (string | number)[]]>([
    ['/healthz', [500, '[+]ping ok', loop, '[+]relist ok', '[+]event-loop ok', 'healthz check failed']],
    [
      '/readyz?exclude=sync-loop&exclude=etcd',
      [
        500,
        '[+]ping ok',
        '[+]sync-loop excluded: ok',
        '[+]relist ok',
        '[+]event-loop ok',
        '[-]runtime failed: the container runtime is not available',
        '[-]network failed: the container runtime has no network for pods',
        'warn: some health checks cannot be excluded: no matches for "etcd"',
        'readyz check failed',
      ],
    ],
    ['/healthz?exclude=sync-loop', [200, 'ok']],
    ['/healthz/ping', [200, 'ok']],
    ['/healthz/sync-loop', [500, 'internal server error: an event has waited for 1000 s']],
  ])('that fails: %s', async (target, expected) => {
    rig.health = failing
    expect(await lines(target)).toEqual(expected)
  })

  it.each(['/healthz', '/livez', '/readyz/sync-loop'])('is answered with its head: %s', async (target) => {
    const { status } = await ask(target, unprivileged)
    expect(await ask(target, unprivileged, 'HEAD')).toMatchObject({ status })
  })

  it.each(['/healthz/runtime', '/readyz/etcd'])('that is none is not found: %s', async (target) => {
    expect(await ask(target, unprivileged)).toMatchObject({ status: 404 })
  })
})

describe('an upgrade', () => {
  it('that podd has no codec for is passed over', () => {
    expect(handler.upgrades({ upgrade: 'WebSocket' })).toBe(true)
    expect(handler.upgrades({ upgrade: 'SPDY/3.1' })).toBe(true)
    expect(handler.upgrades({ upgrade: 'h2c' })).toBe(false)
    expect(handler.upgrades({})).toBe(false)
  })
})

describe('secrets', () => {
  const value = Buffer.from('hunter2').toString('base64')
  beforeEach(() => {
    rig.secrets.put({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: 'tls',
        namespace: 'default',
        uid: 'u',
        annotations: {
          'kubectl.kubernetes.io/last-applied-configuration': 'hunter2',
          'podd.dev/source': 'file',
        },
      },
      type: 'Opaque',
      data: { word: value },
    })
  })

  it('are real objects where Kubernetes has them', async () => {
    const list = await askJson<ResourceList>('/api/v1/secrets')
    expect(list).toMatchObject({ kind: 'SecretList', items: [{ kind: 'Secret', data: { word: value } }] })
    expect(await askJson('/api/v1/namespaces/default/secrets/tls')).toEqual(list.items[0])
  })

  it.each([
    '/podd/v1/secrets',
    '/podd/v1/namespaces/default/secrets',
    '/podd/v1/namespaces/default/secrets/tls',
  ])('hold no value at %s', async (target) => {
    const shown = await bodyOf(await ask(target))
    expect(shown).toContain('"word":"<7 bytes>"')
    expect(shown).not.toMatch(/hunter2|aHVudGVyMg/u)
  })

  it('hold no value in a watch of their own form', async () => {
    const lines = await watch('/podd/v1/secrets?watch=true&resourceVersion=1')
    expect((await lines.next())?.type).toBe('ERROR')
    const live = await watch('/podd/v1/secrets?watch=true')
    expect(JSON.stringify(await live.next())).toContain('<7 bytes>')
    const next = live.next()
    rig.secrets.remove('tls')
    const deleted = await next
    expect(deleted).toMatchObject({ type: 'DELETED', object: { data: { word: '<7 bytes>' } } })
  })
})

describe('a list', () => {
  const labelled = (name: string, labels: Record<string, string>, namespace = 'default') =>
    podObject({ name, namespace, metadata: { labels } })

  beforeEach(() => {
    rig.pods.put(labelled('a', { app: 'web', tier: 'front', level: '3' }))
    rig.pods.put(labelled('b', { app: 'web' }))
    rig.pods.put(labelled('c', { app: 'db', level: '10' }, 'shop'))
    rig.pods.put(
      podObject({
        name: 'd',
        spec: { restartPolicy: 'Never', nodeName: 'box' },
        status: { phase: 'Failed' },
      }),
    )
  })

  it.each<[query: string, names: string]>([
    ['', 'a b d c'],
    ['labelSelector=', 'a b d c'],
    ['labelSelector=app=web', 'a b'],
    ['labelSelector=app==web,tier', 'a'],
    ['labelSelector=app!=web', 'd c'],
    ['labelSelector=!tier', 'b d c'],
    ['labelSelector=app in (web, db),!tier', 'b c'],
    ['labelSelector=app notin (web)', 'd c'],
    ['labelSelector=tier in (,front)', 'a'],
    ['labelSelector=level>3', 'c'],
    ['labelSelector=level<10', 'a'],
    ['labelSelector=app=', ''],
    ['labelSelector=in in (in)', ''],
    ['fieldSelector=metadata.name=a', 'a'],
    ['fieldSelector=metadata.name!=a,metadata.namespace==default', 'b d'],
    ['fieldSelector=status.phase!=Failed,', 'a b c'],
    ['fieldSelector=spec.nodeName=box', 'd'],
    ['fieldSelector=spec.restartPolicy=Always', 'a b c'],
    ['fieldSelector=spec.hostNetwork=false,spec.schedulerName=default-scheduler', 'a b d c'],
    [String.raw`fieldSelector=metadata.name=a\,b`, ''],
    ['fieldSelector=metadata.name=d&labelSelector=app', ''],
    ['pretty=true&unknown=1', 'a b d c'],
  ])('accepts %s', async (query, names) => {
    const target = `/api/v1/pods?${query.replaceAll(' ', '%20').replaceAll('+', '%2B')}`
    expect((await namesOf(target)).join(' ')).toBe(names)
  })

  it.each<[resource: string, query: string, status: number, message: string]>([
    [
      'pods',
      'labelSelector=a b',
      400,
      "unable to parse requirement: found 'b', expected: =, ==, !=, in, notin, <, >",
    ],
    ['pods', 'labelSelector=app in web', 400, "unable to parse requirement: found 'web' expected: '('"],
    ['pods', 'labelSelector=app=web,', 400, "found '', expected: identifier after ','"],
    ['pods', 'labelSelector=-x=1', 400, 'unable to parse requirement: key: Invalid value: "-x"'],
    ['pods', 'labelSelector=a>b', 400, 'unable to parse requirement: values[0]: Invalid value: "b"'],
    ['pods', 'fieldSelector=spec.foo=1', 400, 'field label not supported: spec.foo'],
    ['pods', 'fieldSelector=toString=1', 400, 'field label not supported: toString'],
    ['pods', 'fieldSelector=nonsense', 400, "invalid selector: 'nonsense'; can't understand 'nonsense'"],
    ['pods', 'fieldSelector=a=b=c', 400, 'invalid field selector: unescaped character in value: ='],
    ['configmaps', 'fieldSelector=status.phase=x', 400, 'field label not supported: status.phase'],
    ['pods', 'limit=many', 400, 'limit must be a whole number'],
    ['pods', 'continue=nonsense', 400, 'continue key is not valid'],
    ['pods', 'resourceVersion=new', 400, 'resourceVersion: Invalid value: "new"'],
    [
      'pods',
      'resourceVersionMatch=Exact',
      422,
      'resourceVersionMatch is forbidden unless resourceVersion is provided',
    ],
    ['pods', 'resourceVersion=5&resourceVersionMatch=Newest', 422, 'Unsupported value: "Newest"'],
    ['pods', 'sendInitialEvents=true', 422, 'sendInitialEvents is forbidden for list'],
    [
      'pods',
      'watch=true&sendInitialEvents=true',
      422,
      'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    ],
    [
      'pods',
      'watch=1&resourceVersionMatch=NotOlderThan',
      422,
      'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    ],
    ['pods', 'resourceVersion=1&resourceVersionMatch=Exact', 410, 'too old resource version: 1 ('],
    [
      'pods',
      'resourceVersion=9007199254740991',
      504,
      'Timeout: Too large resource version: 9007199254740991, current: ',
    ],
  ])('of %s refuses %s', async (resource, query, status, message) => {
    const answer = await ask(`/api/v1/${resource}?${query.replaceAll(' ', '%20')}`)
    const body = JSON.parse(await bodyOf(answer)) as { message: string }
    expect(answer.status).toBe(status)
    expect(body).toMatchObject({ kind: 'Status', status: 'Failure', code: status })
    expect(body.message).toContain(message)
  })

  it('of Jobs knows how many pods have succeeded', async () => {
    const job = (name: string, status: JsonObject): void =>
      rig.jobs.put({
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name, namespace: 'default', uid: name, generation: 1 },
        spec: {},
        status,
      })
    job('done', { succeeded: 1 })
    job('begun', {})
    expect(await namesOf('/apis/batch/v1/jobs?fieldSelector=status.successful=1')).toEqual(['done'])
    expect(await namesOf('/apis/batch/v1/jobs?fieldSelector=status.successful=0')).toEqual(['begun'])
  })

  it('of events knows their fields', async () => {
    rig.events.put(eventObject('one', { reason: 'Started' }))
    rig.events.put(eventObject('two', { type: 'Warning', reason: 'BackOff' }))
    const about = 'involvedObject.kind=Pod,involvedObject.name=web,involvedObject.uid=uid-web'
    expect(await namesOf(`/api/v1/events?fieldSelector=${about}`)).toEqual(['one', 'two'])
    expect(await namesOf('/api/v1/events?fieldSelector=type!=Normal,reason=BackOff,source=kubelet')).toEqual([
      'two',
    ])
  })

  it('comes in parts that are of one revision, whatever changes meanwhile', async () => {
    const first = await askJson<ResourceList>('/api/v1/pods?limit=2')
    expect(first.metadata).toMatchObject({ remainingItemCount: 2, continue: expect.any(String) })
    rig.pods.remove('d')
    rig.pods.put(labelled('0', {}))
    const rest = await askJson<ResourceList>(`/api/v1/pods?limit=2&continue=${first.metadata.continue}`)
    expect([...first.items, ...rest.items].map(({ metadata }) => metadata.name)).toEqual(['a', 'b', 'd', 'c'])
    expect(rest.metadata).toEqual({ resourceVersion: first.metadata.resourceVersion })
    const selected = await askJson<ResourceList>('/api/v1/pods?limit=1&labelSelector=app')
    expect(Object.keys(selected.metadata).sort()).toEqual(['continue', 'resourceVersion'])
    for (let note = 0; note < 600; note += 1) rig.pods.put(labelled('0', { note: String(note) }))
    expect(await ask(`/api/v1/pods?continue=${first.metadata.continue}`)).toMatchObject({ status: 410 })
  })

  it('is of the revision that is asked for exactly', async () => {
    const { metadata } = await askJson<ResourceList>('/api/v1/pods')
    rig.pods.remove('a')
    const at = `resourceVersion=${metadata.resourceVersion}&resourceVersionMatch`
    expect(await namesOf(`/api/v1/pods?${at}=Exact`)).toEqual(['a', 'b', 'd', 'c'])
    expect(await namesOf(`/api/v1/pods?${at}=NotOlderThan`)).toEqual(['b', 'd', 'c'])
  })
})

describe('a watch', () => {
  it('begins with what is there, or after a revision', async () => {
    rig.pods.put(podObject({ name: 'a' }))
    const { metadata } = await askJson<ResourceList>('/api/v1/pods')
    rig.pods.put(podObject({ name: 'b' }))
    expect(await (await watch('/api/v1/pods?watch=true')).take(2)).toEqual(['ADDED a', 'ADDED b'])
    const later = await watch(`/api/v1/pods?watch=1&resourceVersion=${metadata.resourceVersion}`)
    rig.pods.remove('a')
    expect(await later.take(2)).toEqual(['ADDED b', 'DELETED a'])
  })

  it('says that a revision is forgotten, and ends', async () => {
    const lines = await watch('/api/v1/pods?watch=true&resourceVersion=7')
    expect(await lines.next()).toMatchObject({
      type: 'ERROR',
      object: {
        kind: 'Status',
        code: 410,
        reason: 'Expired',
        message: expect.stringMatching(/^too old resource version: 7 \(/u),
      },
    })
    expect(await lines.next()).toBeUndefined()
  })

  it('is silent until a revision that is yet to come', async () => {
    const ahead = rig.shown.revisions.latest + 2
    const lines = await watch(`/api/v1/pods?watch=true&resourceVersion=${ahead}`)
    const next = lines.take(1)
    for (const name of ['a', 'b', 'c']) rig.pods.put(podObject({ name }))
    expect(await next).toEqual(['ADDED c'])
  })

  it('sees an object come and go as it meets the selector', async () => {
    const phase = (phase: 'Running' | 'Failed' | 'Pending') =>
      rig.pods.put(podObject({ name: 'a', status: { phase } }))
    phase('Pending')
    const lines = await watch('/api/v1/pods?watch=true&fieldSelector=status.phase=Running')
    const next = lines.next()
    phase('Running')
    expect(await next).toMatchObject({ type: 'ADDED', object: { status: { phase: 'Running' } } })
    phase('Failed')
    const { revision } = rig.pods.reader
    expect(await lines.next()).toMatchObject({
      type: 'DELETED',
      object: { status: { phase: 'Running' }, metadata: { resourceVersion: String(revision) } },
    })
    rig.pods.remove('a')
    phase('Running')
    expect(await lines.take(1)).toEqual(['ADDED a'])
  })

  it('tells by bookmarks how far it is, if it is asked to', async () => {
    const lines = await watch('/api/v1/pods?watch=true&allowWatchBookmarks=true')
    const next = lines.next()
    rig.events.put(eventObject('e'))
    await clock.advance(60_000)
    expect(await next).toEqual({
      type: 'BOOKMARK',
      object: {
        kind: 'Pod',
        apiVersion: 'v1',
        metadata: { resourceVersion: String(rig.pods.reader.revision) },
      },
    })
    ending.abort()
    expect(await lines.next()).toBeUndefined()
    expect(clock.pendingTimers).toBe(0)
  })

  it('marks the end of what was there for who asks for that', async () => {
    rig.pods.put(podObject({ name: 'a' }))
    const query =
      'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const lines = await watch(`/api/v1/pods?${query}`)
    expect(await lines.take(1)).toEqual(['ADDED a'])
    expect(await lines.next()).toMatchObject({
      type: 'BOOKMARK',
      object: { kind: 'Pod', metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } },
    })
  })

  it('ends at its time, and leaves nothing', async () => {
    const lines = await watch('/api/v1/pods?watch=true&timeoutSeconds=30')
    const next = lines.take(1)
    await clock.advance(30_000)
    expect(await next).toEqual(['end'])
    expect(rig.pods.watchers).toBe(0)
    expect(clock.pendingTimers).toBe(0)
  })

  it('that asks for no time ends after 30 to 60 minutes, as an API server’s', async () => {
    const lines = await watch('/api/v1/pods?watch=true&timeoutSeconds=0')
    const next = lines.take(1)
    await clock.advance(1_799_000)
    expect(rig.pods.watchers).toBe(1)
    await clock.advance(1_801_000)
    expect(await next).toEqual(['end'])
    expect([rig.pods.watchers, clock.pendingTimers]).toEqual([0, 0])
  })

  const action = fc.record({
    do: fc.constantFrom('put', 'put', 'put', 'remove', 'read', 'cut'),
    name: fc.constantFrom('a', 'b', 'c'),
    app: fc.constantFrom('web', 'db'),
  })

  it('that goes on after every cut shows what a list shows, and each change once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 40 }), fc.boolean(), async (actions, selects) => {
        begin()
        const selector = selects ? '&labelSelector=app=web' : ''
        const held = new Map<string, ResourceObject>()
        const seen: number[] = []
        const expected: number[] = []
        rig.shown.pods.subscribe(({ revision, object, previous, type }) => {
          const is = type !== 'DELETED' && object.metadata.labels?.['app'] === 'web'
          if (!selects || is || previous?.metadata.labels?.['app'] === 'web') expected.push(revision)
        })
        const list = await askJson<ResourceList>(`/api/v1/pods?limit=500${selector}`)
        let at = list.metadata.resourceVersion
        let lines: Awaited<ReturnType<typeof watch>> | undefined
        const read = async (count: number): Promise<void> => {
          lines ??= await watch(`/api/v1/pods?watch=true&resourceVersion=${at}${selector}`)
          for (let line = 0; line < count; line += 1) {
            const change = await lines.next()
            if (change === undefined) throw new Error('the watch has ended')
            const { type, object } = change
            at = object.metadata.resourceVersion ?? ''
            seen.push(Number(at))
            if (type === 'DELETED') held.delete(object.metadata.name)
            else held.set(object.metadata.name, object)
          }
        }
        for (const { do: what, name, app } of actions) {
          if (what === 'put') rig.pods.put(podObject({ name, metadata: { labels: { app } } }))
          if (what === 'remove') rig.pods.remove(name)
          if (what === 'read' && seen.length < expected.length) await read(1)
          if (what === 'cut') {
            await lines?.stop()
            lines = undefined
          }
        }
        await read(expected.length - seen.length)
        expect(seen).toEqual(expected)
        const shown = await askJson<ResourceList>(`/api/v1/pods?${selector.slice(1)}`)
        expect([...held.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))).toEqual(
          shown.items,
        )
        await lines?.stop()
      }),
      { numRuns: 60 },
    )
  })
})
