import { rmSync, writeFileSync } from 'node:fs'
import type { CriClient } from '../src/runtime/cri-client.ts'
import { BarePod } from './bare-pod.ts'
import { pairFigures } from './figures.ts'
import type { Figure } from './figures.ts'
import { FirstWrite } from './first-write.ts'
import { benchImage } from './podd-under-test.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

/** Its first container crashes: says so, then ends. The second stays. */
const crashing = [
  'sh',
  '-c',
  'if [ -e /out/crash ]; then rm /out/crash; echo down > /out/fifo; exit 1; fi; echo up > /out/fifo; exec sleep 3600',
]
/** The bare side's successor of a crashed container. */
const staying = ['sh', '-c', 'echo up > /out/fifo; exec sleep 3600']

function manifest(outDirectory: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'restart' },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'main',
          image: benchImage,
          command: crashing,
          volumeMounts: [{ name: 'out', mountPath: '/out' }],
        },
      ],
      volumes: [{ name: 'out', hostPath: { path: outDirectory } }],
    },
  }
}

/** CreateContainer and StartContainer in a sandbox that runs, to the container's first write. */
async function bareRestart(client: CriClient, first: FirstWrite, directory: string): Promise<number> {
  const pod = await BarePod.run(client, {
    name: 'bare-restart',
    uid: 'bare-restart',
    directory,
    command: staying,
    outDirectory: first.directory,
  })
  const beganMs = performance.now()
  await pod.startContainer()
  const tookMs = (await first.next()) - beganMs
  await pod.stop(0)
  await pod.remove()
  return tookMs
}

/** A crash (the container's last write) to the first write of its successor, in turn with the bare calls. */
export async function benchRestart(
  podd: PoddUnderTest,
  client: CriClient,
  pairs: number,
): Promise<readonly Figure[]> {
  const first = await FirstWrite.open(podd.directory, 'restart')
  const restarted: number[] = []
  const bare: number[] = []
  for (let index = -2; index < pairs; index += 1) {
    const bareMs = await bareRestart(client, first, podd.directory)
    writeFileSync(`${first.directory}/crash`, '')
    podd.drop('restart', manifest(first.directory))
    const downMs = await first.next()
    const poddMs = (await first.next()) - downMs
    podd.remove('restart')
    await podd.untilGone()
    rmSync(`${first.directory}/crash`, { force: true })
    if (index < 0) continue
    bare.push(bareMs)
    restarted.push(poddMs)
  }
  await first.close()
  return pairFigures('crash to first write of the next', { podd: restarted, bare }, { p50: (ms) => ms + 15 })
}
