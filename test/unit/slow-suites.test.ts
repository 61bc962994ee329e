import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { longFiles, onOneContainerd } from '../lib/slow-suites.ts'

const root = join(import.meta.dirname, '../..')

it.each([...new Set([...longFiles, ...Object.keys(onOneContainerd)])])('%s exists', (path) => {
  expect(existsSync(join(root, path))).toBe(true)
})

it('each file that runs on one containerd alone has a reason', () => {
  expect(Object.entries(onOneContainerd).filter(([, reason]) => reason.trim() === '')).toEqual([])
})
