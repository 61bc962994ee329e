import { cp, mkdtemp, readFile } from 'node:fs/promises'
import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isJsonObject } from '../../../src/base/json.ts'
import type { Json, JsonObject } from '../../../src/base/json.ts'
import { startWritingRig } from '../../support/writing-rig.ts'

const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
const templates = '/api/v1/namespaces/default/podtemplates'
const merge = 'application/merge-patch+json'

const lease = (name: string, spec: JsonObject = {}): JsonObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name },
  spec: {
    holderIdentity: 'one',
    leaseDurationSeconds: 30,
    acquireTime: '0001-01-01T00:00:02.000000Z',
    renewTime: '2026-01-01T00:00:02.000001Z',
    leaseTransitions: 0,
    ...spec,
  },
})

const template = (name: string, spec: JsonObject = {}, labels: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind: 'PodTemplate',
  metadata: { name, labels },
  template: {
    metadata: { labels: { app: 'web' } },
    spec: { containers: [{ name: 'main', image: 'web:1' }], ...spec },
  },
})

const namesIn = ({ items }: JsonObject): readonly Json[] =>
  (Array.isArray(items) ? items : []).map((item: Json) =>
    isJsonObject(item) && isJsonObject(item['metadata']) ? (item['metadata']['name'] ?? null) : null,
  )

/** The first changes of a watch: of what kind, and of which object. */
async function readChanges(socketPath: string, path: string, count: number): Promise<readonly string[]> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ socketPath, path, agent: false }, resolve).once('error', reject).end()
  })
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) {
    text += String(chunk)
    if (text.split('\n').length > count) break
  }
  return text
    .split('\n')
    .slice(0, count)
    .map((line) => {
      const { type, object }: { type: string; object: { metadata: { name: string } } } = JSON.parse(line)
      return `${type} ${object.metadata.name}`
    })
}

describe('leases', () => {
  it('are kept as they are written, changed, listed beside the node’s, and deleted by label', async () => {
    await using rig = await startWritingRig()
    const made = await rig.ask('POST', leases, lease('a'))
    expect(made).toMatchObject({ code: 201, body: lease('a') })
    const file = join(rig.directory, 'api', 'lease.default.a.json')
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject(lease('a'))
    const taken = { spec: { holderIdentity: 'two', leaseTransitions: 1 } }
    expect(await rig.ask('PATCH', `${leases}/a`, taken, merge)).toMatchObject({
      code: 200,
      body: lease('a', taken.spec),
    })
    await rig.ask('POST', leases, { ...lease('b'), metadata: { name: 'b', labels: { old: 'yes' } } })
    expect(namesIn((await rig.ask('GET', leases)).body)).toEqual(['a', 'b'])
    const all = await rig.ask('GET', '/apis/coordination.k8s.io/v1/leases')
    expect(namesIn(all.body)).toEqual(['here', 'a', 'b'])
    expect(await rig.ask('DELETE', `${leases}?labelSelector=old%3Dyes`)).toMatchObject({ code: 200 })
    expect(namesIn((await rig.ask('GET', leases)).body)).toEqual(['a'])
    expect(await rig.ask('DELETE', `${leases}/a`)).toMatchObject({ code: 200 })
    expect(await rig.ask('GET', `${leases}/a`)).toMatchObject({ code: 404 })
  })

  it('concern no pod: the sync loop is not asked to take them', async () => {
    await using rig = await startWritingRig()
    await rig.ask('POST', leases, lease('a'))
    await rig.ask('PATCH', `${leases}/a`, { spec: { holderIdentity: 'two' } }, merge)
    await rig.ask('DELETE', `${leases}/a`)
    expect(rig.sameSnapshots).toBe(3)
  })

  it('are watched in the order of all changes, the node’s among them', async () => {
    await using rig = await startWritingRig()
    const { body } = await rig.ask('GET', '/apis/coordination.k8s.io/v1/leases')
    expect(body).toMatchObject({ metadata: { resourceVersion: expect.stringMatching(/^\d+$/u) } })
    const { metadata = {} } = body
    const since = isJsonObject(metadata) ? JSON.stringify(metadata['resourceVersion']).slice(1, -1) : ''
    await rig.ask('POST', leases, lease('a'))
    await rig.ask('PATCH', '/api/v1/nodes/here', { metadata: { labels: { site: 'x' } } }, merge)
    await rig.ask('DELETE', `${leases}/a`)
    const path = `/apis/coordination.k8s.io/v1/leases?watch=true&resourceVersion=${since}`
    const seen = await readChanges(rig.socketPath, path, 3)
    expect(seen).toEqual(['ADDED a', 'MODIFIED here', 'DELETED a'])
  })

  it('are refused where an API server refuses them', async () => {
    await using rig = await startWritingRig()
    const causes = [
      [{ leaseDurationSeconds: 0 }, 'spec.leaseDurationSeconds'],
      [{ leaseTransitions: -1 }, 'spec.leaseTransitions'],
      [{ preferredHolder: 'two' }, 'spec.preferredHolder'],
    ] as const
    for (const [spec, field] of causes)
      expect(await rig.ask('POST', leases, lease('a', spec))).toMatchObject({
        code: 422,
        body: { details: { causes: [{ field }] } },
      })
    expect(await rig.ask('POST', leases, lease('a', { renewTime: 'now' }))).toMatchObject({ code: 400 })
    expect(
      await rig.ask('DELETE', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/here'),
    ).toMatchObject({ code: 405 })
  })
})

describe('pod templates', () => {
  it('are kept with the defaults of a template, and count the changes of theirs', async () => {
    await using rig = await startWritingRig()
    expect(await rig.ask('POST', templates, template('a'))).toMatchObject({
      code: 201,
      body: {
        metadata: { generation: 1 },
        template: {
          spec: { restartPolicy: 'Always', containers: [{ terminationMessagePolicy: 'File' }] },
        },
      },
    })
    const labels = { metadata: { labels: { step: '1' } } }
    expect(await rig.ask('PATCH', `${templates}/a`, labels, merge)).toMatchObject({
      body: { metadata: { generation: 1, labels: { step: '1' } } },
    })
    const slower = { template: { spec: { terminationGracePeriodSeconds: 5 } } }
    expect(await rig.ask('PATCH', `${templates}/a`, slower, merge)).toMatchObject({
      body: { metadata: { generation: 2 }, ...slower },
    })
    const { body } = await rig.ask('GET', `${templates}/a`)
    expect(body['template']).not.toHaveProperty('spec.serviceAccountName')
    expect(await rig.ask('PUT', `${templates}/a`, body)).toMatchObject({ code: 200 })
    await rig.ask('POST', templates, template('b', {}, { set: 'x' }))
    expect(await rig.ask('DELETE', `${templates}?labelSelector=set%3Dx`)).toMatchObject({ code: 200 })
    expect(namesIn((await rig.ask('GET', templates)).body)).toEqual(['a'])
  })

  it.each([
    [
      'a name that is none',
      { containers: [{ name: 'A b', image: 'x' }] },
      'template.spec.containers[0].name',
    ],
    ['no container', { containers: [] }, 'template.spec.containers'],
  ])('are refused as their pods would be: %s', async (_, spec, field) => {
    await using rig = await startWritingRig()
    expect(await rig.ask('POST', templates, template('a', spec))).toMatchObject({
      code: 422,
      body: { details: { causes: [{ field }] } },
    })
  })

  it('may be asked for with fields that no pod has: strictly they are refused', async () => {
    await using rig = await startWritingRig()
    const odd = template('a', { colour: 'red' })
    expect(await rig.ask('POST', `${templates}?fieldValidation=Strict`, odd)).toMatchObject({
      code: 400,
      body: { message: expect.stringContaining('unknown field "template.spec.colour"') },
    })
    expect(await rig.ask('POST', `${templates}?fieldValidation=Warn`, odd)).toMatchObject({
      code: 201,
      warning: expect.stringContaining('template.spec.colour'),
    })
  })
})

describe('kinds without effect', () => {
  const group = 'rbac.authorization.k8s.io'
  const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]
  const roleRef = { apiGroup: group, kind: 'Role', name: 'web' }
  const cases: readonly [resource: string, root: string, manifest: JsonObject][] = [
    ['serviceaccounts', '/api/v1', { apiVersion: 'v1', kind: 'ServiceAccount' }],
    ['roles', `/apis/${group}/v1`, { apiVersion: `${group}/v1`, kind: 'Role', rules }],
    [
      'rolebindings',
      `/apis/${group}/v1`,
      { apiVersion: `${group}/v1`, kind: 'RoleBinding', roleRef, subjects: [] },
    ],
    [
      'poddisruptionbudgets',
      '/apis/policy/v1',
      { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', spec: { minAvailable: 1 } },
    ],
    ['clusterroles', `/apis/${group}/v1`, { apiVersion: `${group}/v1`, kind: 'ClusterRole', rules }],
    [
      'clusterrolebindings',
      `/apis/${group}/v1`,
      { apiVersion: `${group}/v1`, kind: 'ClusterRoleBinding', roleRef },
    ],
    [
      'storageclasses',
      '/apis/storage.k8s.io/v1',
      {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        provisioner: 'a.example',
        parameters: { a: 'b' },
      },
    ],
    [
      'ingressclasses',
      '/apis/networking.k8s.io/v1',
      { apiVersion: 'networking.k8s.io/v1', kind: 'IngressClass', spec: { controller: 'a.example/b' } },
    ],
    [
      'customresourcedefinitions',
      '/apis/apiextensions.k8s.io/v1',
      {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        spec: {
          group: 'a.example',
          scope: 'Namespaced',
          names: { plural: 'webs', kind: 'Web' },
          versions: [],
        },
      },
    ],
  ]
  it('of custom objects say that podd serves none, and that they never become Established', async () => {
    const [resource, root, given] = cases.find(([name]) => name === 'customresourcedefinitions')!
    const place = `${root}/${resource}`
    await using rig = await startWritingRig()
    const status = { conditions: [{ type: 'Established', status: 'True' }] }
    const made = await rig.ask('POST', place, { ...given, metadata: { name: 'webs.a.example' }, status })
    expect(made.warning).toContain('podd serves no custom objects: the definition never becomes Established')
    const refused = {
      status: 'False',
      reason: 'NotServed',
      message: 'podd serves no custom objects: the definition never becomes Established',
      lastTransitionTime: expect.stringMatching(/^\d{4}-.*Z$/u) as string,
    }
    const shown = {
      acceptedNames: { plural: '', kind: '' },
      storedVersions: [],
      conditions: [
        { type: 'NamesAccepted', ...refused },
        { type: 'Established', ...refused },
      ],
    }
    expect(made.body['status']).toEqual(shown)
    const labels = { metadata: { labels: { app: 'shop' } } }
    const changed = await rig.ask('PATCH', `${place}/webs.a.example`, labels, merge)
    expect(changed).toMatchObject({ code: 200, body: { ...labels, status: shown } })
    expect((await rig.ask('GET', `${place}/webs.a.example`)).body['status']).toEqual(shown)
  })

  const ofCluster = ['storageclasses', 'ingressclasses', 'customresourcedefinitions']

  it.each(cases)(
    'are kept with a warning, changed, listed and deleted, across restarts: %s',
    async (resource, root, given) => {
      const place =
        resource.startsWith('cluster') || ofCluster.includes(resource)
          ? `${root}/${resource}`
          : `${root}/namespaces/default/${resource}`
      const manifest = { ...given, metadata: { name: 'web', labels: { app: 'web' } } }
      await using rig = await startWritingRig()
      const made = await rig.ask('POST', `${place}?fieldValidation=Strict`, manifest)
      expect(made).toMatchObject({ code: 201, body: manifest })
      expect(made.warning).toContain('web is kept without effect, as nothing on one host goes by it')
      expect(await rig.ask('POST', place, manifest)).toMatchObject({ code: 409 })
      expect(
        await rig.ask('PATCH', `${place}/web`, { metadata: { labels: { app: 'shop' } } }, merge),
      ).toMatchObject({
        code: 200,
        body: { ...given, metadata: { labels: { app: 'shop' } } },
      })
      expect(namesIn((await rig.ask('GET', `${place}?labelSelector=app%3Dshop`)).body)).toEqual(['web'])
      const directory = await mkdtemp(join(tmpdir(), 'podd-writing-'))
      await cp(join(rig.directory, 'api'), join(directory, 'api'), { recursive: true })
      await using next = await startWritingRig(directory)
      expect(await next.ask('GET', `${place}/web`)).toMatchObject({ code: 200, body: given })
      expect(await next.ask('DELETE', `${place}/web`)).toMatchObject({ code: 200 })
      expect(await next.ask('GET', `${place}/web`)).toMatchObject({ code: 404 })
      expect([rig.sameSnapshots, next.sameSnapshots]).toEqual([2, 1])
    },
  )

  it('may have the names of roles, which are no DNS names', async () => {
    await using rig = await startWritingRig()
    const place = `/apis/${group}/v1/clusterroles`
    const named = (name: string): JsonObject => ({
      apiVersion: `${group}/v1`,
      kind: 'ClusterRole',
      metadata: { name },
      rules,
    })
    expect(await rig.ask('POST', place, named('system:Metrics_reader'))).toMatchObject({ code: 201 })
    expect(await rig.ask('GET', `${place}/system:Metrics_reader`)).toMatchObject({ code: 200 })
    for (const name of ['a/b', '..', 'a%b', 'a\nb'])
      expect(await rig.ask('POST', place, named(name))).toMatchObject({ code: 422 })
  })

  it('warn of pull secrets that pods do not get from their ServiceAccount', async () => {
    await using rig = await startWritingRig()
    const account = {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'web' },
      imagePullSecrets: [{ name: 'a' }],
    }
    const { warning } = await rig.ask('POST', '/api/v1/namespaces/default/serviceaccounts', account)
    expect(warning).toContain('imagePullSecrets has no effect')
  })

  it('go with their namespace, and a ServiceAccount stands beside the one that each namespace has', async () => {
    await using rig = await startWritingRig()
    await rig.ask('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'shop' },
    })
    for (const [resource, root, given] of cases.slice(0, 4))
      expect(
        await rig.ask('POST', `${root}/namespaces/shop/${resource}`, { ...given, metadata: { name: 'web' } }),
      ).toMatchObject({ code: 201 })
    const accounts = '/api/v1/namespaces/shop/serviceaccounts'
    expect(namesIn((await rig.ask('GET', accounts)).body)).toEqual(['default', 'web'])
    expect(await rig.ask('DELETE', '/api/v1/namespaces/shop')).toMatchObject({ code: 200 })
    await expect.poll(async () => (await rig.ask('GET', '/api/v1/namespaces/shop')).code).toBe(404)
    expect(rig.objects.list()).toEqual([])
    expect(namesIn((await rig.ask('GET', accounts)).body)).toEqual([])
  })

  it('that belong to no namespace lose one that a client wrote', async () => {
    await using rig = await startWritingRig()
    const role = {
      apiVersion: `${group}/v1`,
      kind: 'ClusterRole',
      metadata: { name: 'web', namespace: 'shop' },
      rules,
    }
    const place = `/apis/${group}/v1/clusterroles`
    const { code, body } = await rig.ask('POST', place, role)
    expect(code).toBe(201)
    expect(body).not.toHaveProperty('metadata.namespace')
    expect(await rig.ask('PUT', `${place}/web`, role)).toMatchObject({ code: 200 })
    expect(await rig.ask('DELETE', `${place}/web`)).toMatchObject({ code: 200 })
  })
})
