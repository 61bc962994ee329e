/*
 * ReplicaSets and ControllerRevisions, as far as `kubectl rollout history` and `undo` read them: podd has none, and shows one
 * for each template that is kept of a workload, by the revisions of its unit.
 */
import type { WorkloadObject, WorkloadRevisionObject } from '../../api/cluster-objects.ts'
import { formatTime } from '../../base/clock.ts'
import { canonicalJson, jsonAt, objectOrEmpty, textEntries } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { isObjectDocument } from '../../pod/objects/document.ts'
import type { SourceDocument } from '../../pod/objects/document.ts'
import { uuidOfText } from '../../pod/values/hash.ts'
import { revisionName } from './workload-status.ts'

/** A revision of a workload's unit, with what that consists of. */
interface UnitRevision {
  readonly number: number
  /** Wall milliseconds. */
  readonly atMs: number
  readonly documents: readonly SourceDocument[]
  /** Clients wrote it over the API, and read it as they wrote it. */
  readonly isWritten?: boolean | undefined
}

/** A template of a workload, and the newest revision that has it. */
interface TemplateRevision {
  readonly number: number
  readonly atMs: number
  readonly template: Json
  /** The workload's, as they were then. */
  readonly annotations: Readonly<Record<string, string>>
}

function templatesOf(
  { kind, metadata: { name, namespace }, spec }: WorkloadObject,
  revisions: readonly UnitRevision[],
): readonly TemplateRevision[] {
  const found = new Map<string, TemplateRevision>()
  for (const { number, atMs, documents, isWritten } of revisions) {
    const document = documents.find(
      (each) =>
        isObjectDocument(each) &&
        each.object.kind === kind &&
        each.object.metadata.name === name &&
        each.object.metadata.namespace === namespace,
    )
    const template = document && jsonAt(document.manifest, 'spec', 'template')
    if (document === undefined || template === undefined) continue
    const annotations = textEntries(jsonAt(document.manifest, 'metadata', 'annotations'))
    // One that is wanted again is the newest again, as in a cluster.
    const shown = isWritten === true ? (spec['template'] ?? template) : template
    found.set(canonicalJson(template), { number, atMs, template: shown, annotations })
  }
  return [...found.values()].toSorted((a, b) => a.number - b.number)
}

const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/**
 * One object for each template (`pkg/controller/deployment/util` and `pkg/controller/history`, 1.36): a ReplicaSet of a
 * Deployment, a ControllerRevision of the others.
 */
export function deriveRevisions(
  workload: WorkloadObject,
  revisions: readonly UnitRevision[],
): readonly WorkloadRevisionObject[] {
  const { apiVersion, kind, metadata, spec, status } = workload
  const templates = templatesOf(workload, revisions)
  const current = canonicalJson(spec['template'] ?? null)
  const count = (key: string): number => {
    const value = status[key]
    return typeof value === 'number' ? value : 0
  }
  const isCurrent = ({ template }: TemplateRevision): boolean => canonicalJson(template) === current
  const before = templates.findLast((each) => !isCurrent(each))
  return templates.map((each) => {
    const { [lastApplied]: _applied, ...annotations } = each.annotations
    const name = revisionName(metadata.name, each.template)
    const { name: ownerName, uid } = { name: metadata.name, uid: metadata.uid }
    const meta = {
      name,
      namespace: metadata.namespace,
      uid: uuidOfText(JSON.stringify([uid, name])),
      creationTimestamp: formatTime(each.atMs),
      labels: textEntries(jsonAt(each.template, 'metadata', 'labels')),
      annotations: {
        ...annotations,
        ...(kind === 'Deployment' && { 'deployment.kubernetes.io/revision': String(each.number) }),
      },
      ownerReferences: [
        { apiVersion, kind, name: ownerName, uid, controller: true, blockOwnerDeletion: true } as const,
      ],
    }
    if (kind !== 'Deployment')
      return {
        apiVersion: 'apps/v1',
        kind: 'ControllerRevision',
        metadata: meta,
        revision: each.number,
        data: { spec: { template: { ...objectOrEmpty(each.template), $patch: 'replace' } } },
      }
    const updated = count('updatedReplicas')
    const replicas = isCurrent(each) ? updated : each === before ? count('replicas') - updated : 0
    const ready = isCurrent(each) ? Math.min(replicas, count('readyReplicas')) : 0
    return {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { ...meta, generation: 1 },
      spec: {
        replicas: isCurrent(each) ? count('replicas') : replicas,
        selector: objectOrEmpty(spec['selector']),
        template: each.template,
      } satisfies JsonObject,
      status: { replicas, fullyLabeledReplicas: replicas, readyReplicas: ready, availableReplicas: ready },
    }
  })
}
