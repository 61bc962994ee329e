import { expect, it } from 'vitest'
import { parseYamlBody } from '../../../src/server/requests/read-object.ts'

const pod = { kind: 'Pod', metadata: { name: 'a' } }

it.each([
  ['in block style', 'kind: Pod\nmetadata:\n  name: a\n'],
  ['in flow style', '{kind: Pod, metadata: {name: a}}'],
  ['as JSON', JSON.stringify(pod)],
])('a body of YAML %s is read', async (_what, text) => {
  expect(await parseYamlBody(Buffer.from(text))).toEqual(pod)
})

it.each(['{kind: Pod', '{kind: Pod}\n---\n{kind: Pod}', ''])('refuses %j', async (text) => {
  await expect(parseYamlBody(Buffer.from(text))).rejects.toThrow('the body of the request')
})
