import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { RandomSource } from '../../base/random.ts'
import type { SourceName } from '../../pod/objects/document.ts'
import type { FieldValidation } from '../../pod/schema/check-value.ts'
import type { LastGoodStore } from '../../store/last-good.ts'
import type { DecodeSource } from '../decode-source.ts'
import type { FollowedValues } from '../followed-values.ts'
import type { Environment } from './choose-proxy.ts'
import type { HeaderFiles } from './read-headers.ts'
import type { TlsFiles } from './tls-files.ts'

export interface HttpSourceOptions {
  readonly name: SourceName
  /** `http:`, `https:`, or `unix:///SOCKET:/PATH`. */
  readonly url: string
  /** Sent with every request; several values of one name as they stand. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** Headers whose values are read from files with every request: paths by names. */
  readonly headerFiles?: HeaderFiles
  readonly tls?: TlsFiles
  /** From one request to the next, where the server doesn't hold answers back. */
  readonly periodMs: number
  /** Whether the server may hold an answer back until there is something new: yes where nothing is said. */
  readonly mayHold?: boolean
  readonly clock: Clock
  readonly random?: RandomSource
  readonly logger: Logger
  readonly lastGood: LastGoodStore
  readonly decode: DecodeSource
  /** What `decode` puts into texts: after a change the whole answer is asked for at once. */
  readonly values?: FollowedValues | undefined
  readonly fieldValidation?: FieldValidation
  /** Where proxies are named; that of this process where nothing is said. */
  readonly env?: Environment
}
