import type { ServedKind } from '../../api/kinds/served-kind.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { Listing } from '../arguments/verb.ts'

export interface ObjectListingOptions {
  readonly withNamespace: boolean
  readonly nowMs: number
  /** The one object that was asked for stands for itself in JSON and YAML. */
  readonly isSingle: boolean
}

/** Objects of one kind with its columns, in the order given. */
export function listObjects(
  kind: ServedKind,
  objects: readonly ResourceObject[],
  { withNamespace: isAcrossAll, nowMs, isSingle }: ObjectListingOptions,
): Listing {
  const withNamespace = isAcrossAll && kind.namespaced
  return {
    columns: [...(withNamespace ? [{ title: 'NAMESPACE' }] : []), ...kind.columns],
    rows: objects.map((object) => [
      ...(withNamespace ? [object.metadata.namespace ?? ''] : []),
      ...kind.cells(object, nowMs),
    ]),
    objects,
    listKind: isSingle ? undefined : kind.listKind,
  }
}
