import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { makeScratch } from './source-rig.ts'

const example = join(import.meta.dirname, '../../../examples/fleet-server.ts')
const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A host as its podd would do: what is bad it takes back, and says so until it is given something else. */
class SimulatedHost {
  readonly name: string
  runs = ''
  offered = ''
  health = ''

  constructor(name: string) {
    this.name = name
  }

  async ask(url: string): Promise<void> {
    const known = this.runs === '' ? {} : { 'podd-revision': hash(this.runs), 'podd-health': this.health }
    const headers = { 'podd-node': this.name, 'podd-version': '1.0.0', ...known }
    const answer = await fetch(`${url}/pods`, {
      headers: { ...headers, ...(this.offered !== '' && { 'if-none-match': `"${hash(this.offered)}"` }) },
    })
    if (answer.status === 304) return
    this.offered = await answer.text()
    const isBad = this.offered.includes('bad')
    if (!isBad) this.runs = this.offered
    this.health = isBad ? 'failed' : 'healthy'
  }
}

let directory = ''
let removeScratch = async (): Promise<void> => undefined
let stop = async (): Promise<void> => undefined
let url = ''
let hosts: readonly SimulatedHost[] = []

beforeEach(async () => {
  const made = await makeScratch()
  directory = made.path
  removeScratch = made.remove
  await writeFile(join(directory, 'old.yaml'), 'old')
  const child = spawn(process.execPath, [example, directory, '0'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  url = `http://127.0.0.1:${/port: (\d+)/u.exec(line.toString())?.[1]}`
  stop = async () => {
    const closed = once(child, 'close')
    child.kill()
    await closed
  }
  hosts = Array.from({ length: 200 }, (_, index) => new SimulatedHost(`host-${index}`))
  await round()
})

afterEach(async () => {
  await stop()
  await removeScratch()
})

/** Each host asks once. */
async function round(): Promise<void> {
  for (const host of hosts) await host.ask(url)
}

const running = (text: string): number => hosts.filter(({ runs }) => runs === text).length
const table = async (): Promise<string> => (await fetch(url)).text()

it('gives a good revision to a twentieth of the hosts, and to all once these are healthy', async () => {
  expect(running('old')).toBe(200)
  await writeFile(join(directory, 'new.yaml'), 'new')
  await round()
  expect(running('new')).toBe(10)
  expect(await table()).toContain('rollout: at 5 %')
  // The last of them tells in the next round that it is healthy.
  await round()
  await round()
  expect(running('new')).toBe(200)
  await round()
  const text = await table()
  expect(text).toContain('rollout: at 100 %')
  expect(text.match(/ healthy +Updated /gu)).toHaveLength(200)
})

it('stops a bad revision at the first hosts, and all 200 run the old one', async () => {
  await writeFile(join(directory, 'new.yaml'), 'bad')
  for (let times = 0; times < 4; times += 1) await round()
  expect(running('old')).toBe(200)
  const text = await table()
  expect(text).toContain('rollout: stopped at 5 %')
  const failed = text.match(/ Failed /gu)?.length ?? 0
  expect(failed).toBeGreaterThan(0)
  expect(failed).toBeLessThanOrEqual(10)
  // All are given the old one again, and so are healthy.
  expect(hosts.every(({ offered, health }) => offered === 'old' && health === 'healthy')).toBe(true)
  await writeFile(join(directory, 'new.yaml'), 'new')
  for (let times = 0; times < 4; times += 1) await round()
  expect(running('new')).toBe(200)
})

it('goes on with a rollout that it knows nothing of, by what the hosts tell', async () => {
  await writeFile(join(directory, 'new.yaml'), 'new')
  for (const host of hosts.slice(0, 10)) Object.assign(host, { runs: 'new', offered: 'new' })
  await round()
  await round()
  expect(running('new')).toBe(200)
  await rm(join(directory, 'new.yaml'))
  await round()
  expect(running('old')).toBe(200)
})

it('takes reports, and shows how many pods are ready', async () => {
  await round()
  const body = gzipSync(JSON.stringify({ node: 'host-7', pods: [{ ready: true }, { ready: false }] }))
  expect((await fetch(`${url}/report`, { method: 'POST', body })).status).toBe(204)
  expect((await fetch(`${url}/report`, { method: 'POST', body: 'none' })).status).toBe(400)
  expect(await table()).toMatch(/^host-7 .* healthy +- +1\/2 /mu)
})

it('has fewer than 120 lines', async () => {
  expect((await readFile(example, 'utf8')).split('\n').length).toBeLessThan(120)
})
