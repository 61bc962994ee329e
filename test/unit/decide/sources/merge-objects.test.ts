import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/base/json.ts'
import { selectVisibleObjects, mergeSnapshots } from '../../../../src/decide/sources/merge-snapshots.ts'
import type { ObjectRules } from '../../../../src/decide/sources/merge-snapshots.ts'
import type { ObjectDocument, SourceName, SourceSnapshot } from '../../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../../src/pod/objects/local-object.ts'
import { defaultObjectPolicies, plainObjectRules } from '../../../support/object-rules.ts'

function document(kind: string, name: string, fields: JsonObject, path: string): ObjectDocument {
  const apiVersion = { RuntimeClass: 'node.k8s.io/v1', PriorityClass: 'scheduling.k8s.io/v1' }[kind] ?? 'v1'
  const manifest = { apiVersion, kind, metadata: { name }, ...fields }
  return { object: objectFromManifest(manifest), manifest, place: { path } }
}
const runtimeClass = (path: string, handler = 'runc') => document('RuntimeClass', 'gvisor', { handler }, path)
const priority = (path: string, name: string, fields: JsonObject = {}) =>
  document('PriorityClass', name, { value: 10, ...fields }, path)
const secret = (path: string, name = 'tls') => document('Secret', name, { stringData: { key: path } }, path)
const configMap = (path: string) => document('ConfigMap', 'settings', { data: {} }, path)
const claim = (path: string) =>
  document(
    'PersistentVolumeClaim',
    'data',
    { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } },
    path,
  )

const atUrl = 'http://host/pods'

function allowingUrl(rules: Partial<ObjectRules> = {}): ObjectRules {
  const http = { readsObjectsOf: ['file'] as const, givesClusterObjects: true }
  return { ...plainObjectRules, policies: { ...defaultObjectPolicies, http }, ...rules }
}

interface Given {
  /** Two more directories of the list. */
  readonly edge?: readonly ObjectDocument[]
  readonly site?: readonly ObjectDocument[]
  readonly file?: readonly ObjectDocument[]
  readonly http?: readonly ObjectDocument[]
  readonly rules?: ObjectRules
  readonly incumbent?: { readonly source: SourceName; readonly path?: string }
}

/** What the pods of each source see, as `Kind/name < path`, and what is said of the rest. */
function merge({ file = [], http = [], edge = [], site = [], rules = plainObjectRules, incumbent }: Given) {
  const snapshot = (source: SourceName, objects: readonly ObjectDocument[]): SourceSnapshot => ({
    source,
    location: source,
    ready: true,
    pods: [],
    objects,
    problems: [],
  })
  const snapshots = [
    snapshot('file', file),
    snapshot('http', http),
    snapshot('file:edge', edge),
    snapshot('file:site', site),
  ]
  const { objects, problems } = mergeSnapshots(snapshots, () => incumbent, rules)
  const seenBy = (source: SourceName) =>
    [...selectVisibleObjects(objects, source, rules.policies)].map(
      ([key, held]) => `${key} < ${held.document.place.path}`,
    )
  return {
    file: seenBy('file'),
    http: seenBy('http'),
    ...(edge.length + site.length > 0 && { edge: seenBy('file:edge'), site: seenBy('file:site') }),
    problems: problems.map(({ place, object }) => `${object} in ${place.path}`),
  }
}

describe('what is said of all pods', () => {
  it('comes from the directory, and not from the URL', () => {
    expect(merge({ file: [runtimeClass('a.yaml')], http: [runtimeClass(atUrl)] })).toEqual({
      file: ['RuntimeClass/gvisor < a.yaml'],
      http: ['RuntimeClass/gvisor < a.yaml'],
      problems: [`RuntimeClass/gvisor in ${atUrl}`],
    })
    expect(merge({ http: [runtimeClass(atUrl)] })).toEqual({
      file: [],
      http: [],
      problems: [`RuntimeClass/gvisor in ${atUrl}`],
    })
  })

  it('comes from the URL where its policy allows it, after the directory whoever was there first', () => {
    const rules = allowingUrl()
    expect(merge({ http: [runtimeClass(atUrl)], rules }).file).toEqual([`RuntimeClass/gvisor < ${atUrl}`])
    const both = { file: [runtimeClass('a.yaml')], http: [runtimeClass(atUrl)], rules }
    expect(merge({ ...both, incumbent: { source: 'http', path: atUrl } })).toMatchObject({
      file: ['RuntimeClass/gvisor < a.yaml'],
      problems: [`RuntimeClass/gvisor in ${atUrl}`],
    })
  })

  it('comes from the configuration before all', () => {
    const runtimeClasses = new Map([['gvisor', { handler: 'runsc' }]])
    const given = { file: [runtimeClass('a.yaml')], http: [runtimeClass(atUrl)] }
    expect(merge({ ...given, rules: allowingUrl({ runtimeClasses }) })).toEqual({
      file: [],
      http: [],
      problems: ['RuntimeClass/gvisor in a.yaml', `RuntimeClass/gvisor in ${atUrl}`],
    })
    // One that says the same says nothing wrong.
    expect(
      merge({ file: [runtimeClass('a.yaml', 'runsc')], rules: allowingUrl({ runtimeClasses }) }),
    ).toMatchObject({ problems: [] })
  })

  it('is one default PriorityClass: that of the directory', () => {
    const mine = priority('a.yaml', 'mine', { globalDefault: true })
    const theirs = priority(atUrl, 'theirs', { globalDefault: true })
    expect(merge({ http: [theirs] })).toMatchObject({
      file: [],
      problems: [`PriorityClass/theirs in ${atUrl}`],
    })
    expect(merge({ http: [theirs], rules: allowingUrl() })).toMatchObject({
      file: [`PriorityClass/theirs < ${atUrl}`],
      problems: [],
    })
    expect(merge({ file: [mine], http: [theirs], rules: allowingUrl() })).toMatchObject({
      file: ['PriorityClass/mine < a.yaml'],
      problems: [`PriorityClass/theirs in ${atUrl}`],
    })
    const other = priority('b.yaml', 'other', { globalDefault: true })
    expect(merge({ file: [mine, other] })).toMatchObject({
      file: ['PriorityClass/mine < a.yaml'],
      problems: ['PriorityClass/other in b.yaml'],
    })
  })

  it('is any number of PriorityClasses that are not the default', () => {
    const first = priority('a.yaml', 'first')
    const mine = priority('b.yaml', 'mine', { globalDefault: true })
    const last = priority('c.yaml', 'last')
    expect(merge({ file: [first, mine, last] })).toMatchObject({
      file: ['PriorityClass/first < a.yaml', 'PriorityClass/mine < b.yaml', 'PriorityClass/last < c.yaml'],
      problems: [],
    })
  })

  it('is no other PriorityClass of the URL: its own pods alone see that', () => {
    const given = { file: [priority('a.yaml', 'low')], http: [priority(atUrl, 'high')] }
    expect(merge(given)).toEqual({
      file: ['PriorityClass/low < a.yaml'],
      http: [`PriorityClass/high < ${atUrl}`, 'PriorityClass/low < a.yaml'],
      problems: [],
    })
    expect(merge({ file: [priority('a.yaml', 'high')], http: given.http })).toMatchObject({
      http: ['PriorityClass/high < a.yaml'],
      problems: [`PriorityClass/high in ${atUrl}`],
    })
  })
})

describe('ConfigMaps, Secrets and claims', () => {
  it('are seen by the pods of their own source', () => {
    expect(merge({ file: [secret('a.yaml'), claim('a.yaml')], http: [configMap(atUrl)] })).toEqual({
      file: ['Secret/default/tls < a.yaml', 'PersistentVolumeClaim/default/data < a.yaml'],
      http: [`ConfigMap/default/settings < ${atUrl}`],
      problems: [],
    })
  })

  it('are seen by those of another source where its policy allows it, its own first', () => {
    const given = { file: [secret('a.yaml'), configMap('a.yaml')], http: [configMap(atUrl)] }
    expect(merge({ ...given, rules: allowingUrl() })).toEqual({
      file: ['Secret/default/tls < a.yaml', 'ConfigMap/default/settings < a.yaml'],
      http: [`ConfigMap/default/settings < ${atUrl}`, 'Secret/default/tls < a.yaml'],
      problems: [],
    })
  })

  it('of one name are a problem within a source, whatever another one has', () => {
    const given = { file: [secret('a.yaml'), secret('b.yaml')], http: [secret(atUrl)] }
    expect(merge(given)).toEqual({
      file: ['Secret/default/tls < a.yaml'],
      http: [`Secret/default/tls < ${atUrl}`],
      problems: ['Secret/default/tls in b.yaml'],
    })
  })

  it.each([
    ['the first source’s', undefined, 'a.yaml', atUrl],
    ['that of the source whose data it holds', { source: 'http' as const }, atUrl, 'a.yaml'],
  ])('of one name are one claim: %s', (_what, incumbent, stays, goes) => {
    const merged = merge({
      file: [claim('a.yaml')],
      http: [claim(atUrl)],
      ...(incumbent === undefined ? {} : { incumbent }),
    })
    expect([...merged.file, ...merged.http]).toEqual([`PersistentVolumeClaim/default/data < ${stays}`])
    expect(merged.problems).toEqual([`PersistentVolumeClaim/default/data in ${goes}`])
  })
})

describe('several sources of one kind', () => {
  it('have objects of their own', () => {
    expect(merge({ edge: [secret('e.yaml')], site: [secret('s.yaml'), configMap('s.yaml')] })).toMatchObject({
      edge: ['Secret/default/tls < e.yaml'],
      site: ['Secret/default/tls < s.yaml', 'ConfigMap/default/settings < s.yaml'],
      problems: [],
    })
  })

  it("read each other's where the policies of their kind say so", () => {
    const file = { readsObjectsOf: ['file'] as const, givesClusterObjects: true }
    const rules = { ...plainObjectRules, policies: { ...defaultObjectPolicies, file } }
    expect(merge({ edge: [secret('e.yaml')], site: [configMap('s.yaml')], rules })).toMatchObject({
      edge: ['Secret/default/tls < e.yaml', 'ConfigMap/default/settings < s.yaml'],
      site: ['ConfigMap/default/settings < s.yaml', 'Secret/default/tls < e.yaml'],
      http: [],
    })
  })

  it('compete for classes by the order of the list', () => {
    expect(merge({ edge: [runtimeClass('e.yaml')], site: [runtimeClass('s.yaml', 'runsc')] })).toMatchObject({
      edge: ['RuntimeClass/gvisor < e.yaml'],
      http: ['RuntimeClass/gvisor < e.yaml'],
      problems: ['RuntimeClass/gvisor in s.yaml'],
    })
  })
})
