/** What one runtime handler (`runc`, `kata`, …) can do. */
export interface HandlerFeatures {
  readonly userNamespaces: boolean
  readonly recursiveReadOnlyMounts: boolean
}

/** The features that the container runtime reports; see translate/read-runtime-features.ts. */
export interface RuntimeFeatures {
  /** `containerd 1.6.20`, for messages about missing features. */
  readonly runtime: string
  /** By name; the empty name is the handler of pods without one. Undefined where the runtime doesn't report them. */
  readonly handlers: ReadonlyMap<string, HandlerFeatures> | undefined
  readonly supplementalGroupsPolicy: boolean
  readonly imageVolumes: boolean
  /** It supports sub-paths of image volumes. */
  readonly imageSubPaths: boolean
  /** It supports stop signals of containers. */
  readonly stopSignals: boolean
}
