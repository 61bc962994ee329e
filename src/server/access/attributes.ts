import { booleanParam } from '../requests/query.ts'
/** What a request wants, in the words of Kubernetes' authorizers. */
export interface Attributes {
  /**
   * `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for a path that is not a
   * resource's, the method in lower case.
   */
  readonly verb: string
  /** Undefined for a path that is not a resource's. */
  readonly resource: ResourceAttributes | undefined
  readonly path: string
}

export interface ResourceAttributes {
  /** Empty: the core group. podd's own paths are the group `podd.dev`. */
  readonly group: string
  readonly version: string
  readonly resource: string
  /** Empty for the object itself. */
  readonly subresource: string
  /** Empty: all, or the resource has none. */
  readonly namespace: string
  /** Empty: a collection. */
  readonly name: string
}

const namedVerbs: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

/** Subresources of a namespace, as opposed to resources in it. */
const namespaceSubresources: readonly string[] = ['status', 'finalize']

/**
 * Reads what a request wants from its method and path (`apiserver/pkg/endpoints/request/requestinfo.go`, 1.36).
 * @param segments the path's, decoded, without the empty one before the first slash
 */
export function readAttributes(
  method: string,
  path: string,
  segments: readonly string[],
  query: URLSearchParams,
): Attributes {
  const found = readResource(segments)
  if (found === undefined) return { verb: method.toLowerCase(), resource: undefined, path }
  return { verb: verbOf(method, found, query), resource: found, path }
}

function readResource(segments: readonly string[]): ResourceAttributes | undefined {
  const [root, first = '', second = '', ...rest] = segments
  if (root === 'api') return readBelow({ group: '', version: first }, segments.slice(2))
  if (root === 'apis') return readBelow({ group: first, version: second }, rest)
  if (root === 'podd' && first === 'v1' && isPoddResource(second))
    return readBelow({ group: 'podd.dev', version: first }, segments.slice(2))
  return undefined
}

/** podd's own paths that show or change Kubernetes' objects. */
function isPoddResource(segment: string): boolean {
  return segment === 'namespaces' || segment === 'secrets'
}

function readBelow(
  root: Pick<ResourceAttributes, 'group' | 'version'>,
  segments: readonly string[],
): ResourceAttributes | undefined {
  const [first = '', second = '', third = ''] = segments
  if (first === '') return undefined
  const isNamespaced = first === 'namespaces' && third !== '' && !namespaceSubresources.includes(third)
  const [resource = '', name = '', subresource = ''] = isNamespaced ? segments.slice(2) : segments
  const namespace = first === 'namespaces' ? second : ''
  return { ...root, resource, subresource, namespace, name }
}

function verbOf(method: string, { name }: ResourceAttributes, query: URLSearchParams): string {
  const verb = namedVerbs[method] ?? method.toLowerCase()
  if (name !== '') return verb
  if (verb === 'get') return booleanParam(query, 'watch') ? 'watch' : 'list'
  return verb === 'delete' ? 'deletecollection' : verb
}
