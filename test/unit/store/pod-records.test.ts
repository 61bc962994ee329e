import { readFileSync, readdirSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PodMemory } from '../../../src/control/pod/memory.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { podRecordVersion } from '../../../src/pod/state/pod-record.ts'
import type { PodRecord } from '../../../src/pod/state/pod-record.ts'
import { PodRecordStore, podRecordMigrations } from '../../../src/store/pod-records.ts'
import { plainMemoryEnv } from '../../support/plain-pod-host.ts'

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

  it('writes so many at a time that what the disk has done doesn’t hold podd, and every one of thousands', async () => {
    await store.load()
    const uids = Array.from({ length: 2000 }, (_, index) => `u${index}`)
    const saved = Promise.all(uids.map((uid) => store.save(record(uid))))
    const waits = process.getActiveResourcesInfo().filter((kind) => kind === 'FSReqCallback')
    expect(waits.length).toBeLessThanOrEqual(32)
    await saved
    expect((await store.load()).records).toHaveLength(2000)
  })

  it('keeps the name of a source that is one of several, in a form that an older podd understands', async () => {
    await store.load()
    await store.save(record('a', { source: 'file:edge' }))
    const text = await readFile(inRecords('a.json'), 'utf8')
    expect(JSON.parse(text)).toMatchObject({ source: 'file', sourceName: 'file:edge' })
    expect((await store.load()).records).toEqual([record('a', { source: 'file:edge' })])
    // The older podd gave the pod to its URL.
    await writeFile(inRecords('a.json'), text.replace('"source":"file"', '"source":"http"'))
    expect((await store.load()).records).toEqual([record('a', { source: 'http' })])
  })

  it('tells whether there is room, and leaves nothing of the try', async () => {
    await store.load()
    await store.checkRoom()
    expect(await readdir(join(root, 'records'))).toEqual([])
  })

  it('makes its directory again where somebody has removed it', async () => {
    await store.load()
    await store.save(record('a'))
    await rm(join(root, 'records'), { recursive: true })
    await store.checkRoom()
    await rm(join(root, 'records'), { recursive: true })
    await store.save(record('b'))
    expect((await store.load()).records).toEqual([record('b')])
    await rm(join(root, 'records'), { recursive: true })
    await store.remove('b')
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
    ['a version that is no number', JSON.stringify({ ...record('a'), version: 'one' })],
    ['a later version', JSON.stringify({ ...record('a'), version: podRecordVersion + 1 })],
    ['a record without a manifest', JSON.stringify({ ...record('a'), manifest: undefined })],
  ])('puts aside a file that holds %s, tells of it each time, and reads the others', async (_, text) => {
    await mkdir(join(root, 'records'))
    await writeFile(inRecords('a.json'), text)
    await writeFile(inRecords('b.json'), JSON.stringify(record('b')))
    for (let load = 0; load < 2; load += 1) {
      const { records, unreadable } = await store.load()
      expect(records).toEqual([record('b')])
      expect(unreadable.map(({ uid, path }) => [uid, path])).toEqual([['a', inRecords('a.json.unreadable')]])
      expect(await readFile(inRecords('a.json.unreadable'), 'utf8')).toBe(text)
    }
  })

  it('takes back what an older podd put aside and this one can read', async () => {
    await mkdir(join(root, 'records'))
    await writeFile(inRecords('a.json.unreadable'), JSON.stringify(record('a')))
    expect(await store.load()).toEqual({ records: [record('a')], unreadable: [] })
    expect(await readdir(join(root, 'records'))).toEqual(['a.json'])
  })

  it('prefers the record that a pod has got since; both go with the pod', async () => {
    await mkdir(join(root, 'records'))
    await writeFile(inRecords('a.json.unreadable'), JSON.stringify(record('a', { acceptedAtMs: 7 })))
    await store.save(record('a'))
    expect(await store.load()).toEqual({ records: [record('a')], unreadable: [] })
    await store.remove('a')
    expect(await readdir(join(root, 'records'))).toEqual([])
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

describe('the form of records', () => {
  it('has a migration for each version before the current one', () => {
    expect(podRecordMigrations).toHaveLength(podRecordVersion - 1)
  })

  const versions = readdirSync('test/fixtures/records').flatMap((version) =>
    readdirSync(`test/fixtures/records/${version}`).map((name) => `${version}/${name}`),
  )

  it('has fixtures of every version that a podd ever wrote', () => {
    const kept = new Set(versions.map((path) => path.split('/')[0]))
    expect(kept).toEqual(new Set(Array.from({ length: podRecordVersion }, (_, index) => `v${index + 1}`)))
  })

  it.each(versions)('reads %s, with a manifest that makes a pod', async (path) => {
    const text = readFileSync(`test/fixtures/records/${path}`, 'utf8')
    const written: PodRecord = JSON.parse(text)
    await mkdir(join(root, 'records'))
    await writeFile(inRecords(`${written.uid}.json`), text)
    const { records, unreadable } = await store.load()
    expect(unreadable).toEqual([])
    expect(records).toHaveLength(1)
    expect(records[0]).toMatchObject({ version: podRecordVersion, uid: written.uid, name: written.name })
    expect(podFromManifest(records[0]?.manifest ?? {}).metadata.name).toBe(written.name)
  })

  it('calls what is provisional of an end as the first podd did', async () => {
    const text = readFileSync('test/fixtures/records/v1/all-fields.json', 'utf8')
    const written: PodRecord = JSON.parse(text)
    await mkdir(join(root, 'records'))
    await writeFile(inRecords(`${written.uid}.json`), text)
    const [read] = (await store.load()).records
    expect(read?.containers['main']?.ended).toMatchObject({ exitCode: 1, provisional: true })
    expect(read?.containers['main']?.ended).not.toHaveProperty('foretold')
    if (read === undefined) throw new Error('the record was not read')
    await store.save(read)
    expect(JSON.parse(await readFile(inRecords(`${written.uid}.json`), 'utf8'))).toEqual(JSON.parse(text))
  })

  it('keeps fields of a newer podd when this one changes the record', async () => {
    const newer = {
      ...record('a', { containers: { main: { awaitedImage: 'app:2' } } }),
      owner: { kind: 'Deployment', name: 'web' },
    }
    await mkdir(join(root, 'records'))
    await writeFile(
      inRecords('a.json'),
      JSON.stringify({ ...newer, containers: { main: { ...newer.containers['main'], checkpoint: 3 } } }),
    )
    const [loaded] = (await store.load()).records
    if (loaded === undefined) throw new Error('the record was not read')
    const memory = new PodMemory({ ...plainMemoryEnv(), records: store }, { record: loaded, saved: true })
    memory.change({ startedAtMs: 5 })
    memory.changeContainer('main', { awaitedImage: 'app:3' })
    await memory.save('required')
    expect(JSON.parse(await readFile(inRecords('a.json'), 'utf8'))).toMatchObject({
      startedAtMs: 5,
      owner: { kind: 'Deployment', name: 'web' },
      containers: { main: { awaitedImage: 'app:3', checkpoint: 3 } },
    })
  })
})
