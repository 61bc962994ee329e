/**
 * What probing costs: podd's prober at 200 HTTP, 200 TCP and 50 gRPC probes a second against one server
 * process, and 10 exec probes a second on real containers, beside a bare loop that sends the same probes with
 * the same clients; turn and turn about, with V8 as bin/podd sets it and as it is by default. About 2 minutes.
 * Run by `npm run bench probes`; `node bench/probes.ts` leaves the exec probes out and needs no root.
 */
import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { percentile } from './podd-under-test.ts'
import type { ExecPlace } from './probes-exec.ts'
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
export async function benchProbes(place?: ExecPlace): Promise<boolean> {
  const execRate = place?.containerIds.length ?? 0
  console.log(
    `probes: 200 http, 200 tcp, 50 grpc and ${execRate} exec probes a second, ${rounds} turns with a bare loop`,
  )
  const servers = firstMessage<unknown>('./probes-servers.ts')
  try {
    const args = [JSON.stringify(await servers.message), JSON.stringify(place ?? null)]
    const flags = launcherFlags()
    const asPodd = await compareSides(`V8 as in bin/podd (${flags.join(' ')})`, args, flags)
    const plain = await compareSides('V8 by default', args, [])
    return asPodd && plain
  } finally {
    servers.child.disconnect()
  }
}

async function compareSides(title: string, args: readonly string[], flags: string[]): Promise<boolean> {
  const sides: Record<Side, SideReport[]> = { bare: [], prober: [] }
  for (let round = 0; round < rounds; round += 1) {
    for (const side of ['bare', 'prober'] as const) {
      sides[side].push(await firstMessage<SideReport>('./probes-side.ts', [side, ...args], flags).message)
    }
  }
  console.log(`  ${title}`)
  for (const side of ['bare', 'prober'] as const) for (const report of sides[side]) printSide(side, report)
  const ratio = cpuMsPerProbe(sides.prober) / cpuMsPerProbe(sides.bare)
  const late = sides.prober.flatMap(({ latenessMs }) => latenessMs)
  const p99 = percentile(late, 0.99)
  console.log(
    `    CPU a probe: podd ${cpuMsPerProbe(sides.prober).toFixed(3)} ms, bare ` +
      `${cpuMsPerProbe(sides.bare).toFixed(3)} ms, ratio ${ratio.toFixed(2)} (at most ${maxCpuRatio.toFixed(2)})`,
  )
  console.log(
    `    starts late by: p50 ${percentile(late, 0.5).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms ` +
      `(at most ${maxLateMs} ms), of ${late.length}`,
  )
  return ratio <= maxCpuRatio && p99 < maxLateMs
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
