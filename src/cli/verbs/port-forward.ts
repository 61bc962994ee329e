import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { forwardProtocol } from '../../api/remote-command.ts'
import type { PodObject } from '../../api/resource.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { joinStreams } from '../../base/http.ts'
import { objectsAt, textAt } from '../../base/json.ts'
import { whenAborted } from '../../base/waits.ts'
import { SpdySession } from '../../runtime/spdy-session.ts'
import type { SpdyStream } from '../../runtime/spdy-session.ts'
import { UsageError } from '../arguments/parse-arguments.ts'
import { namespaceFlag, podPath, readNamespace, readPodName } from '../arguments/pod-argument.ts'
import type { Verb, VerbContext } from '../arguments/verb.ts'

export const portForwardVerb: Verb = {
  usage: 'port-forward POD [LOCAL:]REMOTE... [--address ADDRESS]',
  help: `Forwards ports of this host to a pod, until Ctrl-C. Connections arrive on the pod's loopback device, so servers
that listen only there are reachable too. Each connection goes to the pod that has the name at that time: a restart or a
new version of the pod doesn't end the forwarding.`,
  flags: [
    {
      name: 'address',
      label: 'ADDRESS',
      doc: 'Listen at these addresses, separated by commas; by default localhost (127.0.0.1 and ::1).',
    },
    namespaceFlag,
  ],
  examples: [
    ['port-forward web 8080:80', 'http://localhost:8080 is port 80 of the pod'],
    ['port-forward web 5432', 'the same port on both sides'],
    ['port-forward web :80', 'any free local port'],
    ['port-forward web 8080:http --address 0.0.0.0', 'a named port, for other hosts too'],
  ],
  async run(context) {
    const { args, client, signal } = context
    const [first, ...words] = args.positionals
    if (first === undefined || words.length === 0)
      throw new UsageError('port-forward needs a pod and a port', 'podd port-forward POD [LOCAL:]REMOTE')
    const name = readPodName(first, 'port-forward')
    const asked = words.map((word) => parsePort(word))
    const namespace = readNamespace(args)
    const pod = await client.get<PodObject>(podPath(namespace, name), signal)
    const path = `${podPath(namespace, name)}/portforward`
    const ports = asked.map(({ local, remote }) => {
      const port = typeof remote === 'number' ? remote : namedPort(pod, remote)
      return { local: local ?? port, remote: port }
    })
    if (pod.status.phase !== 'Running') {
      const { phase } = pod.status
      throw new PoddError(
        'PORT_FORWARD_FAILED',
        `unable to forward port because pod is not running. Current status=${phase}`,
      )
    }
    const listeners: PortListener[] = []
    try {
      for (const port of ports) listeners.push(...(await openPort(context, path, port)))
      await whenAborted(signal)
    } finally {
      for (const listener of listeners) listener.close()
    }
    return { kind: 'done', exitCode: 0 }
  },
}

interface AskedPort {
  /** Undefined: the same as the remote one; 0: any. */
  readonly local: number | undefined
  readonly remote: number | string
}

/** `8080:80`, `80`, `:80`, `8080:http`. Throws UsageError. */
function parsePort(word: string): AskedPort {
  const parts = /^(?:(\d*):)?([a-z0-9-]+)$/iu.exec(word)
  const [, local, remote = ''] = parts ?? []
  const isNumber = /^\d+$/u.test(remote)
  if (
    parts === null ||
    (isNumber && !isPort(Number(remote))) ||
    (local ?? '') === '0' ||
    !isPort(Number(local ?? 1), 0)
  )
    throw new UsageError(
      `${JSON.stringify(word)} is not a port`,
      'Write LOCAL:REMOTE, REMOTE or :REMOTE, with numbers from 1 to 65535.',
    )
  return {
    local: local === undefined ? undefined : Number(local),
    remote: isNumber ? Number(remote) : remote,
  }
}

function isPort(number: number, least = 1): boolean {
  return Number.isInteger(number) && number >= least && number <= 65_535
}

/** The number of the container port of this name. Throws UsageError. */
function namedPort(pod: PodObject, name: string): number {
  const containers = [...objectsAt(pod.spec, 'containers'), ...objectsAt(pod.spec, 'initContainers')]
  const ports = containers.flatMap((container) => objectsAt(container, 'ports'))
  const found = ports.find((port) => textAt(port, 'name') === name)
  const number = Number(found === undefined ? '' : textAt(found, 'containerPort'))
  if (isPort(number)) return number
  throw new UsageError(`pod ${pod.metadata.name} has no port named ${JSON.stringify(name)}`)
}

/** Listens at each address. Throws PoddError PORT_FORWARD_FAILED where it can't. */
async function openPort(
  { args, client, signal, stdio, notify }: VerbContext,
  path: string,
  { local, remote }: { readonly local: number; readonly remote: number },
): Promise<readonly PortListener[]> {
  const say = (line: string): void => void stdio.stdout.write(`${line}\n`)
  const opened: PortListener[] = []
  for (const { host, isOptional } of addressesOf(args.value('address') ?? 'localhost')) {
    const port = opened[0]?.port ?? local
    try {
      const listener = await listenAt(
        { host, port },
        async () => openTunnel(await client.openWebSocket(path, forwardProtocol, signal), remote),
        (problem) => {
          if (problem === undefined) say(`Handling connection for ${opened[0]?.port ?? local}`)
          else notify(`error forwarding port ${remote}: ${errorMessage(problem)}`)
        },
      )
      opened.push(listener)
      say(`Forwarding from ${host.includes(':') ? `[${host}]` : host}:${listener.port} -> ${remote}`)
    } catch (error) {
      // A host without IPv6 has no ::1.
      const isMissing = ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes(errorCode(error) ?? '')
      if (isOptional && opened.length > 0 && isMissing) continue
      for (const listener of opened) listener.close()
      const message = `unable to listen on port ${port}: ${errorMessage(error)}`
      throw new PoddError('PORT_FORWARD_FAILED', message, { cause: error })
    }
  }
  return opened
}

function addressesOf(text: string): readonly { readonly host: string; readonly isOptional: boolean }[] {
  return text
    .split(',')
    .filter((host) => host !== '')
    .flatMap((host) =>
      host === 'localhost'
        ? [
            { host: '127.0.0.1', isOptional: false },
            { host: '::1', isOptional: true },
          ]
        : [{ host, isOptional: false }],
    )
}

interface PortListener {
  readonly port: number
  close(): void
}

/**
 * Listens at one local address and joins each connection with one that `open` gives. Rejects where it can't listen.
 * @param port 0 for any free one
 */
function listenAt(
  place: { readonly host: string; readonly port: number },
  open: () => Promise<ForwardedConnection>,
  onConnection: (problem: unknown) => void,
): Promise<PortListener> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    open().then(
      ({ data, problem }) => {
        onConnection(undefined)
        void problem.then((found) => {
          if (found !== undefined) onConnection(found)
        })
        socket.resume()
        return joinStreams(socket, data)
      },
      (error: unknown) => {
        socket.destroy()
        onConnection(error)
      },
    )
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(place, () => {
      const address = server.address()
      resolve({
        port: typeof address === 'string' ? 0 : (address?.port ?? 0),
        close() {
          server.close()
          for (const socket of sockets) socket.destroy()
        },
      })
    })
  })
}

interface ForwardedConnection {
  readonly data: Duplex
  /** Resolves with the error, if any, once the connection has ended. */
  readonly problem: Promise<PoddError | undefined>
}

/** The longest message about a failed connection, in characters. */
const maxProblemBytes = 16 * 1024

/** Opens a connection to a port over a WebSocket that carries SPDY/3.1. */
async function openTunnel(socket: WebSocket, port: number): Promise<ForwardedConnection> {
  const { createWebSocketStream } = await import('ws')
  const session = new SpdySession(createWebSocketStream(socket), (stream) => stream.destroy())
  const headers = { port: String(port), requestid: '0' }
  const error = session.open({ streamtype: 'error', ...headers })
  const data = session.open({ streamtype: 'data', ...headers })
  error.end()
  const problem = readProblem(error).then((text) =>
    text === '' ? undefined : new PoddError('PORT_FORWARD_FAILED', text),
  )
  void problem.then(() => {
    if (data.closed) session.close()
    else data.once('close', () => session.close())
  })
  return { data, problem }
}

async function readProblem(stream: SpdyStream): Promise<string> {
  let text = ''
  try {
    for await (const chunk of stream) {
      if (Buffer.isBuffer(chunk) && text.length < maxProblemBytes) text += chunk.toString('utf8')
    }
  } catch {
    // The connection to the daemon broke: the other stream has ended as well.
  }
  return text
}
