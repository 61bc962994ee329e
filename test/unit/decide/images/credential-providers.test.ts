import { describe, expect, it } from 'vitest'
import {
  readProviderConfig,
  formatProviderRequest,
  readProviderResponse,
} from '../../../../src/decide/images/provider-config.ts'
import { parseProviderFiles } from '../../../../src/images/credential-providers.ts'
import type { Json, JsonObject } from '../../../../src/base/json.ts'

const apiVersion = 'credentialprovider.kubelet.k8s.io/v1'

const provider: JsonObject = {
  name: 'test',
  matchImages: ['registry.io/foobar'],
  defaultCacheDuration: '10m',
  apiVersion,
}

function configOf(...providers: readonly Json[]): JsonObject {
  return { kind: 'CredentialProviderConfig', apiVersion: 'kubelet.config.k8s.io/v1', providers }
}

// pkg/credentialprovider/plugin/config_test.go, 1.36.
describe('a CredentialProviderConfig', () => {
  // id: provider-config
  it('has what each plugin is run with', () => {
    const args = ['--v=5']
    const env = [{ name: 'FOO', value: 'BAR' }]
    const { providers, problems } = readProviderConfig(configOf({ ...provider, args, env }))
    expect(problems).toEqual([])
    expect(providers).toEqual([
      {
        name: 'test',
        matchImages: ['registry.io/foobar'],
        defaultCacheMs: 600_000,
        args,
        env: { FOO: 'BAR' },
      },
    ])
  })

  it.each<[string, Json, RegExp]>([
    // id: provider-config-refused
    ['config with wrong Kind', { ...configOf(provider), kind: 'WrongKind' }, /kind/u],
    ['config with wrong apiversion', { ...configOf(provider), apiVersion: 'foobar/v1' }, /apiVersion/u],
    ['config with invalid typo', configOf({ ...provider, matchImagess: [] }), /matchImagess/u],
    ['no providers provided', configOf(), /at least one is required/u],
    ['no matchImages provided', configOf({ ...provider, matchImages: [] }), /matchImages/u],
    [
      'no default cache duration provided',
      configOf({ ...provider, defaultCacheDuration: null }),
      /defaultCache/u,
    ],
    ["name contains '/'", configOf({ ...provider, name: 'foo/../bar' }), /providers\[0\]\.name/u],
    ["name is '.'", configOf({ ...provider, name: '.' }), /providers\[0\]\.name/u],
    ["name is '..'", configOf({ ...provider, name: '..' }), /providers\[0\]\.name/u],
    ['name contains spaces', configOf({ ...provider, name: 'foo bar' }), /providers\[0\]\.name/u],
    ['duplicate names', configOf(provider, provider), /"test" is there twice/u],
    ['no apiVersion', configOf({ ...provider, apiVersion: null }), /apiVersion/u],
    [
      'invalid apiVersion',
      configOf({ ...provider, apiVersion: 'credentialprovider.kubelet.k8s.io/v1alpha0' }),
      /must be credentialprovider\.kubelet\.k8s\.io\/v1/u,
    ],
    ['negative default cache duration', configOf({ ...provider, defaultCacheDuration: '-1m' }), /negative/u],
    [
      'invalid match image',
      configOf({ ...provider, matchImages: ['http://%invalid.registry.io'] }),
      /is no registry/u,
    ],
    [
      'token attributes, for there are no service accounts',
      configOf({ ...provider, tokenAttributes: { serviceAccountTokenAudience: 'audience' } }),
      /tokenAttributes.*service accounts/u,
    ],
  ])('is refused as a whole: %s', (_, document, problem) => {
    const { providers, problems } = readProviderConfig(document)
    expect(providers).toEqual([])
    expect(problems.join('\n')).toMatch(problem)
  })

  // id: provider-config-files
  it('may be several files, whose providers differ in their names', async () => {
    const yaml = (name: string) => JSON.stringify(configOf({ ...provider, name }))
    const files = (...names: string[]) =>
      new Map(names.map((name, index) => [`/d/${index}.yaml`, yaml(name)]))
    const { providers } = await parseProviderFiles('/d', files('test1', 'test2'))
    expect(providers.map(({ name }) => name)).toEqual(['test1', 'test2'])
    expect(await parseProviderFiles('/d', files('same', 'same'))).toEqual({
      providers: [],
      problems: ['providers: "same" is there twice'],
    })
    expect((await parseProviderFiles('/d', new Map())).problems).toEqual(['/d: no configuration files in it'])
    const broken = new Map([...files('good'), ['/d/9.yaml', 'kind: [']])
    expect((await parseProviderFiles('/d', broken)).providers).toEqual([])
  })
})

describe('a credential provider plugin', () => {
  // id: provider-request
  it('is asked for an image', () => {
    expect(JSON.parse(formatProviderRequest('registry.io/app'))).toEqual({
      kind: 'CredentialProviderRequest',
      apiVersion,
      image: 'registry.io/app',
    })
  })

  const response: JsonObject = {
    kind: 'CredentialProviderResponse',
    apiVersion,
    cacheKeyType: 'Registry',
    cacheDuration: '5m',
    auth: { '*.registry.io': { username: 'user', password: 'password' } },
  }

  // id: provider-response
  it('answers with credentials', () => {
    expect(readProviderResponse(JSON.stringify(response))).toEqual({
      cacheKeyType: 'Registry',
      cacheMs: 300_000,
      config: new Map([
        [
          '*.registry.io',
          { username: 'user', password: 'password', email: '', identityToken: '', registryToken: '' },
        ],
      ]),
    })
  })

  it.each([
    ['no duration', { cacheDuration: null }, undefined],
    ['a duration of 0', { cacheDuration: '0s' }, 0],
  ])('may answer with %s', (_, change, cacheMs) => {
    expect(readProviderResponse(JSON.stringify({ ...response, ...change }))).toMatchObject({ cacheMs })
  })

  it.each([
    ['no JSON', 'hunter2'],
    ['another kind', JSON.stringify({ ...response, kind: 'Secret' })],
    ['another apiVersion', JSON.stringify({ ...response, apiVersion: `${apiVersion}beta1` })],
    ['no cache key type', JSON.stringify({ ...response, cacheKeyType: '' })],
    ['a duration that is none', JSON.stringify({ ...response, cacheDuration: 'hunter2' })],
    [
      'a password that is a number',
      JSON.stringify({ ...response, auth: { 'a.io': { username: 'u', password: 3 } } }),
    ],
    ['a credential that is text', JSON.stringify({ ...response, auth: { 'a.io': 'hunter2' } })],
  ])('that answers with %s is wrong, and is not quoted', (_, text) => {
    const read = readProviderResponse(text)
    expect(read).toEqual(expect.any(String))
    expect(read).not.toContain('hunter2')
  })
})
