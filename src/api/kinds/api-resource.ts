/** A resource as discovery shows it: meta/v1 APIResource. */
export interface ApiResource {
  /** Empty: the core group. */
  readonly group: string
  readonly version: string
  /** Plural, in paths. */
  readonly resource: string
  readonly singular: string
  readonly kind: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  /** `all`: what `kubectl get all` lists. */
  readonly categories: readonly string[]
  readonly subresources: readonly ApiSubresource[]
}

export interface ApiSubresource {
  readonly name: string
  readonly verbs: readonly string[]
  /** The kind of requests and responses, where it isn't the resource's own. */
  readonly kind?: string
  /** `group/version` of that kind, where it isn't the resource's. */
  readonly apiVersion?: string
}

export const readVerbs: readonly string[] = ['get', 'list', 'watch']
/** The verbs of kinds that can be written over the API. */
export const writeVerbs: readonly string[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
]

/** The verbs of kinds without stored objects: they are computed on request. */
export const computedResources: readonly ApiResource[] = [
  review('authentication.k8s.io', 'selfsubjectreviews', 'SelfSubjectReview'),
  review('authorization.k8s.io', 'selfsubjectaccessreviews', 'SelfSubjectAccessReview'),
  review('authorization.k8s.io', 'selfsubjectrulesreviews', 'SelfSubjectRulesReview'),
  metrics('nodes', 'NodeMetrics', false),
  metrics('pods', 'PodMetrics', true),
]

function review(group: string, resource: string, kind: string): ApiResource {
  const names = { group, version: 'v1', resource, singular: kind.toLowerCase(), kind }
  return { ...names, namespaced: false, verbs: ['create'], shortNames: [], categories: [], subresources: [] }
}

function metrics(resource: string, kind: string, namespaced: boolean): ApiResource {
  const names = { group: 'metrics.k8s.io', version: 'v1beta1', resource, singular: '', kind }
  return { ...names, namespaced, verbs: ['get', 'list'], shortNames: [], categories: [], subresources: [] }
}
