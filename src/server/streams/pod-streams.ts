import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  chooseProtocol,
  commandProtocols,
  forwardProtocol,
  portsProtocols,
} from '../../api/remote-command.ts'
import type { PodObject } from '../../api/resource.ts'
import type { Clock } from '../../base/clock.ts'
import { isJsonObject } from '../../base/json.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { openLog } from '../pods/open-log.ts'
import { chooseContainer } from '../pods/pod-logs.ts'
import type { PodLogs } from '../pods/pod-logs.ts'
import { findRunningContainer, findRunningPod, notRunning } from '../pods/pod-target.ts'
import { ApiError } from '../requests/api-error.ts'
import type { ApiRequest, OpenedStream } from '../requests/api-request.ts'
import { booleanParam, countParam } from '../requests/query.ts'
import type { ApiReaders } from '../requests/readers.ts'
import { findRoute, readTarget } from '../requests/route.ts'
import { acceptWebSocket, checkHandshake } from './accept-web-socket.ts'
import { refuseLong } from './command-limits.ts'
import { serveCommand } from './serve-command.ts'

/**
 * How a log is sent over a WebSocket: as binary messages, or in base64 as text, for what runs in a browser
 * (`apimachinery/pkg/util/httpstream/wsstream/stream.go`, 1.36). Without a protocol a client gets binary messages.
 */
const logProtocols = ['binary.k8s.io', 'base64.binary.k8s.io', ''] as const

export interface PodStreamsDeps {
  readonly readers: Pick<ApiReaders, 'resources' | 'reach'>
  readonly logs: PodLogs
  readonly clock: Clock
}

interface Opening {
  readonly request: ApiRequest
  readonly connection: Duplex
  readonly namespace: string
  readonly name: string
  readonly query: URLSearchParams
}

/** Serves the connection from the handshake on; never rejects. */
type Serve = (protocol: string) => Promise<void>

interface StreamRoute {
  readonly method: 'GET' | 'POST'
  readonly pattern: string
  readonly protocols: readonly string[]
  /** Throws ApiError for what can't be served. */
  prepare(opening: Opening): Serve | Promise<Serve>
}

/**
 * Commands in containers, connections to ports and logs, over WebSocket, as kubectl asks for them from 1.30 on. A
 * rejected client retries with SPDY/3.1 and shows the second response, which is the same.
 */
export class PodStreams {
  readonly #deps: PodStreamsDeps

  constructor(deps: PodStreamsDeps) {
    this.#deps = deps
  }

  /** Whether a request asks for a stream. */
  upgrades({ upgrade }: IncomingHttpHeaders): boolean {
    return isWebSocket(upgrade) || isSpdy(upgrade)
  }

  /**
   * Checks that the pod and the container exist.
   * @throws ApiError, PoddError
   */
  async open(request: ApiRequest, connection: Duplex): Promise<OpenedStream> {
    const url = readTarget(request.target)
    const { route, names } = findRoute(this.#routes(), request.method, url.pathname)
    const [namespace = '', name = ''] = names
    await this.#deps.readers.resources.pods.whenListed()
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
    const routes = [
      { resource: 'exec', protocols: commandProtocols, prepare: (opening: Opening) => this.#exec(opening) },
      {
        resource: 'attach',
        protocols: commandProtocols,
        prepare: (opening: Opening) => this.#attach(opening),
      },
      {
        resource: 'portforward',
        protocols: [forwardProtocol, ...portsProtocols],
        prepare: (opening: Opening) => this.#forward(opening),
      },
    ]
    const log = {
      method: 'GET' as const,
      pattern: `${root}/log`,
      protocols: logProtocols,
      prepare: async (opening: Opening) => this.#log(opening),
    }
    return (['GET', 'POST'] as const)
      .flatMap((method) =>
        routes.map(({ resource, protocols, prepare }): StreamRoute => {
          return { method, pattern: `${root}/${resource}`, protocols, prepare }
        }),
      )
      .concat(log)
  }

  async #log({ request, connection, namespace, name, query }: Opening): Promise<Serve> {
    const { readers, logs, clock } = this.#deps
    const { body } = await openLog(readers, logs, { namespace, name, query, clock, signal: request.signal })
    return async (protocol) => {
      const { serveLog } = await import('./serve-log.ts')
      const socket = await acceptWebSocket(request, connection, protocol)
      if (socket !== undefined) await serveLog({ socket, connection }, body, protocol.startsWith('base64'))
    }
  }

  #exec(opening: Opening): Serve {
    const { query } = opening
    const { resources, reach } = this.#deps.readers
    const command = query.getAll('command')
    if (command.length === 0)
      throw new ApiError(400, 'you must specify at least one command for the container')
    refuseLong(command)
    const pod = findRunningPod(resources.pods.reader, opening.namespace, opening.name)
    const container = chooseContainer(pod, query.get('container') || undefined)
    const wanted = { containerId: findRunningContainer(pod, container), command, ...readChoices(query) }
    return this.#serveCommand(opening, () =>
      reach.startCommand(wanted).catch((error: unknown) => {
        // It has ended since its status was derived.
        throw errorCode(error) === 'RUNTIME_NOT_FOUND' ? notRunning(pod, container) : error
      }),
    )
  }

  #attach(opening: Opening): Serve {
    const { query } = opening
    const { resources, reach } = this.#deps.readers
    const pod = findRunningPod(resources.pods.reader, opening.namespace, opening.name)
    const container = chooseContainer(pod, query.get('container') || undefined)
    // Whether the process has a terminal was decided when it started (`pkg/kubelet/kubelet_pods.go` GetAttach, 1.36).
    const terminal = hasTerminal(pod, container)
    const wanted = { ...readChoices(query), containerId: findRunningContainer(pod, container), terminal }
    return this.#serveCommand(opening, () =>
      reach.attach(wanted).catch((error: unknown) => {
        throw errorCode(error) === 'RUNTIME_NOT_FOUND' ? notRunning(pod, container) : error
      }),
    )
  }

  #serveCommand({ request, connection, query }: Opening, start: Parameters<typeof serveCommand>[1]): Serve {
    const wants = { stdout: booleanParam(query, 'stdout'), stderr: booleanParam(query, 'stderr') }
    if (!wants.stdout && !wants.stderr && !booleanParam(query, 'stdin'))
      throw new ApiError(400, 'you must specify at least 1 of stdin, stdout, stderr')
    return async (protocol) => {
      const socket = await acceptWebSocket(request, connection, protocol)
      if (socket === undefined) return
      const saysAll = protocol !== 'channel.k8s.io'
      await serveCommand({ socket, connection, wants, saysAll }, start, this.#deps.clock)
    }
  }

  async #forward({ request, connection, namespace, name, query }: Opening): Promise<Serve> {
    const { resources, reach } = this.#deps.readers
    const find = () => findForwardedPod(resources.pods.reader, namespace, name)
    find()
    // Forwarding survives a restart or a new version of the pod: each connection goes to the current pod of that name.
    const dial = async (port: number): Promise<Duplex> =>
      reach.dial(find().metadata.uid, port, request.signal).catch((error: unknown) => {
        throw errorCode(error) === 'PORT_REFUSED' ? new ApiError(503, errorMessage(error)) : error
      })
    const offered = request.headers['sec-websocket-protocol']
    if (isWebSocket(request.headers.upgrade) && chooseProtocol(offered, [forwardProtocol]) === undefined) {
      const { readPorts, servePorts } = await import('./serve-ports.ts')
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
        import('./serve-forward.ts'),
      ])
      await serveForward(createWebSocketStream(socket), dial)
      connection.destroy()
    }
  }
}

function hasTerminal({ spec }: PodObject, name: string): boolean {
  const lists = [spec['containers'], spec['initContainers'], spec['ephemeralContainers']]
  return lists.some(
    (list) =>
      Array.isArray(list) &&
      list.some(
        (container: unknown) =>
          isJsonObject(container) && container['name'] === name && container['tty'] === true,
      ),
  )
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

function isSpdy(upgrade: string | undefined): boolean {
  return upgrade?.toLowerCase() === 'spdy/3.1'
}
