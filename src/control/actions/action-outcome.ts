import type { Hold, HoldKey } from '../../decide/plan/backoff.ts'
import type { ContainerResize } from '../../decide/plan/resize.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ResourceLists } from '../../pod/schema/pod-resources.ts'

/** What an action has led to, as data. The pod's worker applies it (worker/apply-outcome.ts). */
export type ActionOutcome =
  /** It failed, and is not to be tried again before the hold ends. */
  | { readonly kind: 'held'; readonly key: HoldKey; readonly hold: Hold }
  /** No sandbox was created under this number, so that it can be given again. */
  | { readonly kind: 'attempt-unused'; readonly attempt: number }
  /** The start of this container never came to pass for what it waits for: its backoff does not count. */
  | { readonly kind: 'backoff-unused'; readonly container: string }
  /** The image of a container that keeps running is to be fetched meanwhile. */
  | { readonly kind: 'fetch-wanted'; readonly spec: ContainerSpec }
  /** All images that the next start of this container needs are present. */
  | { readonly kind: 'images-fetched'; readonly container: string; readonly images: readonly string[] }
  /** The container's start ensures its images from here on; a pull in flight goes on. */
  | { readonly kind: 'fetch-superseded'; readonly container: string }
  /** A start has used these images: the next one asks the registry again if the pull policy says so. */
  | { readonly kind: 'images-used'; readonly images: readonly string[] }
  /** These containers, and the pod itself where `podResources` is set, have their new resources. */
  | {
      readonly kind: 'resized'
      readonly resizes: readonly ContainerResize[]
      readonly podResources: ResourceLists | undefined
    }
