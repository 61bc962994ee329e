import type { Clock } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { groupOfRole } from './access/roles.ts'
import type { Role } from './access/roles.ts'
import { TokenFile } from './access/token-file.ts'
import { formatKubeconfig } from './certificates/kubeconfig.ts'
import { OwnAuthority } from './certificates/own-authority.ts'
import { listenOverTls } from './listeners/tls-listener.ts'
import type { ListenAddress, TlsListener } from './listeners/tls-listener.ts'
import type { ApiHandler } from './requests/api-request.ts'
import type { Identity } from './requests/identity.ts'
import type { StateReport } from '../store/state-report.ts'

export interface NetworkOptions {
  readonly address: ListenAddress
  /** The names in the server's certificate: host names and addresses under which clients may reach it. */
  readonly names: readonly string[]
  readonly rootDir: string
  readonly tokenFile: string | undefined
  /** Called for certificates that can't be read. */
  readonly report?: StateReport | undefined
}

export interface KubeconfigRequest {
  readonly user: string
  readonly role: Role
  readonly days: number
  /** Undefined: the address where podd listens. */
  readonly server: string | undefined
}

/** An address may be assigned only later, such as a VPN's. */
const retryMs = 10_000

/** The API over TLS: authentication and the listener. */
export class NetworkApi {
  readonly #options: NetworkOptions
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #authority: OwnAuthority
  readonly #stop = new AbortController()
  #listener: TlsListener | undefined
  #running: Promise<void> = Promise.resolve()

  constructor(
    options: NetworkOptions,
    { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  ) {
    this.#options = options
    this.#clock = clock
    this.#logger = logger
    const { rootDir, names, report } = options
    this.#authority = new OwnAuthority({ rootDir, names, report, clock })
  }

  /** Listens, or keeps trying; resolves after the first attempt. */
  async listen(handler: ApiHandler): Promise<void> {
    const { tokenFile, address } = this.#options
    const tokens = tokenFile === undefined ? undefined : new TokenFile(tokenFile, this.#logger)
    const readToken = (token: string): Identity | undefined => tokens?.identify(token)
    const attempt = async (): Promise<boolean> => {
      try {
        const authority = this.#authority
        const options = { handler, address, authority, readToken, clock: this.#clock, logger: this.#logger }
        this.#listener = await listenOverTls(options)
        this.#logger.info({ path: `${address.host}:${this.#listener.address.port}` }, 'the API listens')
        return true
      } catch (error) {
        this.#logger.error(
          { err: error, reason: errorMessage(error) },
          'the API cannot listen; podd keeps trying',
        )
        return false
      }
    }
    const isListening = await attempt()
    if (isListening) return
    const retry = async (): Promise<void> => {
      do await this.#clock.sleep(retryMs, this.#stop.signal)
      while (!(await attempt()))
    }
    // `attempt` logs its failures: only `close` rejects the wait.
    this.#running = retry().catch(() => {})
  }

  /** The address where it listens; undefined before it does. */
  get port(): number | undefined {
    return this.#listener?.address.port
  }

  /** A kubeconfig with a client certificate of its own. Throws the system's error where there is no authority. */
  kubeconfig({ user, role, days, server }: KubeconfigRequest): string {
    const subject = { commonName: user, organizations: [groupOfRole(role)] }
    const pair = this.#authority.issueClient(subject, days)
    return formatKubeconfig({
      server: server ?? this.#defaultServer(),
      trusted: this.#authority.trusted(),
      user,
      ...pair,
    })
  }

  async close(graceMs: number): Promise<void> {
    this.#stop.abort()
    await this.#running
    await this.#listener?.close(graceMs)
  }

  #defaultServer(): string {
    const { host } = this.#options.address
    const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
    const port = this.port ?? this.#options.address.port
    return `https://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
  }
}
