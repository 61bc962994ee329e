import { beforeEach, describe, expect, it } from 'vitest'
import { createPodCgroups } from '../../../src/control/node/pod-cgroups.ts'
import type { PodCgroups as CgroupTree, QosShares } from '../../../src/host/cgroups/cgroups.ts'
import { podFromManifest } from '../../../src/pod/decode/pod-from-manifest.ts'
import type { Pod } from '../../../src/pod/schema/pod-schema.ts'
import { plainResources } from '../../support/pod-builders.ts'

let shares: QosShares[] = []
let live: Pod[] = []
beforeEach(() => {
  shares = []
  live = []
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
    livePods: () => live,
    resources: plainResources,
    cpus: 2,
    pidsLimit: undefined,
  })
}

describe('the weight of the burstable pods', () => {
  it('counts those that an earlier podd started', async () => {
    live = [pod('3'), pod()]
    await cgroups().ensure('new', live[1]!)
    expect(shares).toEqual([{ kubepods: 2048, burstable: 3072 }])
  })

  it('follows the pods that come, are resized and go', async () => {
    const pods = cgroups()
    live = [pod('1')]
    await pods.ensure('a', live[0]!)
    await pods.ensure('a', live[0]!)
    live = [pod('2')]
    await pods.ensure('a', live[0]!)
    live = [pod('2'), pod('1')]
    await pods.ensure('b', live[1]!)
    live = [pod('1')]
    await pods.remove('a')
    live = []
    await pods.remove('b')
    await pods.remove('b')
    expect(shares.map(({ burstable }) => burstable)).toEqual([1024, 2048, 3072, 1024, 2])
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
