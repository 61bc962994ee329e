import { dataOf } from '../kinds/config-data.ts'
import type { ConfigMap } from '../kinds/config-map.ts'
import type { Secret } from '../kinds/secret.ts'

/**
 * The files of a ConfigMap or Secret: key to content. A Secret's stringData wins over its data, as it does
 * where an API server merges them (`pkg/registry/core/secret/strategy.go`, 1.36).
 */
export function objectData(object: ConfigMap | Secret): ReadonlyMap<string, Buffer> {
  return object.kind === 'Secret'
    ? dataOf({ base64: object.data, text: object.stringData })
    : dataOf({ base64: object.binaryData, text: object.data })
}
