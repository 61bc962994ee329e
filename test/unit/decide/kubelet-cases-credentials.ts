import { all, at, none } from './kubelet-ledger.ts'
import type { LedgerSection } from './kubelet-ledger.ts'

const noAccounts = none('podd has no service accounts: tokenAttributes is refused')
const providers = 'component/images/credential-providers.test.ts'
const pulled = 'component/control/pulled-images.test.ts'

/** Credentials for registries, and who may use what was pulled with them. */
export const credentialCases: readonly LedgerSection[] = [
  {
    test: 'pkg/credentialprovider/keyring_test.go',
    file: 'unit/decide/images/keyring.test.ts',
    cases: {
      TestURLsMatch: 'matches-registries',
      TestDockerKeyringForGlob: 'keyring-globs',
      ...all('keyring-misses', 'TestKeyringMiss', 'TestKeyringMissWithDockerHubCredentials'),
      ...all(
        'keyring-docker-hub',
        'TestKeyringHitWithUnqualifiedDockerHub',
        'TestKeyringHitWithUnqualifiedLibraryDockerHub',
        'TestKeyringHitWithQualifiedDockerHub',
      ),
      TestIsDefaultRegistryMatch: 'default-registry',
      TestDockerKeyringLookup: 'keyring-order',
      TestIssue3797: 'keyring-api-version',
    },
  },
  {
    test: 'pkg/credentialprovider/config_test.go',
    file: 'unit/decide/images/keyring.test.ts',
    cases: { 'entries of a docker config': 'docker-config-entries' },
  },
  {
    test: 'pkg/credentialprovider/secrets/secrets_test.go',
    file: 'component/control/pod-credentials.test.ts',
    cases: { 'keyrings of Secrets of both types, before the others': 'keyring-of-secrets' },
  },
  {
    test: 'pkg/credentialprovider/plugin/config_test.go',
    file: 'unit/decide/images/credential-providers.test.ts',
    cases: {
      'configs with one and several plugins': 'provider-config',
      'configs that are refused': 'provider-config-refused',
      'directories of configs': 'provider-config-files',
      'v1alpha1 and v1beta1': none('podd takes v1 alone, and says so'),
      'token attributes': noAccounts,
    },
  },
  {
    test: 'pkg/credentialprovider/plugin/plugin_test.go',
    file: 'unit/decide/images/credential-providers.test.ts',
    cases: {
      'encoding requests': 'provider-request',
      'decoding responses': 'provider-response',
      'cache keys and durations': at(providers, 'provider-cache'),
      'images that match': at(providers, 'provider-match'),
      'one run for requests of an image at the same time': at(providers, 'provider-single-flight'),
      'service account mode': noAccounts,
    },
  },
  {
    test: 'pkg/kubelet/images/pullmanager/image_pull_manager_test.go',
    file: 'unit/decide/images/image-access.test.ts',
    cases: {
      ...all('pulled-record-merge', 'records that change', 'node-accessible overrides all secrets'),
      'records that stay': 'pulled-record-kept',
      MustAttemptImagePull: 'verifies-access',
      'credentials that are remembered': 'remembers-credentials',
      'intents that an earlier kubelet left': at(pulled, 'settles-intents'),
      'intents are counted': at(pulled, 'counts-intents'),
      PruneUnknownRecords: at(pulled, 'prunes-records'),
      'service accounts': noAccounts,
    },
  },
  {
    test: 'pkg/kubelet/images/pullmanager/image_pull_policies_test.go',
    file: 'unit/decide/images/image-access.test.ts',
    cases: {
      'the four policies': 'verification-policies',
      TestNewNeverVerifyAllowListedPullPolicy: 'image-allowlist',
      TestTrimImageTagDigest: 'trims-tags',
    },
  },
  {
    test: 'test/e2e_node/image_credential_pulls.go',
    file: 'e2e/image-credentials.test.ts',
    cases: {
      'pod without PullSecret accessing previously pulled private image': 'pulled-without-secret',
      'pod with invalid PullSecret accessing previously pulled private image': 'pulled-invalid-secret',
      'pod with the same PullSecret accessing previously pulled image': 'pulled-same-secret',
      'pod with the same credentials in a different secret accessing previously pulled image':
        'pulled-copied-secret',
      'the same under the other policies': at(
        'unit/decide/images/image-access.test.ts',
        'verification-policies',
      ),
    },
  },
]
