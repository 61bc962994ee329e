import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { hasPodsIn, readCgroupChoice, saveCgroupChoice } from '../../../src/host/cgroups/layout.ts'

let root = ''
let path = ''

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'podd-cgroups-'))
  path = join(root, 'cgroups.json')
})

afterEach(() => rmSync(root, { recursive: true, force: true }))

it('gives back what was saved last, and leaves nothing beside it', () => {
  expect(readCgroupChoice(root)).toBeUndefined()
  saveCgroupChoice(root, { root: '/', driver: 'cgroupfs' })
  saveCgroupChoice(root, { root: '/podd', driver: 'systemd' })
  expect(readCgroupChoice(root)).toEqual({ root: '/podd', driver: 'systemd' })
  expect(readdirSync(root)).toEqual(['cgroups.json'])
})

it('does not write again what stands there', () => {
  saveCgroupChoice(root, { root: '/', driver: 'cgroupfs' })
  const before = statSync(path).ino
  saveCgroupChoice(root, { root: '/', driver: 'cgroupfs' })
  expect(statSync(path).ino).toBe(before)
})

it('reads what the first version wrote', () => {
  copyFileSync('test/fixtures/cgroups/v1/cgroups.json', path)
  expect(readCgroupChoice(root)).toEqual({ root: '/podd', driver: 'systemd' })
})

it.each([
  ['of a newer podd', '{"version":1000,"root":"/","driver":"runtime"}'],
  ['that is corrupt', '{"version":2,"ro'],
])('puts a file aside %s', (_, text) => {
  writeFileSync(path, text)
  expect(readCgroupChoice(root)).toBeUndefined()
  saveCgroupChoice(root, { root: '/', driver: 'cgroupfs' })
  expect(readFileSync(`${path}.unreadable`, 'utf8')).toBe(text)
  expect(readCgroupChoice(root)).toEqual({ root: '/', driver: 'cgroupfs' })
})

it('takes a file that it cannot read for no missing one', () => {
  mkdirSync(path)
  expect(() => readCgroupChoice(root)).toThrow('EISDIR')
})

it('looks for pods with cgroups where a pod was ever created, and reports what keeps it from looking', () => {
  const system = { version: 2, hierarchies: [] } as const
  const choice = { root: '/', driver: 'cgroupfs' } as const
  expect(hasPodsIn(choice, system, root)).toBe(false)
  writeFileSync(join(root, 'pods'), '')
  expect(() => hasPodsIn(choice, system, root)).toThrow('ENOTDIR')
})
