import { describe, expect, it } from 'vitest'
import type { ObjectDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { PodCredentials } from '../../../src/control/images/image-access.ts'
import { ObjectStore, pullsWith } from '../../../src/control/serving/object-store.ts'
import { readDockerConfig } from '../../../src/decide/images/keyring.ts'
import type { SourceName } from '../../../src/pod/values/ids.ts'
import { plainObjectRules } from '../../support/object-rules.ts'
import { makePod } from '../../support/pod-builders.ts'

const auths = (...users: readonly string[]): Record<string, object> =>
  Object.fromEntries(
    users.map((user, index) => [`registry.io${'/team'.repeat(index)}`, { username: user, password: 'x' }]),
  )

function secretOf(name: string, text: string, type = 'kubernetes.io/dockerconfigjson'): ObjectDocument {
  const key = type === 'kubernetes.io/dockercfg' ? '.dockercfg' : '.dockerconfigjson'
  const manifest = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    type,
    stringData: { [key]: text },
  }
  return { object: objectFromManifest(manifest), manifest, place: { path: `${name}.yaml` } }
}

interface Given {
  readonly secrets: readonly (readonly [SourceName, ObjectDocument])[]
  readonly node?: readonly string[]
  readonly plugin?: readonly string[]
}

function credentialsOf({ secrets, node = [], plugin }: Given) {
  const objects = new ObjectStore(plainObjectRules)
  const changed = objects.replace(secrets.map(([source, document]) => ({ source, document })))
  const configOf = (users: readonly string[]) =>
    readDockerConfig(JSON.stringify({ auths: auths(...users) }), 'config.json').config
  const credentials = new PodCredentials({
    objects,
    node: { read: async () => configOf(node) },
    providers:
      plugin === undefined
        ? undefined
        : { provide: async () => ({ configs: [configOf(plugin)], failures: ['plugin: exited with 1'] }) },
  })
  return { credentials, changed }
}

const image = 'registry.io/team/app:1'

async function found(given: Given, names: readonly string[], source: SourceName = 'file') {
  const { credentials } = credentialsOf(given)
  const result = await credentials.find(image, { source, namespace: 'default', names })
  return {
    users: result.credentials.map(({ credential }) => credential.username),
    messages: result.warnings.map(({ reason, message }) => `${reason}: ${message}`),
    secrets: result.credentials.map(({ secret }) => secret?.name),
  }
}

const json = (...users: readonly string[]): string => JSON.stringify({ auths: auths(...users) })

describe('the credentials of a pod', () => {
  // id: keyring-of-secrets
  it("are its Secrets', then the node's, then those of plugins, each once", async () => {
    const secrets = [
      ['file', secretOf('one', json('a', 'b'))],
      ['file', secretOf('two', JSON.stringify(auths('c')), 'kubernetes.io/dockercfg')],
    ] as const
    const { users, secrets: names } = await found({ secrets, node: ['n', 'a'], plugin: ['p'] }, [
      'one',
      'two',
    ])
    expect(users).toEqual(['b', 'a', 'c', 'n', 'p'])
    expect(names).toEqual(['one', 'one', 'two', undefined, undefined])
  })

  it('do without a Secret that is missing, with the kubelet’s words', async () => {
    const secrets = [['file', secretOf('one', json('a'))]] as const
    expect(await found({ secrets }, ['gone', 'one', '', 'lost'])).toMatchObject({
      users: ['a'],
      messages: [
        'FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (gone, lost); attempting to pull the image may not succeed.',
      ],
    })
  })

  it('are not those of Secrets of other sources', async () => {
    const { users, messages } = await found(
      { secrets: [['file', secretOf('one', json('a'))]] },
      ['one'],
      'http',
    )
    expect(users).toEqual([])
    expect(messages.join()).toMatch(/Unable to retrieve some image pull secrets \(one: /u)
  })

  it('do without a Secret of another type and without entries that cannot be read', async () => {
    const secrets = [
      ['file', secretOf('opaque', json('a'), 'Opaque')],
      ['file', secretOf('bad', JSON.stringify({ auths: { 'a.io': { auth: 'hunter2' }, ...auths('b') } }))],
    ] as const
    const { users, messages } = await found({ secrets }, ['opaque', 'bad'])
    expect(users).toEqual(['b'])
    expect(messages.join()).toMatch(/opaque: its type is Opaque.*bad: the entry of "a\.io" has an auth/u)
    expect(messages.join()).not.toContain('hunter2')
  })

  it('come with what plugins failed for', async () => {
    const { users, messages } = await found({ secrets: [], plugin: [] }, [])
    expect(users).toEqual([])
    expect(messages).toEqual(['FailedCredentialProvider: plugin: exited with 1'])
  })

  it('are another for pods of the namespace that name a Secret which came', () => {
    const { changed } = credentialsOf({ secrets: [['file', secretOf('one', json('a'))]] })
    const pod = makePod({ spec: { imagePullSecrets: [{ name: 'one' }] } })
    expect(pullsWith({ pod, source: 'file' }, changed)).toBe(true)
    expect(pullsWith({ pod: makePod(), source: 'file' }, changed)).toBe(false)
    expect(pullsWith({ pod, source: 'http' }, changed)).toBe(false)
  })
})
