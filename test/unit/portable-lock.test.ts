import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { portableLock } from '../../packaging/portable-lock.ts'
import type { Lock } from '../../packaging/portable-lock.ts'

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock
const entries = Object.entries(lock.packages).filter(([path]) => path !== '')

test('package-lock.json serves every Node (else: node packaging/portable-lock.ts)', () => {
  expect(portableLock(lock)).toEqual(lock)
})

test('package-lock.json says what each package has to be, and not where it is fetched', () => {
  const wrong = entries.filter(
    ([, { integrity = '', resolved }]) => !integrity.startsWith('sha512-') || resolved !== undefined,
  )
  expect(wrong.map(([path]) => path)).toEqual([])
})

test('package-lock.json has the packages of every platform', () => {
  const missing = Object.entries(lock.packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter((name) => !isFound(path, name)),
  )
  expect(missing).toEqual([])
})

/** Whether Node would find `name` from the package at `path`. */
function isFound(path: string, name: string): boolean {
  const place = `${path === '' ? '' : `${path}/`}node_modules/${name}`
  if (place in lock.packages) return true
  return path !== '' && isFound(path.slice(0, Math.max(0, path.lastIndexOf('node_modules/') - 1)), name)
}

test('lets optional packages run on any Node, and no others', () => {
  const two: Lock = {
    packages: {
      'node_modules/a': { integrity: 'x', optional: true, engines: { node: '>=22' } },
      'node_modules/b': { integrity: 'y', engines: { node: '>=22' } },
    },
  }
  expect(portableLock(two).packages).toEqual({
    'node_modules/a': { integrity: 'x', optional: true },
    'node_modules/b': { integrity: 'y', engines: { node: '>=22' } },
  })
})
