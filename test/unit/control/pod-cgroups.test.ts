import { beforeEach, describe, expect, it } from 'vitest'
import { createPodCgroups } from '../../../src/control/pod/host.ts'
import { SystemdError } from '../../../src/host/cgroups/systemd-bus.ts'
import type { PodCgroups as CgroupTree, QosShares } from '../../../src/host/cgroups/layout.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import type { Pod } from '../../../src/pod/schema/pod-schema.ts'
import { plainResources } from '../../support/pod-builders.ts'

let shares: QosShares[] = []
/** Those of an earlier podd. */
let earlier: [uid: string, pod: Pod][] = []
beforeEach(() => {
  shares = []
  earlier = []
})

function pod(cpu?: string): Pod {
  const resources = cpu === undefined ? {} : { requests: { cpu } }
  return podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'main', image: 'app:1', resources }] },
  })
}

const tree: CgroupTree = {
  ensureQosTree: async (given) => void shares.push(given),
  ensurePod: async () => {},
  removePod: async () => [],
  listPods: () => [],
  countOomKills: () => undefined,
  isRemoved: () => false,
  hasOomKills: () => false,
  hasProcesses: () => undefined,
  killProcesses: () => 0,
  removeQosTree: async () => [],
  parentOf: ({ uid }) => `/kubepods/pod${uid}`,
}

function cgroups(openTree: () => Promise<CgroupTree> = async () => tree) {
  return createPodCgroups({
    openTree,
    livePods: () => earlier,
    resources: plainResources,
    cpus: 2,
    pidsLimit: undefined,
  })
}

describe('the weight of the burstable pods', () => {
  it('counts those that an earlier podd started', async () => {
    earlier = [['old', pod('3')]]
    await cgroups().ensure('new', pod())
    expect(shares).toEqual([{ kubepods: 2048, burstable: 3072 }])
  })

  it('follows the pods that come, are resized and go', async () => {
    const pods = cgroups()
    await pods.ensure('a', pod('1'))
    await pods.ensure('a', pod('1'))
    await pods.ensure('a', pod('2'))
    await pods.ensure('b', pod('1'))
    await pods.remove('a')
    await pods.remove('b')
    await pods.remove('b')
    expect(shares.map(({ burstable }) => burstable)).toEqual([1024, 2048, 3072, 1024, 2])
  })

  it('loses an earlier one that goes', async () => {
    earlier = [
      ['old', pod('3')],
      ['older', pod('1')],
    ]
    const pods = cgroups()
    await pods.ensure('new', pod('1'))
    await pods.remove('old')
    expect(shares.map(({ burstable }) => burstable)).toEqual([5120, 2048])
  })

  it('is read of no other pod where one comes or goes, however many there are', async () => {
    let reads = 0
    const pods = createPodCgroups({
      openTree: async () => tree,
      *livePods() {
        reads += 1
        yield* earlier
      },
      resources: plainResources,
      cpus: 2,
      pidsLimit: undefined,
    })
    for (let index = 0; index < 100; index += 1) await pods.ensure(`pod-${index}`, pod('1'))
    for (let index = 0; index < 100; index += 1) await pods.remove(`pod-${index}`)
    expect(reads).toBe(1)
    expect(shares.at(-1)?.burstable).toBe(2)
  })

  it('holds up no pod that ends while systemd starts nothing because the host is going down', async () => {
    const busName = 'org.freedesktop.systemd1.TransactionIsDestructive'
    let isStopping = false
    const pods = cgroups(async () => ({
      ...tree,
      ensureQosTree: async () => {
        if (isStopping) throw new SystemdError('StartTransientUnit', busName, 'destructive')
      },
    }))
    await pods.ensure('a', pod('1'))
    isStopping = true
    await pods.remove('a')
    await expect(pods.ensure('b', pod('1'))).rejects.toThrow('destructive')
  })

  it('is left as it is where a podd that made nothing yet removes a pod', async () => {
    await cgroups().remove('a')
    expect(shares).toEqual([])
  })
})

describe('the tree of cgroups', () => {
  it('is opened once, and again only while that fails', async () => {
    let tries = 0
    const pods = cgroups(async () => {
      tries += 1
      if (tries < 3) throw new Error('not yet')
      return tree
    })
    await expect(pods.ensure('a', pod())).rejects.toThrow('not yet')
    await expect(pods.remove('a')).rejects.toThrow('not yet')
    expect(await pods.ensure('a', pod())).toBe('/kubepods/poda')
    await pods.ensure('b', pod())
    expect(tries).toBe(3)
  })
})
