import { describe, expect, it } from 'vitest'
import { diffDocuments, summarizePending } from '../../../src/decide/sources/merge-snapshots.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import type { SourceDocument } from '../../../src/pod/objects/document.ts'
import { objectFromManifest } from '../../../src/pod/objects/local-object.ts'

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
