import { duration, integer } from './option-type.ts'
import { option } from './option.ts'

/** When unused images are removed; a part of the table in options.ts. */
export const imageOptions = {
  imageGcHighThresholdPercent: option({
    field: 'imageGCHighThresholdPercent',
    flag: 'image-gc-high-threshold',
    type: integer(0, 100),
    default: 85,
    owner: 'kubelet',
    secret: false,
    doc: 'The usage, in percent, of the disk that holds the images above which unused images are removed, the least recently used first; 100 for never.',
  }),
  imageGcLowThresholdPercent: option({
    field: 'imageGCLowThresholdPercent',
    flag: 'image-gc-low-threshold',
    type: integer(0, 100),
    default: 80,
    owner: 'kubelet',
    secret: false,
    doc: 'The usage, in percent, at which the removal of images stops; less than the high threshold.',
  }),
  imageMinimumGcAgeMs: option({
    field: 'imageMinimumGCAge',
    flag: 'minimum-image-ttl-duration',
    type: duration(0),
    default: 120_000,
    owner: 'kubelet',
    secret: false,
    zeroIsDefault: true,
    doc: 'How long an image is kept after podd has first seen it.',
  }),
  imageMaximumGcAgeMs: option({
    field: 'imageMaximumGCAge',
    type: duration(0),
    default: 0,
    owner: 'kubelet',
    secret: false,
    doc: 'How long an image may be unused, while podd runs, before it is removed whatever the disk usage; 0 for no limit. Longer than the minimum age.',
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
