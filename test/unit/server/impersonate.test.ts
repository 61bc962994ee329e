import { expect, it } from 'vitest'
import { impersonate } from '../../../src/server/access/access.ts'
import { statusResponse, anonymous, root } from '../../../src/server/requests/request.ts'
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
