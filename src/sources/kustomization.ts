/*
 * Kustomizations in a manifest directory: the files that one refers to, and what it makes of them, built by a program of the
 * host that sees nothing but a copy of these files.
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readlink,
  realpath,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import type { BigIntStats } from 'node:fs'
import { basename, dirname, join, normalize, relative } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { errorMessage, ifThere, PoddError } from '../base/errors.ts'
import { isJsonObject, jsonAt, listOrEmpty, parseJson } from '../base/json.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { readRest } from '../base/read-bounded.ts'
import { Semaphore } from '../base/waits.ts'
import { BoundedCommandError, findExecutable, runBounded } from '../host/run-command.ts'
import { maxSourceBytes } from '../pod/decode/decode-documents.ts'
import { readYamlDocuments } from '../pod/decode/read-documents.ts'
import { describeOtherWriters, fingerprintOf, lookAtFile } from './read-manifest-file.ts'
import type { FileContent, FileLook } from './read-manifest-file.ts'

/** Whether a manifest of this name, or path, is a kustomization. */
export function isKustomization(name: string): boolean {
  return /(?:^|\/)kustomization\.ya?ml$/u.test(name)
}

/** The names that kustomize knows, in its order. */
const kustomizationNames: readonly string[] = ['kustomization.yaml', 'kustomization.yml', 'Kustomization']

/** What is known of a kustomization without building it. */
export interface KustomizationLook {
  /** Its fingerprint changes with each file that it refers to. */
  readonly look: FileLook
  /** The files that it refers to below the directory, also by others, without itself; by their paths in it. */
  readonly files: ReadonlySet<string>
  /** It refers to itself through others. */
  readonly isCircle: boolean
  /** It can't be read, so that it may refer to others, too. */
  readonly isUnclear: boolean
}

const maxFiles = 1000
const maxDepth = 32

/** A kustomization that is not built, for a reason in it. */
class KustomizationError extends PoddError {
  constructor(message: string, hint?: string) {
    super('UNREADABLE', message, { hint })
  }
}

/** Looks at a kustomization and at all that it refers to. Never throws. */
export async function lookAtKustomization(root: string, name: string): Promise<KustomizationLook> {
  const own = await lookAtFile(join(root, name))
  if (own.kind !== 'file') return { look: own, files: new Set(), isCircle: false, isUnclear: true }
  const walk = new ReferenceWalk(root)
  await walk.visit(name, [])
  const { fault, isCircle, isUnclear } = walk
  const { files } = walk
  const prints = [...files].map(([path, { fingerprint }]) => `${path} ${fingerprint}`).toSorted()
  const builder = await findBuilder()
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([prints, fault ?? '', builder.kind === 'found' ? builder.program : '']))
    .digest('hex')
  const others = new Set([...files.keys()].filter((path) => path !== name))
  if (fault !== undefined)
    return {
      look: { kind: 'unreadable', fingerprint, reason: `is not built: ${fault}` },
      files: others,
      isCircle,
      isUnclear,
    }
  const seen = [...files.values()]
  return {
    look: {
      kind: 'file',
      fingerprint,
      sizeBytes: seen.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      modifiedAtMs: Math.max(...seen.map(({ modifiedAtMs }) => modifiedAtMs)),
      otherWriters: seen.find(({ otherWriters }) => otherWriters !== undefined)?.otherWriters,
    },
    // Without a builder, what it refers to gives by itself what it gave before.
    files: builder.kind === 'found' ? others : new Set(),
    isCircle,
    isUnclear: isUnclear && builder.kind === 'found',
  }
}

interface SeenFile {
  readonly fingerprint: string
  readonly sizeBytes: number
  readonly modifiedAtMs: number
  readonly otherWriters: string | undefined
}

/** Follows the references of a kustomization, down to the last one. */
class ReferenceWalk {
  readonly files = new Map<string, SeenFile>()
  /** The first one. */
  fault: string | undefined
  isCircle = false
  /** One of them could not be read, and may refer to others. */
  isUnclear = false
  readonly #root: string
  /** Kustomizations that were followed down to the last file. */
  readonly #done = new Set<string>()
  /** Of directories that were looked at. */
  readonly #directories = new Set<string>()
  #sizeBytes = 0
  /** It refers to more than may be followed. */
  #isOver = false

  constructor(root: string) {
    this.#root = root
  }

  /**
   * @param name of a kustomization, below the root
   * @param above those that led here
   */
  async visit(name: string, above: readonly string[]): Promise<void> {
    if (this.#done.has(name)) return
    let references: readonly Reference[] = []
    await this.#noting(async () => {
      if (above.includes(name)) {
        this.isCircle = true
        throw new KustomizationError(`${name} refers to itself, through ${above.join(', ')}`)
      }
      if (above.length >= maxDepth)
        throw new KustomizationError(`it refers to others ${maxDepth} levels deep`)
      this.isUnclear =
        !(await this.#noting(async () => {
          references = await referencesOf(await this.#note(name), name)
        })) || this.isUnclear
    })
    // What is wrong with one doesn't keep the others from being known.
    for (const reference of references) {
      // Of what is never built, however many there are, no more is looked at.
      if (this.#isOver) return
      await this.#noting(() => this.#follow(reference, name, [...above, name]))
    }
    this.#done.add(name)
  }

  /** Whether it went well; never throws. */
  async #noting(work: () => Promise<void>): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      const hint = error instanceof PoddError && error.hint !== undefined ? `: ${error.hint}` : ''
      this.fault ??= `${errorMessage(error)}${hint}`
      return false
    }
  }

  async #follow({ path, field, isPart }: Reference, from: string, above: readonly string[]): Promise<void> {
    if (field.startsWith('helm'))
      throw new KustomizationError(
        `${field} of ${from}: podd renders no charts`,
        'put what `helm template` gives into a file, and name that in resources',
      )
    const what = `${field} of ${from} names ${JSON.stringify(path)}`
    const target = normalize(join(dirname(from), path))
    const isLocal = !path.startsWith('/') && target !== '..' && !target.startsWith('../')
    const found = isLocal ? await ifThere(stat(join(this.#root, target), { bigint: true })) : undefined
    if (found === undefined && isRemote(path))
      throw new KustomizationError(
        `${what}: podd fetches nothing for a kustomization`,
        'put a copy of it into the manifest directory, or build it elsewhere: `kubectl kustomize DIRECTORY >web.yaml`',
      )
    if (!isLocal)
      throw new KustomizationError(
        `${what}, which is outside of the manifest directory`,
        'put it there, or run `podd apply -k DIRECTORY`',
      )
    if (found === undefined) {
      this.#noteMissing(target)
      throw new KustomizationError(`${what}, which is missing`)
    }
    if (!found.isDirectory()) {
      if (!this.files.has(target)) await this.#note(target)
      return
    }
    if (!isPart) throw new KustomizationError(`${what}, which is a directory`)
    for (const each of kustomizationNames) {
      const inside = join(target, each)
      if ((await ifThere(stat(join(this.#root, inside)))) !== undefined)
        return await this.visit(inside, above)
    }
    this.#noteMissing(join(target, 'kustomization.yaml'))
    throw new KustomizationError(`${what}, a directory without a kustomization.yaml`)
  }

  /** When it comes, the kustomization is looked at again. */
  #noteMissing(name: string): void {
    this.#checkRoom(name)
    this.files.set(name, {
      fingerprint: 'missing',
      sizeBytes: 0,
      modifiedAtMs: 0,
      otherWriters: undefined,
    })
  }

  #checkRoom(name: string): void {
    if (this.files.has(name) || this.files.size < maxFiles) return
    this.#isOver = true
    this.isUnclear = true
    throw new KustomizationError(`it refers to more than ${maxFiles} files`)
  }

  /** Its content, of a kustomization; of other files none is needed. */
  async #note(name: string): Promise<Buffer> {
    const { bytes, stats } = await readInside(this.#root, name, kustomizationNames.includes(basename(name)))
    this.#checkRoom(name)
    const sizeBytes = Number(stats.size)
    if (!this.files.has(name)) this.#sizeBytes += sizeBytes
    if (this.#sizeBytes > maxSourceBytes)
      throw new KustomizationError(
        `the files that it refers to are larger than ${maxSourceBytes / 2 ** 20} MiB`,
      )
    this.files.set(name, {
      fingerprint: fingerprintOf(stats),
      sizeBytes,
      modifiedAtMs: Number(stats.mtimeNs / 1_000_000n),
      otherWriters: describeOtherWriters(stats) ?? (await this.#writersOf(dirname(name))),
    })
    return bytes
  }

  /** Who else can write a directory below the root; the root's own writers are told of it. */
  async #writersOf(directory: string): Promise<string | undefined> {
    if (directory === '.' || this.#directories.has(directory)) return undefined
    this.#directories.add(directory)
    const own = describeOtherWriters(await stat(join(this.#root, directory), { bigint: true }))
    return own ?? (await this.#writersOf(dirname(directory)))
  }
}

/**
 * Opens a regular file that lies below the root, wherever links lead. Throws KustomizationError, and the system's errors.
 * @param isNeeded whether its content is
 */
async function readInside(
  root: string,
  name: string,
  isNeeded: boolean,
): Promise<{ readonly bytes: Buffer; readonly stats: BigIntStats }> {
  // A FIFO in its place must not make this wait.
  await using file = await open(join(root, name), constants.O_RDONLY | constants.O_NONBLOCK)
  const stats = await file.stat({ bigint: true })
  if (!stats.isFile()) throw new KustomizationError(`${name} is not a regular file`)
  const real = await readlink(`/proc/self/fd/${file.fd}`)
  if (!real.startsWith(`${await realpath(root)}/`))
    throw new KustomizationError(`${name} is a link that leads out of the manifest directory`)
  if (stats.size > BigInt(maxSourceBytes))
    throw new KustomizationError(`${name} is larger than ${maxSourceBytes / 2 ** 20} MiB`)
  return { bytes: isNeeded ? await readRest(file, maxSourceBytes) : Buffer.alloc(0), stats }
}

interface Reference {
  readonly path: string
  readonly field: string
  /** It may be a directory with a kustomization. */
  readonly isPart: boolean
}

/** What a text says that isn't in a file of its own. */
function isInline(text: string): boolean {
  return text.includes('\n') || /^\s*[{[]/u.test(text)
}

/** As kustomize tells them (`api/internal/git`, `api/ifc`), where no file of that name is there. */
function isRemote(path: string): boolean {
  return (
    /^(?:[a-z][a-z0-9+.-]*::)?[a-z][a-z0-9+.-]*:\/\//iu.test(path) ||
    /^[\w.-]+@[\w.-]+[:/]/u.test(path) ||
    /^(?:www\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)+[:/].*\//iu.test(path) ||
    path.includes('?ref=')
  )
}

/**
 * The files and directories that a kustomization names (`api/types/kustomization.go` of kustomize 5). Throws
 * KustomizationError where there is none, or where it asks for more than files.
 */
async function referencesOf(bytes: Buffer, name: string): Promise<readonly Reference[]> {
  const [first, ...more] = [...(await readYamlDocuments(bytes.toString('utf8')))]
  if (first === undefined || more.length > 0)
    throw new KustomizationError(`${name} must have one document, which is a kustomization`)
  if (first.kind === 'broken') throw new KustomizationError(`${name}: ${first.message}`)
  const { value } = first
  if (!isJsonObject(value)) throw new KustomizationError(`${name} must be an object`)
  return [...namedIn(value)]
}

function* namedIn(value: JsonObject): Generator<Reference> {
  const texts = function* (field: string, isPart: boolean): Generator<Reference> {
    for (const path of listOrEmpty(value[field]))
      if (typeof path === 'string' && path !== '' && !isInline(path)) yield { path, field, isPart }
  }
  for (const field of ['resources', 'bases', 'components', 'generators', 'transformers', 'validators'])
    yield* texts(field, true)
  for (const field of ['crds', 'configurations', 'patchesStrategicMerge']) yield* texts(field, false)
  for (const field of ['patches', 'patchesJson6902', 'replacements'])
    for (const each of listOrEmpty(value[field])) yield* pathOf(jsonAt(each, 'path'), field)
  yield* pathOf(jsonAt(value, 'openapi', 'path'), 'openapi')
  for (const field of ['helmCharts', 'helmChartInflationGenerator'])
    if (listOrEmpty(value[field]).length > 0) yield { path: '', field, isPart: false }
  for (const field of ['configMapGenerator', 'secretGenerator'])
    for (const each of listOrEmpty(value[field])) {
      yield* pathOf(jsonAt(each, 'env'), field)
      for (const path of listOrEmpty(jsonAt(each, 'envs'))) yield* pathOf(path, field)
      // `KEY=FILE`, or the file alone.
      for (const file of listOrEmpty(jsonAt(each, 'files')))
        if (typeof file === 'string') yield* pathOf(file.slice(file.indexOf('=') + 1), field)
    }
}

function* pathOf(path: Json | undefined, field: string): Generator<Reference> {
  if (typeof path === 'string' && path !== '') yield { path, field, isPart: false }
}

/**
 * A user and group without a name, to whom no file and no other process belongs: above the last range of a pod's user
 * namespace (`claimUserRange`), and none that images or systemd use.
 */
const builderId = 4_294_930_532
const buildMs = 30_000
/** One at a time: each is a process of a hundred megabytes. */
const builds = new Semaphore(1)
/** In memory, and every user may look into it: the builder needs all directories on its way. */
const scratchDirectory = '/run'
const scratchPrefix = 'podd-kustomize-'
/** What a podd that was killed has left is removed once it is this old. */
const staleMs = 600_000

type Builder =
  | {
      readonly kind: 'found'
      readonly program: string
      readonly args: readonly string[]
      readonly shell: readonly string[]
    }
  | { readonly kind: 'missing'; readonly message: string; readonly hint: string }

/** What builds kustomizations on this host: without a network, and as a user who owns nothing. */
async function findBuilder(): Promise<Builder> {
  const kubectl = findExecutable('kubectl')
  const program = kubectl ?? findExecutable('kustomize')
  if (program === undefined)
    return {
      kind: 'missing',
      message: 'neither kubectl nor kustomize is installed',
      hint: 'install one of them, or build it elsewhere: `kubectl kustomize DIRECTORY >web.yaml`',
    }
  const [unshare, setpriv, prlimit] = ['unshare', 'setpriv', 'prlimit'].map((name) => findExecutable(name))
  if (unshare === undefined || setpriv === undefined || prlimit === undefined)
    return {
      kind: 'missing',
      message:
        'unshare, setpriv or prlimit is missing, without which it would be built with all of podd’s rights',
      hint: 'install util-linux',
    }
  const args = kubectl === undefined ? ['build'] : ['kustomize']
  const user = [`--reuid=${builderId}`, `--regid=${builderId}`, '--clear-groups']
  const rights = ['--no-new-privs', '--inh-caps=-all', '--bounding-set=-all']
  const limits = ['--as=8589934592', '--fsize=0', '--core=0']
  // In its own PID namespace it can signal none but its own processes, which end with it.
  const apart = ['--net', '--ipc', '--pid', '--fork', '--kill-child']
  const shell = [unshare, ...apart, prlimit, ...limits, setpriv, ...user, ...rights]
  return { kind: 'found', program, args, shell }
}

/**
 * What a kustomization makes; undefined where one of its files changed since it was looked at.
 * @param fingerprint of that look
 * @throws KustomizationError where it can't be built; the system's errors
 */
export async function buildKustomization(
  root: string,
  name: string,
  fingerprint: string,
  clock: Clock,
): Promise<FileContent | undefined> {
  const builder = await findBuilder()
  if (builder.kind === 'missing')
    throw new KustomizationError(`is not built: ${builder.message}`, builder.hint)
  const isSame = async (): Promise<ReadonlySet<string> | undefined> => {
    const { look, files } = await lookAtKustomization(root, name)
    return look.kind === 'file' && look.fingerprint === fingerprint ? files : undefined
  }
  return await builds.run(async () => {
    await removeStale(clock)
    const files = await isSame()
    if (files === undefined) return undefined
    const scratch = await mkdtemp(join(scratchDirectory, scratchPrefix))
    try {
      for (const file of [name, ...files]) await copyInto(scratch, root, file)
      await giveToBuilder(scratch)
      if ((await isSame()) === undefined) return undefined
      const [path = '', ...first] = builder.shell
      const { stdout } = await runBounded(
        {
          path,
          args: [...first, builder.program, ...builder.args, join(scratch, dirname(name))],
          env: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/nonexistent', LC_ALL: 'C' },
          input: '',
          timeoutMs: buildMs,
          maxOutputBytes: maxSourceBytes,
        },
        clock,
      )
      const bytes = Buffer.from(stdout)
      return { bytes, hash: createHash('sha256').update(bytes).digest('hex') }
    } catch (error) {
      if (!(error instanceof BoundedCommandError)) throw error
      const said = plainWords(error.stderr).replaceAll(scratch, root)
      throw new KustomizationError(`is not built: ${said === '' ? error.message : said}`)
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  })
}

/** What kubectl says, without the time and the place in its source. */
function plainWords(text: string): string {
  const [, quoted] = /\berr=("(?:[^"\\]|\\.)*")/u.exec(text) ?? []
  const said = parseJson(quoted)
  return typeof said === 'string' ? said : text.trim()
}

async function copyInto(scratch: string, root: string, name: string): Promise<void> {
  const { bytes } = await readInside(root, name, true)
  await mkdir(join(scratch, dirname(name)), { recursive: true, mode: 0o700 })
  await writeFile(join(scratch, name), bytes, { mode: 0o400, flag: 'wx' })
}

/** It reads them, and nobody else does. */
async function giveToBuilder(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) await giveToBuilder(path)
    else await chown(path, builderId, builderId)
  }
  await chown(directory, builderId, builderId)
  await chmod(directory, 0o500)
}

async function removeStale(clock: Clock): Promise<void> {
  for (const name of await readdir(scratchDirectory)) {
    if (!name.startsWith(scratchPrefix)) continue
    const path = join(scratchDirectory, name)
    const stats = await ifThere(stat(path))
    // Another podd on this host builds in its own.
    if (stats === undefined || stats.mtimeMs > clock.wallMs() - staleMs) continue
    await rm(path, { recursive: true, force: true })
  }
}

/** Why it can't be read, as a text about the file. */
export function kustomizationFault(
  error: unknown,
): { readonly message: string; readonly hint?: string } | undefined {
  if (!(error instanceof KustomizationError)) return undefined
  return { message: error.message, ...(error.hint !== undefined && { hint: error.hint }) }
}

/** The directories below the root in which the files of a kustomization lie; not the root itself. */
export function directoriesOf(name: string, files: ReadonlySet<string>): readonly string[] {
  const all = [name, ...files].map((file) => dirname(file))
  return [...new Set(all)].filter((directory) => directory !== '.' && relative('.', directory) !== '')
}
