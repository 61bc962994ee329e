import type { Problem } from '../../pod/objects/document.ts'

/** What `podd doctor` found on the host; gathered by host/facts/gather-host-facts.ts and cli/local/doctor.ts. */
export interface HostFacts {
  readonly isRoot: boolean
  readonly hasSystemd: boolean
  readonly kernelRelease: string
  readonly kernel: readonly KernelFeature[]
  readonly programs: HostPrograms
  readonly firewall: FirewallFacts
  /** Undefined: no cgroups are mounted. */
  readonly cgroups: CgroupFacts | undefined
  readonly disks: readonly DiskFacts[]
  readonly clock: ClockFacts
  /** CAP_SYS_RESOURCE: oom_score_adj may be lowered, limits raised. */
  readonly canLowerOomScore: boolean
  readonly swapBytes: number
  /** Whether what is mounted below `/` reaches other mount namespaces; undefined where nothing tells. */
  readonly sharesRoot: boolean | undefined
  readonly name: HostNameFacts
  /** The resolver that pods get; undefined where the config gives them none. */
  readonly resolver:
    | { readonly path: string; readonly servers: readonly string[]; readonly isUnreachable: boolean }
    | undefined
  readonly runtime: RuntimeFacts
  /** The newest report that a crash of podd left, and how many there are; undefined for none. */
  readonly crash: { readonly atMs: number; readonly path: string; readonly count: number } | undefined
  /** The sources that are held, and since when. */
  readonly holds: readonly { readonly source: string; readonly sinceMs: number }[]
  /** The configured ones, or those of the podd that was named. */
  readonly ports: readonly PortFacts[]
  /** Undefined where no directory is configured. */
  readonly manifests:
    | {
        readonly path: string
        readonly exists: boolean
        /** Why files in it are not read, by their names. */
        readonly problems?: readonly Pick<Problem, 'place' | 'message' | 'hint'>[]
      }
    | undefined
}

interface HostNameFacts {
  readonly host: string
  /** As the node is called. */
  readonly node: string
  /** By `hostnameOverride`. */
  readonly isConfigured: boolean
}

/** A port at which podd is to listen. */
export interface PortFacts {
  readonly option: 'api.listen' | 'readOnlyPort'
  /** `127.0.0.1:6443`, `[::1]:6443` */
  readonly address: string
  readonly state:
    | { readonly kind: 'open' }
    /** podd doesn't run, and could listen there. */
    | { readonly kind: 'free' }
    | { readonly kind: 'fails'; readonly message: string }
    /** podd was started with another address for this option, or with none. */
    | { readonly kind: 'changed'; readonly served: string | undefined }
    | { readonly kind: 'unknown'; readonly reason: string }
}

/** A capability of the kernel; undefined where nothing on the host tells. */
export interface KernelFeature {
  readonly name: string
  /** What it is for. */
  readonly purpose: string
  /** The kernel's option for it (`CONFIG_…`). */
  readonly option: string
  readonly present: boolean | undefined
}

export interface InstalledProgram {
  readonly path: string
  /** As it prints it; empty where it prints none. */
  readonly version: string
}

export interface HostPrograms {
  readonly containerd: InstalledProgram | undefined
  readonly ctr: InstalledProgram | undefined
  /** Those of the config, by name or path. */
  readonly ociRuntimes: readonly { readonly name: string; readonly program: InstalledProgram | undefined }[]
}

export type FirewallFacts =
  | { readonly kind: 'works'; readonly version: string; readonly forwardPolicy: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'broken'; readonly message: string }
  /** Only root may look. */
  | { readonly kind: 'unknown' }

export interface CgroupFacts {
  readonly version: 1 | 2
  /** Across all hierarchies. */
  readonly controllers: readonly string[]
  /** The controllers of version 2 in the hybrid layout, where it is mounted beside version 1. */
  readonly hybridControllers: readonly string[]
  readonly driver: 'cgroupfs' | 'systemd'
}

export interface DiskFacts {
  /** What is kept there. */
  readonly purpose: string
  readonly path: string
  readonly totalBytes: number
  /** The space available to unprivileged processes. */
  readonly freeBytes: number
  /** 0 on filesystems that count none. */
  readonly totalInodes: number
  readonly freeInodes: number
  readonly readOnly: boolean
}

export interface ClockFacts {
  readonly wallMs: number
  /** Undefined where nothing on the host tells. */
  readonly synchronized: boolean | undefined
}

export interface CniDirectoryFacts {
  readonly path: string
  /** Of the needed plugins. */
  readonly missing: readonly string[]
  /** At least one of them is there. */
  readonly hasAny: boolean
}

/** The settings of registries for the embedded containerd. */
export interface RegistryHostsFacts {
  readonly directory: string
  readonly registries: number
  /** Problems, each with its file. */
  readonly problems: readonly string[]
}

export interface EmbeddedRuntimeFacts {
  readonly kind: 'embedded'
  readonly registryHosts: RegistryHostsFacts
  /** The containerd of podd's own that runs. */
  readonly pid: number | undefined
  /** Undefined: only root may ask it, or podd where it doesn't run. */
  readonly answers: boolean | undefined
  /** Why it doesn't run although podd does, as podd reports it; undefined where it runs, or podd doesn't. */
  readonly failure:
    | { readonly message: string; readonly logPath: string; readonly dataPath: string }
    | undefined
  /** The containerd under which pods run, where the installed one is older. */
  readonly newerVersion: string | undefined
  /** What is wrong with the network of the pods that run; empty for nothing. */
  readonly networkFaults: string
  /** The directories that CNI plugins are looked for in. */
  readonly cniDirectories: readonly CniDirectoryFacts[]
  /** The static program that the sandbox image is made of. */
  readonly pauseProgram: string | undefined
  /** The pods' subnet, recorded or free; undefined where the host's routes leave none. */
  readonly subnet: string | undefined
}

export interface ExternalRuntimeFacts {
  readonly kind: 'external'
  readonly endpoint: string
  /** Why it doesn't answer, or can't be used. */
  readonly failure: { readonly message: string; readonly hint: string | undefined } | undefined
  readonly name: string
  readonly version: string
  readonly conditions: readonly {
    readonly type: string
    readonly status: boolean
    readonly message: string
  }[]
  readonly cniConfDir: string | undefined
  readonly cniPluginDirs: readonly string[]
  readonly cgroupDriver: 'cgroupfs' | 'systemd' | undefined
  /** Undefined where the runtime doesn't tell. */
  readonly sandboxImage: { readonly name: string; readonly present: boolean } | undefined
}

export type RuntimeFacts = EmbeddedRuntimeFacts | ExternalRuntimeFacts
