/**
 * A server for podd's URLs, to begin with: node examples/source-server.ts DIRECTORY [PORT]
 * It answers /NAME with DIRECTORY/NAME, a 304 while the file is what the client has, and holds that answer back where the
 * client says how long it waits (`Prefer: wait=SECONDS`). docs/SOURCES.md has the protocol.
 */
import { createHash } from 'node:crypto'
import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'

const [directory = '.', port = '8080'] = process.argv.slice(2)
/** What waits for the next change of the directory. */
const waiting = new Set<() => void>()

/** Resolves at the next change, or after some time. */
function untilChange(seconds: number): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      waiting.delete(end)
      resolve()
    }
    const timer = setTimeout(end, seconds * 1000)
    waiting.add(end)
  })
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const name = decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname).slice(1)
  if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]*$/u.test(name)) return void response.writeHead(404).end()
  const [, asked] = /\bwait=(\d+)/u.exec(String(request.headers['prefer'] ?? '')) ?? []
  const deadlineMs = Date.now() + Math.min(Number(asked ?? 0), 300) * 1000
  if (asked !== undefined) response.setHeader('preference-applied', `wait=${asked}`)
  for (;;) {
    const changed = untilChange(Math.max(0, deadlineMs - Date.now()) / 1000)
    const text = await readFile(join(directory, name)).catch(() => undefined)
    if (text === undefined) return void response.writeHead(404).end()
    const etag = `"${createHash('sha256').update(text).digest('hex')}"`
    if (request.headers['if-none-match'] !== etag) {
      response.writeHead(200, { etag, 'content-type': 'application/yaml' }).end(text)
      return
    }
    if (Date.now() >= deadlineMs || response.destroyed) return void response.writeHead(304, { etag }).end()
    await changed
  }
}

watch(directory, () => waiting.forEach((wake) => wake()))
const server = createServer((request, response) => void answer(request, response))
server.listen(Number(port), '127.0.0.1', () => console.log(`serving ${directory} at`, server.address()))
