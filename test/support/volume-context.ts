import { MissingReference } from '../../src/translate/references.ts'
import type { VolumeContext } from '../../src/volumes/volume-plugins.ts'

/** What a volume gets to know of a pod that refers to nothing. */
export function volumeContext(
  given: Pick<VolumeContext, 'uid' | 'rootDir' | 'memoryBytes'> & Partial<VolumeContext>,
): VolumeContext {
  return {
    namespace: 'default',
    fsGroup: undefined,
    files: () => undefined,
    findClaim: (name) => {
      throw new MissingReference(`persistentvolumeclaim "${name}" not found`)
    },
    warn: () => {},
    nowMs: 0,
    ...given,
  }
}
