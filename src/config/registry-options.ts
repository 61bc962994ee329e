import { imagePatternProblem } from '../pod/values/image-allowlist.ts'
import { textList } from './list-types.ts'
import { optionalPath, path, word } from './option-type.ts'
import { option } from './option.ts'

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
