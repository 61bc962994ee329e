import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { DockerConfig } from '../../decide/images/keyring.ts'
import { matchesLocationText } from '../../decide/images/keyring.ts'
import type { CredentialProvider } from '../../decide/images/provider-config.ts'
import { formatProviderRequest, readProviderResponse } from '../../decide/images/provider-config.ts'
import { BoundedCommandError, runBounded } from '../../host/run-command.ts'
import type { BoundedCommand, BoundedOutput } from '../../host/run-command.ts'
import { ProviderCache } from './provider-cache.ts'
import { parseProviderFiles, readProviderFiles } from './read-provider-files.ts'
import type { ProviderFiles } from './read-provider-files.ts'

/** `pkg/credentialprovider/plugin/plugin.go`, ExecPlugin, 1.36. */
const timeoutMs = 60_000
const maxOutputBytes = 1024 * 1024

export interface CredentialProvidersOptions {
  /** A file or a directory of files (`imageCredentialProviderConfig`). */
  readonly configPath: string
  /** Where the programs are. */
  readonly binDir: string
  readonly clock: Clock
  readonly logger: Logger
  /** podd's own, to which a provider's variables are added. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly run?: (command: BoundedCommand, clock: Clock) => Promise<BoundedOutput>
}

/** The plugins' credentials for an image, in the order of the config; `failures` are messages without secrets. */
export interface ProvidedCredentials {
  readonly configs: readonly DockerConfig[]
  readonly failures: readonly string[]
}

/** A provider with its cached responses and calls in flight, by image. */
interface Running {
  readonly provider: CredentialProvider
  readonly cache: ProviderCache
  readonly inFlight: Map<string, Promise<DockerConfig>>
}

/**
 * The node's credential provider plugins (`pkg/credentialprovider/plugin`, 1.36). Their config is read again before
 * each use; an invalid one is reported, and the last good one stays in use.
 */
export class CredentialProviders {
  readonly #options: CredentialProvidersOptions
  #files: ProviderFiles | undefined
  #running: readonly Running[] = []
  #problem: string | undefined

  constructor(options: CredentialProvidersOptions) {
    this.#options = options
  }

  /** @param image the registry and the repository */
  async provide(image: string): Promise<ProvidedCredentials> {
    await this.refresh()
    const matching = this.#running.filter(({ provider }) =>
      provider.matchImages.some((pattern) => matchesLocationText(pattern, image)),
    )
    const failures = this.#problem === undefined ? [] : [this.#problem]
    const found = await Promise.all(matching.map((running) => this.#ask(running, image)))
    return {
      configs: found.filter((result) => typeof result !== 'string'),
      failures: [...failures, ...found.filter((result) => typeof result === 'string')],
    }
  }

  /** Reloads the config. Its problems are logged once. */
  async refresh(): Promise<void> {
    const { configPath, clock } = this.#options
    try {
      const files = await readProviderFiles(configPath, clock)
      if (this.#files !== undefined && isSame(files, this.#files)) return
      const { providers, problems } = await parseProviderFiles(configPath, files)
      this.#files = files
      this.#report(problems.length === 0 ? undefined : problems.join('; '))
      if (problems.length > 0) return
      const before = this.#running
      this.#running = providers.map((provider) => keep(before, provider) ?? start(provider))
    } catch (error) {
      this.#files = undefined
      this.#report(errorMessage(error))
    }
  }

  #report(problem: string | undefined): void {
    const { configPath: path, logger } = this.#options
    const message =
      problem === undefined ? undefined : `the credential provider config is not used: ${problem}`
    if (problem !== undefined && message !== this.#problem)
      logger.error({ path, reason: problem }, 'cannot use the credential provider config')
    this.#problem = message
  }

  async #ask(running: Running, image: string): Promise<DockerConfig | string> {
    const cached = running.cache.find(image, this.#options.clock.monotonicMs())
    if (cached !== undefined) return cached
    const { provider, inFlight } = running
    try {
      const asked = inFlight.get(image) ?? this.#run(running, image)
      inFlight.set(image, asked)
      return await asked
    } catch (error) {
      const stderr = error instanceof BoundedCommandError ? error.stderr : ''
      // Its standard error goes only to the log.
      const reason = [errorMessage(error), stderr].filter((text) => text !== '').join(': ')
      this.#options.logger.error({ path: provider.name, image, reason }, 'a credential provider failed')
      return `credential provider ${provider.name}: ${errorMessage(error)}`
    } finally {
      inFlight.delete(image)
    }
  }

  async #run({ provider, cache }: Running, image: string): Promise<DockerConfig> {
    const { clock, binDir, env, run = runBounded } = this.#options
    const path = join(binDir, provider.name)
    const command = {
      path,
      args: provider.args,
      env: { ...env, ...provider.env },
      input: formatProviderRequest(image),
      timeoutMs,
      maxOutputBytes,
    }
    const { stdout, stderr } = await run(command, clock)
    const response = readProviderResponse(stdout)
    if (typeof response === 'string') throw new BoundedCommandError(`${path}: ${response}`, stderr)
    cache.add(image, response, provider.defaultCacheMs, clock.monotonicMs())
    return response.config
  }
}

function start(provider: CredentialProvider): Running {
  return { provider, cache: new ProviderCache(), inFlight: new Map() }
}

/** An unchanged provider keeps its cached responses. */
function keep(before: readonly Running[], provider: CredentialProvider): Running | undefined {
  return before.find((running) => JSON.stringify(running.provider) === JSON.stringify(provider))
}

function isSame(a: ProviderFiles, b: ProviderFiles): boolean {
  return a.size === b.size && [...a].every(([path, text]) => b.get(path) === text)
}
