import type { PoddConfig } from '../../config/options.ts'
import type { DoctorFinding } from '../../decide/doctor/host-facts.ts'
import type { Problem } from '../../pod/objects/document.ts'

/** The checked and complete request of `podd run`. */
export interface RunRequest {
  readonly config: PoddConfig
  /** The file that was read, if there is one. */
  readonly configPath: string | undefined
  /** Warnings for the log: ignored fields of the file. */
  readonly warnings: readonly Problem[]
}

export interface DownRequest {
  readonly config: PoddConfig
  /** A given socket: the daemon there must be the one that uses these places. */
  readonly socketPath?: string
  /** Overrides each pod's own grace period. */
  readonly graceSeconds: number | undefined
  /** Whether pods of the API that have completed or failed for good are removed too. */
  readonly removesEnded: boolean
  readonly signal: AbortSignal
  /** Called with one line for each step, as it happens. */
  readonly report: (line: string) => void
}

export interface DownResult {
  readonly podsStopped: number
  /** What could not be ended or cleaned up, one line each. */
  readonly leftovers: readonly string[]
}

/**
 * Functions that need the daemon's or the runtime's code. main.ts passes functions that load their code when they are
 * called.
 */
export interface CliDeps {
  /** Runs until it is stopped; returns the exit code. */
  startDaemon(request: RunRequest): Promise<number>
  /** Ends all pods, then the embedded containerd; works whether a daemon runs or not. */
  down(request: DownRequest): Promise<DownResult>
  /**
   * Examines the host; returns one finding for each check.
   * @param options.isOther the config has the places of a running podd, and is not the one that it was started with
   */
  doctor(
    config: PoddConfig,
    signal: AbortSignal,
    options?: { readonly isOther: boolean },
  ): Promise<readonly DoctorFinding[]>
}
