/** The probes of bench/probes.ts once more, sent by a whole podd for containers of its own. */
import { systemClock } from '../src/base/clock.ts'
import { benchImage } from './podd-under-test.ts'
import type { PoddUnderTest } from './podd-under-test.ts'
import type { Ports } from './probes-load.ts'

const podCount = 5
const containersPerPod = 46
const settleMs = 10_000
const measuredMs = 20_000

/** Of the containers of a pod, by their number: the first 40 are asked by HTTP and by TCP, 5 by gRPC, the last by commands. */
function handlersOf(index: number, ports: Ports): readonly [readiness: object, liveness: object] {
  const exec = { exec: { command: ['true'] } }
  const grpc = { grpc: { port: ports.grpc } }
  const http = { httpGet: { path: '/healthz', host: '127.0.0.1', port: ports.http } }
  const tcp = { tcpSocket: { host: '127.0.0.1', port: ports.tcp } }
  if (index < 40) return [http, tcp]
  return index < 45 ? [grpc, grpc] : [exec, exec]
}

function probedPod(name: string, ports: Ports): object {
  const containers = Array.from({ length: containersPerPod }, (_, index) => {
    const [readiness, liveness] = handlersOf(index, ports)
    return {
      name: `c${index}`,
      image: benchImage,
      command: ['sleep', '36000'],
      readinessProbe: { ...readiness, periodSeconds: 1 },
      livenessProbe: { ...liveness, periodSeconds: 1 },
    }
  })
  // gRPC probes go to the pod's address alone: here the host's, where the servers are.
  const spec = { hostNetwork: true, terminationGracePeriodSeconds: 0, containers }
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }
}

/** What a probe costs the daemon, in CPU milliseconds; all that it does beside probing counts too. */
export async function measureDaemon(podd: PoddUnderTest, ports: Ports): Promise<number> {
  const names = Array.from({ length: podCount }, (_, index) => `probed-${index}`)
  for (const name of names) podd.drop(name, probedPod(name, ports))
  await podd.until(async () => {
    const pods = await podd.pods()
    const ready = pods.filter(({ status }) =>
      status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    )
    return ready.length === podCount
  }, 600_000)
  await systemClock.sleep(settleMs)
  const sentBefore = await countProbes(podd, names)
  const cpuBefore = podd.cpuSeconds()
  const beganMs = performance.now()
  await systemClock.sleep(measuredMs)
  const cpu = podd.cpuSeconds() - cpuBefore
  const seconds = (performance.now() - beganMs) / 1_000
  const sent = (await countProbes(podd, names)) - sentBefore
  console.log(
    `    podd   ${(sent / seconds).toFixed(0)} probes/s of ${podCount * containersPerPod} containers, ` +
      `${cpu.toFixed(2)} CPU s in ${seconds.toFixed(1)} s`,
  )
  for (const name of names) podd.remove(name)
  await podd.untilGone()
  return (cpu / sent) * 1_000
}

async function countProbes(podd: PoddUnderTest, names: readonly string[]): Promise<number> {
  const reports = await Promise.all(names.map((name) => podd.probes(name)))
  return reports.flat().reduce((sum, { counts }) => sum + counts.success + counts.failure + counts.unknown, 0)
}
