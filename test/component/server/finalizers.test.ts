import { cp, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { startWritingRig } from '../../support/writing-rig.ts'
import type { WritingRig } from '../../support/writing-rig.ts'

const namespace = '/api/v1/namespaces/default'
const finalizers = ['example.com/a', 'example.com/b']
const merge = 'application/merge-patch+json'
const strategic = 'application/strategic-merge-patch+json'
const held = { deletionTimestamp: expect.any(String), deletionGracePeriodSeconds: 0, finalizers }
const freed: JsonObject = { metadata: { finalizers: null } }
const without = (name: string): JsonObject => ({
  metadata: { '$deleteFromPrimitiveList/finalizers': [name] },
})

const pod: JsonObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', finalizers },
  spec: { containers: [{ name: 'main', image: 'web:1' }] },
}
const configMap: JsonObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', finalizers } }

/** A podd that finds what this one has kept. */
async function restart(rig: WritingRig): Promise<WritingRig> {
  const directory = await mkdtemp(join(tmpdir(), 'podd-writing-'))
  await cp(join(rig.directory, 'api'), join(directory, 'api'), { recursive: true })
  return startWritingRig(directory)
}

it('hold a pod that has ended, as it was last, until they are gone: also over a restart of podd', async () => {
  await using before = await startWritingRig()
  await before.ask('POST', `${namespace}/pods`, pod)
  expect(await before.ask('DELETE', `${namespace}/pods/a?gracePeriodSeconds=0`)).toMatchObject({ code: 200 })
  const shown = await before.ask('GET', `${namespace}/pods/a`)
  expect(shown).toMatchObject({ code: 200, body: { metadata: held } })
  // Writes come one after another: what was kept of the pod's end is on disk.
  await before.ask('POST', `${namespace}/configmaps`, { ...configMap, metadata: { name: 'other' } })

  await using rig = await restart(before)
  const { uid } = Object.assign({ uid: undefined }, shown.body['metadata'])
  expect(await rig.ask('GET', `${namespace}/pods/a`)).toMatchObject({
    code: 200,
    body: { metadata: { ...held, uid }, status: shown.body['status'] },
  })
  expect(await rig.ask('GET', `${namespace}/pods`)).toMatchObject({
    body: { items: [{ metadata: { uid } }] },
  })
  expect(await rig.ask('POST', `${namespace}/pods`, pod)).toMatchObject({ code: 409 })
  expect(await rig.ask('PATCH', `${namespace}/pods/a`, without('example.com/a'), strategic)).toMatchObject({
    code: 200,
    body: { metadata: { finalizers: ['example.com/b'] } },
  })
  expect(await rig.ask('PATCH', `${namespace}/pods/a`, freed, merge)).toMatchObject({ code: 200 })
  expect(await rig.ask('GET', `${namespace}/pods/a`)).toMatchObject({ code: 404 })
  expect(await rig.ask('POST', `${namespace}/pods`, pod)).toMatchObject({ code: 201 })
})

it('hold any other object, over a restart too, and none can be added then', async () => {
  await using before = await startWritingRig()
  await before.ask('POST', `${namespace}/configmaps`, configMap)
  expect(await before.ask('DELETE', `${namespace}/configmaps/a`)).toMatchObject({
    code: 200,
    body: { kind: 'ConfigMap', metadata: held },
  })

  await using rig = await restart(before)
  expect(await rig.ask('GET', `${namespace}/configmaps/a`)).toMatchObject({
    code: 200,
    body: { metadata: held },
  })
  const more = { metadata: { finalizers: [...finalizers, 'example.com/c'] } }
  expect(await rig.ask('PATCH', `${namespace}/configmaps/a`, more, merge)).toMatchObject({
    code: 422,
    body: {
      details: {
        causes: [
          {
            field: 'metadata.finalizers',
            message:
              'Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/c"}',
          },
        ],
      },
    },
  })
  expect(await rig.ask('PATCH', `${namespace}/configmaps/a`, freed, merge)).toMatchObject({ code: 200 })
  expect(await rig.ask('GET', `${namespace}/configmaps/a`)).toMatchObject({ code: 404 })
})

it('hold a namespace, by what is in it', async () => {
  await using rig = await startWritingRig()
  await rig.ask('POST', '/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'n' },
  })
  await rig.ask('POST', '/api/v1/namespaces/n/configmaps', configMap)
  await rig.ask('DELETE', '/api/v1/namespaces/n')
  expect(await rig.ask('GET', '/api/v1/namespaces/n')).toMatchObject({
    body: { status: { phase: 'Terminating' } },
  })
  await rig.ask('PATCH', '/api/v1/namespaces/n/configmaps/a', freed, merge)
  expect(await rig.ask('GET', '/api/v1/namespaces/n')).toMatchObject({ code: 404 })
})
