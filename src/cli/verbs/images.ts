import { resolve } from 'node:path'
import type { ArchiveReport } from '../../api/image-archives.ts'
import type { ImageEntry } from '../../api/routes.ts'
import { outputFlag, readOutputFormat } from '../arguments/output-format.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Listing, Verb, VerbContext, VerbResult } from '../arguments/verb.ts'
import { formatImageSize } from '../output/image-size.ts'

export const imagesVerb: Verb = {
  usage: 'images [list] [-o json|yaml|name] | images import FILE.tar [--no-pin] | images pin|unpin IMAGE',
  help: `Lists the images that the runtime has, imports an archive (docker save or OCI layout, as a tar), or pins an image.
Image garbage collection, and \`podd gc\`, never remove pinned images. Imported images are pinned, since no registry may
have them; \`images unpin\`, or \`--no-pin\` on import, lets podd remove them when they are unused.`,
  flags: [
    outputFlag,
    { name: 'no-pin', doc: 'With import: let podd remove the images when they are unused.' },
  ],
  examples: [
    ['images', 'list images'],
    ['images import web.tar', 'import images on a host without a registry'],
    ['images unpin localhost/web:1', 'let podd remove it when it is unused and the disk is full'],
  ],
  run(context) {
    const [action = 'list', file, extra] = context.args.positionals
    if (extra !== undefined) throw new UsageError(`images takes no argument ${JSON.stringify(extra)}`)
    switch (action) {
      case 'list':
      case 'ls':
        if (file !== undefined) throw new UsageError(`images list takes no argument ${JSON.stringify(file)}`)
        return listImages(context)
      case 'import':
      case 'load':
        if (file === undefined)
          throw new UsageError('images import needs a file', 'podd images import FILE.tar')
        return importImages(context, file)
      case 'pin':
      case 'unpin':
        if (file === undefined)
          throw new UsageError(`images ${action} needs an image`, `podd images ${action} IMAGE`)
        return pinImage(context, action, file)
      default:
        throw new UsageError(
          `unknown action ${JSON.stringify(action)}`,
          'There are list, import, pin and unpin.',
        )
    }
  },
}

async function listImages({ args, client, signal }: VerbContext): Promise<VerbResult> {
  const format = readOutputFormat(args)
  const images = await client.get<readonly ImageEntry[]>('/podd/v1/images', signal)
  const archives = await client.get<readonly ArchiveReport[]>('/podd/v1/images/archives', signal)
  const notes = [...(images.length === 0 ? ['No images found'] : []), ...archiveNotes(archives)]
  return { kind: 'listing', listing: toListing(images), format, notes }
}

/** What of the directory of archives is not among the images. */
function archiveNotes(archives: readonly ArchiveReport[]): readonly string[] {
  return archives.flatMap(({ path, state, message = '' }) => {
    if (state === 'imported') return []
    return [`${state === 'failed' ? 'error' : 'pending'}: ${path}: ${message}`]
  })
}

function toListing(images: readonly ImageEntry[]): Listing {
  const named = images.flatMap((image) => imageNames(image).map((name) => ({ image, name })))
  named.sort((a, b) => (a.name.repository + a.name.tag < b.name.repository + b.name.tag ? -1 : 1))
  return {
    columns: [
      { title: 'IMAGE' },
      { title: 'TAG' },
      { title: 'IMAGE ID' },
      { title: 'SIZE' },
      { title: 'PINNED' },
    ],
    rows: named.map(({ image, name }) => [
      name.repository,
      name.tag,
      shortId(image.id),
      formatImageSize(image.sizeBytes),
      image.pinned ? 'yes' : 'no',
    ]),
    objects: images.map((image) => ({
      kind: 'Image',
      metadata: { name: image.tags[0] ?? image.digests[0] ?? image.id },
      ...image,
    })),
    listKind: 'ImageList',
  }
}

interface ImageName {
  readonly repository: string
  readonly tag: string
}

/** One for each tag; an image without any goes by its digest. */
function imageNames({ tags, digests }: ImageEntry): readonly ImageName[] {
  if (tags.length === 0) {
    const [digest = '<none>'] = digests
    return [{ repository: digest.split('@')[0] ?? digest, tag: '<none>' }]
  }
  return tags.map((tag) => {
    const colon = tag.lastIndexOf(':')
    return colon > tag.lastIndexOf('/')
      ? { repository: tag.slice(0, colon), tag: tag.slice(colon + 1) }
      : { repository: tag, tag: '<none>' }
  })
}

function shortId(id: string): string {
  return id.replace(/^sha256:/u, '').slice(0, 13)
}

async function importImages({ args, client, signal }: VerbContext, file: string): Promise<VerbResult> {
  const path = encodeURIComponent(resolve(file))
  const { images } = await client.post<{ readonly images: readonly string[] }>(
    `/podd/v1/images/import?path=${path}${args.has('no-pin') ? '&pin=false' : ''}`,
    signal,
  )
  const text = images.map((image) => `imported ${image}\n`).join('')
  return { kind: 'text', text: text === '' ? 'the archive brought no named image\n' : text }
}

async function pinImage(
  { client, signal }: VerbContext,
  action: 'pin' | 'unpin',
  image: string,
): Promise<VerbResult> {
  await client.post(`/podd/v1/images/${action}?image=${encodeURIComponent(image)}`, signal)
  return { kind: 'text', text: `${action}ned ${image}\n` }
}
