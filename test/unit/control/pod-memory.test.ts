import { beforeEach, describe, expect, it } from 'vitest'
import { PodMemory } from '../../../src/control/pod/memory.ts'
import type { ObservedContainer } from '../../../src/pod/state/observed.ts'
import type { PodRecord } from '../../../src/pod/state/pod-record.ts'
import { annotationKeys } from '../../../src/translate/identity.ts'
import { plainMemoryEnv } from '../../support/plain-pod-host.ts'
import { exitedContainer as exited, makePod, observedPod } from '../../support/pod-builders.ts'

const record: PodRecord = {
  version: 1,
  uid: 'u',
  namespace: 'default',
  name: 'web',
  source: 'file',
  path: '/web.yaml',
  manifest: {},
  acceptedAtMs: 0,
  oomKills: 0,
  conditions: {},
  containers: {},
}

/** How often the kernel is found to have killed in the pod's cgroup for memory, each time one asks. */
let kills: (number | undefined)[] = []

beforeEach(() => {
  kills = []
})

/** What the memory knows of container `a` after it has seen these, one after another; its log grows meanwhile. */
async function remember(...seen: readonly ObservedContainer[][]) {
  const memory = memoryOf(record)
  for (const containers of seen) await memory.rememberEnds(pod, observedPod({ sandboxes: [], containers }))
  return memory.record.containers['a']
}

const pod = makePod()

function memoryOf(initial: PodRecord): PodMemory {
  const log = ['first line', 'first line, last line', 'something else']
  const plain = plainMemoryEnv()
  const env = {
    ...plain,
    volumes: { ...plain.volumes, readTerminationLog: async () => log.shift() ?? 'nothing' },
    cgroups: { ...plain.cgroups, countOomKills: async () => kills.shift() },
  }
  return new PodMemory(env, { record: initial, saved: true })
}

/** One that has a file for its termination message. */
function exitedContainer(name: string, exitCode: number, changes: Partial<ObservedContainer> = {}) {
  const annotations = { [annotationKeys.terminationMessagePath]: '/dev/termination-log' }
  return exited(name, exitCode, { annotations, ...changes })
}

const provisional = exitedContainer('a', 137, { reason: 'Error', provisional: true })
const known = exitedContainer('a', 137, { reason: 'OOMKilled' })

describe('how a container ended', () => {
  it('is what the runtime itself says, once it does', async () => {
    const { ended, endedBefore } = (await remember([provisional], [provisional], [known], [known])) ?? {}
    expect(ended).toMatchObject({ reason: 'OOMKilled', message: 'first line, last line' })
    expect(ended?.provisional).toBeUndefined()
    expect(endedBefore).toBeUndefined()
  })

  it('stays as it was read first, where the runtime said so', async () => {
    const changed = exitedContainer('a', 1, { reason: 'Error' })
    expect((await remember([known], [changed]))?.ended).toMatchObject({
      exitCode: 137,
      reason: 'OOMKilled',
      message: 'first line',
    })
  })

  it('is for its memory also where that is heard after it was read', async () => {
    const early = exitedContainer('a', 137, { reason: 'Error' })
    expect((await remember([early], [known]))?.ended).toMatchObject({
      exitCode: 137,
      reason: 'OOMKilled',
      message: 'first line',
    })
  })

  it('is not mixed up with the end of its successor', async () => {
    const successor = exitedContainer('a', 0, { restartCount: 1 })
    const { ended, endedBefore } = (await remember([provisional], [successor, known])) ?? {}
    expect([ended?.exitCode, endedBefore?.exitCode]).toEqual([0, 137])
  })

  describe('where the runtime does not tell that it was for its memory', () => {
    const killed = (restartCount: number, fields: object = {}) =>
      exitedContainer('a', 137, { restartCount, reason: 'Error', ...fields })

    it('is for it all the same where the kernel has killed in the pod since the last end', async () => {
      kills = [1]
      expect((await remember([killed(0)]))?.ended).toMatchObject({ exitCode: 137, reason: 'OOMKilled' })
    })

    it('stays so when the runtime tells more', async () => {
      kills = [1]
      const { ended } = (await remember([provisional], [killed(0)])) ?? {}
      expect(ended).toMatchObject({ reason: 'OOMKilled', message: 'first line, last line' })
    })

    it.each([
      ['the kernel has killed nothing since', [2, 2], 137, 'Error'],
      ['a process of its own was, and it ended by that', [2, 3], 1, 'OOMKilled'],
      ['a process of its own was, and it made nothing of that', [2, 3], 0, 'OOMKilled'],
      ['nobody counts', [2, undefined], 137, 'Error'],
      ['the count is that of a cgroup that was recreated', [2, 0], 137, 'Error'],
      ['there were more', [2, 3], 137, 'OOMKilled'],
    ])('is told by whether there were new kills: %s', async (_what, counts, exitCode, reason) => {
      kills = counts
      const second = exitedContainer('a', exitCode, { restartCount: 1, reason: 'Error' })
      const { ended, endedBefore } = (await remember([killed(0)], [second])) ?? {}
      expect(ended).toMatchObject({ exitCode, reason })
      expect(endedBefore).toMatchObject({ reason: 'OOMKilled' })
    })

    it.each([
      [
        'another one was killed as well',
        [killed(0), exitedContainer('b', 137, { reason: 'Error' })],
        'Error',
      ],
      [
        'the runtime tells so of another one',
        [killed(0), exitedContainer('b', 137, { reason: 'OOMKilled' })],
        'Error',
      ],
      [
        'another one has ended otherwise',
        [killed(0), exitedContainer('b', 1, { reason: 'Error' })],
        'OOMKilled',
      ],
    ])('is told of one container only: %s', async (_what, containers, reason) => {
      kills = [2]
      expect((await remember(containers))?.ended?.reason).toBe(reason)
    })

    it('is not told from what was killed before anybody counted', async () => {
      const { oomKills: _none, ...older } = record
      kills = [2, 3]
      const memory = memoryOf(older)
      await memory.rememberEnds(pod, observedPod({ sandboxes: [], containers: [killed(0)] }))
      expect(memory.record).toMatchObject({ oomKills: 2, containers: { a: { ended: { reason: 'Error' } } } })
      await memory.rememberEnds(pod, observedPod({ sandboxes: [], containers: [killed(1)] }))
      expect(memory.record.containers['a']?.ended?.reason).toBe('OOMKilled')
    })

    it('is asked only when a container has ended', async () => {
      kills = [1, 2]
      await remember([killed(0)], [killed(0)], [])
      expect(kills).toEqual([2])
    })
  })
})

it('writes no record once the pod is forgotten, and removes it after the write in flight', async () => {
  const calls: string[] = []
  const { promise: isWritten, resolve: write } = Promise.withResolvers<void>()
  const records = {
    save: async () => {
      await isWritten
      calls.push('save')
    },
    isThere: async () => true,
    remove: async () => void calls.push('remove'),
    checkRoom: async () => {},
  }
  const memory = new PodMemory({ ...plainMemoryEnv(), records }, { record, saved: false })
  const saved = memory.save('required')
  await Promise.resolve()
  const removed = memory.remove()
  memory.change({ oomKills: 1 })
  const late = [memory.save('required'), memory.commit(() => ({ oomKills: 2 }))]
  write()
  await Promise.all([saved, removed, ...late])
  memory.change({ oomKills: 3 })
  await memory.save('required')
  expect(calls).toEqual(['save', 'remove'])
})
