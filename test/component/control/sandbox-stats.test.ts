import { describe, expect, it } from 'vitest'
import { listSandboxStats } from '../../../src/control/runtime/sandbox-stats.ts'
import type { SandboxStatsCalls } from '../../../src/control/runtime/sandbox-stats.ts'
import type * as cri from '../../../src/cri-types/cri-v1.ts'
import { CriError } from '../../../src/cri/cri-error.ts'

const { signal } = new AbortController()
const stats = (id: string) => ({ attributes: { id } }) as unknown as cri.PodSandboxStats
const sandbox = (id: string) => ({ id }) as unknown as cri.PodSandbox
const failed = new CriError('RUNTIME_FAILED', 'cgroups: cgroup deleted')

function calls(parts: Partial<SandboxStatsCalls>): SandboxStatsCalls {
  const unasked = () => Promise.reject(new Error('not asked for'))
  return { listPodSandboxStats: unasked, listPodSandbox: unasked, podSandboxStats: unasked, ...parts }
}

describe('listSandboxStats', () => {
  it('takes the whole list where there is one', async () => {
    const runtime = calls({ listPodSandboxStats: () => Promise.resolve({ stats: [stats('a')] }) })
    expect(await listSandboxStats(runtime, signal)).toEqual([stats('a')])
  })

  it('asks for each ready sandbox where one fails the whole list, and leaves out what fails', async () => {
    const filters: unknown[] = []
    const runtime = calls({
      listPodSandboxStats: () => Promise.reject(failed),
      listPodSandbox: (request) => {
        filters.push(request?.filter)
        return Promise.resolve({ items: [sandbox('a'), sandbox('b')] })
      },
      podSandboxStats: ({ podSandboxId }) =>
        podSandboxId === 'b' ? Promise.reject(failed) : Promise.resolve({ stats: stats('a') }),
    })
    expect(await listSandboxStats(runtime, signal)).toEqual([stats('a')])
    expect(filters).toEqual([{ state: { state: 'SANDBOX_READY' } }])
  })

  it.each(['RUNTIME_UNSUPPORTED', 'RUNTIME_UNAVAILABLE', 'RUNTIME_TIMEOUT'] as const)(
    'asks for nothing else after %s',
    async (code) => {
      const error = new CriError(code, 'no')
      const runtime = calls({ listPodSandboxStats: () => Promise.reject(error) })
      await expect(listSandboxStats(runtime, signal)).rejects.toBe(error)
    },
  )
})
