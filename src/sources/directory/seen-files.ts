import { join } from 'node:path'
import type { Problem } from '../../pod/objects/document.ts'
import { fileWritersProblem } from './directory-problems.ts'
import { danglingMark } from '../read-manifest-file.ts'
import type { FileLook } from '../read-manifest-file.ts'

/**
 * What examining manifests shows beside their content: which are symlinks, and which others than root can write. The
 * latter get a warning, or aren't read in strict mode.
 */
export class SeenFiles {
  readonly #directory: string
  readonly #isStrict: boolean
  readonly #writers = new Map<string, string>()
  readonly #links = new Set<string>()
  /** Links whose targets are missing. */
  readonly #dangling = new Set<string>()
  #hasArrived = false

  constructor(directory: string, isStrict: boolean) {
    this.#directory = directory
    this.#isStrict = isStrict
  }

  get hasLinks(): boolean {
    return this.#links.size > 0
  }

  get hasDangling(): boolean {
    return this.#dangling.size > 0
  }

  /** Whether the missing target of a link has come since this was last asked. */
  takeArrived(): boolean {
    const hasArrived = this.#hasArrived
    this.#hasArrived = false
    return hasArrived
  }

  problems(): readonly Problem[] {
    return [...this.#writers]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, writers]) => fileWritersProblem(join(this.#directory, name), writers))
  }

  /** The result of examining a file, with strict mode applied. */
  judge(name: string, look: FileLook): FileLook {
    if (look.kind !== 'missing' && look.isLink === true) this.#links.add(name)
    else this.#links.delete(name)
    if (look.kind === 'unreadable' && look.fingerprint === danglingMark) this.#dangling.add(name)
    else if (this.#dangling.delete(name) && look.kind !== 'missing') this.#hasArrived = true
    const writers = look.kind === 'file' ? look.otherWriters : undefined
    if (look.kind !== 'file' || writers === undefined) {
      this.#writers.delete(name)
      return look
    }
    const { fingerprint } = look
    if (this.#isStrict) return { kind: 'unreadable', fingerprint, reason: `can be written by ${writers}` }
    this.#writers.set(name, writers)
    return look
  }
}
