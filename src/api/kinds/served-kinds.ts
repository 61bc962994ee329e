import { claimKind } from './claims.ts'
import {
  namespaceKind,
  nodeKind,
  priorityClassKind,
  runtimeClassKind,
  serviceAccountKind,
} from './cluster-kinds.ts'
import { configMapKind, secretKind } from './config-objects.ts'
import { eventKind } from './events.ts'
import { leaseKind, podTemplateKind } from './kept-objects.ts'
import { podKind } from './pods.ts'
import type { ServedKind } from './served-kind.ts'

/** All kinds that the API serves: its routes, `podd get` and `podd describe` go by this list. */
export const servedKinds: readonly ServedKind[] = [
  configMapKind,
  eventKind,
  leaseKind,
  namespaceKind,
  nodeKind,
  claimKind,
  podKind,
  podTemplateKind,
  secretKind,
  serviceAccountKind,
  priorityClassKind,
  runtimeClassKind,
]

/** The names of a kind on the command line. */
export function namesOfKind({ resource, singular, shortNames }: ServedKind): readonly string[] {
  return [resource, singular, ...shortNames]
}

/** By any of its names, in whatever case. */
export function findKind(name: string): ServedKind | undefined {
  const lower = name.toLowerCase()
  return servedKinds.find((kind) => namesOfKind(kind).includes(lower))
}
