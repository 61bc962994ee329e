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
  /** The verbs of the kind, as in Kubernetes. */
  readonly verbs: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly ApiSubresource[]
  /** Its objects expire: their removal is not reported to watchers. */
  readonly expires: boolean
  /** The root of paths that serve its tables: podd's own where the objects hold values that no table may show. */
  readonly tableRoot: string
  /** Of its paths: `/api/v1`, or `/apis/GROUP/VERSION`. */
  readonly root: string
  /** What a field selector may name beside `metadata.name` and `metadata.namespace`. */
  readonly fields: Readonly<Record<string, (object: ResourceObject) => string>>
  readonly columns: readonly KindColumn[]
  /** A cell for each column. */
  cells(object: ResourceObject, nowMs: number): readonly string[]
}

/** The part of a kind that its routes need; also for kinds derived from another one's objects. */
export interface RoutedKind extends Omit<ServedKind, 'resource'> {
  readonly resource: string
}

/** The entry of a kind; omitted fields have defaults. */
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
