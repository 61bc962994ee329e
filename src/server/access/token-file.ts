import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type { Logger } from '../../base/logger.ts'
import { authenticatedGroup } from '../requests/identity.ts'
import type { Identity } from '../requests/identity.ts'
import { parseTokens } from './parse-tokens.ts'
import type { TokenEntry } from './parse-tokens.ts'

/** Bearer tokens of a file that is read again when it has changed. One that others may read gives no token. */
export class TokenFile {
  readonly #path: string
  readonly #logger: Logger
  #stamp = ''
  /** By their digests: how long it takes to find one tells nothing of it. */
  #entries: ReadonlyMap<string, TokenEntry> = new Map()

  constructor(path: string, logger: Logger) {
    this.#path = path
    this.#logger = logger
  }

  /** Whose token it is; undefined where it is none. */
  identify(token: string): Identity | undefined {
    const entry = this.#read().get(digestOf(token))
    return entry && { name: entry.user, groups: [...entry.groups, authenticatedGroup] }
  }

  #read(): ReadonlyMap<string, TokenEntry> {
    try {
      const { mtimeMs, ino, size, mode } = statSync(this.#path)
      const stamp = [mtimeMs, ino, size, mode].join(' ')
      if (stamp === this.#stamp) return this.#entries
      this.#entries = new Map()
      this.#stamp = stamp
      if ((mode & 0o077) !== 0) {
        this.#logger.warn(
          { path: this.#path },
          'the file of tokens is ignored: others than its owner may open it; chmod 600 it',
        )
        return this.#entries
      }
      const { entries, problems } = parseTokens(readFileSync(this.#path, 'utf8'))
      this.#entries = new Map(entries.map((entry) => [digestOf(entry.token), entry]))
      for (const reason of problems)
        this.#logger.warn({ path: this.#path, reason }, 'a line of the file of tokens is ignored')
    } catch (error) {
      const stamp = String(error)
      if (stamp !== this.#stamp)
        this.#logger.warn({ path: this.#path, err: error }, 'cannot read the file of tokens')
      this.#stamp = stamp
      this.#entries = new Map()
    }
    return this.#entries
  }
}

function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}
