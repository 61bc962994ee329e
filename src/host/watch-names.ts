import { existsSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import { errorCode } from '../base/errors.ts'

/**
 * Calls back when a file of one of these paths may have been written, replaced, made or removed, until the signal is
 * aborted. It is only a hint: the caller has to look. There are none for a directory that can't be watched.
 */
export function watchNames(paths: readonly string[], onHint: () => void, signal: AbortSignal): void {
  for (const path of paths) {
    try {
      const watcher = watch(dirname(path), { persistent: false, signal }, (_, name) => {
        if (name === null || name === basename(path)) onHint()
      })
      watcher.on('error', () => watcher.close())
    } catch (error) {
      if (errorCode(error) === undefined) throw error
    }
  }
}

/**
 * Resolves when something is at a path. Directories above it may be missing too. The kernel's own file systems don't tell
 * of what comes: it is a hint beside a look now and then. Rejects with the signal's reason.
 */
export async function whenThere(path: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  while (!existsSync(path)) {
    let next = path
    while (dirname(next) !== next && !existsSync(dirname(next))) next = dirname(next)
    const hint = Promise.withResolvers<void>()
    const over = new AbortController()
    const end = AbortSignal.any([signal, over.signal])
    signal.addEventListener('abort', () => hint.resolve(), { signal: end })
    watchNames([next], () => hint.resolve(), end)
    // It may have come before it was watched.
    if (!existsSync(next)) await hint.promise
    over.abort()
    signal.throwIfAborted()
  }
}
