/**
 * What client and server say to each other on the unix socket: HTTP/1.1, JSON.
 * Paths that Kubernetes has bear its names and give its objects; podd's own stand under /podd/v1.
 *
 * Of each kind in served-kinds.ts; below /apis/GROUP/VERSION instead of /api/v1 where it has a group, without a namespace where it belongs to none:
 * GET  /api/v1/{resource}                                 ResourceList (resource.ts); ?labelSelector ?fieldSelector ?limit ?continue ?resourceVersion ?resourceVersionMatch
 *                                                         ?watch=true: one WatchEvent a line; ?allowWatchBookmarks ?sendInitialEvents ?timeoutSeconds
 * GET  /api/v1/namespaces/{ns}/{resource}                 the same, of one namespace
 * GET  /api/v1/namespaces/{ns}/{resource}/{name}          one object
 * POST /api/v1/namespaces/{ns}/{resource}                 makes one of pods, configmaps, secrets, persistentvolumeclaims, namespaces, classes: JSON, YAML, Kubernetes' protobuf
 *                                                         ?dryRun=All ?fieldValidation=Strict|Warn|Ignore
 * PUT, PATCH, DELETE …/{resource}/{name}                  of one that was made so; JSON, merge, strategic merge and apply patches (?fieldManager ?force); meta/v1 DeleteOptions as the body
 * DELETE /api/v1/namespaces/{ns}/{resource}               those of them that the selectors accept
 * PUT, PATCH …/pods/{name}/status, resize, ephemeralcontainers   what each is about
 * POST …/pods/{name}/eviction                             policy/v1 Eviction: as DELETE
 *
 * Events are served in the form of events.k8s.io/v1 too.
 * Objects and lists come as meta/v1 Table or PartialObjectMetadata where `Accept` asks for that.
 *
 * GET  /api, /apis, /api/v1, /apis/{group}[/{version}]     discovery, old and aggregated
 * GET  /openapi/v3[/api/v1, /apis/{group}/{version}]     OpenAPI 3.0, from the tables that manifests are decoded by; /openapi/v2 is empty
 * GET  /version                                           version.Info of the Kubernetes release that podd matches
 * POST /podd/v1/kubeconfig                                a kubeconfig in YAML; ?user ?role (admin, edit, view) ?days ?server
 *
 * GET  /api/v1/namespaces/{ns}/pods/{name}/log            text; ?container ?follow ?tailLines ?previous ?timestamps ?sinceSeconds ?sinceTime ?limitBytes ?stream (Stdout, Stderr, All)
 * GET  /api/v1/namespaces/{ns}/pods/{name}/exec           a WebSocket (remote-command.ts); ?container ?command (each word) ?stdin ?stdout ?stderr ?tty, and podd's own ?columns ?rows, how large the terminal is when the command starts
 * GET  /api/v1/namespaces/{ns}/pods/{name}/attach         the same of the container's own process, without ?command
 * GET  /api/v1/namespaces/{ns}/pods/{name}/portforward    a WebSocket that carries SPDY/3.1; each connection names its port, on the pod's loopback device
 * GET  /podd/v1/secrets, …/namespaces/{ns}/secrets[/{name}]   as above, with how long each value is instead of it (`<7 bytes>`)
 * GET  /healthz, /livez, /readyz                            `ok`, or each check in a line: `[+]ping ok`, `[-]sync-loop failed: …` with 500; ?verbose ?exclude
 * GET  /healthz/{check}, /readyz/{check}                  one of the checks: ping, sync-loop, relist, event-loop; ready alone: runtime, network
 * GET  /metrics, /metrics/resource, /metrics/cadvisor, /metrics/probes   the kubelet's metrics, as text for Prometheus
 * GET  /stats/summary, /pods, /runningpods, /configz      what a kubelet serves there; also below /api/v1/nodes/{name}/proxy
 * POST /checkpoint/{ns}/{pod}/{container}                 { items: [path on the host] }: a running container's memory and state in a file, where the runtime can; ?timeout (s); also below /api/v1/nodes/{name}/proxy
 * GET  /podd/v1/status                                    DaemonStatus
 * GET  /podd/v1/sources                                   SourceObject[] (sources.ts)
 * POST /podd/v1/sources/hold, …/resume                   HoldReply; ?source (any number), all without; …/resume takes units too
 * GET  /podd/v1/units                                     UnitObject[] (sources.ts)
 * POST /podd/v1/units/rollback                            RollbackReply; ?unit ?to (the number of a revision)
 * GET  /podd/v1/usage                                     UsageHistoryReply (usage.ts), where the status page is on
 * GET  /ui                                                the status page where it is on; its files lie below
 * POST /podd/v1/drain                                     DrainReply: ends all pods for a shutdown of the host; …/drain/undo: they start again
 * POST /podd/v1/restart                                   podd replaces its own process, with the config as it is then; the pods keep running
 * GET  /podd/v1/applied                                   AppliedReply (sources.ts)
 * GET  /podd/v1/images                                    ImageEntry[]; ?users=true: with who uses them
 * GET  /podd/v1/images/archives                           ArchiveReport[] (images.ts)
 * POST /podd/v1/images/import?path=FILE.tar               { images: string[] }; they are pinned, but with ?pin=false
 * POST /podd/v1/images/pull?image=NAME                    one PullUpdate (images.ts) a line
 * GET  /podd/v1/images/export?image=NAME                  a tar, OCI layout; ?image any number
 * POST /podd/v1/images/remove?image=NAME                  RemovedImage (images.ts); ?force=true: also one that is pinned or used
 * POST /podd/v1/images/prune                              GarbageReport, of images alone; ?dryRun ?all as with gc
 * POST /podd/v1/images/pin?image=NAME, …/unpin            image garbage collection keeps away from it, or no longer does
 * POST /podd/v1/gc                                       GarbageReport (images.ts); removes unused images, and what pods left; ?dryRun=true: only tells; ?all=true: those younger than imageMinimumGCAge too
 * POST /podd/v1/namespaces/{ns}/persistentvolumeclaims/{name}/purge   deletes a claim's data
 * GET  /podd/v1/namespaces/{ns}/pods/{name}/probes        ProbeReportObject[] (usage.ts)
 * POST /podd/v1/namespaces/{ns}/pods/{name}/restart       RestartReply; ?container (any number)
 * POST /podd/v1/namespaces/{ns}/pods/{name}/end           of a pod that terminates, as its manifest was removed: ?gracePeriodSeconds, if that is less
 * POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews, …/selfsubjectrulesreviews, /apis/authentication.k8s.io/v1/selfsubjectreviews
 *                                                         what who asks may do, and who that is; JSON or protobuf
 * GET  /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}   Lease, renewed at the moment
 * GET  /apis/metrics.k8s.io/v1beta1/nodes[/{name}]        NodeMetricsList; what the host uses
 * GET  /apis/metrics.k8s.io/v1beta1/pods                  PodMetricsList; takes a second where none was asked for in the last minute
 * GET  /apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods  the same, of one namespace; …/{name}: PodMetrics
 *
 * Errors are Kubernetes Status objects ({ kind: 'Status', reason, message, code }).
 */
import type { Problem } from '../pod/objects/document.ts'

/** What an error is answered with: meta/v1 Status. */
export interface StatusObject {
  readonly apiVersion: 'v1'
  readonly kind: 'Status'
  readonly metadata: Readonly<Record<string, never>>
  readonly status: 'Failure'
  readonly message: string
  readonly reason: string
  /** The HTTP status code. */
  readonly code: number
  /** The PoddError behind it: its code as `reason`, its hint as `message`. */
  readonly details?: {
    readonly name?: string
    /** Of the resource, where it isn't the core one. */
    readonly group?: string
    /** The resource's name: `pods`. */
    readonly kind?: string
    readonly causes?: readonly {
      readonly reason: string
      readonly message: string
      readonly field?: string
    }[]
    readonly retryAfterSeconds?: number
  }
}

interface SourceStatus {
  readonly source: string
  /** The directory, or the URL without its credentials. */
  readonly path: string
  /** Read at least once, or stood in for by its last good copy. */
  readonly ready: boolean
  readonly pods: number
  /** Its changes are not applied. */
  readonly heldSince?: string | undefined
}

/**
 * What `podd down` and `podd doctor` have to know to find all that a podd has and needs on its host: options of `podd run`,
 * under their keys.
 */
export interface DaemonPlaces {
  readonly rootDir: string
  readonly runDir: string
  readonly podLogsDir: string
  readonly containerLogsDir: string
  readonly containerRuntimeEndpoint: string
  readonly imageServiceEndpoint?: string
  readonly cgroupRoot?: string
  readonly cgroupDriver: 'auto' | 'cgroupfs' | 'systemd'
  /** A podd of an older version says none of these. */
  readonly podCidrs?: readonly string[]
  readonly registryConfigDir?: string
  readonly ociRuntimes?: readonly string[]
  /** Left out where it reads no such directory. */
  readonly staticPodPath?: string
}

/** A port of podd's beside its socket. */
export interface PortStatus {
  /** That asks for it. */
  readonly option: PortOption
  /** `127.0.0.1:6443`, `[::1]:6443` */
  readonly address: string
  /** Why podd doesn't listen there; it keeps trying. */
  readonly error?: string
}

/** GET /podd/v1/status. */
export interface DaemonStatus {
  readonly version: string
  readonly pid: number
  readonly startedAt: string
  /** A podd of an older version doesn't say. */
  readonly places?: DaemonPlaces
  /** A podd of an older version doesn't say. */
  readonly nodeName?: string
  /** A podd of an older version doesn't say, nor does one that has not tried to listen at them yet. */
  readonly ports?: readonly PortStatus[]
  readonly runtime: {
    readonly endpoint: string
    readonly healthy: boolean
    readonly name?: string
    readonly version?: string
    /** Why it isn't healthy, or what it can't do although it is: it has no network for pods. */
    readonly message?: string
    /** How many calls of each RPC were sent since podd started. */
    readonly calls: Readonly<Record<string, number>>
  }
  readonly sources: readonly SourceStatus[]
  readonly problems: readonly Problem[]
  /** Errors that nothing handled, after which podd restarted: of the newest ten, when, and the file that tells more. */
  readonly crashes: readonly { readonly time: string; readonly report: string }[]
  /** The node is being shut down, or was drained: no pod is admitted. */
  readonly draining?: true
  /** Left out where no threshold is set. */
  readonly pressure?: PressureStatus
  /** The periodic work about the host. */
  readonly jobs: readonly NodeJobStatus[]
}

/** The result of POST /podd/v1/drain. */
export interface DrainReply {
  readonly ended: number
  /** `namespace/name` of pods that had not ended in time. */
  readonly stuck: readonly string[]
}

/** What the node is short of. */
export interface PressureStatus {
  /** `MemoryPressure`, `DiskPressure`, `PIDPressure`; none where it is short of nothing. */
  readonly conditions: readonly string[]
  /** What was available at the last look: bytes, inodes or processes. */
  readonly signals: readonly {
    readonly signal: string
    readonly available: number
    readonly capacity: number
  }[]
}

export interface NodeJobStatus {
  readonly name: string
  readonly periodSeconds: number
  readonly running: boolean
  /** How many runs have ended since podd started. */
  readonly runs: number
  /** When the last of them started; left out before the first. */
  readonly lastStartTime?: string
  readonly lastDurationMs?: number
  /** Why the last one failed. */
  readonly error?: string
}

/** The containers that are being restarted. */
export interface RestartReply {
  readonly containers: readonly string[]
}

/** One image of GET /podd/v1/images. */
export interface ImageEntry {
  readonly id: string
  readonly tags: readonly string[]
  readonly digests: readonly string[]
  readonly sizeBytes: number
  readonly pinned: boolean
  /** Where that was asked for: `pod default/web`, `container default/web main`, … */
  readonly usedBy?: readonly string[]
}

/** The node jobs that have podd listen at a port, by the option that asks for it. */
export const listenJobs = { 'api.listen': 'listen-api', readOnlyPort: 'listen-read-only' } as const

/** An option that has podd listen at a port. */
export type PortOption = keyof typeof listenJobs
