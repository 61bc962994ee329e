import { existsSync, watch } from 'node:fs'
import { dirname } from 'node:path'
import { PoddError, errorCode, errorMessage } from '../base/errors.ts'

/** Watches a directory as soon as it exists. */
export class LogDirectoryWatch {
  readonly #path: string
  readonly #wake: () => void
  #watcher: ReturnType<typeof watch> | undefined

  constructor(path: string, wake: () => void) {
    this.#path = path
    this.#wake = wake
  }

  /** Throws PoddError LOG_WATCH where the kernel refuses another watch. */
  ensure(): void {
    if (this.#watcher !== undefined) return
    try {
      const watcher = watch(this.#path, this.#wake)
      watcher.on('error', () => this.#wake())
      this.#watcher = watcher
    } catch (error) {
      // The pod's status changes once its container starts, and then the directory exists.
      if (errorCode(error) === 'ENOENT') return
      throw watchRefused(this.#path, error)
    }
  }

  [Symbol.dispose](): void {
    this.#watcher?.close()
  }
}

/**
 * Checks that a log can be followed, before the response begins: watches the directory, or its nearest existing parent,
 * for a moment. Throws PoddError LOG_WATCH.
 */
export function checkLogWatch(directory: string): void {
  let path = directory
  while (!existsSync(path) && dirname(path) !== path) path = dirname(path)
  using probe = new LogDirectoryWatch(path, () => {})
  probe.ensure()
}

/** The exhausted resource, by the errors of inotify_init1(2) and inotify_add_watch(2). */
const limits: Readonly<Record<string, string>> = {
  EMFILE: 'inotify instances (fs.inotify.max_user_instances)',
  ENOSPC: 'inotify watches (fs.inotify.max_user_watches)',
}

function watchRefused(path: string, error: unknown): PoddError {
  const limit = limits[errorCode(error) ?? '']
  const why = limit === undefined ? errorMessage(error) : `this host has no more ${limit}`
  return new PoddError('LOG_WATCH', `cannot watch ${path} for changes: ${why}`, {
    cause: error,
    hint: 'Raise fs.inotify.max_user_instances and fs.inotify.max_user_watches with sysctl. Without -f the log can be read all the same.',
  })
}
