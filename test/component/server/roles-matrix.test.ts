import { readFileSync } from 'node:fs'
import { beforeEach, expect, it } from 'vitest'
import { computedResources } from '../../../src/api/kinds/api-resource.ts'
import { derivedKinds } from '../../../src/api/kinds/derived-kinds.ts'
import { toApiResource } from '../../../src/api/kinds/served-kind.ts'
import { servedKinds } from '../../../src/api/kinds/served-kinds.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createHandler } from '../../../src/server/create-handler.ts'
import type { ApiHandler } from '../../../src/server/requests/api-request.ts'
import { anonymous, authenticatedGroup, root } from '../../../src/server/requests/identity.ts'
import type { Identity } from '../../../src/server/requests/identity.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { podObject } from '../../support/pod-objects.ts'

/** Stands in the value of a Secret, as text and as base64. */
const secretText = 'hush-hush-value'
const secretBase64 = Buffer.from(secretText).toString('base64')

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

interface Case {
  readonly method: (typeof methods)[number]
  readonly target: string
}

let handler: ApiHandler
let ending: AbortController

beforeEach(() => {
  const rig = new ApiRig('/nowhere')
  rig.page = {
    directory: 'src/page',
    usage: () => ({
      periodSeconds: 30,
      spanSeconds: 3600,
      times: [],
      node: { cpuMillis: [], memoryBytes: [] },
      pods: [],
    }),
  }
  ending = new AbortController()
  rig.pods.put(podObject({ name: 'web' }))
  rig.secrets.put({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'web',
      namespace: 'default',
      uid: 'uid-secret',
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': secretText },
    },
    type: 'Opaque',
    data: { key: secretBase64 },
  })
  handler = createHandler({
    podLogsDir: '/nowhere',
    readers: rig.readers(),
    clock: new ManualClock(),
    logger: silentLogger,
  })
})

/** Every path of discovery and of src/api/routes.ts, over all methods, and lists also as watches. */
function allCases(): readonly Case[] {
  const kinds = [...servedKinds, ...derivedKinds]
  const resources = [...kinds.map((kind) => toApiResource(kind)), ...computedResources]
  const paths = resources.flatMap(({ group, version, resource, namespaced, subresources }) => {
    const base = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
    const lists = [`${base}/${resource}`, ...(namespaced ? [`${base}/namespaces/default/${resource}`] : [])]
    const object = `${namespaced ? `${base}/namespaces/default` : base}/${resource}/web`
    const known = [
      'exec',
      'attach',
      'portforward',
      'eviction',
      'ephemeralcontainers',
      'resize',
      'log',
      'status',
    ]
    const names = new Set([...subresources.map(({ name }) => name), ...known])
    const below = [...names].map((name) => `${object}/${name}`)
    return lists.concat(
      lists.map((list) => `${list}?watch=true`),
      object,
      below,
    )
  })
  const text = readFileSync(new URL('../../../src/api/routes.ts', import.meta.url), 'utf8')
  const told = [...text.matchAll(/^ \* (?:GET|POST) +(?<path>\/[^ ,]*)/gmu)].map(({ groups }) =>
    (groups?.['path'] ?? '')
      .replaceAll(/\[.*?\]/gu, '')
      .replaceAll('{ns}', 'default')
      .replaceAll('{resource}', 'secrets')
      .replaceAll(/\{\w+\}/gu, 'web'),
  )
  return [...new Set([...paths, ...told])].flatMap((target) => methods.map((method) => ({ method, target })))
}

async function ask({ method, target }: Case, identity: Identity): Promise<{ code: number; text: string }> {
  const response = await handler.handle({
    method,
    target,
    headers: { 'content-type': 'application/json' },
    identity,
    readBody: async () => Buffer.from('{}'),
    signal: ending.signal,
  })
  if (typeof response.body === 'string') return { code: response.status, text: response.body }
  const chunks: Uint8Array[] = []
  // What is there comes at once; a watch then waits.
  if (target.includes('watch=true')) ending.abort()
  for await (const chunk of response.body) chunks.push(chunk)
  ending = new AbortController()
  return { code: response.status, text: Buffer.concat(chunks).toString() }
}

const identityOf = (name: string, group: string): Identity => ({
  name,
  groups: [authenticatedGroup, group],
})

/** What one role gets where it should not, or does not get where it should. */
async function violations(
  identity: Identity,
  judge: (each: Case, answer: { readonly code: number; readonly text: string }) => boolean,
): Promise<readonly string[]> {
  const found: string[] = []
  for (const each of allCases()) {
    const answer = await ask(each, identity)
    if (!judge(each, answer)) found.push(`${each.method} ${each.target}: ${answer.code}`)
  }
  return found
}

const showsSecret = ({ text }: { readonly text: string }): boolean =>
  text.includes(secretText) || text.includes(secretBase64)

it('has many paths to try', () => {
  expect(allCases().length).toBeGreaterThan(800)
})

it('a viewer changes nothing and sees no Secret, on any path with any method', async () => {
  const found = await violations(identityOf('ann', 'podd:view'), ({ method, target }, answer) => {
    const isReview = target.includes('/selfsubject') && method === 'POST'
    const isWrite = method !== 'GET' && !isReview
    const mustBeRefused = isWrite || target.includes('secrets')
    return !showsSecret(answer) && (!mustBeRefused || answer.code === 403)
  })
  expect(found).toEqual([])
})

it('an editor reads Secrets where they are, and leaves the host alone', async () => {
  const host = /\/(?:nodes|namespaces|priorityclasses|runtimeclasses|serviceaccounts)(?:\/web)?(?:\/\w+)?$/u
  const found = await violations(identityOf('ed', 'podd:edit'), ({ method, target }, answer) => {
    const isOfPodd = target.startsWith('/podd/v1/') && !target.includes('/namespaces/')
    const mustBeRefused = method !== 'GET' && (host.test(target) || isOfPodd)
    const maySeeSecrets = /^\/api\/v1\/.*secrets/u.test(target)
    return (maySeeSecrets || !showsSecret(answer)) && (!mustBeRefused || answer.code === 403)
  })
  expect(found).toEqual([])
})

it('whoever is not known gets three paths, and the files of the page', async () => {
  const open = ['/livez', '/readyz', '/ui', '/version']
  const found = await violations(anonymous, ({ method, target }, { code }) =>
    method === 'GET' && open.includes(target) ? code === 200 : code === 401,
  )
  expect(found).toEqual([])
})

it('root is refused nothing', async () => {
  expect(await violations(root, (_, { code }) => code !== 401 && code !== 403)).toEqual([])
})
