import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { LedgerSection } from './kubelet-ledger.ts'
import { lifecycleCases } from './kubelet-cases-lifecycle.ts'
import { runtimeCases } from './kubelet-cases-runtime.ts'
import { lifecycleProofs } from './lifecycle-proofs.ts'
import { statusCases } from './kubelet-cases-status.ts'

const sections = [...runtimeCases, ...statusCases, ...lifecycleCases]
const testDirectory = join(import.meta.dirname, '../..')
const texts = new Map<string, string>()

function textOf(file: string): string {
  const path = join(testDirectory, file)
  const text = texts.get(file) ?? (existsSync(path) ? readFileSync(path, 'utf8') : '')
  texts.set(file, text)
  return text
}

/** Whether the file has a test of that title: the title stands in it as a string of its own. */
function hasTitle(file: string, title: string): boolean {
  const text = textOf(file)
  return ["'", '"', '`'].some((quote) => text.includes(`${quote}${title}${quote}`))
}

/** The answers of a section whose test there isn't, and those that give no reason. */
function unanswered({ file, cases }: LedgerSection): readonly string[] {
  return Object.entries(cases).flatMap(([name, answer]) => {
    if (typeof answer === 'string') return hasTitle(file, answer) ? [] : [`${name}: ${file}: ${answer}`]
    if ('none' in answer) return answer.none.trim() === '' ? [`${name}: no reason`] : []
    return hasTitle(answer.file, answer.title) ? [] : [`${name}: ${answer.file}: ${answer.title}`]
  })
}

describe('the kubelet’s own cases', () => {
  it.each(sections.map((section) => [section.test, section] as const))('%s', (_test, section) => {
    expect(unanswered(section)).toEqual([])
    expect(Object.keys(section.cases)).not.toEqual([])
  })

  it('are each told once', () => {
    const tests = sections.map(({ test }) => test)
    expect(new Set(tests).size).toBe(tests.length)
  })
})

describe('what podd promises of a pod’s life', () => {
  it.each(lifecycleProofs.map((section) => [section.test, section] as const))('%s', (_test, section) => {
    expect(unanswered(section)).toEqual([])
  })
})
