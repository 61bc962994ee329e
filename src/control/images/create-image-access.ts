import { homedir } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { PoddConfig } from '../../config/options.ts'
import { CredentialProviders } from '../../images/credential-providers.ts'
import { NodeDockerConfig } from '../../images/node-docker-config.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import { PullRecordStore } from '../../store/pull-records.ts'
import type { StateReport } from '../../store/state-report.ts'
import type { ObjectViews } from '../objects/object-store.ts'
import { ImageAccess } from './image-access.ts'
import { PodCredentials } from './pod-credentials.ts'
import { PulledImages } from './pulled-images.ts'
import type { PulledImageCalls } from './pulled-images.ts'

export interface ImageAccessSurroundings {
  readonly objects: ObjectViews
  readonly calls: PulledImageCalls
  readonly events: EventRecorder
  readonly report: StateReport
  readonly clock: Clock
  readonly logger: Logger
}

/** The credentials and the records of pulls, as the config wants them. */
export function createImageAccess(
  config: PoddConfig,
  { objects, calls, events, report, clock, logger }: ImageAccessSurroundings,
): { readonly access: ImageAccess; readonly pulled: PulledImages } {
  const { rootDir, imageCredentialProviderConfig, imageCredentialProviderBinDir } = config
  const providers =
    imageCredentialProviderConfig === undefined || imageCredentialProviderBinDir === undefined
      ? undefined
      : new CredentialProviders({
          configPath: imageCredentialProviderConfig,
          binDir: imageCredentialProviderBinDir,
          env: process.env,
          clock,
          logger,
        })
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
  return { access: new ImageAccess({ credentials, pulled, events }), pulled }
}
