import { copyFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { documentKey } from '../../../src/pod/objects/document.ts'
import type { PodDocument } from '../../../src/pod/objects/document.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import type { LastGoodStore } from '../../../src/store/last-good.ts'
import { createLastGoodStore } from '../../../src/store/last-good.ts'
import { sampleManifest } from '../pod/sample-pod.ts'

let scratch = ''
let directory = ''
let store: LastGoodStore

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'podd-last-good-'))
  directory = join(scratch, 'sources')
  store = createLastGoodStore(directory)
})

afterEach(async () => {
  await rm(scratch, { recursive: true, force: true })
})

const document: PodDocument = {
  pod: podFromManifest(sampleManifest),
  manifest: sampleManifest,
  place: { path: '/etc/pods/web.yaml', line: 3, column: 1 },
}

describe('the last good store', () => {
  it('gives back what was saved, with its places, and defaults filled in anew', async () => {
    await store.save('file', '/etc/pods', [document])
    expect(await store.load('file', '/etc/pods')).toEqual({ documents: [document], isComplete: true })
    expect(JSON.parse(await readFile(join(directory, 'file.json'), 'utf8'))).toEqual({
      version: 1,
      location: '/etc/pods',
      documents: [{ path: '/etc/pods/web.yaml', line: 3, column: 1, manifest: sampleManifest }],
    })
  })

  it('keeps sources and locations apart, and an empty set from none at all', async () => {
    await store.save('file', '/etc/pods', [])
    expect(await store.load('file', '/etc/pods')).toEqual({ documents: [], isComplete: true })
    expect(await store.load('file', '/srv/pods')).toBeUndefined()
    expect(await store.load('http', '/etc/pods')).toBeUndefined()
  })

  it('keeps its files to root', async () => {
    await store.save('http', 'http://host/', [document])
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
    expect((await stat(join(directory, 'http.json'))).mode & 0o777).toBe(0o600)
  })

  it.each([
    ['no JSON', '{"version":1'],
    ['another version', '{"version":2,"location":"/etc/pods","documents":[]}'],
    ['no list', '{"version":1,"location":"/etc/pods","documents":{}}'],
    ['no object', '7'],
  ])('takes %s for no copy', async (_what, text) => {
    await store.save('file', '/etc/pods', [])
    await writeFile(join(directory, 'file.json'), text)
    expect(await store.load('file', '/etc/pods')).toBeUndefined()
    expect(await readFile(join(directory, 'file.json.unreadable'), 'utf8')).toBe(text)
  })

  it('leaves out a document that this version can’t read, and keeps the others', async () => {
    await store.save('file', '/etc/pods', [{ ...document, manifest: { kind: 'Pod' } }, document])
    expect(await store.load('file', '/etc/pods')).toEqual({ documents: [document], isComplete: false })
  })

  it('reads what the first version wrote', async () => {
    await store.save('file', '/etc/pods', [])
    await copyFile('test/fixtures/last-good/v1/file.json', join(directory, 'file.json'))
    const copy = await store.load('file', '/etc/pods')
    expect(copy?.documents.map((each) => documentKey(each))).toEqual([
      'default/web',
      expect.stringContaining('settings'),
    ])
    expect(copy?.isComplete).toBe(true)
  })
})
