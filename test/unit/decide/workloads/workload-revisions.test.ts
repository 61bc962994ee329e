import { describe, expect, it } from 'vitest'
import type { WorkloadObject } from '../../../../src/api/cluster-objects.ts'
import type { JsonObject } from '../../../../src/base/json.ts'
import { deriveRevisions } from '../../../../src/decide/workloads/workload-revisions.ts'
import { objectFromManifest } from '../../../../src/pod/objects/local-object.ts'

const template = (image: string) => ({
  metadata: { labels: { app: 'web', image } },
  spec: { containers: [{ name: 'main', image }] },
})

/** A document of a workload, as its source gave it. */
function given(image: string, metadata: JsonObject = {}, kind: WorkloadObject['kind'] = 'Deployment') {
  const manifest = {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: 'web', namespace: 'default', ...metadata },
    spec: { selector: { matchLabels: { app: 'web' } }, template: template(image) },
  }
  return { object: objectFromManifest(manifest), manifest, place: { path: 'web.yaml' } }
}

const revision = (number: number, ...documents: readonly ReturnType<typeof given>[]) => ({
  number,
  atMs: number * 1000,
  documents,
})

function shown(
  revisions: Parameters<typeof deriveRevisions>[1],
  status: JsonObject = {},
  kind: WorkloadObject['kind'] = 'Deployment',
) {
  const workload: WorkloadObject = {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: 'web', namespace: 'default', uid: 'u', generation: 1 },
    spec: { selector: { matchLabels: { app: 'web' } }, template: template('web:2') },
    status,
  }
  return deriveRevisions(workload, revisions)
}

const imageOf = (object: ReturnType<typeof shown>[number]): string | undefined =>
  object.metadata.name && JSON.stringify(object).match(/"image":"(web:\d)"\}\]/u)?.[1]

describe('the revisions of a workload', () => {
  it('are one for each template, in the order in which each was wanted last', () => {
    const all = shown([revision(1, given('web:1')), revision(2, given('web:2')), revision(3, given('web:1'))])
    expect(all.map((each) => [imageOf(each), each.metadata.creationTimestamp])).toEqual([
      ['web:2', '1970-01-01T00:00:02Z'],
      ['web:1', '1970-01-01T00:00:03Z'],
    ])
    expect(new Set(all.map(({ metadata }) => metadata.uid)).size).toBe(2)
    const unsorted = shown([revision(2, given('web:2')), revision(1, given('web:1'))])
    expect(unsorted.map((each) => imageOf(each))).toEqual(['web:1', 'web:2'])
  })

  it.each([
    ['of another name', given('web:1', { name: 'other' })],
    ['of another namespace', given('web:1', { namespace: 'other' })],
    ['of another kind', given('web:1', {}, 'DaemonSet')],
  ])('are of its own documents alone, not of one %s', (_what, other) => {
    const all = shown([revision(1, other), revision(2, other, given('web:2'))])
    expect(all.map((each) => imageOf(each))).toEqual(['web:2'])
  })

  it('are none of a document without a template', () => {
    const document = given('web:1')
    const documents = [{ ...document, manifest: { ...document.manifest, spec: {} } }]
    expect(shown([{ number: 1, atMs: 1000, documents }])).toEqual([])
  })

  it('have the annotations of their time, their number, and their workload as owner', () => {
    const annotations = {
      'kubernetes.io/change-cause': 'a new image',
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
    }
    const [object] = shown([revision(4, given('web:2', { annotations }))])
    expect(object?.metadata).toMatchObject({
      name: expect.stringMatching(/^web-[0-9a-f]{10}$/u),
      namespace: 'default',
      labels: { app: 'web', image: 'web:2' },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          name: 'web',
          uid: 'u',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    })
    expect(object?.metadata.annotations).toEqual({
      'kubernetes.io/change-cause': 'a new image',
      'deployment.kubernetes.io/revision': '4',
    })
  })

  it('are ControllerRevisions of a StatefulSet, with what undoing it takes', () => {
    const document = given('web:2', {}, 'StatefulSet')
    const [object] = shown([revision(4, document)], {}, 'StatefulSet')
    expect(object).toMatchObject({
      kind: 'ControllerRevision',
      revision: 4,
      data: { spec: { template: { ...template('web:2'), $patch: 'replace' } } },
    })
    expect(object?.metadata.annotations).toEqual({})
  })
})

/** Which pods each template has; the newest three of the workload's four are ready. */
describe('the ReplicaSets of a Deployment', () => {
  const revisions = [revision(1, given('web:0')), revision(2, given('web:1')), revision(3, given('web:2'))]
  const counts = (status: JsonObject) =>
    shown(revisions, status).map((object) =>
      object.kind === 'ReplicaSet'
        ? [object.spec['replicas'], object.status['replicas'], object.status['readyReplicas']]
        : [],
    )

  it('have all pods where all are of the newest template', () => {
    expect(counts({ replicas: 4, updatedReplicas: 4, readyReplicas: 3 })).toEqual([
      [0, 0, 0],
      [0, 0, 0],
      [4, 4, 3],
    ])
  })

  it('share them while pods are replaced: the others are of the template before', () => {
    expect(counts({ replicas: 4, updatedReplicas: 1, readyReplicas: 3 })).toEqual([
      [0, 0, 0],
      [3, 3, 0],
      [4, 1, 1],
    ])
  })

  it('have none where nothing is told of pods', () => {
    expect(counts({})).toEqual([
      [0, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
    ])
  })

  it('select as their Deployment does, and have its template', () => {
    const [object] = shown([revision(3, given('web:2'))])
    expect(object).toMatchObject({
      kind: 'ReplicaSet',
      spec: { selector: { matchLabels: { app: 'web' } }, template: template('web:2') },
    })
  })
})
