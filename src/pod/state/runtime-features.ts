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

/** Where a runtime looks for the pods' network, as far as it tells. */
export interface CniPlaces {
  readonly cniConfDir: string | undefined
  readonly cniPluginDirs: readonly string[]
}

/** How to give pods a network. */
export function cniHint({ cniConfDir, cniPluginDirs }: CniPlaces): string {
  return `Put a CNI network config into ${cniConfDir ?? '/etc/cni/net.d'}, and its plugins into ${cniPluginDirs[0] ?? '/opt/cni/bin'}; or let podd do it: --container-runtime-endpoint embedded.`
}
