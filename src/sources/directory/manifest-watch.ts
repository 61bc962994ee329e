import type { Problem } from '../../pod/objects/document.ts'
import type { DirectoryHint, DirectoryWatch } from '../watch-directory.ts'
import { watchDirectory } from '../watch-directory.ts'
import type { DirectorySourceOptions } from './directory-options.ts'
import { isManifestName } from '../manifest-name.ts'
import { watchProblem } from './directory-problems.ts'

export interface ManifestWatchParts {
  readonly directory: string
  /** The interval of reads while the directory can't be watched. */
  readonly pollMs: number
  readonly onHint: (hint: DirectoryHint) => void
  /** The directory can't be watched: see `problem`. */
  readonly onFailure: () => void
}

/** Watches the manifest directory; a failure is a problem, and the directory is polled then. */
export class ManifestWatch {
  readonly #options: Pick<DirectorySourceOptions, 'watch' | 'recursive' | 'logger'>
  readonly #parts: ManifestWatchParts
  #watch: DirectoryWatch | undefined
  #problem: Problem | undefined

  constructor(
    options: Pick<DirectorySourceOptions, 'watch' | 'recursive' | 'logger'>,
    parts: ManifestWatchParts,
  ) {
    this.#options = options
    this.#parts = parts
  }

  get problem(): Problem | undefined {
    return this.#problem
  }

  start(): void {
    const { watch = watchDirectory, recursive = false } = this.#options
    const onFailure = (error: unknown): void => this.#fail(error)
    try {
      const { directory, onHint } = this.#parts
      this.#watch = watch(directory, { onHint, onFailure }, { recursive, looksAt: isManifestName })
    } catch (error) {
      this.#watch = undefined
      this.#fail(error)
    }
  }

  /** Watches the directory that the path currently refers to. */
  async restart(): Promise<void> {
    await this.close()
    this.start()
  }

  async close(): Promise<void> {
    await this.#watch?.close()
  }

  #fail(error: unknown): void {
    const { directory, pollMs, onFailure } = this.#parts
    this.#problem = watchProblem(directory, error, pollMs)
    this.#options.logger.error({ path: directory, err: error }, 'cannot watch the manifest directory')
    onFailure()
  }
}
