import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** An e2e test that calls `proves` (test/support/proves.ts). */
export interface SupportTest {
  /** `volumes` is test/e2e/volumes.test.ts. */
  readonly file: string
  /** Unique in its file. */
  readonly id: string
  /** `Type.field` of all that it proves. */
  readonly fields: readonly string[]
  /** From its `it` to the next one, without the call of `proves`. */
  readonly text: string
  /** What stands outside of all tests of the file: builders of manifests, constants. */
  readonly shared: string
}

const directory = join(import.meta.dirname, '../test/e2e')

/** Every e2e test that states which fields it proves, in the order of files and lines. */
export function listSupportTests(): readonly SupportTest[] {
  const files = readdirSync(directory).filter((name) => name.endsWith('.test.ts'))
  return files
    .toSorted()
    .flatMap((name) =>
      parseSupportTests(name.slice(0, -'.test.ts'.length), readFileSync(join(directory, name), 'utf8')),
    )
}

/** Throws on a call of `proves` that isn't one `it`'s own or whose arguments aren't literals. */
export function parseSupportTests(file: string, text: string): readonly SupportTest[] {
  const parts = text.split(/^(?=\s*(?:it|describe\w*)(?:\.\w+(?:\([^)]*\))?)*[(<])/mu)
  const isTest = (part: string): boolean => /^\s*it\b/u.test(part)
  const shared = parts.filter((part) => !isTest(part)).join('\n')
  return parts.flatMap((part) => {
    const calls = part.match(/\bproves\(/gu)?.length ?? 0
    if (calls === 0) return []
    const call = /\bproves\(\s*'([a-z0-9-]+)'((?:,\s*'\w+:(?: \w+)+')+),?\s*\)/u.exec(part)
    const [whole, id, fields] = call ?? []
    if (calls > 1 || !isTest(part) || whole === undefined || id === undefined || fields === undefined) {
      throw new Error(`${file}: a call of proves that can't be read: ${part.slice(0, 200)}`)
    }
    return [{ file, id, fields: parseFields(fields), text: part.replace(whole, ''), shared }]
  })
}

/** `'Volume: name hostPath'` is Volume.name and Volume.hostPath. */
function parseFields(text: string): readonly string[] {
  return [...text.matchAll(/(\w+): ([\w ]+)/gu)].flatMap(([, type = '', names = '']) =>
    names.split(' ').map((name) => `${type}.${name}`),
  )
}
