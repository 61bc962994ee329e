import { imagePatternProblem } from '../pod/values/image-name.ts'
import { textList } from './list-types.ts'
import {
  duration,
  flag,
  integer,
  optional,
  optionalPath,
  path,
  word,
  kubeletOption,
  poddOption,
  problemsWhere,
} from './option-type.ts'
import type { OptionProblems } from './option-type.ts'

/** When unused images are removed; a part of the table in options.ts. */
export const imageOptions = {
  imageGcHighThresholdPercent: kubeletOption('imageGCHighThresholdPercent', 85, integer(0, 100), {
    flag: 'image-gc-high-threshold',
    doc: 'The usage, in percent, of the disk that holds the images above which unused images are removed, the least recently used first; 100 for never.',
  }),
  imageGcLowThresholdPercent: kubeletOption('imageGCLowThresholdPercent', 80, integer(0, 100), {
    flag: 'image-gc-low-threshold',
    doc: 'The usage, in percent, at which the removal of images stops; less than the high threshold.',
  }),
  imageMinimumGcAgeMs: kubeletOption('imageMinimumGCAge', 120_000, duration(0), {
    flag: 'minimum-image-ttl-duration',
    zeroIsDefault: true,
    doc: 'How long an image is kept after podd has first seen it.',
  }),
  imageMaximumGcAgeMs: kubeletOption('imageMaximumGCAge', 0, duration(0), {
    doc: 'How long an image may be unused, while podd runs, before it is removed whatever the disk usage; 0 for no limit. Longer than the minimum age.',
  }),
} as const

/** What is wrong with these settings together, each with its field (`pkg/kubelet/apis/config/validation/validation.go`, 1.36). */
export function imageOptionProblems(config: {
  readonly imageGcHighThresholdPercent: number
  readonly imageGcLowThresholdPercent: number
  readonly imageMinimumGcAgeMs: number
  readonly imageMaximumGcAgeMs: number
}): OptionProblems {
  const { imageGcHighThresholdPercent: high, imageGcLowThresholdPercent: low } = config
  const { imageMinimumGcAgeMs: youngestMs, imageMaximumGcAgeMs: oldestMs } = config
  return problemsWhere(
    [
      low >= high,
      'imageGCLowThresholdPercent',
      `must be less than imageGCHighThresholdPercent, and ${low} is not less than ${high}`,
    ],
    [oldestMs !== 0 && oldestMs <= youngestMs, 'imageMaximumGCAge', 'must be longer than imageMinimumGCAge'],
  )
}

/** How images are pulled; a part of the table in options.ts. */
export const pullOptions = {
  serializeImagePulls: kubeletOption('serializeImagePulls', undefined, optional(flag), {
    flag: 'serialize-image-pulls',
    defaultText: '`true`; `false` where `maxParallelImagePulls` is more than 1',
    secret: false,
    doc: 'Pull one image at a time, in the order in which pods need them.',
  }),
  maxParallelImagePulls: kubeletOption('maxParallelImagePulls', undefined, optional(integer(1, 10_000)), {
    defaultText: 'no limit',
    secret: false,
    doc: 'How many images may be pulled at a time where `serializeImagePulls` is `false`; it may be more than 1 only then.',
  }),
  registryPullQps: kubeletOption('registryPullQPS', 5, integer(0, 10_000), {
    flag: 'registry-qps',
    doc: 'How many image pulls may start per second; 0 for no limit.',
  }),
  registryBurst: kubeletOption('registryBurst', 10, integer(0, 10_000), {
    flag: 'registry-burst',
    zeroIsDefault: true,
    doc: 'How many image pulls may start at once before `registryPullQPS` limits them.',
  }),
  imagePullProgressTimeoutMs: poddOption('imagePullProgressTimeout', 600_000, duration(0), {
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
}: PullSettings): OptionProblems {
  const message = 'cannot be more than 1 unless serializeImagePulls is false'
  return problemsWhere([
    serializeImagePulls === true && maxParallelImagePulls !== 1,
    'maxParallelImagePulls',
    message,
  ])
}

/** How registries are reached, and with which credentials; a part of the table in options.ts. */
export const registryOptions = {
  registryConfigDir: poddOption('registryConfigDir', '/etc/podd/certs.d', path, {
    flag: 'registry-config-dir',
    secret: false,
    doc: 'The directory of `HOST/hosts.toml` files with mirrors and certificates of registries, for the embedded containerd. Changes take effect at the next pull.',
  }),
  imageCredentialProviderConfig: poddOption('imageCredentialProviderConfig', undefined, optionalPath, {
    flag: 'image-credential-provider-config',
    secret: false,
    doc: 'A CredentialProviderConfig file (`kubelet.config.k8s.io/v1`), or a directory of them: the plugins that give credentials for registries. Changes take effect at the next pull.',
  }),
  imageCredentialProviderBinDir: poddOption('imageCredentialProviderBinDir', undefined, optionalPath, {
    flag: 'image-credential-provider-bin-dir',
    secret: false,
    doc: 'The directory of the programs of credential provider plugins.',
  }),
  imageVerifiers: poddOption('imageVerifiers', undefined, optionalPath, {
    secret: false,
    doc: 'A directory of programs that the embedded containerd, 2.1 or later, asks before it pulls an image: its plugin `io.containerd.image-verifier.v1.bindir`. Each runs as root with `-name NAME -digest DIGEST`, for a minute at most; the image is pulled only if all exit with 0. Images that are imported are not asked about. Pulled layers are kept packed too then, which takes more of the disk. Changes of the programs take effect at the next pull.',
  }),
  imagePullCredentialsVerificationPolicy: kubeletOption(
    'imagePullCredentialsVerificationPolicy',
    'NeverVerifyPreloadedImages',
    word('NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'),
    {
      zeroIsDefault: true,
      doc: "For which images that are on the machine a pod's own credentials are verified before it may use them. Preloaded images are those that podd has not pulled for a pod.",
    },
  ),
  preloadedImagesVerificationAllowlist: kubeletOption(
    'preloadedImagesVerificationAllowlist',
    [],
    textList('IMAGE', imagePatternProblem),
    {
      secret: false,
      doc: 'The images that every pod may use where the policy is `NeverVerifyAllowlistedImages`: names without tag and digest; `/*` at the end stands for all below.',
    },
  ),
} as const

/** What is wrong with these settings together, each with its field (`pkg/kubelet/apis/config/validation/validation.go`, 1.36). */
export function registryOptionProblems(config: {
  readonly containerRuntimeEndpoint: string
  readonly imageVerifiers: string | undefined
  readonly imageCredentialProviderConfig: string | undefined
  readonly imageCredentialProviderBinDir: string | undefined
  readonly imagePullCredentialsVerificationPolicy: string
  readonly preloadedImagesVerificationAllowlist: readonly string[]
}): OptionProblems {
  const { imageCredentialProviderConfig: file, imageCredentialProviderBinDir: directory } = config
  const { imagePullCredentialsVerificationPolicy: policy, preloadedImagesVerificationAllowlist: list } =
    config
  const isUnused = list.length > 0 && policy !== 'NeverVerifyAllowlistedImages'
  return problemsWhere(
    [
      config.imageVerifiers !== undefined && config.containerRuntimeEndpoint !== 'embedded',
      'imageVerifiers',
      `is for the embedded containerd only, and containerRuntimeEndpoint is ${config.containerRuntimeEndpoint}: name the directory in the config of that one`,
    ],
    [
      file !== undefined && directory === undefined,
      'imageCredentialProviderBinDir',
      'is needed beside imageCredentialProviderConfig',
    ],
    [
      directory !== undefined && file === undefined,
      'imageCredentialProviderConfig',
      'is needed beside imageCredentialProviderBinDir',
    ],
    [
      isUnused,
      'preloadedImagesVerificationAllowlist',
      'can be set only where imagePullCredentialsVerificationPolicy is NeverVerifyAllowlistedImages',
    ],
  )
}
