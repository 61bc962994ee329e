/**
 * What probing costs: podd's prober at 200 HTTP, 200 TCP and 50 gRPC probes a second against one server
 * process, and 10 exec probes a second on real containers, beside a bare loop that sends the same probes with
 * the same clients; turn and turn about, with V8 as it is by default and as bin/podd sets it. Then the same by a
 * whole podd. A few minutes. Run by `npm run bench probes`; `node bench/probes.ts` leaves out what needs root, the
 * exec probes and the whole podd.
 */
import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { percentile } from './podd-under-test.ts'
import type { PoddUnderTest } from './podd-under-test.ts'
import { measureDaemon } from './probes-daemon.ts'
import type { ExecPlace } from './probes-exec.ts'
import type { Ports } from './probes-load.ts'
import type { SideReport } from './probes-side.ts'

const rounds = 3
const maxCpuRatio = 1.5
/** A tenth of the period. */
const maxLateMs = 100
const file = (name: string): URL => new URL(name, import.meta.url)

type Side = 'bare' | 'prober'

interface Message<T> {
  readonly child: ReturnType<typeof fork>
  readonly message: Promise<T>
}

function firstMessage<T>(name: string, args: readonly string[] = [], execArgv: string[] = []): Message<T> {
  const child = fork(file(name), args, { execArgv })
  const message = new Promise<T>((resolve, reject) => {
    child.once('message', (value) => resolve(value as T))
    child.once('exit', (code) => reject(new Error(`${name} ended with ${code}`)))
  })
  return { child, message }
}

/** The settings of V8 with which bin/podd runs the daemon. */
function launcherFlags(): string[] {
  const line = /^run\) exec "\$node" (--.*) "\$main"/mu.exec(readFileSync(file('../bin/podd'), 'utf8'))
  if (line?.[1] === undefined) throw new Error('bin/podd does not say how it runs the daemon')
  return line[1].split(' ')
}

/** Prints the figures; resolves to whether all of them are within bounds. */
export async function benchProbes(real?: {
  readonly podd: PoddUnderTest
  readonly place: ExecPlace
}): Promise<boolean> {
  const place = real?.place
  const execRate = place?.containerIds.length ?? 0
  console.log(
    `probes: 200 http, 200 tcp, 50 grpc and ${execRate} exec probes a second, ${rounds} turns with a bare loop`,
  )
  const servers = firstMessage<Ports>('./probes-servers.ts')
  try {
    const ports = await servers.message
    const args = [JSON.stringify(ports), JSON.stringify(place ?? null)]
    const flags = launcherFlags()
    const plain = await compareSides('V8 by default', args, [])
    const asPodd = await compareSides(`V8 as in bin/podd (${flags.join(' ')})`, args, flags)
    const daemon = real === undefined ? undefined : await measureDaemon(real.podd, ports)
    if (daemon !== undefined) printRatio('the whole podd', daemon, asPodd.bareMs)
    const ratios = [plain, asPodd].map(({ proberMs, bareMs }) => proberMs / bareMs)
    if (daemon !== undefined) ratios.push(daemon / asPodd.bareMs)
    return (
      ratios.every((ratio) => ratio <= maxCpuRatio) && [plain, asPodd].every(({ p99 }) => p99 < maxLateMs)
    )
  } finally {
    servers.child.disconnect()
  }
}

interface Comparison {
  /** CPU milliseconds of one probe. */
  readonly proberMs: number
  readonly bareMs: number
  /** By how many milliseconds probes start late. */
  readonly p99: number
}

async function compareSides(title: string, args: readonly string[], flags: string[]): Promise<Comparison> {
  const sides: Record<Side, SideReport[]> = { bare: [], prober: [] }
  for (let round = 0; round < rounds; round += 1) {
    for (const side of ['bare', 'prober'] as const) {
      sides[side].push(await firstMessage<SideReport>('./probes-side.ts', [side, ...args], flags).message)
    }
  }
  console.log(`  ${title}`)
  for (const side of ['bare', 'prober'] as const) for (const report of sides[side]) printSide(side, report)
  const [proberMs, bareMs] = [cpuMsPerProbe(sides.prober), cpuMsPerProbe(sides.bare)]
  printRatio('prober', proberMs, bareMs)
  const p99 = printLateness('prober', sides.prober)
  // A host that is busy with other things lets nobody start in time.
  printLateness('bare loop', sides.bare)
  return { proberMs, bareMs, p99 }
}

function printLateness(what: string, reports: readonly SideReport[]): number {
  const late = reports.flatMap(({ latenessMs }) => latenessMs)
  const [p50, p99] = [percentile(late, 0.5), percentile(late, 0.99)]
  console.log(
    `    ${what} starts late by: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, of ${late.length} ` +
      `(the prober at most ${maxLateMs} ms)`,
  )
  return p99
}

function printRatio(what: string, poddMs: number, bareMs: number): void {
  console.log(
    `    CPU a probe: ${what} ${poddMs.toFixed(3)} ms, bare ${bareMs.toFixed(3)} ms, ` +
      `ratio ${(poddMs / bareMs).toFixed(2)} (at most ${maxCpuRatio.toFixed(2)})`,
  )
}

function printSide(side: Side, { cpuSeconds, seconds, probes, failed, rssMiB }: SideReport): void {
  console.log(
    `    ${side.padEnd(6)} ${(probes / seconds).toFixed(0)} probes/s, ${cpuSeconds.toFixed(2)} CPU s in ` +
      `${seconds.toFixed(1)} s, ${failed} failed, RSS ${rssMiB.toFixed(0)} MiB`,
  )
}

function cpuMsPerProbe(reports: readonly SideReport[]): number {
  const sum = (of: (report: SideReport) => number): number =>
    reports.reduce((total, report) => total + of(report), 0)
  return (sum(({ cpuSeconds }) => cpuSeconds) / sum(({ probes }) => probes)) * 1_000
}

if (process.argv[1] === import.meta.filename) process.exitCode = (await benchProbes()) ? 0 : 1
