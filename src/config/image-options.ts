import { duration, integer } from './option-type.ts'
import { option } from './option.ts'

/** When images that nobody needs are removed; a part of the table in options.ts. */
export const imageOptions = {
  imageGcHighThresholdPercent: option({
    field: 'imageGCHighThresholdPercent',
    flag: 'image-gc-high-threshold',
    type: integer(0, 100),
    default: 85,
    owner: 'kubelet',
    doc: 'How full, in percent, the disk that holds the images has to be for unused images to be removed, least recently used first; 100 for never.',
  }),
  imageGcLowThresholdPercent: option({
    field: 'imageGCLowThresholdPercent',
    flag: 'image-gc-low-threshold',
    type: integer(0, 100),
    default: 80,
    owner: 'kubelet',
    doc: 'Down to how full they are removed; less than the high threshold.',
  }),
  imageMinimumGcAgeMs: option({
    field: 'imageMinimumGCAge',
    flag: 'minimum-image-ttl-duration',
    type: duration(0),
    default: 120_000,
    owner: 'kubelet',
    zeroIsDefault: true,
    doc: 'How long after podd has first seen an image it is not removed.',
  }),
  imageMaximumGcAgeMs: option({
    field: 'imageMaximumGCAge',
    type: duration(0),
    default: 0,
    owner: 'kubelet',
    doc: 'For how long an image may be unused, while podd runs, before it is removed however much room there is; 0 for any time. Longer than the minimum age.',
  }),
} as const

/** What is wrong with these settings together, each with its field (`pkg/kubelet/apis/config/validation/validation.go`, 1.36). */
export function imageOptionProblems(config: {
  readonly imageGcHighThresholdPercent: number
  readonly imageGcLowThresholdPercent: number
  readonly imageMinimumGcAgeMs: number
  readonly imageMaximumGcAgeMs: number
}): readonly { readonly field: string; readonly message: string }[] {
  const { imageGcHighThresholdPercent: high, imageGcLowThresholdPercent: low } = config
  const { imageMinimumGcAgeMs: youngestMs, imageMaximumGcAgeMs: oldestMs } = config
  return [
    ...(low < high
      ? []
      : [
          {
            field: 'imageGCLowThresholdPercent',
            message: `must be less than imageGCHighThresholdPercent, and ${low} is not less than ${high}`,
          },
        ]),
    ...(oldestMs === 0 || oldestMs > youngestMs
      ? []
      : [{ field: 'imageMaximumGCAge', message: 'must be longer than imageMinimumGCAge' }]),
  ]
}
