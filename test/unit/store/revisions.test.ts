import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  createUnitRecord,
  noteFailed,
  noteHealthy,
  noteHeld,
  offerContent,
} from '../../../src/decide/updates/unit-revisions.ts'
import type { JsonObject } from '../../../src/base/json.ts'
import type { UnitRecord } from '../../../src/decide/updates/unit-revisions.ts'
import type { SourceDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { createRevisionStore } from '../../../src/store/revisions.ts'
import type { RevisionStore } from '../../../src/store/revisions.ts'
import type { UnreadableState } from '../../../src/store/state-report.ts'
import { sampleManifest } from '../pod/sample-pod.ts'

let scratch = ''
let directory = ''
let reported: UnreadableState[] = []
let store: RevisionStore

const open = (change: { persistSecrets?: boolean; most?: number } = {}): RevisionStore =>
  createRevisionStore(directory, {
    persistSecrets: true,
    most: 10,
    report: (state) => void reported.push(state),
    ...change,
  })

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'podd-revisions-'))
  directory = join(scratch, 'revisions')
  reported = []
  store = open()
})

afterEach(async () => {
  await rm(scratch, { recursive: true, force: true })
})

const name = { source: 'file', unit: '/etc/pods/web.yaml' } as const
const place = { path: name.unit, line: 1 }
const pod: SourceDocument = {
  pod: podFromManifest(sampleManifest),
  manifest: sampleManifest,
  place,
  owner: { kind: 'Deployment', name: 'web' },
}
const secretManifest = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'default' } }
const secret: SourceDocument = { object: objectFromManifest(secretManifest), manifest: secretManifest, place }
const failure = {
  reason: 'CrashLoopBackOff',
  message: 'it crashed',
  atMs: 7,
  containers: [{ pod: 'default/web', container: 'main', exitCode: 1, reason: 'Error', lines: ['no httpdd'] }],
}

/** The first revision was healthy, and the second failed. */
function rolledBack(): UnitRecord {
  const first = noteHealthy(
    createUnitRecord(
      name,
      { hash: 'a', hashWithoutSecrets: 'a-', pods: 1, sourceRevision: '"e1"', digest: 'd1' },
      1,
    ),
    1,
    [{ pod: 'default/web', container: 'main', image: 'app:1', id: 'sha256:1' }],
  )
  const second = offerContent(first, { hash: 'b', pods: 1 }, 2)
  return noteFailed(second, failure, { why: 'failed', mayRollBack: true })
}

const contents = new Map([
  ['a', [pod, secret]],
  ['b', [pod]],
])

describe('the revisions on disk', () => {
  it('are read as they were written, with their contents and why one failed', async () => {
    await store.save(rolledBack(), contents)
    expect(await open().load()).toEqual([rolledBack()])
    expect((await open().contents(name, ['a'])).get('a')).toEqual({
      documents: [pod, secret],
      lacksSecrets: false,
    })
    expect((await store.contents(name, ['c'])).get('c')).toBeUndefined()
    expect((await store.contents({ ...name, unit: '/etc/pods/other.yaml' }, ['a'])).get('a')).toBeUndefined()
  })

  it('tell, when they are read again, of which nothing is undone', async () => {
    const first = createUnitRecord(name, { hash: 'a', pods: 2 }, 1)
    const held = noteHeld(first, failure, true)
    await store.save(held, contents)
    expect(await open().load()).toEqual([held])
  })

  it('go with a file that is renamed, with their contents', async () => {
    await store.save({ ...rolledBack(), goneAtMs: 5 }, contents)
    expect(await open().load()).toEqual([{ ...rolledBack(), goneAtMs: 5 }])
    const renamed = { ...rolledBack(), unit: '/etc/pods/site.yaml' }
    await store.move(name, renamed)
    expect(await open().load()).toEqual([renamed])
    expect((await store.contents(renamed, ['a'])).get('a')?.documents).toEqual([pod, secret])
    expect((await store.contents(name, ['a'])).get('a')).toBeUndefined()
  })

  it('of a workload over the API stay known by what they were recorded by, though this podd reads a template otherwise', async () => {
    const workload = { source: 'api', unit: 'api:Deployment/default/web' } as const
    const documentOf = (image: string): SourceDocument => {
      const labels = { app: 'web' }
      const containers = [{ name: 'main', image, terminationMessagePath: '/dev/termination-log' }]
      const manifest: JsonObject = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', namespace: 'default' },
        spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
      }
      return { object: objectFromManifest(manifest), manifest, place }
    }
    const before = documentOf('app:1')
    // What is offered was matched by how it was written: its hash is of what an earlier podd read of it.
    const first = noteHealthy(createUnitRecord(workload, { hash: 'h1', written: 'w1', pods: 1 }, 1))
    await store.save(first, new Map([['h1', [before]]]))
    expect((await store.contents(workload, ['h1'])).get('h1')?.documents).toEqual([before])
    expect(await open().load()).toEqual([first])
    const second = offerContent(first, { hash: 'h2', written: 'w2', pods: 1 }, 2)
    const kept = await store.save(second, new Map([['h2', [documentOf('app:2')]]]))
    expect(kept.revisions.map(({ hash }) => hash)).toEqual(['h1', 'h2'])
    expect((await store.contents(workload, ['h1'])).get('h1')?.documents).toEqual([before])
  })

  it('are for root alone', async () => {
    await store.save(rolledBack(), contents)
    const [file = ''] = await readdir(directory)
    expect([(await stat(directory)).mode & 0o777, (await stat(join(directory, file))).mode & 0o777]).toEqual([
      0o700, 0o600,
    ])
  })

  it('keep the contents that they refer to, whether these are given again or not', async () => {
    await store.save(rolledBack(), contents)
    const next = offerContent(rolledBack(), { hash: 'c', pods: 1 }, 3)
    await store.save(next, new Map([['c', [pod]]]))
    expect((await store.contents(name, ['a'])).get('a')?.documents).toEqual([pod, secret])
    expect((await store.contents(name, ['c'])).get('c')?.documents).toEqual([pod])
  })

  it('are no more than allowed, beside those that are needed, and so are their contents', async () => {
    const small = open({ most: 1 })
    await small.save(rolledBack(), contents)
    const kept = await small.save(
      offerContent(rolledBack(), { hash: 'c', pods: 1 }, 3),
      new Map([['c', [pod]]]),
    )
    expect(kept.revisions.map(({ hash }) => hash)).toEqual(['a', 'c'])
    expect(await small.load()).toEqual([kept])
    expect((await small.contents(name, ['b'])).get('b')).toBeUndefined()
  })

  it('are without Secrets where these are kept off the disk, and say so', async () => {
    const discreet = open({ persistSecrets: false })
    await discreet.save(rolledBack(), contents)
    expect((await discreet.contents(name, ['a'])).get('a')).toEqual({ documents: [pod], lacksSecrets: true })
    expect((await discreet.contents(name, ['b'])).get('b')).toEqual({ documents: [pod], lacksSecrets: false })
  })

  it('of a unit that is gone are removed', async () => {
    await store.save(rolledBack(), contents)
    await store.remove(name)
    await store.remove(name)
    expect([await store.load(), await readdir(directory)]).toEqual([[], []])
  })

  it('that can’t be read are put aside, and leave those of other units alone', async () => {
    await store.save(rolledBack(), contents)
    const [file = ''] = await readdir(directory)
    await store.save({ ...rolledBack(), unit: '/etc/pods/other.yaml' }, contents)
    await writeFile(join(directory, file), '{"version":1,"source":"file"}')
    await writeFile(join(directory, '.left.0.tmp'), 'half')
    expect((await store.load()).map(({ unit }) => unit)).toEqual(['/etc/pods/other.yaml'])
    expect(reported).toEqual([
      { path: join(directory, `${file}.unreadable`), message: 'it lacks what it must have' },
    ])
    expect(await readdir(directory)).not.toContain('.left.0.tmp')
    expect((await open().load()).length).toBe(1)
  })

  it('that can’t be written leave the ones before, and the error is the caller’s', async () => {
    await writeFile(join(scratch, 'file'), '')
    const blocked = createRevisionStore(join(scratch, 'file'), {
      persistSecrets: true,
      most: 1,
      report: () => {},
    })
    await expect(blocked.save(rolledBack(), contents)).rejects.toMatchObject({ code: 'ENOTDIR' })
  })

  it('of a content that this podd can’t read whole are not gone back to', async () => {
    await store.save(rolledBack(), contents)
    const [file = ''] = await readdir(directory)
    const path = join(directory, file)
    const { readFile } = await import('node:fs/promises')
    const text = await readFile(path, 'utf8')
    await writeFile(path, text.replace('"kind":"Secret"', '"kind":"Strange"'))
    expect((await store.contents(name, ['a'])).get('a')).toBeUndefined()
    expect((await store.contents(name, ['b'])).get('b')?.documents).toEqual([pod])
  })
})
