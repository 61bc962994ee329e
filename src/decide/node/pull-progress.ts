/** A blob that is being written to the content store; one that was left behind counts as one, too. */
export interface Ingest {
  /** `sha256:…` */
  readonly digest: string
  readonly offsetBytes: number
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
  /** Its config and its layers. */
  readonly blobs: readonly { readonly digest: string; readonly sizeBytes: number }[]
}

/** What there is to be seen of one pull. */
export interface PullFacts {
  /** When it began, by the wall clock. */
  readonly beganAtMs: number
  /** All of the content store, those of other pulls among them. */
  readonly ingests: readonly Ingest[]
  /** Those of the image's repository. */
  readonly blobs: readonly Blob[]
  /** Those of the image's repository. */
  readonly manifests: readonly Manifest[]
}

export interface PullState {
  /** `resolving`: the manifest isn't known yet. `unpacking`: nothing is being downloaded. */
  readonly phase: 'resolving' | 'fetching' | 'unpacking'
  readonly doneBytes: number
  readonly totalBytes: number | undefined
  /** What will still be written for certain, before anything is unpacked. */
  readonly missingBytes: number
  /** Differs from that of another look at the same pull where the pull has progressed between them. */
  readonly marker: string
}

/**
 * How far a pull is. The content store doesn't say which image a blob belongs to: it is told by the manifests of the
 * image's repository that are new, or of which something is being written. Two tags of one repository that are pulled at
 * the same time are seen as one.
 */
export function derivePullState({ beganAtMs, ingests, blobs, manifests }: PullFacts): PullState {
  const offsets = new Map(ingests.map(({ digest, offsetBytes }) => [digest, offsetBytes]))
  const stored = new Set(blobs.map(({ digest }) => digest))
  const isOpen = (digest: string): boolean => offsets.has(digest) && !stored.has(digest)
  const own = manifests.filter(
    (manifest) => manifest.createdAtMs >= beganAtMs || manifest.blobs.some(({ digest }) => isOpen(digest)),
  )
  const parts = new Map(
    own.flatMap((manifest) => manifest.blobs.map((blob) => [blob.digest, blob.sizeBytes])),
  )
  if (own.length === 0) {
    // Whatever moves may be of this pull: better to wait for too long than to give up one that goes on.
    const all = ingests.map(({ digest, offsetBytes }) => `${digest}=${offsetBytes}`)
    const marker = [...all, ...stored].toSorted().join(' ')
    return { phase: 'resolving', doneBytes: 0, totalBytes: undefined, missingBytes: 0, marker }
  }
  let doneBytes = 0
  let totalBytes = 0
  let missingBytes = 0
  const marks: string[] = []
  for (const [digest, sizeBytes] of parts) {
    const offset = stored.has(digest) ? sizeBytes : Math.min(offsets.get(digest) ?? 0, sizeBytes)
    totalBytes += sizeBytes
    doneBytes += offset
    if (isOpen(digest)) missingBytes += sizeBytes - offset
    marks.push(`${digest}=${offset}`)
  }
  const phase =
    missingBytes > 0 || [...parts.keys()].some((digest) => isOpen(digest)) ? 'fetching' : 'unpacking'
  return { phase, doneBytes, totalBytes, missingBytes, marker: marks.toSorted().join(' ') }
}
