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
  /** Whether redirects may lead from this host to another unencrypted; by default they may not. */
  readonly allowHttp?: boolean
  /** Sent with every request; several values of one name stay separate. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** Headers whose values are read from files with every request: paths by names. */
  readonly headerFiles?: HeaderFiles
  readonly tls?: TlsFiles
  /** The period of requests, where the server doesn't delay responses. */
  readonly periodMs: number
  /** Whether the server may delay a response until there is something new; by default it may. */
  readonly mayHold?: boolean
  readonly clock: Clock
  readonly random?: RandomSource
  readonly logger: Logger
  readonly lastGood: LastGoodStore
  readonly decode: DecodeSource
  /** The values that `decode` substitutes: after a change the full response is requested at once. */
  readonly values?: FollowedValues | undefined
  readonly fieldValidation?: FieldValidation
  /** The environment with the proxy settings; by default this process's. */
  readonly env?: Environment
}
