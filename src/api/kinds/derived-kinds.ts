import { readVerbs } from './api-resource.ts'
import { regardingEventKind } from './regarding-events.ts'
import type { RoutedKind } from './served-kind.ts'

const plain = {
  verbs: readVerbs,
  shortNames: [],
  categories: [],
  subresources: [],
  expires: false,
  fields: {},
  columns: [],
  cells: () => [],
} as const

/** There are never any: clients that look for some get an empty list. */
export const definitionKind: RoutedKind = {
  ...plain,
  resource: 'customresourcedefinitions',
  singular: 'customresourcedefinition',
  shortNames: ['crd', 'crds'],
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  listKind: 'CustomResourceDefinitionList',
  namespaced: false,
  tableRoot: '/apis/apiextensions.k8s.io/v1',
  root: '/apis/apiextensions.k8s.io/v1',
}

/**
 * There are none: `kubectl cluster-info`, dashboards and service discovery request them without being configured to.
 */
export const serviceKind: RoutedKind = {
  ...plain,
  resource: 'services',
  singular: 'service',
  shortNames: ['svc'],
  apiVersion: 'v1',
  kind: 'Service',
  listKind: 'ServiceList',
  namespaced: true,
  tableRoot: '/api/v1',
  root: '/api/v1',
}

/** Kinds that are served and have no objects of their own. */
export const derivedKinds: readonly RoutedKind[] = [regardingEventKind, definitionKind, serviceKind]
