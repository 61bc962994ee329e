import type { Duplex, Readable } from 'node:stream'
import type { ArchiveReport, GarbageReport, RemovedImage } from '../../api/images.ts'
import type { TerminalSize } from '../../api/remote-command.ts'
import type { ResourceChange, ResourceObject } from '../../api/resource.ts'
import type { DaemonStatus, DrainReply, ImageEntry } from '../../api/routes.ts'
import type { ServedResources } from '../../api/served-kind.ts'
import type { AppliedReply, SourceObject, UnitObject } from '../../api/sources.ts'
import type { ProbeReportObject, UsageHistoryReply } from '../../api/usage.ts'
import type { JsonObject } from '../../base/json.ts'
import type { AskedEnd } from '../../pod/state/pod-record.ts'
import type { HealthCheck } from '../../decide/node/judge-health.ts'
import type {
  ContainerUsage,
  NodeStats,
  NodeUsage,
  PodCounts,
  RuntimeMetrics,
  RuntimeOperation,
} from '../../pod/state/usage.ts'
import type { PodUid } from '../../pod/values/ids.ts'

/** Ends a subscription; a second call does nothing. */
type Unsubscribe = () => void

/** The current objects of one kind, from memory, and their newest changes. */
export interface ResourceReader<T extends ResourceObject> {
  /** The revision of a list made now. */
  readonly revision: number
  /** A pod's replacement comes after the pod itself. */
  list(): readonly T[]
  /** The list at a revision; undefined where that is forgotten or in the future. */
  listAt(revision: number): readonly T[] | undefined
  /** In order; undefined where some of them are forgotten. */
  changesAfter(revision: number): readonly ResourceChange<T>[] | undefined
  /** Calls `listener` for each change, in order, all with the same object; it must neither throw nor block. */
  subscribe(listener: (change: ResourceChange<T>) => void): Unsubscribe
}

/** The results of a pod's probes; answers at once, from memory. */
interface ProbeReader {
  listProbes(uid: PodUid): readonly ProbeReportObject[]
}

interface StatusReader {
  daemonStatus(): DaemonStatus
  /** The daemon's status, and where manifests go. */
  applied(): AppliedReply
}

/** The sources that are configured, by the names in their objects. */
export interface SourceControl {
  /** In their order. */
  list(): readonly SourceObject[]
  /**
   * Holds a source: applies none of its changes until it is resumed. Returns whether it wasn't held before. Throws the
   * system's error where that can't be recorded.
   */
  hold(name: string): Promise<boolean>
  /** Resumes a source. Returns whether it was held. Throws the system's error where that can't be recorded. */
  resume(name: string): Promise<boolean>
}

/** The units that sources give, by the names in their objects. */
export interface UnitControl {
  /** In the order of the sources, and of their names. */
  list(): readonly UnitObject[]
  /**
   * Has a unit go back: to this revision, or the last healthy one before the active one. Gives the number of the one that
   * counts now. Throws PoddError UPDATE_REFUSED, or the system's error where that can't be recorded.
   */
  rollBack(name: string, to: number | undefined): Promise<number>
  /** Tries again what the source gives. Returns whether something else counted. Throws as `rollBack`. */
  resume(name: string): Promise<boolean>
}

/** The runtime's images. All methods reject with a PoddError that has a hint. */
export interface ImageStore {
  /** `users`: with the users of each image. */
  listImages(options: { readonly users: boolean }, signal: AbortSignal): Promise<readonly ImageEntry[]>
  /** The state of each file in the directory of image archives. */
  listArchives(): readonly ArchiveReport[]
  /** Imports an archive (docker-save or OCI tar) at an absolute path on this host; returns the names of its images. */
  importImages(path: string, options: { readonly pin: boolean }): Promise<readonly string[]>
  /** Removes all unused images; `young`: also those younger than the minimum age. */
  collect(
    options: { readonly dryRun: boolean; readonly young: boolean; readonly imagesOnly: boolean },
    signal: AbortSignal,
  ): Promise<GarbageReport>
  /** Pulls an image with the node's credentials. Throws the runtime's error. */
  pullImage(
    image: string,
    onProgress: (progress: { readonly doneBytes: number; readonly totalBytes: number | undefined }) => void,
    signal: AbortSignal,
  ): Promise<{ readonly id: string; readonly sizeBytes: number }>
  /** An archive of images, as it is read. Throws PoddError IMAGE_NOT_FOUND. */
  exportImages(images: readonly string[], signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Removes an image with all its names. Throws PoddError IMAGE_NOT_FOUND, IMAGE_IN_USE or IMAGE_PINNED. */
  removeImage(image: string, force: boolean, signal: AbortSignal): Promise<RemovedImage>
  /** Pins an image, which excludes it from garbage collection, or unpins it. Throws PoddError IMAGE_NOT_FOUND. */
  pinImage(image: string, pinned: boolean): Promise<void>
}

interface ClaimPurger {
  /** Deletes a claim's data. Throws PoddError CLAIM_IN_USE or CLAIM_NOT_FOUND. */
  purgeClaim(claim: { readonly namespace: string; readonly name: string }): Promise<void>
}

/** Ends the pods for a shutdown of the host. */
export interface Drainer {
  run(): Promise<DrainReply>
  /** Throws the system's error where it can't be recorded. */
  undo(): Promise<void>
}

/** The results of podd's health checks; answers at once, from memory. */
export interface HealthReader {
  checks(): readonly HealthCheck[]
}

/** The data that only the kubelet's own paths show. */
interface KubeletReader {
  readonly nodeName: string
  /** podd's settings as a KubeletConfiguration. */
  readonly config: Readonly<Record<string, unknown>>
  /** Rejects with a CriError, or the system's error. */
  measure(signal: AbortSignal): Promise<NodeStats>
  /** The runtime's own metrics of pods; never rejects, but with the signal's reason. */
  runtimeMetrics(signal: AbortSignal): Promise<RuntimeMetrics>
  /** Of podd itself. */
  process(): ProcessFacts
  /** Of pods and containers since podd started. */
  counts(): PodCounts
  /** Of the runtime since podd started. */
  operations(): readonly RuntimeOperation[]
}

export interface ProcessFacts {
  readonly cpuSeconds: number
  readonly residentBytes: number
  readonly startedAtSeconds: number
}

export interface PageReader {
  /** Where its files are. */
  readonly directory: string
  /** The usage over the last hour; answers at once, from memory. */
  usage(): UsageHistoryReply
}

/** All that the API reads and calls. */
export interface ApiReaders {
  readonly resources: { readonly [Name in keyof ServedResources]: ResourceReader<ServedResources[Name]> }
  /**
   * Resolves when the objects can be listed, after some seconds at the latest: a podd that has just started must not
   * look like one without pods.
   */
  whenListed(resource: keyof ServedResources): Promise<void>
  readonly status: StatusReader
  readonly health: HealthReader
  readonly probes: ProbeReader
  readonly kubelet: KubeletReader
  readonly images: ImageStore
  readonly claims: ClaimPurger
  readonly sources: SourceControl
  readonly units: UnitControl
  readonly drain: Drainer
  readonly reach: PodReach
  /** Replaces podd's process, soon; the pods keep running. */
  readonly restart: () => void
  /** Left out, there is no status page. */
  readonly page?: PageReader | undefined
  /** Left out, the API is read-only. */
  readonly writer?: ObjectWriter
}

export interface ObjectName {
  readonly kind: string
  /** Empty where the kind belongs to none. */
  readonly namespace: string
  readonly name: string
}

/** An object that was written over the API, as it is kept. */
export interface WrittenObject extends ObjectName {
  readonly uid: string
  /** With the API's defaults and the server's metadata, without derived fields. */
  readonly manifest: JsonObject
}

/** Keeps objects that are written over the API, and puts them into effect. */
export interface ObjectWriter {
  /** The name of the node that all pods run on. */
  readonly nodeName: string
  /** How many pods that have not ended are followed. */
  readonly maxPods: number
  /** Runs a transaction: no other one runs in between. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
  get(object: ObjectName): WrittenObject | undefined
  list(): readonly WrittenObject[]
  /** Keeps an object on disk, and shows it. Within `exclusively`. Throws PoddError OBJECT_NOT_KEPT. */
  put(manifest: JsonObject): Promise<void>
  /** Removes it from the disk and from what is shown. Within `exclusively`. Throws as `keep`. */
  remove(object: ObjectName): Promise<void>
  /** Removes a namespace that is kept with its `deletionTimestamp`, once nothing is left in it. Within `exclusively`. */
  settleNamespace(name: string): Promise<void>
  /** Ends a pod that is kept with its `deletionTimestamp`; once it has ended it is removed. */
  endPod(uid: string, graceSeconds: number, asked: AskedEnd): void
  /** Ends a pod of a workload, which makes another one in its place. False while it is not known what runs of it. */
  endOwned(uid: string, graceSeconds: number, asked: AskedEnd): boolean
  /** Adds ephemeral containers to a pod that a source gives; they go with it. Throws PoddError POD_GONE, RECORD_WRITE. */
  addDebuggers(uid: string, added: readonly JsonObject[]): Promise<void>
  /** Ends a terminating pod within this time, if it had longer. Whether it terminates. */
  shortenGrace(uid: string, graceSeconds: number): boolean
}

export interface RunningCommand {
  readonly stdout: Readable
  /** Undefined for a terminal, where it is one with stdout. */
  readonly stderr: Readable | undefined
  /** Resolves with its exit code, once its output was read. */
  readonly ended: Promise<number>
  /** Resolves when the command has read it, or can no longer read anything. */
  write(chunk: Uint8Array): Promise<void>
  closeStdin(): Promise<void>
  resize(size: TerminalSize): Promise<void>
  /** Ends the command: its client is gone. */
  hangUp(): Promise<void>
}

export interface AttachRequest {
  readonly containerId: string
  readonly stdin: boolean
  readonly terminal: boolean
  readonly size: TerminalSize | undefined
}

export interface CommandRequest extends AttachRequest {
  readonly command: readonly string[]
}

/** Running pods; methods reject with a PoddError that has a hint. A signal ends only what is beginning. */
export interface PodReach {
  /** Rejects with RUNTIME_NOT_FOUND where the container no longer runs. */
  startCommand(request: CommandRequest, signal: AbortSignal): Promise<RunningCommand>
  /** Joins a running container's own streams; the container keeps running when the client disconnects. */
  attach(request: AttachRequest, signal: AbortSignal): Promise<RunningCommand>
  /** Has the runtime write a running container into a file on this host, and returns its path; 0 s: the runtime's timeout. */
  checkpoint(request: {
    readonly pod: { readonly namespace: string; readonly name: string }
    readonly container: string
    readonly containerId: string
    readonly timeoutSeconds: number
  }): Promise<string>
  /**
   * Connects to a port of the pod, as seen from inside it: on its own loopback device. Where the runtime connects, a
   * connection that it can't make ends with a PoddError.
   */
  dial(uid: PodUid, port: number, signal: AbortSignal): Promise<Duplex>
  /** Restarts these containers, or all of a pod; returns their names. */
  restart(uid: PodUid, containers: readonly string[] | undefined): Promise<readonly string[]>
  /** The usage of all running containers; a first measurement takes a second. */
  usage(signal: AbortSignal): Promise<readonly ContainerUsage[]>
  /** The host's usage; a first measurement takes a second. */
  nodeUsage(signal: AbortSignal): Promise<NodeUsage>
}
