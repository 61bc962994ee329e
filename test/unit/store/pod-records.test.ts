import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PodRecord } from '../../../src/pod/state/pod-record.ts'
import { PodRecordStore } from '../../../src/store/pod-records.ts'

let root: string
let store: PodRecordStore

function record(uid: string, changes: Partial<PodRecord> = {}): PodRecord {
  return {
    version: 1,
    uid,
    namespace: 'default',
    name: `pod-${uid}`,
    source: 'file',
    path: '/etc/pods/web.yaml',
    manifest: { apiVersion: 'v1', kind: 'Pod' },
    acceptedAtMs: 1,
    conditions: {},
    containers: {},
    ...changes,
  }
}

const inRecords = (name: string): string => join(root, 'records', name)

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'podd-records-'))
  store = new PodRecordStore(root)
})

afterEach(() => rm(root, { recursive: true, force: true }))

describe('PodRecordStore', () => {
  it('gives back what was saved last, in files of their owner alone', async () => {
    await store.load()
    await store.save(record('a'))
    await store.save(record('a', { acceptedAtMs: 2 }))
    await store.save(record('b'))
    expect(await store.load()).toEqual({
      records: [record('a', { acceptedAtMs: 2 }), record('b')],
      unreadable: [],
    })
    expect((await stat(inRecords('a.json'))).mode & 0o777).toBe(0o600)
    expect((await stat(join(root, 'records'))).mode & 0o777).toBe(0o700)
  })

  it('tells whether there is room, and leaves nothing of the try', async () => {
    await expect(store.checkRoom()).rejects.toMatchObject({ code: 'ENOENT' })
    await store.load()
    await store.checkRoom()
    expect(await readdir(join(root, 'records'))).toEqual([])
  })

  it('forgets what was removed; once more is fine', async () => {
    await store.load()
    await store.save(record('a'))
    await store.remove('a')
    await store.remove('a')
    expect((await store.load()).records).toEqual([])
  })

  it.each([
    ['half a file', JSON.stringify(record('a')).slice(0, 40)],
    ['nothing', ''],
    ['something else', '[1, 2]'],
    ['a later version', JSON.stringify({ ...record('a'), version: 2 })],
    ['a record without a manifest', JSON.stringify({ ...record('a'), manifest: undefined })],
  ])('puts aside a file that holds %s, and reads the others', async (_, text) => {
    await mkdir(join(root, 'records'))
    await writeFile(inRecords('a.json'), text)
    await writeFile(inRecords('b.json'), JSON.stringify(record('b')))
    const { records, unreadable } = await store.load()
    expect(records).toEqual([record('b')])
    expect(unreadable.map(({ path }) => path)).toEqual([inRecords('a.json.unreadable')])
    expect(await readFile(inRecords('a.json.unreadable'), 'utf8')).toBe(text)
    expect((await store.load()).unreadable).toEqual([])
  })

  it('leaves where it is what the system does not let it read', async () => {
    await mkdir(inRecords('a.json'), { recursive: true })
    const { records, unreadable } = await store.load()
    expect(records).toEqual([])
    expect(unreadable).toMatchObject([
      { path: inRecords('a.json'), message: expect.stringContaining('EISDIR') },
    ])
    expect(await readdir(join(root, 'records'))).toEqual(['a.json'])
  })

  it('removes what a podd left that was killed while it wrote', async () => {
    await store.load()
    await store.save(record('a'))
    await writeFile(inRecords('.a.json.0c1d.tmp'), '{"half')
    expect((await store.load()).records).toEqual([record('a')])
    expect(await readdir(join(root, 'records'))).toEqual(['a.json'])
  })
})
