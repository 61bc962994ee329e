import type { Clock, Timer } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import { derivePullState } from '../../decide/node/pull-progress.ts'
import type { Blob, Ingest, Manifest, PullState } from '../../decide/node/pull-progress.ts'
import { parseImageName } from '../../pod/values/image-name.ts'
import { formatDuration } from '../../probes/go-words.ts'
import { describePull } from './describe-pull.ts'
import type { PullProgress } from './image-request.ts'
import type { CheckRoom } from './image-room.ts'

/** What is read of the runtime's content store; see containerd's ContentStore. */
export interface PullContent {
  listIngests(): Promise<readonly Ingest[]>
  listBlobs(registry: string, repository: string): Promise<readonly Blob[]>
  readBlob(digest: string): Promise<Buffer>
}

export interface PullWatchOptions {
  readonly content: PullContent
  readonly clock: Clock
  /** After that many milliseconds without progress a pull is given up; 0: never. */
  readonly stallMs: number
  /** Called while a pull is in flight, with what it will still write for certain. */
  readonly checkRoom?: CheckRoom | undefined
}

/** One pull in flight. */
export interface WatchedPull {
  readonly image: string
  readonly onProgress: (progress: PullProgress) => void
  /** Called once, when the pull is to be given up. */
  readonly giveUp: (error: unknown) => void
}

interface Watched extends WatchedPull {
  readonly beganAtMs: number
  /** By digest; undefined for what is no manifest. */
  readonly read: Map<string, Manifest | undefined>
  state: PullState | undefined
  movedAtMs: number
  /** Whether there is room for it is being found out. */
  isChecked: boolean
  /** Aborted when the pull has ended. */
  readonly ended: AbortController
}

/** How often the content store, which grows by the mebibyte, is looked at while a pull is in flight. */
const lookMs = 2000
/** Between two looks that are further apart the process didn't run, and nor may the runtime have. */
const gapMs = 30_000
/** A manifest is no larger (distribution's limit is 4 MiB), and not more than so many blobs are read per look. */
const manifestBytes = 4 * 1024 * 1024
const readsPerLook = 8

/**
 * Looks at the runtime's content store while pulls are in flight, and at no other time: tells how far they are, and
 * gives up those that make no progress. One timer serves them all. A pull that unpacks is never given up.
 */
export class PullWatch {
  readonly #options: PullWatchOptions
  readonly #pulls = new Set<Watched>()
  #timer: Timer | undefined
  #lookedAtMs = 0

  constructor(options: PullWatchOptions) {
    this.#options = options
  }

  /** Watches a pull until the returned function is called. */
  begin(pull: WatchedPull): () => void {
    const { clock } = this.#options
    const nowMs = clock.monotonicMs()
    const watched: Watched = {
      ...pull,
      beganAtMs: clock.wallMs(),
      read: new Map(),
      state: undefined,
      movedAtMs: nowMs,
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
    this.#timer = this.#options.clock.startTimer(lookMs, () => void this.#look())
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { clock, content } = this.#options
    const timer = this.#timer
    const nowMs = clock.monotonicMs()
    const isLate = nowMs - this.#lookedAtMs > gapMs
    this.#lookedAtMs = nowMs
    try {
      const ingests = await content.listIngests()
      for (const pull of this.#pulls)
        await this.#lookAt(pull, this.#withoutOthers(pull, ingests), { nowMs, isLate })
    } catch {
      // What can't be seen isn't judged. The pulls themselves fail where the runtime is gone.
      for (const pull of this.#pulls) pull.movedAtMs = clock.monotonicMs()
    }
    if (this.#pulls.size > 0 && this.#timer === timer) this.#schedule()
  }

  /** What moves in another pull says nothing of one whose manifest isn't known yet. */
  #withoutOthers(pull: Watched, ingests: readonly Ingest[]): readonly Ingest[] {
    const partsOf = ({ read }: Watched): readonly string[] =>
      [...read.values()].flatMap((manifest) => manifest?.blobs.map(({ digest }) => digest) ?? [])
    const own = new Set(partsOf(pull))
    const others = new Set([...this.#pulls].flatMap((other) => (other === pull ? [] : partsOf(other))))
    return ingests.filter(({ digest }) => own.has(digest) || !others.has(digest))
  }

  async #lookAt(
    pull: Watched,
    ingests: readonly Ingest[],
    { nowMs, isLate }: { readonly nowMs: number; readonly isLate: boolean },
  ): Promise<void> {
    const { stallMs } = this.#options
    const name = parseImageName(pull.image)
    if (name === undefined) return
    const blobs = await this.#options.content.listBlobs(name.registry, name.repository)
    const manifests = await this.#readManifests(pull, blobs)
    const state = derivePullState({ beganAtMs: pull.beganAtMs, ingests, blobs, manifests })
    if (!this.#pulls.has(pull)) return
    const hasMoved = state.marker !== pull.state?.marker || state.phase === 'unpacking' || isLate
    pull.state = state
    if (hasMoved) pull.movedAtMs = nowMs
    pull.onProgress({ phase: state.phase, doneBytes: state.doneBytes, totalBytes: state.totalBytes })
    this.#checkRoom(pull, state)
    if (stallMs === 0 || nowMs - pull.movedAtMs < stallMs) return
    this.#pulls.delete(pull)
    pull.giveUp(stalledError(pull.image, state, stallMs))
  }

  #checkRoom(pull: Watched, { missingBytes }: PullState): void {
    const { checkRoom } = this.#options
    if (checkRoom === undefined || pull.isChecked || missingBytes === 0) return
    pull.isChecked = true
    checkRoom(missingBytes, pull.ended.signal).then(
      () => {
        pull.isChecked = false
      },
      (error: unknown) => {
        if (this.#pulls.delete(pull)) pull.giveUp(error)
      },
    )
  }

  /** Newer blobs are read first: the manifest of a pull is among its first. */
  async #readManifests(pull: Watched, blobs: readonly Blob[]): Promise<readonly Manifest[]> {
    const unread = blobs
      .filter(({ digest, sizeBytes }) => sizeBytes <= manifestBytes && !pull.read.has(digest))
      .toSorted((a, b) => order(a, pull.beganAtMs) - order(b, pull.beganAtMs))
    for (const blob of unread.slice(0, readsPerLook)) {
      const bytes = await this.#options.content.readBlob(blob.digest).catch(() => Buffer.alloc(0))
      pull.read.set(blob.digest, readManifest(blob, bytes))
    }
    return [...pull.read.values()].filter((manifest) => manifest !== undefined)
  }
}

/** Those of this pull in the order in which they came, then those of earlier ones, the newest first. */
function order({ createdAtMs }: Blob, beganAtMs: number): number {
  return createdAtMs >= beganAtMs ? createdAtMs - beganAtMs : Number.MAX_SAFE_INTEGER - createdAtMs
}

/** Undefined for what is no manifest of one image: an index, a config, a layer. */
function readManifest({ digest, createdAtMs }: Blob, bytes: Buffer): Manifest | undefined {
  // Any JSON of a manifest begins with a brace; a layer may be large, and isn't text.
  if (bytes[0] !== 0x7b) return undefined
  let json: unknown
  try {
    json = JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
  if (!isJsonObject(json)) return undefined
  const layers: unknown = json['layers']
  const config: unknown = json['config']
  if (!Array.isArray(layers)) return undefined
  const blobs = [config, ...layers].flatMap((each: unknown) => {
    if (!isJsonObject(each)) return []
    const { digest, size } = each
    return typeof digest === 'string' && typeof size === 'number' ? [{ digest, sizeBytes: size }] : []
  })
  return { digest, createdAtMs, blobs }
}

function stalledError(image: string, state: PullState, stallMs: number): PoddError {
  const message = `the pull made no progress for ${formatDuration(stallMs)}: ${describePull(image, state)}`
  const hint =
    'Check the registry and the network path to it; `imagePullProgressTimeout` says how long podd waits.'
  return new PoddError('PULL_STALLED', message, { hint })
}
