import { closeSync, fstatSync, openSync, readFileSync, readSync, readdirSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { errorCode, errorMessage } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import type { PoddConfig } from '../../config/options.ts'
import { containerdPlaces, readUnitLog } from '../../runtime/containerd/process.ts'
import { runCommand } from '../../host/run-command.ts'
import { nodeDockerConfigPaths } from '../../images/node-docker-config.ts'

/** The most bytes of a log; of a longer one its end. */
const mostLogBytes = 2 ** 20
/** The copy of a large source has some 10 MiB. */
const mostStateBytes = 2 ** 26
const podUnit = 'podd.service'

/** A file of a bundle before redaction. */
export type BundleSource =
  | { readonly path: string; readonly kind: 'json'; readonly content: Json }
  | { readonly path: string; readonly kind: 'text'; readonly content: string }

/** podd's own files. */
export interface StateFiles {
  readonly sources: readonly BundleSource[]
  /** Files and directories that may hold Secrets, and can't be read. */
  readonly unread: readonly string[]
}

/** The directories below the root directory that hold objects, Secrets too. */
const objectDirectories = ['sources', 'sources/worked', 'sources/held', 'api']

/** Reads podd's own files; of one that isn't JSON the content is left out, as its secrets can't be recognized. */
export function readStateFiles(rootDir: string): StateFiles {
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
      if (content !== undefined) sources.push({ path, kind: 'json', content })
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
  for (const documents of [[text], text.split('\n').filter((line) => line !== '')])
    try {
      const parsed = documents.map((document): Json => JSON.parse(document))
      const [first] = parsed
      if (first !== undefined) return parsed.length === 1 ? first : parsed
    } catch {
      // The caller reports it.
    }
  return undefined
}

/** The logs of podd and containerd, as far as found. */
export async function readLogs(rootDir: string, runDir: string): Promise<readonly BundleSource[]> {
  const places = containerdPlaces(rootDir, runDir)
  const journal = ['--unit', podUnit, '--lines', '5000', '--output', 'short-iso', '--no-pager']
  const podd = await orWhyNot(runCommand('journalctl', journal).then(({ stdout }) => stdout))
  const unit = await orWhyNot(readUnitLog(places))
  const logs: readonly (readonly [string, string])[] = [
    ['logs/podd.log', podd.slice(-mostLogBytes)],
    ['logs/containerd-unit.log', unit.slice(-mostLogBytes)],
    ['logs/containerd.log', readTail(places.logPath, mostLogBytes)],
    ['logs/containerd.toml', readTail(places.configPath, mostLogBytes)],
    ['logs/pod-network.conflist', readTail(places.conflistPath, mostLogBytes)],
  ]
  return logs.flatMap(([path, content]) => (content === '' ? [] : [{ path, kind: 'text', content }]))
}

/** A log, or why the bundle has none. */
function orWhyNot(log: Promise<string>): Promise<string> {
  return log.catch((error: unknown) => `left out: ${errorMessage(error)}\n`)
}

/** The kernel's information about the host. */
export function readHostFiles(): readonly BundleSource[] {
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
    const content = readTail(join('/proc', path), mostLogBytes)
    return content === '' ? [] : [{ path: join('host', path.replaceAll('/', '-')), kind: 'text', content }]
  })
}

/** The node's registry credentials, so that they can be taken out of everything else. */
export function readCredentials(rootDir: string): readonly Json[] {
  const paths = nodeDockerConfigPaths({ rootDir, homeDir: homedir() }).map(([path]) => path)
  return paths.flatMap((path) => {
    try {
      const content: Json = JSON.parse(readTail(path, mostStateBytes))
      return [content]
    } catch {
      // There is none, or it is invalid.
      return []
    }
  })
}

/** The contents of files that hold values for manifests and headers, to be taken out of everything too. */
export function readSecretFiles({
  valueFiles,
  sources,
}: Pick<PoddConfig, 'valueFiles' | 'sources'>): readonly string[] {
  const paths = [valueFiles, ...sources.map((source) => (source.kind === 'http' ? source.headerFiles : {}))]
  return paths.flatMap((files) => Object.values(files)).map((path) => readTail(path, mostLogBytes).trim())
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
    return statSync(path).size > mostStateBytes ? '' : readFileSync(path, 'utf8')
  } catch {
    // The bundle names it without its content.
    return ''
  }
}

/** The end of a file; undefined where it can't be read. Files of /proc have no size: those are read as a whole. */
function readTail(path: string, mostBytes: number): string {
  try {
    const file = openSync(path, 'r')
    try {
      const { size } = fstatSync(file)
      if (size === 0) return readFileSync(file, 'utf8').slice(-mostBytes)
      const bytes = Buffer.alloc(Math.min(size, mostBytes))
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
