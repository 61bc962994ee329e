import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'
import { defaultManifest } from './default-manifest.ts'

/** podd's own annotations, which are not kept from clients. */
const ownAnnotations: readonly string[] = ['podd.dev/source', 'podd.dev/path']

export function isOwnAnnotation(key: string): boolean {
  return ownAnnotations.includes(key)
}

/** Metadata that only the server sets (`apiserver/pkg/registry/rest`: create.go, update.go, 1.36). */
const serverFields = [
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
] as const

export interface NewObject {
  readonly kind: string
  readonly apiVersion: string
  readonly name: string
  /** Undefined where the kind belongs to none. */
  readonly namespace: string | undefined
  readonly uid: string
  /** RFC 3339, in whole seconds. */
  readonly creationTimestamp: string
}

/** The kept form of a new object: named, with its defaults, without its status. */
export function prepareNew(given: JsonObject, fresh: NewObject): JsonObject {
  const { uid, creationTimestamp, kind, apiVersion, name, namespace } = fresh
  const { status: _status, ...manifest } = given
  const metadata = {
    ...withoutServerFields(metadataOf(given)),
    name,
    ...(namespace === undefined ? {} : { namespace }),
    uid,
    creationTimestamp,
    ...(kind === 'PodTemplate' && { generation: 1 }),
  }
  return defaultManifest({ ...withoutNulls(manifest), apiVersion, kind, metadata })
}

/** The kept form of an updated object: fields that belong to the server stay. */
export function prepareUpdate(before: JsonObject, given: JsonObject): JsonObject {
  const { status: _status, ...manifest } = given
  const kept = metadataOf(before)
  const own = Object.fromEntries(
    [...serverFields, 'name', 'namespace', 'generateName'].flatMap((key) =>
      kept[key] === undefined ? [] : [[key, kept[key]]],
    ),
  )
  const next = {
    ...withoutNulls(manifest),
    apiVersion: before['apiVersion'] ?? null,
    kind: before['kind'] ?? null,
    metadata: { ...withoutServerFields(metadataOf(given)), ...own },
    ...(before['status'] === undefined ? {} : { status: before['status'] }),
  }
  return withPolicyOf(before, withGeneration(before, defaultManifest(next)))
}

/**
 * A changed template increments the generation (`pkg/registry/core/podtemplate/strategy.go`, PrepareForUpdate, 1.36).
 */
function withGeneration(before: JsonObject, after: JsonObject): JsonObject {
  const { generation } = metadataOf(before)
  if (after['kind'] !== 'PodTemplate' || typeof generation !== 'number') return after
  if (sameData(before['template'], after['template'])) return after
  return { ...after, metadata: { ...metadataOf(after), generation: generation + 1 } }
}

/** The preemption policy set by admission stays where an update omits it (`plugin/pkg/admission/priority`, 1.36). */
function withPolicyOf({ spec: before }: JsonObject, after: JsonObject): JsonObject {
  const { spec } = after
  const kept = isJsonObject(before) ? before['preemptionPolicy'] : undefined
  if (kept === undefined || !isJsonObject(spec) || spec['preemptionPolicy'] !== undefined) return after
  return { ...after, spec: { ...spec, preemptionPolicy: kept } }
}

export function metadataOf(manifest: JsonObject): JsonObject {
  const { metadata } = manifest
  return isJsonObject(metadata) ? metadata : {}
}

function withoutServerFields(metadata: JsonObject): JsonObject {
  const left: readonly string[] = [...serverFields, 'resourceVersion', 'selfLink', 'annotations']
  const kept = Object.entries(metadata).filter(([key, value]) => !left.includes(key) && value !== null)
  const { annotations } = metadata
  const shown = isJsonObject(annotations)
    ? Object.entries(annotations).filter(([key]) => !isOwnAnnotation(key))
    : []
  return {
    ...Object.fromEntries(kept),
    ...(shown.length > 0 && { annotations: Object.fromEntries(shown) }),
  }
}

/**
 * Removes nulls at any depth: in a manifest they mean an absent field. In a map of strings they would mean an empty
 * one, which no client sends.
 */
function withoutNulls(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).flatMap(([key, value]) => (value === null ? [] : [[key, cleaned(value)]])),
  )
}

function cleaned(value: Json): Json {
  if (Array.isArray(value)) return value.map((item: Json) => cleaned(item))
  return isJsonObject(value) ? withoutNulls(value) : value
}

/** The characters of a generated suffix: neither vowels nor similar ones (`apimachinery/pkg/util/rand`, 1.36). */
const suffixLetters = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5
/** The longest name, less the suffix (`apiserver/pkg/storage/names`, 1.36). */
const longestBase = 63 - suffixLength

/** A name from `generateName`. */
export function generateName(base: string, random: () => number): string {
  const letters = Array.from(
    { length: suffixLength },
    () => suffixLetters[Math.floor(random() * suffixLetters.length)] ?? 'x',
  )
  return `${base.slice(0, longestBase)}${letters.join('')}`
}
