import { formatQuantity } from '../../pod/values/quantity.ts'
import { starvedResource, thresholdAmount } from './judge-pressure.ts'
import type { Observations, PressureCondition, Threshold } from './judge-pressure.ts'
import type { ContainerConsumption, EvictionCandidate } from './rank-pods.ts'

/**
 * The message of an eviction, identical to the kubelet's (`pkg/kubelet/eviction/helpers.go`, evictionMessage, 1.36).
 */
export function evictionMessage(
  threshold: Threshold,
  observations: Observations,
  candidate: EvictionCandidate,
): string {
  const resource = starvedResource(threshold)
  const parts = [`The node was low on resource: ${resource}. `]
  const observed = observations.get(threshold.signal)
  const format = (amount: number): string =>
    quantity(amount, resource === 'memory' || resource === 'ephemeral-storage')
  if (observed !== undefined) {
    const wanted = format(thresholdAmount(threshold.value, observed.capacity))
    parts.push(`Threshold quantity: ${wanted}, available: ${format(observed.available)}. `)
  }
  if (resource !== 'memory' && resource !== 'ephemeral-storage') return parts.join('')
  const podRequest = candidate.requested.memory
  if (resource === 'memory' && candidate.podLevelMemory && podRequest !== undefined)
    parts.push(larger('Pod', candidate.name, candidate.used.memory ?? 0, podRequest, resource))
  for (const container of candidate.containers) {
    const used = usedBy(container, resource)
    const request = container.requests[resource] ?? 0
    if (used !== undefined && used > request)
      parts.push(larger('Container', container.name, used, request, resource))
  }
  return parts.join('')
}

/** Why a pod isn't admitted while the host lacks something (`eviction_manager.go`, Admit, 1.36). */
export function conditionMessage(conditions: readonly PressureCondition[]): string {
  return `The node had condition: [${conditions.join(' ')}]. `
}

function usedBy(
  container: ContainerConsumption,
  resource: 'memory' | 'ephemeral-storage',
): number | undefined {
  return resource === 'memory' ? container.memoryBytes : container.diskBytes
}

function larger(kind: string, name: string, used: number, request: number, resource: string): string {
  const [usage, requested] = [quantity(used, true), quantity(request, true)]
  return `${kind} ${name} was using ${usage}, request is ${requested}, has larger consumption of ${resource}. `
}

function quantity(amount: number, isBytes: boolean): string {
  return formatQuantity({
    nanos: BigInt(Math.round(amount)) * 1_000_000_000n,
    format: isBytes ? 'BinarySI' : 'DecimalSI',
  })
}
