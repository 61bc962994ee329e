import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { execProtocol } from '../api/exec-frames.ts'
import { forwardProtocol } from '../api/routes.ts'
import type { Clock } from '../base/clock.ts'
import { errorCode, errorMessage } from '../base/errors.ts'
import { joinStreams } from '../base/join-streams.ts'
import { nodeHttp } from '../base/node-http.ts'
import { ApiError, toStatusObject } from './api-error.ts'
import { serveExec } from './exec-session.ts'
import type { PodReach } from './pod-reach.ts'
import { chooseContainer } from './pod-logs.ts'
import { findRunningContainer, findRunningPod, notRunning } from './pod-target.ts'
import { booleanParam, countParam } from './query.ts'
import { readCommand } from './read-command.ts'
import type { PodReader } from './readers.ts'

export interface UpgradeContext {
  readonly pods: PodReader
  readonly reach: PodReach
  readonly clock: Clock
  /** The server closes. */
  readonly signal: AbortSignal
}

interface Upgrade extends UpgradeContext {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly namespace: string
  readonly name: string
  readonly query: URLSearchParams
}

/** Does what was asked, up to the moment from which on the connection belongs to it. */
type Prepare = (upgrade: Upgrade) => Promise<(socket: Duplex) => Promise<void>>

const protocols: Readonly<Record<string, { readonly resource: string; readonly prepare: Prepare }>> = {
  [execProtocol]: { resource: 'exec', prepare: prepareExec },
  [forwardProtocol]: { resource: 'portforward', prepare: prepareForward },
}

/** Whether a request asks for one of podd's own protocols; any other wish for an upgrade may be passed over. */
export function isUpgrade(request: IncomingMessage): boolean {
  return Object.hasOwn(protocols, request.headers.upgrade ?? '')
}

/**
 * Answers a request for another protocol and serves that until it is done. What goes wrong before is told as any
 * error is; never rejects.
 */
export async function serveUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  context: UpgradeContext,
): Promise<void> {
  socket.on('error', () => {})
  // For as long as it is open: the HTTP server that ends waits for it and has no say over it.
  const cut = (): void => void socket.destroy()
  context.signal.addEventListener('abort', cut, { once: true })
  socket.once('close', () => context.signal.removeEventListener('abort', cut))
  if (context.signal.aborted) cut()
  const { upgrade = '' } = request.headers
  try {
    if (head.length > 0) socket.unshift(head)
    const serve = await prepare({ request, socket, protocol: upgrade, context })
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`)
    await serve(socket)
  } catch (error) {
    refuse(socket, error)
  }
}

async function prepare({
  request,
  socket,
  protocol,
  context,
}: {
  readonly request: IncomingMessage
  readonly socket: Duplex
  readonly protocol: string
  readonly context: UpgradeContext
}): Promise<(socket: Duplex) => Promise<void>> {
  await context.pods.whenShown()
  const found = Object.hasOwn(protocols, protocol) ? protocols[protocol] : undefined
  if (found === undefined) throw new ApiError(400, `podd has no protocol ${JSON.stringify(protocol)}`)
  const url = new URL(request.url ?? '/', 'http://podd')
  const path = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/([^/]+)$/u.exec(url.pathname)
  const [, namespace = '', name = '', resource = ''] = path ?? []
  if (resource !== found.resource)
    throw new ApiError(404, `the server could not find the requested resource ${url.pathname}`)
  if (request.method !== 'POST')
    throw new ApiError(405, `${request.method ?? ''} is not allowed at ${url.pathname}`)
  return found.prepare({
    ...context,
    request,
    socket,
    namespace: decodeSegment(namespace),
    name: decodeSegment(name),
    query: url.searchParams,
  })
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    // decodeURIComponent throws for malformed escapes alone.
    throw new ApiError(400, `${segment} is not well-formed`)
  }
}

async function prepareExec(upgrade: Upgrade): Promise<(socket: Duplex) => Promise<void>> {
  const { query, reach, clock } = upgrade
  // First of all: a client that still sends doesn't read why it is refused.
  const command = await readCommand(upgrade.request, upgrade.socket, query, clock)
  const pod = findRunningPod(upgrade.pods, upgrade.namespace, upgrade.name)
  const container = chooseContainer(pod, query.get('container') || undefined)
  const columns = countParam(query, 'columns') ?? 0
  const rows = countParam(query, 'rows') ?? 0
  const request = {
    containerId: findRunningContainer(pod, container),
    command,
    stdin: booleanParam(query, 'stdin'),
    terminal: booleanParam(query, 'tty'),
    size: columns > 0 && rows > 0 ? { columns, rows } : undefined,
  }
  const running = await reach.startCommand(request).catch((error: unknown) => {
    // It has ended since its status was written.
    throw errorCode(error) === 'RUNTIME_NOT_FOUND' ? notRunning(pod, container) : error
  })
  return (socket) => serveExec(socket, running, clock)
}

async function prepareForward(upgrade: Upgrade): Promise<(socket: Duplex) => Promise<void>> {
  const { signal, reach } = upgrade
  const pod = findRunningPod(upgrade.pods, upgrade.namespace, upgrade.name)
  const port = countParam(upgrade.query, 'port') ?? 0
  if (port < 1 || port > 65_535) throw new ApiError(400, 'port must be a number from 1 to 65535')
  if (pod.status.phase !== 'Running') {
    const message = `unable to forward port because pod is not running. Current status=${pod.status.phase}`
    throw new ApiError(400, message)
  }
  const target = await reach.dial(pod.metadata.uid, port, signal).catch((error: unknown) => {
    throw errorCode(error) === 'PORT_REFUSED' ? new ApiError(503, errorMessage(error)) : error
  })
  return (socket) => joinStreams(socket, target)
}

/** Answers with an error over a connection that no HTTP response stands for, and ends it. */
export function refuse(socket: Duplex, error: unknown): void {
  const status = toStatusObject(error)
  const body = `${JSON.stringify(status)}\n`
  const line = `HTTP/1.1 ${status.code} ${nodeHttp.STATUS_CODES[status.code] ?? 'Error'}`
  const headers = ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]
  socket.end(`${[line, ...headers, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`)
  // A client that can't send on might never read.
  socket.resume()
}
