/** Writes the documents that are made from tables in the code; `npm run generate` runs it, and tests hold them against it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseCoreFields } from './core-fields.ts'
import { errorsDoc } from './errors-doc.ts'
import { optionsDoc } from './options-doc.ts'
import { statusPageSvg } from './status-page-svg.ts'
import { supportDoc } from './support-doc.ts'
import { terminalSvg } from './terminal-svg.ts'
import { validationDoc } from './validation-doc.ts'

const root = join(import.meta.dirname, '..')
const core = parseCoreFields(readFileSync(join(root, 'test/fixtures/core-v1-fields.json'), 'utf8'))

writeFileSync(join(root, 'docs/ERRORS.md'), errorsDoc())
writeFileSync(join(root, 'docs/OPTIONS.md'), optionsDoc())
writeFileSync(join(root, 'docs/SUPPORT.md'), supportDoc(core))
writeFileSync(join(root, 'docs/VALIDATION.md'), validationDoc())
writeFileSync(
  join(root, 'docs/terminal.svg'),
  terminalSvg(readFileSync(join(root, 'docs/terminal.txt'), 'utf8')),
)
writeFileSync(join(root, 'docs/status-page.svg'), await statusPageSvg())
