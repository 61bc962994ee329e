import { once } from 'node:events'
import { lstat, mkdtemp, realpath, rename, rm, stat, symlink } from 'node:fs/promises'
import { basename, dirname, join, posix, relative, resolve } from 'node:path'
import { PassThrough, Readable, Writable } from 'node:stream'
import { Pack } from 'tar/pack'
import { ReadEntry } from 'tar/read-entry'
import { Unpack } from 'tar/unpack'
import { errorMessage, isSystemError, PoddError } from '../../base/errors.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import { containerFlag, namespaceFlag, readNamespace, withQuery } from '../arguments/pod-argument.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'
import { runExec } from '../client/exec-stream.ts'
import { findTarget } from './exec.ts'

export const cpVerb: Verb = {
  usage: 'cp SOURCE DESTINATION [-c CONTAINER]',
  help: `Copies a file or a directory between this host and a container; one of the two is [NAMESPACE/]POD:PATH. Needs tar
in the image. From a container come files, directories, and links to what is copied with them; other links, devices and
pipes are left out, and named. They belong to the user who copies, without set-user-ID and the like, and are written
beside the destination first, so that nothing reaches another place of this host.`,
  flags: [containerFlag("Of this container; by default the pod's first one."), namespaceFlag],
  examples: [
    ['cp web:/etc/nginx/nginx.conf .', 'from a container'],
    ['cp site web:/srv -c nginx', 'a directory into a container'],
  ],
  async run(context) {
    const [source, destination, extra] = context.args.positionals
    if (source === undefined || destination === undefined || extra !== undefined)
      throw new UsageError('cp needs a source and a destination', 'podd cp [NAMESPACE/]POD:PATH PATH')
    const [from, to] = [readPlace(source), readPlace(destination)]
    if ((from === undefined) === (to === undefined))
      throw new UsageError(
        'one of source and destination must be [NAMESPACE/]POD:PATH, the other a local path',
      )
    if (from !== undefined) await download(context, from, destination)
    else if (to !== undefined) await upload(context, source, to)
    return { kind: 'done', exitCode: 0 }
  },
}

interface Place {
  readonly namespace: string | undefined
  readonly pod: string
  readonly path: string
}

/** Undefined for a local path: one that has no colon, or a slash or dot first. */
function readPlace(text: string): Place | undefined {
  const [, namespace, pod, path] = /^(?:([a-z0-9-]+)\/)?([a-z0-9][a-z0-9.-]*):(.+)$/su.exec(text) ?? []
  return pod === undefined || path === undefined ? undefined : { namespace, pod, path }
}

interface Ended {
  readonly exitCode: number
  readonly errors: string
}

interface Streams {
  readonly stdin?: Readable
  readonly stdout?: Writable
}

interface Container {
  readonly pod: string
  /** Runs a command, joined with these streams, to its end. */
  run(command: readonly string[], streams?: Streams, signal?: AbortSignal): Promise<Ended>
}

async function reachContainer(context: VerbContext, place: Place): Promise<Container> {
  const { args, client, notify } = context
  const namespace = place.namespace ?? readNamespace(args)
  const { path, container } = await findTarget(context, namespace, place.pod, notify)
  return {
    pod: place.pod,
    async run(
      command,
      { stdin, stdout = new Writable({ write: (_chunk, _encoding, done) => done() }) } = {},
      signal = context.signal,
    ) {
      const query = new URLSearchParams({ container, stdout: 'true', stderr: 'true' })
      if (stdin !== undefined) query.set('stdin', 'true')
      for (const word of command) query.append('command', word)
      let errors = ''
      const stderr = new Writable({
        write(chunk: Buffer, _encoding, done) {
          if (errors.length < 4096) errors += chunk.toString('utf8')
          done()
        },
      })
      const streams = { stdin, stdout, stderr, terminal: undefined }
      const outcome = await runExec(client, withQuery(`${path}/exec`, query), streams, signal)
      if (outcome.kind === 'failed') throw new PoddError('COPY_FAILED', outcome.message, tarHint)
      return { exitCode: outcome.exitCode, errors: errors.trim() }
    },
  }
}

const tarHint = {
  hint: 'podd cp needs tar in the image; `podd exec POD -- cat FILE` shows a file without it.',
}

/** The exit codes with which runtimes and shells report a command that can't be executed, or isn't there. */
const notFoundExitCodes: ReadonlySet<number> = new Set([126, 127])

function throwIfFailed({ exitCode, errors }: Ended): void {
  if (exitCode === 0) return
  const why = errors === '' ? `exit code ${exitCode}` : errors
  const options = notFoundExitCodes.has(exitCode) ? tarHint : {}
  throw new PoddError('COPY_FAILED', `tar in the container: ${why}`, options)
}

function copyError(what: string, error: unknown): PoddError {
  return new PoddError('COPY_FAILED', `${what}: ${errorMessage(error)}`, { cause: error })
}

async function upload(context: VerbContext, source: string, to: Place): Promise<void> {
  await lstat(source).catch((error: unknown) => {
    throw copyError(source, error)
  })
  const container = await reachContainer(context, to)
  const root = resolve(source)
  const isDirectory = (await container.run(['test', '-d', to.path])).exitCode === 0
  const [directory, newName] = isDirectory ? [to.path, basename(root)] : [dirname(to.path), basename(to.path)]
  const nameInside = (absolute: string): string => posix.join(newName, relative(root, absolute))
  const pack = new Pack({
    cwd: dirname(root),
    onWriteEntry(entry) {
      entry.path = nameInside(entry.absolute)
      if (entry.type === 'Link' && entry.linkpath !== undefined)
        entry.linkpath = nameInside(join(entry.cwd, entry.linkpath))
    },
  })
  let failure: unknown
  pack.on('error', (error) => {
    failure ??= error
  })
  pack.add(basename(root) || '.').end()
  try {
    const ended = await container.run(['tar', '-xmf', '-', '-C', directory], { stdin: Readable.from(pack) })
    // What stops the sender makes the receiver fail, too.
    const path = failure instanceof Error && 'path' in failure ? String(failure.path) : source
    if (failure !== undefined) throw copyError(`reading ${path}`, failure)
    throwIfFailed(ended)
  } finally {
    pack.destroy()
  }
}

async function download(context: VerbContext, from: Place, destination: string): Promise<void> {
  const container = await reachContainer(context, from)
  const name = basename(from.path)
  if (name === '' || name === '.' || name === '..')
    throw new UsageError('cp needs a path with a name at its end', 'podd cp POD:/etc/hosts .')
  const isDirectory = await stat(destination).then(
    (found) => found.isDirectory(),
    // It is a new name, or mkdtemp beside it fails below and says why.
    () => false,
  )
  const target = isDirectory ? join(destination, name) : destination
  const staging = await mkdtemp(join(dirname(resolve(target)), '.podd-cp-'))
    .then((made) => realpath(made))
    .catch((error: unknown) => {
      throw copyError(dirname(target), error)
    })
  try {
    const archive = extractInto(staging, name)
    const signal = AbortSignal.any([context.signal, archive.failed])
    try {
      const ended = await container
        .run(['tar', 'cf', '-', '-C', dirname(from.path), '--', name], { stdout: archive.input }, signal)
        .catch((error: unknown) => {
          throw archive.failed.aborted ? archive.failed.reason : error
        })
      throwIfFailed(ended)
    } finally {
      // Without its end it is finished all the same: nothing may be written once the directory is removed.
      await archive.finish()
    }
    archive.failed.throwIfAborted()
    await archive.makeLinks()
    await rename(join(staging, name), target).catch((error: unknown) => {
      throw archive.leftOut.get(name) === undefined
        ? copyError(target, error)
        : new PoddError('COPY_FAILED', `${from.path} in the container is ${archive.leftOut.get(name)}`)
    })
    tellLeftOut(archive.leftOut, context.notify)
  } finally {
    await rm(staging, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** The most links, and the most entries that are left out, of one archive. */
const maxNotedEntries = 100_000
const maxToldEntries = 10

function tellLeftOut(leftOut: ReadonlyMap<string, string>, notify: (line: string) => void): void {
  for (const [path, what] of [...leftOut].slice(0, maxToldEntries)) notify(`left out ${path}: ${what}`)
  const more = leftOut.size - maxToldEntries
  if (more > 0) notify(`left out ${more} more`)
}

interface Extraction {
  /** Takes the archive. */
  readonly input: Writable
  /** Aborted when it can't be read or written; the reason is a PoddError COPY_FAILED. */
  readonly failed: AbortSignal
  /** Paths in the archive, each with what it is. */
  readonly leftOut: ReadonlyMap<string, string>
  /** Resolves when all that was taken is written, or has failed. */
  finish(): Promise<void>
  /** After all else, so that nothing is ever written through a link. */
  makeLinks(): Promise<void>
}

/**
 * Writes what an archive holds under this name into an empty directory. The archive is the container's to choose: files
 * and directories alone are written as it says, without its owners, and with permission bits alone.
 */
function extractInto(directory: string, name: string): Extraction {
  const links = new Map<string, string>()
  const leftOut = new Map<string, string>()
  const failure = new AbortController()
  const fail = (error: unknown): void =>
    failure.abort(
      copyError(isSystemError(error) ? 'writing on this host' : 'what tar in the container wrote', error),
    )
  const isWritten = (entry: ReadEntry): boolean => {
    const path = plainPath(entry.path)
    if (path !== name && !path.startsWith(`${name}/`)) return false
    // Another name of a link, or of what is left out, is one, too.
    const origin = entry.type === 'Link' ? plainPath(entry.linkpath ?? '') : ''
    const target = entry.type === 'SymbolicLink' ? (entry.linkpath ?? '') : links.get(origin)
    const what =
      leftOut.get(origin) ??
      (target === undefined ? describeLeftOut(entry.type) : describeOutside(path, target))
    if (what !== undefined) leftOut.set(path, what)
    else if (target !== undefined) links.set(path, target)
    else return true
    if (links.size + leftOut.size > maxNotedEntries)
      throw new RangeError(`it has more than ${maxNotedEntries} links, devices and pipes`)
    return false
  }
  const unpack = new Unpack({
    cwd: directory,
    strict: true,
    preserveOwner: false,
    filter: (_, entry) => entry instanceof ReadEntry && isWritten(entry),
    onReadEntry(entry) {
      if (entry.mode !== undefined) entry.mode &= 0o777
    },
  })
  unpack.on('error', fail)
  const input = new PassThrough()
  const written = (async () => {
    const { signal } = failure
    for await (const chunk of input)
      if (Buffer.isBuffer(chunk) && !unpack.write(chunk)) await once(unpack, 'drain', { signal })
    unpack.end()
    await once(unpack, 'close', { signal })
  })().catch(fail)
  return {
    input,
    failed: failure.signal,
    leftOut,
    finish() {
      input.end()
      return written
    },
    async makeLinks() {
      for (const [path, target] of links) {
        const at = join(directory, path)
        try {
          // Where an archive has a link and more below it, the link is no directory.
          if ((await realpath(dirname(at))) === dirname(at)) await symlink(target, at)
        } catch (error) {
          throw copyError('writing on this host', error)
        }
      }
    },
  }
}

function plainPath(path: string): string {
  return posix.normalize(path).replace(/\/$/u, '')
}

/** What an entry is that is left out; undefined for a file, another name of one, and a directory. */
function describeLeftOut(type: string): string | undefined {
  switch (type) {
    case 'File':
    case 'OldFile':
    case 'ContiguousFile':
    case 'Link':
    case 'Directory':
    case 'GNUDumpDir':
      return undefined
    case 'CharacterDevice':
    case 'BlockDevice':
      return 'a device'
    case 'FIFO':
      return 'a named pipe'
    default:
      return 'of a kind that cannot be copied'
  }
}

/**
 * Undefined for a link that stays below the first name of its path. Steps up come first and are no more than the
 * directories above the link: these are no links, so each step leads where it seems to. Steps down may lead through other
 * links, which stay inside, too.
 */
function describeOutside(path: string, target: string): string | undefined {
  const steps = target.split('/').filter((step) => step !== '' && step !== '.')
  const firstDown = steps.findIndex((step) => step !== '..')
  const up = firstDown < 0 ? steps.length : firstDown
  const isInside =
    target !== '' && !target.startsWith('/') && !steps.includes('..', up) && up <= path.split('/').length - 2
  return isInside ? undefined : `a link to ${target}, which is not copied with it`
}
