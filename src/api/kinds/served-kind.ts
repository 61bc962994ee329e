import { readVerbs } from './api-resource.ts'
import type { ApiResource, ApiSubresource } from './api-resource.ts'
import type { ResourceObject } from '../resource.ts'
import type { ServedResources } from './served-resources.ts'

/** A column of a kind's table. */
export interface KindColumn {
  readonly title: string
  /** Only with `-o wide`. */
  readonly wide?: boolean
}

/** One kind that the API serves and the command line shows. */
export interface ServedKind {
  /** In paths, and for the command line. */
  readonly resource: keyof ServedResources
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly apiVersion: string
  readonly kind: string
  readonly listKind: string
  readonly namespaced: boolean
  /** What may be done to objects of the kind, in Kubernetes' words. */
  readonly verbs: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly ApiSubresource[]
  /** Its objects go away when they are old: that is no news. */
  readonly expires: boolean
  /** Below which the form for tables is served: podd's own where the objects hold what no table may. */
  readonly tableRoot: string
  /** Of its paths: `/api/v1`, or `/apis/GROUP/VERSION`. */
  readonly root: string
  /** What a field selector may name beside `metadata.name` and `metadata.namespace`. */
  readonly fields: Readonly<Record<string, (object: ResourceObject) => string>>
  readonly columns: readonly KindColumn[]
  /** A cell for each column. */
  cells(object: ResourceObject, nowMs: number): readonly string[]
}

/** A kind as its routes need it: also one that is made of the objects of another kind. */
export interface RoutedKind extends Omit<ServedKind, 'resource'> {
  readonly resource: string
}

/** What an entry says; what is left out is as with most kinds. */
export interface KindEntry<T extends ResourceObject>
  extends
    Pick<ServedKind, 'resource' | 'singular' | 'shortNames' | 'kind'>,
    Partial<
      Pick<
        ServedKind,
        'apiVersion' | 'namespaced' | 'expires' | 'tableRoot' | 'verbs' | 'categories' | 'subresources'
      >
    > {
  readonly fields?: Readonly<Record<string, (object: T) => string>>
  readonly columns: readonly (KindColumn & { cell(object: T, nowMs: number): string })[]
}

export function servedKind<T extends ResourceObject>(entry: KindEntry<T>): ServedKind {
  const isOfKind = (object: ResourceObject): object is T => object.kind === entry.kind
  const { fields = {}, columns } = entry
  const apiVersion = entry.apiVersion ?? 'v1'
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  return {
    apiVersion,
    root,
    namespaced: true,
    expires: false,
    tableRoot: root,
    verbs: readVerbs,
    categories: [],
    subresources: [],
    ...entry,
    listKind: `${entry.kind}List`,
    fields: Object.fromEntries(
      Object.entries(fields).map(([field, read]) => [
        field,
        (object: ResourceObject) => (isOfKind(object) ? read(object) : ''),
      ]),
    ),
    columns,
    cells: (object, nowMs) => (isOfKind(object) ? columns.map((column) => column.cell(object, nowMs)) : []),
  }
}

/** The kind as discovery shows it. */
export function toApiResource(kind: RoutedKind): ApiResource {
  const [version = '', group = ''] = kind.apiVersion.split('/').toReversed()
  const { resource, singular, namespaced, verbs, shortNames, categories, subresources } = kind
  const names = { resource, singular, kind: kind.kind, namespaced }
  return { group, version, ...names, verbs, shortNames, categories, subresources }
}
