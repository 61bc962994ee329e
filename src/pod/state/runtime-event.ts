import type { Openness } from '../../base/keep-open.ts'
import type { ContainerId } from '../values/ids.ts'

/** A hint that something changed in the runtime. Sandboxes are containers here too: `containerId` has their ids. */
export type RuntimeEvent =
  | { readonly kind: 'started' | 'oom' | 'deleted' | 'created'; readonly containerId: ContainerId }
  /** `exit`: how the process ended, where the event has it; the runtime's own records may lag behind it. */
  | { readonly kind: 'exited'; readonly containerId: ContainerId; readonly exit?: ProcessExit | undefined }
  /** After `opened` what happened before is unknown, so everything is to be listed again. */
  | Openness

/** The end of a container's first process. */
export interface ProcessExit {
  readonly exitCode: number
  /** Wall time. */
  readonly atMs: number
}

/** A source of such hints. */
export interface RuntimeEvents {
  /**
   * Reports events until the signal is aborted, and resolves then. Never rejects and never ends by itself: a broken
   * stream is reported as `lost`, reopened, and reported as `opened`.
   */
  run(onEvent: (event: RuntimeEvent) => void, signal: AbortSignal): Promise<void>
}
