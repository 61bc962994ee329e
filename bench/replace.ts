import type { CriClient } from '../src/cri/cri-client.ts'
import type { PodSandboxConfigInput } from '../src/cri-types/cri-v1.ts'
import { FirstWrite } from './first-write.ts'
import { benchImage, median, percentile } from './podd-under-test.ts'
import type { PoddUnderTest } from './podd-under-test.ts'

/** Says that it runs, and exits at once when told to. */
const command = ['sh', '-c', `trap 'exit 0' TERM; echo up > /out/fifo; sleep 3600 & wait`]
const graceSeconds = 30

/** Another generation stands in the environment, so the pod is replaced. */
function manifest(outFolder: string, generation: number): object {
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
      volumes: [{ name: 'out', hostPath: { path: outFolder } }],
    },
  }
}

/** One pod made by the bare calls. */
interface BarePod {
  readonly podSandboxId: string
  readonly containerId: string
}

async function makeBare(
  { runtime }: CriClient,
  facts: { readonly uid: string; readonly outFolder: string; readonly folder: string },
): Promise<BarePod> {
  const config: PodSandboxConfigInput = {
    metadata: { name: 'bare-replace', uid: facts.uid, namespace: 'bench', attempt: 0 },
    hostname: 'bare',
    logDirectory: `${facts.folder}/bare-logs`,
    linux: {
      cgroupParent: `/podd-bench-${process.pid}/bare`,
      securityContext: { namespaceOptions: { pid: 'CONTAINER' } },
    },
  }
  const { podSandboxId } = await runtime.runPodSandbox({ config })
  const { containerId } = await runtime.createContainer({
    podSandboxId,
    sandboxConfig: config,
    config: {
      metadata: { name: 'main', attempt: 0 },
      image: { image: benchImage },
      command,
      logPath: 'main.log',
      mounts: [{ containerPath: '/out', hostPath: facts.outFolder }],
      linux: {},
    },
  })
  await runtime.startContainer({ containerId })
  return { podSandboxId, containerId }
}

async function stopBare({ runtime }: CriClient, { containerId, podSandboxId }: BarePod): Promise<void> {
  await runtime.stopContainer({ containerId, timeout: graceSeconds })
  await runtime.stopPodSandbox({ podSandboxId })
}

/** StopContainer, StopPodSandbox, RunPodSandbox, CreateContainer, StartContainer, to the new first write. */
async function bareReplace(client: CriClient, first: FirstWrite, facts: { index: number; folder: string }) {
  const pod = (turn: string): Promise<BarePod> =>
    makeBare(client, {
      uid: `r${facts.index}${turn}`,
      outFolder: first.folder,
      folder: facts.folder,
    })
  const old = await pod('a')
  await first.next()
  const beganMs = performance.now()
  await stopBare(client, old)
  const successor = await pod('b')
  const tookMs = (await first.next()) - beganMs
  await stopBare(client, successor)
  for (const { podSandboxId } of [old, successor]) await client.runtime.removePodSandbox({ podSandboxId })
  return tookMs
}

/** A changed manifest to the first write of the new pod's process, in turn with the bare stop and start calls. */
export async function benchReplace(podd: PoddUnderTest, client: CriClient, pairs: number): Promise<void> {
  const first = await FirstWrite.open(podd.folder, 'replace')
  const replaced: number[] = []
  const bare: number[] = []
  for (let index = -2; index < pairs; index += 1) {
    const bareMs = await bareReplace(client, first, { index, folder: podd.folder })
    podd.drop('replace', manifest(first.folder, 2 * index))
    await first.next()
    await podd.until(async () => (await podd.pods())[0]?.status.phase === 'Running', 10_000)
    const beganMs = performance.now()
    podd.drop('replace', manifest(first.folder, 2 * index + 1))
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
  const difference = replaced.map((ms, index) => ms - (bare[index] ?? 0))
  console.log(
    `replace: changed manifest to the new process's first write, ${pairs} pairs with the bare stop and start calls`,
  )
  console.log(
    `  podd        median ${median(replaced).toFixed(1)} ms, p90 ${percentile(replaced, 0.9).toFixed(1)} ms`,
  )
  console.log(
    `  bare calls  median ${median(bare).toFixed(1)} ms, p90 ${percentile(bare, 0.9).toFixed(1)} ms`,
  )
  console.log(
    `  difference of medians ${(median(replaced) - median(bare)).toFixed(1)} ms, median of differences ${median(difference).toFixed(1)} ms (at most 60)`,
  )
}
