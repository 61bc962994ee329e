import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { makeDirectory } from '../base/atomic-file.ts'
import type { PoddConfig } from '../config/options.ts'
import { readDiskSpace } from '../host/host-probe.ts'
import { isImageList, listArchives, readImageList } from '../images/archive-directory.ts'
import { readImageArchive } from '../images/image-archive.ts'
import { normalizeImageName } from '../pod/values/image-name.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import { watchDirectory } from '../sources/watch-directory.ts'
import { smallFile } from '../store/state-report.ts'
import { ImageArchives } from './archives/image-archives.ts'
import type { RuntimeAccess } from './runtime/runtime-access.ts'

export interface ArchiveAssembly {
  readonly config: Pick<PoddConfig, 'rootDir'>
  readonly runtime: RuntimeAccess
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
  readonly onImported: (names: readonly string[]) => Promise<void>
  readonly onImages: (names: readonly string[]) => void
  /** Whether a container has this image, or a pull has or may have brought it. */
  readonly isUsed: (image: string, signal: AbortSignal) => Promise<boolean>
  readonly pull: (image: string, signal: AbortSignal) => Promise<void>
}

/** The follower of `<root-dir>/images`; nothing is started yet. */
export function assembleArchives(options: ArchiveAssembly): ImageArchives {
  const { config, runtime, events, clock, logger, onImported, onImages, isUsed, pull } = options
  const directory = join(config.rootDir, 'images')
  return new ImageArchives({
    host: {
      directory,
      prepare: () => makeDirectory(directory, 0o755),
      list: () => listArchives(directory),
      read: (name) => {
        const path = join(directory, name)
        return isImageList(name) ? readImageList(path) : readImageArchive(path)
      },
      // A watch that fails is stood in for by looks at the directory from time to time.
      watch: (onHint) =>
        watchDirectory(directory, { onHint, onFailure: () => onHint({ kind: 'directory' }) }),
      unsupported: runtime.imageStore.takesArchives
        ? undefined
        : 'images can be imported into the embedded containerd only; use `ctr -n k8s.io images import` with yours',
      importArchive: (name, signal) =>
        runtime.imageStore.importImages(join(directory, name), { pin: false, signal }),
      isUsed,
      discard: (image) => runtime.imageStore.discardName(image),
      pull,
      pin: (image, pinned) => runtime.imageStore.pinName(image, pinned),
      pinnedImages: () => runtime.imageStore.pinnedNames(),
      presentImages: async (signal) => {
        const { images } = await runtime.images.listImages({}, { signal })
        const names = images.flatMap(({ repoTags, repoDigests }) => repoTags.concat(repoDigests))
        return new Set(names.map((name) => normalizeImageName(name)))
      },
      availableBytes: async () => {
        const path = (await runtime.imageStore.imagesPath()) ?? config.rootDir
        return (await readDiskSpace(path)).availableBytes
      },
    },
    stateFile: smallFile(join(config.rootDir, 'image-archives.json')),
    events,
    clock,
    logger,
    onImported,
    onImages,
  })
}
