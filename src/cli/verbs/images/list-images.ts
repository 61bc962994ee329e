import type { ArchiveReport } from '../../../api/images.ts'
import type { ImageEntry } from '../../../api/routes.ts'
import { outputFlag, readOutputFormat } from '../../arguments/output-format.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Listing, Verb } from '../../arguments/verb.ts'
import { formatImageSize } from '../../output/image-size.ts'

export const listImagesVerb: Verb = {
  usage: 'images [ls] [--digests] [-o wide|json|yaml|name]',
  help: `Lists the images that the runtime has. -o wide names the pods and containers that use each. Files in the
directory of image archives that are not imported are named below the list, and why.`,
  flags: [
    outputFlag,
    { name: 'digests', doc: 'Show the digests.' },
    { name: 'no-trunc', doc: 'Show ids and digests in full length.' },
  ],
  examples: [
    ['images', 'list images'],
    ['images ls -o wide', 'also who uses them'],
  ],
  async run({ args, client, signal }) {
    const [extra] = args.positionals
    if (extra !== undefined) throw new UsageError(`images ls takes no argument ${JSON.stringify(extra)}`)
    const format = readOutputFormat(args)
    const users = format === 'table' || format === 'name' ? '' : '?users=true'
    const images = await client.get<readonly ImageEntry[]>(`/podd/v1/images${users}`, signal)
    const archives = await client.get<readonly ArchiveReport[]>('/podd/v1/images/archives', signal)
    const shown = { digests: args.has('digests'), length: args.has('no-trunc') ? Infinity : 13 }
    const notes = [...(images.length === 0 ? ['No images found'] : []), ...archiveNotes(archives)]
    return { kind: 'listing', listings: [toListing(images, shown)], format, notes }
  },
}

/** The archives whose images are not present. */
function archiveNotes(archives: readonly ArchiveReport[]): readonly string[] {
  return archives.flatMap(({ path, state, message = '' }) => {
    if (state === 'imported') return []
    return [`${state === 'failed' ? 'error' : 'pending'}: ${path}: ${message}`]
  })
}

function toListing(
  images: readonly ImageEntry[],
  shown: { readonly digests: boolean; readonly length: number },
): Listing {
  const short = (id: string): string => id.replace(/^sha256:/u, '').slice(0, shown.length)
  const named = images.flatMap((image) => imageNames(image).map((name) => ({ image, name })))
  named.sort((a, b) => (a.name.repository + a.name.tag < b.name.repository + b.name.tag ? -1 : 1))
  return {
    columns: [
      { title: 'IMAGE' },
      { title: 'TAG' },
      ...(shown.digests ? [{ title: 'DIGEST' }] : []),
      { title: 'IMAGE ID' },
      { title: 'SIZE' },
      { title: 'PINNED' },
      { title: 'USED BY', wide: true },
    ],
    rows: named.map(({ image, name: { repository, tag } }) => {
      const digests = shown.digests ? [short(digestOf(image, repository))] : []
      const usedBy = image.usedBy?.join(', ') ?? ''
      const [size, pinned] = [formatImageSize(image.sizeBytes), image.pinned ? 'yes' : 'no']
      return [repository, tag].concat(
        digests,
        short(image.id),
        size,
        pinned,
        usedBy === '' ? '<none>' : usedBy,
      )
    }),
    objects: images.map((image) => ({
      kind: 'Image',
      metadata: { name: image.tags[0] ?? image.digests[0] ?? image.id },
      ...image,
    })),
    listKind: 'ImageList',
  }
}

/** Of its repository's, where it has one there. */
function digestOf({ digests }: ImageEntry, repository: string): string {
  const found = digests.find((digest) => digest.startsWith(`${repository}@`)) ?? digests[0]
  return found?.split('@')[1] ?? '<none>'
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
