import type { Json, JsonObject } from '../../src/base/json.ts'

/** One document that podd and the API server are both asked about. */
export interface JudgedDocument {
  /** Unique; says where it comes from. */
  readonly name: string
  readonly value: JsonObject
}

/** One text of YAML or JSON, for what is lost in an object: escapes, tags, line ends. */
export interface JudgedText {
  readonly name: string
  readonly text: string
}

export const container: JsonObject = { name: 'a', image: 'registry.example/app:1' }

export function pod(spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', ...metadata },
    spec: { containers: [container], ...spec },
  }
}

export function podWith(fields: JsonObject, spec: JsonObject = {}): JsonObject {
  return pod({ ...spec, containers: [{ ...container, ...fields }] })
}

/** A pod with one volume `v`, which its container mounts at `/v`. */
export function podWithVolume(volume: Json, mount: JsonObject = {}): JsonObject {
  const volumes = [{ name: 'v', ...(volume as JsonObject) }]
  return podWith({ volumeMounts: [{ name: 'v', mountPath: '/v', ...mount }] }, { volumes })
}

/** Documents of a table, each named after its place in it. */
export function numbered(
  what: string,
  rows: readonly JsonObject[],
  build: (row: JsonObject) => JsonObject,
): readonly JudgedDocument[] {
  return rows.map((row, index) => ({ name: `${what}-${index}`, value: build(row) }))
}
