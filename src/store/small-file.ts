import { readIfExists, removeAtomicFileTemps, writeFileAtomic } from '../base/atomic-file.ts'

/** The text of one file of podd's own. Both calls throw the system's errors as they are. */
export interface SmallFile {
  readonly path: string
  /** Undefined where the file doesn't exist. */
  read(): Promise<string | undefined>
  /** Replaces it; a crash leaves the old text or the new one. */
  write(text: string): Promise<void>
}

export function smallFile(path: string): SmallFile {
  return {
    path,
    async read() {
      await removeAtomicFileTemps(path)
      return readIfExists(path)
    },
    write: (text) => writeFileAtomic(path, text),
  }
}
