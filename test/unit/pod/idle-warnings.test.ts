import { describe, expect, it } from 'vitest'
import { idleWarning, joinIdleWarnings, warningAt } from '../../../src/pod/objects/document.ts'

const names = (count: number) => Array.from({ length: count }, (_, at) => `Lease n${at}`)
const of = (path: string, ...idle: readonly string[]) => idleWarning({ path }, idle)

describe('the warning of documents without effect', () => {
  it('names eight of them, and counts the others', () => {
    expect(of('a', ...names(8)).message).toMatch(/: (?:Lease n\d, ){7}Lease n7$/u)
    expect(of('a', ...names(11)).message).toMatch(/Lease n7 and 3 more$/u)
  })

  it('is one for all texts of a source, at the place of the first', () => {
    const other = warningAt('b', 'something else')
    expect(joinIdleWarnings([other, of('a', 'x'), of('c', 'y'), other])).toEqual([
      other,
      of('a', 'x', 'y'),
      other,
    ])
  })

  it('stays as it is where there is one, or none', () => {
    for (const problems of [[], [warningAt('b', 'x')], [warningAt('b', 'x'), of('a', 'x')]])
      expect(joinIdleWarnings(problems)).toBe(problems)
  })
})
