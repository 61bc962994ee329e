/**
 * What probing costs: podd's prober at 200 HTTP, 200 TCP and 50 gRPC probes a second, beside a bare loop
 * that sends the same probes with the same clients; both against one server process, turn and turn about.
 * Run by `node bench/probes.ts`; about 30 s.
 */
import { fork } from 'node:child_process'
import type { SideReport } from './probes-side.ts'

const rounds = 3
const file = (name: string): URL => new URL(name, import.meta.url)

function firstMessage<T>(name: string, args: readonly string[] = []) {
  const child = fork(file(name), args)
  const message = new Promise<T>((resolve, reject) => {
    child.once('message', (value) => resolve(value as T))
    child.once('exit', (code) => reject(new Error(`${name} ended with ${code}`)))
  })
  return { child, message }
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** Prints the figures; resolves to whether all of them are within bounds. */
export async function benchProbes(): Promise<boolean> {
  const servers = firstMessage<unknown>('./probes-servers.ts')
  const ports = JSON.stringify(await servers.message)
  const sides: Record<'bare' | 'prober', SideReport[]> = { bare: [], prober: [] }
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const side of ['bare', 'prober'] as const) {
        sides[side].push(await firstMessage<SideReport>('./probes-side.ts', [side, ports]).message)
      }
    }
  } finally {
    servers.child.disconnect()
  }
  for (const side of ['bare', 'prober'] as const) {
    for (const { cpuSeconds, seconds, probes, failed, rssMiB } of sides[side]) {
      const perProbeMs = ((cpuSeconds / probes) * 1_000).toFixed(3)
      console.log(
        `${side.padEnd(6)} ${(probes / seconds).toFixed(0)} probes/s, ${cpuSeconds.toFixed(2)} CPU s in ` +
          `${seconds.toFixed(1)} s, ${perProbeMs} CPU ms a probe, ${failed} failed, RSS ${rssMiB.toFixed(0)} MiB`,
      )
    }
  }
  const perProbe = (side: 'bare' | 'prober'): number =>
    sides[side].reduce((sum, one) => sum + one.cpuSeconds, 0) /
    sides[side].reduce((sum, one) => sum + one.probes, 0)
  const ratio = perProbe('prober') / perProbe('bare')
  const late = sides.prober.flatMap(({ latenessMs }) => latenessMs)
  const [p50, p99] = [percentile(late, 0.5), percentile(late, 0.99)]
  console.log(`CPU a probe, prober over bare: ${ratio.toFixed(2)} (bound 1.50)`)
  console.log(
    `start lateness p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms (bound 100 ms) over ${late.length}`,
  )
  return ratio <= 1.5 && p99 < 100
}

if (process.argv[1] === import.meta.filename) process.exitCode = (await benchProbes()) ? 0 : 1
