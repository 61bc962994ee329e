import type { PodRecord } from '../../pod/state/pod-record.ts'
import { goesAwayAfter } from '../plan/pod-ending.ts'

/**
 * A pod's metadata.generation: 1 at first, one more for each change of its spec (`pkg/registry/core/pod/strategy.go`
 * updatePodGeneration, 1.36), and one more once it is being deleted (BeforeDelete in the API server's
 * `registry/rest/delete.go`).
 */
export function podGeneration({ generation = 1, ending }: Pick<PodRecord, 'generation' | 'ending'>): number {
  return ending !== undefined && goesAwayAfter(ending) ? generation + 1 : generation
}
