import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { MountEntry } from '../../host/mounts.ts'
import type { Problem, SourceDocument } from '../../pod/objects/document.ts'
import type { FieldValidation } from '../../pod/schema/check-value.ts'
import type { SourceName } from '../../pod/values/ids.ts'
import type { LastGoodStore } from '../../store/last-good.ts'
import type { DecodeSource } from '../decode-source.ts'
import type { FollowedValues } from '../followed-values.ts'
import type { WatchDirectory } from '../watch-directory.ts'

/** The problem of a manifest directory that can't be listed. `podsKept` counts its earlier pods. */
export function directoryProblem(directory: string, error: unknown, podsKept: number): Problem {
  switch (errorCode(error)) {
    case 'ENOENT':
      return problemWith(directory, 'does not exist', podsKept, `create it: mkdir -p ${directory}`)
    case 'ENOTDIR':
      return problemWith(
        directory,
        'lies under something that is no directory',
        podsKept,
        'point podd elsewhere',
      )
    default:
      return problemWith(
        directory,
        `cannot be read: ${errorMessage(error)}`,
        podsKept,
        'make it readable for podd',
      )
  }
}

/** The file system that was mounted there no longer is. */
export function unmountedProblem(directory: string, podsKept: number): Problem {
  const hint = `mount it again; where it is meant to be empty, say so: echo '# none' > ${directory}/none.yaml`
  return problemWith(directory, 'is empty, and on another filesystem than before', podsKept, hint)
}

function problemWith(directory: string, what: string, podsKept: number, hint: string): Problem {
  const kept = podsKept === 0 ? '' : `; the pods it gave before are kept (${podsKept})`
  return {
    severity: 'error',
    place: { path: directory },
    message: `the manifest directory ${what}${kept}`,
    hint,
  }
}

/** Others than root can write it, and by the configuration it is not read then. */
export function refusedProblem(directory: string, writers: string, podsKept: number): Problem {
  const hint = `chown root:root ${directory}; chmod go-w ${directory}`
  return problemWith(directory, `is not read: it can be written by ${writers}`, podsKept, hint)
}

/** Users who can write the directory can run anything. */
export function directoryWritersProblem(directory: string, writers: string): Problem {
  return {
    severity: 'warning',
    place: { path: directory },
    message: `the manifest directory can be written by ${writers}, so that they decide what runs here`,
    hint: `chown root:root ${directory}; chmod go-w ${directory}`,
  }
}

/** The same for a manifest. */
export function fileWritersProblem(path: string, writers: string): Problem {
  return {
    severity: 'warning',
    place: { path },
    message: `can be written by ${writers}`,
    hint: `chown root:root ${path}; chmod go-w ${path}`,
  }
}

/** How many files a problem names. */
const mostNamed = 10

/** Files of these names are not read. */
export function passedOverProblem(directory: string, names: readonly string[]): Problem {
  const named = names.toSorted().slice(0, mostNamed)
  const more = names.length - named.length
  return {
    severity: 'warning',
    place: { path: directory },
    message: `these files are not read, as their names end in none of .yaml, .yml and .json: ${named.join(', ')}${more === 0 ? '' : ` and ${more} more`}`,
    hint: 'rename those that are manifests; move the others away, or have their names begin with a dot',
  }
}

/** podd can't open it. */
export function unreadableNameProblem(path: string): Problem {
  return {
    severity: 'error',
    place: { path },
    message: 'is not read: its name is not UTF-8',
    hint: 'rename it',
  }
}

/** Other hosts' changes are seen only by reading the directory again, every `rescanMs`. */
export function networkProblem(directory: string, fileSystem: string, rescanMs: number): Problem {
  return {
    severity: 'warning',
    place: { path: directory },
    message: `changes by other hosts are noticed only every ${rescanMs / 1000} s: the manifest directory is on a network file system (${fileSystem})`,
  }
}

/** Changes are seen only by reading the directory again, every `rescanMs`. */
export function watchProblem(directory: string, error: unknown, rescanMs: number): Problem {
  const code = errorCode(error)
  const isLimit = code === 'ENOSPC' || code === 'EMFILE'
  return {
    severity: 'warning',
    place: { path: directory },
    message: `changes are noticed only every ${rescanMs / 1000} s: the system refuses to watch (${code ?? errorMessage(error)})`,
    hint: isLimit
      ? 'raise fs.inotify.max_user_watches and fs.inotify.max_user_instances, and restart podd'
      : undefined,
  }
}

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
