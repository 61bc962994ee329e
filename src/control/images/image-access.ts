import { homedir } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { PoddConfig } from '../../config/options.ts'
import { lookUpCredentials, readDockerConfig, withoutRepeats } from '../../decide/images/keyring.ts'
import type {
  DockerConfig,
  DockerConfigReading,
  KeyringPart,
  PullCredential,
} from '../../decide/images/keyring.ts'
import { accessName } from '../../decide/images/pulled-record.ts'
import { CredentialProviders } from '../../images/credential-providers.ts'
import { NodeDockerConfig } from '../../images/node-docker-config.ts'
import { objectData, objectKey } from '../../pod/objects/local-object.ts'
import type { PullSecrets } from '../../pod/objects/local-object.ts'
import type { Secret } from '../../pod/objects/object-kinds.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import type { ImageService } from '../../runtime/cri-runtime.ts'
import { PullRecordStore } from '../../store/pull-records.ts'
import type { StateReport } from '../../store/state-report.ts'
import type { ObjectViews } from '../serving/object-store.ts'
import type { ImageRequest, PresentImage, PullRequest } from './image-request.ts'
import { PulledImages } from './pulled-images.ts'
import type { PullOutcome } from './pulled-images.ts'

/** Something that a pod's events tell; pulls go on without it. */
interface CredentialWarning {
  readonly reason: 'FailedToRetrieveImagePullSecret' | 'FailedCredentialProvider'
  readonly message: string
}

interface FoundCredentials {
  readonly credentials: readonly PullCredential[]
  readonly warnings: readonly CredentialWarning[]
}

interface CredentialPlaces {
  readonly objects: ObjectViews
  /** The node's own, as they are now. */
  readonly node: { read(): Promise<DockerConfig> }
  /** The node's plugins; undefined where there are none. */
  readonly providers:
    | {
        provide(image: string): Promise<{
          readonly configs: readonly DockerConfig[]
          readonly failures: readonly string[]
        }>
      }
    | undefined
}

/** Finds the credentials for a pod's images: those of its Secrets, then the node's, then those of plugins. */
export class PodCredentials {
  readonly #places: CredentialPlaces

  constructor(places: CredentialPlaces) {
    this.#places = places
  }

  /**
   * All that fit, in the order in which they are tried (`pkg/kubelet/images/image_manager.go`,
   * makeLookupPullCredentialsFunc, 1.36).
   */
  async find(image: string, secrets: PullSecrets | undefined): Promise<FoundCredentials> {
    const name = accessName(image)
    if (name === undefined) return { credentials: [], warnings: [] }
    const own = this.#findOwn(name, secrets)
    const [node, provided] = await Promise.all([
      this.#places.node.read(),
      this.#places.providers?.provide(name),
    ])
    const ofPlugins = (provided?.configs ?? []).map((config) => ({ config }))
    const failures = (provided?.failures ?? []).map((message) => {
      return { reason: 'FailedCredentialProvider', message } as const
    })
    return {
      credentials: withoutRepeats([
        ...own.credentials,
        ...lookUpCredentials([{ config: node }], name),
        ...lookUpCredentials(ofPlugins, name),
      ]),
      warnings: [...own.warnings, ...failures],
    }
  }

  /** Those of the pod's own Secrets. */
  findOwn(image: string, secrets: PullSecrets | undefined): readonly PullCredential[] {
    const name = accessName(image)
    return name === undefined ? [] : this.#findOwn(name, secrets).credentials
  }

  #findOwn(name: string, secrets: PullSecrets | undefined): FoundCredentials {
    if (secrets === undefined) return { credentials: [], warnings: [] }
    const parts: KeyringPart[] = []
    const missing: string[] = []
    const unusable: string[] = []
    const seen = this.#places.objects.seenBy(secrets.source)
    for (const secretName of secrets.names.filter((each) => each !== '')) {
      const key = objectKey('Secret', secrets.namespace, secretName)
      const found = seen.get('Secret', secrets.namespace, secretName)
      if (found === undefined) {
        const why = seen.explainMissing(key)
        missing.push(why === undefined ? secretName : `${secretName}: ${why}`)
        continue
      }
      const { config, problems } = readSecret(found)
      for (const problem of problems) unusable.push(`${secretName}: ${problem}`)
      const source = seen.sourceOf(key) ?? secrets.source
      parts.push({ config, secret: { source, namespace: secrets.namespace, name: secretName } })
    }
    return { credentials: lookUpCredentials(parts, name), warnings: warningsOf(missing, unusable) }
  }
}

/** The kubelet's words for what is missing (`pkg/kubelet/kubelet_pods.go`, getPullSecretsForPod, 1.36). */
function warningsOf(missing: readonly string[], unusable: readonly string[]): readonly CredentialWarning[] {
  const texts = [
    ['retrieve', missing],
    ['use', unusable],
  ] as const
  return texts.flatMap(([verb, names]) =>
    names.length === 0
      ? []
      : [
          {
            reason: 'FailedToRetrieveImagePullSecret',
            message: `Unable to ${verb} some image pull secrets (${names.join(', ')}); attempting to pull the image may not succeed.`,
          } as const,
        ],
  )
}

/** `pkg/credentialprovider/secrets/secrets.go`, 1.36. */
function readSecret(secret: Secret): DockerConfigReading {
  const data = objectData(secret)
  const text = (key: string): string => data.get(key)?.toString('utf8') ?? ''
  switch (secret.type) {
    case 'kubernetes.io/dockerconfigjson':
      return readDockerConfig(text('.dockerconfigjson'), 'config.json')
    case 'kubernetes.io/dockercfg':
      return readDockerConfig(text('.dockercfg'), 'dockercfg')
    default:
      return {
        config: new Map(),
        problems: [
          `its type is ${secret.type}, and must be kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg`,
        ],
      }
  }
}

/** What pulls present to registries, and which pods may use what was pulled; with the events about both. */
export type ImageCredentials = ReturnType<typeof createImageAccess>['access']

export function createImageAccess(
  config: PoddConfig,
  objects: ObjectViews,
  calls: ImageService,
  around: {
    readonly events: EventRecorder
    readonly report: StateReport
    readonly clock: Clock
    readonly logger: Logger
  },
) {
  const { rootDir, imageCredentialProviderConfig: configPath, imageCredentialProviderBinDir: binDir } = config
  const { events, report, clock, logger } = around
  const providers =
    configPath === undefined || binDir === undefined
      ? undefined
      : new CredentialProviders({ configPath, binDir, env: process.env, clock, logger })
  // What is wrong with it is told at the start, and not at the first pull.
  void providers?.refresh()
  const pulled = new PulledImages({
    store: new PullRecordStore(rootDir, report),
    calls,
    rules: {
      policy: config.imagePullCredentialsVerificationPolicy,
      allowlist: config.preloadedImagesVerificationAllowlist,
    },
    clock,
    logger,
  })
  const node = new NodeDockerConfig({ rootDir, homeDir: homedir(), clock, logger })
  const credentials = new PodCredentials({ objects, node, providers })
  const access = {
    /**
     * The credentials that fit the image of a request, best match first. They are tried in this order until a pull
     * succeeds, and the errors of all are gathered (`pkg/kubelet/kuberuntime/kuberuntime_image.go`, PullImage, 1.36).
     * With none, the image is pulled without credentials. Rejects where they cannot be read: the pull fails with that
     * error.
     */
    async candidates({ pod, image, secrets }: PullRequest): Promise<readonly PullCredential[]> {
      const found = await credentials.find(image, secrets)
      if (pod !== undefined)
        for (const warning of found.warnings) events.record({ pod, type: 'Warning', ...warning })
      return found.credentials
    },
    /** Whether the pod may use an image that is on the machine without a pull. */
    mayUse({ container: { image }, secrets }: ImageRequest, { ref }: PresentImage): Promise<boolean> {
      return pulled.mayUse(image, ref, credentials.findOwn(image, secrets))
    },
    /** Records that a pull is about to begin. Throws PoddError where that fails: then it must not begin. */
    begin: (image: string): Promise<void> => pulled.begin(image),
    /** Records its outcome. Never rejects. */
    end: (image: string, outcome: PullOutcome): Promise<void> => pulled.end(image, outcome),
  }
  return { access, pulled }
}
