import { describe, expect, it } from 'vitest'
import { PodRig, podManifest } from './pod-rig.ts'

/** Has containers take their time to stop. */
function slowStops(rig: PodRig): void {
  rig.fake.fault('StopContainer', { kind: 'delays', delayMs: 5000 })
}

async function started(...names: readonly string[]): Promise<PodRig> {
  const rig = new PodRig()
  await rig.start()
  await rig.apply(...names.map((name) => podManifest(name)))
  return rig
}

/** Another boot of the host: the mark is of the one before, and nothing runs. */
function reboot(rig: PodRig): void {
  for (const sandbox of rig.fake.world.sandboxes.values()) rig.fake.world.stopSandbox(sandbox)
  rig.isMarkedDrained = false
}

describe('a drain', () => {
  // id: undone-while-pod-ends
  it('that is undone while a pod is ending starts that one, too', async () => {
    const rig = await started('slow')
    slowStops(rig)
    const drain = rig.system.node.drain?.run().catch((error: unknown) => error)
    await rig.clock.advance(1000)
    await rig.system.node.drain?.undo()
    await rig.clock.advance(60_000)
    expect(await drain).toMatchObject({ code: 'DRAIN_UNDONE' })
    expect(rig.pod('slow').status.phase).toBe('Running')
    expect(rig.failures).toEqual([])
  })

  it.each(['Always', 'OnFailure', 'Never'])(
    'starts the pods of the API again as themselves when it is undone, under restartPolicy %s',
    async (restartPolicy) => {
      const rig = new PodRig({ sources: ['api'] })
      await rig.start()
      await rig.put('api', podManifest('web', { restartPolicy }))
      await rig.clock.advance(5000)
      const before = rig.pod('web').metadata.uid
      const drain = rig.system.node.drain?.run()
      await rig.clock.advance(60_000)
      expect(await drain).toEqual({ ended: 1, stuck: [] })
      await rig.system.node.drain?.undo()
      await rig.clock.advance(60_000)
      const after = rig.pod('web')
      expect([after.metadata.uid, after.status.phase]).toEqual([before, 'Running'])
      expect(rig.running()).toEqual(['web/main'])
      expect(rig.failures).toEqual([])
      await rig.remove('web', 'api')
      await rig.clock.advance(60_000)
      expect(rig.pods('web')).toEqual([])
    },
  )

  it('is no warning of the pods that it ends, nor of those that come meanwhile', async () => {
    const rig = await started('web')
    void rig.system.node.drain.run()
    await rig.clock.advance(60_000)
    await rig.apply(podManifest('late'))
    await rig.clock.advance(60_000)
    expect(rig.running()).toEqual([])
    expect([...rig.reasons('web'), ...rig.reasons('late')]).toEqual(
      expect.arrayContaining(['Terminated', 'NodeShutdown']),
    )
    expect(rig.events.filter(({ type }) => type === 'Warning')).toEqual([])
  })

  it('that a power cut has cut off starts its pods after the boot', async () => {
    const rig = await started('slow')
    slowStops(rig)
    void rig.system.node.drain?.run().catch(() => undefined)
    await rig.clock.advance(1000)
    await rig.kill()
    reboot(rig)
    await rig.start()
    await rig.clock.advance(60_000)
    expect(rig.pod('slow').status.phase).toBe('Running')
  })

  it('starts after the boot what the manifests ask for then', async () => {
    const rig = await started('web', 'gone')
    const drain = rig.system.node.drain?.run()
    await rig.clock.advance(60_000)
    expect(await drain).toEqual({ ended: 2, stuck: [] })
    await rig.kill()
    reboot(rig)
    await rig.remove('gone')
    await rig.start()
    await rig.clock.advance(60_000)
    expect(rig.pods('gone')).toEqual([])
    expect(rig.pod('web').status.phase).toBe('Running')
  })

  it('can be begun again after it was undone, and ends with podd', async () => {
    const rig = await started('web')
    slowStops(rig)
    void rig.system.node.drain?.run().catch(() => undefined)
    await rig.clock.advance(100)
    const undone = rig.system.node.drain?.undo()
    await rig.settle()
    await undone
    const again = rig.system.node.drain?.run()
    await rig.clock.advance(60_000)
    expect(await again).toMatchObject({ stuck: [] })
    expect(rig.system.node.drain?.isDraining).toBe(true)
    expect(rig.isMarkedDrained).toBe(true)
  })

  it('that comes while podd starts waits until the pods that run are known, and ends them', async () => {
    const rig = await started('web', 'other')
    await rig.kill()
    const opened = Promise.withResolvers<void>()
    rig.opened = opened.promise
    await rig.start()
    const drain = rig.system.node.drain?.run()
    await rig.clock.advance(30_000)
    opened.resolve()
    await rig.clock.advance(60_000)
    expect(await drain).toEqual({ ended: 2, stuck: [] })
    expect(rig.running()).toEqual([])
  })

  it('ends pods that run though their source has given nothing since podd started', async () => {
    const rig = await started('web')
    await rig.kill()
    rig.boot()
    await rig.settle()
    const drain = rig.system.node.drain?.run()
    await rig.clock.advance(60_000)
    expect(await drain).toEqual({ ended: 1, stuck: [] })
  })

  it('leaves a finished pod as it is, though its sandbox is there still', async () => {
    const rig = await started()
    await rig.apply(podManifest('job', { restartPolicy: 'Never' }))
    rig.fake.exitContainer('main', 0)
    await rig.settle()
    const drain = rig.system.node.drain?.run()
    await rig.clock.advance(60_000)
    expect(await drain).toEqual({ ended: 0, stuck: [] })
    expect(rig.pod('job').status.phase).toBe('Succeeded')
  })
})

describe('an evicted pod', () => {
  it('gives back its volumes although its record can not be written', async () => {
    const rig = await started('web')
    const { uid } = rig.pod('web').metadata
    rig.records.failure = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    rig.evict(uid, { reason: 'Evicted', message: 'the disk is full', graceSeconds: 1 })
    await rig.clock.advance(10_000)
    expect(rig.tornDown).toContain(uid)
    expect(rig.pod('web').status).toMatchObject({ phase: 'Failed', reason: 'Evicted' })
    rig.records.failure = undefined
  })
})
