import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { UnreadableState } from '../../../src/store/state-report.ts'
import { versionedFiles } from '../../support/state-files.ts'
import type { StateFile } from '../../support/state-files.ts'
import { textFiles } from '../../support/text-state-files.ts'

/** Thousands of files are written and synced. */
const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

let root = ''

beforeEach(() => {
  root = mkdtempSync(join(memory, 'podd-state-'))
})

afterEach(() => rmSync(root, { recursive: true, force: true }))

/** Larger files are cut at each byte of both ends and at every seventh between them; `npm run soak` cuts at each. */
const wholeBytes = process.env['PODD_ALL_CUTS'] === undefined ? 600 : Number.POSITIVE_INFINITY
const endBytes = 150

function* cutsOf({ length }: Buffer): Generator<number> {
  for (let at = 0; at <= length; at += 1)
    if (length <= wholeBytes || at < endBytes || at > length - endBytes || at % 7 === 0) yield at
}

/** The text that podd writes, and what it reads back. */
async function writeOnce(file: StateFile): Promise<{ text: Buffer; content: string }> {
  await file.write(root)
  const text = readFileSync(join(root, file.path))
  return { text, content: JSON.stringify(await file.read(root, () => undefined)) }
}

/** Starts with these bytes in the file's place: what the start reads, and what it reports. */
async function startWith(
  file: StateFile,
  bytes: string | Uint8Array,
  temporary?: Uint8Array,
): Promise<{ content: string; reported: readonly UnreadableState[] }> {
  const path = join(root, file.path)
  rmSync(root, { recursive: true })
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
  if (temporary !== undefined) writeFileSync(join(dirname(path), `.${basename(path)}.0.tmp`), temporary)
  const reported: UnreadableState[] = []
  const content = JSON.stringify(await file.read(root, (state) => reported.push(state)))
  return { content, reported }
}

/** What is on disk of a file that could not be read, and what was reported: its path. */
function putAside(file: StateFile, { reported }: { reported: readonly UnreadableState[] }): unknown {
  const path = join(root, file.path)
  const aside = file.staysInPlace === true ? path : `${path}.unreadable`
  const told = file.isSilent === true ? [aside] : reported.map((state) => state.path)
  return {
    bytes: existsSync(aside) ? readFileSync(aside).toString('latin1') : undefined,
    told: told.join() === aside,
  }
}

const asideWith = (bytes: string | Uint8Array): unknown => ({
  bytes: Buffer.from(bytes).toString('latin1'),
  told: true,
})

describe.each(versionedFiles.map((file) => [file.path, file] as const))('%s', (_path, file) => {
  it('is read as it was, wherever a power cut ends the write of its next version', async () => {
    const { text, content } = await writeOnce(file)
    for (const length of cutsOf(text)) {
      const start = await startWith(file, text, text.subarray(0, length))
      expect(start, `after ${length} bytes`).toEqual({ content, reported: [] })
    }
  })

  it('is read or put aside, and reported, wherever a disk has lost its end', async () => {
    const { text, content } = await writeOnce(file)
    for (const length of cutsOf(text)) {
      if (length === text.length) break
      const zeros = Buffer.concat([text.subarray(0, length), Buffer.alloc(text.length - length)])
      for (const bytes of [text.subarray(0, length), zeros]) {
        const start = await startWith(file, bytes)
        const isRead = start.content === content && start.reported.length === 0
        const outcome = isRead ? asideWith(bytes) : putAside(file, start)
        expect(outcome, `after ${length} bytes`).toEqual(asideWith(bytes))
      }
    }
  })

  it('has a version: one of a newer podd is put aside for it, and fields that a newer podd added are no matter', async () => {
    const { text, content } = await writeOnce(file)
    const object: Record<string, unknown> = JSON.parse(text.toString('utf8'))
    expect(object['version']).toBeTypeOf('number')
    const grown = await startWith(file, JSON.stringify({ ...object, laterField: { deep: [1] } }))
    expect(JSON.parse(grown.content)).toMatchObject(JSON.parse(content))
    expect(grown.reported).toEqual([])
    const newer = JSON.stringify({ ...object, version: Number(object['version']) + 1 })
    const start = await startWith(file, newer)
    expect(start.content).not.toBe(content)
    expect(putAside(file, start)).toEqual(asideWith(newer))
  })
})

describe.each(textFiles.map((file) => [file.path, file] as const))('%s', (_path, file) => {
  it('is read as it was, wherever a power cut ends the write of its next version', async () => {
    const { text, content } = await writeOnce(file)
    for (const length of cutsOf(text)) {
      const start = await startWith(file, text, text.subarray(0, length))
      expect(start, `after ${length} bytes`).toEqual({ content, reported: [] })
    }
  })

  it('is read whole or not at all, wherever a disk has lost its end', async () => {
    const { text, content } = await writeOnce(file)
    const none = file.none === undefined ? content : JSON.stringify(file.none)
    for (const length of cutsOf(text)) {
      if (length === text.length) break
      const zeros = Buffer.concat([text.subarray(0, length), Buffer.alloc(text.length - length)])
      for (const bytes of [text.subarray(0, length), zeros]) {
        const start = await startWith(file, bytes)
        const isPutAside = file.isReplaced === true && start.content !== content
        const isKnown = [content, none].includes(start.content)
        const outcome = isPutAside ? putAside(file, start) : isKnown ? asideWith(bytes) : start.content
        expect(outcome, `after ${length} bytes`).toEqual(asideWith(bytes))
      }
    }
  })
})
