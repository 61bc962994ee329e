import type { Json } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { LeaseObject, PodTemplateObject } from '../kept-objects.ts'
import { formatAgeOf } from './age.ts'
import { writeVerbs } from './api-resource.ts'
import { servedKind } from './served-kind.ts'

export const leaseKind = servedKind<LeaseObject>({
  resource: 'leases',
  verbs: writeVerbs,
  singular: 'lease',
  shortNames: [],
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  columns: [
    { title: 'NAME', cell: ({ metadata }) => metadata.name },
    { title: 'HOLDER', cell: (lease) => holderOf(lease) },
    { title: 'AGE', cell: ({ metadata }, nowMs) => formatAgeOf(metadata.creationTimestamp, nowMs) },
  ],
})

export const podTemplateKind = servedKind<PodTemplateObject>({
  resource: 'podtemplates',
  verbs: writeVerbs,
  singular: 'podtemplate',
  shortNames: [],
  kind: 'PodTemplate',
  columns: [
    { title: 'NAME', cell: ({ metadata }) => metadata.name },
    { title: 'CONTAINERS', cell: (object) => containerTexts(object, 'name') },
    { title: 'IMAGES', cell: (object) => containerTexts(object, 'image') },
    { title: 'POD LABELS', cell: (object) => templateLabels(object) },
  ],
})

export function holderOf({ spec }: LeaseObject): string {
  const holder = spec?.['holderIdentity']
  return typeof holder === 'string' ? holder : ''
}

/** One field of each container (`pkg/printers/internalversion/printers.go`, layoutContainerCells, 1.36). */
export function containerTexts({ template }: PodTemplateObject, field: 'name' | 'image'): string {
  const spec = template?.['spec']
  const containers = isJsonObject(spec) ? spec['containers'] : undefined
  if (!Array.isArray(containers)) return ''
  return containers
    .map((container: Json) => (isJsonObject(container) ? container[field] : undefined))
    .filter((text) => typeof text === 'string')
    .join(',')
}

export function templateLabels({ template }: PodTemplateObject): string {
  const metadata = template?.['metadata']
  const labels = isJsonObject(metadata) ? metadata['labels'] : undefined
  const pairs = Object.entries(isJsonObject(labels) ? labels : {}).flatMap(([key, value]) =>
    typeof value === 'string' ? [`${key}=${value}`] : [],
  )
  return pairs.toSorted().join(',') || '<none>'
}
