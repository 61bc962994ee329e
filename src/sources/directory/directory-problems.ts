import { errorCode, errorMessage } from '../../base/errors.ts'
import { errorAt, warningAt } from '../../pod/objects/document.ts'
import type { Problem } from '../../pod/objects/document.ts'

/** The problem of a manifest directory that can't be listed. `podsKept` counts its earlier pods. */
export function directoryProblem(directory: string, error: unknown, podsKept: number): Problem {
  switch (errorCode(error)) {
    case 'ENOENT':
      return problemWith(directory, 'does not exist', podsKept, `create it: mkdir -p ${directory}`)
    case 'ENOTDIR': {
      const what = 'lies under something that is no directory'
      return problemWith(directory, what, podsKept, 'point podd elsewhere')
    }
    default: {
      const what = `cannot be read: ${errorMessage(error)}`
      return problemWith(directory, what, podsKept, 'make it readable for podd')
    }
  }
}

/** The file system that was mounted there no longer is. */
export function unmountedProblem(directory: string, podsKept: number): Problem {
  const hint = `mount it again; where it is meant to be empty, say so: echo '# none' > ${directory}/none.yaml`
  return problemWith(directory, 'is empty, and on another filesystem than before', podsKept, hint)
}

function problemWith(directory: string, what: string, podsKept: number, hint: string): Problem {
  const kept = podsKept === 0 ? '' : `; the pods it gave before are kept (${podsKept})`
  return errorAt(directory, `the manifest directory ${what}${kept}`, hint)
}

/** Others than root can write it, and by the configuration it is not read then. */
export function refusedProblem(directory: string, writers: string, podsKept: number): Problem {
  const hint = `chown root:root ${directory}; chmod go-w ${directory}`
  return problemWith(directory, `is not read: it can be written by ${writers}`, podsKept, hint)
}

/** Users who can write the directory can run anything. */
export function directoryWritersProblem(directory: string, writers: string): Problem {
  return warningAt(
    directory,
    `the manifest directory can be written by ${writers}, so that they decide what runs here`,
    `chown root:root ${directory}; chmod go-w ${directory}`,
  )
}

/** The same for a manifest. */
export function fileWritersProblem(path: string, writers: string): Problem {
  return warningAt(path, `can be written by ${writers}`, `chown root:root ${path}; chmod go-w ${path}`)
}

/** How many files a problem names. */
const maxNamed = 10

/** Files of these names are not read. */
export function passedOverProblem(directory: string, names: readonly string[]): Problem {
  const named = names.toSorted().slice(0, maxNamed)
  const more = names.length - named.length
  return warningAt(
    directory,
    `these files are not read, as their names end in none of .yaml, .yml and .json: ${named.join(', ')}${more === 0 ? '' : ` and ${more} more`}`,
    'rename those that are manifests; move the others away, or have their names begin with a dot',
  )
}

/** podd can't open it. */
export function unreadableNameProblem(path: string): Problem {
  return errorAt(path, 'is not read: its name is not UTF-8', 'rename it')
}

/** Other hosts' changes are seen only by reading the directory again, every `rescanMs`. */
export function networkProblem(directory: string, fileSystem: string, rescanMs: number): Problem {
  return warningAt(
    directory,
    `changes by other hosts are noticed only every ${rescanMs / 1000} s: the manifest directory is on a network file system (${fileSystem})`,
  )
}

/** Changes are seen only by reading the directory again, every `rescanMs`. */
export function watchProblem(directory: string, error: unknown, rescanMs: number): Problem {
  const code = errorCode(error)
  const isLimit = code === 'ENOSPC' || code === 'EMFILE'
  return warningAt(
    directory,
    `changes are noticed only every ${rescanMs / 1000} s: the system refuses to watch (${code ?? errorMessage(error)})`,
    isLimit
      ? 'raise fs.inotify.max_user_watches and fs.inotify.max_user_instances, and restart podd'
      : undefined,
  )
}
