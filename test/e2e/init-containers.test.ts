import { expect, it } from 'vitest'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { podOf, shellContainer, wordsOf } from '../support/shell-pods.ts'

const sidecar = { restartPolicy: 'Always' }

describePodd('init containers and sidecars', {}, (rig) => {
  it.concurrent(
    'runs init containers one after the other, then the main ones',
    proves('init-containers', 'PodSpec: initContainers'),
    async () => {
      const podd = rig()
      const step = (word: string) =>
        shellContainer(
          word,
          'order',
          `say ${word} begins; until [ -e /shared/order-may-go-on ]; do sleep 0.1; done; say ${word} ends`,
        )
      podd.drop(
        'order',
        podOf('order', podd.shared, [shellContainer('main', 'order', 'say main; stay')], {
          spec: { initContainers: [step('first'), step('second')] },
        }),
      )
      const starting = await podd.untilPod('order', 'its first step', ({ status }) =>
        (status.initContainerStatuses ?? []).some(({ state }) => state.running !== undefined),
      )
      expect(starting.status.phase).toBe('Pending')
      expect(conditionOf(starting, 'Initialized')).toBe('False')
      expect((await podd.cliOk('get', 'pods', 'order')).split('\n')[1]).toMatch(/Init:0\/2/u)
      podd.touchShared('order-may-go-on')
      const pod = await podd.untilReady('order')
      expect(await podd.untilWords('order', 5)).toEqual([
        'first begins',
        'first ends',
        'second begins',
        'second ends',
        'main',
      ])
      expect(containerOf(pod, 'second').state.terminated).toMatchObject({ exitCode: 0, reason: 'Completed' })
      expect(conditionOf(pod, 'Initialized')).toBe('True')
    },
  )

  it.concurrent(
    'restarts a sidecar that fell, beside the main container',
    proves('sidecar', 'Container: restartPolicy'),
    async () => {
      const podd = rig()
      const script = 'say proxy; [ $(grep -c proxy /shared/fallen) -ge 2 ] && stay; sleep 0.5; exit 1'
      podd.drop(
        'fallen',
        podOf('fallen', podd.shared, [shellContainer('main', 'fallen', 'say main; stay')], {
          spec: { initContainers: [shellContainer('proxy', 'fallen', script, sidecar)] },
        }),
      )
      const pod = await podd.untilPod(
        'fallen',
        'its sidecar again',
        (now) => containerOf(now, 'proxy').restartCount === 1 && conditionOf(now, 'Ready') === 'True',
      )
      expect(containerOf(pod, 'main').restartCount).toBe(0)
      expect(wordsOf(podd.lines('fallen')).filter((word) => word === 'main')).toHaveLength(1)
    },
  )

  // id: begins-anew-init-containers
  it.concurrent('begins anew with the init containers in a new sandbox', async () => {
    const podd = rig()
    podd.drop(
      'anew',
      podOf('anew', podd.shared, [shellContainer('main', 'anew', 'say main; stay')], {
        spec: {
          initContainers: [
            shellContainer('first', 'anew', 'say first'),
            shellContainer('proxy', 'anew', 'say proxy; stay', sidecar),
            shellContainer('second', 'anew', 'say second'),
          ],
        },
      }),
    )
    const before = await podd.untilReady('anew')
    const known = [...(before.status.initContainerStatuses ?? []), ...(before.status.containerStatuses ?? [])]
    const containers = known.map(({ containerID }) => containerID?.replace('containerd://', ''))
    const box = podd.containerIds(before.metadata.uid).find((id) => !containers.includes(id))
    process.kill(podd.pidOf(box ?? ''), 'SIGKILL')
    const after = await podd.untilPod(
      'anew',
      'its second life',
      (pod) =>
        conditionOf(pod, 'Ready') === 'True' &&
        ['first', 'proxy', 'second', 'main'].every((name) => containerOf(pod, name).restartCount === 1),
    )
    expect(after.metadata.uid).toBe(before.metadata.uid)
    const saidBeside = (): string[] => wordsOf(podd.lines('anew')).filter((word) => word !== 'end')
    await podd.until('all words', () => saidBeside().length >= 8)
    expect(saidBeside()).toEqual(['first', 'proxy', 'second', 'main', 'first', 'proxy', 'second', 'main'])
  })

  // id: runs-prestop-hooks-once
  it.concurrent('runs all preStop hooks at once, before anything ends', async () => {
    const podd = rig()
    const hooked = (name: string, fields: object = {}) => {
      const hook = `say() { read t _ < /proc/uptime; echo "$t $*" >> /shared/hooked; }
        say ${name} hook; until [ -e /shared/hooks-may-end ]; do sleep 0.1; done`
      const lifecycle = { preStop: { exec: { command: ['sh', '-c', hook] } } }
      return shellContainer(name, 'hooked', `trap 'say ${name}; exit 0' TERM; sleep 1000 & wait`, {
        lifecycle,
        ...fields,
      })
    }
    podd.drop(
      'hooked',
      podOf('hooked', podd.shared, [hooked('main')], {
        spec: {
          initContainers: [hooked('one', sidecar), hooked('two', sidecar)],
          terminationGracePeriodSeconds: 120,
        },
      }),
    )
    await podd.untilReady('hooked')
    podd.removeManifest('hooked')
    // Each waits until all have begun.
    await podd.until('all hooks', () => podd.lines('hooked').length === 3)
    podd.touchShared('hooks-may-end')
    await podd.untilGone('hooked')
    const words = wordsOf(podd.lines('hooked'))
    expect(words.slice(0, 3).toSorted()).toEqual(['main hook', 'one hook', 'two hook'])
    expect(words.slice(3)).toEqual(['main', 'two', 'one'])
  })
})
