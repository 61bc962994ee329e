export type SecurityLevel = 'privileged' | 'baseline' | 'restricted'

/** What the pods of one source may do. */
export interface SecurityPolicy {
  /** One of the Pod Security Standards. */
  readonly level: SecurityLevel
  /** Directories of the host that pods may mount nevertheless, with their content. */
  readonly allowedHostPaths: readonly string[]
  /** Capabilities that containers may add nevertheless; `*` for any. */
  readonly allowedCapabilities: readonly string[]
  /** Ports of the host that pods may open nevertheless: `8080`, `8000-8099`, `*`. */
  readonly allowedHostPorts: readonly string[]
  /** The allowed registries of images, at any level: `registry.example/team`. Empty: all. */
  readonly allowedRegistries: readonly string[]
}
