import { createWriteStream } from 'node:fs'
import { open, rename, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { tryRemove } from '../../../base/atomic-file.ts'
import { PoddError, errorMessage } from '../../../base/errors.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb } from '../../arguments/verb.ts'
import { formatImageSize } from '../../output/image-size.ts'

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
