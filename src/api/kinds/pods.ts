import type { JsonObject } from '../../base/json.ts'
import type { PodObject } from '../objects.ts'
import { formatAge, formatAgeOf } from './age.ts'
import { summarizePod } from './pod-summary.ts'
import { writeVerbs } from './api-resource.ts'
import { servedKind } from './served-kind.ts'

/** Pods: kubectl's columns; `-o wide` adds where they come from (`pkg/registry/core/pod/strategy.go`, ToSelectableFields, 1.36). */
export const podKind = servedKind<PodObject>({
  resource: 'pods',
  verbs: writeVerbs,
  singular: 'pod',
  shortNames: ['po'],
  kind: 'Pod',
  categories: ['all'],
  subresources: [
    { name: 'log', verbs: ['get'] },
    { name: 'attach', verbs: ['create', 'get'], kind: 'PodAttachOptions' },
    { name: 'exec', verbs: ['create', 'get'], kind: 'PodExecOptions' },
    { name: 'portforward', verbs: ['create', 'get'], kind: 'PodPortForwardOptions' },
    {
      name: 'proxy',
      verbs: ['create', 'delete', 'get', 'patch', 'update'],
      kind: 'PodProxyOptions',
    },
    { name: 'status', verbs: ['get', 'patch', 'update'] },
    { name: 'ephemeralcontainers', verbs: ['get', 'patch', 'update'] },
    { name: 'resize', verbs: ['get', 'patch', 'update'] },
    { name: 'eviction', verbs: ['create'], kind: 'Eviction', apiVersion: 'policy/v1' },
  ],
  fields: {
    'spec.nodeName': ({ spec }) => textAt(spec, 'nodeName', ''),
    'spec.restartPolicy': ({ spec }) => textAt(spec, 'restartPolicy', 'Always'),
    'spec.schedulerName': ({ spec }) => textAt(spec, 'schedulerName', 'default-scheduler'),
    'spec.serviceAccountName': ({ spec }) => textAt(spec, 'serviceAccountName', ''),
    'spec.hostNetwork': ({ spec }) => String(spec['hostNetwork'] === true),
    'status.phase': ({ status }) => status.phase,
    'status.podIP': ({ status }) => status.podIPs?.[0]?.ip ?? '',
    'status.podIPs': () => '',
    'status.nominatedNodeName': () => '',
  },
  columns: [
    { title: 'NAME', cell: ({ metadata }) => metadata.name },
    {
      title: 'READY',
      cell(pod) {
        const { ready, total } = summarizePod(pod)
        return `${ready}/${total}`
      },
    },
    { title: 'STATUS', cell: (pod) => summarizePod(pod).status },
    {
      title: 'RESTARTS',
      cell(pod, nowMs) {
        const { restarts, lastRestartMs } = summarizePod(pod)
        return lastRestartMs === undefined
          ? String(restarts)
          : `${restarts} (${formatAge(nowMs - lastRestartMs)} ago)`
      },
    },
    { title: 'AGE', cell: ({ metadata }, nowMs) => formatAgeOf(metadata.creationTimestamp, nowMs) },
    { title: 'IP', wide: true, cell: ({ status }) => status.podIP ?? status.podIPs?.[0]?.ip ?? '<none>' },
    { title: 'NODE', wide: true, cell: ({ spec }) => textAt(spec, 'nodeName', '<none>') },
    {
      title: 'SOURCE',
      wide: true,
      cell: ({ metadata }) => metadata.annotations?.['podd.dev/path'] ?? '<none>',
    },
  ],
})

function textAt(object: JsonObject, key: string, absent: string): string {
  const value = object[key]
  return typeof value === 'string' && value !== '' ? value : absent
}
