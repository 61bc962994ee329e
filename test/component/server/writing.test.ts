import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import { isJsonObject, jsonAt, listOrEmpty, objectOrEmpty } from '../../../src/base/json.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { showWorkload } from '../../../src/decide/workloads/workload-status.ts'
import { isObjectDocument } from '../../../src/pod/objects/document.ts'
import { ApiObjects } from '../../../src/sources/written/api-objects.ts'
import type { ApiAnswer } from '../../support/call-api.ts'
import { podObject } from '../../support/pod-objects.ts'
import { pendingPod, startWritingRig } from '../../support/writing-rig.ts'
import type { WritingRig } from '../../support/writing-rig.ts'

const namespace = '/api/v1/namespaces/default'
const pods = `${namespace}/pods`
const configMaps = `${namespace}/configmaps`
const secrets = `${namespace}/secrets`

function pod(name: string, spec: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'web:1' }], ...spec },
  }
}

function configMap(name: string, data: JsonObject): JsonObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function metadataOf({ body }: ApiAnswer): JsonObject {
  const { metadata } = body
  return isJsonObject(metadata) ? metadata : {}
}

describe('creating', () => {
  it('gives a name, a UID and defaults, and keeps the object', async () => {
    await using rig = await startWritingRig()
    const made = await rig.ask('POST', pods, { ...pod(''), metadata: { generateName: 'web-' } })
    expect(made).toMatchObject({ code: 201, body: { spec: { restartPolicy: 'Always', nodeName: 'here' } } })
    const { name, uid } = metadataOf(made)
    expect(name).toMatch(/^web-[bcdfghjklmnpqrstvwxz2-9]{5}$/u)
    expect(await readdir(join(rig.directory, 'api'))).toEqual([`pod.default.${textOf(name)}.json`])
    const again = new ApiObjects({
      directory: join(rig.directory, 'api'),
      persistSecrets: true,
      clock: new ManualClock(),
      logger: silentLogger,
      watch: () => ({ close: async () => {} }),
    })
    const stop = new AbortController()
    const running = again.run(async () => {}, stop.signal)
    await again.exclusively(async () => {})
    expect(again.list('Pod').map((kept) => kept.uid)).toEqual([uid])
    stop.abort()
    await running
  })

  it('keeps a Service with its defaults, which has no address, and refuses one that needs a proxy', async () => {
    await using rig = await startWritingRig()
    const services = `${namespace}/services`
    const db = (spec: JsonObject): JsonObject => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'db' },
      spec: { selector: { app: 'db' }, ports: [{ port: 5432 }], ...spec },
    })
    expect(await rig.ask('POST', services, db({ type: 'NodePort' }))).toMatchObject({
      code: 422,
      body: { message: expect.stringContaining('write hostPort into the pod') },
    })
    const made = await rig.ask('POST', services, db({}))
    expect(made).toMatchObject({
      code: 201,
      body: { spec: { type: 'ClusterIP', ports: [{ port: 5432, protocol: 'TCP', targetPort: 5432 }] } },
    })
    expect(made.body['spec']).not.toHaveProperty('clusterIP')
    const change = { spec: { selector: { app: 'other' } } }
    const merge = 'application/merge-patch+json'
    expect(await rig.ask('PATCH', `${services}/db`, change, merge)).toMatchObject({
      code: 200,
      body: { spec: { selector: { app: 'other' } } },
    })
    expect(await rig.ask('DELETE', `${services}/db`)).toMatchObject({ code: 200 })
  })

  it.each([
    ['a name that is taken', pod('taken'), 409, 'AlreadyExists', 'pods "taken" already exists'],
    ['no name', pod(''), 422, 'Invalid', 'name or generateName is required'],
    [
      'no containers',
      { ...pod('a'), spec: {} },
      422,
      'Invalid',
      'Pod "a" is invalid: spec.containers: Required value',
    ],
    ['another kind', configMap('a', {}), 400, 'BadRequest', 'must be of type Pod'],
    [
      'another namespace',
      { ...pod('a'), metadata: { name: 'a', namespace: 'other' } },
      400,
      'BadRequest',
      'the namespace of the provided object does not match the namespace sent on the request',
    ],
  ])('refuses %s', async (_, body, code, reason, message) => {
    await using rig = await startWritingRig()
    await rig.ask('POST', pods, pod('taken'))
    const refused = await rig.ask('POST', pods, body)
    expect(refused).toMatchObject({ code, body: { kind: 'Status', reason } })
    expect(refused.body['message']).toContain(message)
  })

  it('treats unknown fields as the request says', async () => {
    await using rig = await startWritingRig()
    const body = pod('a', { containres: [], containers: [{ name: 'main', image: 'a', imagee: 'b' }] })
    const strict = await rig.ask('POST', `${pods}?fieldValidation=Strict`, body)
    expect(strict).toMatchObject({
      code: 400,
      body: {
        message:
          'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imagee", unknown field "spec.containres"',
      },
    })
    const warned = await rig.ask('POST', `${pods}?dryRun=All`, body)
    expect(warned.code).toBe(201)
    expect(warned.warning).toContain(String.raw`299 - "unknown field \"spec.containres\""`)
    const strange = await rig.ask('POST', `${pods}?dryRun=All`, { ...pod('a'), 'größe 大': 1 })
    expect(strange).toMatchObject({
      code: 201,
      warning: String.raw`299 - "unknown field \"gr\u{f6}\u{df}e \u{5927}\""`,
    })
    const ignored = await rig.ask('POST', `${pods}?fieldValidation=Ignore`, body)
    expect(ignored).toMatchObject({ code: 201, warning: undefined })
    expect(JSON.stringify(ignored.body)).not.toContain('imagee')
  })

  it('does nothing in a dry run, and says what it would have done', async () => {
    await using rig = await startWritingRig()
    expect(await rig.ask('POST', `${pods}?dryRun=All`, pod('a'))).toMatchObject({ code: 201 })
    expect(await rig.ask('GET', `${pods}/a`)).toMatchObject({ code: 404 })
    expect(await rig.ask('POST', `${pods}?dryRun=Some`, pod('a'))).toMatchObject({ code: 422 })
  })

  it('names each cause, and the fields that podd cannot serve', async () => {
    await using rig = await startWritingRig()
    const refused = await rig.ask(
      'POST',
      pods,
      pod('a', { restartPolicy: 'Sometimes', schedulingGates: [{ name: 'g' }] }),
    )
    expect(refused).toMatchObject({
      code: 422,
      body: {
        details: {
          name: 'a',
          kind: 'Pod',
          causes: [
            { reason: 'FieldValueNotSupported', field: 'spec.restartPolicy' },
            { reason: 'FieldValueForbidden', field: 'spec.schedulingGates' },
          ],
        },
      },
    })
    const name = 'n'.repeat(211)
    expect(await rig.ask('POST', pods, pod(name))).toMatchObject({
      code: 422,
      body: {
        details: {
          name,
          causes: [
            {
              reason: 'FieldValueForbidden',
              field: 'metadata.name',
              message: expect.stringContaining("a pod's name and namespace may have 217 characters together"),
            },
          ],
        },
      },
    })
  })
})

describe('a pod beyond what is followed', () => {
  const withLabel = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'first', labels: { a: 'b' } } }

  it('is refused in the words of an exceeded quota, unless others have ended', async () => {
    await using rig = await startWritingRig()
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, at) => rig.ask('POST', pods, pod(at === 0 ? 'first' : `other-${at}`))),
    )
    expect(made.map(({ code }) => code)).toEqual(Array.from({ length: 20 }, () => 201))
    const message =
      'pods "last" is forbidden: exceeded quota: maxPods, requested: pods=1, used: pods=20, limited: pods=20: delete pods that are not needed, or raise maxPods'
    const refusal = {
      code: 403,
      body: { reason: 'Forbidden', message, details: { name: 'last', kind: 'pods' } },
    }
    expect(await rig.ask('POST', pods, pod('last'))).toMatchObject(refusal)
    expect(await rig.ask('POST', `${pods}?dryRun=All`, pod('last'))).toMatchObject(refusal)
    const change = await rig.ask('PATCH', `${pods}/first`, withLabel, 'application/merge-patch+json')
    expect(change.code).toBe(200)
    const first = rig.shown.pods.list().find(({ metadata }) => metadata.name === 'first')
    if (first === undefined) throw new Error('the first pod is not shown')
    rig.shown.pods.put(first.metadata.uid, { ...first, status: { ...first.status, phase: 'Succeeded' } })
    expect(await rig.ask('POST', pods, pod('last'))).toMatchObject({ code: 201 })
    expect(await rig.ask('POST', pods, pod('one-more'))).toMatchObject({ code: 403 })
  })
})

describe('changing', () => {
  it('takes PUT of what was read, refuses a stale one, and says of no change that there was none', async () => {
    await using rig = await startWritingRig()
    const made = await rig.ask('POST', configMaps, configMap('a', { x: '1' }))
    const changed = await rig.ask('PUT', `${configMaps}/a`, { ...made.body, data: { x: '2' } })
    expect(changed).toMatchObject({
      code: 200,
      body: { data: { x: '2' }, metadata: { uid: metadataOf(made)['uid'] } },
    })
    const stale = await rig.ask('PUT', `${configMaps}/a`, { ...made.body, data: { x: '3' } })
    expect(stale).toMatchObject({
      code: 409,
      body: {
        reason: 'Conflict',
        message:
          'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
      },
    })
    const same = await rig.ask('PUT', `${configMaps}/a`, changed.body)
    expect(metadataOf(same)['resourceVersion']).toBe(metadataOf(changed)['resourceVersion'])
    expect(await rig.ask('PUT', `${configMaps}/b`, configMap('b', {}))).toMatchObject({ code: 404 })
  })

  it.each([
    ['StatefulSet', 'apps/v1', 'statefulsets', { serviceName: 'w' }, { replicas: 2 }],
    ['Job', 'batch/v1', 'jobs', { suspend: true }, { suspend: false }],
    ['Deployment', 'apps/v1', 'deployments', {}, { paused: true }],
    ['CronJob', 'batch/v1', 'cronjobs', { schedule: '0 0 * * *' }, { suspend: true }],
  ] as const)(
    'takes a patch and a PUT of a %s that leaves out what it is shown with',
    async (kind, apiVersion, resource, given, change) => {
      await using rig = await startWritingRig()
      const list = `/apis/${apiVersion}/namespaces/default/${resource}`
      const isBatch = apiVersion === 'batch/v1'
      const template = {
        metadata: { labels: { app: 'w' } },
        spec: {
          ...(isBatch && { restartPolicy: 'Never' }),
          containers: [{ name: 'main', image: 'web:1' }],
        },
      }
      const spec: JsonObject =
        kind === 'CronJob'
          ? { ...given, jobTemplate: { spec: { template } } }
          : { ...given, template, ...(!isBatch && { selector: { matchLabels: { app: 'w' } } }) }
      const made = await rig.ask('POST', list, { apiVersion, kind, metadata: { name: 'w' }, spec })
      expect(made.code).toBe(201)
      const show = (): void => {
        const [kept] = rig.objects.list(kind)
        if (kept?.document === undefined || !isObjectDocument(kept.document)) throw new Error('none is kept')
        const { uid, document } = kept
        const shown = showWorkload(document, {
          metadata: { ...document.kept?.metadata, name: 'w', namespace: 'default', uid, annotations: {} },
          targets: [],
          pods: [],
          job: undefined,
          cronJob: undefined,
          activeJobs: [],
          nowMs: 0,
        })
        if (shown !== undefined) rig.shown[resource].put(uid, shown)
      }
      show()
      const patched = await rig.ask('PATCH', `${list}/w`, { spec: change }, 'application/merge-patch+json')
      expect(patched).toMatchObject({ code: 200 })
      const kept = (): Json | undefined => rig.objects.list(kind)[0]?.manifest['spec']
      const before = metadataOf(made)
      expect(kept()).toEqual({ ...objectOrEmpty(made.body['spec']), ...change })
      show()
      const read = await rig.ask('GET', `${list}/w`)
      const labelled = { ...read.body, metadata: { ...metadataOf(read), labels: { a: 'b' } } }
      expect(await rig.ask('PUT', `${list}/w`, labelled)).toMatchObject({ code: 200 })
      expect(kept()).toEqual({ ...objectOrEmpty(made.body['spec']), ...change })
      expect(before['generation']).toBe(1)
      expect(rig.objects.list(kind)[0]?.manifest['metadata']).toMatchObject({
        generation: 2,
        labels: { a: 'b' },
      })
    },
  )

  it('keeps a Job that says no number as one that runs once, also where its parallelism is changed later', async () => {
    await using rig = await startWritingRig()
    const list = '/apis/batch/v1/namespaces/default/jobs'
    const head = { apiVersion: 'batch/v1', kind: 'Job' } as const
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'web:1' }] } }
    const written = { ...head, metadata: { name: 'w' }, spec: { template } }
    const made = await rig.ask('POST', list, written)
    expect(made).toMatchObject({ code: 201, body: { spec: { completions: 1, parallelism: 1 } } })
    const uid = textOf(metadataOf(made)['uid'])
    const metadata = { name: 'w', namespace: 'default', uid, generation: 1 }
    const show = (spec: JsonObject) => rig.shown.jobs.put(uid, { ...head, metadata, spec, status: {} })
    show(objectOrEmpty(made.body['spec']))
    expect(await rig.ask('PUT', `${list}/w`, written)).toMatchObject({ code: 200 })
    const change = { spec: { parallelism: 2 } }
    expect(await rig.ask('PATCH', `${list}/w`, change, 'application/merge-patch+json')).toMatchObject({
      code: 200,
    })
    expect(rig.objects.list('Job')[0]?.manifest['spec']).toMatchObject({ completions: 1, parallelism: 2 })
  })

  it('takes a pod as it is shown, and refuses what may not change', async () => {
    await using rig = await startWritingRig()
    const { body } = await rig.ask('POST', pods, pod('a'))
    const labelled = { ...body, metadata: { ...Object(body['metadata']), labels: { a: 'b' } } }
    const changed = await rig.ask('PUT', `${pods}/a`, labelled)
    expect(changed).toMatchObject({ code: 200, body: { metadata: { labels: { a: 'b' } } } })
    const refused = await rig.ask(
      'PATCH',
      `${pods}/a`,
      { spec: { hostNetwork: true } },
      'application/merge-patch+json',
    )
    expect(refused).toMatchObject({
      code: 422,
      body: { reason: 'Invalid', details: { causes: [{ reason: 'FieldValueForbidden', field: 'spec' }] } },
    })
  })

  it.each([
    ['application/merge-patch+json', { data: { x: null, y: '2' } }],
    ['application/strategic-merge-patch+json', { data: { x: null, y: '2' } }],
    [
      'application/json-patch+json',
      [
        { op: 'remove', path: '/data/x' },
        { op: 'add', path: '/data/y', value: '2' },
      ],
    ],
  ])('applies %s', async (type, patch) => {
    await using rig = await startWritingRig()
    await rig.ask('POST', configMaps, configMap('a', { x: '1' }))
    const changed = await rig.ask('PATCH', `${configMaps}/a`, patch, type)
    expect(changed).toMatchObject({ code: 200 })
    expect(changed.body['data']).toEqual({ y: '2' })
  })

  const text = (json: string): Buffer => Buffer.from(json)

  it.each<[string, string, Json | Buffer, string, number, string]>([
    [
      'removes what is not there',
      'application/json-patch+json',
      [{ op: 'remove', path: '/data/a~1b' }],
      '',
      422,
      'the path "/data/a~1b" does not exist in the object',
    ],
    ['has no type of a patch', 'text/plain', {}, '', 415, 'application/apply-patch+yaml'],
    ['is a text', 'application/strategic-merge-patch+json', 'x', '', 400, 'must be an object'],
    ['is a list', 'application/merge-patch+json', [], '', 400, 'must be an object'],
    [
      'gives a value of another type',
      'application/merge-patch+json',
      { data: { x: 1 } },
      '',
      422,
      'patch: Invalid value: data[x]: Invalid value: must be a string, not the number 1',
    ],
    [
      'has an unknown field',
      'application/strategic-merge-patch+json',
      { dat: {} },
      '?fieldValidation=Strict',
      422,
      'strict decoding error: unknown field "dat"',
    ],
    [
      'has a field twice',
      'application/merge-patch+json',
      text('{"data":{"x":"1","x":"2"}}'),
      '?fieldValidation=Strict',
      422,
      'strict decoding error: duplicate field "data.x"',
    ],
    [
      'is nested without end',
      'application/merge-patch+json',
      text(`{"data":${'['.repeat(5000)}${']'.repeat(5000)}}`),
      '',
      400,
      'nested deeper than 1000 levels',
    ],
    ['forces what is no apply', 'application/merge-patch+json', {}, '?force=true', 422, 'force: Forbidden'],
    [
      'has a manager with a name that is too long',
      'application/merge-patch+json',
      {},
      `?fieldManager=${'m'.repeat(129)}`,
      422,
      'fieldManager: Too long: may not be more than 128 bytes',
    ],
    [
      'has a manager with a name that nobody sees',
      'application/merge-patch+json',
      {},
      '?fieldManager=%07',
      422,
      'fieldManager: Invalid value: "\\u0007": should only contain printable characters',
    ],
  ])('refuses a patch that %s', async (_, type, patch, query, code, message) => {
    await using rig = await startWritingRig()
    await rig.ask('POST', configMaps, configMap('a', { x: '1' }))
    const refused = await rig.ask('PATCH', `${configMaps}/a${query}`, patch, type)
    expect(refused.code).toBe(code)
    expect(refused.body['message']).toContain(message)
  })

  it('keeps the texts of a Secret in base64 and none of them in an error', async () => {
    await using rig = await startWritingRig()
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { a: 'hidden' } }
    const made = await rig.ask('POST', secrets, secret)
    expect(made.body['data']).toEqual({ a: Buffer.from('hidden').toString('base64') })
    const refused = await rig.ask(
      'PATCH',
      `${secrets}/s`,
      { data: { b: '!!hidden' } },
      'application/merge-patch+json',
    )
    expect(refused.code).toBe(422)
    expect(JSON.stringify(refused.body)).not.toContain('hidden')
  })
})

describe('deleting', () => {
  it('gives a pod its grace, shortens it when asked again, and forgets the pod once it has ended', async () => {
    await using rig = await startWritingRig()
    const made = await rig.ask('POST', pods, pod('a', { terminationGracePeriodSeconds: 20 }))
    const { uid } = metadataOf(made)
    const first = await rig.ask('DELETE', `${pods}/a`)
    expect(first).toMatchObject({
      code: 200,
      body: { kind: 'Pod', metadata: { deletionGracePeriodSeconds: 20 } },
    })
    expect(await rig.ask('POST', pods, pod('a'))).toMatchObject({ code: 409 })
    const longer = await rig.ask('DELETE', `${pods}/a`, { gracePeriodSeconds: 60 })
    expect(metadataOf(longer)['deletionTimestamp']).toBe(metadataOf(first)['deletionTimestamp'])
    const file = join(rig.directory, 'api', 'pod.default.a.json')
    expect(await readFile(file, 'utf8')).toContain('deletionTimestamp')
    await rig.ask('DELETE', `${pods}/a`, { gracePeriodSeconds: 0 })
    expect(rig.ended).toEqual([`${textOf(uid)} 20`, `${textOf(uid)} 60`, `${textOf(uid)} 0`])
    expect(await rig.ask('POST', pods, pod('a'))).toMatchObject({ code: 201 })
  })

  it('deletes everything else at once', async () => {
    await using rig = await startWritingRig()
    const made = await rig.ask('POST', configMaps, configMap('a', {}))
    const { uid } = metadataOf(made)
    expect(await rig.ask('DELETE', `${configMaps}/a`, { dryRun: ['All'] })).toMatchObject({ code: 200 })
    expect(await rig.ask('DELETE', `${configMaps}/a`, { preconditions: { uid: 'other' } })).toMatchObject({
      code: 409,
    })
    expect(await rig.ask('DELETE', `${configMaps}/a`, { propagationPolicy: 'Never' })).toMatchObject({
      code: 422,
    })
    expect(await rig.ask('DELETE', `${configMaps}/a`, { propagationPolicy: 'Background' })).toMatchObject({
      code: 200,
      body: { kind: 'Status', status: 'Success', details: { name: 'a', kind: 'configmaps', uid } },
    })
    expect(await rig.ask('DELETE', `${configMaps}/a`)).toMatchObject({
      code: 404,
      body: { reason: 'NotFound' },
    })
  })

  it.each<[string, JsonObject | undefined, string]>([
    ['a body', { propagationPolicy: 'Orphan' }, ''],
    ['an older body', { orphanDependents: true }, ''],
    ['a query', undefined, '?propagationPolicy=Orphan'],
    ['a body, for all objects', { propagationPolicy: 'Orphan' }, 'all'],
  ])('refuses to leave the pods of a workload behind, asked by %s', async (_, options, query) => {
    await using rig = await startWritingRig()
    const all = '/apis/apps/v1/namespaces/default/deployments'
    const labels = { app: 'web' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1' }] } }
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: { selector: { matchLabels: labels }, template },
    }
    expect(await rig.ask('POST', all, deployment)).toMatchObject({ code: 201 })
    const name = { kind: 'Deployment', namespace: 'default', name: 'web' }
    rig.deployments.put(JSON.parse(JSON.stringify(rig.objects.get(name)?.manifest)))
    const target = query === 'all' ? all : `${all}/web${query}`
    expect(await rig.ask('DELETE', target, options)).toMatchObject({
      code: 422,
      body: { details: { causes: [{ field: 'propagationPolicy', reason: 'FieldValueForbidden' }] } },
    })
    expect(rig.objects.get(name)).toBeDefined()
    expect(await rig.ask('DELETE', `${all}/web`, { propagationPolicy: 'Foreground' })).toMatchObject({
      code: 200,
    })
    expect(rig.objects.get(name)).toBeUndefined()
  })

  it('leaves what comes from elsewhere to where it comes from', async () => {
    await using rig = await startWritingRig()
    const filed = pendingPod({ name: 'filed', namespace: 'default' }, 'f')
    rig.pods.put({
      ...filed,
      metadata: {
        ...filed.metadata,
        annotations: { 'podd.dev/source': 'file', 'podd.dev/path': '/etc/pods/filed.yaml' },
      },
    })
    for (const answer of [
      await rig.ask('DELETE', `${pods}/filed`),
      await rig.ask('PUT', `${pods}/filed`, pod('filed')),
      await rig.ask('PATCH', `${pods}/filed`, {}, 'application/merge-patch+json'),
    ]) {
      expect(answer).toMatchObject({ code: 405, body: { reason: 'MethodNotAllowed' } })
      expect(answer.body['message']).toContain('/etc/pods/filed.yaml')
    }
  })

  it('has a pod of a workload ended, by itself, among others, or by an eviction; its workload makes another one', async () => {
    await using rig = await startWritingRig()
    const made = pendingPod({ name: 'web-0', namespace: 'default' }, 'w')
    const owner = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      name: 'web',
      uid: 'd',
      controller: true,
      blockOwnerDeletion: true,
    } as const
    rig.pods.put({
      ...made,
      metadata: {
        ...made.metadata,
        annotations: { 'podd.dev/source': 'file', 'podd.dev/path': '/etc/pods/web.yaml' },
        ownerReferences: [owner],
      },
    })
    const options = (more: object) => ({ kind: 'DeleteOptions', apiVersion: 'v1', ...more })
    expect(await rig.ask('DELETE', `${pods}/web-0`, options({ preconditions: { uid: 'x' } }))).toMatchObject({
      code: 409,
    })
    expect(await rig.ask('DELETE', `${pods}/web-0`, options({ dryRun: ['All'] }))).toMatchObject({
      code: 200,
    })
    expect(rig.ended).toEqual([])
    expect(await rig.ask('DELETE', `${pods}/web-0`, options({ gracePeriodSeconds: 7 }))).toMatchObject({
      code: 200,
      body: { metadata: { name: 'web-0', deletionGracePeriodSeconds: 7 } },
    })
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'web-0' } }
    expect(await rig.ask('POST', `${pods}/web-0/eviction`, eviction)).toMatchObject({ code: 201 })
    expect(await rig.ask('DELETE', pods)).toMatchObject({
      code: 200,
      body: { items: [{ metadata: { name: 'web-0' } }] },
    })
    expect(rig.ended).toEqual(['w 7', 'w 30 evicted', 'w 30'])
    const refused = await rig.ask('PUT', `${pods}/web-0`, pod('web-0'))
    expect(refused).toMatchObject({ code: 405 })
    expect(refused.body['message']).toContain('comes from /etc/pods/web.yaml')
  })

  it('leads from a pod of a workload that was written over the API to that workload', async () => {
    await using rig = await startWritingRig()
    const { metadata, ...rest } = pendingPod({ name: 'web-0', namespace: 'default' }, 'w')
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'd' } as const
    const ownerReferences = [{ ...owner, controller: true, blockOwnerDeletion: true } as const]
    const annotations = { 'podd.dev/source': 'api', 'podd.dev/path': '/api/deployment.default.web.json' }
    rig.pods.put({ ...rest, metadata: { ...metadata, annotations, ownerReferences } })
    const label = { metadata: { labels: { a: 'b' } } }
    const refused = await rig.ask('PATCH', `${pods}/web-0`, label, 'application/merge-patch+json')
    expect(refused.body['message']).toBe(
      'pods "web-0" is made by Deployment "web" and cannot be changed over the API: change that',
    )
  })
})

describe('namespaces', () => {
  it('are made with what clients wait for, and go with what is in them once its pods have ended', async () => {
    await using rig = await startWritingRig()
    expect(await rig.ask('POST', '/api/v1/namespaces/mine/pods', pod('a'))).toMatchObject({ code: 404 })
    const made = await rig.ask('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { generateName: 'e2e-' },
    })
    expect(made).toMatchObject({ code: 201, body: { status: { phase: 'Active' } } })
    const name = textOf(metadataOf(made)['name'])
    const place = `/api/v1/namespaces/${name}`
    expect(await rig.ask('GET', `${place}/serviceaccounts/default`)).toMatchObject({ code: 200 })
    expect(await rig.ask('GET', `${place}/configmaps/kube-root-ca.crt`)).toMatchObject({ code: 200 })
    const { uid } = metadataOf(await rig.ask('POST', `${place}/pods`, pod('a')))
    const deleted = await rig.ask('DELETE', place)
    expect(deleted).toMatchObject({ code: 200, body: { status: { phase: 'Terminating' } } })
    expect(await rig.ask('POST', `${place}/pods`, pod('b'))).toMatchObject({ code: 403 })
    expect(rig.ended).toEqual([`${textOf(uid)} 30`])
    expect(await rig.ask('DELETE', `${place}/pods/a`, { gracePeriodSeconds: 0 })).toMatchObject({ code: 200 })
    // Whatever comes next waits until the pod is forgotten.
    await rig.ask('POST', configMaps, configMap('next', {}))
    expect(await rig.ask('GET', place)).toMatchObject({ code: 404 })
    expect(await readdir(join(rig.directory, 'api'))).toEqual(['configmap.default.next.json'])
  })

  it.each([
    ['../../../etc/evil', {}, 'metadata.name: Invalid value'],
    ['Big_One', {}, 'metadata.name: Invalid value'],
    ['fine', { labels: { 'a b': 'c' } }, 'metadata.labels: Invalid value'],
  ])('have names and labels like any object: %s', async (name, more, message) => {
    await using rig = await startWritingRig()
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, ...more } }
    const refused = await rig.ask('POST', '/api/v1/namespaces', body)
    expect(refused).toMatchObject({ code: 422, body: { reason: 'Invalid' } })
    expect(refused.body['message']).toContain(message)
    expect(await readdir(join(rig.directory, 'api'))).toEqual([])
  })

  it('that stand always are not deleted', async () => {
    await using rig = await startWritingRig()
    expect(await rig.ask('DELETE', '/api/v1/namespaces/default')).toMatchObject({ code: 403 })
    expect(await rig.ask('DELETE', '/api/v1/namespaces/none')).toMatchObject({ code: 404 })
  })
})

describe('subresources', () => {
  it('adds ephemeral containers to a pod of a file beside its manifest, and changes nothing else of it', async () => {
    await using rig = await startWritingRig()
    rig.pods.put(
      podObject({ name: 'web', metadata: { annotations: { 'podd.dev/path': '/etc/pods/web.yaml' } } }),
    )
    const strategic = 'application/strategic-merge-patch+json'
    const debug = { spec: { ephemeralContainers: [{ name: 'debug', image: 'tools' }] } }
    const answer = await rig.ask('PATCH', `${pods}/web/ephemeralcontainers`, debug, strategic)
    expect(answer.body['message']).toBeUndefined()
    expect(rig.debuggers).toEqual([
      { uid: 'uid-web', added: [expect.objectContaining({ name: 'debug', imagePullPolicy: 'Always' })] },
    ])
    const wrong = {
      spec: {
        ephemeralContainers: [{ name: 'debug', image: 'tools', ports: [], lifecycle: { preStop: {} } }],
      },
    }
    expect(await rig.ask('PATCH', `${pods}/web/ephemeralcontainers`, wrong, strategic)).toMatchObject({
      code: 422,
    })
    const image = { spec: { containers: [{ name: 'main', image: 'other' }] } }
    expect(await rig.ask('PATCH', `${pods}/web`, image, strategic)).toMatchObject({ code: 405 })
    expect(await rig.ask('PATCH', `${pods}/none/ephemeralcontainers`, debug, strategic)).toMatchObject({
      code: 404,
    })
    expect(rig.debuggers).toHaveLength(1)
  })

  it('add ephemeral containers, resize, and set the conditions that are no business of podd', async () => {
    await using rig = await startWritingRig()
    const containers = [{ name: 'main', image: 'x', resources: { requests: { cpu: '2' } } }]
    await rig.ask('POST', pods, pod('a', { containers }))
    const strategic = 'application/strategic-merge-patch+json'
    const debug = { spec: { ephemeralContainers: [{ name: 'debug', image: 'tools' }] } }
    expect(await rig.ask('PATCH', `${pods}/a`, debug, strategic)).toMatchObject({ code: 422 })
    expect(await rig.ask('PATCH', `${pods}/a/ephemeralcontainers`, debug, strategic)).toMatchObject({
      code: 200,
      body: { spec: { ephemeralContainers: [{ name: 'debug', terminationMessagePolicy: 'File' }] } },
    })
    const resize = { spec: { containers: [{ name: 'main', resources: { requests: { cpu: '1' } } }] } }
    expect(await rig.ask('PATCH', `${pods}/a/resize`, resize, strategic)).toMatchObject({
      code: 200,
      body: { spec: { containers: [{ resources: { requests: { cpu: '1' } } }] } },
    })
    const limits = { cpu: '1', memory: '1Gi' }
    const fixed = { spec: { containers: [{ name: 'main', resources: { limits } }] } }
    expect(await rig.ask('PATCH', `${pods}/a/resize`, fixed, strategic)).toMatchObject({
      code: 422,
      body: { message: expect.stringContaining('Pod QOS Class may not change as a result of resizing') },
    })
    const conditions = [
      { type: 'example.com/ready', status: 'True' },
      { type: 'Ready', status: 'True' },
    ]
    const status = await rig.ask(
      'PATCH',
      `${pods}/a/status`,
      { metadata: { labels: { by: 'status' } }, status: { conditions, message: 'said' } },
      strategic,
    )
    expect(status).toMatchObject({ code: 200 })
    expect(status.body['status']).toMatchObject({
      phase: 'Pending',
      conditions: [conditions[0]],
      message: 'said',
    })
    // What is said of a condition that is there is answered, and lasts until podd says what it finds: at once.
    const no = { type: 'example.com/ready', status: 'False' }
    expect(
      await rig.ask('PATCH', `${pods}/a/status`, { status: { conditions: [no] } }, strategic),
    ).toMatchObject({ body: { status: { conditions: [no] } } })
    await rig.ask('PATCH', `${pods}/a/status`, { status: { conditions } }, strategic)
    expect(metadataOf(status)['labels']).toEqual({ by: 'status' })
    expect(await rig.ask('GET', `${pods}/a/status`)).toMatchObject({
      body: { status: { conditions: [conditions[0]] } },
    })
  })

  it('evict a pod, and refuse to bind one', async () => {
    await using rig = await startWritingRig()
    const { uid } = metadataOf(await rig.ask('POST', pods, pod('a')))
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', deleteOptions: { gracePeriodSeconds: 7 } }
    expect(await rig.ask('POST', `${pods}/a/binding`, {})).toMatchObject({ code: 409 })
    expect(await rig.ask('POST', `${pods}/a/eviction`, eviction)).toMatchObject({
      code: 201,
      body: { status: 'Success' },
    })
    expect(rig.ended).toEqual([`${textOf(uid)} 7 evicted`])
  })
})

it('evicts nobody by a body that is no eviction', async () => {
  await using rig = await startWritingRig()
  await rig.ask('POST', pods, pod('a'))
  for (const [apiVersion, kind] of [
    ['v1', 'Pod'],
    ['policy/v1', 'PodDisruptionBudget'],
    ['v1', 'DeleteOptions'],
  ])
    expect(
      await rig.ask('POST', `${pods}/a/eviction`, {
        apiVersion,
        kind,
        metadata: { name: 'a' },
      } as JsonObject),
    ).toMatchObject({ code: 400 })
  expect(rig.ended).toEqual([])
  const older = { apiVersion: 'policy/v1beta1', kind: 'Eviction', metadata: { name: 'a' } }
  expect(await rig.ask('POST', `${pods}/a/eviction`, older)).toMatchObject({ code: 201 })
})

it('deletes nothing for the path of a collection that ends in a slash', async () => {
  await using rig = await startWritingRig()
  await rig.ask('POST', configMaps, configMap('a', {}))
  expect(await rig.ask('DELETE', `${configMaps}/`)).toMatchObject({ code: 404 })
  expect(await rig.ask('GET', `${configMaps}/`)).toMatchObject({
    body: { items: [{ metadata: { name: 'a' } }] },
  })
})

it('deletes a collection by selectors', async () => {
  await using rig = await startWritingRig()
  const labelled = (name: string, labels: JsonObject): JsonObject => ({
    ...configMap(name, {}),
    metadata: { name, labels },
  })
  for (const [name, tier] of [
    ['a', 'x'],
    ['b', 'y'],
    ['c', 'x'],
  ] as const)
    await rig.ask('POST', configMaps, labelled(name, { tier }))
  expect(await rig.ask('DELETE', `${configMaps}?labelSelector=tier%3Dx`)).toMatchObject({
    code: 200,
    body: { kind: 'ConfigMapList', items: [{ metadata: { name: 'a' } }, { metadata: { name: 'c' } }] },
  })
  const left = await rig.ask('GET', configMaps)
  expect(left.body['items']).toMatchObject([{ metadata: { name: 'b' } }])
})

describe('server-side apply', () => {
  const type = 'application/apply-patch+yaml'
  const apply = (rig: WritingRig, manager: string, data: JsonObject, query = ''): Promise<ApiAnswer> =>
    rig.ask('PATCH', `${configMaps}/a?fieldManager=${manager}${query}`, configMap('a', data), type)

  it('makes the object, and removes what its manager leaves out', async () => {
    await using rig = await startWritingRig()
    expect(await apply(rig, 'ann', { x: '1', y: '1' })).toMatchObject({
      code: 201,
      body: { data: { x: '1', y: '1' } },
    })
    await rig.ask('PATCH', `${configMaps}/a`, { data: { z: '1' } }, 'application/merge-patch+json')
    const again = await apply(rig, 'ann', { x: '2' })
    expect(again.code).toBe(200)
    expect(again.body['data']).toEqual({ x: '2', z: '1' })
    const same = await apply(rig, 'ann', { x: '2' })
    expect(metadataOf(same)['resourceVersion']).toBe(metadataOf(again)['resourceVersion'])
  })

  it('refuses what another manager has applied otherwise, until it is forced', async () => {
    await using rig = await startWritingRig()
    await apply(rig, 'ann', { x: '1', y: '1' })
    expect(await apply(rig, 'bob', { x: '1', z: '1' })).toMatchObject({ code: 200 })
    expect(await apply(rig, 'bob', { x: '2' })).toMatchObject({
      code: 409,
      body: {
        reason: 'Conflict',
        message: 'Apply failed with 1 conflict: conflict with "ann": .data.x',
        details: { causes: [{ reason: 'FieldManagerConflict', field: '.data.x' }] },
      },
    })
    const forced = await apply(rig, 'bob', { x: '2' }, '&force=true')
    expect(forced.body['data']).toEqual({ x: '2', y: '1' })
    // What both have applied alike stays when one of them leaves it out.
    expect((await apply(rig, 'ann', { y: '1' })).body['data']).toEqual({ x: '2', y: '1' })
  })

  it('merges a pod by its containers, and needs a manager', async () => {
    await using rig = await startWritingRig()
    await rig.ask('POST', pods, pod('p'))
    const image = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'main', image: 'web:2' }] },
    }
    expect(await rig.ask('PATCH', `${pods}/p?fieldManager=ann`, image, type)).toMatchObject({
      code: 200,
      body: { spec: { containers: [{ name: 'main', image: 'web:2', terminationMessagePolicy: 'File' }] } },
    })
    expect(await rig.ask('PATCH', `${pods}/p`, image, type)).toMatchObject({ code: 422 })
  })

  it.each(['made', 'changed'])('refuses a pod to be %s with a container without a name', async (what) => {
    await using rig = await startWritingRig()
    if (what === 'changed') await rig.ask('POST', pods, pod('p'))
    const nameless = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: { containers: [{ image: 'web:2' }] },
    }
    expect(await rig.ask('PATCH', `${pods}/p?fieldManager=ann`, nameless, type)).toMatchObject({
      code: 422,
      body: { message: 'an item of the patch lacks name, by which the list is merged' },
    })
  })

  it('refuses an item that stands twice, of which one would be lost', async () => {
    await using rig = await startWritingRig()
    const containers = [
      { name: 'main', image: 'web:1' },
      { name: 'main', image: 'log:1' },
    ]
    expect(
      await rig.ask('PATCH', `${pods}/p?fieldManager=ann`, pod('p', { containers }), type),
    ).toMatchObject({
      code: 422,
      body: { reason: 'Invalid', message: '.spec.containers[name="main"] stands twice' },
    })
    expect(await rig.ask('GET', `${pods}/p`)).toMatchObject({ code: 404 })
  })

  it('makes no object for a manifest with the UID of another one', async () => {
    await using rig = await startWritingRig()
    const manifest = { ...configMap('a', {}), metadata: { name: 'a', uid: 'u' } }
    expect(await rig.ask('PATCH', `${configMaps}/a?fieldManager=ann`, manifest, type)).toMatchObject({
      code: 409,
      body: { message: expect.stringContaining('uid mismatch') },
    })
  })

  it('gives nobody the defaults that another write sends back', async () => {
    await using rig = await startWritingRig()
    const place = '/apis/apps/v1/namespaces/default/deployments/web'
    const labels = { app: 'web' }
    const deployment = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1' }] } },
      },
    }
    await rig.ask('PATCH', `${place}?fieldManager=ann`, deployment, type)
    const read = (): JsonObject | undefined =>
      rig.objects.get({ kind: 'Deployment', namespace: 'default', name: 'web' })?.manifest
    const strategy = { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } }
    const spec = { ...objectOrEmpty(read()?.['spec']), strategy }
    rig.deployments.put(JSON.parse(JSON.stringify({ ...read(), spec })))
    const replicas = { spec: { replicas: 2 } }
    await rig.ask('PATCH', `${place}/scale?fieldManager=ben`, replicas, 'application/merge-patch+json')
    const [, ben] = listOrEmpty(jsonAt(read(), 'metadata', 'managedFields'))
    expect(ben).toMatchObject({ manager: 'ben' })
    expect(jsonAt(ben, 'fieldsV1')).toEqual({ 'f:spec': { 'f:replicas': {} } })
  })
})

describe('the scale of a workload', () => {
  const place = '/apis/apps/v1/namespaces/default/deployments'
  const scale = (metadata: JsonObject, more: JsonObject = {}): JsonObject => ({
    metadata,
    spec: { replicas: 2 },
    ...more,
  })

  it.each<[string, JsonObject, number, string]>([
    ['nothing but replicas', scale({}), 200, ''],
    ['what was read', scale({ name: 'web', resourceVersion: '7', uid: 'u' }), 200, ''],
    ['a stale version', scale({ resourceVersion: '6' }), 409, 'the object has been modified'],
    ['another UID', scale({ uid: 'v' }), 409, 'Precondition failed'],
    ['another name', scale({ name: 'other' }), 400, 'does not match the name on the URL (web)'],
    ['another kind', scale({}, { kind: 'Deployment' }), 400, 'must be of type Scale'],
  ])('is written by a PUT of %s only where it is the one that was read', async (_, body, code, message) => {
    await using rig = await startWritingRig()
    const labels = { app: 'web' }
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1' }] } }
    const spec = { replicas: 1, selector: { matchLabels: labels }, template }
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec }
    await rig.ask('POST', place, deployment)
    const name = { kind: 'Deployment', namespace: 'default', name: 'web' }
    const manifest = rig.objects.get(name)?.manifest ?? {}
    await rig.objects.exclusively(async () => {
      await rig.objects.put({ ...manifest, metadata: { ...objectOrEmpty(manifest['metadata']), uid: 'u' } })
    })
    const metadata = { ...objectOrEmpty(manifest['metadata']), uid: 'u', resourceVersion: '7' }
    rig.deployments.put(JSON.parse(JSON.stringify({ ...manifest, metadata })))
    const shown = await rig.ask('GET', `${place}/web/scale`)
    const { resourceVersion } = metadataOf(shown)
    const given = JSON.parse(JSON.stringify(body).replace('"7"', JSON.stringify(resourceVersion)))
    const answer = await rig.ask('PUT', `${place}/web/scale`, given)
    expect(answer.code).toBe(code)
    expect(textOf(answer.body['message'])).toContain(message)
    const replicas = jsonAt(rig.objects.get(name)?.manifest, 'spec', 'replicas')
    expect(replicas).toBe(code === 200 ? 2 : 1)
  })

  it.each(['GET', 'PUT'])('that is not there is not found in its group: %s', async (method) => {
    await using rig = await startWritingRig()
    expect(await rig.ask(method, `${place}/web/scale`, scale({}))).toMatchObject({
      code: 404,
      body: { message: 'deployments.apps "web" not found', details: { group: 'apps', kind: 'deployments' } },
    })
  })
})

describe('classes', () => {
  const classes = '/apis/node.k8s.io/v1/runtimeclasses'
  const runtimeClass = {
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name: 'kata' },
    handler: 'kata',
  }

  it('are written, and a pod of one that is not there is refused', async () => {
    await using rig = await startWritingRig()
    const pod1 = pod('p', { runtimeClassName: 'kata' })
    expect(await rig.ask('POST', pods, pod1)).toMatchObject({
      code: 403,
      body: { message: 'pods "p" is forbidden: pod rejected: RuntimeClass "kata" not found' },
    })
    const made = await rig.ask('POST', classes, runtimeClass)
    expect(made).toMatchObject({ code: 201, body: { kind: 'RuntimeClass', handler: 'kata' } })
    expect(
      await rig.ask('PATCH', `${classes}/kata`, { handler: 'other' }, 'application/merge-patch+json'),
    ).toMatchObject({
      code: 422,
    })
    expect(await rig.ask('GET', `${classes}/kata`)).toMatchObject({
      body: { metadata: { uid: metadataOf(made)['uid'] } },
    })
    expect(await rig.ask('POST', pods, pod1)).toMatchObject({ code: 201 })
    expect(await rig.ask('DELETE', `${classes}/kata`)).toMatchObject({ code: 200 })
    expect(await rig.ask('GET', `${classes}/kata`)).toMatchObject({ code: 404 })
  })

  it('give a new pod its overhead, node selector and tolerations, and are deleted by label', async () => {
    await using rig = await startWritingRig()
    const podFixed = { cpu: '10m', memory: '1Mi' }
    const labels = { test: 'yes' }
    const overhead = { podFixed }
    await rig.ask('POST', classes, { ...runtimeClass, metadata: { name: 'kata', labels }, overhead })
    await rig.ask('POST', classes, { ...runtimeClass, metadata: { name: 'other' } })
    expect(await rig.ask('POST', pods, pod('p', { runtimeClassName: 'kata' }))).toMatchObject({
      code: 201,
      body: { spec: { overhead: podFixed } },
    })
    const wrong = pod('q', { runtimeClassName: 'kata', overhead: { cpu: '20m' } })
    expect(await rig.ask('POST', pods, wrong)).toMatchObject({
      code: 403,
      body: {
        message: expect.stringContaining("Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
      },
    })
    const tolerations = [{ key: 'sandboxed', operator: 'Exists' }]
    const scheduling = { nodeSelector: { sandbox: 'kata' }, tolerations }
    const scheduled = { ...runtimeClass, metadata: { name: 'placed' }, scheduling }
    expect(await rig.ask('POST', classes, scheduled)).toMatchObject({ code: 201, body: { scheduling } })
    const own = { nodeSelector: { disk: 'ssd' }, tolerations: [{ key: 'own', operator: 'Exists' }] }
    expect(await rig.ask('POST', pods, pod('placed', { runtimeClassName: 'placed', ...own }))).toMatchObject({
      code: 201,
      body: {
        spec: {
          nodeSelector: { disk: 'ssd', sandbox: 'kata' },
          tolerations: [...own.tolerations, ...tolerations],
        },
      },
    })
    const elsewhere = pod('elsewhere', { runtimeClassName: 'placed', nodeSelector: { sandbox: 'runc' } })
    expect(await rig.ask('POST', pods, elsewhere)).toMatchObject({
      code: 403,
      body: {
        message:
          'pods "elsewhere" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[sandbox] = kata; pod.spec.nodeSelector[sandbox] = runc',
      },
    })
    expect(await rig.ask('DELETE', `${classes}?labelSelector=test%3Dyes`)).toMatchObject({ code: 200 })
    expect(await rig.ask('GET', `${classes}/kata`)).toMatchObject({ code: 404 })
    expect(await rig.ask('GET', `${classes}/other`)).toMatchObject({ code: 200 })
    expect(await rig.ask('DELETE', '/api/v1/namespaces')).toMatchObject({ code: 405 })
  })
})

it('says of a value of another type what Kubernetes says: the object cannot be read', async () => {
  await using rig = await startWritingRig()
  expect(await rig.ask('POST', pods, pod('p', { hostNetwork: 'yes' }))).toMatchObject({
    code: 400,
    body: { reason: 'BadRequest' },
  })
})

describe('the node', () => {
  const node = '/api/v1/nodes/here'
  const merge = 'application/strategic-merge-patch+json'
  const gpus = (count: string) => ({ status: { capacity: { 'example.com/gpu': count } } })

  it('takes extended resources, which are all of them to be allocated, and keeps them', async () => {
    await using rig = await startWritingRig()
    const gpu = { 'example.com/gpu': '3' }
    const given = { status: { capacity: { ...gpu, cpu: '64' }, allocatable: gpu } }
    const shown = { capacity: { cpu: '2', ...gpu }, allocatable: { cpu: '1900m', ...gpu } }
    expect(await rig.ask('PATCH', `${node}/status`, given, merge)).toMatchObject({
      code: 200,
      body: { status: shown },
    })
    const [file = ''] = await readdir(join(rig.directory, 'api'))
    expect(JSON.parse(await readFile(join(rig.directory, 'api', file), 'utf8'))).toMatchObject({
      kind: 'Node',
      status: { capacity: gpu },
    })
    const { body } = await rig.ask('GET', `${node}/status`)
    const read = isJsonObject(body) ? body : {}
    expect(read).toMatchObject({ status: shown })
    const without = { ...read, status: { capacity: { cpu: '2' }, allocatable: {} } }
    expect(await rig.ask('PUT', `${node}/status`, without)).toMatchObject({
      code: 200,
      body: { status: { capacity: { cpu: '2' }, allocatable: { cpu: '1900m' } } },
    })
    expect(await rig.ask('PUT', `${node}/status`, without)).toMatchObject({ code: 409 })
    expect(await readdir(join(rig.directory, 'api'))).toEqual([])
  })

  it.each(['-1', '1.5', 'many'])('refuses %j of a resource', async (count) => {
    await using rig = await startWritingRig()
    expect(await rig.ask('PATCH', `${node}/status`, gpus(count), merge)).toMatchObject({ code: 422 })
  })

  it('takes labels and annotations, and nothing that only a scheduler would go by', async () => {
    await using rig = await startWritingRig()
    const labels = { disk: 'ssd', 'kubernetes.io/os': 'plan9' }
    const annotations = { note: 'x' }
    expect(await rig.ask('PATCH', node, { metadata: { labels, annotations } }, merge)).toMatchObject({
      code: 200,
      body: { metadata: { labels: { disk: 'ssd', 'kubernetes.io/os': 'linux' }, annotations } },
    })
    await rig.ask('PATCH', `${node}/status`, gpus('2'), merge)
    const metadata = metadataOf(await rig.ask('PATCH', node, { metadata: { labels: { disk: null } } }, merge))
    expect(metadata).toMatchObject({ annotations })
    expect(metadata).not.toHaveProperty(['labels', 'disk'])
    const taints = [{ key: 'dedicated', effect: 'NoSchedule' }]
    expect(await rig.ask('PATCH', node, { spec: { taints } }, merge)).toMatchObject({ code: 422 })
    expect(await rig.ask('GET', node)).toMatchObject({
      body: { status: { capacity: { 'example.com/gpu': '2' } } },
    })
  })

  it('is one: none can be made, deleted or written under another name', async () => {
    await using rig = await startWritingRig()
    expect(await rig.ask('PATCH', '/api/v1/nodes/other/status', gpus('1'), merge)).toMatchObject({
      code: 404,
    })
    expect(await rig.ask('DELETE', node)).toMatchObject({ code: 405 })
    expect(await rig.ask('POST', '/api/v1/nodes', {})).toMatchObject({ code: 405 })
  })
})
