import type {
  ArchiveReport,
  GarbageItem,
  GarbageReport,
  ImageVerdict,
  RemovedImage,
} from '../../api/images.ts'
import type { ImageEntry } from '../../api/routes.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import type { FlagSpec } from '../arguments/parse-arguments.ts'
import { withQuery } from '../arguments/pod-argument.ts'
import { outputFlag, readOutputFormat } from '../arguments/verb.ts'
import type { Listing, Verb, VerbContext, VerbResult } from '../arguments/verb.ts'
import { titled } from '../output/print.ts'
import { formatReport, readReportFormat, reportFlag } from '../output/report-format.ts'
import { formatImageSize, Table, counted } from '../output/table.ts'
import { actOnEach, exportImagesVerb, importImagesVerb, pullImagesVerb } from './move-images.ts'

const listImagesVerb: Verb = {
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
    args.refuseMore('images ls')
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
    columns: titled(
      ['IMAGE', 'TAG', ...(shown.digests ? ['DIGEST'] : []), 'IMAGE ID', 'SIZE', 'PINNED'],
      ['USED BY'],
    ),
    rows: named.map(({ image, name: { repository, tag } }) => {
      const digests = shown.digests ? [short(digestOf(image, repository))] : []
      const usedBy = image.usedBy?.join(', ') || '<none>'
      const [size, pinned] = [formatImageSize(image.sizeBytes), image.pinned ? 'yes' : 'no']
      return [repository, tag].concat(digests, short(image.id), size, pinned, usedBy)
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

/** One for each tag; an image without any goes by its digest. */
function imageNames({ tags, digests }: ImageEntry): readonly { repository: string; tag: string }[] {
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

const removeImagesVerb: Verb = {
  usage: 'images rm NAME… [--force]',
  help: `Removes images, each by any of its names or by its id, with all its other names. An image that a pod or a
container uses, or that is pinned, is removed only with --force: running containers go on, and a pod that needs it again
pulls it. An image from the directory of image archives is imported again: remove its file instead.
The exit code is 1 where an image could not be removed; the others are.`,
  flags: [{ name: 'force', short: 'f', doc: 'Also remove images that are used or pinned.' }],
  examples: [['images rm localhost/web:1', 'remove an image']],
  async run(context) {
    const { args, client, signal } = context
    const names = args.positionals
    if (names.length === 0) throw new UsageError('images rm needs an image', 'podd images rm NAME')
    const force = args.has('force') ? '&force=true' : ''
    return actOnEach(context, names, async (name) => {
      const path = `/podd/v1/images/remove?image=${encodeURIComponent(name)}${force}`
      const removed = await client.post<RemovedImage>(path, signal)
      const all = removed.names.length === 0 ? [removed.id] : removed.names
      return `removed ${all.join(', ')}: ${formatImageSize(removed.freedBytes)} freed\n`
    })
  },
}

const collectFlags: readonly FlagSpec[] = [
  { name: 'dry-run', doc: 'Remove nothing; list what would be removed.' },
  {
    name: 'all',
    short: 'a',
    doc: 'Also remove images that podd has known for less than imageMinimumGCAge.',
  },
  reportFlag('a table'),
]

async function collect(
  { args, client, signal }: VerbContext,
  path: string,
  format: (report: GarbageReport) => string,
): Promise<VerbResult> {
  const wanted = readReportFormat(args)
  const query = {
    ...(args.has('dry-run') && { dryRun: 'true' }),
    ...(args.has('all') && { all: 'true' }),
  }
  const report = await client.post<GarbageReport>(withQuery(path, query), signal)
  const failed = [
    ...report.images.failed.map((image) => ({ what: nameOf(image), message: image.message })),
    ...report.items.flatMap(({ kind, name, message, outcome }) =>
      outcome === 'failed' ? [{ what: `${kind} ${name}`, message }] : [],
    ),
  ]
  return {
    kind: 'text',
    text: await formatReport(wanted, 'GarbageReport', { ...report }, () => format(report)),
    notes: failed.map(({ what, message }) => `${what} could not be removed: ${message}`),
    exitCode: failed.length === 0 ? 0 : 1,
  }
}

const pruneImagesVerb: Verb = {
  usage: 'images prune [--dry-run] [--all] [-o json|yaml]',
  help: `Removes all unused images, whatever the disk usage, by the rules of image garbage collection: never an image
that a container uses, that a pod of any source names or falls back to, or that is pinned; without --all also none that
podd has known for less than imageMinimumGCAge.
The exit code is 1 where an image could not be removed.`,
  flags: collectFlags,
  examples: [['images prune --dry-run', 'which images would be removed, their sizes, and why']],
  run(context) {
    context.args.refuseMore('images prune')
    return collect(context, '/podd/v1/images/prune', formatGarbage)
  },
}

const pinImagesVerb: Verb = pinVerb(
  'pin',
  `Keeps images from being removed while they are unused: by image garbage collection, \`podd gc\` and
\`podd images prune\`.`,
  ['images pin registry.example/web:2', 'keep an image for a pod to come'],
)

const unpinImagesVerb: Verb = pinVerb(
  'unpin',
  `Lets podd remove images when they are unused. An image from the directory of image archives stays pinned as long as
its file is there.`,
  ['images unpin localhost/web:1', 'let podd remove it when it is unused and the disk is full'],
)

function pinVerb(action: 'pin' | 'unpin', help: string, example: readonly [string, string]): Verb {
  return {
    usage: `images ${action} NAME…`,
    help,
    flags: [],
    examples: [example],
    async run({ args, client, signal }) {
      const names = args.positionals
      if (names.length === 0)
        throw new UsageError(`images ${action} needs an image`, `podd images ${action} NAME`)
      let text = ''
      for (const name of names) {
        await client.post(`/podd/v1/images/${action}?image=${encodeURIComponent(name)}`, signal)
        text += `${action}ned ${name}\n`
      }
      return { kind: 'text', text }
    },
  }
}

export const imagesVerb: Verb = {
  usage: 'images [ACTION] [ARGUMENTS]',
  help: `Lists, pulls, imports, exports, removes and pins the runtime's images; without an action, lists them.
\`podd images ACTION --help\` tells more of an action.`,
  flags: listImagesVerb.flags,
  actions: [
    { name: 'ls', aliases: ['list'], verb: listImagesVerb },
    { name: 'pull', verb: pullImagesVerb },
    { name: 'import', aliases: ['load'], verb: importImagesVerb },
    { name: 'export', aliases: ['save'], verb: exportImagesVerb },
    { name: 'rm', aliases: ['remove', 'rmi'], verb: removeImagesVerb },
    { name: 'prune', verb: pruneImagesVerb },
    { name: 'pin', verb: pinImagesVerb },
    { name: 'unpin', verb: unpinImagesVerb },
  ],
  examples: [
    ['images', 'list images'],
    ['images import web.tar', 'import images on a host without a registry'],
    ['images export registry.example/web:2 -o web.tar', 'save an imported image to a file'],
  ],
  run(context) {
    return listImagesVerb.run(context)
  },
}

export const gcVerb: Verb = {
  usage: 'gc [--dry-run] [--all] [-o json|yaml]',
  help: `Removes what pods leave behind: exited containers and stopped sandboxes beyond the limits
(maximumDeadContainersPerContainer, maximumDeadContainers), and what belongs to pods that no longer exist, such as
volumes, logs, cgroups, addresses, firewall rules and snapshots. podd does so by itself, within minutes; what a call in
flight may still own is shown as waiting, and removed by a later collection.

It also removes all unused images, whatever the disk usage. podd does that by itself when the usage of the disk that holds
the images exceeds imageGCHighThresholdPercent, and then only down to imageGCLowThresholdPercent.

An image is kept if a running or exited container uses it, if a pod of any source names it, even a waiting or rejected
one, or if a container falls back to it while its new image is unavailable; if it is pinned (podd images pin), as all
imported images are; and, without --all, if podd has known it for less than imageMinimumGCAge. No running pod is
affected. A removed image is pulled again when a pod needs it.

-o json says of each image why it is removed or kept. Sizes are those of the download; the space that was freed on the
disk is printed at the end.
The exit code is 1 where something could not be removed.`,
  flags: collectFlags,
  examples: [
    ['gc --dry-run', 'what would be removed, the sizes, and why'],
    ['gc', 'remove unused images and what pods have left behind'],
    ['gc --dry-run -o json', 'also why each of the others is kept'],
  ],
  run(context) {
    context.args.refuseMore('gc')
    return collect(context, '/podd/v1/gc', (report) => `${formatItems(report.items)}${formatGarbage(report)}`)
  },
}

/** The report on everything but images; empty where there is nothing. */
function formatItems(items: readonly GarbageItem[]): string {
  const shown = items.filter(({ outcome }) => outcome !== 'failed')
  if (shown.length === 0) return ''
  const rows = shown.map(({ kind, name, sizeBytes, message, outcome }) => [
    kind,
    name,
    sizeBytes === undefined ? '-' : formatImageSize(sizeBytes),
    outcome === 'waiting' ? `${message}; waiting for calls in flight` : message,
  ])
  const counts = [...Map.groupBy(shown, ({ outcome }) => outcome)].map(([outcome, { length }]) =>
    outcome === 'planned' ? `${length} would be removed` : `${length} ${outcome}`,
  )
  return `${new Table().layOut([['KIND', 'NAME', 'SIZE', 'WHY'], ...rows])}${counts.join(', ')}\n\n`
}

/** Which images were removed, or would be, as a table, and a sum. */
function formatGarbage({ dryRun, images: { removed, kept, disk, freedBytes } }: GarbageReport): string {
  const rows = removed.map((image) => [nameOf(image), formatImageSize(image.sizeBytes), image.message])
  const table = removed.length === 0 ? '' : new Table().layOut([['IMAGE', 'SIZE', 'WHY'], ...rows])
  const size = formatImageSize(freedBytes)
  const images = counted(removed.length, 'image')
  const what = dryRun ? `${images} (${size}) would be removed` : `${images} removed, ${size} freed`
  return `${table}${what}, ${kept.length} kept; ${disk.path} was ${disk.usedPercent}% full\n`
}

function nameOf({ names, id }: Pick<ImageVerdict, 'names' | 'id'>): string {
  return names[0] ?? id
}
