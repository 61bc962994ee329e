import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isJsonObject } from '../../../src/base/json.ts'
import { decodeDocuments } from '../../../src/pod/decode/decode-documents.ts'
import { messagesOf } from './golden-messages.ts'

/*
 * Manifests and the CRI requests that they become, whole: test/fixtures/golden/NAME.yaml and NAME.json
 * (docs/TESTING.md). After a change that is meant, `npx vitest run --project unit golden --update` writes the
 * latter again, for review.
 */

const directory = join(import.meta.dirname, '../../fixtures/golden')
const files = readdirSync(directory)
const names = files.filter((name) => name.endsWith('.yaml')).map((name) => name.replace('.yaml', ''))

/** Bytes as the text they are. */
function readable(_: string, value: unknown): unknown {
  const bytes = isJsonObject(value) && value['type'] === 'Buffer' ? value['data'] : undefined
  return Array.isArray(bytes) ? Buffer.from(bytes).toString() : value
}

describe('golden messages', () => {
  it.each(names)('of %s.yaml', async (name) => {
    const path = `${name}.yaml`
    const { documents, problems } = await decodeDocuments(readFileSync(join(directory, path)), { path })
    expect(problems).toEqual([])
    await expect(`${JSON.stringify(messagesOf(documents), readable, 2)}\n`).toMatchFileSnapshot(
      join(directory, `${name}.json`),
    )
  })

  it('stand beside their manifests, and there is no other file', () => {
    expect(files.toSorted()).toEqual(names.flatMap((name) => [`${name}.json`, `${name}.yaml`]).toSorted())
  })
})
