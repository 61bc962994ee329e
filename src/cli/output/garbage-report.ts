import type { GarbageReport, ImageVerdict } from '../../api/images.ts'
import { formatImageSize } from './image-size.ts'
import { Table } from './table.ts'

/** Which images were removed, or would be, as a table, and a sum. */
export function formatGarbage({ dryRun, images }: GarbageReport): string {
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

/** What could not be removed, a line each. */
export function garbageNotes({ images: { failed } }: GarbageReport): readonly string[] {
  return failed.map((image) => `${nameOf(image)} could not be removed: ${image.message}`)
}
