import { expect, it } from 'vitest'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { podOf, saidAt, shellContainer, wordsOf } from '../support/shell-pods.ts'

const config = { crashLoopBackOff: { maxContainerRestartPeriod: '1s' } }
const sidecar = { restartPolicy: 'Always' }

describePodd('init containers and sidecars', { config }, (rig) => {
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

  it.concurrent('repeats an init container until it succeeds', async () => {
    const podd = rig()
    const script = 'say try; [ $(wc -l </shared/tries) -ge 3 ]'
    podd.drop(
      'tries',
      podOf('tries', podd.shared, [shellContainer('main', 'tries', 'say main; stay')], {
        spec: { initContainers: [shellContainer('setup', 'tries', script)] },
      }),
    )
    const pod = await podd.untilReady('tries')
    expect(await podd.untilWords('tries', 4)).toEqual(['try', 'try', 'try', 'main'])
    expect(containerOf(pod, 'setup').restartCount).toBe(2)
  })

  // id: fails-pod-under-never
  it.concurrent('fails a pod under Never whose init container fails', async () => {
    const podd = rig()
    podd.drop(
      'doomed',
      podOf('doomed', podd.shared, [shellContainer('main', 'doomed', 'say main')], {
        spec: {
          restartPolicy: 'Never',
          initContainers: [shellContainer('setup', 'doomed', 'say setup; exit 5')],
        },
      }),
    )
    const pod = await podd.untilPhase('doomed', 'Failed')
    expect(containerOf(pod, 'setup').state.terminated?.exitCode).toBe(5)
    expect(await podd.untilWords('doomed', 1)).toEqual(['setup'])
    expect((await podd.cliOk('get', 'pods', 'doomed')).split('\n')[1]).toContain('Init:Error')
  })

  // id: starts-follows-sidecar-only
  it.concurrent('starts what follows a sidecar only when its startup probe has passed', async () => {
    const podd = rig()
    const gate = {
      ...sidecar,
      startupProbe: {
        exec: { command: ['test', '-e', '/tmp/ready'] },
        periodSeconds: 1,
        timeoutSeconds: 10,
        failureThreshold: 60,
      },
    }
    podd.drop(
      'gate',
      podOf('gate', podd.shared, [shellContainer('main', 'gate', 'say main; stay')], {
        spec: {
          initContainers: [
            shellContainer('proxy', 'gate', 'say proxy; sleep 2; say open; touch /tmp/ready; stay', gate),
            shellContainer('setup', 'gate', 'say setup'),
          ],
        },
      }),
    )
    const pod = await podd.untilReady('gate')
    expect(await podd.untilWords('gate', 4)).toEqual(['proxy', 'open', 'setup', 'main'])
    expect(containerOf(pod, 'proxy')).toMatchObject({ started: true, ready: true })
    expect((await podd.cliOk('get', 'pods', 'gate')).split('\n')[1]).toMatch(/^gate +2\/2 +Running/u)
  })

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

  // id: ends-sidecars-after-main
  it.concurrent('ends sidecars after the main container, in reverse order', async () => {
    const podd = rig()
    const slowly = (name: string) =>
      shellContainer(
        name,
        'reverse',
        `trap 'sleep 0.3; say ${name}; exit 0' TERM; sleep 1000 & wait`,
        sidecar,
      )
    podd.drop(
      'reverse',
      podOf(
        'reverse',
        podd.shared,
        [shellContainer('main', 'reverse', `trap 'sleep 0.5; say main; exit 0' TERM; sleep 1000 & wait`)],
        {
          spec: {
            initContainers: [slowly('one'), slowly('two'), slowly('three')],
            terminationGracePeriodSeconds: 20,
          },
        },
      ),
    )
    await podd.untilReady('reverse')
    podd.removeManifest('reverse')
    await podd.untilGone('reverse')
    expect(await podd.untilWords('reverse', 4)).toEqual(['main', 'three', 'two', 'one'])
  })

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

  // id: starts-ephemeral-container-init
  it.concurrent('starts an ephemeral container while an init container still runs', async () => {
    const podd = rig()
    const pod = (ephemeralContainers: readonly object[]) =>
      podOf('helped', podd.shared, [shellContainer('main', 'helped', 'say main; stay')], {
        spec: {
          initContainers: [
            shellContainer('stuck', 'helped', 'say stuck; until [ -e /kept/go ]; do sleep 0.1; done', {
              volumeMounts: [{ name: 'kept', mountPath: '/kept' }],
            }),
          ],
          ephemeralContainers,
        },
        volumes: [{ name: 'kept', emptyDir: {} }],
      })
    podd.drop('helped', pod([]))
    await podd.untilLine('helped', / stuck$/u)
    const helper = shellContainer('helper', 'helped', 'say helper; touch /kept/go; exit 1', {
      volumeMounts: [{ name: 'kept', mountPath: '/kept' }],
    })
    podd.drop('helped', pod([helper]))
    await podd.untilReady('helped')
    await podd.untilLine('helped', / main$/u)
    expect(await podd.untilWords('helped', 3)).toEqual(['stuck', 'helper', 'main'])
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

  // id: ends-sidecars-pod-runs
  it.concurrent('ends sidecars when a pod that runs once is done', async () => {
    const podd = rig()
    podd.drop(
      'job',
      podOf('job', podd.shared, [shellContainer('main', 'job', 'say work; sleep 0.5; say done')], {
        spec: {
          restartPolicy: 'Never',
          initContainers: [shellContainer('proxy', 'job', 'say proxy; stay', sidecar)],
        },
      }),
    )
    const pod = await podd.untilPhase('job', 'Succeeded')
    const lines = await podd.untilLine('job', / end$/u)
    expect(wordsOf(lines)).toEqual(['proxy', 'work', 'done', 'end'])
    expect(saidAt(lines, 'end')).toBeGreaterThanOrEqual(saidAt(lines, 'done'))
    await podd.until('the end of all', () =>
      podd.containerIds(pod.metadata.uid).every((id) => podd.pidOf(id) === 0),
    )
    expect((await podd.findPod('job'))?.status.phase).toBe('Succeeded')
  })
})
