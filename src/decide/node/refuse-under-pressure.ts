import { isCritical, computeQosClass } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { conditionMessage } from './eviction-message.ts'
import type { PressureCondition } from './judge-pressure.ts'

/** Why the node does not admit a pod now. */
export interface NodeRefusal {
  readonly reason: string
  readonly message: string
}

/**
 * Why a pod isn't admitted while the node is short of something; undefined where nothing stands against it
 * (`pkg/kubelet/eviction/eviction_manager.go`, Admit, 1.36). Unlike in the kubelet a pod waits rather than fails, and
 * only while the shortage lasts, as there is no scheduler to keep away.
 */
export function refuseUnderPressure(
  spec: Pod['spec'],
  shortages: readonly PressureCondition[],
): NodeRefusal | undefined {
  if (shortages.length === 0 || isCritical(spec)) return undefined
  const onlyMemory = shortages.every((condition) => condition === 'MemoryPressure')
  if (onlyMemory && computeQosClass(spec) !== 'BestEffort') return undefined
  return { reason: 'NodeUnderPressure', message: conditionMessage(shortages) }
}
