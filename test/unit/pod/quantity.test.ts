import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  quantityMilliValue,
  quantityValue,
  writtenQuantity,
} from '../../../src/pod/values/quantity.ts'

describe('canonicalQuantity', () => {
  it.each([
    ['0', '0'],
    ['0Mi', '0'],
    ['-0', '0'],
    ['100m', '100m'],
    ['0.1', '100m'],
    ['.5', '500m'],
    ['1.', '1'],
    ['+2', '2'],
    ['-3k', '-3k'],
    ['1000m', '1'],
    ['1500m', '1500m'],
    ['1000', '1k'],
    ['1024', '1024'],
    ['1024Ki', '1Mi'],
    ['1023Ki', '1023Ki'],
    ['1025Ki', '1025Ki'],
    ['0.5Gi', '512Mi'],
    ['0.5Ki', '512'],
    ['512.5Ki', '524800'],
    ['1.1Ki', '1126400m'],
    ['64Mi', '64Mi'],
    ['129e6', '129e6'],
    ['1e3', '1e3'],
    ['12e1', '120'],
    ['1E3', '1e3'],
    ['1E', '1E'],
    ['5u', '5u'],
    ['0.1n', '1n'],
    ['1e-12', '1e-9'],
    ['1Ei', '1Ei'],
    ['1000000E', '9223372036854775807'],
    ['0000123', '123'],
    ['.', '0'],
    ['1023Mi', '1023Mi'],
    ['-1Ki', '-1Ki'],
    ['-1024', '-1024'],
    ['9223372036854775807', '9223372036854775807'],
    ['9223372036854775808', '9223372036854775807'],
    ['1e1', '10'],
    ['1e60', '9223372036854775807'],
    ['1e9999', '9223372036854775807'],
    ['1e-9999', '1e-9'],
    ['0e9999', '0'],
    [`${'0'.repeat(399)}7`, '7'],
  ])('%s is %s', (text, expected) => {
    expect(canonicalQuantity(text)).toBe(expected)
  })

  it.each([
    '',
    ' 1',
    '1 ',
    'Mi',
    '1Kib',
    '1K',
    '1mi',
    '1.2.3',
    '--1',
    '1e',
    '1ee3',
    '0x10',
    '1_000',
    'e3',
    '1MiB',
    '0'.repeat(401),
    `0.${'0'.repeat(400)}`,
  ])('refuses %j', (text) => {
    expect(canonicalQuantity(text)).toBeUndefined()
  })
})

describe('values', () => {
  it.each([
    ['1Gi', 1_073_741_824, 1_073_741_824_000],
    ['100m', 1, 100],
    ['1.5', 2, 1500],
    ['1u', 1, 1],
    ['-1.5', -2, -1500],
    ['0', 0, 0],
  ])('%s is %i whole units and %i thousandths, rounded up', (text, whole, milli) => {
    expect(quantityValue(text)).toBe(whole)
    expect(quantityMilliValue(text)).toBe(milli)
  })

  it.each([
    ['1', '1000m', 0],
    ['1Gi', '1G', 1],
    ['0.1', '0.2', -1],
  ] as const)('compares %s with %s', (a, b, expected) => {
    expect(compareQuantities(a, b)).toBe(expected)
    expect(compareQuantities(b, a)).toBe(expected === 0 ? 0 : -expected)
  })

  it.each([
    [' 1Gi ', '1Gi'],
    [1.5, '1.5'],
    ['1\n', '1\n'],
    ['\t1', '\t1'],
  ])('reads %j of a document as %j', (written, text) => {
    expect(writtenQuantity(written)).toBe(text)
  })

  it('adds in the format of the first', () => {
    expect(addQuantities('100m', '0.9')).toBe('1')
    expect(addQuantities('64Mi', '64Mi', '1')).toBe('134217729')
    expect(addQuantities()).toBe('0')
  })
})

describe('any quantity', () => {
  const number = fc
    .tuple(fc.constantFrom('', '-', '+'), fc.nat(1e9), fc.nat(1e6))
    .map(([s, a, b]) => `${s}${a}.${b}`)
  const suffix = fc.constantFrom('n', 'u', 'm', '', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'e3', 'e-2', 'E6')
  const text = fc.tuple(number, suffix).map(([value, unit]) => `${value}${unit}`)

  it('has a canonical form of the same value that stays as it is', () => {
    fc.assert(
      fc.property(text, (input) => {
        const canonical = canonicalQuantity(input)
        expect(canonical).toBeDefined()
        expect(parseQuantity(canonical!)?.nanos).toBe(parseQuantity(input)?.nanos)
        // A fraction of a binary unit is written without a suffix, and so is read as a decimal number from then on.
        const again = canonicalQuantity(canonical!)
        const isBinaryFraction = /\.\d*[KMGTPE]i$/u.test(input)
        expect(isBinaryFraction || again === canonical).toBe(true)
        expect(parseQuantity(again!)?.nanos).toBe(parseQuantity(input)?.nanos)
        expect(canonicalQuantity(again!)).toBe(again)
        expect(canonical).not.toContain('.')
      }),
    )
  })

  it('never throws, whatever the text', () => {
    fc.assert(
      fc.property(fc.string(), (input) => {
        const canonical = canonicalQuantity(input)
        expect(canonical === undefined || canonicalQuantity(canonical) === canonical).toBe(true)
      }),
    )
    expect(formatQuantity({ nanos: 1n, format: 'DecimalSI' })).toBe('1n')
  })
})
