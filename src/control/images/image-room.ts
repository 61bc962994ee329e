import { PoddError } from '../../base/errors.ts'
import { formatBytes } from '../../base/text.ts'
import type { Clock } from '../../base/clock.ts'
import type { DiskSpace } from '../../decide/node/plan-image-garbage.ts'

export interface ImageRoomOptions {
  /** Where the images are; undefined if the runtime does not report it. */
  readonly imagesPath: (signal: AbortSignal) => Promise<string | undefined>
  readonly readDisk: (path: string) => Promise<DiskSpace>
  /** Removes unused images where the disk is too full; rejects where it can't. */
  readonly collect: (signal: AbortSignal) => Promise<unknown>
  readonly clock: Clock
}

/** Rejects where there is no room for so many bytes of an image, or with the signal's reason. */
export type CheckRoom = (neededBytes: number, signal: AbortSignal) => Promise<void>

/** Below this no pull begins: an image takes some, and containerd's database and the pods' records need to grow. */
const leastFreeBytes = 32 * 1024 * 1024
/** On a small disk, less is kept free. */
const leastFreeShare = 0.05
/** How long a pull waits for the removal of unused images. */
const collectMs = 60_000

/**
 * Throws PoddError IMAGE_DISK_FULL where the file system of the images has too little free space, also after
 * unused images were removed; a registry tells the size of an image only when the pull is in flight. A file system that
 * can't be looked at is no reason against a pull.
 * @param neededBytes what is needed for certain; a small floor is to stay free beside it
 */
async function checkImageRoom(
  options: ImageRoomOptions,
  neededBytes: number,
  signal: AbortSignal,
): Promise<void> {
  // The pull itself fails where the runtime is unavailable.
  const path = await options.imagesPath(signal).catch(() => undefined)
  signal.throwIfAborted()
  if (path === undefined) return
  if ((await findLack(options, path, neededBytes)) === undefined) return
  await collectFor(options, signal)
  const lack = await findLack(options, path, neededBytes)
  if (lack === undefined) return
  const { freeBytes, floorBytes } = lack
  const message = `not enough free space for the image in ${path}: ${formatBytes(freeBytes)} (${freeBytes} bytes) free, ${formatBytes(floorBytes)} (${floorBytes} bytes) needed`
  throw new PoddError('IMAGE_DISK_FULL', message, {
    hint: 'Make room on that disk: `podd gc --dry-run` shows which images are unused.',
  })
}

/** What checks the room of pulls. */
export function imageRoom(options: ImageRoomOptions): CheckRoom {
  return (neededBytes, signal) => checkImageRoom(options, neededBytes, signal)
}

async function findLack(
  { readDisk }: ImageRoomOptions,
  path: string,
  neededBytes: number,
): Promise<{ readonly freeBytes: number; readonly floorBytes: number } | undefined> {
  // A disk that is too full in spite of this fails the pull, which reports it.
  const disk = await readDisk(path).catch(() => undefined)
  if (disk === undefined || disk.capacityBytes === 0) return undefined
  const floorBytes = neededBytes + Math.min(leastFreeBytes, Math.floor(disk.capacityBytes * leastFreeShare))
  return disk.availableBytes >= floorBytes ? undefined : { freeBytes: disk.availableBytes, floorBytes }
}

/** Rejects with the signal's reason alone. */
async function collectFor({ collect, clock }: ImageRoomOptions, signal: AbortSignal): Promise<void> {
  const late = new AbortController()
  const timer = clock.startTimer(collectMs, () => late.abort())
  const until = AbortSignal.any([signal, late.signal])
  const aborted = new Promise<void>((resolve) =>
    until.addEventListener('abort', () => resolve(), { once: true }),
  )
  try {
    // The garbage collection's own job logs what keeps it from removing images.
    await Promise.race([collect(until).catch(() => undefined), aborted])
  } finally {
    timer.cancel()
  }
  signal.throwIfAborted()
}
