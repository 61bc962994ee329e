import { describe, expect, it } from 'vitest'
import { DecodeUnavailable } from '../../../src/sources/decode-source.ts'
import {
  computeSettleWait,
  holdsRemovals,
  isBraced,
  readFailure,
} from '../../../src/sources/directory/pending-files.ts'
import type { FileFacts } from '../../../src/sources/directory/pending-files.ts'
import { isManifestName } from '../../../src/sources/read-manifest-file.ts'

const fine = {
  hasErrors: false,
  isUnverified: false,
  endsCleanly: true,
  isBraced: false,
  givesLess: false,
  dropsObjects: false,
}
const json = { ...fine, isBraced: true }
const written: FileFacts = {
  sizeBytes: 100,
  isWrittenInPlace: true,
  isNew: false,
  quietMs: 0,
  directoryQuietMs: 0,
}
const fresh = { ...written, isNew: true }
const moved = { ...written, isWrittenInPlace: false }

describe('computeSettleWait', () => {
  it.each<[string, FileFacts, number]>([
    ['a renamed file is whole at once', { ...written, isWrittenInPlace: false }, 0],
    ['whatever it holds', { ...written, isWrittenInPlace: false, content: { ...fine, hasErrors: true } }, 0],
    ['but one without a signature waits for it', { ...moved, content: { ...fine, isUnverified: true } }, 400],
    ['but an empty one isn’t believed', { ...written, sizeBytes: 0, isWrittenInPlace: false }, 400],
    ['a written file waits to be quiet', written, 5],
    ['as long as it isn’t', { ...written, quietMs: 4 }, 1],
    ['and no longer', { ...written, quietMs: 10, content: fine }, 0],
    ['errors look half-written', { ...written, quietMs: 10, content: { ...fine, hasErrors: true } }, 390],
    [
      'so does the middle of a line',
      { ...written, quietMs: 10, content: { ...fine, endsCleanly: false } },
      390,
    ],
    ['so does less than before', { ...written, quietMs: 10, content: { ...fine, givesLess: true } }, 390],
    ['a new one waits as well', { ...fresh, content: fine }, 5],
    ['but for JSON, no part of which parses', { ...fresh, sizeBytes: 4096, content: json }, 0],
    ['as long as it does', { ...fresh, content: { ...json, hasErrors: true } }, 400],
    ['and moves nothing', { ...fresh, content: { ...json, dropsObjects: true } }, 250],
    ['JSON over an earlier version waits', { ...written, content: json }, 5],
    ['so does the end of a page', { ...written, sizeBytes: 8192, quietMs: 10, content: fine }, 390],
    ['a renamed file that drops objects waits', { ...moved, content: { ...fine, dropsObjects: true } }, 250],
    [
      'until the directory is quiet',
      { ...moved, directoryQuietMs: 250, content: { ...fine, dropsObjects: true } },
      0,
    ],
    ['as does a written one', { ...written, quietMs: 10, content: { ...fine, dropsObjects: true } }, 250],
    [
      'until the longer wait is over',
      { ...written, quietMs: 1000, content: { ...fine, hasErrors: true } },
      0,
    ],
  ])('%s', (_what, facts, expected) => {
    expect(computeSettleWait(facts)).toBe(expected)
  })
})

describe('isBraced', () => {
  it.each([
    ['{"kind": "Pod"}', true],
    ['\n {}\r\n', true],
    ['{}\n---\n{}\n', true],
    ['{"kind": "Pod"', false],
    ['kind: Pod\nspec: {}', false],
    ['[{}]', false],
    ['', false],
    [' \n', false],
  ])('%j', (text, expected) => {
    expect(isBraced(Buffer.from(text))).toBe(expected)
  })
})

describe('isManifestName', () => {
  it.each([
    ['web.yaml', true],
    ['web.yml', true],
    ['web.json', true],
    ['web.v2.yaml', true],
    ['web.YAML', true],
    ['web.Yml', true],
    ['web.manifest', false],
    ['web.yaml~', false],
    ['web.yaml.bak', false],
    ['web.yaml.tmp', false],
    ['web.yaml.swp', false],
    ['.web.yaml', false],
    ['.web.yaml.swp', false],
    ['#web.yaml#', false],
    ['#web.yaml', false],
    ['~web.yaml', false],
    ['4913', false],
    ['.yaml', false],
    ['yaml', false],
  ])('%s: %s', (name, expected) => {
    expect(isManifestName(name)).toBe(expected)
  })
})

const systemError = (code: string): Error =>
  Object.assign(new Error(`${code}: said so`), { code, syscall: 'open' })

describe('a failure to read a file', () => {
  it.each([
    [systemError('EMFILE'), 'cannot be read: EMFILE', true],
    [systemError('EIO'), 'cannot be read: EIO', true],
    [systemError('EACCES'), 'cannot be read: EACCES', false],
    [systemError('ENOTDIR'), 'cannot be read: ENOTDIR', false],
    [new DecodeUnavailable('EAGAIN'), 'cannot be decoded for now: EAGAIN', true],
    [new Error('a fault'), 'cannot be read: a fault', false],
  ])('%s is told, and may pass or not', (error, reason, mayPass) => {
    expect(readFailure(error, undefined, 5000)).toEqual({
      reason,
      mayPass,
      delayMs: 1000,
      sinceMs: 5000,
      retryAtMs: 6000,
    })
  })

  it('holds removals up for five minutes, where it may pass', () => {
    const first = readFailure(systemError('EMFILE'), undefined, 5000)
    const later = readFailure(systemError('EMFILE'), first, 200_000)
    expect([first, later].map(({ sinceMs }) => sinceMs)).toEqual([5000, 5000])
    expect(holdsRemovals(later, 304_999)).toBe(true)
    expect(holdsRemovals(later, 305_000)).toBe(false)
    expect(holdsRemovals(readFailure(systemError('EACCES'), undefined, 5000), 5001)).toBe(false)
    expect(holdsRemovals(undefined, 0)).toBe(false)
  })

  it('is tried again after ever longer waits, half a minute at most', () => {
    const delays: number[] = []
    let failure: ReturnType<typeof readFailure> | undefined
    for (let attempt = 0; attempt < 7; attempt += 1) {
      failure = readFailure(systemError('EIO'), failure, 0)
      delays.push(failure.delayMs)
    }
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  })
})
