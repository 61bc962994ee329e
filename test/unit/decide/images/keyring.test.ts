import { describe, expect, it } from 'vitest'
import {
  readDockerConfig,
  isDefaultRegistry,
  lookUpCredentials,
  matchesLocationText,
  credentialHash,
  toAuthConfig,
  withoutRepeats,
} from '../../../../src/decide/images/keyring.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const plain = { username: '', password: '', email: '', identityToken: '', registryToken: '' }

/** The users whose credentials fit, in their order. */
function usersOf(auths: Readonly<Record<string, string>>, image: string): readonly string[] {
  const entries = Object.entries(auths).map(([location, user]) => [
    location,
    { auth: base64(`${user}:secret`) },
  ])
  const { config } = readDockerConfig(JSON.stringify({ auths: Object.fromEntries(entries) }), 'config.json')
  return lookUpCredentials([{ config }], image).map(({ credential }) => credential.username)
}

// pkg/credentialprovider/keyring_test.go, 1.36.
describe('matching registries (TestURLsMatch)', () => {
  it.each([
    // id: matches-registries
    ['*.kubernetes.io', 'prefix.kubernetes.io', true],
    ['prefix.*.io', 'prefix.kubernetes.io', true],
    ['prefix.kubernetes.*', 'prefix.kubernetes.io', true],
    ['*-good.kubernetes.io', 'prefix-good.kubernetes.io', true],
    ['*.kubernetes.io/blah', 'prefix.kubernetes.io/blah', true],
    ['prefix.*.io/foo', 'prefix.kubernetes.io/foo/bar', true],
    ['*.kubernetes.io:1111/blah', 'prefix.kubernetes.io:1111/blah', true],
    ['prefix.*.io:1111/foo', 'prefix.kubernetes.io:1111/foo/bar', true],
    ['*.kubernetes.io', 'kubernetes.io', false],
    ['*.*.kubernetes.io', 'prefix.kubernetes.io', false],
    ['*.*.kubernetes.io', 'kubernetes.io', false],
    ['*kubernetes.io', 'a.kubernetes.io', false],
    ['*kubernetes.io', 'kubernetes.io', true],
    ['*.*.*.kubernetes.io', 'a.b.c.kubernetes.io', true],
    ['kubernetes.io', 'kubernetes.com', false],
    ['k*.io', 'quay.io', false],
    ['*.kubernetes.io:1234/blah', 'prefix.kubernetes.io:1111/blah', false],
    ['prefix.*.io/foo', 'prefix.kubernetes.io:1111/foo/bar', false],
    // podd's own.
    ['a*b*c.io', 'axbxxbc.io', true],
    ['[::1]:5000', '[::1]:5000/app', true],
    ['', 'kubernetes.io', false],
    ['/kubernetes', '/kubernetes', false],
    ['kubernetes.io:port', 'kubernetes.io', false],
  ])('%s and %s: %s', (pattern, target, expected) => {
    expect(matchesLocationText(pattern, target)).toBe(expected)
  })

  it('takes no time that grows with the stars of a pattern', () => {
    const pattern = `${'*a'.repeat(200)}b.io`
    expect(matchesLocationText(pattern, `${'a'.repeat(5000)}.io`)).toBe(false)
  })
})

describe('credentials of an image', () => {
  it.each([
    // id: keyring-globs
    ['https://hello.kubernetes.io', 'hello.kubernetes.io'],
    ['https://*.docker.io', 'prefix.docker.io'],
    ['https://prefix.*.io', 'prefix.docker.io'],
    ['https://prefix.docker.*', 'prefix.docker.io'],
    ['https://*.docker.io/path', 'prefix.docker.io/path'],
    ['https://prefix.*.io/path', 'prefix.docker.io/path/subpath'],
    ['https://prefix.docker.*/path', 'prefix.docker.io/path'],
    ['https://*.docker.io:8888', 'prefix.docker.io:8888'],
    ['https://prefix.*.io:8888', 'prefix.docker.io:8888'],
    ['https://prefix.docker.*:8888', 'prefix.docker.io:8888'],
    ['https://*.docker.io/path:1111', 'prefix.docker.io/path:1111'],
    ['https://*.docker.io/v1/', 'prefix.docker.io/path:1111'],
    ['https://*.docker.io/v2/', 'prefix.docker.io/path:1111'],
    ['https://prefix.docker.*/path:1111', 'prefix.docker.io/path:1111'],
    ['prefix.docker.io:1111', 'prefix.docker.io:1111/path'],
    ['*.docker.io:1111', 'prefix.docker.io:1111/path'],
  ])('TestDockerKeyringForGlob: %s fits %s', (location, target) => {
    expect(usersOf({ [location]: 'foo' }, `${target}/foo/bar`)).toEqual(['foo'])
  })

  it.each([
    // id: keyring-misses
    ['https://hello.kubernetes.io', 'world.mesos.org/foo/bar'],
    ['https://*.docker.com', 'prefix.docker.io'],
    ['https://suffix.*.io', 'prefix.docker.io'],
    ['https://prefix.docker.c*', 'prefix.docker.io'],
    ['https://prefix.*.io/path:1111', 'prefix.docker.io/path/subpath:1111'],
    ['suffix.*.io', 'prefix.docker.io'],
    // TestKeyringMissWithDockerHubCredentials
    ['https://index.docker.io/v1/', 'world.mesos.org'],
  ])('TestKeyringMiss: %s does not fit %s', (location, target) => {
    expect(usersOf({ [location]: 'foo' }, `${target}/foo/bar`)).toEqual([])
  })

  // id: keyring-docker-hub
  it.each(['google/docker-registry', 'jenkins', 'docker.io/library/jenkins', 'docker.io/google/app'])(
    "TestKeyringHitWith…DockerHub: Docker Hub's fit %s",
    (image) => {
      expect(usersOf({ 'https://index.docker.io/v1/': 'foo' }, image)).toEqual(['foo'])
    },
  )

  it.each([
    // id: keyring-order
    ['bar.example.com', ['ada']],
    ['bar.example.com/pong', ['grace', 'ada']],
    ['bar.example.com/ping', ['ada']],
    ['bar.example.com/pongz', ['grace', 'ada']],
    ['bar.example.com/pong/pang', ['grace', 'ada']],
    ['example.com', []],
    ['foo.example.com', []],
  ])('TestDockerKeyringLookup: those of %s are %s', (image, users) => {
    const auths = { 'bar.example.com': 'ada', 'bar.example.com/pong': 'grace' }
    expect(usersOf(auths, image)).toEqual(users)
  })

  // id: keyring-api-version
  it.each(['quay.io', 'quay.io/foo', 'quay.io/foo/bar'])('TestIssue3797: %s', (image) => {
    expect(usersOf({ 'https://quay.io/v1/': 'rex' }, image)).toEqual(['rex'])
  })

  it('are those of the more specific entry first, whichever part has it', () => {
    const one = new Map([['a.io', { ...plain, username: 'wide' }]])
    const two = new Map([
      ['a.io', { ...plain, username: 'wide-2' }],
      ['a.io/team', { ...plain, username: 'team' }],
    ])
    const found = lookUpCredentials([{ config: one }, { config: two }], 'a.io/team/app')
    expect(found.map(({ credential }) => credential.username)).toEqual(['team', 'wide', 'wide-2'])
  })

  it.each([
    // id: default-registry
    ['foo/bar', true],
    ['docker.io/foo/bar', true],
    ['index.docker.io/foo/bar', true],
    ['foo', true],
    ['', false],
    ['/foo', false],
    ['registry.tld/foo/bar', false],
    ['registry:5000/foo/bar', false],
    ['myhostdocker.io/foo/bar', false],
  ])('TestIsDefaultRegistryMatch: %s %s', (image, expected) => {
    expect(isDefaultRegistry(image)).toBe(expected)
  })
})

describe('a credential', () => {
  it.each([
    [
      { username: 'ada', password: 'smash', email: 'ada@example.com' },
      '353258b53f5e9a57b059eab3f05312fc35bbeb874f08ce101e7bf0bf46977423',
    ],
    [
      { username: 'grace', password: 'squash', email: 'grace@example.com' },
      'f949b3837a1eb733a951b6aeda0b3327c09ec50c917de9ca35818e8fbf567e29',
    ],
  ])("has the kubelet's hash", (credential, hash) => {
    expect(credentialHash({ ...plain, ...credential })).toBe(hash)
  })

  it.each([
    [
      { username: 'u', password: 'p', email: 'e@x' },
      { username: 'u', password: 'p' },
    ],
    [{ username: '00000000', identityToken: 'long' }, { identityToken: 'long' }],
    [{ registryToken: 'bearer' }, { registryToken: 'bearer' }],
  ])('reaches the runtime as %s → %s', (credential, auth) => {
    expect(toAuthConfig({ ...plain, ...credential })).toEqual(auth)
  })
})

// pkg/credentialprovider/config_test.go, 1.36.
describe('a docker config', () => {
  it.each([
    // id: docker-config-entries
    ['a user and a password', { username: 'foo', password: 'bar' }, { username: 'foo', password: 'bar' }],
    ['auth', { auth: 'Zm9vOmJhcg==' }, { username: 'foo', password: 'bar' }],
    ['auth without a user', { auth: base64(':bar') }, { username: '', password: 'bar' }],
    ['auth without padding', { auth: 'Zm9vOmJhcg' }, { username: 'foo', password: 'bar' }],
    ['auth over a user', { username: 'x', password: 'y', auth: 'Zm9vOmJhcg==' }, { username: 'foo' }],
    ['a password with colons', { auth: base64('foo:b:a:r') }, { username: 'foo', password: 'b:a:r' }],
    ['an identity token', { identitytoken: 'abc' }, { identityToken: 'abc' }],
    ['a registry token', { registrytoken: 'abc' }, { registryToken: 'abc' }],
  ])('may have %s', (_, entry, expected) => {
    const reading = readDockerConfig(JSON.stringify({ auths: { 'a.io': entry } }), 'config.json')
    expect(reading.problems).toEqual([])
    expect(reading.config.get('a.io')).toMatchObject(expected)
    const older = readDockerConfig(JSON.stringify({ 'a.io': entry }), 'dockercfg')
    expect(older.config.get('a.io')).toMatchObject(expected)
  })

  it.each([
    ['no JSON', '{', ['it is not a JSON object']],
    ['null, as of no entries', 'null', []],
    ['a list', '[]', ['it is not a JSON object']],
    ['auths of another type', '{"auths":[]}', ['auths is not a JSON object']],
    [
      'an auth without a colon',
      JSON.stringify({ auths: { 'a.io': { auth: base64('secret') } } }),
      ['the entry of "a.io" has an auth that is not base64 of username:password'],
    ],
    [
      'an auth that is no base64',
      '{"auths":{"a.io":{"auth":"!!secret!!"}}}',
      ['the entry of "a.io" has an auth that is not base64 of username:password'],
    ],
    [
      'a password that is a number',
      '{"auths":{"a.io":{"username":"u","password":1234}}}',
      ['the entry of "a.io" has a password that is not text'],
    ],
    ['an entry that is text', '{"auths":{"a.io":"secret"}}', ['the entry of "a.io" is not a JSON object']],
  ])('with %s is told without a value of it', (_, text, problems) => {
    const reading = readDockerConfig(text, 'config.json')
    expect(reading.config.size).toBe(0)
    expect(reading.problems).toEqual(problems)
  })

  it('keeps its good entries where one is bad, and names helpers that are not run', () => {
    const auths = { 'a.io': { auth: '!' }, 'b.io': { username: 'b' } }
    const text = JSON.stringify({ auths, credsStore: 'pass', credHelpers: {} })
    const { config, problems } = readDockerConfig(text, 'config.json')
    expect([...config.keys()]).toEqual(['b.io'])
    expect(problems).toEqual([
      'credsStore is ignored: credential helpers of Docker are not run',
      'credHelpers is ignored: credential helpers of Docker are not run',
      'the entry of "a.io" has an auth that is not base64 of username:password',
    ])
  })
})

it('leaves out credentials that are there twice', () => {
  const of = (hash: string) => ({ credential: plain, hash, secret: undefined })
  const [one, other] = [of('1'), of('2')]
  expect(withoutRepeats([one, other, of('1'), of('2')])).toEqual([one, other])
})
