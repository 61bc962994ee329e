import type { Json } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'

/**
 * Merges two lists of tolerations, without those that another one covers (`pkg/util/tolerations`, MergeTolerations,
 * 1.36).
 */
export function mergeTolerations(first: Json | undefined, second: Json | undefined): readonly Json[] {
  const all = [...listOf(first), ...listOf(second)]
  return all.filter((one, at) => {
    const isCovered = (other: Json): boolean => covers(other, one)
    if (all.slice(0, at).some((other) => sameData(other, one))) return false
    return !all.some((other, index) => index !== at && !sameData(other, one) && isCovered(other))
  })
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}

/** Whether whatever `toleration` tolerates is tolerated by `other`, too (isSuperset, there). */
function covers(other: Json, toleration: Json): boolean {
  if (!isJsonObject(other) || !isJsonObject(toleration)) return false
  const wide = withDefaults(other)
  const narrow = withDefaults(toleration)
  const matchesAnyKey = wide.key === '' && wide.operator === 'Exists'
  if (narrow.key !== wide.key && !matchesAnyKey) return false
  if (narrow.effect !== wide.effect && wide.effect !== '') return false
  if (wide.effect === 'NoExecute' && wide.seconds !== undefined)
    if (narrow.seconds === undefined || narrow.seconds > wide.seconds) return false
  if (wide.operator === 'Exists') return true
  return wide.operator === 'Equal' && narrow.operator === 'Equal' && narrow.value === wide.value
}

interface Toleration {
  readonly key: Json
  readonly operator: Json
  readonly value: Json
  readonly effect: Json
  readonly seconds: number | undefined
}

function withDefaults(given: { readonly [key: string]: Json }): Toleration {
  const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = given
  return {
    key,
    operator: operator === '' ? 'Equal' : operator,
    value,
    effect,
    seconds: typeof tolerationSeconds === 'number' ? tolerationSeconds : undefined,
  }
}
