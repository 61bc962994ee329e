import type { ApiResource } from '../../api/served-kind.ts'

/** A group with its one version, and the resources in it. */
interface Group {
  readonly group: string
  readonly version: string
  readonly resources: readonly ApiResource[]
}

/** The groups in the order in which clients look for a resource's name: the core group is first. */
export function groupsOf(resources: readonly ApiResource[]): readonly Group[] {
  const groups = Map.groupBy(resources, ({ group, version }) => `${group}/${version}`)
  return [...groups.values()].flatMap((own) => {
    const [first] = own
    return first === undefined ? [] : [{ group: first.group, version: first.version, resources: own }]
  })
}

/** GET /api, for clients that don't know aggregated discovery. */
export function coreVersions(): object {
  return { kind: 'APIVersions', versions: ['v1'] }
}

/** GET /apis, for the same clients. */
export function groupList(groups: readonly Group[]): object {
  return {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: groups.filter(({ group }) => group !== '').map((group) => describeGroup(group)),
  }
}

/** GET /apis/{group} */
export function groupDocument(group: Group): object {
  return { kind: 'APIGroup', apiVersion: 'v1', ...describeGroup(group) }
}

function describeGroup({ group, version }: Group): object {
  const entry = { groupVersion: `${group}/${version}`, version }
  return { name: group, versions: [entry], preferredVersion: entry }
}

/** GET /api/v1 and /apis/{group}/{version} */
export function resourceList({ group, version, resources }: Group): object {
  return {
    kind: 'APIResourceList',
    ...(group !== '' && { apiVersion: 'v1' }),
    groupVersion: group === '' ? version : `${group}/${version}`,
    resources: resources.flatMap((resource) => [describeResource(resource), ...subresourcesOf(resource)]),
  }
}

function describeResource(resource: ApiResource): object {
  const { singular: singularName, namespaced, kind, verbs, shortNames, categories } = resource
  return {
    name: resource.resource,
    singularName,
    namespaced,
    kind,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
  }
}

function subresourcesOf({ resource, kind, namespaced, subresources }: ApiResource): readonly object[] {
  return subresources.map((sub) => ({
    name: `${resource}/${sub.name}`,
    singularName: '',
    namespaced,
    ...(sub.apiVersion !== undefined && groupVersionOf(sub.apiVersion)),
    kind: sub.kind ?? kind,
    verbs: sub.verbs,
  }))
}

/** apidiscovery.k8s.io/v2: all groups with their resources at once; `isCore` chooses between /api and /apis. */
export function aggregated(groups: readonly Group[], isCore: boolean): object {
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: 'apidiscovery.k8s.io/v2',
    metadata: {},
    items: groups
      .filter(({ group }) => (group === '') === isCore)
      .map(({ group, version, resources }) => ({
        metadata: group === '' ? {} : { name: group },
        versions: [
          {
            version,
            freshness: 'Current',
            resources: resources.map((resource) => aggregateResource(resource)),
          },
        ],
      })),
  }
}

function aggregateResource(resource: ApiResource): object {
  const { kind, namespaced, singular, verbs, shortNames, categories, subresources } = resource
  return {
    resource: resource.resource,
    responseKind: { group: '', version: '', kind },
    scope: namespaced ? 'Namespaced' : 'Cluster',
    singularResource: singular,
    verbs,
    ...(shortNames.length > 0 && { shortNames }),
    ...(categories.length > 0 && { categories }),
    ...(subresources.length > 0 && {
      subresources: subresources.map((sub) => ({
        subresource: sub.name,
        responseKind: {
          group: '',
          version: '',
          ...(sub.apiVersion !== undefined && groupVersionOf(sub.apiVersion)),
          kind: sub.kind ?? kind,
        },
        verbs: sub.verbs,
      })),
    }),
  }
}

function groupVersionOf(apiVersion: string): { readonly group: string; readonly version: string } {
  const [version = '', group = ''] = apiVersion.split('/').toReversed()
  return { group, version }
}
