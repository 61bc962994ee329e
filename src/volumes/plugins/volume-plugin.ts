import type { SourceName } from '../../pod/objects/document.ts'
import type { PodUid, SourceKind } from '../../pod/values/ids.ts'
import type { VolumeSpec } from '../../pod/schema/volume-schema.ts'
import type { HostVolume } from '../../translate/mounts.ts'
import type { VolumeFiles } from '../../translate/volume-files.ts'
import type { FsGroup } from '../files/fs-group.ts'

/** The source of a claim, and whose data it may use. */
export interface ClaimAccess {
  readonly source: SourceName
  /** The other sources whose data it may take over. */
  readonly readsDataOf: readonly SourceKind[]
}

/** What a volume plugin gets of the pod and the host. */
export interface VolumeContext {
  readonly uid: PodUid
  readonly namespace: string
  readonly rootDir: string
  /** The most memory that the pod may use: its memory limit, or else the host's memory. */
  readonly memoryBytes: number
  readonly fsGroup: FsGroup | undefined
  /** The current files of such a volume; undefined for volumes of other kinds. Throws MissingReference. */
  readonly files: (volume: VolumeSpec) => VolumeFiles | undefined
  /** The claim of that name in the pod's namespace, as its source sees it. Throws MissingReference. */
  readonly findClaim: (name: string) => ClaimAccess
  /** Called with what a volume has to do without. */
  readonly warn: (volume: string, message: string) => void
  /** The wall clock. */
  readonly nowMs: number
}

/**
 * Prepares one volume, unless it is prepared already; undefined where the volume is of another kind. Its files are in
 * the pod's directory and are removed with it (teardown-volumes.ts). Throws VolumeError.
 */
export type PrepareVolume = (volume: VolumeSpec, context: VolumeContext) => Promise<HostVolume | undefined>
