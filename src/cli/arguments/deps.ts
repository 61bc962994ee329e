import type { PoddConfig } from '../../config/options.ts'
import type { DoctorFinding } from '../../decide/doctor/host-facts.ts'
import type { Problem } from '../../pod/objects/document.ts'

/** What `podd run` was told, checked and complete. */
export interface RunRequest {
  readonly config: PoddConfig
  /** The file that was read, if there is one. */
  readonly configPath: string | undefined
  /** Worth a line in the log: ignored fields of the file. */
  readonly warnings: readonly Problem[]
}

export interface DownRequest {
  readonly config: PoddConfig
  /** A socket that was named: the daemon there must be the one that works in those places. */
  readonly socketPath?: string
  /** Instead of each pod's own grace. */
  readonly graceSeconds: number | undefined
  readonly signal: AbortSignal
  /** Called with one line for each step, as it happens. */
  readonly report: (line: string) => void
}

export interface DownResult {
  readonly podsStopped: number
  /** What could not be ended or cleaned up, one line each; none where all is gone. */
  readonly leftovers: readonly string[]
}

/**
 * What the CLI can't do itself, because it needs the daemon or the runtime. main.ts passes functions that
 * load their code when they are called.
 */
export interface CliDeps {
  /** Runs until it is told to end; gives the exit code. */
  startDaemon(request: RunRequest): Promise<number>
  /** Ends all pods, then the embedded containerd; works whether a daemon runs or not. */
  down(request: DownRequest): Promise<DownResult>
  /** Looks at the host; one finding for each check. */
  doctor(config: PoddConfig, signal: AbortSignal): Promise<readonly DoctorFinding[]>
}
