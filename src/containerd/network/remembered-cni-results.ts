import { stat } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import { cniResultsDirectory, readCniResults } from './cni-results.ts'
import type { CniResult } from './cni-results.ts'

/** For this long after its directory changed, a result may still be incomplete. */
const settleMs = 2000

/**
 * libcni's cached results of one network, read again only when their directory has changed: a result is written once,
 * when its file is created.
 */
export class RememberedCniResults {
  readonly #networkName: string
  readonly #clock: Clock
  readonly #directory: string
  /** The state of the directory, and when it was first found so (monotonic). */
  #seen: { readonly fingerprint: string; readonly sinceMs: number } | undefined
  #results: readonly CniResult[] | undefined

  constructor(networkName: string, clock: Clock, directory = cniResultsDirectory) {
    this.#networkName = networkName
    this.#clock = clock
    this.#directory = directory
  }

  /** Throws the system's errors. */
  async read(): Promise<readonly CniResult[]> {
    const fingerprint = await this.#look()
    const nowMs = this.#clock.monotonicMs()
    if (this.#seen?.fingerprint !== fingerprint) {
      this.#seen = fingerprint === undefined ? undefined : { fingerprint, sinceMs: nowMs }
      this.#results = undefined
    }
    if (this.#results !== undefined) return this.#results
    const all = await readCniResults(this.#directory)
    const results = all.filter(({ networkName }) => networkName === this.#networkName)
    if (this.#seen !== undefined && nowMs - this.#seen.sinceMs >= settleMs) this.#results = results
    return results
  }

  /** Changes when a result is created or removed; undefined where there is no directory. */
  async #look(): Promise<string | undefined> {
    try {
      const { dev, ino, mtimeNs } = await stat(this.#directory, { bigint: true })
      return `${dev}:${ino}:${mtimeNs}`
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined
      throw error
    }
  }
}
