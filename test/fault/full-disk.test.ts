import { rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fillDisk, makeRoom } from '../support/full-disk.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { ProcessLedger, processMark } from '../support/process-ledger.ts'
import { shellPod } from '../support/shell-pods.ts'

const names = ['steady-a', 'steady-b', 'steady-c', 'changed']

function markedPod(podd: PoddRig, name: string, version = 1): object {
  return shellPod(name, podd.shared, `${processMark(name, 'main', version)} say v${version}; stay`)
}

describePodd('containerd restarts on a full disk', { rootDisk: { sizeMiB: 300, ext4: true } }, (rig) => {
  let ledger: ProcessLedger

  beforeAll(() => {
    ledger = new ProcessLedger(rig().cgroupRoot)
    ledger.open()
  })

  afterAll(() => {
    ledger.close()
    makeRoom(rig().rootDir)
  })

  /** By pod and version, the processes of its container. */
  function running(): Readonly<Record<string, readonly string[]>> {
    const lives = Map.groupBy(ledger.sample(), ({ key, version }) => `${key}@${version}`)
    return Object.fromEntries([...lives].map(([key, ofIt]) => [key, ofIt.map(({ id }) => id)]))
  }

  /** Whoever starts the next one may have to be started first. */
  async function killContainerd(podd: PoddRig, afterwards = (): unknown => undefined): Promise<void> {
    const killed = podd.containerdPid
    expect(killed).toBeGreaterThan(0)
    process.kill(killed, 'SIGKILL')
    afterwards()
    await podd.until('another containerd', () => podd.containerdPid !== 0 && podd.containerdPid !== killed)
  }

  const forgets = /does not work: CRI no longer lists .*ENOSPC/u

  it('neither doubles nor ends a container, and applies a changed manifest when there is room', async () => {
    const podd = rig()
    for (const name of names) podd.drop(name, markedPod(podd, name))
    for (const name of names) await podd.untilReady(name)
    const before = running()
    expect(Object.values(before).map((ids) => ids.length)).toEqual([1, 1, 1, 1])
    const pods = new Map((await podd.pods()).map((pod) => [pod.metadata.name, pod]))

    fillDisk(podd.rootDir)
    podd.drop('changed', markedPod(podd, 'changed', 2))
    await podd.untilNote(/the old one keeps running.*ENOSPC/u)
    await killContainerd(podd)
    await podd.untilNote(forgets)
    expect(running()).toEqual(before)
    for (const name of names) {
      const pod = await podd.findPod(name)
      expect(pod?.status.phase).toBe('Running')
      expect(pod?.metadata.uid).toBe(pods.get(name)?.metadata.uid)
    }

    makeRoom(podd.rootDir)
    await podd.untilLine('changed', / v2$/u)
    await podd.untilReady('changed')
    const { 'changed/main@2': changed, ...steady } = running()
    expect(changed).toHaveLength(1)
    expect({ ...steady, 'changed/main@1': before['changed/main@1'] }).toEqual(before)
    for (const name of names.slice(0, 3)) {
      expect(containerOf(await podd.untilReady(name), 'main')).toEqual(containerOf(pods.get(name)!, 'main'))
      expect(await podd.untilWords(name, 1)).toEqual(['v1'])
    }
    expect(await podd.untilWords('changed', 3)).toEqual(['v1', 'end', 'v2'])
    expect(ledger.overlaps).toEqual([])
  })

  it(
    'neither doubles nor ends a container, whatever else is killed meanwhile',
    { tags: ['nightly'] },
    async () => {
      const podd = rig()
      for (const name of names) await podd.untilReady(name)
      const before = running()
      fillDisk(podd.rootDir)
      await killContainerd(podd)
      await podd.untilNote(forgets)
      await podd.stopDaemon('SIGKILL')
      await killContainerd(podd, () => podd.launch())
      await podd.untilNote(forgets)
      await killContainerd(podd)
      await podd.untilNote(forgets)
      makeRoom(podd.rootDir)
      await podd.until('the runtime', async () => (await podd.status()).runtime.healthy)
      for (const name of names) await podd.untilReady(name)
      expect(running()).toEqual(before)
      expect(ledger.overlaps).toEqual([])
    },
  )

  it('ends what no restart of containerd brings back, with an event, and starts it again alone', async () => {
    const podd = rig()
    const before = running()
    const { containerID = '' } = containerOf(await podd.untilReady('steady-b'), 'main')
    const id = containerID.replace('containerd://', '')
    // Where CRI would write the status of the container.
    rmSync(`${podd.rootDir}/containerd/io.containerd.grpc.v1.cri/containers/${id}`, { recursive: true })
    await killContainerd(podd)
    const event = await podd.untilEvent('steady-b', 'Killing', /CRI no longer listed it/u)
    expect(event.type).toBe('Warning')
    await podd.untilLine('steady-b', / end$/u)
    const after = await podd.untilPod('steady-b', 'another container', (pod) => {
      const { containerID: now = containerID, ready } = containerOf(pod, 'main')
      return ready && now !== containerID
    })
    const { 'steady-b/main@1': restarted, ...others } = running()
    expect(restarted).toHaveLength(1)
    expect({ ...others, 'steady-b/main@1': before['steady-b/main@1'] }).toEqual(before)
    expect(podd.containerIds(after.metadata.uid ?? '')).not.toContain(id)
    expect(ledger.overlaps).toEqual([])
  })
})
