import type { PressureStatus } from './routes.ts'
import type { SourceObject, UnitObject } from './sources.ts'

/**
 * What podd sends to the URL of `report`: docs/FLEET.md documents it. A field may be added at any time; `version` rises where
 * one goes or means something else.
 */
export interface HostReport {
  readonly apiVersion: 'podd.dev/v1'
  readonly kind: 'HostReport'
  readonly version: 1
  /** The node's name. */
  readonly node: string
  /** When it was made; RFC 3339, by the host's clock. */
  readonly time: string
  readonly host: {
    readonly bootId: string
    readonly architecture: string
    readonly kernel: string
    /** When podd started. */
    readonly poddStarted: string
    readonly podd: string
    readonly kubernetes: string
    readonly runtime: { readonly name?: string | undefined; readonly version?: string | undefined }
  }
  /** The worst of the sources. */
  readonly health: ReportedHealth
  readonly runtime: { readonly healthy: boolean; readonly message?: string | undefined }
  readonly draining: boolean
  readonly sources: readonly ReportedSource[]
  /** Files of directories, and URLs, with their revisions. */
  readonly units: readonly ReportedUnit[]
  readonly pods: readonly ReportedPod[]
  /** How many more pods there are than would fit. */
  readonly omittedPods?: number | undefined
  readonly pressure?: PressureStatus | undefined
  /** Documents and files that are not followed, the newest warnings about pods and the host, and failed periodic jobs. */
  readonly errors: readonly ReportedError[]
}

export type ReportedHealth = 'healthy' | 'progressing' | 'failed'

export interface ReportedSource {
  readonly name: string
  /** The directory, or the URL without its credentials. */
  readonly place: string
  readonly state: SourceObject['status']['state']
  /** SHA-256 of the answer of a URL that counts here. */
  readonly revision?: string | undefined
  readonly etag?: string | undefined
  readonly health: ReportedHealth
  readonly pods: number
  readonly errors: number
  readonly lastAnswerTime?: string | undefined
  readonly failingSince?: string | undefined
  readonly message?: string | undefined
}

export interface ReportedUnit {
  readonly name: string
  readonly source: string
  readonly state: UnitObject['status']['state']
  /** The numbers of the revision that counts, and of the one that the source gives. */
  readonly active: number
  readonly offered: number
  /** Of the active one. */
  readonly hash?: string | undefined
  readonly message?: string | undefined
}

export interface ReportedPod {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly source?: string | undefined
  readonly phase: string
  readonly ready: boolean
  readonly reason?: string | undefined
  readonly startTime?: string | undefined
  readonly containers: readonly ReportedContainer[]
}

export interface ReportedContainer {
  readonly name: string
  readonly init?: true | undefined
  readonly image: string
  readonly ready: boolean
  readonly restarts: number
  readonly state: 'waiting' | 'running' | 'terminated'
  readonly reason?: string | undefined
  readonly exitCode?: number | undefined
  /** How it ended the last time. */
  readonly last?: { readonly reason?: string | undefined; readonly exitCode: number } | undefined
}

export interface ReportedError {
  readonly time?: string | undefined
  /** `Pod default/web`, `Node box`, the path of a document, or the name of a job. */
  readonly about: string
  readonly reason: string
  readonly message: string
}
