import type { Duplex, Readable } from 'node:stream'
import type { TerminalSize } from '../../api/remote-command.ts'
import type { ContainerUsage, NodeUsage } from '../../pod/state/container-usage.ts'
import type { PodUid } from '../../pod/values/ids.ts'

/** A command that runs in a container. */
export interface RunningCommand {
  readonly stdout: Readable
  /** Undefined for a terminal, where it is one with stdout. */
  readonly stderr: Readable | undefined
  /** Its exit code, once its output was taken. */
  readonly ended: Promise<number>
  /** Resolves when the command has taken it, or will never take anything any more. */
  write(chunk: Uint8Array): Promise<void>
  closeStdin(): Promise<void>
  resize(size: TerminalSize): Promise<void>
  /** Whoever ran it has gone. */
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

/** What the API server needs to reach into pods. All methods reject with a PoddError that says what to do. */
export interface PodReach {
  /** Rejects with RUNTIME_NOT_FOUND where the container doesn't run any more. */
  startCommand(request: CommandRequest): Promise<RunningCommand>
  /** Joins a running container's own streams; it goes on when whoever attached has gone. */
  attach(request: AttachRequest): Promise<RunningCommand>
  /** Connects to a port of the pod, as seen from inside it: on its own loopback device. */
  dial(uid: PodUid, port: number, signal: AbortSignal): Promise<Duplex>
  /** Restarts running and ended containers, or all of a pod's; gives their names. */
  restart(uid: PodUid, containers: readonly string[] | undefined): Promise<readonly string[]>
  /** Of all containers that run; takes as long as a first measurement does. */
  usage(signal: AbortSignal): Promise<readonly ContainerUsage[]>
  /** Of the host; takes as long as a first measurement does. */
  nodeUsage(signal: AbortSignal): Promise<NodeUsage>
}
