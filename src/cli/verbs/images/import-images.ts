import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { PoddError, errorMessage } from '../../../base/errors.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb, VerbContext } from '../../arguments/verb.ts'
import { formatError } from '../../output/format-error.ts'

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
    const { args, notify, signal } = context
    const files = args.positionals
    if (files.length === 0) throw new UsageError('images import needs a file', 'podd images import FILE.tar')
    const imported: string[] = []
    let exitCode = 0
    for (const file of files) {
      try {
        imported.push(...(await (file === '-' ? importInput(context) : importFile(context, resolve(file)))))
      } catch (error) {
        if (files.length === 1 || signal.aborted) throw error
        notify(formatError(error))
        exitCode = 1
      }
    }
    const text = imported.map((image) => `${args.has('quiet') ? '' : 'imported '}${image}\n`).join('')
    return { kind: 'text', text, exitCode }
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
