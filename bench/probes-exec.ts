/** Containers for the exec probes of bench/probes.ts, and the call that both sides send. */
import { systemClock } from '../src/base/clock.ts'
import { CriClient } from '../src/runtime/cri-client.ts'
import type { PodSandboxConfig, Sent } from '../src/cri-types/cri-v1.ts'
import type { ExecSync } from '../src/probes/exec-probe.ts'
import { benchImage } from './podd-under-test.ts'

/** Where the exec probes go: to each container once a second. */
export interface ExecPlace {
  /** The runtime's socket. */
  readonly endpoint: string
  readonly containerIds: readonly string[]
  readonly command: readonly string[]
}

/** Runs `body` with so many containers of one sandbox, and removes them afterwards. */
export async function withExecPlace(
  client: CriClient,
  options: { readonly endpoint: string; readonly directory: string; readonly containers: number },
  body: (place: ExecPlace) => Promise<unknown>,
): Promise<void> {
  const { runtime } = client
  const sandboxConfig: Sent<PodSandboxConfig> = {
    metadata: { name: 'probed', uid: 'probed', namespace: 'bench', attempt: 0 },
    hostname: 'probed',
    logDirectory: `${options.directory}/probed-logs`,
    linux: {
      cgroupParent: `/podd-bench-${process.pid}/probed`,
      securityContext: { namespaceOptions: { pid: 'CONTAINER' } },
    },
  }
  const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig })
  try {
    const containerIds: string[] = []
    for (let index = 0; index < options.containers; index += 1) {
      const config = {
        metadata: { name: `c${index}`, attempt: 0 },
        image: { image: benchImage },
        command: ['sleep', '3600'],
        logPath: `c${index}.log`,
        linux: {},
      }
      const { containerId } = await runtime.createContainer({ podSandboxId, sandboxConfig, config })
      await runtime.startContainer({ containerId })
      containerIds.push(containerId)
    }
    await body({ endpoint: options.endpoint, containerIds, command: ['true'] })
  } finally {
    // Ends and removes its containers too.
    await runtime.stopPodSandbox({ podSandboxId })
    await runtime.removePodSandbox({ podSandboxId })
  }
}

/** ExecSync over podd's own client, as podd sends it. */
export function execSyncAt(endpoint: string): ExecSync {
  const client = new CriClient({ endpoint, clock: systemClock })
  return async ({ containerId, cmd, timeoutMs, signal }) => {
    const timeout = Math.ceil(timeoutMs / 1_000)
    const reply = await client.runtime.execSync({ containerId, cmd, timeout }, { signal })
    return { exitCode: reply.exitCode, output: Buffer.concat([reply.stdout, reply.stderr]).toString('utf8') }
  }
}
