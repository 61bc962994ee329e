import { isJsonObject, objectAt, objectsAt, parseJson, textAt } from '../base/json.ts'

/**
 * The protocols of `exec` and `attach` over a WebSocket: binary messages, of which the first byte is the channel
 * (`apimachinery/pkg/util/remotecommand/constants.go`, `kubelet/pkg/cri/streaming/remotecommand/websocket.go`, 1.36).
 * The newest comes first; only with it can a client end the standard input. The oldest reports only failures.
 */
export const commandProtocols = ['v5.channel.k8s.io', 'v4.channel.k8s.io', 'channel.k8s.io'] as const

/** The bytes of SPDY/3.1 in binary messages: `kubectl port-forward`, from 1.31 on. */
export const forwardProtocol = 'SPDY/3.1+portforward.k8s.io'

/** Of clients without SPDY, which name the ports in the query; empty where they name no protocol. */
export const portsProtocols = ['v4.channel.k8s.io', ''] as const

export const channels = {
  stdin: 0,
  stdout: 1,
  stderr: 2,
  /** A Status, once, last. */
  error: 3,
  /** `{"Width":80,"Height":24}` */
  resize: 4,
  /** Its one byte names the channel that the client has ended. */
  close: 255,
} as const

export type Channel = keyof typeof channels

const channelNames: readonly Channel[] = ['stdin', 'stdout', 'stderr', 'error', 'resize', 'close']

export interface ChannelMessage {
  /** Undefined for a channel that the protocol doesn't have. */
  readonly channel: Channel | undefined
  readonly payload: Buffer
}

/** The first supported protocol among those that a client offers; undefined where it offers none. */
export function chooseProtocol<P extends string>(
  offered: string | undefined,
  known: readonly P[],
): P | undefined {
  const words = (offered ?? '').split(',').map((word) => word.trim())
  return words.flatMap((word) => known.find((protocol) => protocol === word) ?? [])[0]
}

export function encodeMessage(channel: Channel, payload: Uint8Array | string = ''): Buffer {
  const bytes = typeof payload === 'string' ? Buffer.from(payload) : payload
  return Buffer.concat([Buffer.from([channels[channel]]), bytes])
}

/** Some clients send standard input as text: a message of either kind is its bytes. */
export function decodeMessage(message: Uint8Array | string): ChannelMessage {
  const bytes = typeof message === 'string' ? Buffer.from(message) : Buffer.from(message)
  const channel = channelNames.find((name) => channels[name] === bytes[0])
  return { channel, payload: bytes.subarray(1) }
}

export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

export function formatTerminalSize({ columns, rows }: TerminalSize): string {
  return `${JSON.stringify({ Width: columns, Height: rows })}\n`
}

/** The size that a message of the channel `resize` gives; undefined for anything else. */
export function parseTerminalSize(text: string): TerminalSize | undefined {
  const value = parseJson(text)
  if (!isJsonObject(value)) return undefined
  const { Width: columns, Height: rows } = value
  return isCharacterCount(columns) && isCharacterCount(rows) ? { columns, rows } : undefined
}

/** The kernel counts a terminal's columns and rows in 16 bits. */
function isCharacterCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536
}

/** How a command ended. */
export type CommandOutcome =
  | { readonly kind: 'exited'; readonly exitCode: number }
  /** It did not begin, or podd lost it. */
  | { readonly kind: 'failed'; readonly message: string }

/**
 * The Status for an outcome on the channel `error` (`kubelet/pkg/cri/streaming/remotecommand/exec.go`,
 * `apimachinery/pkg/api/errors/errors.go` NewInternalError, 1.36).
 */
export function formatOutcome(outcome: CommandOutcome): string {
  const message = formatFailure(outcome)
  if (message === undefined) return JSON.stringify({ metadata: {}, status: 'Success' })
  const failure = { metadata: {}, status: 'Failure', message }
  if (outcome.kind === 'exited') {
    const cause = { reason: 'ExitCode', message: String(outcome.exitCode) }
    return JSON.stringify({ ...failure, reason: 'NonZeroExitCode', details: { causes: [cause] } })
  }
  const details = { causes: [{ message: outcome.message }] }
  return JSON.stringify({ ...failure, reason: 'InternalError', details, code: 500 })
}

/** The message of the oldest protocol on the channel `error`: empty for a success (v1WriteStatusFunc of the same). */
export function formatFailure(outcome: CommandOutcome): string | undefined {
  if (outcome.kind === 'failed') return `Internal error occurred: ${outcome.message}`
  const { exitCode } = outcome
  if (exitCode === 0) return undefined
  return `command terminated with non-zero exit code: command terminated with exit code ${exitCode}`
}

export function parseOutcome(text: string): CommandOutcome {
  const status = parseJson(text)
  if (!isJsonObject(status)) return { kind: 'failed', message: 'podd did not report how the command ended' }
  if (status['status'] === 'Success') return { kind: 'exited', exitCode: 0 }
  for (const cause of objectsAt(objectAt(status, 'details') ?? {}, 'causes')) {
    const exitCode = Number(cause['message'])
    if (cause['reason'] === 'ExitCode' && Number.isInteger(exitCode)) return { kind: 'exited', exitCode }
    if (cause['reason'] === undefined && typeof cause['message'] === 'string')
      return { kind: 'failed', message: cause['message'] }
  }
  return { kind: 'failed', message: textAt(status, 'message') ?? 'the command failed' }
}
