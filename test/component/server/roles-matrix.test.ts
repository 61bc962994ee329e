import { readFileSync } from 'node:fs'
import { beforeEach, expect, it } from 'vitest'
import { computedResources, toApiResource } from '../../../src/api/served-kind.ts'
import { derivedKinds } from '../../../src/api/derived-kinds.ts'
import { servedKinds } from '../../../src/api/served-kinds.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import { createHandler } from '../../../src/server/create-handler.ts'
import type { ApiHandler, Identity } from '../../../src/server/requests/request.ts'
import { anonymous, authenticatedGroup, root } from '../../../src/server/requests/request.ts'
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
  handler = createHandler(rig.readers(), '/nowhere', undefined, new ManualClock(), silentLogger)
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

/** The same paths, written otherwise: none of them may lead elsewhere for who judges than for who answers. */
function disguised(): readonly Case[] {
  const secrets = '/api/v1/namespaces/default/secrets'
  const targets = [
    '/api/v1/namespaces/default/%73ecrets',
    '/api/v1/namespaces/default/secrets/%77eb',
    '/api/v1/namespaces/default/pods/../secrets',
    '/api/v1/namespaces/default/pods/%2e%2e/secrets/web',
    '/api/v1/namespaces/default/pods/..%2fsecrets%2fweb',
    '/api/v1/namespaces/default%2fsecrets',
    '//api/v1/secrets',
    '/api//v1/secrets',
    '/api/v1//secrets',
    '/api/v1/secrets/',
    '/api/v1/./secrets',
    '/apis//v1/secrets',
    '/apis/v1/secrets',
    '/api/v1/watch/secrets',
    '/api/v1/watch/namespaces/default/secrets/web',
    `http://podd${secrets}`,
    `https://other.example${secrets}/web`,
    `${secrets}?watch=`,
    `${secrets}?watch=TRUE`,
    `${secrets}?watch=0&watch=1`,
    `${secrets}/web?x=/api/v1/pods`,
    `${secrets}/web#/api/v1/pods`,
    `${secrets};v=1`,
    '/podd/v1/%73ecrets',
    '/podd/v1/namespaces/default/secrets/../secrets/web',
    '/API/v1/secrets',
    '/api/v1/SECRETS',
    '/api/v1/nodes/web/proxy/../../../secrets',
    '/livez/../api/v1/secrets',
    '/version/..%2fapi%2fv1%2fsecrets',
  ]
  return targets.flatMap((target) => methods.map((method) => ({ method, target })))
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
  if (target.includes('watch=')) ending.abort()
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
  const counts = new Map<number, number>()
  for (const each of [...allCases(), ...disguised()]) {
    const answer = await ask(each, identity)
    counts.set(answer.code, (counts.get(answer.code) ?? 0) + 1)
    if (!judge(each, answer)) found.push(`${each.method} ${each.target}: ${answer.code}`)
  }
  const told = [...counts].toSorted(([a], [b]) => a - b).map(([code, count]) => `${count} with ${code}`)
  process.stdout.write(
    `${identity.name} sent ${methods.length} methods to ${allCases().length / methods.length} paths, and ` +
      `${disguised().length} requests in disguise; answered were ${told.join(', ')}\n`,
  )
  return found
}

const showsSecret = ({ text }: { readonly text: string }): boolean =>
  text.includes(secretText) || text.includes(secretBase64)

/** Of these some lead nowhere: they are refused, or not there. */
const disguises: ReadonlySet<string> = new Set(disguised().map(({ target }) => target))

it('whoever is known and has no role learns what there is, and nothing of it', async () => {
  const open = /^\/(?:api|apis|openapi|healthz|livez|readyz|ui|version)(?:\/|$)/u
  const found = await violations(identityOf('bob', 'shop'), ({ method, target }, answer) => {
    const isReview = target.includes('/selfsubject') && method === 'POST'
    const mayPass = isReview || (method === 'GET' && open.test(target))
    return !showsSecret(answer) && (answer.code === 404 || answer.code === 403 || mayPass)
  })
  expect(found).toEqual([])
})

it('has many paths to try', () => {
  expect(allCases().length).toBeGreaterThan(800)
})

it('a viewer changes nothing and sees no Secret, on any path with any method', async () => {
  const found = await violations(identityOf('ann', 'podd:view'), ({ method, target }, answer) => {
    const isReview = target.includes('/selfsubject') && method === 'POST'
    const isWrite = method !== 'GET' && !isReview
    const isDisguised = disguises.has(target)
    const mustBeRefused = isWrite || (!isDisguised && target.includes('secrets'))
    const isRefused = answer.code === 403 || (isDisguised && answer.code === 404)
    return !showsSecret(answer) && (!mustBeRefused || isRefused)
  })
  expect(found).toEqual([])
})

it('an editor reads Secrets where they are, and leaves the host alone', async () => {
  const host = /\/(?:nodes|namespaces|priorityclasses|runtimeclasses)(?:\/web)?(?:\/\w+)?$/u
  const found = await violations(identityOf('ed', 'podd:edit'), ({ method, target }, answer) => {
    const isOfPodd = target.startsWith('/podd/v1/') && !target.includes('/namespaces/')
    const mustBeRefused = method !== 'GET' && (host.test(target) || isOfPodd)
    const maySeeSecrets = /api\/v1\/.*(?:s|%73)ecrets/u.test(target)
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
