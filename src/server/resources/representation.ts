import type { ResourceObject } from '../../api/resource.ts'
import { columnsFor } from '../../api/served-kind.ts'
import type { RoutedKind } from '../../api/served-kind.ts'
import { ApiError } from '../requests/api-error.ts'

/** The content of a bookmark: an object of the kind with nothing but a revision. */
export interface Bookmark {
  readonly kind: string
  readonly apiVersion: string
  readonly metadata: { readonly resourceVersion: string }
}

/** How objects of one kind are encoded, in a list or alone. */
export interface Representation {
  /** Whether objects are encoded unchanged, so that all watchers share their lines. */
  readonly isPlain: boolean
  /** The list object; `field` holds the objects. */
  listHead(metadata: object): { readonly head: object; readonly field: 'items' | 'rows' }
  listItem(object: ResourceObject): unknown
  /** A single object: a response, or the object of a watch event. */
  single(object: ResourceObject): unknown
  /** A bookmark with this revision. */
  bookmark(bookmark: Bookmark): unknown
}

type Form = { readonly as: 'object' } | { readonly as: 'table' | 'metadata'; readonly version: string }

/**
 * The representation that a client accepts: the first that podd has, always as JSON
 * (`apiserver/pkg/endpoints/handlers/negotiation`, 1.36). Throws ApiError NotAcceptable or BadRequest.
 */
export function chooseRepresentation(
  kind: RoutedKind,
  accept: string | undefined,
  query: URLSearchParams,
  nowMs: () => number,
): Representation {
  const form = readForm(accept)
  if (form.as === 'object') return unchanged(kind)
  const apiVersion = `meta.k8s.io/${form.version}`
  if (form.as === 'metadata') return metadataAlone(apiVersion)
  const include = query.get('includeObject') ?? ''
  if (!['', 'None', 'Metadata', 'Object'].includes(include))
    throw new ApiError(400, `unrecognized includeObject value: ${JSON.stringify(include)}`)
  return asTable(kind, apiVersion, include === '' ? 'Metadata' : include, nowMs)
}

function readForm(accept: string | undefined): Form {
  const offers = (accept ?? '*/*').split(',').map((offer) => offer.split(';').map((part) => part.trim()))
  for (const [media = '', ...parameters] of offers) {
    if (!['application/json', 'application/*', '*/*', ''].includes(media.toLowerCase())) continue
    const valueOf = (name: string): string | undefined =>
      parameters.find((parameter) => parameter.startsWith(`${name}=`))?.slice(name.length + 1)
    const as = valueOf('as')
    const version = valueOf('v') ?? ''
    if (as === undefined) return { as: 'object' }
    if (valueOf('g') !== 'meta.k8s.io' || !['v1', 'v1beta1'].includes(version)) continue
    if (as === 'Table') return { as: 'table', version }
    if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList')
      return { as: 'metadata', version }
  }
  throw new ApiError(406, 'only the following media types are accepted: application/json')
}

function unchanged({ apiVersion, listKind }: RoutedKind): Representation {
  return {
    isPlain: true,
    listHead: (metadata) => ({ head: { apiVersion, kind: listKind, metadata }, field: 'items' }),
    listItem: (object) => object,
    single: (object) => object,
    bookmark: (bookmark) => bookmark,
  }
}

function metadataAlone(apiVersion: string): Representation {
  const partial = ({ metadata }: ResourceObject): object => toPartial(apiVersion, metadata)
  return {
    isPlain: false,
    listHead: (metadata) => ({ head: toPartial(apiVersion, metadata, 'List'), field: 'items' }),
    listItem: partial,
    single: partial,
    bookmark: ({ metadata }) => toPartial(apiVersion, metadata),
  }
}

function toPartial(apiVersion: string, metadata: object, of = ''): object {
  return { kind: `PartialObjectMetadata${of}`, apiVersion, metadata }
}

function asTable(kind: RoutedKind, apiVersion: string, include: string, nowMs: () => number): Representation {
  const columns = columnsFor('kubectl', kind)
  const row = (object: ResourceObject): object => {
    const conditions = kind.conditions(object)
    return {
      cells: columns.map((column) => column.cell(object, nowMs())),
      ...(conditions.length > 0 && { conditions }),
      object:
        include === 'Object' ? object : include === 'None' ? null : toPartial(apiVersion, object.metadata),
    }
  }
  const columnDefinitions = columns.map(({ name, type = 'string', description, wide = false }) => ({
    name,
    type,
    format: name === 'Name' ? 'name' : '',
    description,
    priority: wide ? 1 : 0,
  }))
  const head = (metadata: object): object => ({ kind: 'Table', apiVersion, metadata, columnDefinitions })
  return {
    isPlain: false,
    listHead: (metadata) => ({ head: head(metadata), field: 'rows' }),
    listItem: row,
    single: (object) => {
      const { resourceVersion } = object.metadata
      return { ...head({ resourceVersion }), rows: [row(object)] }
    },
    bookmark: ({ metadata }) => ({
      kind: 'Table',
      apiVersion,
      metadata: { resourceVersion: metadata.resourceVersion },
      columnDefinitions: null,
      rows: [{ cells: [], object: toPartial(apiVersion, metadata) }],
    }),
  }
}
