import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { findLinks } from '../../../src/sources/watch/find-links.ts'

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
  ['v1/pods', [], 'v1/pods'],
  ['current/pods', ['current'], 'v1/pods'],
  ['pods', ['pods', 'current'], 'v1/pods'],
  ['current/up/x.yaml', ['current', 'v1/up', 'pods', 'current'], 'v1/pods/x.yaml'],
  ['dangling/below', ['dangling'], 'gone/below'],
  ['missing', [], 'missing'],
])('%s leads through %j to %s', (path, links, end) => {
  expect(findLinks(join(top, path))).toEqual({
    links: links.map((link) => join(top, link)),
    end: join(top, end),
  })
})

it('ends for a link that leads to itself', () => {
  expect(findLinks(join(top, 'loop')).links.length).toBe(40)
})
