import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { errorCode, errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { readBounded } from '../base/read-bounded.ts'
import { readDockerConfig } from '../decide/images/keyring.ts'
import type { DockerConfig } from '../decide/images/keyring.ts'

/** A file of credentials is no larger. */
const maxBytes = 1024 * 1024

export interface NodeDockerConfigOptions {
  readonly rootDir: string
  /** Of the user that podd runs as; undefined where none is known. */
  readonly homeDir: string | undefined
  readonly clock: Clock
  readonly logger: Logger
}

type Candidate = readonly [path: string, form: 'config.json' | 'dockercfg']

/**
 * The places of the node's own credentials, the first one first (`pkg/credentialprovider/config.go`, 1.36). The kubelet's
 * working directory is left out: a daemon's depends on how it was started.
 */
export function nodeDockerConfigPaths({
  rootDir,
  homeDir,
}: Pick<NodeDockerConfigOptions, 'rootDir' | 'homeDir'>): readonly Candidate[] {
  const home = homeDir === undefined || homeDir === '/' ? [] : [homeDir]
  return [
    [join(rootDir, 'config.json'), 'config.json'],
    ...home.map((path): Candidate => [join(path, '.docker/config.json'), 'config.json']),
    ['/.docker/config.json', 'config.json'],
    [join(rootDir, '.dockercfg'), 'dockercfg'],
    ...home.map((path): Candidate => [join(path, '.dockercfg'), 'dockercfg']),
    ['/.dockercfg', 'dockercfg'],
  ]
}

/**
 * Credentials that all pods of the node may use. The files are read at each call, so that a change counts at once; the
 * first one that can be read is used.
 */
export class NodeDockerConfig {
  readonly #options: NodeDockerConfigOptions
  /** By path, as they were logged last. */
  readonly #problems = new Map<string, string>()

  constructor(options: NodeDockerConfigOptions) {
    this.#options = options
  }

  /** Empty where there is none. Problems of a file are logged once. */
  async read(): Promise<DockerConfig> {
    for (const [path, form] of nodeDockerConfigPaths(this.#options)) {
      const text = await this.#readText(path)
      if (text === undefined) continue
      const { config, problems } = readDockerConfig(text, form)
      this.#report(path, problems.join('; '))
      const isUnreadable = config.size === 0 && problems.length > 0
      if (!isUnreadable) return config
    }
    return new Map()
  }

  async #readText(path: string): Promise<string | undefined> {
    try {
      const bytes = await readBounded(path, { maxBytes, clock: this.#options.clock })
      if (bytes.byteLength <= maxBytes) return bytes.toString('utf8')
      this.#report(path, `it is larger than ${maxBytes} bytes`)
    } catch (error) {
      const isAbsent = ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '')
      this.#report(path, isAbsent ? '' : errorMessage(error))
    }
    return undefined
  }

  #report(path: string, problem: string): void {
    if ((this.#problems.get(path) ?? '') === problem) return
    this.#problems.set(path, problem)
    const { logger } = this.#options
    if (problem !== '') logger.warn({ path, reason: problem }, 'credentials of the node cannot all be used')
  }
}
