/** A blob that is being written to the content store, or was abandoned there. */
export interface Ingest {
  /** `sha256:…` */
  readonly digest: string
  readonly offsetBytes: number
  /** A layer or a config: the manifest that names it has been stored before. */
  readonly isPart?: boolean
}

/** A blob in the content store. */
export interface Blob {
  readonly digest: string
  readonly sizeBytes: number
  /** By the wall clock. */
  readonly createdAtMs: number
}

/** The manifest of an image for one platform. */
export interface Manifest {
  readonly digest: string
  readonly createdAtMs: number
  /** Whether it was unpacked before the pull began: the runtime lists it as an image. */
  readonly isPresent: boolean
  /** Its config, then its layers from the lowest up. */
  readonly blobs: readonly ManifestBlob[]
}

export interface ManifestBlob {
  readonly digest: string
  readonly sizeBytes: number
}

/** The observation of one pull. */
export interface PullFacts {
  /** When it began, by the wall clock. */
  readonly beganAtMs: number
  /** All of the content store, including those of other pulls. */
  readonly ingests: readonly Ingest[]
  /** The digests of ingests that appeared or grew since the pull began; the blobs may have been stored since. */
  readonly moved: ReadonlySet<string>
  /** Those of the image's repository. */
  readonly blobs: readonly Blob[]
  /** Those of the image's repository. */
  readonly manifests: readonly Manifest[]
}

export interface PullState {
  /** `resolving`: the manifest isn't known yet. `unpacking`: nothing is being downloaded. */
  readonly phase: 'resolving' | 'fetching' | 'unpacking'
  readonly doneBytes: number
  /** Without already unpacked layers; undefined before a layer was seen. */
  readonly totalBytes: number | undefined
  /** The bytes that will certainly still be written before unpacking. */
  readonly missingBytes: number
  /** Changes whenever the pull makes progress. */
  readonly marker: string
}

/**
 * The progress of a pull. The content store doesn't record which image a blob belongs to: it follows from the manifests
 * of the image's repository that are new, or of which something is being written. Two tags of one repository that are
 * pulled at the same time count as one. A pull whose content is already stored has nothing new and counts as unpacking;
 * so does one that hangs while resolving, where another tag's pull has left everything without unpacking it.
 */
export function derivePullState(facts: PullFacts): PullState {
  const offsets = new Map(facts.ingests.map(({ digest, offsetBytes }) => [digest, offsetBytes]))
  const stored = new Set(facts.blobs.map(({ digest }) => digest))
  const isOpen = (digest: string): boolean => offsets.has(digest) && !stored.has(digest)
  const isMoving = (digest: string): boolean => facts.moved.has(digest) && isOpen(digest)
  const own = ownManifests(facts)
  if (own.length === 0 && !facts.ingests.some(({ digest }) => isMoving(digest)))
    own.push(
      ...facts.manifests.filter(({ isPresent, blobs }) => !isPresent && isFetched(blobs, stored, isOpen)),
    )
  if (own.length === 0) {
    // Any activity may belong to this pull: waiting too long is better than cancelling an active one. But while nothing of
    // its repository is stored, no layer and no config can be its own.
    const possible = facts.ingests.filter(({ isPart }) => isPart !== true || stored.size > 0)
    const all = possible.map(({ digest, offsetBytes }) => `${digest}=${offsetBytes}`)
    const marker = [...all, ...stored].toSorted().join(' ')
    return { phase: 'resolving', doneBytes: 0, totalBytes: undefined, missingBytes: 0, marker }
  }
  const isSeen = (digest: string): boolean => stored.has(digest) || offsets.has(digest)
  const isNew = (manifest: Manifest): boolean => manifest.createdAtMs >= facts.beganAtMs
  const certain = new Set(own.filter(isNew).flatMap(({ blobs }) => blobs.map(({ digest }) => digest)))
  const parts = new Map(own.flatMap(({ blobs }) => blobs.map((blob) => [blob.digest, blob.sizeBytes])))
  const needed = new Set(own.flatMap(({ blobs }) => neededOf(blobs, isSeen)))
  let doneBytes = 0
  let totalBytes = 0
  let missingBytes = 0
  const marks: string[] = []
  for (const [digest, sizeBytes] of parts) {
    const offset = stored.has(digest) ? sizeBytes : Math.min(offsets.get(digest) ?? 0, sizeBytes)
    doneBytes += offset
    if (needed.has(digest)) totalBytes += sizeBytes
    if (isMoving(digest) || (certain.has(digest) && isOpen(digest))) missingBytes += sizeBytes - offset
    marks.push(`${digest}=${offset}`)
  }
  // A partial blob of an earlier pull proves nothing where another manifest may be unpacking.
  const isFetching =
    [...parts.keys()].some((digest) => isMoving(digest)) ||
    own.every(({ blobs }) => blobs.some(({ digest }) => isOpen(digest)))
  return {
    phase: isFetching ? 'fetching' : 'unpacking',
    doneBytes,
    totalBytes: needed.size > 0 ? totalBytes : undefined,
    missingBytes,
    marker: marks.toSorted().join(' '),
  }
}

/** The new manifests, and older ones with active blobs that no new one has. */
function ownManifests({ manifests, beganAtMs, moved }: PullFacts): Manifest[] {
  const isNew = ({ createdAtMs }: Manifest): boolean => createdAtMs >= beganAtMs
  const ofNew = new Set(manifests.filter(isNew).flatMap(({ blobs }) => blobs.map(({ digest }) => digest)))
  return manifests.filter(
    (manifest) =>
      isNew(manifest) || manifest.blobs.some(({ digest }) => moved.has(digest) && !ofNew.has(digest)),
  )
}

/**
 * Whether all that was missing of an image has been downloaded and is still stored. Its lowest layers may be absent: already
 * unpacked ones aren't downloaded.
 */
function isFetched(
  blobs: readonly ManifestBlob[],
  stored: ReadonlySet<string>,
  isOpen: (digest: string) => boolean,
): boolean {
  const [config, ...layers] = blobs
  if (config === undefined || !stored.has(config.digest)) return false
  if (layers.some(({ digest }) => isOpen(digest))) return false
  const first = layers.findIndex(({ digest }) => stored.has(digest))
  return first >= 0 && layers.slice(first).every(({ digest }) => stored.has(digest))
}

/**
 * The digests that are or will be downloaded, as far as known. containerd downloads layers in order and skips unpacked
 * ones (core/unpack/unpacker.go): an absent layer before a present one will not be downloaded.
 */
function neededOf(blobs: readonly ManifestBlob[], isSeen: (digest: string) => boolean): readonly string[] {
  const [config, ...layers] = blobs
  const last = layers.findLastIndex(({ digest }) => isSeen(digest))
  if (config === undefined || last < 0) return []
  const needed = layers.filter(({ digest }, at) => at > last || isSeen(digest))
  return [config, ...needed].map(({ digest }) => digest)
}
