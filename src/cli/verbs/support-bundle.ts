import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import type { ResourceList } from '../../api/resource.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { secretsOfUrl } from '../../base/http.ts'
import { isJsonObject, asJson, parseJson } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { formatBytes } from '../../base/text.ts'
import { redactConfig, secretTexts } from '../../config/options.ts'
import type { PoddConfig } from '../../config/options.ts'
import { runCommand } from '../../host/run-command.ts'
import { nodeDockerConfigPaths } from '../../images/node-docker-config.ts'
import { formatTar } from '../../images/tar.ts'
import type { TarEntry } from '../../images/tar.ts'
import { containerdPlaces, readUnitLog } from '../../runtime/containerd/process.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import type { ApiClient } from '../client/client.ts'
import { findBundleTarget } from '../local/down-target.ts'
import { deadCodes, gatherStatus } from '../local/gather-status.ts'
import { placeConfigFlags } from '../local/load-config.ts'
import { formatError } from '../output/report-format.ts'

export const supportBundleVerb: Verb = {
  usage: 'support-bundle [FILE] [FLAGS]',
  help: `Writes what is needed to find out what is wrong with this host: podd's settings, state, events, crash reports, the
log of podd (of its systemd unit, or /var/log/podd.log) and of containerd, what \`podd status\` and \`podd doctor\` say, and what the kernel tells
of memory, disks and mounts. Works with and without a running daemon. Values of environment variables, headers,
ConfigMaps, Secrets and of the settings \`values\` and \`valueFiles\`, and credentials, are taken out; where the Secrets can't
be read, so are logs and state. FILE must not exist yet; - stands for standard output. Takes the flags of \`podd run\`; the directories are those of the podd that
answers.`,
  flags: placeConfigFlags,
  examples: [
    ['support-bundle', 'podd-support-HOST-TIME.tar.gz in this directory'],
    ['support-bundle - | ssh desk "cat > host.tar.gz"', 'where the disk is full'],
  ],
  async run(context) {
    const [named] = context.args.positionals
    context.args.refuseMore('support-bundle', 1)
    const bundle = await makeOf(context)
    if (named === '-') return { kind: 'chunks', chunks: Readable.from([bundle]) }
    const time = new Date(context.clock.wallMs()).toISOString().slice(0, 19).replaceAll(/[-:]/gu, '')
    const path = named ?? `podd-support-${hostname()}-${time}.tar.gz`
    try {
      await writeFile(path, bundle, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      throw new PoddError('WRITE_FAILED', `cannot write ${path}: ${errorMessage(error)}`, {
        cause: error,
        hint: 'Name a file that does not exist yet, on a disk with space, or - for standard output.',
      })
    }
    return { kind: 'text', text: `${path} (${formatBytes(bundle.length)})\n` }
  },
}

/** What podd, its pods and containerd said, beside the state. */
const mayHoldValues = /^(?:logs\/|(?:status|pods|events)\.json$)/u

async function makeOf(context: VerbContext): Promise<Buffer> {
  const { client, daemon, clock, signal, notify } = context
  const { config, warnings } = await findBundleTarget(context)
  const { rootDir, runDir } = config
  const ask = async (path: string, get: () => Promise<unknown>): Promise<BundleSource> => {
    try {
      return { path: `${path}.json`, kind: 'json', content: asJson(await get()) }
    } catch (error) {
      signal.throwIfAborted()
      return { path: `${path}.txt`, kind: 'text', content: `${formatError(error)}\n` }
    }
  }
  const sources: readonly BundleSource[] = [
    { path: 'made.json', kind: 'json', content: { time: new Date(clock.wallMs()).toISOString() } },
    { path: 'config.json', kind: 'json', content: redactConfig(config) },
    { path: 'config-warnings.json', kind: 'json', content: asJson(warnings) },
    await ask('status', () => gatherStatus(client, { rootDir, runDir }, signal)),
    await ask('doctor', () => daemon.doctor(config, signal)),
    await ask('pods', () => client.get('/api/v1/pods', signal)),
    await ask('events', () => client.get('/api/v1/events', signal)),
    ...(await readLogs(rootDir, runDir)),
    ...readHostFiles(),
  ]
  const state = readStateFiles(rootDir)
  const settings = [...secretTexts(config), ...readSecretFiles(config)]
  // Last: what was read before may hold the values of a Secret that is new.
  const secrets = await findSecrets(client, config.persistSecrets, state.unread, signal)
  const credentials = readCredentials(rootDir)
  if (secrets.kind === 'found')
    return makeBundle([...sources, ...state.sources], [...credentials, ...secrets.documents], settings)
  const content = `left out, as the values of Secrets are not known: status, pods, events, state and logs: ${secrets.why}\n`
  notify(content.trimEnd())
  const harmless = sources.filter(({ path }) => !mayHoldValues.test(path))
  const left: BundleSource = { path: 'secrets-unknown.txt', kind: 'text', content }
  return makeBundle([...harmless, left], credentials, settings)
}

/** The most bytes of a log; of a longer one its end. */
const maxLogBytes = 2 ** 20
/** The copy of a large source has some 10 MiB. */
const maxStateBytes = 2 ** 26
const podUnit = 'podd.service'
/** Where install.sh has podd log to on hosts without systemd. */
const plainLog = '/var/log/podd.log'

/** A file of a bundle before redaction. */
export type BundleSource =
  | { readonly path: string; readonly kind: 'json'; readonly content: Json }
  | { readonly path: string; readonly kind: 'text'; readonly content: string }

interface StateFiles {
  readonly sources: readonly BundleSource[]
  /** Files and directories that may hold Secrets, and can't be read. */
  readonly unread: readonly string[]
}

/** The directories below the root directory that hold objects, Secrets too. */
const objectDirectories = ['sources', 'sources/worked', 'sources/held', 'revisions', 'api']

/** The last log lines of failed containers stand in the revisions of units: a bundle has no logs of pods. */
function withoutLogs(content: Json): Json {
  const text = JSON.stringify(content, (key, value: Json) => (key === 'lines' ? undefined : value))
  const kept: Json = JSON.parse(text)
  return kept
}

/** Reads podd's own files; of one that isn't JSON the content is left out, as its secrets can't be recognized. */
function readStateFiles(rootDir: string): StateFiles {
  const sources: BundleSource[] = []
  const unread: string[] = []
  for (const directory of ['.', 'records', ...objectDirectories, 'crash']) {
    const mayHoldSecrets = objectDirectories.includes(directory)
    const names = namesIn(join(rootDir, directory))
    if (names === undefined && mayHoldSecrets) unread.push(join(rootDir, directory))
    for (const name of names ?? []) {
      if (!/\.json(?:\.unreadable)?$/u.test(name)) continue
      // It holds the node's credentials.
      if (directory === '.' && name === 'config.json') continue
      const path = join('state', directory, name)
      const text = readWhole(join(rootDir, directory, name))
      const content = parseLines(text)
      if (content !== undefined)
        sources.push({
          path,
          kind: 'json',
          content: directory === 'revisions' ? withoutLogs(content) : content,
        })
      else {
        // The bundle says what is missing, and the daemon reports its unreadable files.
        const leftOut = `left out: ${text.length} characters that are not JSON\n`
        sources.push({ path, kind: 'text', content: leftOut })
        if (mayHoldSecrets) unread.push(join(rootDir, directory, name))
      }
    }
  }
  return { sources, unread }
}

/** One document, or, in the copy of a large source, one in each line; undefined where the text is neither. */
function parseLines(text: string): Json | undefined {
  const whole = parseJson(text)
  if (whole !== undefined) return whole
  const lines = text.split('\n').filter((line) => line !== '')
  const parsed = lines.flatMap((line) => [parseJson(line)].filter((document) => document !== undefined))
  return lines.length > 0 && parsed.length === lines.length ? parsed : undefined
}

/** The logs of podd and containerd, as far as found. */
export async function readLogs(
  rootDir: string,
  runDir: string,
  daemonLog = plainLog,
): Promise<readonly BundleSource[]> {
  const places = containerdPlaces(rootDir, runDir)
  const journal = ['--unit', podUnit, '--lines', '5000', '--output', 'short-iso', '--no-pager']
  const podd = await orWhyNot(runCommand('journalctl', journal).then(({ stdout }) => stdout))
  const unit = await orWhyNot(readUnitLog(places))
  const logs: readonly (readonly [string, string])[] = [
    ['logs/podd.log', podd.slice(-maxLogBytes)],
    ['logs/podd-plain.log', readTail(daemonLog, maxLogBytes)],
    ['logs/containerd-unit.log', unit.slice(-maxLogBytes)],
    ['logs/containerd.log', readTail(places.logPath, maxLogBytes)],
    ['logs/containerd.toml', readTail(places.configPath, maxLogBytes)],
    ['logs/pod-network.conflist', readTail(places.conflistPath, maxLogBytes)],
  ]
  return logs.flatMap(([path, content]) => (content === '' ? [] : [{ path, kind: 'text', content }]))
}

/** A log, or why the bundle has none. */
function orWhyNot(log: Promise<string>): Promise<string> {
  return log.catch((error: unknown) => `left out: ${errorMessage(error)}\n`)
}

function readHostFiles(): readonly BundleSource[] {
  const paths = [
    'version',
    'uptime',
    'loadavg',
    'meminfo',
    'self/mountinfo',
    'net/route',
    'pressure/memory',
    'pressure/io',
  ]
  return paths.flatMap((path) => {
    const content = readTail(join('/proc', path), maxLogBytes)
    return content === '' ? [] : [{ path: join('host', path.replaceAll('/', '-')), kind: 'text', content }]
  })
}

/** The node's registry credentials, so that they can be taken out of everything else. */
function readCredentials(rootDir: string): readonly Json[] {
  const paths = nodeDockerConfigPaths({ rootDir, homeDir: homedir() }).map(([path]) => path)
  // Of one that isn't there, or is invalid, nothing is known.
  return paths.map((path) => parseJson(readTail(path, maxStateBytes))).filter((json) => json !== undefined)
}

/** The contents of files that hold values for manifests and headers, to be taken out of everything too. */
function readSecretFiles({ valueFiles, sources }: PoddConfig): readonly string[] {
  const paths = [valueFiles, ...sources.map((source) => (source.kind === 'http' ? source.headerFiles : {}))]
  return paths.flatMap((files) => Object.values(files)).map((path) => readTail(path, maxLogBytes).trim())
}

/** Undefined where they can't be read. */
function namesIn(directory: string): readonly string[] | undefined {
  try {
    return readdirSync(directory).toSorted()
  } catch (error) {
    // A directory is made with its first file.
    return errorCode(error) === 'ENOENT' ? [] : undefined
  }
}

/** Empty where it can't be read, or is too large. */
function readWhole(path: string): string {
  try {
    return statSync(path).size > maxStateBytes ? '' : readFileSync(path, 'utf8')
  } catch {
    // The bundle names it without its content.
    return ''
  }
}

/** The end of a file; undefined where it can't be read. Files of /proc have no size: those are read as a whole. */
function readTail(path: string, maxBytes: number): string {
  try {
    const file = openSync(path, 'r')
    try {
      const { size } = fstatSync(file)
      if (size === 0) return readFileSync(file, 'utf8').slice(-maxBytes)
      const bytes = Buffer.alloc(Math.min(size, maxBytes))
      const read = readSync(file, bytes, 0, bytes.length, size - bytes.length)
      return bytes.subarray(0, read).toString('utf8')
    } finally {
      closeSync(file)
    }
  } catch {
    // A missing file is not in the bundle.
    return ''
  }
}

/** The most bytes of all files together, before compression. */
const maxBytes = 24 * 2 ** 20
const directory = 'podd-support'

/**
 * A tar.gz of these files without what may be secret: values of environment variables, of headers, of ConfigMaps and
 * Secrets, and credentials, wherever they stand. Files that no longer fit are left out, and named in `left-out.txt`.
 * @param secrets further documents with secret values, which are in no file
 * @param settings what podd's settings hold and may not be shown
 */
export function makeBundle(
  sources: readonly BundleSource[],
  secrets: readonly Json[],
  settings: readonly string[],
): Buffer {
  const redaction = new Redaction()
  for (const text of settings) redaction.setting(text)
  for (const document of secrets) redaction.json(document, true)
  // Collect from all files first: a log may contain what a record shows to be secret.
  const redacted = sources.map(({ path, ...source }) => ({
    path,
    text:
      source.kind === 'text' ? source.content : JSON.stringify(redaction.json(source.content), undefined, 1),
  }))
  const entries: TarEntry[] = [{ kind: 'directory', path: directory, mode: 0o700 }]
  const leftOut: string[] = []
  let sizeBytes = 0
  const add = (path: string, text: string): void => {
    const data = Buffer.from(redaction.text(text))
    const name = `${directory}/${path}`
    if (sizeBytes + data.length > maxBytes) {
      leftOut.push(`${path} (${data.length} bytes)`)
      return
    }
    sizeBytes += data.length
    entries.push({ kind: 'file', path: name, mode: 0o600, data })
  }
  for (const { path, text } of redacted) add(path, text)
  if (leftOut.length > 0) add('left-out.txt', `${leftOut.slice(0, 1000).join('\n')}\n`)
  return gzipSync(formatTar(entries))
}

/** The replacement of a value that may be secret. */
const redacted = '<redacted>'
/** Shorter ones occur in ordinary words: they are redacted only where they are known to be values. */
const shortestSecret = 4
/** Of a value of several lines. */
const shortestLine = 8
/** Maps of values of ConfigMaps and Secrets. */
const valueMaps = ['data', 'stringData', 'binaryData']
/** A whole manifest as text. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
/** In podd's settings: values by the headers' names. */
const headerKey = /headers?$/iu
/** Keys of credentials in any file. */
const secretKey = /^(?:auth|identitytoken|registrytoken|password|token|hash)$/iu

/**
 * Collects and removes secrets in JSON: values of environment variables and headers, data of ConfigMaps and Secrets,
 * credentials. Then removes the same values from any text.
 */
class Redaction {
  readonly #secrets = new Set<string>()
  #pattern: RegExp | undefined

  /**
   * Has `text` redact this value and its Base64 form.
   * @param isSecret whether it is known to be secret, however ordinary it looks
   */
  add(value: string, isSecret = false): void {
    if (value.length < shortestSecret || (!isSecret && isOrdinary(value))) return
    this.#secrets.add(value)
    this.#pattern = undefined
    this.#secrets.add(Buffer.from(value).toString('base64'))
    // As it stands in JSON, and where it is printed line by line.
    this.#secrets.add(JSON.stringify(value).slice(1, -1))
    if (!value.includes('\n') && !/[=:]/u.test(value)) return
    // Line by line, with the value that a line sets: `password = …`.
    for (const line of value.split('\n').map((text) => text.trim())) {
      const set = /^[^=:]{1,80}[=:](?<value>.+)$/u.exec(line)?.groups?.['value']?.trim() ?? ''
      for (const part of [line, set, set.replace(/^(["'])(.*)\1,?$/u, '$2')])
        if (part.length >= shortestLine) this.#secrets.add(part).add(Buffer.from(part).toString('base64'))
    }
  }

  /**
   * The same data without values that may be secret; `text` redacts these too.
   * @param isSecret it belongs to a Secret
   */
  json(value: Json, isSecret = false): Json {
    if (Array.isArray(value)) return value.map((item: Json) => this.json(item, isSecret))
    if (typeof value === 'string') this.#takeUrl(value)
    if (!isJsonObject(value)) return value
    const isOfSecret = isSecret || value['kind'] === 'Secret'
    const isVariable = typeof value['name'] === 'string' && typeof value['value'] === 'string'
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => {
        if (isVariable && key === 'value') {
          if (typeof item === 'string') this.add(item, isOfSecret)
          return [key, redacted]
        }
        if (valueMaps.includes(key) && isJsonObject(item)) return [key, this.#takeMap(item, isOfSecret)]
        if (headerKey.test(key) && isJsonObject(item)) return [key, this.#takeHeaders(item)]
        if (secretKey.test(key) && typeof item === 'string') return [key, this.#takeCredential(item)]
        return [key, key === lastApplied ? this.#takeManifest(item, isOfSecret) : this.json(item, isOfSecret)]
      }),
    )
  }

  /** The text without any of these values, and without the credentials of URLs. */
  text(text: string): string {
    const named = text.replaceAll(/(?<=:\/\/)[^/\s"'@]+(?=@)/gu, redacted)
    if (this.#secrets.size === 0) return named
    // The longest first: one may contain another.
    this.#pattern ??= new RegExp(
      [...this.#secrets]
        .toSorted((a, b) => b.length - a.length)
        .map((secret) => secret.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, '\\$&'))
        .join('|'),
      'gu',
    )
    return named.replaceAll(this.#pattern, redacted)
  }

  #takeHeaders(headers: JsonObject): Json {
    for (const value of Object.values(headers).flat())
      if (typeof value === 'string')
        // `Bearer TOKEN`: without its first word, too.
        for (const part of [value, ...value.split(' ').slice(1)]) this.add(part, true)
    return Object.keys(headers)
  }

  /**
   * What podd's settings hold and may not be shown: a value for manifests, that of a header. Words that occur everywhere
   * stay.
   */
  setting(text: string): void {
    // `Bearer TOKEN`: without its first word, too.
    for (const part of [text, ...text.split(' ').slice(1)]) this.add(part, /^\d+$/u.test(part))
  }

  /** The credentials before an `@`, the query and the fragment. */
  #takeUrl(value: string): void {
    if (!/^(?:https?|unix):\/\/.*[@?#]/u.test(value)) return
    for (const part of secretsOfUrl(value)) this.add(part, true)
  }

  /** A docker config has user and password in Base64. */
  #takeCredential(value: string): Json {
    this.add(value, true)
    const [user = '', ...password] = Buffer.from(value, 'base64').toString('utf8').split(':')
    if (password.length > 0 && /^[\x20-\x7e]+$/u.test(user)) this.add(password.join(':'), true)
    return redacted
  }

  #takeMap(values: JsonObject, isSecret: boolean): Json {
    return Object.fromEntries(
      Object.entries(values).map(([name, value]) => {
        if (typeof value !== 'string') return [name, redacted]
        this.add(value, isSecret)
        this.#addDecoded(value, isSecret)
        return [name, `<redacted, ${value.length} letters>`]
      }),
    )
  }

  #takeManifest(value: Json, isSecret: boolean): Json {
    if (typeof value === 'string') this.#takeJson(value, isSecret)
    return redacted
  }

  /** A Secret has its values in Base64; one of a registry holds a docker config in turn. */
  #addDecoded(value: string, isSecret: boolean): void {
    const bytes = Buffer.from(value, 'base64')
    if (bytes.toString('base64') !== value) return
    const text = bytes.toString('utf8')
    this.add(text, isSecret)
    this.#takeJson(text, isSecret)
  }

  /** The secrets in it, where it is JSON. */
  #takeJson(text: string, isSecret: boolean): void {
    const content = parseJson(text)
    if (content !== undefined) this.json(content, isSecret)
  }
}

/** Common values: removing them would make every text unreadable. */
function isOrdinary(value: string): boolean {
  return /^(?:true|false|null|none|default|info|debug|warn|error|\d{1,6}|\/[a-z/]{0,12})$/iu.test(value)
}

/** The Secrets whose values are to be redacted. */
type FoundSecrets =
  /** Those that are in no file; the files hold the others. */
  | { readonly kind: 'found'; readonly documents: readonly Json[] }
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * Asks the daemon for all Secrets, as not all of them need be on disk. Those of one that doesn't answer are known where
 * its files have them all.
 */
async function findSecrets(
  client: ApiClient,
  persistSecrets: boolean,
  unread: readonly string[],
  signal: AbortSignal,
): Promise<FoundSecrets> {
  try {
    const list = await client.getList<ResourceList>('/api/v1/secrets', signal)
    return { kind: 'found', documents: [asJson(list.items)] }
  } catch (error) {
    signal.throwIfAborted()
    if (!deadCodes.includes(errorCode(error) ?? '')) return { kind: 'unknown', why: errorMessage(error) }
    if (!persistSecrets) return { kind: 'unknown', why: 'podd does not answer, and persistSecrets is false' }
    if (unread.length > 0)
      return { kind: 'unknown', why: `podd does not answer, and cannot be read: ${unread.join(', ')}` }
    return { kind: 'found', documents: [] }
  }
}
