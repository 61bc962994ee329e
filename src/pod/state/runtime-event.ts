import type { ContainerId } from '../values/ids.ts'

/** A hint that something changed in the runtime. Sandboxes are containers here too: their ids stand in `containerId`. */
export type RuntimeEvent =
  | { readonly kind: 'started' | 'oom' | 'deleted' | 'created'; readonly containerId: ContainerId }
  /** `exit`: how the process ended, where the event tells; the runtime's own records may lag behind it. */
  | { readonly kind: 'exited'; readonly containerId: ContainerId; readonly exit?: ProcessExit | undefined }
  /** The stream was (re)opened: what happened before is unknown, so everything is to be listed again. */
  | { readonly kind: 'opened' }
  /** The stream broke; it is being reopened. */
  | { readonly kind: 'lost'; readonly reason: string }

/** The end of a container's first process. */
export interface ProcessExit {
  readonly exitCode: number
  /** Wall time. */
  readonly atMs: number
}

/** Where such hints come from. */
export interface RuntimeEvents {
  /**
   * Reports events until the signal is aborted, and resolves then. Never rejects and never ends by itself:
   * a stream that breaks is `lost`, reopened, and `opened` again.
   */
  run(onEvent: (event: RuntimeEvent) => void, signal: AbortSignal): Promise<void>
}
