import type { Duplex, Readable } from 'node:stream'
import type { TerminalSize } from '../../api/remote-command.ts'
import type { ContainerUsage, NodeUsage } from '../../pod/state/usage.ts'
import type { PodUid } from '../../pod/values/ids.ts'

/** A command that runs in a container. */
export interface RunningCommand {
  readonly stdout: Readable
  /** Undefined for a terminal, where it is one with stdout. */
  readonly stderr: Readable | undefined
  /** Resolves with its exit code, once its output was read. */
  readonly ended: Promise<number>
  /** Resolves when the command has read it, or can no longer read anything. */
  write(chunk: Uint8Array): Promise<void>
  closeStdin(): Promise<void>
  resize(size: TerminalSize): Promise<void>
  /** Ends the command: its client is gone. */
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

/** The API's access to running pods. All methods reject with a PoddError that has a hint. */
export interface PodReach {
  /** Rejects with RUNTIME_NOT_FOUND where the container no longer runs. */
  startCommand(request: CommandRequest): Promise<RunningCommand>
  /** Joins a running container's own streams; the container keeps running when the client disconnects. */
  attach(request: AttachRequest): Promise<RunningCommand>
  /** Connects to a port of the pod, as seen from inside it: on its own loopback device. */
  dial(uid: PodUid, port: number, signal: AbortSignal): Promise<Duplex>
  /** Restarts these containers, or all of a pod; returns their names. */
  restart(uid: PodUid, containers: readonly string[] | undefined): Promise<readonly string[]>
  /** The usage of all running containers; a first measurement takes a second. */
  usage(signal: AbortSignal): Promise<readonly ContainerUsage[]>
  /** The host's usage; a first measurement takes a second. */
  nodeUsage(signal: AbortSignal): Promise<NodeUsage>
}
