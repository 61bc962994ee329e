import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { findLinks } from '../../../src/sources/watch-directory.ts'

let top = ''

beforeAll(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), 'podd-links-')))
  mkdirSync(join(top, 'v1/pods'), { recursive: true })
  symlinkSync('v1', join(top, 'current'))
  symlinkSync(join(top, 'current/pods'), join(top, 'pods'))
  symlinkSync('../pods', join(top, 'v1/up'))
  symlinkSync('gone', join(top, 'dangling'))
  symlinkSync('loop', join(top, 'loop'))
})

afterAll(() => rmSync(top, { recursive: true }))

it.each([
  ['v1/pods', []],
  ['current/pods', ['current']],
  ['pods', ['pods', 'current']],
  ['current/up/x.yaml', ['current', 'v1/up', 'pods', 'current']],
  ['dangling/below', ['dangling']],
  ['missing', []],
])('%s leads through %j', (path, links) => {
  expect(findLinks(join(top, path))).toEqual(links.map((link) => join(top, link)))
})

it('ends for a link that leads to itself', () => {
  expect(findLinks(join(top, 'loop')).length).toBe(40)
})
