import type { AppliedReply } from '../../api/applied.ts'
import type { GarbageReport } from '../../api/garbage.ts'
import type { RemovedImage } from '../../api/image-calls.ts'
import type { ArchiveReport } from '../../api/image-archives.ts'
import type { ServedResources } from '../../api/kinds/served-resources.ts'
import type { ProbeReportObject } from '../../api/probe-reports.ts'
import type { ResourceChange, ResourceObject } from '../../api/resource.ts'
import type { UsageHistoryReply } from '../../api/usage-history.ts'
import type { SourceObject } from '../../api/sources.ts'
import type { DaemonStatus, DrainReply, ImageEntry } from '../../api/routes.ts'
import type { HealthCheck } from '../../decide/node/judge-health.ts'
import type { NodeStats } from '../../pod/state/node-stats.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ObjectWriter } from './object-writer.ts'
import type { PodReach } from './pod-reach.ts'

/** Stops what was begun; calling it twice is harmless. */
export type Unsubscribe = () => void

/** The objects of one kind as they are now, from memory, and their newest changes. */
export interface ResourceReader<T extends ResourceObject> {
  /** The one that a list made now shows. */
  readonly revision: number
  /** A pod that replaces another of its name stands after it. */
  list(): readonly T[]
  /** As `list` gave them at a revision; undefined where that is forgotten, or yet to come. */
  listAt(revision: number): readonly T[] | undefined
  /** In order; undefined where some of them are forgotten. */
  changesAfter(revision: number): readonly ResourceChange<T>[] | undefined
  /** Calls `listener` for each change from now on, in order; all listeners get the same object. The listener never throws and never waits. */
  subscribe(listener: (change: ResourceChange<T>) => void): Unsubscribe
}

export interface ShownKind<T extends ResourceObject> {
  readonly reader: ResourceReader<T>
  /** Resolves when the objects can be listed, after some seconds at the latest: a podd that has just been started isn't one without pods. */
  readonly whenListed: () => Promise<void>
}

/** What came of a pod's probes; answers at once, from memory. */
export interface ProbeReader {
  listProbes(uid: PodUid): readonly ProbeReportObject[]
}

export interface StatusReader {
  daemonStatus(): DaemonStatus
  /** What runs, and where manifests go. */
  applied(): AppliedReply
}

/** The sources that are configured, by the names in their objects. */
export interface SourceControl {
  /** In their order. */
  list(): readonly SourceObject[]
  /** Applies no change of a source until it is resumed. Gives whether it wasn't held. Throws the system's error where that can't be kept. */
  hold(name: string): Promise<boolean>
  /** Gives whether it was held. Throws the system's error where that can't be recorded. */
  resume(name: string): Promise<boolean>
}

/** The runtime's images. All methods reject with a PoddError that says what to do. */
export interface ImageStore {
  /** `users`: with who uses each. */
  listImages(options: { readonly users: boolean }, signal: AbortSignal): Promise<readonly ImageEntry[]>
  /** What is made of the files in the directory of image archives. */
  listArchives(): readonly ArchiveReport[]
  /** Imports an archive (docker-save or OCI tar) at an absolute path on this host; gives the names it brought. */
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
  /** Keeps image garbage collection away from an image, or no longer does. Throws PoddError IMAGE_NOT_FOUND. */
  pinImage(image: string, pinned: boolean): Promise<void>
}

export interface ClaimPurger {
  /** Deletes a claim's data. Throws PoddError CLAIM_IN_USE or CLAIM_NOT_FOUND. */
  purgeClaim(claim: { readonly namespace: string; readonly name: string }): Promise<void>
}

/** Ends the pods for a shutdown of the host. */
export interface Drainer {
  run(): Promise<DrainReply>
  /** Throws the system's error where it can't be recorded. */
  undo(): Promise<void>
}

/** What podd finds when it checks itself; answers at once, from memory. */
export interface HealthReader {
  checks(): readonly HealthCheck[]
}

/** What only the kubelet's own paths show. */
export interface KubeletReader {
  readonly nodeName: string
  /** What of podd's settings a KubeletConfiguration has. */
  readonly config: Readonly<Record<string, unknown>>
  /** Rejects with a CriError, or the system's error. */
  measure(signal: AbortSignal): Promise<NodeStats>
  /** Of podd itself. */
  process(): ProcessFacts
  /** How containers have ended since podd started. */
  terminations(): readonly TerminationCount[]
}

/** How many containers ended in one way. */
export interface TerminationCount {
  readonly type: 'container' | 'init_container' | 'ephemeral_container'
  readonly exitCode: number
  readonly reason: string
  readonly count: number
}

/** What the process of podd uses. */
export interface ProcessFacts {
  readonly cpuSeconds: number
  readonly residentBytes: number
  readonly startedAtSeconds: number
}

/** The status page. */
export interface PageReader {
  /** Where its files are. */
  readonly directory: string
  /** What was used over the last hour; answers at once, from memory. */
  usage(): UsageHistoryReply
}

/** All that the API needs to know. */
export interface ApiReaders {
  readonly resources: { readonly [Name in keyof ServedResources]: ShownKind<ServedResources[Name]> }
  readonly status: StatusReader
  readonly health: HealthReader
  readonly probes: ProbeReader
  readonly kubelet: KubeletReader
  readonly images: ImageStore
  readonly claims: ClaimPurger
  readonly sources: SourceControl
  readonly drain: Drainer
  readonly reach: PodReach
  /** Left out, there is no page. */
  readonly page?: PageReader | undefined
  /** Left out, nothing can be written. */
  readonly writer?: ObjectWriter
}
