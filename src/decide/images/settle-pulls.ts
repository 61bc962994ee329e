import { normalizeImageName } from '../../pod/values/image-name.ts'

export interface UnknownPull {
  readonly image: string
  /** The id of the image that had this name when the pull began. */
  readonly presentRef?: string
}

export interface SettledPull {
  readonly image: string
  /** The id of the image that has this name; undefined where the pull has left none. */
  readonly imageRef: string | undefined
  /** The pull brought that image: it was not present before. */
  readonly isBrought: boolean
}

/** The results of pulls with unknown outcome, from the images that the runtime lists. */
export function settlePulls(
  pulls: readonly UnknownPull[],
  images: readonly {
    readonly id: string
    readonly repoTags: readonly string[]
    readonly repoDigests: readonly string[]
  }[],
): readonly SettledPull[] {
  if (pulls.length === 0) return []
  const ids = new Map(
    images.flatMap(({ id, repoTags, repoDigests }) =>
      [id, ...repoTags, ...repoDigests].map((name) => [normalizeImageName(name), id] as const),
    ),
  )
  return pulls.map(({ image, presentRef }) => {
    const imageRef = ids.get(normalizeImageName(image))
    return { image, imageRef, isBrought: imageRef !== undefined && imageRef !== presentRef }
  })
}
