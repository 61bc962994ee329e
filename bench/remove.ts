import type { CriClient } from '../src/runtime/cri-client.ts'
import { BarePod } from './bare-pod.ts'
import { pairFigures } from './figures.ts'
import type { Figure } from './figures.ts'
import { FirstWrite } from './first-write.ts'
import { podManifest } from './pod-manifest.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

/** Says that it runs, and that it was told to end. */
const command = [
  'sh',
  '-c',
  `trap 'echo down > /out/fifo; exit 0' TERM; echo up > /out/fifo; sleep 3600 & wait`,
]
const graceSeconds = 30
const mostMs = 20

/** A removed manifest to the SIGTERM of its process, in turn with StopContainer. */
export async function benchRemove(
  podd: PoddUnderTest,
  client: CriClient,
  pairs: number,
): Promise<readonly Figure[]> {
  const first = await FirstWrite.open(podd.directory, 'remove')
  const removed: number[] = []
  const bare: number[] = []
  for (let index = -2; index < pairs; index += 1) {
    const bareMs = await bareStop(client, first, { index, directory: podd.directory })
    podd.drop('remove', podManifest('remove', { command, outDirectory: first.directory, graceSeconds }))
    await first.next()
    await podd.until(async () => (await podd.pods())[0]?.status.phase === 'Running', 10_000)
    const beganMs = performance.now()
    podd.remove('remove')
    const poddMs = (await first.next()) - beganMs
    await podd.untilGone()
    // The first rounds warm both sides up.
    if (index < 0) continue
    bare.push(bareMs)
    removed.push(poddMs)
  }
  await first.close()
  return pairFigures('removed manifest to SIGTERM', { podd: removed, bare }, { p50: () => mostMs })
}

async function bareStop(
  client: CriClient,
  first: FirstWrite,
  { index, directory }: { readonly index: number; readonly directory: string },
): Promise<number> {
  const pod = await BarePod.run(client, {
    name: 'bare-remove',
    uid: `e${index}`,
    directory,
    command,
    outDirectory: first.directory,
  })
  await pod.startContainer()
  await first.next()
  const beganMs = performance.now()
  const stopping = pod.stop(graceSeconds)
  const tookMs = (await first.next()) - beganMs
  await stopping
  await pod.remove()
  return tookMs
}
