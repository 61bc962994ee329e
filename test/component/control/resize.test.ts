import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import type { Pod } from '../../../src/pod/schema/pod-schema.ts'
import { plainCgroups } from '../../support/plain-pod-host.ts'
import { PodRig, podManifest } from './pod-rig.ts'

interface Size {
  readonly [resource: string]: string
}

function manifest(resources: { readonly limits?: Size; readonly requests?: Size }): JsonObject {
  return podManifest('web', { containers: [{ name: 'main', image: 'app:1', resources }] })
}

const both = (cpu: string, memory: string) => ({ limits: { cpu, memory }, requests: { cpu, memory } })

/** The larger of what a pod asks for and what it has, as its cgroup is given it. */
function cgroupSize(pod: Pod, before: Pod | undefined): string {
  const size = ({ spec }: Pod): string => {
    const { limits, requests } = spec.containers[0]?.resources ?? { limits: {}, requests: {} }
    return `${requests['cpu'] ?? '-'}/${requests['memory'] ?? '-'}..${limits['cpu'] ?? '-'}/${limits['memory'] ?? '-'}`
  }
  const now = size(pod)
  const has = before === undefined ? now : size(before)
  return has === now ? now : `${now} or ${has}`
}

/** Runs a pod with `from`, then gives it `to`; tells what was done to cgroup and container, in order. */
async function resize(
  from: Parameters<typeof manifest>[0],
  to: Parameters<typeof manifest>[0],
): Promise<{ readonly rig: PodRig; readonly story: readonly string[] }> {
  const rig = new PodRig()
  const story: string[] = []
  const { runtime } = rig.fake
  rig.host = {
    cgroups: {
      ...plainCgroups,
      ensure: async (uid, pod, before) => {
        story.push(`pod ${cgroupSize(pod, before)}`)
        return `/kubepods/pod${uid}`
      },
    },
    calls: {
      ...runtime,
      updateContainerResources: async (request, options) => {
        const { cpuQuota, memoryLimitInBytes } = request.linux ?? {}
        story.push(`container ${String(cpuQuota ?? 0)} ${String(memoryLimitInBytes ?? 0)}`)
        return runtime.updateContainerResources(request, options)
      },
    },
  }
  await rig.start()
  await rig.apply(manifest(from))
  expect(rig.running()).toEqual(['web/main'])
  story.splice(0)
  await rig.apply(manifest(to))
  return { rig, story }
}

const mib = 1024 * 1024

/** After TestDoPodResizeAction and TestUpdatePodContainerResources (`pkg/kubelet/kuberuntime/kuberuntime_manager_test.go`, 1.36). */
describe('a resize in place', () => {
  it.each([
    [
      // id: cpu-memory-guaranteed-pod
      'cpu and memory of a guaranteed pod up',
      both('100m', '128Mi'),
      both('200m', '256Mi'),
      [
        'pod 200m/256Mi..200m/256Mi or 100m/128Mi..100m/128Mi',
        `container 20000 ${256 * mib}`,
        'pod 200m/256Mi..200m/256Mi',
      ],
    ],
    [
      'cpu and memory of a guaranteed pod down',
      both('200m', '256Mi'),
      both('100m', '200Mi'),
      [
        'pod 100m/200Mi..100m/200Mi or 200m/256Mi..200m/256Mi',
        `container 10000 ${200 * mib}`,
        'pod 100m/200Mi..100m/200Mi',
      ],
    ],
    [
      // id: requests-alone
      'requests alone',
      { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '1', memory: '1Gi' } },
      { requests: { cpu: '200m', memory: '128Mi' }, limits: { cpu: '1', memory: '1Gi' } },
      [
        'pod 200m/128Mi..1/1Gi or 100m/64Mi..1/1Gi',
        `container 100000 ${1024 * mib}`,
        'pod 200m/128Mi..1/1Gi',
      ],
    ],
    [
      // id: request-without-limits
      'a request without limits',
      { requests: { cpu: '100m' } },
      { requests: { cpu: '200m' } },
      ['pod 200m/-..-/- or 100m/-..-/-', 'container 0 0', 'pod 200m/-..-/-'],
    ],
    [
      // id: limit-where-none
      'a limit where there was none',
      { requests: { cpu: '100m' } },
      { requests: { cpu: '100m' }, limits: { cpu: '200m' } },
      ['pod 100m/-..200m/- or 100m/-..-/-', 'container 20000 0', 'pod 100m/-..200m/-'],
    ],
  ])(
    // id: gives-pod-room-both
    'gives the pod room for both first, and no more than it needs last: %s',
    async (_what, from, to, expected) => {
      const { rig, story } = await resize(from, to)
      expect(story).toEqual(expected)
      expect(rig.container('web').restartCount).toBe(0)
      expect(rig.container('web').allocatedResources).toEqual(to.requests)
      expect(rig.reasons('web').filter((reason) => reason === 'ResizeCompleted')).toHaveLength(1)
      expect(rig.records.named('web')?.containers['main']?.resized?.resources.requests).toEqual(to.requests)
    },
  )

  // id: touches-nothing-where-memory
  it('touches nothing where the memory limit would be below what is in use', async () => {
    const { rig, story } = await resize(both('100m', '128Mi'), both('200m', '900Ki'))
    expect(story).toEqual([])
    expect(rig.reasons('web')).toContain('ResizeError')
    const condition = rig.pod('web').status.conditions.find(({ type }) => type === 'PodResizeInProgress')
    expect(condition).toMatchObject({ status: 'True', reason: 'Error' })
    expect(rig.container('web').allocatedResources).toEqual({ cpu: '100m', memory: '128Mi' })
  })
})

describe('what is shown of a resize', () => {
  const sizeOf = (limits: unknown): unknown =>
    typeof limits === 'object' && limits !== null && 'memory' in limits ? limits.memory : undefined

  /** What is asked for and what the container has, as a podd that starts now would show it. */
  function recorded({ records }: PodRig): readonly unknown[] {
    const record = records.named('web')
    const spec = JSON.stringify(record?.manifest['spec'])
    const asked: unknown = spec === undefined ? undefined : JSON.parse(spec).containers[0].resources.limits
    return [sizeOf(asked), sizeOf(record?.containers['main']?.resized?.resources.limits) ?? '128Mi']
  }

  function shown(rig: PodRig): readonly unknown[] {
    const { spec, status } = rig.pod('web')
    const asked: unknown = JSON.parse(JSON.stringify(spec)).containers[0].resources.limits
    return [sizeOf(asked), sizeOf(status.containerStatuses?.[0]?.resources?.limits)]
  }

  it('is on disk before, so that podd takes nothing back when it is killed', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(manifest(both('100m', '128Mi')))
    const seen: unknown[] = []
    const onDisk: unknown[] = []
    rig.records.beforeSave = async () => {
      for (let turn = 0; turn < 50; turn += 1) await Promise.resolve()
    }
    rig.system.statuses.subscribe(() => {
      seen.push(shown(rig))
      onDisk.push(recorded(rig))
    })
    await rig.apply(manifest(both('200m', '256Mi')))
    await rig.clock.advance(2000)
    expect(seen.at(-1)).toEqual(['256Mi', '256Mi'])
    expect(onDisk).toEqual(seen)
  })

  it('is on disk before, but for a disk that hangs: then it is shown a second later', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(manifest(both('100m', '128Mi')))
    const hung = Promise.withResolvers<void>()
    rig.records.beforeSave = () => hung.promise
    await rig.apply(manifest(both('200m', '256Mi')))
    expect(shown(rig)[0]).toBe('128Mi')
    await rig.clock.advance(1000)
    expect(shown(rig)[0]).toBe('256Mi')
    expect(recorded(rig)[0]).toBe('128Mi')
    hung.resolve()
    await rig.clock.advance(2000)
    expect(recorded(rig)).toEqual(['256Mi', '256Mi'])
    expect(shown(rig)).toEqual(['256Mi', '256Mi'])
  })
})
