import type { GarbageReport, RemovedImage } from '../../../api/images.ts'
import { UsageError } from '../../arguments/usage-error.ts'
import type { Verb, VerbContext } from '../../arguments/verb.ts'
import { formatError } from '../../output/format-error.ts'
import { formatGarbage, garbageNotes } from '../../output/garbage-report.ts'
import { formatImageSize } from '../../output/image-size.ts'
import { formatReport, readReportFormat, reportFlag } from '../../output/report-format.ts'

export const removeImagesVerb: Verb = {
  usage: 'images rm NAME… [--force]',
  help: `Removes images, each by any of its names or by its id, with all its other names. An image that a pod or a
container uses, or that is pinned, is removed only with --force: running containers go on, and a pod that needs it again
pulls it. An image from the directory of image archives is imported again: remove its file instead.
The exit code is 1 where an image could not be removed; the others are.`,
  flags: [{ name: 'force', short: 'f', doc: 'Also remove images that are used or pinned.' }],
  examples: [['images rm localhost/web:1', 'remove an image']],
  async run(context) {
    const { args, notify, signal } = context
    const names = args.positionals
    if (names.length === 0) throw new UsageError('images rm needs an image', 'podd images rm NAME')
    let text = ''
    let exitCode = 0
    for (const name of names) {
      try {
        const removed = await removeImage(context, name)
        const all = removed.names.length === 0 ? [removed.id] : removed.names
        text += `removed ${all.join(', ')}: ${formatImageSize(removed.freedBytes)} freed\n`
      } catch (error) {
        if (names.length === 1 || signal.aborted) throw error
        notify(formatError(error))
        exitCode = 1
      }
    }
    return { kind: 'text', text, exitCode }
  },
}

function removeImage({ args, client, signal }: VerbContext, name: string): Promise<RemovedImage> {
  const force = args.has('force') ? '&force=true' : ''
  return client.post<RemovedImage>(`/podd/v1/images/remove?image=${encodeURIComponent(name)}${force}`, signal)
}

export const pruneImagesVerb: Verb = {
  usage: 'images prune [--dry-run] [--all] [-o json|yaml]',
  help: `Removes all unused images, whatever the disk usage, by the rules of image garbage collection: never an image
that a container uses, that a pod of any source names or falls back to, or that is pinned; without --all also none that
podd has known for less than imageMinimumGCAge.
The exit code is 1 where an image could not be removed.`,
  flags: [
    { name: 'dry-run', doc: 'Remove nothing; list the images that would be removed.' },
    {
      name: 'all',
      short: 'a',
      doc: 'Also remove images that podd has known for less than imageMinimumGCAge.',
    },
    reportFlag('a table'),
  ],
  examples: [['images prune --dry-run', 'which images would be removed, their sizes, and why']],
  async run({ args, client, signal }) {
    const [extra] = args.positionals
    if (extra !== undefined) throw new UsageError(`images prune takes no argument ${JSON.stringify(extra)}`)
    const format = readReportFormat(args)
    const query = [
      ...(args.has('dry-run') ? ['dryRun=true'] : []),
      ...(args.has('all') ? ['all=true'] : []),
    ].join('&')
    const path = `/podd/v1/images/prune${query === '' ? '' : `?${query}`}`
    const report = await client.post<GarbageReport>(path, signal)
    return {
      kind: 'text',
      text:
        format === undefined
          ? formatGarbage(report)
          : await formatReport(format, 'GarbageReport', { ...report }),
      notes: garbageNotes(report),
      exitCode: report.images.failed.length === 0 ? 0 : 1,
    }
  },
}
