import { sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { objectOrEmpty, parseJson } from '../../base/json.ts'
import { formatBytes, formatDuration } from '../../base/text.ts'
import type { DiskSpace } from '../../decide/node/plan-image-garbage.ts'
import { derivePullState } from '../../decide/node/pull-progress.ts'
import type { Blob, Ingest, Manifest, ManifestBlob, PullState } from '../../decide/node/pull-progress.ts'
import { parseImageName } from '../../pod/values/image-name.ts'
import type { PullProgress } from './image-request.ts'

/** What is read of the runtime's content store; see containerd's ContentStore. */
export interface PullContent {
  listIngests(): Promise<readonly Ingest[]>
  listBlobs(registry: string, repository: string): Promise<readonly Blob[]>
  readBlob(digest: string): Promise<Buffer>
}

export interface PullWatchEnv {
  readonly content: PullContent
  readonly clock: Clock
  /** Whether the runtime lists an image with this id, the digest of its config. */
  readonly isPresent: (id: string) => Promise<boolean>
  /** After that many milliseconds without progress a pull is given up; 0: never. */
  readonly stallMs: number
  /** Called while a pull is in flight, with what it will still write for certain. */
  readonly checkRoom?: CheckRoom | undefined
}

export interface WatchedPull {
  readonly image: string
  readonly onProgress: (progress: PullProgress) => void
  /** Called once, when the pull is to be given up. */
  readonly giveUp: (error: unknown) => void
}

/** When a look began, and whether it is the first one for a long time. */
interface Look {
  readonly nowMs: number
  readonly isLate: boolean
}

interface Watched extends WatchedPull {
  readonly beganAtMs: number
  /** By digest; undefined for what is no manifest. */
  readonly read: Map<string, Manifest | undefined>
  /** The digests of blobs of which one read has failed. */
  readonly failedReads: Set<string>
  /** By digest: the offsets at the first look; undefined before it. */
  firstOffsets: ReadonlyMap<string, number> | undefined
  /** The digests of ingests that appeared or grew since then. */
  readonly moved: Set<string>
  state: PullState | undefined
  movedAtMs: number
  /** Since when it can't be seen; undefined where the last look went well. */
  unseenSinceMs: number | undefined
  /** Whether there is room for it is being found out. */
  isChecked: boolean
  /** Aborted when the pull has ended. */
  readonly ended: AbortController
}

/** How often the content store, which grows by the mebibyte, is looked at while a pull is in flight. */
const lookMs = 2000
/** Between two looks that are further apart the process didn't run, and nor may the runtime have. A slow look takes less. */
const gapMs = 60_000
/** What can't be seen for so many times the limit is given up, unless it was unpacking. */
const unseenShare = 3
/** A manifest is no larger (distribution's limit is 4 MiB), and not more than so many blobs are read per look. */
const manifestBytes = 4 * 1024 * 1024
const readsPerLook = 8
const readMs = 5000

/**
 * Looks at the runtime's content store while pulls are in flight, and at no other time: tells how far they are, and
 * gives up those that make no progress. One timer serves them all. A pull that unpacks is never given up. The time in which
 * a pull can't be seen doesn't count, up to three times the limit.
 */
export class PullWatch {
  readonly #env: PullWatchEnv
  readonly #pulls = new Set<Watched>()
  #timer: Timer | undefined
  #lookedAtMs = 0

  constructor(env: PullWatchEnv) {
    this.#env = env
  }

  /** Watches a pull until the returned function is called. */
  begin(pull: WatchedPull): () => void {
    const { clock } = this.#env
    const nowMs = clock.monotonicMs()
    const watched: Watched = {
      ...pull,
      beganAtMs: clock.wallMs(),
      read: new Map(),
      failedReads: new Set(),
      firstOffsets: undefined,
      moved: new Set(),
      state: undefined,
      movedAtMs: nowMs,
      unseenSinceMs: undefined,
      isChecked: false,
      ended: new AbortController(),
    }
    this.#pulls.add(watched)
    if (this.#pulls.size === 1) {
      this.#lookedAtMs = nowMs
      this.#schedule()
    }
    return () => {
      watched.ended.abort()
      this.#pulls.delete(watched)
      if (this.#pulls.size > 0) return
      this.#timer?.cancel()
      this.#timer = undefined
    }
  }

  #schedule(): void {
    this.#timer = this.#env.clock.startTimer(lookMs, () => void this.#look())
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { clock, content } = this.#env
    const timer = this.#timer
    const nowMs = clock.monotonicMs()
    const isLate = nowMs - this.#lookedAtMs > gapMs
    this.#lookedAtMs = nowMs
    const when = { nowMs, isLate }
    try {
      const ingests = await content.listIngests()
      for (const pull of this.#pulls) noteMoved(pull, ingests)
      const looks = [...this.#pulls].map((pull) =>
        this.#lookAt(pull, this.#withoutOthers(pull, ingests), when).catch((error: unknown) =>
          this.#missLook(pull, error, when),
        ),
      )
      await Promise.all(looks)
    } catch (error) {
      for (const pull of this.#pulls) this.#missLook(pull, error, when)
    }
    if (this.#pulls.size > 0 && this.#timer === timer) this.#schedule()
  }

  /** The pull itself fails where the runtime is gone. */
  #missLook(pull: Watched, error: unknown, { nowMs, isLate }: Look): void {
    if (isLate) pull.movedAtMs = nowMs
    pull.unseenSinceMs = isLate ? nowMs : (pull.unseenSinceMs ?? nowMs)
    const { stallMs } = this.#env
    if (stallMs === 0 || nowMs - pull.unseenSinceMs < stallMs * unseenShare) return
    if (pull.state?.phase !== 'unpacking') this.#giveUp(pull, unseenError(pull.image, error, stallMs))
  }

  #giveUp(pull: Watched, error: unknown): void {
    if (this.#pulls.delete(pull)) quietly(() => pull.giveUp(error))
  }

  /** What moves in another pull says nothing of one whose manifest isn't known yet. */
  #withoutOthers(pull: Watched, ingests: readonly Ingest[]): readonly Ingest[] {
    const partsOf = ({ read }: Watched): readonly string[] =>
      [...read.values()].flatMap((manifest) => manifest?.blobs.map(({ digest }) => digest) ?? [])
    const own = new Set(partsOf(pull))
    const others = new Set([...this.#pulls].flatMap((other) => (other === pull ? [] : partsOf(other))))
    return ingests.filter(({ digest }) => own.has(digest) || !others.has(digest))
  }

  async #lookAt(pull: Watched, ingests: readonly Ingest[], { nowMs, isLate }: Look): Promise<void> {
    const { stallMs } = this.#env
    const name = parseImageName(pull.image)
    if (name === undefined) return
    const blobs = await this.#env.content.listBlobs(name.registry, name.repository)
    const manifests = await this.#readManifests(pull, blobs)
    const state = derivePullState({ ...pull, ingests, blobs, manifests })
    if (!this.#pulls.has(pull)) return
    if (pull.unseenSinceMs !== undefined) pull.movedAtMs += nowMs - pull.unseenSinceMs
    pull.unseenSinceMs = undefined
    const hasMoved = state.marker !== pull.state?.marker || state.phase === 'unpacking' || isLate
    pull.state = state
    if (hasMoved) pull.movedAtMs = nowMs
    const { phase, doneBytes, totalBytes } = state
    quietly(() => pull.onProgress({ phase, doneBytes, totalBytes }))
    this.#checkRoom(pull, state)
    if (stallMs === 0 || nowMs - pull.movedAtMs < stallMs) return
    this.#giveUp(pull, stalledError(pull.image, state, stallMs))
  }

  #checkRoom(pull: Watched, { missingBytes }: PullState): void {
    const { checkRoom } = this.#env
    if (checkRoom === undefined || pull.isChecked || missingBytes === 0) return
    pull.isChecked = true
    checkRoom(missingBytes, pull.ended.signal).then(
      () => {
        pull.isChecked = false
      },
      (error: unknown) => this.#giveUp(pull, error),
    )
  }

  /**
   * Newer blobs are read first: the manifest of a pull is among its first. One that can't be read twice is none; throws
   * at the first time.
   */
  async #readManifests(pull: Watched, blobs: readonly Blob[]): Promise<readonly Manifest[]> {
    const unread = blobs
      .filter(({ digest, sizeBytes }) => sizeBytes <= manifestBytes && !pull.read.has(digest))
      .toSorted((a, b) => order(a, pull.beganAtMs) - order(b, pull.beganAtMs))
    const { clock, content, isPresent: isPresentImage } = this.#env
    const beganMs = clock.monotonicMs()
    for (const blob of unread.slice(0, readsPerLook)) {
      if (clock.monotonicMs() - beganMs >= readMs) break
      const bytes = await content.readBlob(blob.digest).catch((error: unknown) => {
        if (pull.failedReads.has(blob.digest)) return Buffer.alloc(0)
        pull.failedReads.add(blob.digest)
        throw error
      })
      const manifest = readManifest(bytes)
      const id = manifest?.[0]?.digest
      const { digest, createdAtMs } = blob
      const isPresent = id !== undefined && createdAtMs < pull.beganAtMs && (await isPresentImage(id))
      pull.read.set(digest, manifest && { digest, createdAtMs, isPresent, blobs: manifest })
    }
    return [...pull.read.values()].filter((manifest) => manifest !== undefined)
  }
}

/** What was there at the first look may be left of an earlier pull, until it grows. */
function noteMoved(pull: Watched, ingests: readonly Ingest[]): void {
  pull.firstOffsets ??= new Map(ingests.map(({ digest, offsetBytes }) => [digest, offsetBytes]))
  for (const { digest, offsetBytes } of ingests)
    if (pull.firstOffsets.get(digest) !== offsetBytes) pull.moved.add(digest)
}

/** A listener that throws ends neither the watch nor other pulls. */
function quietly(listener: () => void): void {
  try {
    listener()
  } catch {
    // It only shows progress or cancels the pull, whose outcome is reported in any case.
  }
}

/** Those of this pull in the order in which they came, then those of earlier ones, the newest first. */
function order({ createdAtMs }: Blob, beganAtMs: number): number {
  return createdAtMs >= beganAtMs ? createdAtMs - beganAtMs : Number.MAX_SAFE_INTEGER - createdAtMs
}

/** The blobs of a manifest of one image; undefined for what is none: an index, a config, a layer. */
function readManifest(bytes: Buffer): readonly ManifestBlob[] | undefined {
  // Any JSON of a manifest begins with a brace; a layer may be large, and isn't text.
  if (bytes[0] !== 0x7b) return undefined
  const { layers, config } = objectOrEmpty(parseJson(bytes.toString('utf8')))
  if (!Array.isArray(layers)) return undefined
  return [config, ...layers].flatMap((each) => {
    const { digest, size } = objectOrEmpty(each)
    return typeof digest === 'string' && typeof size === 'number' ? [{ digest, sizeBytes: size }] : []
  })
}

function stalledError(image: string, state: PullState, stallMs: number): PoddError {
  const message = `the pull made no progress for ${formatDuration(stallMs)}: ${describePull(image, state)}`
  const hint =
    'Check the registry and the network path to it; `imagePullProgressTimeout` says how long podd waits.'
  return new PoddError('PULL_STALLED', message, { hint })
}

function unseenError(image: string, cause: unknown, stallMs: number): PoddError {
  const duration = formatDuration(stallMs * unseenShare)
  const message = `the progress of the pull of image "${image}" could not be read for ${duration}: ${errorMessage(cause)}`
  const hint =
    "containerd doesn't tell what its content store holds: check its log, and the disk of its directory."
  return new PoddError('PULL_STALLED', message, { hint, cause })
}

/** What a pull is doing: `pulling image "app:1": 12.0 MiB of 40.0 MiB`. */
export function describePull(image: string, { phase, doneBytes, totalBytes }: PullProgress): string {
  const pulling = `pulling image "${image}"`
  switch (phase) {
    case 'queued':
      return `waiting to pull image "${image}": other images are pulled before it`
    case 'resolving':
      return `${pulling}: looking for its manifest`
    case 'fetching':
      return `${pulling}: ${formatBytes(doneBytes)}${totalBytes === undefined ? '' : ` of ${formatBytes(totalBytes)}`}`
    case 'unpacking':
      return `${pulling}: unpacking ${formatBytes(totalBytes ?? doneBytes)}`
  }
}

interface ImageDisk {
  /** Undefined if the runtime does not report it. */
  readonly imagesPath: (signal: AbortSignal) => Promise<string | undefined>
  readonly readDisk: (path: string) => Promise<DiskSpace>
}

/** Removes unused images where the disk is too full; rejects where it can't. */
type Collect = (signal: AbortSignal) => Promise<unknown>

/** Rejects where there is no room for so many bytes of an image, or with the signal's reason. */
export type CheckRoom = (neededBytes: number, signal: AbortSignal) => Promise<void>

/** Below this no pull begins: an image takes some, and containerd's database and the pods' records need to grow. */
const leastFreeBytes = 32 * 1024 * 1024
/** On a small disk, less is kept free. */
const leastFreeShare = 0.05
/** How long a pull waits for the removal of unused images. */
const collectMs = 60_000

/**
 * What checks the room of pulls: throws PoddError IMAGE_DISK_FULL where the file system of the images has too little free
 * space, also after unused images were removed; a registry tells the size of an image only when the pull is in flight. What
 * is needed for certain is asked for; a small floor is to stay free beside it. A file system that can't be looked at is no
 * reason against a pull.
 */
export function imageRoom(disk: ImageDisk, collect: Collect, clock: Clock): CheckRoom {
  return async (neededBytes, signal) => {
    // The pull itself fails where the runtime is unavailable.
    const path = await disk.imagesPath(signal).catch(() => undefined)
    signal.throwIfAborted()
    if (path === undefined || (await findLack(disk, path, neededBytes)) === undefined) return
    await collectFor(collect, clock, signal)
    const lack = await findLack(disk, path, neededBytes)
    if (lack === undefined) return
    const { freeBytes, floorBytes } = lack
    const message = `not enough free space for the image in ${path}: ${formatBytes(freeBytes)} (${freeBytes} bytes) free, ${formatBytes(floorBytes)} (${floorBytes} bytes) needed`
    throw new PoddError('IMAGE_DISK_FULL', message, {
      hint: 'Make room on that disk: `podd gc --dry-run` shows which images are unused.',
    })
  }
}

async function findLack(
  { readDisk }: ImageDisk,
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
async function collectFor(collect: Collect, clock: Clock, signal: AbortSignal): Promise<void> {
  const done = new AbortController()
  const until = AbortSignal.any([signal, done.signal])
  // The garbage collection's own job logs what keeps it from removing images.
  const collected = collect(until).catch(() => undefined)
  await Promise.race([collected, sleepUnlessAborted(clock, collectMs, until)])
  done.abort()
  signal.throwIfAborted()
}
