import type { Identity } from '../requests/identity.ts'
import { isAnonymous, mayDoAll } from '../requests/identity.ts'
import type { Attributes, ResourceAttributes } from './attributes.ts'

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
export interface ResourceRule {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  /** `pods/log` is a subresource. */
  readonly resources: readonly string[]
}

export interface PathRule {
  readonly verbs: readonly string[]
  readonly nonResourceURLs: readonly string[]
}

export interface Rules {
  readonly resourceRules: readonly ResourceRule[]
  readonly nonResourceRules: readonly PathRule[]
}

const read = ['get', 'list', 'watch']
const write = ['create', 'delete', 'deletecollection', 'patch', 'update']

const anonymousRules: Rules = {
  resourceRules: [],
  // The files of the page hold nothing of the host, and a browser asks for them without a token.
  nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/livez', '/readyz', '/ui', '/ui/*', '/version'] }],
}

/** Discovery and self-reviews. */
const authenticatedRules: Rules = {
  resourceRules: [
    {
      verbs: ['create'],
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
    },
    { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
  ],
  nonResourceRules: [
    {
      verbs: ['get'],
      nonResourceURLs: [
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/healthz/*',
        '/livez/*',
        '/openapi',
        '/openapi/*',
        '/readyz/*',
      ],
    },
  ],
}

/** No Secrets, and nothing that reveals their content. */
const viewRules: Rules = {
  resourceRules: [
    {
      verbs: read,
      apiGroups: [''],
      resources: [
        'configmaps',
        'events',
        'namespaces',
        'namespaces/status',
        'nodes',
        'persistentvolumeclaims',
        'persistentvolumeclaims/status',
        'podtemplates',
        'pods',
        'pods/ephemeralcontainers',
        'pods/log',
        'pods/resize',
        'pods/status',
        'serviceaccounts',
        'services',
      ],
    },
    { verbs: read, apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'] },
    { verbs: read, apiGroups: ['coordination.k8s.io'], resources: ['leases'] },
    { verbs: read, apiGroups: ['events.k8s.io'], resources: ['events'] },
    { verbs: read, apiGroups: ['metrics.k8s.io'], resources: ['nodes', 'pods'] },
    { verbs: read, apiGroups: ['node.k8s.io'], resources: ['runtimeclasses'] },
    { verbs: read, apiGroups: ['scheduling.k8s.io'], resources: ['priorityclasses'] },
    { verbs: ['get'], apiGroups: ['podd.dev'], resources: ['pods/probes'] },
  ],
  nonResourceRules: [
    {
      verbs: ['get'],
      nonResourceURLs: [
        '/podd/v1/images',
        '/podd/v1/images/archives',
        '/podd/v1/sources',
        '/podd/v1/status',
        '/podd/v1/usage',
      ],
    },
    {
      verbs: ['get'],
      nonResourceURLs: ['/configz', '/metrics', '/metrics/*', '/pods', '/runningpods', '/stats/summary'],
    },
  ],
}

/** A client that may create pods may create a privileged one, which is equivalent to root on the host. */
const editRules: Rules = {
  resourceRules: [
    { verbs: read, apiGroups: ['', 'podd.dev'], resources: ['secrets'] },
    {
      verbs: write,
      apiGroups: [''],
      resources: [
        'configmaps',
        'persistentvolumeclaims',
        'pods',
        'pods/ephemeralcontainers',
        'pods/resize',
        'podtemplates',
        'secrets',
      ],
    },
    { verbs: write, apiGroups: ['coordination.k8s.io'], resources: ['leases'] },
    { verbs: ['create', 'patch', 'update'], apiGroups: ['', 'events.k8s.io'], resources: ['events'] },
    { verbs: ['create'], apiGroups: [''], resources: ['pods/eviction'] },
    {
      verbs: ['create', 'get'],
      apiGroups: ['', 'podd.dev'],
      resources: ['pods/attach', 'pods/exec', 'pods/portforward'],
    },
    // Each method of a proxied request is a verb.
    { verbs: [...read, ...write], apiGroups: [''], resources: ['pods/proxy'] },
    {
      verbs: ['create'],
      apiGroups: ['podd.dev'],
      resources: ['persistentvolumeclaims/purge', 'pods/restart'],
    },
  ],
  nonResourceRules: [],
}

const adminRules: Rules = {
  resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
}

/** All rules that apply to an identity. */
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

/** Whether an identity may make a request. */
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
