import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { fileSeconds, onEachContainerd, onEachInEveryRun } from '../lib/slow-suites.ts'

const root = join(import.meta.dirname, '../..')

it.each([...new Set([...Object.keys(fileSeconds), ...Object.keys(onEachContainerd)])])(
  '%s exists',
  (path) => {
    expect(existsSync(join(root, path))).toBe(true)
  },
)

it('what every run holds each containerd to is some of what the nightly one does', () => {
  expect(onEachInEveryRun.filter((path) => !(path in onEachContainerd))).toEqual([])
})

it('each file that runs on each containerd tells what it holds of it', () => {
  expect(Object.entries(onEachContainerd).filter(([, reason]) => reason.trim() === '')).toEqual([])
})

it('each containerd is held to the whole contract', () => {
  const contract = readdirSync(join(root, 'test/contract'), { recursive: true, encoding: 'utf8' })
  const files = contract.filter((name) => name.endsWith('.test.ts')).map((name) => `test/contract/${name}`)
  expect(files.filter((path) => !(path in onEachContainerd))).toEqual([])
})

/** What asks which version it runs on expects something else of each. */
it('what depends on the version of containerd runs on each', () => {
  const files = ['e2e', 'fault'].flatMap((suite) =>
    readdirSync(join(root, 'test', suite)).map((name) => `test/${suite}/${name}`),
  )
  const asks = (path: string): boolean =>
    /install\.(?:release|version)\b(?!\})/u.test(readFileSync(join(root, path), 'utf8'))
  expect(files.filter((path) => asks(path) && !(path in onEachContainerd))).toEqual([])
})
