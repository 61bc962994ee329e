/* Plugins that give credentials for images: their configuration, calls, and answers that are cached. */
import { readdir, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { readBounded } from '../base/read-bounded.ts'
import { matchesLocationText } from '../decide/images/keyring.ts'
import type { DockerConfig } from '../decide/images/keyring.ts'
import {
  formatProviderRequest,
  readProviderConfig,
  readProviderResponse,
  repeatedNames,
} from '../decide/images/provider-config.ts'
import type {
  CredentialProvider,
  ProviderConfigReading,
  ProviderResponse,
} from '../decide/images/provider-config.ts'
import { BoundedCommandError, runBounded } from '../host/run-command.ts'
import type { BoundedCommand, BoundedOutput } from '../host/run-command.ts'
import { readYamlDocuments } from '../pod/decode/read-documents.ts'

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
      this.#running = providers.map(
        (provider) => keep(before, provider) ?? { provider, cache: new ProviderCache(), inFlight: new Map() },
      )
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

/** An unchanged provider keeps its cached responses. */
function keep(before: readonly Running[], provider: CredentialProvider): Running | undefined {
  return before.find((running) => JSON.stringify(running.provider) === JSON.stringify(provider))
}

function isSame(a: ProviderFiles, b: ProviderFiles): boolean {
  return a.size === b.size && [...a].every(([path, text]) => b.get(path) === text)
}

const maxBytes = 1024 * 1024
const extensions: readonly string[] = ['.json', '.yaml', '.yml']

/** The text of each file of a CredentialProviderConfig, by path. */
type ProviderFiles = ReadonlyMap<string, string>

/**
 * Reads a file, or the `.json`, `.yaml` and `.yml` files of a directory in the order of their names
 * (`pkg/credentialprovider/plugin/config.go`, readCredentialProviderConfig, 1.36). Throws what the system throws.
 */
async function readProviderFiles(path: string, clock: Clock): Promise<ProviderFiles> {
  const isDirectory = (await stat(path)).isDirectory()
  const paths = isDirectory ? await listFiles(path) : [path]
  const files = new Map<string, string>()
  for (const file of paths)
    files.set(file, (await readBounded(file, { maxBytes, clock })).subarray(0, maxBytes).toString('utf8'))
  return files
}

async function listFiles(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { withFileTypes: true })
  return entries
    .filter((entry) => !entry.isDirectory() && extensions.includes(extname(entry.name)))
    .map(({ name }) => join(directory, name))
    .sort()
}

/** The providers of all files. Where one of them is wrong, its problems and no providers. */
export async function parseProviderFiles(path: string, files: ProviderFiles): Promise<ProviderConfigReading> {
  if (files.size === 0) return { providers: [], problems: [`${path}: no configuration files in it`] }
  const providers: CredentialProvider[] = []
  const problems: string[] = []
  for (const [file, text] of files) {
    const read = await parseFile(text)
    providers.push(...read.providers)
    problems.push(...read.problems.map((problem) => `${file}: ${problem}`))
  }
  problems.push(...repeatedNames(providers.map(({ name }) => name)))
  return problems.length > 0 ? { providers: [], problems } : { providers, problems }
}

async function parseFile(text: string): Promise<ProviderConfigReading> {
  try {
    const documents = [...(await readYamlDocuments(text))]
    const [document] = documents
    if (document === undefined || documents.length > 1)
      return { providers: [], problems: ['must hold one CredentialProviderConfig'] }
    return document.kind === 'read'
      ? readProviderConfig(document.value)
      : { providers: [], problems: [document.message] }
  } catch (error) {
    return { providers: [], problems: [errorMessage(error)] }
  }
}

interface Cached {
  readonly config: DockerConfig
  readonly untilMs: number
}

/** No registry and no image has this name. */
const globalKey = '<global>'

/** The most responses that are cached; those that expire first are dropped first. */
const maxEntries = 1000

/**
 * Caches a plugin's responses for as long as they say: for an image, a registry, or all images
 * (`pkg/credentialprovider/plugin/plugin.go`, 1.36). Times are on one clock of the caller's.
 */
class ProviderCache {
  readonly #entries = new Map<string, Cached>()

  find(image: string, nowMs: number): DockerConfig | undefined {
    for (const [key, { untilMs }] of this.#entries) if (nowMs > untilMs) this.#entries.delete(key)
    for (const key of [image, registryOf(image), globalKey]) {
      const found = this.#entries.get(key)
      if (found !== undefined) return found.config
    }
    return undefined
  }

  add(image: string, response: ProviderResponse, defaultMs: number, nowMs: number): void {
    const cacheMs = response.cacheMs ?? defaultMs
    if (cacheMs === 0) return
    const key = keyOf(response, image)
    this.#entries.set(key, { config: response.config, untilMs: nowMs + cacheMs })
    if (this.#entries.size <= maxEntries) return
    const [first] = [...this.#entries].sort(([, a], [, b]) => a.untilMs - b.untilMs)
    if (first !== undefined) this.#entries.delete(first[0])
  }
}

function keyOf({ cacheKeyType }: ProviderResponse, image: string): string {
  switch (cacheKeyType) {
    case 'Image':
      return image
    case 'Registry':
      return registryOf(image)
    case 'Global':
      return globalKey
  }
}

/** With its port. */
function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? image
}
