import type { Json } from '../../base/json.ts'

/** The conditions of a pod that podd itself sets: clients can't. */
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
