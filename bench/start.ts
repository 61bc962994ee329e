import type { CriClient } from '../src/runtime/cri-client.ts'
import { BarePod } from './bare-pod.ts'
import { pairFigures } from './figures.ts'
import type { Figure } from './figures.ts'
import { FirstWrite } from './first-write.ts'
import { benchImage } from './podd-under-test.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

const command = ['sh', '-c', 'echo up > /out/fifo; exec sleep 3600']

/** One pod as a user writes it. */
function manifest(name: string, outDirectory: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [
        { name: 'main', image: benchImage, command, volumeMounts: [{ name: 'out', mountPath: '/out' }] },
      ],
      volumes: [{ name: 'out', hostPath: { path: outDirectory } }],
    },
  }
}

/** The same pod by the bare calls; gives the time to its first write, and cleans up. */
async function bareStart(
  client: CriClient,
  first: FirstWrite,
  facts: { uid: string; directory: string },
): Promise<number> {
  const { uid, directory } = facts
  const beganMs = performance.now()
  const pod = await BarePod.run(client, {
    name: `bare-${uid}`,
    uid,
    directory,
    command,
    outDirectory: first.directory,
  })
  await pod.startContainer()
  const tookMs = (await first.next()) - beganMs
  await pod.stop(0)
  await pod.remove()
  return tookMs
}

/** A dropped file to its process's first write, in turn with the bare calls on the same containerd. */
export async function benchStart(
  podd: PoddUnderTest,
  client: CriClient,
  pairs: number,
): Promise<readonly Figure[]> {
  const first = await FirstWrite.open(podd.directory, 'start')
  const dropped: number[] = []
  const bare: number[] = []
  let calls: Record<string, number> = {}
  for (let index = -2; index < pairs; index += 1) {
    const bareMs = await bareStart(client, first, { uid: `b${index}`, directory: podd.directory })
    const before = (await podd.status()).runtime.calls
    const beganMs = performance.now()
    podd.drop('start', manifest('start', first.directory))
    const poddMs = (await first.next()) - beganMs
    await podd.until(async () => (await podd.pods())[0]?.status.phase === 'Running', 10_000)
    const after = (await podd.status()).runtime.calls
    podd.remove('start')
    await podd.untilGone()
    // The first rounds warm both sides up.
    if (index < 0) continue
    bare.push(bareMs)
    dropped.push(poddMs)
    calls = Object.fromEntries(
      Object.entries(after)
        .map(([method, count]) => [method, count - (before[method] ?? 0)] as const)
        .filter(([, count]) => count > 0),
    )
  }
  await first.close()
  const total = Object.values(calls).reduce((sum, count) => sum + count, 0)
  const each = Object.entries(calls).map(([method, count]) => `${method} ${count}`)
  console.error(`RPCs of a start: ${total}: ${each.join(', ')}`)
  return pairFigures(
    'drop of a manifest to first write',
    { podd: dropped, bare },
    { p50: (ms) => 1.1 * ms, p99: (ms) => 1.5 * ms },
  )
}
