import type { PodObject } from '../../api/objects.ts'
import { formatAge, formatAgeOf } from './age.ts'
import { summarizePod } from './pod-summary.ts'
import type { Column, Listing } from '../arguments/verb.ts'

export interface PodListingOptions {
  readonly withNamespace: boolean
  readonly nowMs: number
  /** The one pod that was asked for stands for itself in JSON and YAML. */
  readonly isSingle: boolean
}

/** Pods as kubectl's table has them; `-o wide` adds where they come from. */
export function listPods(pods: readonly PodObject[], options: PodListingOptions): Listing {
  const columns: readonly Column[] = [
    ...(options.withNamespace ? [{ title: 'NAMESPACE' }] : []),
    { title: 'NAME' },
    { title: 'READY' },
    { title: 'STATUS' },
    { title: 'RESTARTS' },
    { title: 'AGE' },
    { title: 'IP', wide: true },
    { title: 'NODE', wide: true },
    { title: 'SOURCE', wide: true },
  ]
  return {
    columns,
    rows: pods.map((pod) => podRow(pod, options)),
    objects: pods,
    listKind: options.isSingle ? undefined : 'PodList',
  }
}

function podRow(pod: PodObject, { withNamespace, nowMs }: PodListingOptions): readonly string[] {
  const { metadata, spec, status } = pod
  const { ready, total, status: word, restarts, lastRestartMs } = summarizePod(pod)
  const { nodeName } = spec
  return [
    ...(withNamespace ? [metadata.namespace] : []),
    metadata.name,
    `${ready}/${total}`,
    word,
    lastRestartMs === undefined ? String(restarts) : `${restarts} (${formatAge(nowMs - lastRestartMs)} ago)`,
    formatAgeOf(metadata.creationTimestamp, nowMs),
    status.podIP ?? status.podIPs?.[0]?.ip ?? '<none>',
    typeof nodeName === 'string' ? nodeName : '<none>',
    metadata.annotations?.['podd.dev/path'] ?? '<none>',
  ]
}
