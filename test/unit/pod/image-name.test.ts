import { describe, expect, it } from 'vitest'
import { normalizeImageName, parseImageName } from '../../../src/pod/values/image-name.ts'

const sha = `sha256:${'a1'.repeat(32)}`

describe('parseImageName', () => {
  it.each([
    ['busybox', 'docker.io/library/busybox:latest'],
    ['busybox:1.36', 'docker.io/library/busybox:1.36'],
    ['docker.io/busybox', 'docker.io/library/busybox:latest'],
    ['index.docker.io/busybox', 'docker.io/library/busybox:latest'],
    ['me/app', 'docker.io/me/app:latest'],
    ['localhost/app', 'localhost/app:latest'],
    ['localhost:5000/app:v1', 'localhost:5000/app:v1'],
    ['registry.example/a/b/c', 'registry.example/a/b/c:latest'],
    ['[::1]:5000/app', '[::1]:5000/app:latest'],
    [`busybox@${sha}`, `docker.io/library/busybox@${sha}`],
    [`busybox:1.36@${sha}`, `docker.io/library/busybox@${sha}`],
    ['host.name:80/x:y', 'host.name:80/x:y'],
    ['a__b/c-d.e', 'docker.io/a__b/c-d.e:latest'],
    [`r.io/${'a'.repeat(250)}`, `r.io/${'a'.repeat(250)}:latest`],
  ])('%s is %s', (text, normalized) => {
    expect(parseImageName(text)?.normalized).toBe(normalized)
  })

  it.each([
    '',
    'Busybox',
    'busybox:',
    'busybox:a b',
    'a//b',
    '/a',
    'a/',
    'busybox@sha256:12',
    'a___b',
    '-a',
    '@sha256:12',
    ':1',
    `r.io/${'a'.repeat(251)}`,
    'https://registry.example/a',
    'f'.repeat(64).replaceAll('f', 'e'),
    `registry.example/${'a'.repeat(250)}`,
  ])('refuses %j', (text) => {
    expect(parseImageName(text)).toBeUndefined()
    expect(normalizeImageName(text)).toBe(text)
  })

  it('takes a name apart', () => {
    expect(parseImageName(`registry.example:5000/team/app:v2@${sha}`)).toEqual({
      registry: 'registry.example:5000',
      repository: 'team/app',
      tag: 'v2',
      digest: sha,
      normalized: `registry.example:5000/team/app@${sha}`,
    })
  })
})
