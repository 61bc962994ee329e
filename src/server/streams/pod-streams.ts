import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { chooseContainer } from '../pods/pod-logs.ts'
import { findRunningContainer, findRunningPod, notRunning } from '../pods/pod-target.ts'
import { ApiError } from '../requests/api-error.ts'
import type { ApiRequest, OpenedStream } from '../requests/api-request.ts'
import { booleanParam, countParam } from '../requests/query.ts'
import type { ApiReaders } from '../requests/readers.ts'
import { findRoute } from '../requests/route.ts'
import type { ExecCodec, ForwardCodec } from './codecs.ts'
import { refuseLong } from './command-limits.ts'

export interface PodStreamsDeps {
  readonly readers: Pick<ApiReaders, 'resources' | 'reach'>
  readonly exec: readonly ExecCodec[]
  readonly forward: readonly ForwardCodec[]
}

interface Opening {
  readonly request: ApiRequest
  readonly connection: Duplex
  readonly namespace: string
  readonly name: string
  readonly query: URLSearchParams
}

/** Serves the connection once it is upgraded. */
type Serve = (connection: Duplex) => Promise<void>

/** Commands in containers and connections to ports, over connections that are upgraded. */
export class PodStreams {
  readonly #deps: PodStreamsDeps

  constructor(deps: PodStreamsDeps) {
    this.#deps = deps
  }

  /** Whether a request asks for one of the codecs. */
  upgrades(headers: IncomingHttpHeaders): boolean {
    return this.#codecs().some(({ codec }) => codec.answer(headers) !== undefined)
  }

  /**
   * Starts the command, or dials the port, that is asked for.
   * @throws ApiError, PoddError
   */
  async open(request: ApiRequest, connection: Duplex): Promise<OpenedStream> {
    const url = new URL(request.target, 'http://podd')
    const routes = this.#codecs().flatMap(({ resource, codec, prepare }) => {
      const headers = codec.answer(request.headers)
      const pattern = `${codec.root}/namespaces/*/pods/*/${resource}`
      return headers === undefined ? [] : [{ method: codec.method, pattern, headers, prepare }]
    })
    refuseOlderCommand(url.pathname, routes)
    const { route, names } = findRoute(routes, request.method, url.pathname)
    const [namespace = '', name = ''] = names
    await this.#deps.readers.resources.pods.whenListed()
    const serve = await route.prepare({ request, connection, namespace, name, query: url.searchParams })
    return { headers: route.headers, serve: () => serve(connection) }
  }

  #codecs() {
    const { exec, forward } = this.#deps
    return [
      ...exec.map((codec) => ({
        resource: 'exec',
        codec,
        prepare: (opening: Opening) => this.#prepareExec(codec, opening),
      })),
      ...forward.map((codec) => ({
        resource: 'portforward',
        codec,
        prepare: (opening: Opening) => this.#prepareForward(codec, opening),
      })),
    ]
  }

  async #prepareExec(codec: ExecCodec, opening: Opening): Promise<Serve> {
    const { request, connection, query } = opening
    const { resources, reach } = this.#deps.readers
    // First of all: a client that still sends doesn't read why it is refused.
    const command = await codec.readCommand({ headers: request.headers, query }, connection)
    if (command.length === 0)
      throw new ApiError(400, 'you must specify at least one command for the container')
    refuseLong(command)
    const pod = findRunningPod(resources.pods.reader, opening.namespace, opening.name)
    const container = chooseContainer(pod, query.get('container') || undefined)
    const columns = countParam(query, 'columns') ?? 0
    const rows = countParam(query, 'rows') ?? 0
    const wanted = {
      containerId: findRunningContainer(pod, container),
      command,
      stdin: booleanParam(query, 'stdin'),
      terminal: booleanParam(query, 'tty'),
      size: columns > 0 && rows > 0 ? { columns, rows } : undefined,
    }
    const running = await reach.startCommand(wanted).catch((error: unknown) => {
      // It has ended since its status was written.
      throw errorCode(error) === 'RUNTIME_NOT_FOUND' ? notRunning(pod, container) : error
    })
    return (upgraded) => codec.serve(upgraded, running)
  }

  #prepareForward(codec: ForwardCodec, { request, query, namespace, name }: Opening): Promise<Serve> {
    const { resources, reach } = this.#deps.readers
    const pod = findRunningPod(resources.pods.reader, namespace, name)
    return codec.prepare(query, (port) => {
      if (pod.status.phase !== 'Running') {
        const message = `unable to forward port because pod is not running. Current status=${pod.status.phase}`
        throw new ApiError(400, message)
      }
      return reach.dial(pod.metadata.uid, port, request.signal).catch((error: unknown) => {
        throw errorCode(error) === 'PORT_REFUSED' ? new ApiError(503, errorMessage(error)) : error
      })
    })
  }
}

/** A `podd` of another version may ask for podd's own protocols where Kubernetes' own are asked for. */
function refuseOlderCommand(pathname: string, routes: readonly { readonly pattern: string }[]): void {
  const isPoddsOwn = routes.length > 0 && routes.every(({ pattern }) => pattern.startsWith('/podd/'))
  if (!isPoddsOwn || !/^\/api\/v1\/namespaces\/[^/]+\/pods\/[^/]+\/(?:exec|portforward)$/u.test(pathname))
    return
  throw new ApiError(
    400,
    `this podd serves its own protocols below /podd/v1, not at ${pathname}`,
    'The podd command is of another version than the daemon: use the same version of both.',
  )
}
