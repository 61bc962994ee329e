import { beforeEach, describe, expect, it } from 'vitest'
import type { ResourceObject } from '../../../src/api/resource.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createHandler } from '../../../src/server/create-handler.ts'
import type { ApiHandler, Identity } from '../../../src/server/requests/request.ts'
import { authenticatedGroup, root } from '../../../src/server/requests/request.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { eventObject, podObject } from '../../support/pod-objects.ts'

const asTable =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json'
const aggregated =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json'
const viewer: Identity = { name: 'ann', groups: ['podd:view', authenticatedGroup] }

let rig: ApiRig
let handler: ApiHandler
let ending: AbortController

beforeEach(() => {
  rig = new ApiRig('/nowhere')
  ending = new AbortController()
  handler = createHandler(rig.readers(), '/nowhere', undefined, new ManualClock(), silentLogger)
})

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly identity?: Identity
  readonly body?: Buffer
}

async function ask(target: string, { method = 'GET', headers = {}, identity = root, body }: Asked = {}) {
  const response = await handler.handle({
    method,
    target,
    headers,
    identity,
    readBody: async () => body ?? Buffer.alloc(0),
    signal: ending.signal,
  })
  if (typeof response.body === 'string') return { ...response, text: response.body }
  const chunks: Uint8Array[] = []
  for await (const chunk of response.body) chunks.push(chunk)
  return { ...response, text: Buffer.concat(chunks).toString() }
}

const json = async (target: string, asked: Asked = {}): Promise<unknown> => {
  const { text } = await ask(target, asked)
  return JSON.parse(text)
}

describe('discovery', () => {
  it('tells all at once where a client asks for that, in a type of its own', async () => {
    const answer = await ask('/api', { headers: { accept: aggregated } })
    expect(answer.contentType).toBe('application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList')
    const { items } = JSON.parse(answer.text) as {
      items: [{ metadata: object; versions: [{ version: string; resources: { resource: string }[] }] }]
    }
    expect(items).toHaveLength(1)
    expect(items[0].metadata).toEqual({})
    expect(items[0].versions[0].resources.find(({ resource }) => resource === 'pods')).toMatchObject({
      responseKind: { group: '', version: '', kind: 'Pod' },
      scope: 'Namespaced',
      singularResource: 'pod',
      shortNames: ['po'],
      categories: ['all'],
    })
    expect(await json('/apis', { headers: { accept: aggregated } })).toMatchObject({
      kind: 'APIGroupDiscoveryList',
      items: expect.arrayContaining([
        expect.objectContaining({ metadata: { name: 'metrics.k8s.io' } }),
      ]) as object[],
    })
  })

  it('tells it group by group to older clients', async () => {
    expect(await json('/api')).toEqual({ kind: 'APIVersions', versions: ['v1'] })
    const { groups } = (await json('/apis')) as {
      groups: { name: string; versions: { groupVersion: string }[] }[]
    }
    for (const { name, versions } of groups) {
      expect(await json(`/apis/${name}`)).toMatchObject({ kind: 'APIGroup', name })
      for (const { groupVersion } of versions)
        expect(await json(`/apis/${groupVersion}`)).toMatchObject({ kind: 'APIResourceList', groupVersion })
    }
    expect(await json('/api/v1')).toMatchObject({
      kind: 'APIResourceList',
      groupVersion: 'v1',
      resources: expect.arrayContaining([
        expect.objectContaining({ name: 'pods/log', kind: 'Pod', verbs: ['get'] }),
      ]) as object[],
    })
  })

  it('is not sent again to who has it', async () => {
    const { headers = {} } = await ask('/api/v1')
    const again = await ask('/api/v1', { headers: { 'if-none-match': String(headers['etag']) } })
    expect([again.status, again.text]).toEqual([304, ''])
  })

  it.each(['/api/v1', '/apis/scheduling.k8s.io/v1', '/apis/metrics.k8s.io/v1beta1'])(
    'of %s names nothing that is not served',
    async (path) => {
      const { resources } = (await json(path)) as { resources: { name: string; verbs: string[] }[] }
      const listed = resources.filter(({ verbs, name }) => verbs.includes('list') && !name.includes('/'))
      const answers = await Promise.all(listed.map(({ name }) => ask(`${path}/${name}`)))
      expect(answers.map(({ status }) => status)).not.toContain(404)
    },
  )
})

describe('OpenAPI', () => {
  interface Document {
    readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
    readonly components: { readonly schemas: Readonly<Record<string, object>> }
  }
  const document = async (name: string): Promise<Document> => {
    const { paths } = (await json('/openapi/v3')) as { paths: Record<string, { serverRelativeURL: string }> }
    return (await json(paths[name]?.serverRelativeURL ?? '')) as Document
  }

  it('says of each field what podd does with it', async () => {
    const { schemas } = (await document('api/v1')).components
    expect(schemas['Pod']).toMatchObject({
      'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'Pod' }],
    })
    expect(schemas['PodSpec']).toMatchObject({
      required: expect.arrayContaining(['containers']) as string[],
      properties: {
        containers: { type: 'array', items: { $ref: '#/components/schemas/Container' } },
        restartPolicy: { type: 'string', default: 'Always' },
      },
    })
    expect(schemas['ResourceRequirements']).toMatchObject({
      properties: { claims: { description: expect.stringMatching(/^Refused by podd: /u) as string } },
    })
    expect(schemas['CSIVolumeSource']).toMatchObject({
      properties: { driver: { description: expect.stringMatching(/^Refused by podd: /u) as string } },
    })
  })

  it('gives a type that is supported in one place and refused in another a schema for each', async () => {
    const { schemas } = (await document('api/v1')).components
    const answers = Object.entries(schemas).flatMap(([name, schema]) =>
      /^LocalObjectReference\d*$/u.test(name)
        ? [(schema as { properties: { name: { description: string } } }).properties.name.description]
        : [],
    )
    expect(answers.some((answer) => !answer.startsWith('Refused by podd: '))).toBe(true)
    expect(answers.some((answer) => answer.startsWith('Refused by podd: '))).toBe(true)
    expect(new Set(answers).size).toBe(answers.length)
  })

  it.each(['api/v1', 'apis/scheduling.k8s.io/v1', 'apis/node.k8s.io/v1'])(
    'of %s refers to nothing that is missing',
    async (name) => {
      const whole = await document(name)
      const references = [...JSON.stringify(whole).matchAll(/#\/components\/schemas\/(?<name>\w+)/gu)]
      const missing = references
        .map(({ groups }) => groups?.['name'] ?? '')
        .filter((each) => !(each in whole.components.schemas))
      expect(references.length).toBeGreaterThan(0)
      expect(missing).toEqual([])
    },
  )

  it('leaves the checks of what is written to podd', async () => {
    const { paths } = await document('api/v1')
    expect(paths['/api/v1/namespaces/{namespace}/pods/{name}']?.['patch']).toMatchObject({
      'x-kubernetes-group-version-kind': { kind: 'Pod' },
      parameters: expect.arrayContaining([expect.objectContaining({ name: 'fieldValidation' })]) as object[],
    })
    const v2 = await ask('/openapi/v2')
    expect([v2.status, v2.text]).toEqual([200, ''])
  })
})

describe('a table', () => {
  it('of pods has the columns and cells of an API server', async () => {
    rig.pods.put(podObject({ name: 'web' }))
    const table = (await json('/api/v1/pods', { headers: { accept: asTable } })) as {
      columnDefinitions: { name: string; priority: number }[]
      rows: { cells: unknown[]; object: { kind: string; metadata: object } }[]
    }
    expect(table).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' })
    expect(table.columnDefinitions.map(({ name, priority }) => `${name}${'*'.repeat(priority)}`)).toEqual([
      'Name',
      'Ready',
      'Status',
      'Restarts',
      'Age',
      'IP*',
      'Node*',
      'Nominated Node*',
      'Readiness Gates*',
    ])
    const [row] = table.rows
    expect(row?.cells.slice(0, 4)).toEqual(['web', '1/1', 'Running', '0'])
    expect(row?.object).toMatchObject({
      kind: 'PartialObjectMetadata',
      metadata: { name: 'web', namespace: 'default' },
    })
  })

  it('says of a pod that has ended that it is completed', async () => {
    const pod = podObject({ name: 'job' })
    rig.pods.put({ ...pod, status: { ...pod.status, phase: 'Succeeded' } })
    expect(await json('/api/v1/namespaces/default/pods/job', { headers: { accept: asTable } })).toMatchObject(
      {
        rows: [{ conditions: [{ type: 'Completed', status: 'True', reason: 'Succeeded' }] }],
      },
    )
  })

  it.each([
    ['Object', { kind: 'Pod', spec: {} }],
    ['Metadata', { kind: 'PartialObjectMetadata' }],
  ])('holds what includeObject=%s asks for', async (include, object) => {
    rig.pods.put(podObject())
    const target = `/api/v1/pods?includeObject=${include}`
    expect(await json(target, { headers: { accept: asTable } })).toMatchObject({ rows: [{ object }] })
  })

  it('holds no object where none is asked for, and refuses what is no such word', async () => {
    rig.pods.put(podObject())
    const headers = { accept: asTable }
    expect(await json('/api/v1/pods?includeObject=None', { headers })).toMatchObject({
      rows: [{ object: null }],
    })
    expect((await ask('/api/v1/pods?includeObject=All', { headers })).status).toBe(400)
  })

  it('names its columns in the first event of a watch alone', async () => {
    rig.pods.put(podObject({ name: 'a', uid: 'a' }))
    rig.pods.put(podObject({ name: 'b', uid: 'b' }))
    ending.abort()
    const { text } = await ask('/api/v1/pods?watch=true', { headers: { accept: asTable } })
    const events = text
      .trim()
      .split('\n')
      .map(
        (line) =>
          JSON.parse(line) as { type: string; object: { columnDefinitions: unknown; rows: unknown[] } },
      )
    expect(events.map(({ type, object }) => [type, Array.isArray(object.columnDefinitions)])).toEqual([
      ['ADDED', true],
      ['ADDED', false],
    ])
  })

  it('of events has the columns of an API server', async () => {
    rig.events.put(eventObject('e'))
    const table = (await json('/api/v1/events', { headers: { accept: asTable } })) as {
      rows: { cells: unknown[] }[]
    }
    expect(table.rows[0]?.cells).toHaveLength(10)
    expect(table.rows[0]?.cells[3]).toBe('pod/web')
  })
})

describe('an event of events.k8s.io', () => {
  const path = '/apis/events.k8s.io/v1/namespaces/default/events'

  it('is the one of the core group under other names', async () => {
    rig.events.put(eventObject('e'))
    expect(await json(path)).toMatchObject({
      kind: 'EventList',
      apiVersion: 'events.k8s.io/v1',
      items: [
        { apiVersion: 'events.k8s.io/v1', regarding: { kind: 'Pod', name: 'web' }, deprecatedCount: 1 },
      ],
    })
    expect(await json(`${path}?fieldSelector=regarding.name%3Dother`)).toMatchObject({ items: [] })
    const [core, other] = await Promise.all(
      ['/api/v1/namespaces/default/events', path].map((each) => json(each, { headers: { accept: asTable } })),
    )
    expect((other as { rows: unknown }).rows).toMatchObject([
      { cells: (core as { rows: [{ cells: unknown[] }] }).rows[0].cells },
    ])
  })
})

describe('an answer', () => {
  it('is metadata alone where a client asks for that', async () => {
    rig.pods.put(podObject())
    const accept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json'
    const list = (await json('/api/v1/pods', { headers: { accept } })) as { items: ResourceObject[] }
    expect(list).toMatchObject({ kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' })
    expect(Object.keys(list.items[0] ?? {}).sort()).toEqual(['apiVersion', 'kind', 'metadata'])
  })

  it.each([
    ['application/vnd.kubernetes.protobuf,application/json', 200],
    ['application/json, */*', 200],
    ['Application/JSON', 200],
    ['text/html,*/*;q=0.8', 200],
    ['application/vnd.kubernetes.protobuf', 406],
    ['application/json;as=Nothing;g=meta.k8s.io;v=v1', 406],
  ])('to who accepts %s has the status %i', async (accept, status) => {
    expect((await ask('/api/v1/pods', { headers: { accept } })).status).toBe(status)
  })

  it('tells the group of what is not found', async () => {
    expect(await json('/apis/scheduling.k8s.io/v1/priorityclasses/high')).toMatchObject({
      message: 'priorityclasses.scheduling.k8s.io "high" not found',
      details: { name: 'high', group: 'scheduling.k8s.io', kind: 'priorityclasses' },
    })
  })
})

describe('a review', () => {
  const review = (resource: string, body: object, identity = viewer) =>
    json(`/apis/${resource}`, { method: 'POST', identity, body: Buffer.from(JSON.stringify(body)) })
  const access = (resourceAttributes: object) =>
    review('authorization.k8s.io/v1/selfsubjectaccessreviews', { spec: { resourceAttributes } })

  it('says who asks', async () => {
    expect(await review('authentication.k8s.io/v1/selfsubjectreviews', {})).toMatchObject({
      kind: 'SelfSubjectReview',
      apiVersion: 'authentication.k8s.io/v1',
      status: { userInfo: { username: 'ann', groups: ['podd:view', 'system:authenticated'] } },
    })
  })

  it('says whether one may do something', async () => {
    expect(await access({ verb: 'list', resource: 'pods', namespace: 'shop' })).toMatchObject({
      status: { allowed: true },
    })
    expect(await access({ verb: 'list', resource: 'secrets', namespace: 'shop' })).toMatchObject({
      status: { allowed: false },
    })
    expect(await access({ verb: '*', resource: '*' })).toMatchObject({ status: { allowed: false } })
  })

  it('takes protobuf, which kubectl sends', async () => {
    // SelfSubjectAccessReview{spec{resourceAttributes{namespace default, verb get, resource secrets}}}
    const attributes = Buffer.from(
      '0a0764656661756c741203676574 2200 2a07736563726574 73'.replaceAll(' ', ''),
      'hex',
    )
    const spec = Buffer.concat([Buffer.from([0x0a, attributes.length]), attributes])
    const raw = Buffer.concat([Buffer.from([0x12, spec.length]), spec])
    const type = Buffer.from('\n\x17authorization.k8s.io/v1\x12\x17SelfSubjectAccessReview')
    const body = Buffer.concat([
      Buffer.from('k8s\0'),
      Buffer.from([0x0a, type.length]),
      type,
      Buffer.from([0x12, raw.length]),
      raw,
    ])
    const headers = { 'content-type': 'application/vnd.kubernetes.protobuf' }
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    const answer = await ask(path, { method: 'POST', identity: viewer, headers, body })
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([
      201,
      {
        spec: { resourceAttributes: { namespace: 'default', verb: 'get', resource: 'secrets' } },
        status: { allowed: false },
      },
    ])
  })

  it('lists the rules that hold for who asks', async () => {
    const rules = (await review('authorization.k8s.io/v1/selfsubjectrulesreviews', {
      spec: { namespace: 'default' },
    })) as {
      status: { resourceRules: { resources: string[] }[] }
    }
    const resources = rules.status.resourceRules.flatMap((rule) => rule.resources)
    expect(resources).toContain('pods/log')
    expect(resources).not.toContain('secrets')
  })
})
