import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { documentedErrorCodes, errorsDoc } from '../../tools/errors-doc.ts'
import { optionsDoc } from '../../tools/options-doc.ts'
import { statusPageSvg } from '../../tools/status-page-svg.ts'
import { terminalSvg } from '../../tools/terminal-svg.ts'
import { errorCodes } from '../../src/base/errors.ts'
import { poddVersion } from '../../src/api/resource.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The codes that stand in the code: the first argument of an error, or a member of a union of codes. */
function codesInSource(): readonly string[] {
  const codes = new Set<string>()
  for (const path of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.ts')) continue
    const text = read(join('src', path))
    for (const [, code] of text.matchAll(/(?:Error|super)\(\s*'([A-Z][A-Z0-9_]+)'/gu)) codes.add(code ?? '')
    const union = /type \w+ErrorCode =((?:\s*(?:\/\*\*[^*]*\*\/)?\s*\|\s*'[A-Z_]+')+)/u.exec(text)?.[1] ?? ''
    for (const [, code] of union.matchAll(/'([A-Z_]+)'/gu)) codes.add(code ?? '')
  }
  return [...codes].sort()
}

describe('docs', () => {
  it('tell the options as the table has them', () => {
    expect(read('docs/OPTIONS.md'), 'run `npm run generate`').toBe(optionsDoc())
  })

  it('tell the errors as they were generated', () => {
    expect(read('docs/ERRORS.md'), 'run `npm run generate`').toBe(errorsDoc())
  })

  it('show the terminal as it was recorded', () => {
    expect(read('docs/terminal.svg'), 'run `npm run generate`').toBe(terminalSvg(read('docs/terminal.txt')))
  })

  it('show the status page as src/page draws it', async () => {
    expect(read('docs/status-page.svg'), 'run `npm run generate`').toBe(await statusPageSvg())
  })

  it('tell every error code that there is, once, and no other', () => {
    expect([...documentedErrorCodes()].sort(), 'see tools/errors-doc.ts').toEqual([...errorCodes].sort())
  })

  it('tell of no error code that nothing raises', () => {
    const documented = documentedErrorCodes().filter((code) => !code.startsWith('API_'))
    expect([...documented].sort(), 'see src/base/errors.ts').toEqual(codesInSource())
  })
})

describe('the version', () => {
  it('has its heading in the changelog and stands in the lock file', () => {
    expect(read('CHANGELOG.md')).toContain(`\n## [${poddVersion}] - `)
    expect(JSON.parse(read('package-lock.json'))).toMatchObject({
      version: poddVersion,
      packages: { '': { version: poddVersion } },
    })
  })
})
