import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SourceDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { applyChange, parseChanges, selectChange, createLastGoodStore } from '../../../src/store/last-good.ts'
import type { LastGoodStore } from '../../../src/store/last-good.ts'
import { seededRandom } from '../../support/seeded-random.ts'

it('the change from one list to another makes the one the other', () => {
  const random = seededRandom(18)
  const draw = (): string[] =>
    Array.from({ length: Math.floor(random() * 7) }, () => `d${Math.floor(random() * 8)}`)
  for (let round = 0; round < 2000; round += 1) {
    const [before, after] = [draw(), draw()]
    const change = selectChange(before, after)
    expect(applyChange(before, change)).toEqual(after)
    expect(applyChange(before, selectChange(before, before))).toEqual(before)
  }
})

it.each([
  ['no line', [''], []],
  ['one that was cut off', ['{"at":1,"remove":0,"doc'], []],
  [
    'one, and the start of another',
    ['{"at":1,"remove":0,"documents":[]}', '{"a'],
    [{ at: 1, remove: 0, documents: [] }],
  ],
  ['a broken one before another', ['{"at', '{"at":1,"remove":0,"documents":[]}', ''], undefined],
  ['another object', ['{"at":1}', ''], undefined],
])('of %s', (_what, lines, changes) => {
  expect(parseChanges(lines)).toEqual(changes)
})

describe('a large copy', () => {
  let directory = ''
  let store: LastGoodStore
  const path = (): string => join(directory, 'file.json')

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'podd-last-good-'))
    store = createLastGoodStore(directory)
  })

  afterEach(() => rm(directory, { recursive: true, force: true }))

  const document = (name: string, value = 'x'.repeat(1000)): SourceDocument => {
    const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { value } }
    return { object: objectFromManifest(manifest), manifest, place: { path: `/etc/pods/${name}.yaml` } }
  }
  const many = Array.from({ length: 100 }, (_, at) => document(`c${at}`))
  const save = (documents: readonly SourceDocument[]): Promise<void> =>
    store.save('file', '/etc/pods', documents)
  /** As the next start reads it. */
  const load = async (): Promise<readonly SourceDocument[] | undefined> =>
    (await createLastGoodStore(directory).load('file', '/etc/pods'))?.documents

  it('gets a line for a change, and is read with it', async () => {
    await save(many)
    const before = await readFile(path(), 'utf8')
    const sets = [
      many.with(7, document('c7', 'new')),
      many.slice(1),
      [...many.slice(1), document('last')],
      [],
      many.slice(0, 3),
    ]
    for (const set of sets) {
      await save(set)
      expect(await load()).toEqual(set)
    }
    const text = await readFile(path(), 'utf8')
    expect(text.startsWith(before)).toBe(true)
    expect(text.split('\n')).toHaveLength(1 + sets.length + 1)
  })

  it('is as it was before or after a change, wherever a power cut ends the write of that', async () => {
    const large = Array.from({ length: 7 }, (_, at) => document(`c${at}`, 'x'.repeat(10_000)))
    const after = large.with(3, document('c3', 'new'))
    await save(large)
    const { length: start } = await readFile(path())
    await save(after)
    const bytes = await readFile(path())
    for (let length = start; length <= bytes.length; length += 1) {
      const zeros = Buffer.concat([bytes.subarray(0, length), Buffer.alloc(bytes.length - length)])
      for (const left of [bytes.subarray(0, length), zeros]) {
        await writeFile(path(), left)
        expect(await load(), `after ${length} bytes`).toEqual(length === bytes.length ? after : large)
      }
    }
  })

  it('is written as a whole again when its changes are as long', async () => {
    await save(many)
    const { length } = await readFile(path())
    let documents = many
    let longest = 0
    for (let round = 0; round < 150; round += 1) {
      documents = documents.with(round % 100, document(`c${round % 100}`))
      await save(documents)
      longest = Math.max(longest, (await readFile(path())).length)
    }
    expect(longest).toBeLessThanOrEqual(2 * length)
    expect(longest).toBeGreaterThan(1.9 * length)
    expect(await load()).toEqual(documents)
  })

  it('whose change is broken is put aside', async () => {
    await save(many)
    await appendFile(path(), '{"at":0,"remo\n')
    const reported: string[] = []
    const next = createLastGoodStore(directory, { report: ({ path: at }) => reported.push(at) })
    expect(await next.load('file', '/etc/pods')).toBeUndefined()
    expect(reported).toEqual([`${path()}.unreadable`])
  })

  it.each<[what: string, spoil: () => Promise<void>]>([
    ['was removed', () => rm(path())],
    ['was emptied', () => writeFile(path(), '')],
    ['has another end', () => appendFile(path(), '{"at":0,')],
  ])('is written as a whole where the one before %s', async (_, spoil) => {
    await save(many)
    await save(many.with(0, document('c0', 'größer €')))
    await spoil()
    await save(many.slice(1))
    expect(await load()).toEqual(many.slice(1))
    await save(many.slice(2))
    expect(await load()).toEqual(many.slice(2))
  })

  it('is written as a whole where a change of it could not be written', async () => {
    await save(many)
    await rm(path())
    await mkdir(path())
    await expect(save(many.slice(1))).rejects.toThrow('EISDIR')
    await rm(path(), { recursive: true })
    await save(many.slice(2))
    expect(await load()).toEqual(many.slice(2))
  })
})
