import type * as cri from '../../cri-types/cri-v1.ts'
import { isCriError } from '../../cri/cri-error.ts'
import type { RuntimeService } from '../../cri/cri-runtime.ts'

export type SandboxStatsCalls = Pick<
  RuntimeService,
  'listPodSandboxStats' | 'listPodSandbox' | 'podSandboxStats'
>

/**
 * What the sandboxes use. containerd 1.6 fails the whole list over one whose cgroup has gone, as that of a completed pod
 * has: then each ready one is asked for by itself, and those that fail are left out.
 *
 * @throws CriError, of it RUNTIME_UNSUPPORTED where the runtime has no such call
 */
export async function listSandboxStats(
  runtime: SandboxStatsCalls,
  signal: AbortSignal,
): Promise<readonly cri.PodSandboxStats[]> {
  try {
    return (await runtime.listPodSandboxStats({}, { signal })).stats
  } catch (error) {
    if (!isCriError(error, 'RUNTIME_FAILED') && !isCriError(error, 'RUNTIME_NOT_FOUND')) throw error
  }
  const filter = { state: { state: 'SANDBOX_READY' } } as const
  const { items } = await runtime.listPodSandbox({ filter }, { signal })
  const asked = await Promise.allSettled(
    items.map(({ id }) => runtime.podSandboxStats({ podSandboxId: id }, { signal })),
  )
  signal.throwIfAborted()
  return asked.flatMap((each) => (each.status === 'fulfilled' && each.value.stats ? [each.value.stats] : []))
}
