import { fork } from 'node:child_process'
import { systemClock } from '../src/base/clock.ts'
import { single } from './figures.ts'
import type { Figure } from './figures.ts'
import { podManifest } from './pod-manifest.ts'
import type { PoddUnderTest } from './podd-under-test.ts'
import type { Ports } from './probes-load.ts'

const count = 30
const settleMs = 10_000

/** What thirty pods cost whose containers are asked by HTTP and by TCP each second. */
export async function benchProbed(podd: PoddUnderTest, seconds: number): Promise<readonly Figure[]> {
  const servers = fork(new URL('./probes-servers.ts', import.meta.url))
  try {
    const ports = await new Promise<Ports>((resolve, reject) => {
      servers.once('message', (message) => resolve(message as Ports))
      servers.once('exit', (code) => reject(new Error(`the servers ended with ${code}`)))
    })
    const periodSeconds = 1
    const host = '127.0.0.1'
    const container = {
      readinessProbe: { httpGet: { path: '/healthz', host, port: ports.http }, periodSeconds },
      livenessProbe: { tcpSocket: { host, port: ports.tcp }, periodSeconds },
    }
    const pod = { command: ['sleep', '36000'], container, spec: { hostNetwork: true } }
    for (let index = 0; index < count; index += 1)
      podd.drop(`probed-${index}`, podManifest(`probed-${index}`, pod))
    await podd.untilRunning(count)
    await systemClock.sleep(settleMs)
    const before = podd.cpuMs()
    await systemClock.sleep(seconds * 1000)
    const share = (podd.cpuMs() - before) / seconds / 10
    const { rssMiB, anonymousMiB } = podd.memory()
    for (let index = 0; index < count; index += 1) podd.remove(`probed-${index}`)
    await podd.untilGone()
    return [
      single(`CPU, ${count} pods with an HTTP and a TCP probe a second`, '% of a core', share, 2.5),
      single(`RSS at ${count} probed pods`, 'MiB', rssMiB, 75),
      single(`RSS at ${count} probed pods, anonymous`, 'MiB', anonymousMiB, 30),
    ]
  } finally {
    servers.disconnect()
  }
}
