import type { VolumeContext } from '../../src/volumes/volume-plugin.ts'

/** What a volume gets to know of a pod that refers to nothing. */
export function volumeContext(
  given: Pick<VolumeContext, 'uid' | 'rootDir' | 'memoryBytes'> & Partial<VolumeContext>,
): VolumeContext {
  return {
    namespace: 'default',
    fsGroup: undefined,
    files: () => undefined,
    hasClaim: () => false,
    warn: () => {},
    nowMs: 0,
    ...given,
  }
}
