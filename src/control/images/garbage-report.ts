import type { GarbageItem, GarbageReport, ImageVerdict } from '../../api/images.ts'
import { errorMessage } from '../../base/errors.ts'
import { usedPercent } from '../../decide/node/plan-image-garbage.ts'
import type { ImageFacts } from '../../decide/node/plan-image-garbage.ts'
import type { ImageCollection } from '../images/image-garbage.ts'

/** The result of a collection, as the API returns it. */
export function toGarbageReport(
  collection: ImageCollection,
  items: readonly GarbageItem[],
  dryRun: boolean,
): GarbageReport {
  const { disk, removed, kept, failed, freedBytes } = collection
  return {
    dryRun,
    images: {
      disk: { ...disk, usedPercent: usedPercent(disk) },
      removed: removed.map(({ image, reason, message }) => verdict(image, reason, message)),
      failed: failed.map(({ image, error }) => verdict(image, 'failed', errorMessage(error))),
      kept: kept.map(({ image, reason, message }) => verdict(image, reason, message)),
      freedBytes,
    },
    items,
  }
}

function verdict({ id, names, sizeBytes }: ImageFacts, reason: string, message: string): ImageVerdict {
  return { id, names, sizeBytes, reason, message }
}
