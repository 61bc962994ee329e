import type { GarbageReport, ImageVerdict } from '../../api/garbage.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb } from '../arguments/verb.ts'
import { formatReport, readReportFormat, reportFlag } from '../output/report-format.ts'
import { formatImageSize } from '../output/image-size.ts'
import { Table } from '../output/table.ts'

export const gcVerb: Verb = {
  usage: 'gc [--dry-run] [--all] [-o json|yaml]',
  help: `Removes all images that nobody needs, however much room there is on the disk. podd does so by itself when the disk
that holds the images is too full (imageGCHighThresholdPercent), and then only down to imageGCLowThresholdPercent.

An image stays that a container has, be it one that has ended, that a pod of any source names, be it waiting or refused,
or that a container goes back to while its new image can't be had; one that is pinned (podd images pin), as all are that
were imported; and, but with --all, one that podd has known for less than imageMinimumGCAge. No running pod is touched.
What is removed is pulled again when a pod wants it.

-o json tells of each image why it goes or stays. Sizes are what was downloaded; what the disk gained is told at the end.
The exit code is 1 where an image could not be removed.`,
  flags: [
    { name: 'dry-run', doc: 'Remove nothing, and say what would be removed.' },
    { name: 'all', short: 'a', doc: 'Remove also what podd has known for less than imageMinimumGCAge.' },
    reportFlag('a table'),
  ],
  examples: [
    ['gc --dry-run', 'what would go, how large it is, and why'],
    ['gc', 'make room'],
    ['gc --dry-run -o json', 'and why each of the others stays'],
  ],
  async run({ args, client, signal }) {
    const [extra] = args.positionals
    if (extra !== undefined) throw new UsageError(`gc takes no argument ${JSON.stringify(extra)}`)
    const format = readReportFormat(args)
    const query = [
      ...(args.has('dry-run') ? ['dryRun=true'] : []),
      ...(args.has('all') ? ['all=true'] : []),
    ].join('&')
    const report = await client.post<GarbageReport>(`/podd/v1/gc${query === '' ? '' : `?${query}`}`, signal)
    const { failed } = report.images
    return {
      kind: 'text',
      text:
        format === undefined
          ? formatText(report)
          : await formatReport(format, 'GarbageReport', { ...report }),
      notes: failed.map((image) => `${nameOf(image)} could not be removed: ${image.message}`),
      exitCode: failed.length === 0 ? 0 : 1,
    }
  },
}

function formatText({ dryRun, images }: GarbageReport): string {
  const { removed, kept, disk, freedBytes } = images
  const rows = removed.map((image) => [nameOf(image), formatImageSize(image.sizeBytes), image.message])
  const table = removed.length === 0 ? '' : new Table().layOut([['IMAGE', 'SIZE', 'WHY'], ...rows])
  const size = formatImageSize(freedBytes)
  const counted = removed.length === 1 ? '1 image' : `${removed.length} images`
  const what = dryRun ? `${counted} (${size}) would be removed` : `${counted} removed, ${size} freed`
  return `${table}${what}, ${kept.length} kept; ${disk.path} was ${disk.usedPercent}% full\n`
}

function nameOf({ names, id }: Pick<ImageVerdict, 'names' | 'id'>): string {
  return names[0] ?? id
}
