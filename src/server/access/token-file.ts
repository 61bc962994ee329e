import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type { Logger } from '../../base/logger.ts'
import { authenticatedGroup } from '../requests/identity.ts'
import type { Identity } from '../requests/identity.ts'
import { parseTokens } from './parse-tokens.ts'
import type { TokenEntry } from './parse-tokens.ts'

/** Bearer tokens of a file that is read again when it has changed. A file that others may read is ignored. */
export class TokenFile {
  readonly #path: string
  readonly #logger: Logger
  #stamp = ''
  /** By their digests, so that the duration of a lookup reveals nothing about a token. */
  #entries: ReadonlyMap<string, TokenEntry> = new Map()

  constructor(path: string, logger: Logger) {
    this.#path = path
    this.#logger = logger
  }

  /** The identity of a token; undefined for an unknown one. */
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
          'the token file is ignored: users other than its owner can open it; run chmod 600 on it',
        )
        return this.#entries
      }
      const { entries, problems } = parseTokens(readFileSync(this.#path, 'utf8'))
      this.#entries = new Map(entries.map((entry) => [digestOf(entry.token), entry]))
      for (const reason of problems)
        this.#logger.warn({ path: this.#path, reason }, 'a line of the token file is ignored')
    } catch (error) {
      const stamp = String(error)
      if (stamp !== this.#stamp)
        this.#logger.warn({ path: this.#path, err: error }, 'cannot read the token file')
      this.#stamp = stamp
      this.#entries = new Map()
    }
    return this.#entries
  }
}

function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}
