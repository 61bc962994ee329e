import { createWriteStream } from 'node:fs'
import { mkdtemp, open, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { PullUpdate } from '../../api/images.ts'
import { tryRemove } from '../../base/atomic-file.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { Verb, VerbContext, VerbResult } from '../arguments/verb.ts'
import { ServerError } from '../client/client.ts'
import { formatError } from '../output/report-format.ts'
import { formatImageSize } from '../output/table.ts'

type Pulled = Extract<PullUpdate, { kind: 'pulled' }>

export const pullImagesVerb: Verb = {
  usage: 'images pull NAME… [-q]',
  help: `Pulls images as podd does for its pods, with the node's credentials. A pod that waits for one of them starts
at once. Progress goes to standard error: a bar on a terminal, a line for each tenth elsewhere.
The exit code is 1 where an image could not be pulled; the others are.`,
  flags: [{ name: 'quiet', short: 'q', doc: 'Show no progress.' }],
  examples: [['images pull registry.example/web:2', 'have an image before the pod that needs it']],
  async run(context) {
    const names = context.args.positionals
    if (names.length === 0) throw new UsageError('images pull needs an image', 'podd images pull NAME')
    return actOnEach(context, names, async (name) => {
      const { id, sizeBytes } = await pullImage(context, name)
      return `pulled ${name}: ${id}, ${formatImageSize(sizeBytes)}\n`
    })
  },
}

/**
 * Acts on each image or file; one that fails keeps none of the others from it.
 * @param act returns what is printed of it
 */
export async function actOnEach(
  { notify, signal }: VerbContext,
  names: readonly string[],
  act: (name: string) => Promise<string>,
): Promise<VerbResult> {
  let text = ''
  let exitCode = 0
  for (const name of names) {
    try {
      text += await act(name)
    } catch (error) {
      if (names.length === 1 || signal.aborted) throw error
      notify(formatError(error))
      exitCode = 1
    }
  }
  return { kind: 'text', text, exitCode }
}

async function pullImage({ args, client, signal, stdio }: VerbContext, name: string): Promise<Pulled> {
  const display = args.has('quiet') ? undefined : new PullDisplay(name, stdio.stderr)
  const path = `/podd/v1/images/pull?image=${encodeURIComponent(name)}`
  try {
    for await (const update of client.watch<PullUpdate>(path, signal, 'POST')) {
      if (update.kind === 'pulled') return update
      if (update.kind === 'failed') throw ServerError.of(update.status)
      display?.show(update)
    }
  } finally {
    display?.end()
  }
  signal.throwIfAborted()
  throw new ServerError('InternalError', 'the pull ended without a result', undefined)
}

export const importImagesVerb: Verb = {
  usage: 'images import FILE…|- [--no-pin] [-q]',
  help: `Imports archives of images: OCI layouts, or what docker save writes, as a tar, which gzip or zstd may
compress. \`-\` is standard input. Imported images are pinned, since no registry may have them: image garbage collection,
\`podd gc\` and \`podd images prune\` never remove them. Archives in the directory images/ of podd's state directory are
imported without this command.
The exit code is 1 where an archive could not be imported; the others are.`,
  flags: [
    { name: 'no-pin', doc: 'Let podd remove the images when they are unused.' },
    { name: 'quiet', short: 'q', doc: 'Print the names of the images alone.' },
  ],
  examples: [
    ['images import web.tar db.tar.zst', 'import images on a host without a registry'],
    ['images import -', 'import what comes on standard input'],
  ],
  async run(context) {
    const { args } = context
    const files = args.positionals
    if (files.length === 0) throw new UsageError('images import needs a file', 'podd images import FILE.tar')
    const before = args.has('quiet') ? '' : 'imported '
    return actOnEach(context, files, async (file) => {
      const images = await (file === '-' ? importInput(context) : importFile(context, resolve(file)))
      return images.map((image) => `${before}${image}\n`).join('')
    })
  },
}

async function importFile({ args, client, signal }: VerbContext, file: string): Promise<readonly string[]> {
  const path = `/podd/v1/images/import?path=${encodeURIComponent(file)}${args.has('no-pin') ? '&pin=false' : ''}`
  return (await client.post<{ readonly images: readonly string[] }>(path, signal)).images
}

/** Through a file: the runtime only accepts a complete archive. */
async function importInput(context: VerbContext): Promise<readonly string[]> {
  const { env, signal, stdio } = context
  const directory = await mkdtemp(join(env['TMPDIR'] ?? '/var/tmp', 'podd-import-')).catch(failWrite)
  try {
    const path = join(directory, 'image.tar')
    const input = stdio.stdin instanceof Readable ? stdio.stdin : Readable.from(stdio.stdin)
    await pipeline(input, createWriteStream(path, { mode: 0o600 }), { signal }).catch(failWrite)
    return await importFile(context, path)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

function failWrite(error: unknown): never {
  throw new PoddError('WRITE_FAILED', `cannot store standard input: ${errorMessage(error)}`, {
    cause: error,
    hint: 'TMPDIR names another directory, on a disk with space.',
  })
}

export const exportImagesVerb: Verb = {
  usage: 'images export NAME… -o FILE.tar',
  help: `Writes images to an archive, an OCI layout as a tar, for the platform of this host. \`podd images import\`,
docker load and podman load take it, and so does the directory of image archives of another podd. Without -o it goes to
standard output, unless that is a terminal. The file is there only when it is complete. Only images that were imported can
be exported: the layers of one that was pulled are deleted once they are unpacked. \`skopeo copy\` makes an archive of
it from its registry.`,
  flags: [
    { name: 'output', short: 'o', label: 'FILE', doc: 'The file to write; `-` for standard output.' },
    { name: 'quiet', short: 'q', doc: 'Print nothing.' },
  ],
  examples: [
    ['images export registry.example/web:2 -o web.tar', 'save an imported image to a file'],
    ['images export registry.example/web:2 | ssh box podd images import -', 'send it to another host'],
  ],
  async run({ args, client, signal, stdio }) {
    const names = args.positionals
    if (names.length === 0)
      throw new UsageError('images export needs an image', 'podd images export NAME -o FILE.tar')
    const file = args.value('output') ?? '-'
    if (file === '') throw new UsageError('-o needs the name of a file')
    const query = names.map((name) => `image=${encodeURIComponent(name)}`).join('&')
    const chunks = client.stream(`/podd/v1/images/export?${query}`, signal)
    if (file === '-') {
      if ('isTTY' in stdio.stdout && stdio.stdout.isTTY === true)
        throw new UsageError('an archive is not written to a terminal', 'Name a file: -o FILE.tar')
      return { kind: 'chunks', chunks }
    }
    const sizeBytes = await writeArchive(file, chunks, signal)
    const text = `exported ${names.join(', ')} to ${file} (${formatImageSize(sizeBytes)})\n`
    return { kind: 'text', text: args.has('quiet') ? '' : text }
  },
}

/** Returns its size. An incomplete file is removed. */
async function writeArchive(
  file: string,
  chunks: AsyncGenerator<Uint8Array, void>,
  signal: AbortSignal,
): Promise<number> {
  const partial = `${file}.part`
  try {
    // An error of the daemon comes before the file is opened.
    const first = await chunks.next()
    await pipeline(rejoin(first, chunks), createWriteStream(partial), { signal })
    // The chunks end without an error where the call is interrupted.
    signal.throwIfAborted()
    const handle = await open(partial)
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(partial, file)
    return (await stat(file)).size
  } catch (error) {
    await tryRemove(partial)
    if (error instanceof PoddError) throw error
    signal.throwIfAborted()
    throw new PoddError('WRITE_FAILED', `cannot write ${file}: ${errorMessage(error)}`, { cause: error })
  }
}

async function* rejoin(
  first: IteratorResult<Uint8Array, void>,
  rest: AsyncGenerator<Uint8Array, void>,
): AsyncGenerator<Uint8Array, void> {
  if (first.done === true) return
  yield first.value
  yield* rest
}

interface Progress {
  readonly doneBytes: number
  readonly totalBytes?: number
}

const barWidth = 30

/** The progress of a pull on standard error: a bar on a terminal, else a line for each tenth. */
export class PullDisplay {
  readonly #name: string
  readonly #stream: Writable
  readonly #isTerminal: boolean
  #shownTenths = 0
  #hasBar = false

  constructor(name: string, stream: Writable) {
    this.#name = name
    this.#stream = stream
    this.#isTerminal = 'isTTY' in stream && stream.isTTY === true
  }

  show({ doneBytes, totalBytes }: Progress): void {
    if (this.#isTerminal) {
      this.#hasBar = true
      this.#stream.write(`\r\u001b[K${formatBar(this.#name, doneBytes, totalBytes)}`)
      return
    }
    const tenths =
      totalBytes === undefined || totalBytes === 0 ? 0 : Math.floor((doneBytes * 10) / totalBytes)
    if (tenths <= this.#shownTenths) return
    this.#shownTenths = tenths
    const sizes = `${formatImageSize(doneBytes)} of ${formatImageSize(totalBytes ?? 0)}`
    this.#stream.write(`${this.#name}: ${tenths * 10}%, ${sizes}\n`)
  }

  /** Removes the bar. */
  end(): void {
    if (this.#hasBar) this.#stream.write('\r\u001b[K')
  }
}

/** `web:2 [=====>     ] 45% 12MB of 27MB`; without the bar where the total is not known. */
function formatBar(name: string, doneBytes: number, totalBytes: number | undefined): string {
  const done = formatImageSize(doneBytes)
  if (totalBytes === undefined || totalBytes === 0) return `${name} ${done}`
  const share = Math.min(1, doneBytes / totalBytes)
  const filled = Math.floor(share * barWidth)
  const bar = `${'='.repeat(filled)}${filled < barWidth ? '>' : ''}`.padEnd(barWidth)
  return `${name} [${bar}] ${Math.floor(share * 100)}% ${done} of ${formatImageSize(totalBytes)}`
}
