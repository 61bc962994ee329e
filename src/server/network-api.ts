import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { formatAddress } from '../config/api-options.ts'
import type { ListenAddress } from '../config/api-options.ts'
import { groupOfRole } from './access/roles.ts'
import type { Role } from './access/roles.ts'
import { TokenFile } from './access/token-file.ts'
import { formatKubeconfig } from './certificates/kubeconfig.ts'
import { OwnAuthority } from './certificates/own-authority.ts'
import { listenOverTls } from './listeners/tls-listener.ts'
import type { TlsListener } from './listeners/tls-listener.ts'
import { PortOpener } from './listeners/port-opener.ts'
import type { ServedPort } from './listeners/port-opener.ts'
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

/** The API over TLS: authentication and the listener. */
export class NetworkApi {
  readonly #options: NetworkOptions
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #authority: OwnAuthority
  #listener: TlsListener | undefined
  #opener: PortOpener<TlsListener> | undefined

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

  /** The port for this handler; nothing is opened yet. */
  servePort(handler: ApiHandler): ServedPort {
    const { tokenFile, address } = this.#options
    const tokens = tokenFile === undefined ? undefined : new TokenFile(tokenFile, this.#logger)
    const readToken = (token: string): Identity | undefined => tokens?.identify(token)
    const opener = new PortOpener(async () => {
      const authority = this.#authority
      const options = { handler, address, authority, readToken, clock: this.#clock, logger: this.#logger }
      const listener = await listenOverTls(options)
      this.#listener = listener
      this.#logger.info({ path: formatAddress(listener.address) }, 'the API listens')
      return listener
    })
    this.#opener = opener
    return {
      option: 'api.listen',
      address,
      get problem() {
        return opener.problem
      },
      open: () => opener.open(),
    }
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
    await this.#opener?.close(graceMs)
  }

  #defaultServer(): string {
    const { host } = this.#options.address
    const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
    const port = this.port ?? this.#options.address.port
    return `https://${formatAddress({ host: reached, port })}`
  }
}
