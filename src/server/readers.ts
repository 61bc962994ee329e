import type { AppliedReply } from '../api/applied.ts'
import type { GarbageReport } from '../api/garbage.ts'
import type { ArchiveReport } from '../api/image-archives.ts'
import type { ClaimObject, ConfigObject } from '../api/local-objects.ts'
import type { EventObject, PodObject } from '../api/objects.ts'
import type { ProbeReportObject } from '../api/probe-reports.ts'
import type { WatchEvent } from '../api/resource.ts'
import type { DaemonStatus, ImageEntry } from '../api/routes.ts'
import type { PodUid } from '../pod/values/ids.ts'
import type { PodReach } from './pod-reach.ts'

/** Stops what was begun; calling it twice is harmless. */
export type Unsubscribe = () => void

/** The pods as they are now, from memory. */
export interface PodReader {
  /** Resolves when the pods of an earlier podd can be told of, after some seconds at the latest: a podd that has just been started isn't one without pods. */
  whenShown(): Promise<void>
  /** A pod that replaces another of its name stands after it. */
  listPods(): readonly PodObject[]
  /** Calls `listener` for each change from now on, in order; all listeners get the same object. The listener never throws and never waits. */
  watchPods(listener: (change: WatchEvent<PodObject>) => void): Unsubscribe
}

/** The events that are still remembered, oldest first. */
export interface EventReader {
  listEvents(): readonly EventObject[]
  /** Calls `listener` for each event that is recorded or counted up from now on; all listeners get the same object. */
  watchEvents(listener: (change: WatchEvent<EventObject>) => void): Unsubscribe
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

/** The runtime's images. All methods reject with a PoddError that says what to do. */
export interface ImageStore {
  listImages(): Promise<readonly ImageEntry[]>
  /** What is made of the files in the directory of image archives. */
  listArchives(): readonly ArchiveReport[]
  /** Imports an archive (docker-save or OCI tar) at an absolute path on this host; gives the names it brought. */
  importImages(path: string, options: { readonly pin: boolean }): Promise<readonly string[]>
  /** Removes all images that nobody needs; `young`: also those younger than the minimum age. */
  collect(
    options: { readonly dryRun: boolean; readonly young: boolean },
    signal: AbortSignal,
  ): Promise<GarbageReport>
  /** Keeps image garbage collection away from an image, or no longer does. Throws PoddError IMAGE_NOT_FOUND. */
  pinImage(image: string, pinned: boolean): Promise<void>
}

/** The objects that pods refer to. */
export interface LocalObjectReader {
  listConfigs(kind: 'ConfigMap' | 'Secret', options: { readonly values: boolean }): readonly ConfigObject[]
  listClaims(): Promise<readonly ClaimObject[]>
  /** Deletes a claim's data. Throws PoddError CLAIM_IN_USE or CLAIM_NOT_FOUND. */
  purgeClaim(claim: { readonly namespace: string; readonly name: string }): Promise<void>
}

/** All that the API server needs to know. */
export interface ApiReaders {
  readonly pods: PodReader
  readonly events: EventReader
  readonly status: StatusReader
  readonly probes: ProbeReader
  readonly images: ImageStore
  readonly objects: LocalObjectReader
  readonly reach: PodReach
}
