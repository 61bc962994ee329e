import type { Json } from '../../base/json.ts'

/** The conditions that podd finds of a pod: no client sets them. */
const ownConditions: readonly (Json | undefined)[] = [
  'PodReadyToStartContainers',
  'PodScheduled',
  'Initialized',
  'ContainersReady',
  'Ready',
  'DisruptionTarget',
  'PodResizePending',
  'PodResizeInProgress',
]

export function isOwnCondition(type: Json | undefined): boolean {
  return ownConditions.includes(type)
}
