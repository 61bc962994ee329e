import { spawn } from 'node:child_process'
import { lstat, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { Readable, Writable } from 'node:stream'
import type { WebSocket } from 'ws'
import type { PodObject } from '../../../api/objects.ts'
import { commandProtocols } from '../../../api/remote-command.ts'
import { PoddError, errorCode, errorMessage } from '../../../base/errors.ts'
import { namespaceFlag, podPath, readNamespace } from '../../arguments/namespace.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb, VerbContext } from '../../arguments/verb.ts'
import { runExec } from '../../client/exec-stream.ts'
import { chooseContainer } from './choose-container.ts'

export const cpVerb: Verb = {
  usage: 'cp SOURCE DESTINATION [-c CONTAINER]',
  help: `Copies a file or a directory between this host and a container; one of the two is [NAMESPACE/]POD:PATH. Needs tar
in the image and on this host. What comes from a container is written beside its destination first, so that nothing in
it can reach another place of this host; owners are not kept.`,
  flags: [
    {
      name: 'container',
      short: 'c',
      label: 'NAME',
      doc: "Of this container; by default the pod's first one.",
    },
    namespaceFlag,
  ],
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

/** The side of a command in the container that this host's tar is joined with. */
type Side = 'stdin' | 'stdout'

interface Ended {
  readonly exitCode: number
  readonly errors: string
}

interface Container {
  /** Runs a command of which only its end matters. */
  run(command: readonly string[]): Promise<Ended>
  /** Runs tar in the container, joined with this host's. Throws PoddError COPY_FAILED where either fails. */
  joinTar(command: readonly string[], side: Side, localWords: readonly string[]): Promise<void>
}

async function reachContainer(context: VerbContext, place: Place): Promise<Container> {
  const { args, client, signal, notify } = context
  const namespace = place.namespace ?? readNamespace(args)
  const path = podPath(namespace, place.pod)
  const pod = await client.get<PodObject>(path, signal)
  const container = args.value('container') ?? chooseContainer(pod, notify)
  const open = (command: readonly string[], hasStdin: boolean): Promise<WebSocket> => {
    const query = new URLSearchParams({ container, stdout: 'true', stderr: 'true' })
    if (hasStdin) query.set('stdin', 'true')
    for (const word of command) query.append('command', word)
    return client.openWebSocket(`${path}/exec?${query.toString()}`, commandProtocols[0], signal)
  }
  return {
    run: async (command) => takeEnd(await open(command, false), {}, signal),
    async joinTar(command, side, localWords) {
      const socket = await open(command, side === 'stdin')
      try {
        // Only now: Node drops the output of a process that has exited while nothing reads it.
        const local = runTar(localWords, side)
        try {
          const ended = await takeEnd(socket, local.streams, signal)
          // A sender that fails makes the receiver fail too, except where the receiver ended first and cut it off.
          if (side === 'stdin' && !local.isCut()) await local.finish()
          throwIfFailed(ended)
          await local.finish()
        } finally {
          await local.stop()
        }
      } finally {
        socket.terminate()
      }
    },
  }
}

async function takeEnd(
  socket: WebSocket,
  streams: { readonly stdin?: Readable; readonly stdout?: Writable },
  signal: AbortSignal,
): Promise<Ended> {
  let errors = ''
  const stderr = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (errors.length < 4096) errors += chunk.toString('utf8')
      done()
    },
  })
  const { stdin, stdout = new Writable({ write: (_chunk, _encoding, done) => done() }) } = streams
  const outcome = await runExec(socket, { stdin, stdout, stderr, terminal: undefined }, signal)
  if (outcome.kind === 'failed') throw new PoddError('COPY_FAILED', outcome.message, tarHint)
  return { exitCode: outcome.exitCode, errors: errors.trim() }
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

async function upload(context: VerbContext, source: string, to: Place): Promise<void> {
  await lstat(source).catch((error: unknown) => {
    throw new PoddError('COPY_FAILED', `${source}: ${errorMessage(error)}`, { cause: error })
  })
  const container = await reachContainer(context, to)
  const name = basename(resolve(source))
  const isDirectory = (await container.run(['test', '-d', to.path])).exitCode === 0
  const [directory, newName] = isDirectory ? [to.path, name] : [dirname(to.path), basename(to.path)]
  const transform = `s|^${escapePattern(name)}|${escapeReplacement(newName)}|S`
  const words = ['-cf', '-', `--transform=${transform}`, '-C', dirname(resolve(source)), '--', name]
  await container.joinTar(['tar', '-xmf', '-', '-C', directory], 'stdin', words)
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
  // In an empty directory a link in the archive can't refer to anything existing.
  const staging = await mkdtemp(join(dirname(resolve(target)), '.podd-cp-')).catch((error: unknown) => {
    throw new PoddError('COPY_FAILED', `${dirname(target)}: ${errorMessage(error)}`, { cause: error })
  })
  try {
    const words = ['-xf', '-', '--no-same-owner', '-C', staging]
    const command = ['tar', 'cf', '-', '-C', dirname(from.path), '--', name]
    await container.joinTar(command, 'stdout', words)
    await rename(join(staging, name), target).catch((error: unknown) => {
      throw new PoddError('COPY_FAILED', `${target}: ${errorMessage(error)}`, { cause: error })
    })
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

interface LocalTar {
  /** To join with the command in the container. */
  readonly streams: { readonly stdin?: Readable; readonly stdout?: Writable }
  /** Whether its output was closed before its end was read. */
  isCut(): boolean
  /** Ends its input, and resolves once it has succeeded. Throws PoddError COPY_FAILED. */
  finish(): Promise<void>
  /** Resolves when it no longer runs. */
  stop(): Promise<void>
}

/** This host's tar: it writes the input of the command in the container, or reads its output. */
function runTar(words: readonly string[], side: Side): LocalTar {
  const child = spawn('tar', [...words], {
    stdio: side === 'stdin' ? ['ignore', 'pipe', 'pipe'] : ['pipe', 'ignore', 'pipe'],
    env: { PATH: process.env['PATH'], LC_ALL: 'C' },
  })
  let errors = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    if (errors.length < 4096) errors += chunk.toString('utf8')
  })
  const ended = new Promise<void>((done, reject) => {
    const fail = (why: string, cause?: unknown): void =>
      reject(new PoddError('COPY_FAILED', `tar on this host: ${why}`, { cause }))
    child.once('error', (error) =>
      fail(errorCode(error) === 'ENOENT' ? 'there is none' : errorMessage(error), error),
    )
    child.once('close', (code, signalName) => {
      if (code === 0) done()
      else fail(errors.trim() || (signalName ?? `exit code ${code}`))
    })
  })
  // Awaited only once the other side is done.
  ended.catch(() => {})
  child.stdin?.on('error', () => {})
  return {
    // A process that could not be spawned may have no pipes.
    streams:
      side === 'stdin'
        ? { stdin: child.stdout ?? Readable.from([]) }
        : { stdout: child.stdin ?? new Writable({ write: (_chunk, _encoding, done) => done() }) },
    isCut: () => child.stdout?.readableEnded === false,
    finish() {
      child.stdin?.end()
      return ended
    },
    async stop() {
      child.kill()
      await ended.catch(() => {
        // The copy is over, or was given up: how tar ends no longer matters.
      })
    },
  }
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*[\]^$\\|]/gu, String.raw`\$&`)
}

function escapeReplacement(text: string): string {
  return text.replaceAll(/[&\\|]/gu, String.raw`\$&`)
}
