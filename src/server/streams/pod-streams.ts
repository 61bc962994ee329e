import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex, Readable } from 'node:stream'
import type { WebSocket } from 'ws'
import { findContainer } from '../../api/pod-summary.ts'
import {
  chooseProtocol,
  commandProtocols,
  decodeMessage,
  encodeMessage,
  formatFailure,
  formatOutcome,
  forwardProtocol,
  parseTerminalSize,
  portsProtocols,
} from '../../api/remote-command.ts'
import type { ChannelMessage, CommandOutcome } from '../../api/remote-command.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { ApiError } from '../requests/api-error.ts'
import type { ApiReaders, AttachRequest, RunningCommand } from '../requests/readers.ts'
import { booleanParam, countParam, findRoute, readTarget } from '../requests/route.ts'
import type { ApiRequest, OpenedStream } from '../requests/request.ts'
import type { Route } from '../requests/route.ts'
import { findContainerName, openLog } from '../routes/pod-logs.ts'
import { findRunningContainer, findRunningPod, notRunning } from '../routes/pod-target.ts'
import { normalClosure, readMessages, sendMessage, whenClosed } from './web-socket-messages.ts'
import { acceptWebSocket, checkHandshake } from './web-socket.ts'

/**
 * How a log is sent over a WebSocket: as binary messages, or in base64 as text, for what runs in a browser
 * (`apimachinery/pkg/util/httpstream/wsstream/stream.go`, 1.36). Without a protocol a client gets binary messages.
 */
const logProtocols = ['binary.k8s.io', 'base64.binary.k8s.io', ''] as const

interface Opening {
  readonly request: ApiRequest
  readonly connection: Duplex
  readonly namespace: string
  readonly name: string
  readonly query: URLSearchParams
}

/** Serves the connection from the handshake on; never rejects. */
type Serve = (protocol: string) => Promise<void>

interface StreamRoute extends Pick<Route, 'method' | 'pattern'> {
  readonly protocols: readonly string[]
  /** Throws ApiError for what can't be served. */
  prepare(opening: Opening): Serve | Promise<Serve>
}

/**
 * Commands in containers, connections to ports and logs, over WebSocket, as kubectl asks for them from 1.30 on. A
 * rejected client retries with SPDY/3.1 and shows the second response, which is the same.
 */
export class PodStreams {
  readonly #readers: Pick<ApiReaders, 'resources' | 'whenListed' | 'reach'>
  readonly #podLogsDir: string
  readonly #clock: Clock

  constructor(
    readers: Pick<ApiReaders, 'resources' | 'whenListed' | 'reach'>,
    podLogsDir: string,
    clock: Clock,
  ) {
    this.#readers = readers
    this.#podLogsDir = podLogsDir
    this.#clock = clock
  }

  upgrades({ upgrade }: IncomingHttpHeaders): boolean {
    return isWebSocket(upgrade) || upgrade?.toLowerCase() === 'spdy/3.1'
  }

  /** Checks that the pod and the container exist. Throws ApiError, PoddError. */
  async open(request: ApiRequest, connection: Duplex): Promise<OpenedStream> {
    const url = readTarget(request.target)
    const { route, names } = findRoute(this.#routes(), request.method, url.pathname)
    const [namespace = '', name = ''] = names
    await this.#readers.whenListed('pods')
    const serve = await route.prepare({ request, connection, namespace, name, query: url.searchParams })
    const protocol = chooseProtocol(request.headers['sec-websocket-protocol'], route.protocols)
    if (!isWebSocket(request.headers.upgrade) || protocol === undefined) {
      throw new ApiError(
        400,
        `Upgrade request required: podd serves this over WebSocket with ${route.protocols.filter(Boolean).join(' or ')}`,
        'kubectl asks for that from 1.31 on.',
      )
    }
    checkHandshake(request)
    return { headers: undefined, serve: () => serve(protocol) }
  }

  #routes(): readonly StreamRoute[] {
    const root = '/api/v1/namespaces/*/pods/*'
    const route = (
      resource: string,
      protocols: readonly string[],
      prepare: StreamRoute['prepare'],
    ): readonly StreamRoute[] =>
      (['GET', 'POST'] as const).map((method) => ({
        method,
        pattern: `${root}/${resource}`,
        protocols,
        prepare,
      }))
    return [
      ...route('exec', commandProtocols, (opening) => this.#exec(opening)),
      ...route('attach', commandProtocols, (opening) => this.#attach(opening)),
      ...route('portforward', [forwardProtocol, ...portsProtocols], (opening) => this.#forward(opening)),
      {
        method: 'GET',
        pattern: `${root}/log`,
        protocols: logProtocols,
        prepare: (opening) => this.#log(opening),
      },
    ]
  }

  async #log({ request, connection, namespace, name, query }: Opening): Promise<Serve> {
    const call = { names: [namespace, name], query, clock: this.#clock, signal: request.signal }
    const { body } = await openLog(this.#readers.resources.pods, this.#podLogsDir, call)
    return async (protocol) => {
      const { serveLog } = await import('./serve-streams.ts')
      const socket = await acceptWebSocket(request, connection, protocol)
      if (socket !== undefined) await serveLog({ socket, connection }, body, protocol.startsWith('base64'))
    }
  }

  #exec(opening: Opening): Serve {
    const command = opening.query.getAll('command')
    if (command.length === 0)
      throw new ApiError(400, 'you must specify at least one command for the container')
    refuseLong(command)
    return this.#serveCommand(opening, (wanted, signal) =>
      this.#readers.reach.startCommand({ ...wanted, command }, signal),
    )
  }

  #attach(opening: Opening): Serve {
    return this.#serveCommand(opening, (wanted, signal, spec) =>
      // Whether the process has a terminal was decided when it started (`pkg/kubelet/kubelet_pods.go` GetAttach, 1.36).
      this.#readers.reach.attach({ ...wanted, terminal: spec?.['tty'] === true }, signal),
    )
  }

  /** @param start joins the container; `spec` is its entry in the pod */
  #serveCommand(
    { request, connection, namespace, name, query }: Opening,
    start: (
      wanted: AttachRequest,
      signal: AbortSignal,
      spec: JsonObject | undefined,
    ) => Promise<RunningCommand>,
  ): Serve {
    const pod = findRunningPod(this.#readers.resources.pods, namespace, name)
    const container = findContainerName(pod, query.get('container') || undefined)
    const wanted = { ...readChoices(query), containerId: findRunningContainer(pod, container) }
    const wants = { stdout: booleanParam(query, 'stdout'), stderr: booleanParam(query, 'stderr') }
    if (!wants.stdout && !wants.stderr && !wanted.stdin)
      throw new ApiError(400, 'you must specify at least 1 of stdin, stdout, stderr')
    const begin = (): Promise<RunningCommand> =>
      start(wanted, request.signal, findContainer(pod, container)).catch((error: unknown) => {
        // It has ended since its status was derived.
        throw errorCode(error) === 'RUNTIME_NOT_FOUND' ? notRunning(pod, container) : error
      })
    return async (protocol) => {
      const socket = await acceptWebSocket(request, connection, protocol)
      if (socket === undefined) return
      const saysAll = protocol !== 'channel.k8s.io'
      await serveCommand({ socket, connection, wants, saysAll }, begin, this.#clock)
    }
  }

  async #forward({ request, connection, namespace, name, query }: Opening): Promise<Serve> {
    const { resources, reach } = this.#readers
    const find = () => findForwardedPod(resources.pods, namespace, name)
    find()
    // Forwarding survives a restart or a new version of the pod: each connection goes to the current pod of that name.
    const dial = async (port: number): Promise<Duplex> =>
      reach.dial(find().metadata.uid, port, request.signal).catch((error: unknown) => {
        throw errorCode(error) === 'PORT_REFUSED' ? new ApiError(503, errorMessage(error)) : error
      })
    const offered = request.headers['sec-websocket-protocol']
    if (isWebSocket(request.headers.upgrade) && chooseProtocol(offered, [forwardProtocol]) === undefined) {
      const { readPorts, servePorts } = await import('./serve-streams.ts')
      const ports = readPorts(query)
      return async (protocol) => {
        const socket = await acceptWebSocket(request, connection, protocol)
        if (socket !== undefined) await servePorts({ socket, connection }, ports, dial)
      }
    }
    return async (protocol) => {
      const socket = await acceptWebSocket(request, connection, protocol)
      if (socket === undefined) return
      const [{ createWebSocketStream }, { serveForward }] = await Promise.all([
        import('ws'),
        import('./serve-streams.ts'),
      ])
      await serveForward(createWebSocketStream(socket), dial)
      connection.destroy()
    }
  }
}

function findForwardedPod(...where: Parameters<typeof findRunningPod>): ReturnType<typeof findRunningPod> {
  const pod = findRunningPod(...where)
  if (pod.status.phase === 'Running') return pod
  const message = `unable to forward port because pod is not running. Current status=${pod.status.phase}`
  throw new ApiError(400, message)
}

function readChoices(query: URLSearchParams) {
  const columns = countParam(query, 'columns') ?? 0
  const rows = countParam(query, 'rows') ?? 0
  return {
    stdin: booleanParam(query, 'stdin'),
    terminal: booleanParam(query, 'tty'),
    size: columns > 0 && rows > 0 ? { columns, rows } : undefined,
  }
}

function isWebSocket(upgrade: string | undefined): boolean {
  return upgrade?.toLowerCase() === 'websocket'
}

/** The interval of writes to a client while a command reads no input: only a write detects that the client is gone. */
const alivePeriodMs = 5000

interface CommandClient {
  readonly socket: WebSocket
  /** The connection under it. */
  readonly connection: Duplex
  /** The output streams that the client requested. */
  readonly wants: { readonly stdout: boolean; readonly stderr: boolean }
  /** Whether the client's protocol sends a Status for every outcome; the oldest one sends the text of a failure. */
  readonly saysAll: boolean
}

/** Joins a command with its client until both are done; hangs up when the client is gone. Never rejects. */
async function serveCommand(
  { socket, connection, wants, saysAll }: CommandClient,
  start: () => Promise<RunningCommand>,
  clock: Clock,
): Promise<void> {
  const gone = whenClosed(connection)
  // The API server signals with it that the streams are connected, and some clients wait for it.
  await sendMessage(socket, encodeMessage('stdout'))
  const outcome = await start().then(
    (command) => {
      void gone.then(() => command.hangUp())
      void takeInput(socket, command, clock).finally(() => {
        // A client that has closed the WebSocket properly is gone as well.
        connection.destroy()
      })
      return runToEnd(socket, command, wants)
    },
    (error: unknown): CommandOutcome => ({ kind: 'failed', message: errorMessage(error) }),
  )
  const told = saysAll ? formatOutcome(outcome) : formatFailure(outcome)
  if (told !== undefined) await sendMessage(socket, encodeMessage('error', told))
  // Reading must continue while input waits that is never read, to see the client's close.
  socket.resume()
  socket.close(normalClosure)
  await gone
}

async function runToEnd(
  socket: WebSocket,
  command: RunningCommand,
  wants: CommandClient['wants'],
): Promise<CommandOutcome> {
  const outputs = (['stdout', 'stderr'] as const).map((channel) =>
    sendOutput(wants[channel] ? socket : undefined, channel, command[channel]),
  )
  const outcome = await command.ended.then(
    (exitCode): CommandOutcome => ({ kind: 'exited', exitCode }),
    (error: unknown): CommandOutcome => ({ kind: 'failed', message: errorMessage(error) }),
  )
  await Promise.all(outputs)
  return outcome
}

/** Runs until the client ends the connection. */
async function takeInput(socket: WebSocket, command: RunningCommand, clock: Clock): Promise<void> {
  try {
    for await (const message of readMessages(socket)) {
      const taken = takeMessage(decodeMessage(message), command)
      if (taken !== undefined) await stayAlive(taken, socket, clock)
    }
  } catch {
    // The client is gone, or sent an invalid frame: the end of the connection ends the command.
  }
}

function takeMessage(
  { channel, payload }: ChannelMessage,
  command: RunningCommand,
): Promise<void> | undefined {
  if (channel === 'stdin' && payload.length > 0) return command.write(payload)
  if (channel === 'close' && payload[0] === 0) return command.closeStdin()
  const size = channel === 'resize' ? parseTerminalSize(payload.toString('utf8')) : undefined
  if (size !== undefined) void command.resize(size)
  return undefined
}

/** While input isn't read, neither are pings: sends pongs unasked, as kubectl gives up after 61 s without. */
async function stayAlive(taken: Promise<void>, socket: WebSocket, clock: Clock): Promise<void> {
  const over = new AbortController()
  const speaking = (async () => {
    for (;;) {
      await clock.sleep(alivePeriodMs, over.signal)
      // Pending output also detects whether the client is there.
      if (socket.bufferedAmount === 0 && socket.readyState === socket.OPEN) socket.pong()
    }
    // Only `over` ends it.
  })().catch(() => {})
  try {
    await taken
  } finally {
    over.abort()
    await speaking
  }
}

/** @param socket undefined: the output is read and dropped, so that the command doesn't block */
async function sendOutput(
  socket: WebSocket | undefined,
  channel: 'stdout' | 'stderr',
  stream: Readable | undefined,
): Promise<void> {
  try {
    for await (const chunk of stream ?? []) {
      if (socket === undefined || !Buffer.isBuffer(chunk)) continue
      await sendMessage(socket, encodeMessage(channel, chunk))
    }
  } catch {
    // Another process holds the output of a command that has ended.
  }
}

/**
 * The largest size of all arguments of a process together: a quarter of its stack, which is 8 MiB nearly everywhere
 * (execve(2)); its environment counts too, which only the kernel knows.
 */
const maxCommandBytes = 2 * 1024 * 1024

/** The largest argument, without its final zero byte (MAX_ARG_STRLEN, execve(2)). */
const maxWordBytes = 128 * 1024 - 1

/** Rejects a command that the kernel would reject, and names the word that is too long. Throws ApiError. */
function refuseLong(words: readonly string[]): void {
  const sizes = words.map((word) => Buffer.byteLength(word))
  const at = sizes.findIndex((bytes) => bytes > maxWordBytes)
  if (at >= 0) {
    throw new ApiError(
      413,
      `word ${at + 1} of the command has ${sizes[at]} bytes, of which Linux takes ${maxWordBytes} at most`,
      'Pass it on standard input (-i), or in a file.',
    )
  }
  // Each has a zero byte at its end, and a pointer.
  const total = sizes.reduce((sum, bytes) => sum + bytes + 9, 0)
  if (total <= maxCommandBytes) return
  throw new ApiError(
    413,
    `the command has ${total} bytes, of which Linux takes ${maxCommandBytes} at most`,
    'Pass its input on standard input (-i), or in a file.',
  )
}
