import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { LedgerSection } from './kubelet-ledger.ts'
import { lifecycleCases } from './kubelet-cases-lifecycle.ts'
import { credentialCases } from './kubelet-cases-credentials.ts'
import { nodeCases } from './kubelet-cases-node.ts'
import { runtimeCases } from './kubelet-cases-runtime.ts'
import { lifecycleProofs } from './lifecycle-proofs.ts'
import { statusCases } from './kubelet-cases-status.ts'

const sections = [...runtimeCases, ...credentialCases, ...statusCases, ...lifecycleCases, ...nodeCases]
const testDirectory = join(import.meta.dirname, '../..')
const texts = new Map<string, string>()

function textOf(file: string): string {
  const path = join(testDirectory, file)
  const text = texts.get(file) ?? (existsSync(path) ? readFileSync(path, 'utf8') : '')
  texts.set(file, text)
  return text
}

/** The ids of a file's tests; one of a line counts where a string, the title, begins on the next line. */
function idsIn(text: string): readonly string[] {
  const marked = text.matchAll(/^ *\/\/ id: ([a-z0-9-]+)\n.*['"`]/gmu)
  return [...marked, ...text.matchAll(/\bproves\(\s*'([a-z0-9-]+)'/gu)].map(([, id = '']) => id)
}

function hasTest(file: string, id: string): boolean {
  return idsIn(textOf(file)).includes(id)
}

/** The answers of a section whose test there isn't, and those that give no reason. */
function unanswered({ file, cases }: LedgerSection): readonly string[] {
  return Object.entries(cases).flatMap(([name, answer]) => {
    if (typeof answer === 'string') return hasTest(file, answer) ? [] : [`${name}: ${file}: ${answer}`]
    if ('none' in answer) return answer.none.trim() === '' ? [`${name}: no reason`] : []
    return hasTest(answer.file, answer.id) ? [] : [`${name}: ${answer.file}: ${answer.id}`]
  })
}

describe('the kubelet’s own cases', () => {
  it.each(sections.map((section) => [section.test, section] as const))('%s', (_test, section) => {
    expect(unanswered(section)).toEqual([])
    expect(Object.keys(section.cases)).not.toEqual([])
  })

  it('name tests whose ids are unique in their file', () => {
    for (const section of sections) unanswered(section)
    const doubled = [...texts].flatMap(([file, text]) => {
      const ids = idsIn(text)
      return ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `${file}: ${id}`)
    })
    expect(texts.size).toBeGreaterThan(20)
    expect(doubled).toEqual([])
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
