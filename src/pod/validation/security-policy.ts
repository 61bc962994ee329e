export type SecurityLevel = 'privileged' | 'baseline' | 'restricted'

/** What the pods of one source may do. */
export interface SecurityPolicy {
  /** One of the Pod Security Standards. */
  readonly level: SecurityLevel
  /** Directories of the host that pods may mount all the same, with all that is in them. */
  readonly allowedHostPaths: readonly string[]
  /** Capabilities that containers may add all the same; `*` for any. */
  readonly allowedCapabilities: readonly string[]
  /** Ports of the host that pods may open all the same: `8080`, `8000-8099`, `*`. */
  readonly allowedHostPorts: readonly string[]
  /** Where images may come from, at any level: `registry.example/team`. None listed: from anywhere. */
  readonly allowedRegistries: readonly string[]
}
