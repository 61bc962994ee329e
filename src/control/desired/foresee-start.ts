import { errorMessage, PoddError } from '../../base/errors.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodRecordStore } from '../../store/pod-records.ts'
import type { PodHost } from '../actions/pod-host.ts'

export interface ForeseeStartDeps {
  readonly records: Pick<PodRecordStore, 'checkRoom'>
  readonly host: { readonly volumes: Pick<PodHost['volumes'], 'checkHostPaths'> }
}

/** Throws PoddError with what of the host would keep a pod from starting: its disk, or a hostPath that isn't what it shall be. */
export async function foreseeStart({ records, host }: ForeseeStartDeps, pod: Pod): Promise<void> {
  try {
    await records.checkRoom()
  } catch (error) {
    const message = `no record of it can be written: ${errorMessage(error)}`
    throw new PoddError('RECORD_WRITE', message, { cause: error })
  }
  await host.volumes.checkHostPaths(pod)
}
