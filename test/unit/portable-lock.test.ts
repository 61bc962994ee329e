import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { portableLock } from '../../packaging/portable-lock.ts'
import type { Lock } from '../../packaging/portable-lock.ts'

test('package-lock.json serves every npm and Node (else: node packaging/portable-lock.ts)', () => {
  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock
  expect(portableLock(lock)).toEqual(lock)
})

test('adds a package that the registry has not, beside another version of it', () => {
  const lock: Lock = {
    packages: {
      'node_modules/tool': {
        version: '2.0.0',
        dev: true,
        optionalDependencies: { '@tool/darwin-x64': '2.0.0' },
      },
      'node_modules/@tool/darwin-x64': { version: '1.0.0', optional: true },
    },
  }
  expect(portableLock(lock).packages['node_modules/tool/node_modules/@tool/darwin-x64']).toEqual({
    version: '2.0.0',
    dev: true,
    optional: true,
    os: ['darwin'],
    cpu: ['x64'],
  })
})

test('lets optional packages run on any Node, and no others', () => {
  const lock: Lock = {
    packages: {
      'node_modules/a': { version: '1.0.0', optional: true, engines: { node: '>=22' } },
      'node_modules/b': { version: '1.0.0', engines: { node: '>=22' } },
    },
  }
  expect(portableLock(lock).packages).toEqual({
    'node_modules/a': { version: '1.0.0', optional: true },
    'node_modules/b': { version: '1.0.0', engines: { node: '>=22' } },
  })
})
