import type { ServedKind } from '../../api/served-kind.ts'
import type { ResourceObject } from '../../api/resource.ts'
import type { TableStyle } from '../arguments/table-flags.ts'
import type { Listing, PrintableObject } from '../arguments/verb.ts'

const poddGroup = 'podd.dev'

export interface ObjectListingOptions extends TableStyle {
  readonly withNamespace: boolean
  readonly nowMs: number
  /** Whether a single requested object is shown without a list in JSON and YAML. */
  readonly isSingle: boolean
}

/** A listing of objects of one kind with its columns, in the given order. */
export function listObjects(
  kind: ServedKind,
  objects: readonly ResourceObject[],
  { withNamespace: isAcrossAll, nowMs, isSingle, noHeaders, ...style }: ObjectListingOptions,
): Listing {
  const withNamespace = isAcrossAll && kind.namespaced
  const { labelColumns, showLabels, showKind } = style
  const named = showKind ? kind.columns.findIndex(({ title }) => title === 'NAME') : -1
  return {
    noHeaders,
    columns: [
      ...(withNamespace ? [{ title: 'NAMESPACE' }] : []),
      ...kind.columns,
      ...labelColumns.map((key) => ({ title: key.slice(key.lastIndexOf('/') + 1).toUpperCase() })),
      ...(showLabels ? [{ title: 'LABELS' }] : []),
    ],
    rows: objects.map((object) => [
      ...(withNamespace ? [object.metadata.namespace ?? ''] : []),
      ...kind.cells(object, nowMs).map((cell, at) => (at === named ? `${nameOfKind(kind)}/${cell}` : cell)),
      ...labelColumns.map((key) => object.metadata.labels?.[key] ?? ''),
      ...(showLabels ? [formatLabels(object)] : []),
    ]),
    objects,
    listKind: isSingle ? undefined : 'List',
  }
}

/** The list that kubectl shows objects in, whatever their kinds are (kubectl `cmd/get/get.go` printGeneric, 1.36). */
export function listOf(items: readonly PrintableObject[]): object {
  return { apiVersion: 'v1', items, kind: 'List', metadata: { resourceVersion: '' } }
}

/** As in `-o name`: the kind, with its group where that is one of Kubernetes'. */
export function nameOfKind({ kind, apiVersion = 'v1' }: Omit<PrintableObject, 'metadata'>): string {
  const [group = '', version] = apiVersion.split('/')
  return version === undefined || group === poddGroup ? kind.toLowerCase() : `${kind.toLowerCase()}.${group}`
}

function formatLabels({ metadata: { labels = {} } }: ResourceObject): string {
  const terms = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  return terms.toSorted().join(',') || '<none>'
}
