import type { CriClient } from '../src/runtime/cri-client.ts'
import { BarePod } from './bare-pod.ts'
import { pairFigures } from './figures.ts'
import type { Figure } from './figures.ts'
import { FirstWrite } from './first-write.ts'
import { benchImage } from './podd-under-test.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

/** Says that it runs, and exits at once when told to. */
const command = ['sh', '-c', `trap 'exit 0' TERM; echo up > /out/fifo; sleep 3600 & wait`]
const graceSeconds = 30

/** Another generation stands in the environment, so the pod is replaced. */
function manifest(outDirectory: string, generation: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'replace' },
    spec: {
      terminationGracePeriodSeconds: graceSeconds,
      containers: [
        {
          name: 'main',
          image: benchImage,
          command,
          env: [{ name: 'GENERATION', value: String(generation) }],
          volumeMounts: [{ name: 'out', mountPath: '/out' }],
        },
      ],
      volumes: [{ name: 'out', hostPath: { path: outDirectory } }],
    },
  }
}

/** StopContainer, StopPodSandbox, RunPodSandbox, CreateContainer, StartContainer, to the new first write. */
async function bareReplace(
  client: CriClient,
  first: FirstWrite,
  facts: { index: number; directory: string },
) {
  const start = async (turn: string): Promise<BarePod> => {
    const uid = `r${facts.index}${turn}`
    const pod = await BarePod.run(client, {
      name: 'bare-replace',
      uid,
      directory: facts.directory,
      command,
      outDirectory: first.directory,
    })
    await pod.startContainer()
    return pod
  }
  const old = await start('a')
  await first.next()
  const beganMs = performance.now()
  await old.stop(graceSeconds)
  const successor = await start('b')
  const tookMs = (await first.next()) - beganMs
  await successor.stop(graceSeconds)
  for (const pod of [old, successor]) await pod.remove()
  return tookMs
}

/** A changed manifest to the first write of the new pod's process, in turn with the bare stop and start calls. */
export async function benchReplace(
  podd: PoddUnderTest,
  client: CriClient,
  pairs: number,
): Promise<readonly Figure[]> {
  const first = await FirstWrite.open(podd.directory, 'replace')
  const replaced: number[] = []
  const bare: number[] = []
  for (let index = -2; index < pairs; index += 1) {
    const bareMs = await bareReplace(client, first, { index, directory: podd.directory })
    podd.drop('replace', manifest(first.directory, 2 * index))
    await first.next()
    await podd.until(async () => (await podd.pods())[0]?.status.phase === 'Running', 10_000)
    const beganMs = performance.now()
    podd.drop('replace', manifest(first.directory, 2 * index + 1))
    const poddMs = (await first.next()) - beganMs
    await podd.until(async () => (await podd.pods())[0]?.status.phase === 'Running', 10_000)
    podd.remove('replace')
    await podd.untilGone()
    // The first rounds warm both sides up.
    if (index < 0) continue
    bare.push(bareMs)
    replaced.push(poddMs)
  }
  await first.close()
  return pairFigures('changed manifest to first write', { podd: replaced, bare }, { p50: (ms) => 1.3 * ms })
}
