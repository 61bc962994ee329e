import type { ServedKind } from '../../api/kinds/served-kind.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { Listing } from '../arguments/verb.ts'

export interface ObjectListingOptions {
  readonly withNamespace: boolean
  readonly nowMs: number
  /** Whether a single requested object is shown without a list in JSON and YAML. */
  readonly isSingle: boolean
}

/** A listing of objects of one kind with its columns, in the given order. */
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
