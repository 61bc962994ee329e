import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { heldMemory } from '../../support/held-memory.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { podObject } from '../../support/pod-objects.ts'
import { slowness } from '../../support/slowness.ts'
import { readKubeconfig } from '../../support/tls-client.ts'

/** How many watch over TLS, of which every second one never reads. */
const watchers = 200
/** How many lists are asked for meanwhile, by how many clients; a long run sets more. */
const lists = Number(process.env['PODD_LISTS'] ?? 400)
const askers = 8

const mebibyte = 1024 * 1024
const changeBytes = 100_000
const mostChanges = 120

interface Watcher {
  readonly socket: TLSSocket
  readBytes: number
  isCut: boolean
}

let rig: ApiRig
let clients: Watcher[]

beforeEach(async () => {
  clients = []
  rig = new ApiRig(await mkdtemp(join(tmpdir(), 'podd-crowd-')))
  await rig.listen({
    address: { host: '127.0.0.1', port: 0 },
    names: ['127.0.0.1'],
    rootDir: rig.directory,
    tokenFile: undefined,
    report: () => {},
  })
  for (let index = 0; index < 20; index += 1) rig.pods.put(podObject({ name: `pod-${index}` }))
})
afterEach(async () => {
  for (const { socket } of clients) socket.destroy()
  await rig.close(0)
  await rm(rig.directory, { recursive: true, force: true })
})

/** What this process holds, its garbage not counted: both ends of each connection. */
function heldMiB(): number {
  const { heapUsed, external } = heldMemory()
  return (heapUsed + external) / mebibyte
}

const rssMiB = (): number => process.memoryUsage.rss() / mebibyte

async function watch(options: ConnectionOptions, reads: boolean): Promise<Watcher> {
  const socket = connectTls(options)
  const watcher: Watcher = { socket, readBytes: 0, isCut: false }
  socket.on('error', () => {})
  socket.once('close', () => (watcher.isCut = true))
  await once(socket, 'secureConnect')
  socket.write('GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: podd\r\n\r\n')
  if (reads) socket.on('data', (chunk: Buffer) => (watcher.readBytes += chunk.length))
  else socket.pause()
  return watcher
}

/** Asks for lists one after the other; gives how long each took, in milliseconds. */
async function askForLists(count: number): Promise<readonly number[]> {
  const socket = connect(rig.socketPath)
  const times: number[] = []
  for (let asked = 0; asked < count; asked += 1) {
    const from = performance.now()
    socket.write('GET /api/v1/pods?limit=500 HTTP/1.1\r\nHost: podd\r\n\r\n')
    let answer = ''
    while (!answer.endsWith('0\r\n\r\n')) answer += String((await once(socket, 'data'))[0])
    if (!answer.startsWith('HTTP/1.1 200 ')) throw new Error(answer)
    times.push(performance.now() - from)
  }
  socket.destroy()
  return times
}

it(
  `${watchers} watch over TLS, of which half never read, while ${lists} lists are answered`,
  async () => {
    const { server, ca, cert, key } = readKubeconfig((await rig.call('/podd/v1/kubeconfig', 'POST')).text)
    const options = { host: '127.0.0.1', port: Number(new URL(server).port), ca, cert, key }
    const held = [heldMiB()]
    const rss = [rssMiB()]
    const measure = (): void => {
      held.push(heldMiB())
      rss.push(rssMiB())
    }
    for (let client = 0; client < watchers; client += 1) clients.push(await watch(options, client % 2 === 0))
    await expect.poll(() => rig.pods.watchers).toBe(watchers)
    measure()
    const readers = clients.filter((_, index) => index % 2 === 0)
    const each = await Promise.all(Array.from({ length: askers }, () => askForLists(lists / askers)))
    const times = each.flat().toSorted((a, b) => a - b)
    measure()
    // A client that doesn't read doesn't see its end either.
    const isOver = (): boolean => rig.pods.watchers <= watchers / 2
    let changes = 0
    for (; changes < mostChanges && !isOver(); changes += 1) {
      const note = `${changes} ${'x'.repeat(changeBytes)}`
      rig.pods.put(podObject({ name: 'web', metadata: { annotations: { note } } }))
      const expected = (changes + 1) * changeBytes
      await expect
        .poll(() => readers.every(({ readBytes }) => readBytes > expected), { timeout: 60_000 * slowness })
        .toBe(true)
      if (changes % 10 === 9) measure()
    }
    await expect.poll(() => rig.pods.watchers).toBe(watchers / 2)
    measure()
    const at = (part: number): string => (times[Math.floor((times.length - 1) * part)] ?? 0).toFixed(1)
    const show = (figures: readonly number[]): string => figures.map((figure) => figure.toFixed(0)).join(', ')
    process.stdout.write(
      `${watchers} watch, ${watchers - rig.pods.watchers} of them were cut off after ${changes} changes of ${changeBytes} bytes; ` +
        `held ${show(held)} MiB, RSS ${show(rss)} MiB (both ends); ${times.length} lists took ${at(0.5)} ms (median), ` +
        `${at(0.99)} ms (99 %), ${at(1)} ms (longest)\n`,
    )
    expect(times).toHaveLength(lists)
    expect(readers.filter(({ isCut }) => isCut)).toEqual([])
    const [, connected = 0] = held
    // One copy of what waits for each would be 100 times 8 MiB.
    expect(Math.max(...held) - connected).toBeLessThan(100)
  },
  240_000 * slowness,
)
