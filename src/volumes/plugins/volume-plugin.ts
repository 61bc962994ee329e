import type { SourceName } from '../../pod/objects/document.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { SourceKind } from '../../pod/values/source-name.ts'
import type { VolumeSpec } from '../../pod/schema/volume-schema.ts'
import type { HostVolume } from '../../translate/volumes/mounts.ts'
import type { VolumeFiles } from '../../translate/volumes/volume-files.ts'
import type { FsGroup } from '../files/fs-group.ts'

/** Whose a claim is, and whose data it may stand for. */
export interface ClaimAccess {
  readonly source: SourceName
  /** The other sources whose data it may go on with. */
  readonly readsDataOf: readonly SourceKind[]
}

/** What a kind of volume gets to know of the pod and the host. */
export interface VolumeContext {
  readonly uid: PodUid
  readonly namespace: string
  readonly rootDir: string
  /** What the pod may have in memory at most: its memory limit, or else the host's memory. */
  readonly memoryBytes: number
  readonly fsGroup: FsGroup | undefined
  /** The files that such a volume holds now; undefined for volumes of other kinds. Throws MissingReference. */
  readonly files: (volume: VolumeSpec) => VolumeFiles | undefined
  /** The claim of that name in the pod's namespace, as its source sees it. Throws MissingReference. */
  readonly findClaim: (name: string) => ClaimAccess
  /** Of what a volume goes without. */
  readonly warn: (volume: string, message: string) => void
  /** The wall clock. */
  readonly nowMs: number
}

/**
 * Makes one volume ready, or leaves it as it is where it was ready before; undefined where the volume is of
 * another kind. What it makes lies in the pod's directory and goes with it (teardown-volumes.ts).
 * Throws VolumeError.
 */
export type PrepareVolume = (volume: VolumeSpec, context: VolumeContext) => Promise<HostVolume | undefined>
