import { describe, expect, it } from 'vitest'
import type { LogTotal } from '../../../src/config/log-options.ts'
import { logOptions } from '../../../src/config/log-options.ts'

const { type } = logOptions.containerLogTotalMaxSize

describe('containerLogTotalMaxSize', () => {
  it.each<[string, LogTotal, string]>([
    ['10%', { percent: 10 }, '10%'],
    ['100%', { percent: 100 }, '100%'],
    ['2Gi', { bytes: 2 * 1024 ** 3 }, '2Gi'],
    ['1000', { bytes: 1000 }, '1000'],
    ['-1', undefined, '-1'],
  ])('reads %s', (text, value, shown) => {
    expect(type.fromText(text)).toEqual({ kind: 'ok', value })
    expect(type.fromFile(text)).toEqual({ kind: 'ok', value })
    expect(type.format(value)).toBe(shown)
  })

  it.each([
    ['0', 'must not be 0'],
    ['0%', 'must be from 1% to 100%'],
    ['101%', 'must be from 1% to 100%'],
    ['much', 'must be a size such as 2Gi, or a part of the disk such as 10%'],
    ['', 'must be a size such as 2Gi, or a part of the disk such as 10%'],
  ])('refuses %j', (text, message) => {
    expect(type.fromText(text)).toEqual({ kind: 'bad', message })
  })

  it('refuses what is no text and no number', () => {
    expect(type.fromFile(true).kind).toBe('bad')
    expect(type.fromFile(2048)).toEqual({ kind: 'ok', value: { bytes: 2048 } })
  })
})
