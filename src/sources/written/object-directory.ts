import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isAtomicFileTemp, removeAtomicFileTemps } from '../../base/atomic-file.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { identify } from '../identify-directory.ts'
import { isObjectFile } from './object-file.ts'

export interface ObjectListing {
  /** Of the files of objects, in their order. */
  readonly names: readonly string[]
  /** The directory was missing or unreadable, or it is another one than the last time. */
  readonly wasAway: boolean
}

/** The directory of the files of objects: which one it is, what is in it, and why it can't be read. */
export class ObjectDirectory {
  readonly #path: string
  readonly #logger: Logger
  #id: string | undefined
  #problem: Problem | undefined

  constructor(path: string, logger: Logger) {
    this.#path = path
    this.#logger = logger
  }

  /** Changes when the directory is replaced; undefined until it was read. */
  get id(): string | undefined {
    return this.#id
  }

  get problem(): Problem | undefined {
    return this.#problem
  }

  /** Whether it can be read and is the one that was listed last. */
  async isSame(): Promise<boolean> {
    // Listing tells why it can't be looked at.
    const found = await identify(this.#path).catch(() => undefined)
    return this.#problem === undefined && found?.id === this.#id
  }

  /**
   * Undefined where it can't be read: see `problem`. Never throws.
   * @param isExpected files are known that are in it; otherwise it is made with the first one
   */
  async list(isExpected: boolean): Promise<ObjectListing | undefined> {
    try {
      const { id } = await identify(this.#path)
      const all = await readdir(this.#path)
      const wasAway = this.#id !== undefined && (this.#id !== id || this.#problem !== undefined)
      this.#id = id
      this.#note(undefined)
      const names = all.filter((name) => isObjectFile(name)).sort()
      if (all.some((name) => isAtomicFileTemp(name)))
        for (const name of names) await this.#removeTemps(join(this.#path, name))
      return { names, wasAway }
    } catch (error) {
      this.#note(errorCode(error) === 'ENOENT' && !isExpected ? undefined : this.#problemOf(error), error)
      return undefined
    }
  }

  async #removeTemps(path: string): Promise<void> {
    await removeAtomicFileTemps(path).catch((error: unknown) =>
      this.#logger.warn({ path, err: error }, 'cannot remove a temporary file of an API object'),
    )
  }

  #problemOf(error: unknown): Problem {
    const isMissing = errorCode(error) === 'ENOENT'
    const why = isMissing ? 'does not exist' : `cannot be read: ${errorMessage(error)}`
    return {
      severity: 'error',
      place: { path: this.#path },
      message: `${why}; pods that were written over the API are left as they are`,
      hint: isMissing
        ? `restore it; where no object is meant to be left, create it: mkdir -m 700 ${this.#path}`
        : 'make it readable for podd',
    }
  }

  #note(problem: Problem | undefined, error?: unknown): void {
    const before = this.#problem
    this.#problem = problem
    if (before?.message === problem?.message) return
    const path = this.#path
    if (problem === undefined) this.#logger.info({ path }, 'the directory of API objects is readable again')
    else this.#logger.error({ path, err: error }, 'cannot read the directory of API objects')
  }
}
