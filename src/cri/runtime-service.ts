import type { BindRpc } from './call-runtime.ts'
import {
  checkContainerId,
  checkContainerStatus,
  checkSandboxId,
  checkSandboxStatus,
  checkStatus,
  checkStreamingUrl,
  checkVersion,
} from './check-reply.ts'
import type { RuntimeService } from './cri-runtime.ts'

/** The kubelet's `runtimeRequestTimeout`. */
export const callDeadlineMs = 120_000

/**
 * How much longer than its own timeout an ExecSync may take. The runtime ends it, but containerd 1.6 waits for as long
 * as any process holds the command's output.
 */
const execSlackMs = 2000

const usual = (): number => callDeadlineMs
const unbounded = (): undefined => undefined

const read = { kind: 'read', deadlineMs: usual } as const
const unboundedRead = { kind: 'read', deadlineMs: unbounded } as const
const change = { kind: 'change', deadlineMs: usual } as const
/** A call about the runtime itself. */
const ofRuntime = { isUngated: true } as const
/** A call that ends something: it succeeds where that doesn't exist. */
const end = { ...change, whenAbsent: {} } as const

/** RuntimeService: what each RPC is bounded by and what its reply must carry. */
export function createRuntimeService(rpc: BindRpc): RuntimeService {
  return {
    version: rpc('Version', { ...read, ...ofRuntime, check: checkVersion }),
    status: rpc('Status', { ...read, ...ofRuntime, check: checkStatus }),
    runtimeConfig: rpc('RuntimeConfig', { ...read, ...ofRuntime }),
    updateRuntimeConfig: rpc('UpdateRuntimeConfig', { ...change, ...ofRuntime }),

    // Starting a sandbox may pull its image and waits for network plugins: twice the time, as in the kubelet.
    runPodSandbox: rpc('RunPodSandbox', {
      kind: 'change',
      deadlineMs: () => callDeadlineMs * 2,
      check: checkSandboxId,
    }),
    stopPodSandbox: rpc('StopPodSandbox', end),
    removePodSandbox: rpc('RemovePodSandbox', end),
    podSandboxStatus: rpc('PodSandboxStatus', { ...read, check: checkSandboxStatus }),
    listPodSandbox: rpc('ListPodSandbox', read),
    updatePodSandboxResources: rpc('UpdatePodSandboxResources', change),

    createContainer: rpc('CreateContainer', { ...change, check: checkContainerId }),
    startContainer: rpc('StartContainer', change),
    stopContainer: rpc('StopContainer', {
      ...end,
      deadlineMs: ({ timeout = 0 }) => timeout * 1000 + callDeadlineMs,
    }),
    removeContainer: rpc('RemoveContainer', end),
    containerStatus: rpc('ContainerStatus', { ...read, check: checkContainerStatus }),
    listContainers: rpc('ListContainers', read),
    updateContainerResources: rpc('UpdateContainerResources', change),
    reopenContainerLog: rpc('ReopenContainerLog', change),

    // The caller's timeout, and never less than the usual deadline.
    checkpointContainer: rpc('CheckpointContainer', {
      kind: 'change',
      deadlineMs: ({ timeout = 0 }) => Math.max(timeout * 1000, callDeadlineMs),
    }),

    // No timeout is no deadline, as in the kubelet: the caller's signal ends it.
    execSync: rpc('ExecSync', {
      kind: 'work',
      deadlineMs: ({ timeout = 0 }) => (timeout === 0 ? undefined : timeout * 1000 + execSlackMs),
    }),
    exec: rpc('Exec', { ...read, check: checkStreamingUrl }),
    attach: rpc('Attach', { ...read, check: checkStreamingUrl }),
    portForward: rpc('PortForward', { ...read, check: checkStreamingUrl }),

    containerStats: rpc('ContainerStats', read),
    listContainerStats: rpc('ListContainerStats', unboundedRead),
    podSandboxStats: rpc('PodSandboxStats', read),
    listPodSandboxStats: rpc('ListPodSandboxStats', read),
    listMetricDescriptors: rpc('ListMetricDescriptors', read),
    listPodSandboxMetrics: rpc('ListPodSandboxMetrics', read),
  }
}
