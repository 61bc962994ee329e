import { imagePatternProblem } from '../pod/values/image-name.ts'
import { textList } from './list-types.ts'
import { duration, flag, integer, option, optional, optionalPath, path, word } from './option-type.ts'

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

/** How images are pulled; a part of the table in options.ts. */
export const pullOptions = {
  serializeImagePulls: option({
    field: 'serializeImagePulls',
    flag: 'serialize-image-pulls',
    type: optional(flag),
    default: undefined,
    defaultText: '`true`; `false` where `maxParallelImagePulls` is more than 1',
    owner: 'kubelet',
    secret: false,
    doc: 'Pull one image at a time, in the order in which pods need them.',
  }),
  maxParallelImagePulls: option({
    field: 'maxParallelImagePulls',
    type: optional(integer(1, 10_000)),
    default: undefined,
    defaultText: 'no limit',
    owner: 'kubelet',
    secret: false,
    doc: 'How many images may be pulled at a time where `serializeImagePulls` is `false`; it may be more than 1 only then.',
  }),
  registryPullQps: option({
    field: 'registryPullQPS',
    flag: 'registry-qps',
    type: integer(0, 10_000),
    default: 5,
    owner: 'kubelet',
    secret: false,
    doc: 'How many image pulls may start per second; 0 for no limit.',
  }),
  registryBurst: option({
    field: 'registryBurst',
    flag: 'registry-burst',
    type: integer(0, 10_000),
    default: 10,
    owner: 'kubelet',
    secret: false,
    zeroIsDefault: true,
    doc: 'How many image pulls may start at once before `registryPullQPS` limits them.',
  }),
  imagePullProgressTimeoutMs: option({
    field: 'imagePullProgressTimeout',
    type: duration(0),
    default: 600_000,
    owner: 'podd',
    secret: false,
    doc: 'How long a pull by the embedded containerd may go without progress before it is given up and tried again later; 0 for no limit. containerd shows progress in steps of 1 MiB for each of the up to three layers that it downloads at a time: on a link that takes longer than this for 3 MiB, set it higher. Another runtime has a limit of its own.',
  }),
} as const

interface PullSettings {
  readonly serializeImagePulls: boolean | undefined
  readonly maxParallelImagePulls: number | undefined
}

/** How many images are pulled at a time; undefined: no limit (`pkg/kubelet/apis/config/v1beta1/defaults.go`, 1.36). */
export function parallelPulls({
  serializeImagePulls,
  maxParallelImagePulls,
}: PullSettings): number | undefined {
  const serialize = serializeImagePulls ?? (maxParallelImagePulls ?? 1) < 2
  return serialize ? 1 : maxParallelImagePulls
}

/** What is wrong with these settings together, each with its field (`pkg/kubelet/apis/config/validation/validation.go`, 1.36). */
export function pullOptionProblems({
  serializeImagePulls,
  maxParallelImagePulls = 1,
}: PullSettings): readonly { readonly field: string; readonly message: string }[] {
  if (serializeImagePulls !== true || maxParallelImagePulls === 1) return []
  const message = 'cannot be more than 1 unless serializeImagePulls is false'
  return [{ field: 'maxParallelImagePulls', message }]
}

/** How registries are reached, and with which credentials; a part of the table in options.ts. */
export const registryOptions = {
  registryConfigDir: option({
    field: 'registryConfigDir',
    flag: 'registry-config-dir',
    type: path,
    default: '/etc/podd/certs.d',
    owner: 'podd',
    secret: false,
    doc: 'The directory of `HOST/hosts.toml` files with mirrors and certificates of registries, for the embedded containerd. Changes take effect at the next pull.',
  }),
  imageCredentialProviderConfig: option({
    field: 'imageCredentialProviderConfig',
    flag: 'image-credential-provider-config',
    type: optionalPath,
    default: undefined,
    owner: 'podd',
    secret: false,
    doc: 'A CredentialProviderConfig file (`kubelet.config.k8s.io/v1`), or a directory of them: the plugins that give credentials for registries. Changes take effect at the next pull.',
  }),
  imageCredentialProviderBinDir: option({
    field: 'imageCredentialProviderBinDir',
    flag: 'image-credential-provider-bin-dir',
    type: optionalPath,
    default: undefined,
    owner: 'podd',
    secret: false,
    doc: 'The directory of the programs of credential provider plugins.',
  }),
  imagePullCredentialsVerificationPolicy: option({
    field: 'imagePullCredentialsVerificationPolicy',
    type: word('NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'),
    default: 'NeverVerifyPreloadedImages',
    owner: 'kubelet',
    secret: false,
    zeroIsDefault: true,
    doc: "For which images that are on the machine a pod's own credentials are verified before it may use them. Preloaded images are those that podd has not pulled for a pod.",
  }),
  preloadedImagesVerificationAllowlist: option({
    field: 'preloadedImagesVerificationAllowlist',
    type: textList('IMAGE', imagePatternProblem),
    default: [],
    owner: 'kubelet',
    secret: false,
    doc: 'The images that every pod may use where the policy is `NeverVerifyAllowlistedImages`: names without tag and digest; `/*` at the end stands for all below.',
  }),
} as const

/** What is wrong with these settings together, each with its field (`pkg/kubelet/apis/config/validation/validation.go`, 1.36). */
export function registryOptionProblems(config: {
  readonly imageCredentialProviderConfig: string | undefined
  readonly imageCredentialProviderBinDir: string | undefined
  readonly imagePullCredentialsVerificationPolicy: string
  readonly preloadedImagesVerificationAllowlist: readonly string[]
}): readonly { readonly field: string; readonly message: string }[] {
  const { imageCredentialProviderConfig: file, imageCredentialProviderBinDir: directory } = config
  const { imagePullCredentialsVerificationPolicy: policy, preloadedImagesVerificationAllowlist: list } =
    config
  return [
    ...(file !== undefined && directory === undefined
      ? [
          {
            field: 'imageCredentialProviderBinDir',
            message: 'is needed beside imageCredentialProviderConfig',
          },
        ]
      : []),
    ...(directory !== undefined && file === undefined
      ? [
          {
            field: 'imageCredentialProviderConfig',
            message: 'is needed beside imageCredentialProviderBinDir',
          },
        ]
      : []),
    ...(list.length > 0 && policy !== 'NeverVerifyAllowlistedImages'
      ? [
          {
            field: 'preloadedImagesVerificationAllowlist',
            message:
              'can be set only where imagePullCredentialsVerificationPolicy is NeverVerifyAllowlistedImages',
          },
        ]
      : []),
  ]
}
