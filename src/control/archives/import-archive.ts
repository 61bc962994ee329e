import type { Logger } from '../../base/logger.ts'

export interface ArchiveImportHost {
  /** Returns the imported names. */
  readonly importArchive: (name: string, signal: AbortSignal) => Promise<readonly string[]>
  /** Removes a name that a failed import has left behind. */
  readonly discard: (image: string) => Promise<void>
  /** Whether a container has this image, or a pull has or may have brought it. */
  readonly isUsed: (image: string, signal: AbortSignal) => Promise<boolean>
}

/**
 * Imports an archive. Where that fails, the names that it left behind are removed: a partially imported image would
 * count as present. Throws the import's error.
 * @param archive.images which it holds
 * @param archive.before which were there right before; these are kept
 */
export async function importOrDiscard(
  archive: {
    readonly name: string
    readonly images: readonly string[]
    readonly before: ReadonlySet<string>
  },
  { host, logger }: { readonly host: ArchiveImportHost; readonly logger: Logger },
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    return await host.importArchive(archive.name, signal)
  } catch (error) {
    for (const image of archive.images) {
      if (signal.aborted) break
      if (archive.before.has(image)) continue
      try {
        if (!(await host.isUsed(image, signal))) await host.discard(image)
      } catch (problem) {
        logger.debug({ image, err: problem }, 'cannot discard what an import that failed has left')
      }
    }
    throw error
  }
}
