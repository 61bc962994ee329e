import { watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { errorCode } from '../base/errors.ts'

/**
 * Calls back when a file of one of these paths may have been replaced, made or removed, until the signal is aborted. It
 * is only a hint: the caller has to look. There are none for a directory that can't be watched.
 */
export function watchNames(paths: readonly string[], onHint: () => void, signal: AbortSignal): void {
  for (const path of paths) {
    try {
      const watcher = watch(dirname(path), { persistent: false, signal }, (kind, name) => {
        if (kind === 'rename' && (name === null || name === basename(path))) onHint()
      })
      watcher.on('error', () => watcher.close())
    } catch (error) {
      if (errorCode(error) === undefined) throw error
    }
  }
}
