/** What one runtime handler (`runc`, `kata`, …) can do. */
export interface HandlerFeatures {
  readonly userNamespaces: boolean
  readonly recursiveReadOnlyMounts: boolean
}

/** What the container runtime can do, as it says itself; see translate/read-runtime-features.ts. */
export interface RuntimeFeatures {
  /** `containerd 1.6.20`: for the words that tell what is lacking. */
  readonly runtime: string
  /** By name; the handler of pods that name none is the empty one. Undefined where the runtime doesn't tell. */
  readonly handlers: ReadonlyMap<string, HandlerFeatures> | undefined
  readonly supplementalGroupsPolicy: boolean
  readonly imageVolumes: boolean
  /** It mounts a part of an image. */
  readonly imageSubPaths: boolean
  /** A container may say which signal ends it. */
  readonly stopSignals: boolean
}
