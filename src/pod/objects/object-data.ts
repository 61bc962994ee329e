import type { ConfigMap, Secret } from '../schema/object-schema.ts'

/**
 * The files of a ConfigMap or Secret: key to content. A Secret's stringData wins over its data, as it does
 * where an API server merges them (`pkg/registry/core/secret/strategy.go`, 1.36).
 */
export function objectData(object: ConfigMap | Secret): ReadonlyMap<string, Buffer> {
  const base64 = object.kind === 'Secret' ? object.data : object.binaryData
  const text = object.kind === 'Secret' ? object.stringData : object.data
  return new Map([
    ...Object.entries(base64).map(([key, value]) => [key, Buffer.from(value, 'base64')] as const),
    ...Object.entries(text).map(([key, value]) => [key, Buffer.from(value)] as const),
  ])
}
