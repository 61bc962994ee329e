import type { GarbageItem, GarbageReport } from '../../../api/images.ts'
import { formatGarbage, garbageNotes } from '../../output/garbage-report.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb } from '../../arguments/verb.ts'
import { formatReport, readReportFormat, reportFlag } from '../../output/report-format.ts'
import { formatImageSize } from '../../output/image-size.ts'
import { Table } from '../../output/table.ts'

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
  flags: [
    { name: 'dry-run', doc: 'Remove nothing; list what would be removed.' },
    {
      name: 'all',
      short: 'a',
      doc: 'Also remove images that podd has known for less than imageMinimumGCAge.',
    },
    reportFlag('a table'),
  ],
  examples: [
    ['gc --dry-run', 'what would be removed, the sizes, and why'],
    ['gc', 'remove unused images and what pods have left behind'],
    ['gc --dry-run -o json', 'also why each of the others is kept'],
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
    const failedItems = report.items.filter(({ outcome }) => outcome === 'failed')
    return {
      kind: 'text',
      text:
        format === undefined
          ? formatText(report)
          : await formatReport(format, 'GarbageReport', { ...report }),
      notes: [
        ...garbageNotes(report),
        ...failedItems.map(({ kind, name, message }) => `${kind} ${name} could not be removed: ${message}`),
      ],
      exitCode: failed.length + failedItems.length === 0 ? 0 : 1,
    }
  },
}

function formatText(report: GarbageReport): string {
  return `${formatItems(report.items)}${formatGarbage(report)}`
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
