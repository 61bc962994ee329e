import { describe, expect, it } from 'vitest'
import { groupOfRole, impersonate, mayDo, readAttributes } from '../../../src/server/access/authorize.ts'
import type { Role } from '../../../src/server/access/authorize.ts'
import { anonymous, authenticatedGroup, root, statusResponse } from '../../../src/server/requests/request.ts'
import type { Identity } from '../../../src/server/requests/request.ts'

const viewer: Identity = { name: 'ann', groups: ['podd:view', 'system:authenticated'] }

it.each<[string, Record<string, string>, Identity]>([
  ['nobody else', {}, root],
  ['a user', { 'impersonate-user': 'ann' }, { name: 'ann', groups: ['system:authenticated'] }],
  [
    'a user of groups',
    { 'impersonate-user': 'ann', 'impersonate-group': 'podd:view, shop' },
    { name: 'ann', groups: ['podd:view', 'shop', 'system:authenticated'] },
  ],
  [
    'a service account',
    { 'impersonate-user': 'system:serviceaccount:shop:default' },
    {
      name: 'system:serviceaccount:shop:default',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
    },
  ],
  [
    'one who is not known, and stays so',
    { 'impersonate-user': anonymous.name, 'impersonate-group': 'system:masters' },
    anonymous,
  ],
])('lets an administrator act as %s', (_, headers, identity) => {
  expect(impersonate(root, headers)).toEqual(identity)
})

it.each<[string, Identity, Record<string, string>, number, string]>([
  [
    'an administrator’s',
    viewer,
    { 'impersonate-user': 'root' },
    403,
    'users \\"root\\" is forbidden: User \\"ann\\" cannot impersonate resource \\"users\\"',
  ],
  ['their own', viewer, { 'impersonate-user': 'ann' }, 403, 'cannot impersonate'],
  ['anybody’s, unknown', anonymous, { 'impersonate-user': 'ann' }, 401, 'Unauthorized'],
  ['a group’s without a user', root, { 'impersonate-group': 'system:masters' }, 400, 'without a user'],
])('gives nobody else %s name', (_, identity, headers, code, message) => {
  let refusal: unknown
  try {
    impersonate(identity, headers)
  } catch (error) {
    refusal = error
  }
  const { status, body } = statusResponse(refusal)
  expect(status).toBe(code)
  expect(body).toContain(message)
})

function attributesOf(method: string, target: string) {
  const { pathname, searchParams } = new URL(target, 'http://podd')
  return readAttributes(method, pathname, pathname.split('/').slice(1), searchParams)
}

describe('what a request wants', () => {
  it.each([
    ['GET', '/api/v1/pods', 'list', '', 'pods', ''],
    ['GET', '/api/v1/pods?watch=1', 'watch', '', 'pods', ''],
    ['GET', '/api/v1/pods?watch=false', 'list', '', 'pods', ''],
    ['GET', '/api/v1/namespaces/shop/pods/web/log', 'get', 'shop', 'pods/log', 'web'],
    ['POST', '/api/v1/namespaces/shop/pods', 'create', 'shop', 'pods', ''],
    ['DELETE', '/api/v1/namespaces/shop/pods', 'deletecollection', 'shop', 'pods', ''],
    ['DELETE', '/api/v1/namespaces/shop', 'delete', 'shop', 'namespaces', 'shop'],
    ['PUT', '/api/v1/namespaces/shop/status', 'update', 'shop', 'namespaces/status', 'shop'],
    ['PATCH', '/api/v1/nodes/n', 'patch', '', 'nodes', 'n'],
    ['POST', '/podd/v1/namespaces/shop/pods/web/restart', 'create', 'shop', 'pods/restart', 'web'],
  ])('%s %s', (method, target, verb, namespace, full, name) => {
    const { verb: found, resource } = attributesOf(method, target)
    const { resource: plain = '', subresource = '' } = resource ?? {}
    expect([found, resource?.namespace, subresource === '' ? plain : `${plain}/${subresource}`]).toEqual([
      verb,
      namespace,
      full,
    ])
    expect(resource?.name).toBe(name)
  })

  it.each(['/api', '/api/v1', '/apis', '/apis/apps/v1', '/version', '/podd/v1/status', '/podd/v1/images'])(
    'of %s is a path alone',
    (path) => {
      expect(attributesOf('GET', path)).toEqual({ verb: 'get', resource: undefined, path })
    },
  )
})

const identityOf = (role: Role | 'none') => ({
  name: 'ann',
  groups: [authenticatedGroup, ...(role === 'none' ? [] : [groupOfRole(role)])],
})

describe('a role', () => {
  it.each<[string, string, readonly (Role | 'none')[]]>([
    ['GET', '/api/v1/pods', ['admin', 'edit', 'view']],
    ['GET', '/api/v1/namespaces/shop/secrets', ['admin', 'edit']],
    ['GET', '/podd/v1/secrets', ['admin', 'edit']],
    ['GET', '/podd/v1/applied', ['admin']],
    ['GET', '/podd/v1/status', ['admin', 'edit', 'view']],
    ['POST', '/api/v1/namespaces/shop/pods', ['admin', 'edit']],
    ['POST', '/api/v1/namespaces/shop/pods/web/exec', ['admin', 'edit']],
    ['GET', '/api/v1/namespaces/shop/pods/web/exec', ['admin', 'edit']],
    ['POST', '/api/v1/namespaces', ['admin']],
    ['PATCH', '/api/v1/nodes/n', ['admin']],
    ['POST', '/podd/v1/gc', ['admin']],
    ['POST', '/podd/v1/sources/hold', ['admin']],
    ['POST', '/checkpoint/shop/web/main', ['admin']],
    ['POST', '/api/v1/nodes/n/proxy/checkpoint/shop/web/main', ['admin']],
    ['POST', '/podd/v1/sources/resume', ['admin']],
    ['GET', '/api', ['admin', 'edit', 'view', 'none']],
    ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', ['admin', 'edit', 'view', 'none']],
  ])('%s %s is for %j', (method, target, allowed) => {
    const all = ['admin', 'edit', 'view', 'none'] as const
    const attributes = attributesOf(method, target)
    expect(all.filter((role) => mayDo(identityOf(role), attributes))).toEqual(allowed)
    expect(mayDo(anonymous, attributes)).toBe(false)
  })

  it.each(['/livez', '/readyz', '/version'])('is not needed for GET %s', (path) => {
    expect(mayDo(anonymous, attributesOf('GET', path))).toBe(true)
    expect(mayDo(anonymous, attributesOf('POST', path))).toBe(false)
  })
})
