import type { IncomingHttpHeaders } from 'node:http'
import { ApiError } from '../requests/api-error.ts'
import { anonymous, authenticatedGroup, isAnonymous, mayDoAll } from '../requests/request.ts'
import { booleanParam } from '../requests/route.ts'
import type { Identity } from '../requests/request.ts'

/** What a request wants, in the words of Kubernetes' authorizers. */
interface Attributes {
  /**
   * `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for a path that is not a
   * resource's, the method in lower case.
   */
  readonly verb: string
  /** Undefined for a path that is not a resource's. */
  readonly resource: ResourceAttributes | undefined
  readonly path: string
}

interface ResourceAttributes {
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
  // Who may read a path may ask for its head.
  if (found === undefined)
    return { verb: method === 'HEAD' ? 'get' : method.toLowerCase(), resource: undefined, path }
  return { verb: verbOf(method, found, query), resource: found, path }
}

function readResource(segments: readonly string[]): ResourceAttributes | undefined {
  const [root, first = '', second = '', ...rest] = segments
  if (root === 'api') return readBelow({ group: '', version: first }, segments.slice(2))
  if (root === 'apis') return readBelow({ group: first, version: second }, rest)
  if (root === 'podd' && first === 'v1' && (second === 'namespaces' || second === 'secrets'))
    return readBelow({ group: 'podd.dev', version: first }, segments.slice(2))
  return undefined
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

/**
 * Authorizes a request: returns where the client may make it.
 * @throws ApiError Unauthorized for unknown clients, Forbidden for known ones, in an API server's words
 * (`apiserver/pkg/endpoints/handlers/responsewriters/errors.go`, 1.36)
 */
export function refuseAccess(identity: Identity, attributes: Attributes): void {
  if (mayDo(identity, attributes)) return
  if (isAnonymous(identity)) throw new ApiError(401, 'Unauthorized')
  const { verb, resource, path } = attributes
  const who = JSON.stringify(identity.name)
  if (resource === undefined)
    throw new ApiError(403, `forbidden: User ${who} cannot ${verb} path ${JSON.stringify(path)}`)
  const { group, name, namespace } = resource
  const full =
    resource.subresource === '' ? resource.resource : `${resource.resource}/${resource.subresource}`
  const what = group === '' ? resource.resource : `${resource.resource}.${group}`
  const place = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`
  throw new ApiError(
    403,
    `${what}${name === '' ? '' : ` ${JSON.stringify(name)}`} is forbidden: User ${who} cannot ${verb} resource ${JSON.stringify(full)} in API group ${JSON.stringify(group)} ${place}`,
    undefined,
    { ...(name !== '' && { name }), ...(group !== '' && { group }), kind: resource.resource },
  )
}

/** A role: everything; work with pods and what they refer to; or reading everything but Secrets. */
const roles = ['admin', 'edit', 'view'] as const

export type Role = (typeof roles)[number]

export function parseRole(text: string): Role | undefined {
  return roles.find((role) => role === text)
}

/** The group whose members have a role. */
export function groupOfRole(role: Role): string {
  return role === 'admin' ? 'system:masters' : `podd:${role}`
}

/** A rule of a role, as in Kubernetes' RBAC; `*` stands for all. */
interface ResourceRule {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  /** `pods/log` is a subresource. */
  readonly resources: readonly string[]
}

interface PathRule {
  readonly verbs: readonly string[]
  readonly nonResourceURLs: readonly string[]
}

export interface Rules {
  readonly resourceRules: readonly ResourceRule[]
  readonly nonResourceRules: readonly PathRule[]
}

const read = ['get', 'list', 'watch']
const write = ['create', 'delete', 'deletecollection', 'patch', 'update']

/** @param groups with `|` between them; empty: the core group */
function allow(verbs: readonly string[], groups: string, resources: string): ResourceRule {
  return { verbs, apiGroups: groups.split('|'), resources: resources.split(' ') }
}

function show(paths: string): PathRule {
  return { verbs: ['get'], nonResourceURLs: paths.split(' ') }
}

const anonymousRules: Rules = {
  resourceRules: [],
  // The files of the page hold nothing of the host, and a browser asks for them without a token.
  nonResourceRules: [show('/livez /readyz /ui /ui/* /version')],
}

/** Discovery and self-reviews. */
const authenticatedRules: Rules = {
  resourceRules: [
    allow(['create'], 'authorization.k8s.io', 'selfsubjectaccessreviews selfsubjectrulesreviews'),
    allow(['create'], 'authentication.k8s.io', 'selfsubjectreviews'),
  ],
  nonResourceRules: [
    show('/api /api/* /apis /apis/* /healthz /healthz/* /livez/* /openapi /openapi/* /readyz/*'),
  ],
}

const idleRules = 'clusterrolebindings clusterroles rolebindings roles'

/** No Secrets, and nothing that reveals their content. */
const viewRules: Rules = {
  resourceRules: [
    allow(
      read,
      '',
      'configmaps events namespaces namespaces/status nodes persistentvolumeclaims ' +
        'persistentvolumeclaims/status podtemplates pods pods/ephemeralcontainers pods/log ' +
        'pods/resize pods/status serviceaccounts services',
    ),
    allow(read, 'apiextensions.k8s.io', 'customresourcedefinitions'),
    allow(
      read,
      'apps',
      'controllerrevisions daemonsets deployments deployments/scale replicasets statefulsets statefulsets/scale',
    ),
    allow(read, 'batch', 'cronjobs jobs'),
    allow(read, 'coordination.k8s.io', 'leases'),
    allow(read, 'discovery.k8s.io', 'endpointslices'),
    allow(read, 'events.k8s.io', 'events'),
    allow(read, 'metrics.k8s.io', 'nodes pods'),
    allow(read, 'node.k8s.io', 'runtimeclasses'),
    allow(read, 'networking.k8s.io', 'ingressclasses'),
    allow(read, 'policy', 'poddisruptionbudgets'),
    allow(read, 'storage.k8s.io', 'storageclasses'),
    allow(read, 'rbac.authorization.k8s.io', idleRules),
    allow(read, 'scheduling.k8s.io', 'priorityclasses'),
    allow(['get'], 'podd.dev', 'pods/probes'),
  ],
  nonResourceRules: [
    show(
      '/podd/v1/images /podd/v1/images/archives /podd/v1/sources /podd/v1/status /podd/v1/units /podd/v1/usage',
    ),
    show('/configz /metrics /metrics/* /pods /runningpods /stats/summary'),
  ],
}

/** A client that may create pods may create a privileged one, which is equivalent to root on the host. */
const editRules: Rules = {
  resourceRules: [
    allow(read, '|podd.dev', 'secrets'),
    allow(
      write,
      '',
      'configmaps persistentvolumeclaims pods pods/ephemeralcontainers pods/resize podtemplates secrets ' +
        'serviceaccounts services',
    ),
    // They have no effect, and stand in files beside what has one.
    allow(write, 'rbac.authorization.k8s.io', idleRules),
    allow(write, 'policy', 'poddisruptionbudgets'),
    allow(write, 'apiextensions.k8s.io', 'customresourcedefinitions'),
    allow(write, 'networking.k8s.io', 'ingressclasses'),
    allow(write, 'storage.k8s.io', 'storageclasses'),
    allow(write, 'apps', 'daemonsets deployments deployments/scale statefulsets statefulsets/scale'),
    allow(write, 'batch', 'cronjobs jobs'),
    allow(write, 'coordination.k8s.io', 'leases'),
    allow(['create', 'patch', 'update'], '|events.k8s.io', 'events'),
    allow(['create'], '', 'pods/eviction'),
    allow(['create', 'get'], '|podd.dev', 'pods/attach pods/exec pods/portforward'),
    // Each method of a proxied request is a verb.
    allow([...read, ...write], '', 'pods/proxy'),
    allow(['create'], 'podd.dev', 'persistentvolumeclaims/purge pods/restart'),
  ],
  nonResourceRules: [],
}

const adminRules: Rules = {
  resourceRules: [allow(['*'], '*', '*')],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
}

export function rulesOf(identity: Identity): Rules {
  if (mayDoAll(identity)) return adminRules
  if (isAnonymous(identity)) return anonymousRules
  const has = (role: Role): boolean => identity.groups.includes(groupOfRole(role))
  const parts = [
    anonymousRules,
    authenticatedRules,
    ...(has('view') || has('edit') ? [viewRules] : []),
    ...(has('edit') ? [editRules] : []),
  ]
  return {
    resourceRules: parts.flatMap(({ resourceRules }) => resourceRules),
    nonResourceRules: parts.flatMap(({ nonResourceRules }) => nonResourceRules),
  }
}

export function mayDo(identity: Identity, { verb, resource, path }: Attributes): boolean {
  const { resourceRules, nonResourceRules } = rulesOf(identity)
  if (resource !== undefined) return resourceRules.some((rule) => coversResource(rule, verb, resource))
  return nonResourceRules.some(
    ({ verbs, nonResourceURLs }) =>
      covers(verbs, verb) && nonResourceURLs.some((pattern) => coversPath(pattern, path)),
  )
}

function coversResource(
  { verbs, apiGroups, resources }: ResourceRule,
  verb: string,
  { group, resource, subresource }: Pick<ResourceAttributes, 'group' | 'resource' | 'subresource'>,
): boolean {
  const full = subresource === '' ? resource : `${resource}/${subresource}`
  return covers(verbs, verb) && covers(apiGroups, group) && covers(resources, full)
}

function covers(list: readonly string[], one: string): boolean {
  return list.includes('*') || list.includes(one)
}

function coversPath(pattern: string, path: string): boolean {
  if (pattern === '*') return true
  return pattern.endsWith('/*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern
}

const serviceAccount = /^system:serviceaccount:(?<namespace>[^:]+):[^:]+$/u

/**
 * The identity that a request is authorized as: administrators may impersonate others, whom headers name
 * (`apiserver/pkg/endpoints/filters/impersonation/impersonation.go`, 1.36). Extra fields and the UID have no effect.
 * @throws ApiError Forbidden for clients that may not, BadRequest for groups without a user
 */
export function impersonate(identity: Identity, headers: IncomingHttpHeaders): Identity {
  const name = textOf(headers['impersonate-user'])
  const given = groupsOf(textOf(headers['impersonate-group']))
  if (name === '') {
    if (Object.keys(headers).some((key) => key.startsWith('impersonate-')))
      throw new ApiError(400, 'requested to impersonate without a user')
    return identity
  }
  refuse(identity, 'users', name)
  for (const group of given) refuse(identity, 'groups', group)
  if (name === anonymous.name) return anonymous
  const groups = [...new Set([...(given.length > 0 ? given : ownGroups(name)), authenticatedGroup])]
  return { name, groups, ...(identity.byToken === true && { byToken: true }) }
}

function refuse(identity: Identity, resource: 'users' | 'groups', name: string): void {
  const wanted = { group: '', version: 'v1', resource, subresource: '', namespace: '', name }
  refuseAccess(identity, { verb: 'impersonate', resource: wanted, path: '' })
}

/** The groups of a user for whom none are named. */
function ownGroups(name: string): readonly string[] {
  const namespace = serviceAccount.exec(name)?.groups?.['namespace']
  return namespace === undefined ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
}

/** Node joins a header that occurs several times. */
function groupsOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '')
}

function textOf(header: string | readonly string[] | undefined): string {
  return typeof header === 'string' ? header : (header ?? []).join(',')
}
