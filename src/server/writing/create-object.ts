import { formatTime } from '../../base/clock.ts'
import { newUuid } from '../../base/random.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { generateName, metadataOf, prepareNew } from '../../decide/writing/prepare-object.ts'
import { ApiError, notFound } from '../requests/api-error.ts'
import { computeQosClass } from '../../pod/schema/pod-resources.ts'
import { decodePod } from '../../pod/decode/decode-pod.ts'
import { checkObject } from './check-object.ts'
import { podPriority } from './pod-priority.ts'
import type { PodPriority } from './pod-priority.ts'
import { withRuntimeClass } from './runtime-class.ts'
import { alreadyExists, invalid } from './write-errors.ts'
import type { WriteOptions } from './write-query.ts'
import { findShown, refuseOther } from './written-kind.ts'
import type { WrittenKind } from './written-kind.ts'

/** The result of a write. */
export interface Written {
  readonly object: unknown
  readonly status: 200 | 201
  readonly warnings: readonly string[]
}

/**
 * How often a generated name is retried while it is taken (`apiserver/pkg/registry/generic/registry/store.go`, 1.36).
 */
const mostDraws = 8

/**
 * Creates an object. Throws ApiError, or PoddError OBJECT_NOT_KEPT.
 * @param namespace from the path; empty for a kind without namespaces
 */
export function createObject(
  written: WrittenKind,
  given: JsonObject,
  { namespace, options }: { readonly namespace: string; readonly options: WriteOptions },
): Promise<Written> {
  return written.writer.exclusively(async () => {
    const { kind, writer, clock } = written
    refuseOther(kind, given, kind.namespaced ? { namespace } : {})
    if ((metadataOf(given)['resourceVersion'] ?? '') !== '')
      throw new ApiError(400, 'resourceVersion should not be set on objects to be created')
    const name = chooseName(written, given, namespace)
    if (kind.namespaced) refuseNamespace(written, namespace, name)
    const uid = newUuid()
    const prepared = prepareNew(given, {
      kind: kind.kind,
      apiVersion: kind.apiVersion,
      name,
      namespace: kind.namespaced ? namespace : undefined,
      uid,
      creationTimestamp: formatTime(clock.wallMs()),
    })
    const { manifest: checked, warnings } = checkObject(kind, prepared, options)
    const classed = withRuntimeClass(written, checked)
    const classes = kind.kind === 'Pod' ? podPriority(written, classed) : undefined
    const manifest = withPreemption(classed, classes)
    if (isTaken(written, { namespace, name })) throw alreadyExists(kind, name)
    if (options.dryRun) return { object: asFirstShown(manifest, classes?.priority), status: 201, warnings }
    await writer.put(manifest)
    if (kind.kind === 'Namespace') await writer.put(rootAuthority(manifest, name))
    const shown = written.reader.list().find(({ metadata }) => metadata.uid === uid)
    return { object: shown ?? manifest, status: 201, warnings }
  })
}

/** Throws ApiError where no object can be created in a namespace. */
function refuseNamespace({ kind, namespaces }: WrittenKind, namespace: string, name: string): void {
  const found = namespaces.list().find(({ metadata }) => metadata.name === namespace)
  if (found === undefined) throw notFound('namespaces', namespace)
  if (found.status.phase === 'Active') return
  throw new ApiError(
    403,
    `${kind.resource} ${JSON.stringify(name)} is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`,
    undefined,
    {
      name,
      kind: kind.resource,
      causes: [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    },
  )
}

/**
 * The ConfigMap that every namespace of a cluster has, and for which clients wait
 * (`pkg/controller/certificates/rootcacertpublisher`, 1.36). Pods get no tokens, so it names no authority.
 */
function rootAuthority({ metadata }: JsonObject, namespace: string): JsonObject {
  const { creationTimestamp = null } = isJsonObject(metadata) ? metadata : {}
  const name = 'kube-root-ca.crt'
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, uid: newUuid(), creationTimestamp },
    data: { 'ca.crt': '' },
  }
}

function chooseName(written: WrittenKind, given: JsonObject, namespace: string): string {
  const { name, generateName: base } = metadataOf(given)
  if (typeof name === 'string' && name !== '') return name
  if (typeof base !== 'string' || base === '') {
    throw invalid(written.kind, '', [
      {
        severity: 'error',
        path: ['metadata', 'name'],
        message: 'Required value: name or generateName is required',
        reason: 'FieldValueRequired',
      },
    ])
  }
  for (let draw = 0; draw < mostDraws; draw += 1) {
    const drawn = generateName(base, written.random)
    if (!isTaken(written, { namespace, name: drawn })) return drawn
  }
  throw new ApiError(409, `no free name was found for ${JSON.stringify(base)}: try again`)
}

function isTaken(
  written: WrittenKind,
  target: { readonly namespace: string; readonly name: string },
): boolean {
  const { kind, writer } = written
  return writer.get({ kind: kind.kind, ...target }) !== undefined || findShown(written, target) !== undefined
}

function withPreemption(manifest: JsonObject, classes: PodPriority | undefined): JsonObject {
  const { spec } = manifest
  if (classes === undefined || !isJsonObject(spec)) return manifest
  return { ...manifest, spec: { ...spec, preemptionPolicy: classes.preemptionPolicy } }
}

/** A dry run returns the object as it would be created. */
function asFirstShown(manifest: JsonObject, priority: number | undefined): JsonObject {
  const { metadata, spec } = manifest
  if (priority === undefined || !isJsonObject(spec)) return manifest
  const pod = decodePod(manifest, 'Warn').accepted?.pod
  return {
    ...manifest,
    metadata: { ...(isJsonObject(metadata) ? metadata : {}), generation: 1 },
    spec: { ...spec, priority },
    status: { phase: 'Pending', ...(pod !== undefined && { qosClass: computeQosClass(pod.spec) }) },
  }
}
