import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PodObject } from '../../../src/api/resource.ts'
import { ResourceStore, Revisions, byName } from '../../../src/control/serving/resource-store.ts'
import { podObject } from '../../support/pod-objects.ts'

const wallMs = Date.parse('2026-01-01T00:00:00Z')

function newStore(): ResourceStore<PodObject> {
  return new ResourceStore<PodObject>(new Revisions(wallMs), byName)
}

const noted = (name: string, note: number, padding = ''): PodObject =>
  podObject({ name, metadata: { annotations: { note: `${note}${padding}` } } })

const shown = (objects: Iterable<PodObject>): readonly string[] =>
  [...objects].map(({ metadata }) => `${metadata.name} ${metadata.annotations?.['note']}`)

describe('revisions', () => {
  it('rise by one counter over all kinds, and from one podd to the next', () => {
    const revisions = new Revisions(wallMs)
    const [pods, others] = [new ResourceStore<PodObject>(revisions), new ResourceStore<PodObject>(revisions)]
    const versions = [
      pods.put('a', noted('a', 1)),
      others.put('b', noted('b', 1)),
      pods.put('a', noted('a', 2)),
    ]
    const first = Number(versions[0]?.metadata.resourceVersion)
    expect(versions.map(({ metadata }) => Number(metadata.resourceVersion))).toEqual([
      first,
      first + 1,
      first + 2,
    ])
    expect(new Revisions(wallMs + 1).latest).toBeGreaterThan(revisions.latest)
  })

  it('of an earlier podd are forgotten, also where the clock was set back', () => {
    const earlier = new Revisions(wallMs)
    const next = new Revisions(0)
    const store = new ResourceStore<PodObject>(next)
    next.continueAfter(earlier.latest)
    store.put('a', noted('a', 1))
    expect(store.changesAfter(earlier.latest)).toBeUndefined()
    expect(store.listAt(earlier.latest)).toBeUndefined()
    expect(store.changesAfter(store.revision)).toEqual([])
  })

  it('rise where the clock was set back, as far as the earlier podd is known', () => {
    const earlier = new Revisions(wallMs)
    const next = new Revisions(0)
    next.continueAfter(earlier.latest)
    expect(next.latest).toBeGreaterThan(earlier.latest)
    expect(Number.isSafeInteger(next.latest)).toBe(true)
    const before = next.latest
    next.continueAfter(1)
    expect(next.latest).toBe(before)
  })
})

describe('a store of resources', () => {
  it('takes what it shows already for no change', () => {
    const store = newStore()
    const changes: string[] = []
    store.subscribe(({ type }) => changes.push(type))
    const first = store.put('a', noted('a', 1))
    expect(store.put('a', noted('a', 1))).toBe(first)
    store.put('a', noted('a', 2))
    store.remove('a')
    store.remove('a')
    expect(changes).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
  })

  it('gives what was deleted as it was last, with a revision of its own', () => {
    const store = newStore()
    const last = store.put('a', noted('a', 1))
    store.remove('a')
    const [deleted] = store.changesAfter(Number(last.metadata.resourceVersion)) ?? []
    expect(deleted).toMatchObject({ type: 'DELETED', previous: last, object: { spec: last.spec } })
    expect(Number(deleted?.object.metadata.resourceVersion)).toBe(deleted?.revision)
    expect(deleted?.revision).toBe(store.revision)
  })

  it.each([
    ['many', 600, ''],
    ['large', 40, 'x'.repeat(64 * 1024)],
  ])('forgets the oldest changes where there are %s of them', (_, count, padding) => {
    const store = newStore()
    const begin = store.revision
    for (let note = 0; note < count; note += 1) store.put('a', noted('a', note, padding))
    expect(store.changesAfter(begin)).toBeUndefined()
    expect(store.listAt(begin)).toBeUndefined()
    expect(store.changesAfter(store.revision)).toEqual([])
    expect(store.changesAfter(store.revision - 1)).toHaveLength(1)
    expect(store.listAt(store.revision + 1)).toBeUndefined()
    // Even a change that is larger than the whole history reaches those who listen.
    const heard: number[] = []
    store.subscribe(({ revision }) => heard.push(revision))
    store.put('a', noted('a', -1, 'x'.repeat(1024 * 1024)))
    expect(heard).toEqual([store.revision])
    expect(store.changesAfter(store.revision)).toEqual([])
  })

  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constant('put' as const), name: fc.constantFrom('a', 'b', 'c') }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('remove' as const), name: fc.constantFrom('a', 'b', 'c') }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('drop' as const), name: fc.constant('') }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('resume' as const), name: fc.constant('') }) },
  )

  it('gives a client that goes on where it stopped every change once, however often it is cut off', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const store = newStore()
        const everything: number[] = []
        const pasts = new Map<number, readonly PodObject[]>([[store.revision, []]])
        store.subscribe(({ revision }) => {
          everything.push(revision)
        })
        const seen: number[] = []
        const held = new Map<string, PodObject>()
        let at = store.revision
        let stop: (() => void) | undefined
        const take = ({
          type,
          object,
          revision,
        }: Parameters<Parameters<typeof store.subscribe>[0]>[0]): void => {
          seen.push(revision)
          at = revision
          if (type === 'DELETED') held.delete(object.metadata.name)
          else held.set(object.metadata.name, object)
        }
        const resume = (): void => {
          if (stop !== undefined) return
          for (const change of store.changesAfter(at) ?? []) take(change)
          stop = store.subscribe(take)
        }
        for (const [note, action] of steps.entries()) {
          if (action.do === 'put') store.put(action.name, noted(action.name, note % 3))
          if (action.do === 'remove') store.remove(action.name)
          if (action.do === 'drop') {
            stop?.()
            stop = undefined
          }
          if (action.do === 'resume') resume()
          pasts.set(store.revision, store.list())
        }
        resume()
        expect(seen).toEqual(everything)
        expect(shown([...held.values()].sort(byName))).toEqual(shown(store.list()))
        for (const [revision, list] of pasts) expect(store.listAt(revision)).toEqual(list)
      }),
    )
  })
})
