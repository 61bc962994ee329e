import { dirname, join } from 'node:path'
import { mapBounded } from '../../base/waits.ts'
import { directoriesOf, isKustomization, lookAtKustomization } from '../kustomization.ts'
import type { KustomizationLook } from '../kustomization.ts'
import { lookAtFile } from '../read-manifest-file.ts'
import type { FileLook } from '../read-manifest-file.ts'
import type { PendingFiles } from './pending-files.ts'
import type { TakenFiles } from './taken-files.ts'

/**
 * The kustomizations in a manifest directory, as they were looked at last, and what becomes of the files that they refer to.
 */
export class ReferredFiles {
  readonly #directory: string
  readonly #taken: TakenFiles
  readonly #pending: PendingFiles
  readonly #needsSignatures: boolean
  readonly #kustomizations = new Map<string, KustomizationLook>()
  #isOtherwiseReferred = false

  constructor(directory: string, taken: TakenFiles, pending: PendingFiles, needsSignatures: boolean) {
    this.#directory = directory
    this.#taken = taken
    this.#pending = pending
    this.#needsSignatures = needsSignatures
  }

  /** The kustomizations that refer to a file. */
  referringTo(name: string): readonly string[] {
    return [...this.#kustomizations].flatMap(([other, { files, isUnclear }]) => {
      const isBeside = dirname(other) === '.' || name.startsWith(`${dirname(other)}/`)
      return files.has(name) || (isUnclear && isBeside && name !== other) ? [other] : []
    })
  }

  /** The directories of the files that kustomizations refer to. */
  directories(): ReadonlySet<string> {
    return new Set([...this.#kustomizations].flatMap(([name, { files }]) => directoriesOf(name, files)))
  }

  /** Whether kustomizations refer to other files than when this was last asked, so that all have to be looked at. */
  takeChange(): boolean {
    const isOther = this.#isOtherwiseReferred
    this.#isOtherwiseReferred = false
    return isOther
  }

  /**
   * What becomes of a file because of kustomizations: what one refers to gives nothing by itself; what it gave before stays
   * until the kustomization is whole and good.
   */
  placeOf(name: string): 'own' | 'referred' | 'awaited' {
    const others = this.referringTo(name)
    // Of two that refer to each other, both have their problem.
    const counted = others.filter(
      (other) => this.#kustomizations.get(name) === undefined || !this.#isCircle(other),
    )
    if (counted.length === 0) return 'own'
    if (!this.#taken.has(name)) return 'referred'
    const isGood = counted.some((other) => !this.#pending.files.has(other) && this.#taken.isGood(other))
    return isGood ? 'referred' : 'awaited'
  }

  #isCircle(name: string): boolean {
    return this.#kustomizations.get(name)?.isCircle === true
  }

  /** Looks at a kustomization. Never throws. */
  async lookAt(name: string): Promise<FileLook> {
    const before = this.#kustomizations.get(name)
    const looked = this.#needsSignatures
      ? await this.#refuse(name)
      : await lookAtKustomization(this.#directory, name)
    // What one that was never built refers to gives by itself what it gave before: nothing stops for a mistake, or for want of
    // a builder.
    const isBuilt = looked.look.kind === 'file' || this.#taken.hasGiven(name)
    const found = isBuilt ? looked : { ...looked, files: new Set<string>(), isUnclear: false }
    if (found.look.kind === 'missing') this.#kustomizations.delete(name)
    else if (!found.isUnclear || before === undefined) this.#kustomizations.set(name, found)
    // While it can't be read, it refers to what it did before, too.
    else
      this.#kustomizations.set(name, {
        ...found,
        files: new Set([...before.files, ...found.files]),
        isUnclear: before.isUnclear,
      })
    const printOf = (known: KustomizationLook | undefined): string =>
      JSON.stringify([[...(known?.files ?? [])].toSorted(), known?.isUnclear])
    if (printOf(before) !== printOf(this.#kustomizations.get(name))) this.#isOtherwiseReferred = true
    return found.look
  }

  /** A signature of it would say nothing of the files that it refers to. */
  async #refuse(name: string): Promise<KustomizationLook> {
    const own = await lookAtFile(join(this.#directory, name))
    const reason =
      'is not built: what it refers to would need signatures, too: sign what `kubectl kustomize` makes, and put that here'
    const look: FileLook =
      own.kind === 'file' ? { kind: 'unreadable', fingerprint: own.fingerprint, reason } : own
    return { look, files: new Set(), isCircle: false, isUnclear: false }
  }

  /** A file was taken: what it refers to, where it is a kustomization, was awaited until now. */
  noteTaken(name: string): void {
    if (this.#kustomizations.has(name)) this.#isOtherwiseReferred = true
  }
}

/** Kustomizations first: what they refer to gives nothing by itself. */
export async function lookAtEach<T>(
  items: readonly (readonly [name: string, item: T])[],
  look: (item: readonly [string, T]) => Promise<void>,
): Promise<void> {
  await mapBounded(
    items.filter(([name]) => isKustomization(name)),
    look,
  )
  await mapBounded(
    items.filter(([name]) => !isKustomization(name)),
    look,
  )
}
