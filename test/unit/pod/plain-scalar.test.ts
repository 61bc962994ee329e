import { describe, expect, it } from 'vitest'
import type { Plain } from '../../../src/pod/decode/yaml.ts'
import { resolvePlain } from '../../../src/pod/decode/yaml.ts'

describe('resolvePlain', () => {
  it.each<[string, Plain]>([
    ['', null],
    ['~', null],
    ['Null', null],
    ['nULL', 'nULL'],
    ['yes', true],
    ['On', true],
    ['y', true],
    ['N', false],
    ['off', false],
    ['oN', 'oN'],
    ['0', 0],
    ['-0', 0],
    ['42', 42],
    ['+42', 42],
    ['-42', -42],
    ['0644', 420],
    ['-0644', -420],
    ['0o644', 420],
    ['0x1F', 31],
    ['0b101', 5],
    ['1_000', 1000],
    ['08', 8],
    ['1.5', 1.5],
    ['.5', 0.5],
    ['5.', 5],
    ['1e3', 1000],
    ['-1.5E-1', -0.15],
    ['1e999', '1e999'],
    ['.inf', '.inf'],
    ['.nan', '.nan'],
    ['12:30', '12:30'],
    ['2026-01-01', '2026-01-01'],
    ['1.2.3', '1.2.3'],
    ['0xZZ', '0xZZ'],
    ['-', '-'],
    ['+x', '+x'],
    ['500m', '500m'],
    ['busybox', 'busybox'],
  ])('%j is %j, as in go-yaml', (source, expected) => {
    expect(resolvePlain(source)).toBe(expected)
  })
})
