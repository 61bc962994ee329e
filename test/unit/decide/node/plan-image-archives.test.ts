import { describe, expect, it } from 'vitest'
import {
  archiveRetryMs,
  findAwaitedArchive,
  planImageArchives,
  selectKept,
  selectReplaced,
  stageOf,
} from '../../../../src/decide/node/plan-image-archives.ts'
import type { ArchiveFile, ImportedArchive } from '../../../../src/decide/node/plan-image-archives.ts'

const record: ImportedArchive = { sizeBytes: 1000, modifiedAtMs: 5, digest: 'sha256:1', images: ['web:1'] }

function file(changes: Partial<ArchiveFile> = {}): ArchiveFile {
  return {
    name: 'web.tar',
    isList: false,
    sizeBytes: 1000,
    modifiedAtMs: 5,
    fingerprint: '1',
    isRenamed: false,
    quietMs: 60_000,
    content: { kind: 'archive', images: ['web:1'], digest: 'sha256:1', isMarked: true },
    ...changes,
  }
}

const unread = { content: undefined }
const none = new Map<string, ImportedArchive>()
const known = new Map([['web.tar', record]])
const here = new Set(['web:1'])

describe('stageOf', () => {
  it.each<
    [string, ArchiveFile, ReadonlyMap<string, ImportedArchive>, ReadonlySet<string> | undefined, object]
  >([
    ['a file that is quiet', file(unread), none, here, { kind: 'unread' }],
    [
      'one that is being written',
      file({ ...unread, quietMs: 400 }),
      none,
      here,
      { kind: 'settling', waitMs: 600 },
    ],
    [
      'one that was renamed',
      file({ ...unread, quietMs: 0, isRenamed: true }),
      none,
      here,
      { kind: 'unread' },
    ],
    [
      'an empty one that was renamed',
      file({ ...unread, quietMs: 0, isRenamed: true, sizeBytes: 0 }),
      none,
      here,
      { kind: 'settling', waitMs: 1000 },
    ],
    [
      'a marked one that was read and is not quiet for long',
      file({ quietMs: 1500 }),
      none,
      here,
      { kind: 'due', images: ['web:1'], digest: 'sha256:1' },
    ],
    [
      'an incomplete one that is quiet for ten seconds',
      file({ quietMs: 10_000, content: { kind: 'incomplete', message: 'half' } }),
      none,
      here,
      { kind: 'incomplete', message: 'half', waitMs: 0 },
    ],
    ['one that was read', file(), none, here, { kind: 'due', images: ['web:1'], digest: 'sha256:1' }],
    ['one that was imported', file(unread), known, here, { kind: 'imported', record, isTouched: false }],
    [
      'one that was imported, before the runtime tells',
      file(unread),
      known,
      undefined,
      { kind: 'unchecked', images: ['web:1'] },
    ],
    [
      'one whose image is lost',
      file(),
      known,
      new Set(),
      { kind: 'due', images: ['web:1'], digest: 'sha256:1' },
    ],
    ['one whose image is lost, not read', file(unread), known, new Set(), { kind: 'unread' }],
    [
      'one that was touched',
      file({ modifiedAtMs: 9 }),
      known,
      here,
      { kind: 'imported', record, isTouched: true },
    ],
    ['one that was replaced', file({ ...unread, sizeBytes: 9 }), known, here, { kind: 'unread' }],
    [
      'one that ends too early, for now',
      file({ quietMs: 3000, content: { kind: 'incomplete', message: 'half' } }),
      none,
      here,
      { kind: 'settling', waitMs: 7000 },
    ],
    [
      'one that ends too early',
      file({ content: { kind: 'incomplete', message: 'half' } }),
      none,
      here,
      { kind: 'incomplete', message: 'half', waitMs: 0 },
    ],
    [
      'one without an end mark, for now',
      file({
        quietMs: 3000,
        content: { kind: 'archive', images: ['web:1'], digest: 'sha256:1', isMarked: false },
      }),
      none,
      here,
      { kind: 'settling', waitMs: 7000 },
    ],
    [
      'one without an end mark',
      file({ content: { kind: 'archive', images: ['web:1'], digest: 'sha256:1', isMarked: false } }),
      none,
      here,
      { kind: 'due', images: ['web:1'], digest: 'sha256:1' },
    ],
    [
      'no archive',
      file({ content: { kind: 'bad', message: 'text' } }),
      none,
      here,
      { kind: 'refused', message: 'text' },
    ],
    ['no file', file({ ...unread, refusal: 'a pipe' }), none, here, { kind: 'refused', message: 'a pipe' }],
    [
      'one that failed',
      file({ failure: { message: 'no space', retryMs: 500 } }),
      none,
      here,
      { kind: 'failed', message: 'no space', waitMs: 500 },
    ],
    [
      'one that failed, and is tried again',
      file({ failure: { message: 'no space', retryMs: 0 } }),
      none,
      here,
      { kind: 'due', images: ['web:1'], digest: 'sha256:1' },
    ],
  ])('%s', (_, given, imported, present, stage) => {
    expect(stageOf(given, { imported, present })).toEqual(stage)
  })
})

const named = (name: string, images: readonly string[], changes: Partial<ArchiveFile> = {}): ArchiveFile =>
  file({ name, content: { kind: 'archive', images, digest: name, isMarked: true }, ...changes })

describe('planImageArchives', () => {
  const files = [named('a.tar', ['a:1']), named('b.txt', ['b:1'], { isList: true }), named('c.tar', ['c:1'])]

  it('imports by name, what pods wait for first, and pulls lists apart from that', () => {
    const facts = { files, imported: none, present: here }
    expect(planImageArchives(facts, new Set())).toMatchObject({
      imports: ['a.tar', 'c.tar'],
      lists: ['b.txt'],
    })
    expect(planImageArchives(facts, new Set(['c:1']))).toMatchObject({ imports: ['c.tar', 'a.tar'] })
  })

  it('imports nothing before the runtime is there', () => {
    const facts = { files, imported: none, present: undefined }
    expect(planImageArchives(facts, new Set())).toMatchObject({ imports: [], lists: [], read: [] })
  })

  it('forgets files that are gone, and unpins what no other file holds', () => {
    const imported = new Map([
      ['gone.tar', { ...record, images: ['a:1', 'x:1', 'x:1', 'b:1', 'y:1'] }],
      ['kept.tar', { ...record, images: ['y:1'] }],
    ])
    const facts = { files: [...files, named('kept.tar', ['y:1'])], imported, present: here }
    expect(planImageArchives(facts, new Set())).toMatchObject({ forget: ['gone.tar'], unpin: ['x:1'] })
  })

  it('wakes when the first file may be complete, or is tried again', () => {
    const waiting = [
      file({ name: 'a.tar', content: undefined, quietMs: 100 }),
      file({ name: 'b.tar', failure: { message: 'no space', retryMs: 300 } }),
      file({ name: 'c.tar', content: { kind: 'incomplete', message: 'half' } }),
    ]
    expect(planImageArchives({ files: waiting, imported: none, present: here }, new Set()).wakeMs).toBe(300)
    const only = [file({ content: { kind: 'incomplete', message: 'half' } })]
    expect(
      planImageArchives({ files: only, imported: none, present: here }, new Set()).wakeMs,
    ).toBeUndefined()
    expect(planImageArchives({ files: [], imported: none, present: here }, new Set()).wakeMs).toBeUndefined()
  })
})

describe('selectReplaced', () => {
  it('gives what the new version of a file lacks, but what another holds', () => {
    const imported = new Map([
      ['a.tar', { ...record, images: ['a:1', 'a:2', 'b:1'] }],
      ['b.tar', { ...record, images: ['b:1'] }],
    ])
    expect(selectReplaced('a.tar', ['a:2', 'a:3'], imported)).toEqual(['a:1'])
    expect(selectReplaced('new.tar', ['a:2'], imported)).toEqual([])
  })
})

describe('findAwaitedArchive', () => {
  const awaited = (image: string, files: readonly ArchiveFile[], isChecked = true) => {
    const facts = { files, imported: known, present: isChecked ? here : undefined }
    return findAwaitedArchive(image, files, planImageArchives(facts, new Set()).stages)
  }
  const due = named('due.tar', ['a:1'])

  it.each<[string, ArchiveFile, object | undefined]>([
    ['an archive that brings it', due, { name: 'due.tar', isKnown: true }],
    [
      'an archive that was not read yet',
      file({ name: 'x.tar', content: undefined }),
      { name: 'x.tar', isKnown: false },
    ],
    ['an archive of others', named('x.tar', ['b:1']), undefined],
    ['a list', named('x.txt', ['a:1'], { isList: true }), undefined],
    [
      'an archive that could not be imported',
      { ...due, failure: { message: 'no space', retryMs: 0 } },
      undefined,
    ],
    ['one that is being written', file({ name: 'x.tar', content: undefined, quietMs: 0 }), undefined],
  ])('%s', (_, given, expected) => {
    expect(awaited('a:1', [given])).toEqual(expected)
  })

  it('names the archive that has it rather than one that may', () => {
    const files = [file({ name: 'a.tar', content: undefined }), due]
    expect(awaited('a:1', files)).toEqual({ name: 'due.tar', isKnown: true })
  })

  it('waits for an archive that was imported before, until the runtime tells whether its images are there', () => {
    expect(awaited('web:1', [file({ content: undefined })], false)).toEqual({
      name: 'web.tar',
      isKnown: true,
    })
    expect(awaited('web:1', [file({ content: undefined })])).toBeUndefined()
  })
})

it('tries again after 10 s at first, ten minutes at last', () => {
  expect([1, 2, 3, 7, 20].map((failures) => archiveRetryMs(failures))).toEqual([
    10_000, 20_000, 40_000, 600_000, 600_000,
  ])
})

describe('the archive that a missing image waits for', () => {
  const due = { kind: 'due', images: ['web:1', 'side:1'], digest: 'sha256:1' } as const
  const named = (name: string, changes: Partial<ArchiveFile> = {}): ArchiveFile => file({ name, ...changes })
  const failed = { failure: { message: 'no', retryMs: 0 } }

  it.each<[string, readonly ArchiveFile[], object | undefined]>([
    ['the one that has it', [named('new.tar'), named('web.tar')], { name: 'web.tar', isKnown: true }],
    ['one that was not read yet, else', [named('new.tar')], { name: 'new.tar', isKnown: false }],
    ['no list', [named('web.tar', { isList: true })], undefined],
    ['none that can not be imported', [named('web.tar', failed), named('new.tar', failed)], undefined],
    ['none that has other images', [named('other.tar')], undefined],
    ['none that is imported', [named('done.tar')], undefined],
  ])('is %s', (_, files, found) => {
    const stages = new Map<string, ReturnType<typeof stageOf>>([
      ['new.tar', { kind: 'unread' }],
      ['web.tar', due],
      ['other.tar', { kind: 'due', images: ['other:1'], digest: 'sha256:2' }],
      ['done.tar', { kind: 'imported', record, isTouched: false }],
    ])
    expect(findAwaitedArchive('web:1', files, stages)).toEqual(found)
  })
})

describe('planImageArchives', () => {
  const archive = (name: string, images: readonly string[]): ArchiveFile =>
    file({ name, content: { kind: 'archive', images, digest: name, isMarked: true } })

  it('imports first what has any image that is awaited', () => {
    const files = [archive('a.tar', ['a:1']), archive('b.tar', ['b:1', 'c:1'])]
    const facts = { files, imported: none, present: new Set<string>() }
    expect(planImageArchives(facts, new Set(['c:1'])).imports).toEqual(['b.tar', 'a.tar'])
    expect(planImageArchives(facts, new Set()).imports).toEqual(['a.tar', 'b.tar'])
  })

  it('imports again an archive of which one image of several is gone', () => {
    const both = { ...record, images: ['web:1', 'side:1'] }
    const facts = { imported: new Map([['web.tar', both]]), present: here }
    expect(stageOf(file(), facts).kind).not.toBe('imported')
  })
})

it('unpins, of what a new file replaces, nothing that a user has pinned', () => {
  const kept = new Map([['web.tar', { ...record, images: ['web:1', 'mine:1'], kept: ['mine:1'] }]])
  expect(selectReplaced('web.tar', [], kept)).toEqual(['web:1'])
})

describe('selectKept', () => {
  const imported = new Map([
    ['a.tar', { ...record, images: ['mine:1', 'theirs:1'], kept: ['mine:1'] }],
    ['b.tar', { ...record, images: ['theirs:1', 'mine:1'] }],
  ])

  it('has what users have pinned, by the records of files that hold it before what is pinned now', () => {
    const pinned = new Set(['new:1', 'theirs:1'])
    expect(selectKept(['new:1', 'other:1', 'mine:1', 'theirs:1'], pinned, imported)).toEqual([
      'new:1',
      'mine:1',
    ])
  })
})
