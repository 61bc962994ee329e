/**
 * The server of `npm run bench -- fleet`: one small manifest, a 304 to whoever has it, held back where `push` is its argument. It is
 * told over IPC to break off (`down`: connections are refused; `failing`: 503), to be back (`up`) and to end (`end`), and then sends
 * what it counted.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type ServerState = 'up' | 'failing' | 'down'

export interface ServerReport {
  /** Requests in each second since the start; connections that were refused aren't seen. */
  readonly perSecond: readonly number[]
  readonly unchanged: number
  /** Both ways, of all connections that have ended. */
  readonly bytes: number
}

const holds = process.argv[2] === 'push'
const etag = '"1"'
const manifest = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: fleet\ndata:\n  revision: "1"\n'
const startedMs = performance.now()
const perSecond: number[] = []
let unchanged = 0
let bytes = 0
let state: ServerState = 'up'

const server = createServer((request, response) => {
  const second = Math.floor((performance.now() - startedMs) / 1000)
  perSecond[second] = (perSecond[second] ?? 0) + 1
  if (state === 'failing') return void response.writeHead(503).end()
  const [, asked] = holds ? (/\bwait=(\d+)/u.exec(String(request.headers['prefer'] ?? '')) ?? []) : []
  const headers = { etag, ...(asked !== undefined && { 'preference-applied': `wait=${asked}` }) }
  if (request.headers['if-none-match'] !== etag) return void response.writeHead(200, headers).end(manifest)
  unchanged += 1
  const answer = (): void => void response.writeHead(304, headers).end()
  if (asked === undefined) return answer()
  const timer = setTimeout(answer, Number(asked) * 1000)
  response.on('close', () => clearTimeout(timer))
})
server.on('connection', (socket) => {
  socket.on('close', () => (bytes += socket.bytesRead + socket.bytesWritten))
})

async function listen(port: number): Promise<number> {
  server.listen({ port, host: '127.0.0.1', backlog: 4096 })
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const port = await listen(0)
process.on('message', (message: ServerState | 'end') => {
  if (message === 'end') {
    const report: ServerReport = {
      perSecond: Array.from(perSecond, (count: number | undefined) => count ?? 0),
      unchanged,
      bytes,
    }
    process.send?.(report, () => process.exit())
    return
  }
  const wasDown = state === 'down'
  state = message
  if (wasDown) void listen(port)
  if (state !== 'down') return
  server.close()
  server.closeAllConnections()
})
process.send?.(port)
