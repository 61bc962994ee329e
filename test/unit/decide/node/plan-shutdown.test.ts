import { describe, expect, it } from 'vitest'
import { shutdownOptionProblems, shutdownOptions } from '../../../../src/config/node-options.ts'
import { planShutdown } from '../../../../src/decide/node/plan-shutdown.ts'
import type { ShutdownSettings } from '../../../../src/decide/node/plan-shutdown.ts'

const off: ShutdownSettings = {
  shutdownGracePeriodMs: 0,
  shutdownGracePeriodCriticalPodsMs: 0,
  shutdownGracePeriodByPodPriority: [],
}
const pod = (key: string, priority: number, graceSeconds = 30) => ({ key, priority, graceSeconds })
const critical = 2_000_000_000

/** `a:30 b:10 / wait 30`, a text for each group. */
function shown(
  pods: Parameters<typeof planShutdown>[0],
  settings: Partial<ShutdownSettings>,
): readonly string[] {
  return planShutdown(pods, { ...off, ...settings }).map(
    (group) =>
      `${group.pods.map(({ key, graceSeconds }) => `${key}:${graceSeconds}`).join(' ')} / ${group.waitSeconds}`,
  )
}

describe('planShutdown', () => {
  it('ends critical pods last, and gives each pod its own grace, where nothing is set', () => {
    expect(shown([pod('vital', critical), pod('web', 0, 10), pod('db', 1000, 60)], {})).toEqual([
      'web:10 db:60 / 90',
      'vital:30 / 60',
    ])
  })

  it('divides the period between normal and critical pods', () => {
    const settings = { shutdownGracePeriodMs: 30_000, shutdownGracePeriodCriticalPodsMs: 10_000 }
    expect(shown([pod('vital', critical + 1000), pod('web', 0), pod('quick', 0, 5)], settings)).toEqual([
      'web:20 quick:5 / 20',
      'vital:10 / 10',
    ])
  })

  it('waits for no range without pods', () => {
    expect(shown([pod('vital', critical)], { shutdownGracePeriodMs: 30_000 })).toEqual(['vital:0 / 0'])
    expect(shown([], { shutdownGracePeriodMs: 30_000 })).toEqual([])
  })

  // Kubernetes' own: pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux_test.go, Test_groupByPriority.
  it('puts pods in the range that their priority is in, those below all in the first', () => {
    const shutdownGracePeriodByPodPriority = [
      { priority: 1000, seconds: 20 },
      { priority: 10, seconds: 10 },
      { priority: 100, seconds: 15 },
    ]
    const pods = [pod('a', 5), pod('b', 10), pod('c', 99), pod('d', 100), pod('e', 1000), pod('f', 9999)]
    expect(shown(pods, { shutdownGracePeriodByPodPriority })).toEqual([
      'a:10 b:10 c:10 / 10',
      'd:15 / 15',
      'e:20 f:20 / 20',
    ])
  })
})

describe('the settings of a shutdown', () => {
  const { type } = shutdownOptions.shutdownGracePeriodByPodPriority

  it('reads the kubelet’s list', () => {
    expect(type.fromFile([{ priority: 100, shutdownGracePeriodSeconds: 20 }])).toEqual({
      kind: 'ok',
      value: [{ priority: 100, seconds: 20 }],
    })
    for (const bad of [{}, [5], [{ priority: 1 }], [{ priority: 1, shutdownGracePeriodSeconds: -1 }]])
      expect(type.fromFile(bad).kind).toBe('bad')
    const twice = [1, 1].map((priority) => ({ priority, shutdownGracePeriodSeconds: 1 }))
    expect(type.fromFile(twice)).toMatchObject({ message: 'must have each priority once, and has 1 twice' })
  })

  it.each([
    [{ shutdownGracePeriodMs: 500 }, 'shutdownGracePeriod'],
    [
      { shutdownGracePeriodMs: 5000, shutdownGracePeriodCriticalPodsMs: 6000 },
      'shutdownGracePeriodCriticalPods',
    ],
    [
      { shutdownGracePeriodMs: 5000, shutdownGracePeriodByPodPriority: [{ priority: 0, seconds: 1 }] },
      'shutdownGracePeriodByPodPriority',
    ],
  ])('refuses %j', (settings, field) => {
    expect(shutdownOptionProblems({ ...off, ...settings }).map((problem) => problem.field)).toEqual([field])
  })
})
