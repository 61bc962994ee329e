import { readDockerConfig, lookUpCredentials, withoutRepeats } from '../../decide/images/keyring.ts'
import type {
  DockerConfig,
  DockerConfigReading,
  KeyringPart,
  PullCredential,
} from '../../decide/images/keyring.ts'
import { accessName } from '../../decide/images/pulled-record.ts'
import { objectKey, objectData } from '../../pod/objects/local-object.ts'
import type { PullSecrets } from '../../pod/objects/local-object.ts'
import type { Secret } from '../../pod/objects/object-kinds.ts'
import type { ObjectViews } from '../objects/object-store.ts'

/** Something that a pod's events tell; pulls go on without it. */
export interface CredentialWarning {
  readonly reason: 'FailedToRetrieveImagePullSecret' | 'FailedCredentialProvider'
  readonly message: string
}

export interface FoundCredentials {
  readonly credentials: readonly PullCredential[]
  readonly warnings: readonly CredentialWarning[]
}

export interface PodCredentialsOptions {
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
  readonly #options: PodCredentialsOptions

  constructor(options: PodCredentialsOptions) {
    this.#options = options
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
      this.#options.node.read(),
      this.#options.providers?.provide(name),
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
    const seen = this.#options.objects.seenBy(secrets.source)
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
