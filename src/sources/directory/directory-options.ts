import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { SourceDocument, SourceName } from '../../pod/objects/document.ts'
import type { FieldValidation } from '../../pod/schema/check-value.ts'
import type { MountEntry } from '../../host/mounts.ts'
import type { LastGoodStore } from '../../store/last-good.ts'
import type { DecodeSource } from '../decode-source.ts'
import type { FollowedValues } from '../followed-values.ts'
import type { WatchDirectory } from '../watch-directory.ts'

export interface DirectorySourceOptions {
  readonly name: SourceName
  /** The manifest directory, or a single manifest file; it need not exist. */
  readonly path: string
  readonly clock: Clock
  readonly logger: Logger
  readonly lastGood: LastGoodStore
  readonly decode: DecodeSource
  /** The values that `decode` substitutes: after a change all texts are decoded again. */
  readonly values?: FollowedValues | undefined
  readonly fieldValidation?: FieldValidation
  /** Whether subdirectories are read too. */
  readonly recursive?: boolean
  /** Whether files that others than root can write are not read; by default they get a warning. */
  readonly isStrict?: boolean
  readonly watch?: WatchDirectory
  /** Which network file system a path is on. */
  readonly findNetwork?: (path: string) => Promise<string | undefined>
  /** The interval of full reads in case an event was lost; by default a minute. */
  readonly rescanMs?: number
  /** Overrides this host's mounts. */
  readonly readMounts?: () => readonly MountEntry[]
  /** The same while it is missing, unreadable, or can't be watched; by default two seconds. */
  readonly unhealthyRescanMs?: number
}

export interface DirectoryFilesOptions {
  readonly directory: string
  readonly clock: Clock
  readonly decode: DecodeSource
  readonly values: FollowedValues | undefined
  readonly fieldValidation: FieldValidation
  /** A manifest that others than root can write is not read. */
  readonly isStrict: boolean
  /** The last good copy. */
  readonly lastGood: readonly SourceDocument[]
  /** Called when a read that went on in the background has ended. */
  readonly onRead: () => void
}
