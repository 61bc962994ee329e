import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { formatAddress } from '../config/api-options.ts'
import type { ListenAddress } from '../config/api-options.ts'
import type { StateReport } from '../store/state-report.ts'
import { groupOfRole } from './access/authorize.ts'
import type { Role } from './access/authorize.ts'
import { OwnAuthority } from './access/own-authority.ts'
import { ServedPort } from './http/listen.ts'
import { listenOverTls } from './http/tls-listener.ts'
import type { TlsListener } from './http/tls-listener.ts'
import { authenticatedGroup } from './requests/request.ts'
import type { ApiHandler, Identity } from './requests/request.ts'

export interface NetworkOptions {
  readonly address: ListenAddress
  /** The names in the server's certificate: host names and addresses under which clients may reach it. */
  readonly names: readonly string[]
  readonly rootDir: string
  readonly tokenFile: string | undefined
  /** Called for certificates that can't be read. */
  readonly report: StateReport
}

export class NetworkApi {
  readonly #options: NetworkOptions
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #authority: OwnAuthority
  #listener: TlsListener | undefined
  #port: ServedPort | undefined

  constructor(options: NetworkOptions, clock: Clock, logger: Logger) {
    this.#options = options
    this.#clock = clock
    this.#logger = logger
    const { rootDir, names, report } = options
    this.#authority = new OwnAuthority(rootDir, names, report, clock)
  }

  /** The port for this handler; nothing is opened yet. */
  servePort(handler: ApiHandler): ServedPort {
    const { tokenFile, address } = this.#options
    const tokens = tokenFile === undefined ? undefined : new TokenFile(tokenFile, this.#logger)
    const readToken = (token: string): Identity | undefined => tokens?.identify(token)
    this.#port = new ServedPort('api.listen', address, async () => {
      const listener = await listenOverTls(
        handler,
        address,
        this.#authority,
        readToken,
        this.#clock,
        this.#logger,
      )
      this.#listener = listener
      this.#logger.info({ path: formatAddress(listener.address) }, 'the API listens')
      return listener
    })
    return this.#port
  }

  /** The address where it listens; undefined before it does. */
  get port(): number | undefined {
    return this.#listener?.address.port
  }

  /**
   * A kubeconfig with a client certificate of its own. Throws the system's error where there is no authority.
   * @param server undefined for the address where podd listens
   */
  kubeconfig(user: string, role: Role, days: number, server: string | undefined): string {
    const subject = { commonName: user, organizations: [groupOfRole(role)] }
    const pair = this.#authority.issueClient(subject, days)
    return formatKubeconfig(server ?? this.#defaultServer(), this.#authority.trusted(), user, pair)
  }

  async close(graceMs: number): Promise<void> {
    await this.#port?.close(graceMs)
  }

  #defaultServer(): string {
    const { host } = this.#options.address
    const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
    const port = this.port ?? this.#options.address.port
    return `https://${formatAddress({ host: reached, port })}`
  }
}

/** Bearer tokens of a file that is read again when it has changed. A file that others may read is ignored. */
class TokenFile {
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
        const message =
          'the token file is ignored: users other than its owner can open it; run chmod 600 on it'
        this.#logger.warn({ path: this.#path }, message)
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

interface TokenEntry {
  readonly token: string
  readonly user: string
  readonly groups: readonly string[]
}

/**
 * Reads a file of tokens: a line for each, `token,user,uid,"group1,group2"`, the groups optional (kube-apiserver's
 * `--token-auth-file`, 1.36). Problems never contain a token.
 */
function parseTokens(text: string): {
  readonly entries: readonly TokenEntry[]
  readonly problems: readonly string[]
} {
  const entries: TokenEntry[] = []
  const problems: string[] = []
  for (const [index, line] of text.split(/\r?\n/u).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue
    const [token = '', user = '', uid, groups = ''] = splitFields(line)
    if (token === '' || user === '' || uid === undefined)
      problems.push(`line ${index + 1} is not token,user,uid[,"groups"]`)
    else if (entries.some((entry) => entry.token === token))
      problems.push(`line ${index + 1} repeats the token of an earlier line`)
    else entries.push({ token, user, groups: groups.split(',').filter((group) => group !== '') })
  }
  return { entries, problems }
}

/** Fields of a line of CSV; one in quotes may contain commas. */
function splitFields(line: string): readonly string[] {
  const found = line.matchAll(/(?:^|,)\s*(?:"(?<quoted>(?:[^"]|"")*)"|(?<plain>[^,]*))/gu)
  return [...found].map(
    ({ groups }) => groups?.['quoted']?.replaceAll('""', '"') ?? groups?.['plain']?.trim() ?? '',
  )
}

/** A kubeconfig with one cluster, one user and one context, all data inline. */
function formatKubeconfig(
  server: string,
  trusted: string,
  user: string,
  { certificate, key }: { readonly certificate: string; readonly key: string },
): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  return `apiVersion: v1
kind: Config
clusters:
  - name: podd
    cluster:
      server: ${JSON.stringify(server)}
      certificate-authority-data: ${base64(trusted)}
users:
  - name: ${JSON.stringify(user)}
    user:
      client-certificate-data: ${base64(certificate)}
      client-key-data: ${base64(key)}
contexts:
  - name: podd
    context:
      cluster: podd
      user: ${JSON.stringify(user)}
current-context: podd
`
}
