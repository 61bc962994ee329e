import { spawn } from 'node:child_process'
import { lstat, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { Writable } from 'node:stream'
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

/** Runs commands in one container. */
async function reachContainer(context: VerbContext, place: Place) {
  const { args, client, signal, notify } = context
  const namespace = place.namespace ?? readNamespace(args)
  const path = podPath(namespace, place.pod)
  const pod = await client.get<PodObject>(path, signal)
  const container = args.value('container') ?? chooseContainer(pod, notify)
  return async (
    command: readonly string[],
    streams: { readonly stdin?: AsyncIterable<Uint8Array>; readonly stdout?: Writable },
  ): Promise<{ readonly exitCode: number; readonly errors: string }> => {
    const query = new URLSearchParams({ container, stdout: 'true', stderr: 'true' })
    if (streams.stdin !== undefined) query.set('stdin', 'true')
    for (const word of command) query.append('command', word)
    const socket = await client.openWebSocket(`${path}/exec?${query.toString()}`, commandProtocols[0], signal)
    let errors = ''
    const stderr = new Writable({
      write(chunk: Buffer, _encoding, done) {
        if (errors.length < 4096) errors += chunk.toString('utf8')
        done()
      },
    })
    const stdout = streams.stdout ?? new Writable({ write: (_chunk, _encoding, done) => done() })
    const outcome = await runExec(
      socket,
      { stdin: streams.stdin, stdout, stderr, terminal: undefined },
      signal,
    )
    if (outcome.kind === 'failed') throw new PoddError('COPY_FAILED', outcome.message, tarHint)
    return { exitCode: outcome.exitCode, errors: errors.trim() }
  }
}

const tarHint = {
  hint: 'podd cp needs tar in the image; `podd exec POD -- cat FILE` shows a file without it.',
}

async function upload(context: VerbContext, source: string, to: Place): Promise<void> {
  await lstat(source).catch((error: unknown) => {
    throw new PoddError('COPY_FAILED', `${source}: ${errorMessage(error)}`, { cause: error })
  })
  const execute = await reachContainer(context, to)
  const name = basename(resolve(source))
  const isDirectory = (await execute(['test', '-d', to.path], {})).exitCode === 0
  const [directory, newName] = isDirectory ? [to.path, name] : [dirname(to.path), basename(to.path)]
  const transform = `s|^${escapePattern(name)}|${escapeReplacement(newName)}|S`
  const words = ['-cf', '-', `--transform=${transform}`, '-C', dirname(resolve(source)), '--', name]
  const local = runTar(words, ['ignore', 'pipe', 'pipe'])
  const { exitCode, errors } = await execute(['tar', '-xmf', '-', '-C', directory], { stdin: local.output() })
  await local.ended
  if (exitCode !== 0) throw new PoddError('COPY_FAILED', `tar in the container: ${errors}`, tarHint)
}

async function download(context: VerbContext, from: Place, destination: string): Promise<void> {
  const execute = await reachContainer(context, from)
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
    const local = runTar(['-xf', '-', '--no-same-owner', '-C', staging], ['pipe', 'ignore', 'pipe'])
    const command = ['tar', 'cf', '-', '-C', dirname(from.path), '--', name]
    const { exitCode, errors } = await execute(command, { stdout: local.input() })
    local.input().end()
    if (exitCode !== 0) throw new PoddError('COPY_FAILED', `tar in the container: ${errors}`, tarHint)
    await local.ended
    await rename(join(staging, name), target).catch((error: unknown) => {
      throw new PoddError('COPY_FAILED', `${target}: ${errorMessage(error)}`, { cause: error })
    })
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

type Stdio = 'ignore' | 'pipe'

/** This host's tar. */
function runTar(words: readonly string[], stdio: readonly [Stdio, Stdio, Stdio]) {
  const child = spawn('tar', [...words], {
    stdio: [...stdio],
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
    child.once('close', (code) => (code === 0 ? done() : fail(errors.trim())))
  })
  // Awaited only once the other side is done.
  ended.catch(() => {})
  const present = <T>(stream: T | null): T => {
    if (stream === null) throw new PoddError('COPY_FAILED', 'tar on this host has no pipe')
    return stream
  }
  child.stdin?.on('error', () => {})
  return { ended, input: (): Writable => present(child.stdin), output: () => present(child.stdout) }
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*[\]^$\\|]/gu, String.raw`\$&`)
}

function escapeReplacement(text: string): string {
  return text.replaceAll(/[&\\|]/gu, String.raw`\$&`)
}
