import { describe, expect, it } from 'vitest'
import {
  diffDocuments,
  mergeSnapshots,
  renamedPodProblem,
  renamePod,
  summarizePending,
} from '../../../../src/decide/sources/merge-snapshots.ts'
import type {
  Place,
  PodDocument,
  SourceDocument,
  SourceSnapshot,
} from '../../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../../src/pod/objects/local-object.ts'
import { podFromManifest } from '../../../../src/pod/schema/default-pod.ts'
import type { SourceName } from '../../../../src/pod/values/ids.ts'
import { plainObjectRules } from '../../../support/object-rules.ts'

function document(name: string, place: Place): PodDocument {
  const manifest = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'busybox' }] },
  }
  return { pod: podFromManifest(manifest), manifest, place }
}

function snapshot(source: SourceName, ...pods: PodDocument[]): SourceSnapshot {
  return { source, location: source, ready: true, pods, objects: [], problems: [] }
}

function resolve(
  snapshots: readonly SourceSnapshot[],
  incumbent?: { readonly source: SourceName; readonly path: string },
) {
  const { wanted, problems } = mergeSnapshots(
    snapshots,
    (key) => (key === 'default/web' ? incumbent : undefined),
    plainObjectRules,
  )
  return {
    desired: [...wanted.values()].map(
      ({ source, document: { pod, place } }) => `${source} ${place.path} ${pod.metadata.name}`,
    ),
    problems,
  }
}

const inB = document('web', { path: 'b.yaml', line: 1 })
const inA = document('web', { path: 'a.yaml', line: 1 })
const inALater = document('web', { path: 'a.yaml', line: 9 })
const atUrl = document('web', { path: 'http://host/pods', line: 4 })

describe('mergeSnapshots', () => {
  it('leaves objects that stand in one place alone', () => {
    const other = document('db', { path: 'b.yaml' })
    expect(resolve([snapshot('file', inA, other)])).toEqual({
      desired: ['file a.yaml web', 'file b.yaml db'],
      problems: [],
    })
  })

  it.each([
    ['the order of the paths', [snapshot('file', inA, inB)], undefined, 'file a.yaml web'],
    ['the order of the lines', [snapshot('file', inA, inALater)], undefined, 'file a.yaml web'],
    [
      'the order of the sources',
      [snapshot('file', inB), snapshot('http', atUrl)],
      undefined,
      'file b.yaml web',
    ],
    ['the incumbent', [snapshot('file', inA, inB)], { source: 'file', path: 'b.yaml' }, 'file b.yaml web'],
    [
      'the incumbent of another source',
      [snapshot('file', inA), snapshot('http', atUrl)],
      { source: 'http', path: 'http://host/pods' },
      'http http://host/pods web',
    ],
    [
      'the order again once the incumbent is gone',
      [snapshot('file', inA, inB)],
      { source: 'file', path: 'gone.yaml' },
      'file a.yaml web',
    ],
  ] as const)('goes by %s', (_what, snapshots, incumbent, expected) => {
    const { desired, problems } = resolve(snapshots, incumbent)
    expect(desired).toEqual([expected])
    expect(problems).toHaveLength(1)
  })

  it('names both places, and keeps what the sources say is wrong', () => {
    const own = { severity: 'error', place: { path: 'c.yaml' }, message: 'bad' } as const
    const { problems } = resolve([{ ...snapshot('file', inA, inB), problems: [own] }])
    expect(problems).toMatchObject([own, { place: { path: 'b.yaml', line: 1 }, object: 'default/web' }])
    expect(problems[1]?.message).toContain('a.yaml')
  })
})

function pod(name: string, image: string, path = '/etc/pods/a.yaml'): SourceDocument {
  const spec = { containers: [{ name: 'main', image }] }
  const manifest = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }
  return { pod: podFromManifest(manifest), manifest, place: { path } }
}

function settings(data: Readonly<Record<string, string>>): SourceDocument {
  const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data }
  return { object: objectFromManifest(manifest), manifest, place: { path: '/etc/pods/a.yaml' } }
}

describe('what a held source would change', () => {
  it.each([
    ['nothing', [pod('web', 'a')], [pod('web', 'a')], ''],
    ['another place alone', [pod('web', 'a')], [pod('web', 'a', '/etc/pods/b.yaml')], ''],
    ['another image', [pod('web', 'a')], [pod('web', 'b')], '1 changed'],
    ['another pod in its place', [pod('web', 'a')], [pod('api', 'a')], '1 added, 1 removed'],
    ['all', [pod('web', 'a'), pod('api', 'a')], [], '2 removed'],
    ['values of an object', [settings({ a: '1' })], [settings({ a: '2' })], '1 changed'],
  ])('%s', (_title, held, given, summary) => {
    expect(summarizePending(diffDocuments(held, given))).toBe(summary)
  })

  it('names the objects with their kinds, in order', () => {
    expect(diffDocuments([pod('web', 'a')], [settings({}), pod('b', 'a'), pod('a', 'a')])).toEqual({
      added: ['ConfigMap default/settings', 'Pod default/a', 'Pod default/b'],
      changed: [],
      removed: ['Pod default/web'],
    })
  })
})

describe('renamePod', () => {
  it('adds the suffix to the name in the pod and in its manifest, and leaves the rest as it is', () => {
    const given = document('web', { path: 'a.yaml' })
    const manifest = { ...given.manifest, metadata: { name: 'web', labels: { app: 'web' } } }
    const renamed = renamePod({ ...given, pod: podFromManifest(manifest), manifest }, '-node1')
    expect(renamed.pod.metadata).toMatchObject({ name: 'web-node1', labels: { app: 'web' } })
    expect(renamed.manifest).toEqual({ ...manifest, metadata: { name: 'web-node1', labels: { app: 'web' } } })
    expect(renamed.place).toEqual({ path: 'a.yaml' })
  })

  it('says where a name is too long with the suffix', () => {
    const fitting = renamePod(document('web', { path: 'a.yaml' }), '-node1')
    expect(renamedPodProblem(fitting, '-node1')).toBeUndefined()
    const long = renamePod(document('w'.repeat(240), { path: 'a.yaml' }), '-node1')
    expect(renamedPodProblem(long, '-node1')).toMatchObject({
      severity: 'error',
      place: { path: 'a.yaml' },
      field: 'metadata.name',
      message: expect.stringContaining('with the suffix "-node1" of podNameSuffix'),
    })
  })
})
