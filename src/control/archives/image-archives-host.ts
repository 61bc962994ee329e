import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { ArchiveContent } from '../../decide/node/plan-image-archives.ts'
import type { ArchiveDirectory } from '../../images/archive-directory.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { SmallFile } from '../../store/state-report.ts'
import type { ArchiveHint } from './archive-files.ts'
import type { ArchivePinsHost } from './archive-pins.ts'
import type { ArchiveImportHost } from './import-archive.ts'

/** The directory and the runtime. Errors count as temporary. */
export interface ImageArchivesHost extends ArchivePinsHost, ArchiveImportHost {
  readonly directory: string
  /** Makes the directory where there is none. */
  readonly prepare: () => Promise<void>
  readonly list: () => Promise<ArchiveDirectory>
  readonly read: (name: string) => Promise<ArchiveContent>
  /** Tells of changes of files; a name that came by a rename is complete. */
  readonly watch: (onHint: (hint: ArchiveHint) => void) => { close(): Promise<void> }
  readonly pull: (image: string, signal: AbortSignal) => Promise<void>
  /** Complete names. */
  readonly presentImages: (signal: AbortSignal) => Promise<ReadonlySet<string>>
  /** On the disk that holds the images. */
  readonly availableBytes: () => Promise<number>
}

export interface ImageArchivesOptions {
  readonly host: ImageArchivesHost
  readonly stateFile: SmallFile
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
  /** Records that these images were imported, and not pulled. Never rejects. */
  readonly onImported: (names: readonly string[]) => Promise<void>
  /** Called for images that are now present: pods waiting for them may continue. */
  readonly onImages: (names: readonly string[]) => void
}
