import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { single } from '../figures.ts'
import type { Figure } from '../figures.ts'
import type { HostsReport } from './fleet-hosts.ts'
import type { ServerReport, ServerState } from './fleet-server.ts'

export interface FleetOptions {
  readonly hosts: number
  /** Of which the server is away for a twelfth in the middle: half of that it refuses connections, half it answers 503. */
  readonly seconds: number
  /** Whether the server holds its answers back. */
  readonly pushes: boolean
}

/** How long the first requests of hosts that start together, and those after an outage, are looked at by themselves. */
const settlingSeconds = 60

/** A thousand of podd's HTTP sources, started together, and one server: how many requests it gets in each second. */
export async function benchFleet({ hosts, seconds, pushes }: FleetOptions): Promise<readonly Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), 'podd-fleet-'))
  const server = fork(new URL('fleet-server.ts', import.meta.url), pushes ? ['push'] : [])
  let clients: ChildProcess | undefined
  try {
    const [port] = (await once(server, 'message')) as [number]
    const startedMs = performance.now()
    const until = async (second: number): Promise<void> => {
      await sleep(Math.max(0, startedMs + second * 1000 - performance.now()))
    }
    clients = fork(new URL('fleet-hosts.ts', import.meta.url), [
      `http://127.0.0.1:${port}/`,
      `${hosts}`,
      directory,
    ])
    const outage = Math.round(seconds / 12)
    const downAt = Math.round((seconds - outage) / 2)
    const upAt = downAt + outage
    const steadyFrom = Math.min(settlingSeconds, Math.floor(downAt / 2))
    await until(steadyFrom)
    const before = await ask(clients)
    await until(downAt)
    const after = await ask(clients)
    tell(server, 'down')
    await until(downAt + outage / 2)
    tell(server, 'failing')
    await until(upAt)
    tell(server, 'up')
    await until(seconds)
    const reported = once(server, 'message')
    tell(server, 'end')
    const [report] = (await reported) as [ServerReport]
    const counts = (from: number, to: number): readonly number[] =>
      Array.from({ length: to - from }, (_each, at) => report.perSecond[from + at] ?? 0)
    const steady = counts(steadyFrom, downAt)
    const asked = steady.reduce((sum, count) => sum + count, 0)
    const settledAt = Math.min(upAt + settlingSeconds, seconds)
    const name = `${hosts} hosts, ${pushes ? 'push' : 'polling'}`
    const total = report.perSecond.reduce((sum, count) => sum + count, 0)
    return [
      rates(`${name}: all ${seconds} s`, counts(0, seconds)),
      rates(`${name}: the first ${steadyFrom} s`, counts(0, steadyFrom)),
      rates(`${name}: before the outage`, steady),
      rates(`${name}: in the outage, 503`, counts(Math.ceil(downAt + outage / 2), upAt)),
      rates(`${name}: the ${settledAt - upAt} s after it`, counts(upAt, settledAt)),
      rates(`${name}: then`, counts(settledAt, seconds)),
      single(`${name}: hosts with a copy, of ${hosts}`, 'hosts', before.ready),
      single(`${name}: CPU of an unchanged answer, of ${asked}`, 'ms', (after.cpuMs - before.cpuMs) / asked),
      single(`${name}: an answer, both ways, of ${total}`, 'KiB', report.bytes / total / 1024),
    ]
  } finally {
    clients?.kill()
    server.kill()
    rmSync(directory, { recursive: true, force: true })
  }
}

function tell(server: ChildProcess, state: ServerState | 'end'): void {
  server.send(state)
}

async function ask(clients: ChildProcess): Promise<HostsReport> {
  clients.send('report')
  const [report] = (await once(clients, 'message')) as [HostsReport]
  return report
}

/** Requests a second: mean, least, median, 99 of 100, most. */
function rates(name: string, counts: readonly number[]): Figure {
  const mean = counts.reduce((sum, count) => sum + count, 0) / Math.max(1, counts.length)
  const sorted = counts.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  const spread = `min ${at(0)}, p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)}`
  return single(`${name}, requests a second (${spread})`, '/s', mean)
}
