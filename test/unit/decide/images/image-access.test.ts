import { describe, expect, it } from 'vitest'
import type { PullCredential } from '../../../../src/decide/images/keyring.ts'
import {
  mergeImported,
  mergePulledRecord,
  verifyImageAccess,
} from '../../../../src/decide/images/pulled-record.ts'
import type {
  PullAccess,
  PulledRecord,
  UsedCredential,
  VerificationPolicy,
} from '../../../../src/decide/images/pulled-record.ts'
import {
  imagePatternProblem,
  isImageListed,
  trimTagAndDigest,
} from '../../../../src/pod/values/image-name.ts'

const digest = 'sha256:38a8906435c4dd5f4258899d46621bfd8eea3ad6ff494ee3c2f17ef0321625bd'

function secret(name: string, hash: string, namespace = 'default') {
  return { source: 'file', namespace, name, hash }
}

function credential(name: string, hash: string): PullCredential {
  return {
    credential: { username: 'u', password: 'p', email: '', identityToken: '', registryToken: '' },
    hash,
    secret: { source: 'file', namespace: 'default', name },
  }
}

const nodeCredential: PullCredential = { ...credential('', 'hash-node'), secret: undefined }

function recordOf(access: Readonly<Record<string, PullAccess>>): PulledRecord {
  return { imageRef: 'sha256:1', updatedAtMs: 1000, access }
}

const withSecrets: PullAccess = { allPods: false, secrets: [secret('a', 'hash-a')] }
const forAll: PullAccess = { allPods: true, secrets: [] }

// pkg/kubelet/images/pullmanager/image_pull_manager_test.go (TestFileBasedImagePullManager_MustAttemptImagePull), 1.36.
describe('an image that is on the machine', () => {
  const image = 'registry.io/team/app:1'
  const name = 'registry.io/team/app'
  const verify = (
    record: PulledRecord | undefined,
    credentials: readonly PullCredential[],
    policy: VerificationPolicy = 'NeverVerifyPreloadedImages',
    maybePulled = true,
  ) => verifyImageAccess({ policy, allowlist: [name] }, image, { maybePulled, record }, credentials)

  it.each<[string, PulledRecord | undefined, readonly PullCredential[], string]>([
    // id: verifies-access
    ['without a record of how it was pulled', undefined, [credential('a', 'hash-a')], 'must-pull'],
    ['with a record of no name', recordOf({}), [credential('a', 'hash-a')], 'must-pull'],
    [
      'with a record of another name',
      recordOf({ 'registry.io/team/other': forAll }),
      [credential('a', 'hash-a')],
      'must-pull',
    ],
    ['pulled without credentials', recordOf({ [name]: forAll }), [], 'allowed'],
    ['pulled with a Secret, for a pod with none', recordOf({ [name]: withSecrets }), [], 'must-pull'],
    [
      'pulled with a Secret, for a pod with that Secret',
      recordOf({ [name]: withSecrets }),
      [credential('b', 'hash-b'), credential('a', 'hash-a')],
      'allowed',
    ],
    [
      'pulled with a Secret, for a pod with another one',
      recordOf({ [name]: withSecrets }),
      [credential('b', 'hash-b')],
      'must-pull',
    ],
    [
      "pulled with a Secret, for a pod with nothing but the node's credentials",
      recordOf({ [name]: withSecrets }),
      [nodeCredential],
      'must-pull',
    ],
    ['with a record of no Secret', recordOf({ [name]: { allPods: false, secrets: [] } }), [], 'must-pull'],
  ])('%s', (_, record, credentials, kind) => {
    expect(verify(record, credentials).kind).toBe(kind)
  })

  it.each([
    // id: remembers-credentials
    ['the same credentials in another Secret', credential('b', 'hash-a'), secret('b', 'hash-a')],
    ['other credentials in the same Secret', credential('a', 'hash-new'), secret('a', 'hash-new')],
  ])('may be used with %s, which is remembered', (_, own, remember) => {
    expect(verify(recordOf({ [name]: withSecrets }), [own])).toEqual({ kind: 'allowed', remember })
  })

  it.each<[VerificationPolicy, string]>([
    ['NeverVerifyPreloadedImages', 'allowed'],
    ['AlwaysVerify', 'must-pull'],
  ])('that was imported, and pulled under another name, is %s: %s', (policy, kind) => {
    const record = recordOf({ 'registry.io/private/app': withSecrets })
    expect(verify(record, [], policy, false).kind).toBe(kind)
  })

  it.each<[VerificationPolicy, string]>([
    ['NeverVerifyPreloadedImages', 'allowed'],
    ['AlwaysVerify', 'must-pull'],
  ])('that was imported, and whose pull has not ended, is %s: %s', (policy, kind) => {
    const record = { ...recordOf({}), imported: [name] }
    expect(verify(record, [], policy, true).kind).toBe(kind)
    expect(verify({ ...record, imported: ['registry.io/other'] }, [], policy, true).kind).toBe('must-pull')
  })

  it('may not be used with a Secret of the same name from another source', () => {
    const own = credential('a', 'hash-b')
    const other = { ...own, secret: { source: 'http', namespace: 'default', name: 'a' } }
    expect(verify(recordOf({ [name]: withSecrets }), [other]).kind).toBe('must-pull')
  })

  it.each<[VerificationPolicy, boolean, string]>([
    // id: verification-policies
    ['NeverVerify', true, 'allowed'],
    ['NeverVerify', false, 'allowed'],
    ['NeverVerifyPreloadedImages', true, 'must-pull'],
    ['NeverVerifyPreloadedImages', false, 'allowed'],
    ['NeverVerifyAllowlistedImages', true, 'allowed'],
    ['AlwaysVerify', true, 'must-pull'],
    ['AlwaysVerify', false, 'must-pull'],
  ])('under %s, pulled: %s, is %s', (policy, pulled, kind) => {
    expect(verify(pulled ? recordOf({}) : undefined, [], policy, pulled).kind).toBe(kind)
  })

  it('is verified under NeverVerifyAllowlistedImages where it is not listed, preloaded or not', () => {
    const rules = { policy: 'NeverVerifyAllowlistedImages', allowlist: ['registry.io/other/*'] } as const
    for (const maybePulled of [true, false])
      expect(verifyImageAccess(rules, image, { maybePulled, record: undefined }, []).kind).toBe('must-pull')
  })
})

// Test_pulledRecordMergeNewCreds, 1.36.
describe('the record of a pulled image', () => {
  const before = recordOf({
    one: { allPods: false, secrets: [secret('name1', 'hash1', 'ns1')] },
    two: { allPods: false, secrets: [secret('name1', 'hash1', 'ns1'), secret('name2', 'hash2', 'ns2')] },
    all: forAll,
  })
  const merge = (name: string, used: UsedCredential) =>
    mergePulledRecord(before, { imageRef: 'sha256:1', name, used }, 2000)

  it.each<[string, string, 'none' | ReturnType<typeof secret>, PullAccess]>([
    [
      'create a new image record',
      'new',
      secret('new', 'h'),
      { allPods: false, secrets: [secret('new', 'h')] },
    ],
    [
      'merge with an existing image secret',
      'one',
      secret('new', 'h', 'ns0'),
      { allPods: false, secrets: [secret('new', 'h', 'ns0'), secret('name1', 'hash1', 'ns1')] },
    ],
    [
      'merge with existing image record secrets',
      'two',
      secret('new', 'h', 'ns1'),
      {
        allPods: false,
        secrets: [
          secret('name1', 'hash1', 'ns1'),
          secret('new', 'h', 'ns1'),
          secret('name2', 'hash2', 'ns2'),
        ],
      },
    ],
    // id: pulled-record-merge
    ['node-accessible overrides all secrets', 'two', 'none', forAll],
    [
      'new creds have the same secret coordinates but a different hash',
      'two',
      secret('name2', 'new', 'ns2'),
      { allPods: false, secrets: [secret('name1', 'hash1', 'ns1'), secret('name2', 'new', 'ns2')] },
    ],
    [
      'new creds have the same hash but a different coordinates',
      'two',
      secret('name3', 'hash2', 'ns2'),
      {
        allPods: false,
        secrets: [
          secret('name1', 'hash1', 'ns1'),
          secret('name2', 'hash2', 'ns2'),
          secret('name3', 'hash2', 'ns2'),
        ],
      },
    ],
  ])('%s', (_, name, used, access) => {
    const after = merge(name, used)
    expect(after.access[name]).toEqual(access)
    expect(after.updatedAtMs).toBe(2000)
    expect({ ...after.access, [name]: undefined }).toEqual({ ...before.access, [name]: undefined })
  })

  it.each<[string, string, UsedCredential]>([
    // id: pulled-record-kept
    ['no update when image already marked as node-accessible with secrets', 'all', secret('any', 'any')],
    ['no update when the Secret is in it', 'two', secret('name2', 'hash2', 'ns2')],
    ['nil credentials should not update', 'one', undefined],
  ])('%s', (_, name, used) => {
    expect(merge(name, used)).toBe(before)
  })

  it('exists from the first pull on, also where it is not known with what', () => {
    const after = mergePulledRecord(undefined, { imageRef: 'sha256:2', name: 'one', used: undefined }, 3000)
    expect(after).toEqual({
      imageRef: 'sha256:2',
      updatedAtMs: 3000,
      access: { one: { allPods: false, secrets: [] } },
    })
  })
})

describe('the record of an imported image', () => {
  const image = { imageRef: 'sha256:2', name: 'b' }

  it('lets all pods use what was pulled under that name, and leaves other names as they are', () => {
    const before = { ...recordOf({ a: withSecrets, b: withSecrets }), imported: ['c'] }
    expect(mergeImported(before, image, 2000)).toEqual({
      imageRef: 'sha256:2',
      updatedAtMs: 2000,
      access: { a: withSecrets },
      imported: ['b', 'c'],
    })
    expect(mergeImported(recordOf({ a: withSecrets }), image, 2000)).toMatchObject({ imported: ['b'] })
    const again = { ...before, imported: ['b'] }
    expect(mergeImported(again, image, 2000)).toMatchObject({ access: { a: withSecrets }, imported: ['b'] })
  })

  it('is a new one where there was none, and the same one where nothing changes', () => {
    const first = mergeImported(undefined, image, 2000)
    expect(first).toEqual({ imageRef: 'sha256:2', updatedAtMs: 2000, access: {}, imported: ['b'] })
    expect(mergeImported(first, image, 3000)).toBe(first)
  })
})

// pkg/kubelet/images/pullmanager/image_pull_policies_test.go, 1.36.
describe('a list of images', () => {
  const image = 'test.io/test/test-image:tag'
  it.each<[string, readonly string[], boolean]>([
    [image, ['test.io/test/image1', 'test.io/test/image2', 'test.io/test/image3'], false],
    [image, ['test.io/test/image1', 'test.io/test/test-image'], true],
    [image, ['test.io/test/image1', 'different.repo/test/*'], false],
    [image, ['test.io/test/image1', 'test.io/test/*'], true],
    // id: image-allowlist
    [image, ['test.io/*'], true],
    ['ubuntu', ['docker.io/library/ubuntu'], false],
    ['ubuntu', ['docker.io/library/*'], false],
    ['ubuntu', ['ubuntu'], true],
    ['ubuntu:tagged', ['ubuntu'], true],
    [`ubuntu@${digest}`, ['ubuntu'], true],
  ])('has %s in %s: %s', (name, patterns, expected) => {
    expect(patterns.map((pattern) => imagePatternProblem(pattern))).toEqual(patterns.map(() => undefined))
    expect(isImageListed(name, patterns)).toBe(expected)
  })

  it.each([
    'image.repo/pokus*/imagename',
    'image.repo/pokus*',
    'image.repo/*/imagename',
    '/*',
    'image.repo/',
    '',
    '*',
    'test.io/test/image1:tagged',
    `test.io/test/image1@${digest}`,
    'test.io/test/image1 ',
  ])('refuses %s', (pattern) => {
    expect(imagePatternProblem(pattern)).toMatch(/^must /u)
  })

  it.each<[string, string | undefined]>([
    // id: trims-tags
    ['myimage', 'myimage'],
    ['myimage:latest', 'myimage'],
    [`myimage@${digest}`, 'myimage'],
    [`myimage:v1@${digest}`, 'myimage'],
    ['registry.io:5000/myimage', 'registry.io:5000/myimage'],
    [`registry.io/myorg/myimage:v2@${digest}`, 'registry.io/myorg/myimage'],
    ['registry.io/a/b/c/myimage:latest', 'registry.io/a/b/c/myimage'],
    ['registry.io/myorg/', undefined],
    ['registry.io/myorg/:tag', undefined],
  ])('TestTrimImageTagDigest: %s is %s', (name, expected) => {
    expect(trimTagAndDigest(name)).toBe(expected)
  })
})
