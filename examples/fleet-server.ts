/**
 * A staged rollout for hosts with podd, as an example: node examples/fleet-server.ts DIRECTORY [PORT]
 * It answers /pods with DIRECTORY/old.yaml, and a share of the hosts with DIRECTORY/new.yaml: the next share once all of the
 * one before run it and are healthy, none any more once too many of them failed. It goes by what each request tells (Podd-…),
 * takes reports at /report, and shows a table at /. docs/FLEET.md has the protocol.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

/** Percent of the hosts that get new.yaml, one step after the other. */
const cohorts = [5, 100]
/** The share of these that may fail. */
const tolerated = 0.2
const maxReportBytes = 1024 * 1024

interface Host {
  version: string
  revision: string
  health: string
  /** It was given new.yaml; whether that failed there. */
  isChosen: boolean
  hasFailed: boolean
  pods: string
  seenMs: number
}

const [directory = '.', port = '8080'] = process.argv.slice(2)
const hosts = new Map<string, Host>()
const rollout = { revision: '', step: 0, isStopped: false }

const read = (name: string): Promise<string | undefined> =>
  readFile(join(directory, name), 'utf8').catch(() => undefined)
const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Another new.yaml begins from the first step; without one there is no rollout. */
function begin(revision: string): void {
  if (revision === rollout.revision) return
  Object.assign(rollout, { revision, step: 0, isStopped: false })
  for (const host of hosts.values()) Object.assign(host, { isChosen: false, hasFailed: false })
}

function note(request: IncomingMessage): Host | undefined {
  const header = (name: string): string => String(request.headers[name] ?? '').slice(0, 100)
  const node = header('podd-node')
  if (!/^[\w.-]+$/u.test(node)) return undefined
  const fresh = { isChosen: false, hasFailed: false, pods: '' }
  const host: Host = {
    ...(hosts.get(node) ?? fresh),
    version: header('podd-version'),
    revision: header('podd-revision'),
    health: header('podd-health'),
    seenMs: Date.now(),
  }
  hosts.set(node, host)
  if (rollout.revision !== '' && host.revision === rollout.revision) host.isChosen = true
  // A host that has taken it back runs the old one again, and still says that the new one failed.
  if (host.isChosen && host.health === 'failed') host.hasFailed = true
  return host
}

/** Whether this host gets new.yaml. */
function choose(host: Host): boolean {
  const chosen = [...hosts.values()].filter(({ isChosen }) => isChosen)
  if (chosen.filter(({ hasFailed }) => hasFailed).length > chosen.length * tolerated) rollout.isStopped = true
  if (rollout.isStopped) return false
  const size = (): number => Math.ceil((hosts.size * (cohorts[rollout.step] ?? 100)) / 100)
  const isDone = chosen.every(({ revision, health }) => revision === rollout.revision && health === 'healthy')
  if (isDone && chosen.length >= size() && rollout.step < cohorts.length - 1) rollout.step += 1
  // One that is in trouble already would tell nothing of what is new.
  if (!host.isChosen && host.health !== 'failed' && chosen.length < size()) host.isChosen = true
  return host.isChosen
}

async function answerPods(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [before, after] = await Promise.all([read('old.yaml'), read('new.yaml')])
  begin(after === undefined ? '' : hash(after))
  const host = note(request)
  const text = after !== undefined && host !== undefined && choose(host) ? after : before
  if (text === undefined) return void response.writeHead(404).end()
  const etag = `"${hash(text)}"`
  if (request.headers['if-none-match'] === etag) return void response.writeHead(304, { etag }).end()
  response.writeHead(200, { etag, 'content-type': 'application/yaml' }).end(text)
}

async function takeReport(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) if (Buffer.concat(chunks).length < maxReportBytes) chunks.push(chunk)
  const body = gunzipSync(Buffer.concat(chunks), { maxOutputLength: maxReportBytes })
  const { node, pods }: { node: string; pods: { ready: boolean }[] } = JSON.parse(body.toString())
  const host = hosts.get(node)
  if (host !== undefined) host.pods = `${pods.filter(({ ready }) => ready).length}/${pods.length}`
  response.writeHead(204).end()
}

function table(): string {
  const share = `${cohorts[rollout.step]} %`
  const state =
    rollout.revision === '' ? 'no rollout' : rollout.isStopped ? `stopped at ${share}` : `at ${share}`
  const rows = [...hosts].map(([node, { version, revision, health, isChosen, hasFailed, pods, seenMs }]) => {
    const verdict = hasFailed ? 'Failed' : isChosen && revision === rollout.revision ? 'Updated' : '-'
    const age = `${Math.round((Date.now() - seenMs) / 1000)}s`
    return [node, version, revision.slice(0, 12), health, verdict, pods, age]
  })
  const lines = [['NODE', 'VERSION', 'REVISION', 'HEALTH', 'ROLLOUT', 'READY', 'SEEN'], ...rows]
  return `rollout: ${state}\n${lines.map((line) => line.map((cell) => cell.padEnd(13)).join(' ')).join('\n')}\n`
}

const server = createServer((request, response) => {
  const path = new URL(request.url ?? '/', 'http://localhost').pathname
  const work = path === '/pods' ? answerPods : path === '/report' ? takeReport : undefined
  if (work === undefined) return void response.end(table())
  work(request, response).catch(() => void response.writeHead(400).end())
})
server.listen(Number(port), '127.0.0.1', () => console.log(`serving ${directory} at`, server.address()))
