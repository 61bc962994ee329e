import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { withoutReadinessGates } from '../../decide/writing/check-object.ts'
import { decodeObject, decodePod } from '../../pod/decode/decode-pod.ts'
import { podFromManifest } from '../../pod/schema/default-pod.ts'
import { objectFromManifest } from '../../pod/objects/local-object.ts'
import { isObjectKind } from '../../pod/objects/object-kinds.ts'
import type { KeptObject, SourceDocument } from '../../pod/objects/document.ts'
import type { FieldProblem } from '../../pod/schema/issues.ts'

/** The identity of an object of the API. */
export interface ObjectName {
  readonly kind: string
  /** Empty where the kind belongs to none. */
  readonly namespace: string
  readonly name: string
}

/** An object that was written over the API, as it is kept. */
export interface KeptManifest extends ObjectName {
  readonly uid: string
  readonly manifest: JsonObject
  /** Its file. */
  readonly path: string
  /** Undefined for kinds that no pod refers to. */
  readonly document: SourceDocument | undefined
}

/** Undefined where a manifest lacks metadata that every object of the API has. */
export function nameOfManifest({ kind, metadata }: JsonObject): (ObjectName & { uid: string }) | undefined {
  if (typeof kind !== 'string' || !isJsonObject(metadata)) return undefined
  const { name, namespace = '', uid } = metadata
  if (typeof name !== 'string' || typeof namespace !== 'string' || typeof uid !== 'string') return undefined
  return { kind, namespace, name, uid }
}

/**
 * The document of a manifest that was valid when it was written and isn't by the rules of this version: its pod keeps
 * running. Undefined where it can't be decoded.
 */
export function recoverKept(manifest: JsonObject, path: string): SourceDocument | undefined {
  const own = withoutReadinessGates(manifest)
  const kept = keptOf(manifest)
  try {
    if (own['kind'] === 'Pod') return { pod: podFromManifest(own), manifest: own, place: { path }, kept }
    return { object: objectFromManifest(own), manifest: own, place: { path }, kept }
  } catch {
    // Its fields have other types than in this version.
    return undefined
  }
}

/** Decodes a manifest: the document for the sync loop, and the manifest's problems. */
export function decodeKept(
  manifest: JsonObject,
  path: string,
): { readonly document: SourceDocument | undefined; readonly problems: readonly FieldProblem[] } {
  const kept = keptOf(manifest)
  const place = { path }
  const { kind } = manifest
  if (kind === 'Pod') {
    const { accepted, problems } = decodePod(withoutReadinessGates(manifest), 'Warn')
    return { document: accepted && { ...accepted, place, kept }, problems }
  }
  if (!isObjectKind(kind)) return { document: undefined, problems: [] }
  const { accepted, problems } = decodeObject(kind, manifest, 'Warn')
  return { document: accepted && { ...accepted, place, kept }, problems }
}

function keptOf(manifest: JsonObject): KeptObject {
  const metadata = isJsonObject(manifest['metadata']) ? manifest['metadata'] : {}
  const { uid, creationTimestamp } = metadata
  const createdAtMs = typeof creationTimestamp === 'string' ? Date.parse(creationTimestamp) : Number.NaN
  return {
    uid: typeof uid === 'string' ? uid : '',
    createdAtMs: Number.isNaN(createdAtMs) ? 0 : createdAtMs,
    metadata,
  }
}
