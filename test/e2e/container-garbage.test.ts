import { expect, it } from 'vitest'
import { isNightly } from '../support/nightly.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellContainer, podOf } from '../support/shell-pods.ts'

interface GarbagePod {
  readonly name: string
  readonly containers: number
  /** How often each container ends before it stays. */
  readonly restarts: number
}

/** As in the kubelet's suite: each container ends until a file on a shared volume has so many lines. */
function garbagePod({ name, containers, restarts }: GarbagePod, shared: string): object {
  const all = Array.from({ length: containers }, (_, index) => {
    const count = `/count/${index}`
    const script = `echo x >>${count}; if [ $(wc -l <${count}) -le ${restarts} ]; then exit 0; fi; stay`
    return shellContainer(`c${index}`, `${name}-${index}`, script, {
      volumeMounts: [{ name: 'count', mountPath: '/count' }],
    })
  })
  return podOf(name, shared, all, { volumes: [{ name: 'count', emptyDir: {} }] })
}

/** How many containers containerd has of each of the pods' containers, running and exited. */
function copies(podd: PoddRig, uid: string): readonly number[] {
  const ids = podd.containerIds(uid)
  const names = ids.map((id) => podd.ctr('containers', 'info', id)).flatMap((text) => nameIn(text) ?? [])
  return [...Map.groupBy(names, (name) => name).values()].map(({ length }) => length)
}

function nameIn(text: string): string | undefined {
  const { Labels: labels }: { Labels: Record<string, string> } = JSON.parse(text)
  return labels['io.kubernetes.container.name']
}

// The cases of `test/e2e_node/garbage_collector_test.go`, 1.36: with the defaults, one exited container of each is kept.
describePodd('GarbageCollect', {}, (current) => {
  const cases: readonly [title: string, pods: readonly GarbagePod[]][] = [
    ['One Non-restarting Container', [{ name: 'one', containers: 1, restarts: 0 }]],
    ['Many Restarting Containers', [{ name: 'many', containers: 4, restarts: 4 }]],
    [
      'Many Pods with Many Restarting Containers',
      [
        { name: 'pods-one', containers: 4, restarts: 3 },
        { name: 'pods-two', containers: 6, restarts: 2 },
        { name: 'pods-three', containers: 5, restarts: 3 },
      ],
    ],
  ]
  // The last one starts 53 containers, and shows what the one before it does.
  it.each(isNightly ? cases : cases.slice(0, -1))(
    '%s: Should eventually garbage collect containers when we exceed the number of dead containers per container',
    async (_title, pods) => {
      const podd = current()
      for (const pod of pods) podd.drop(pod.name, garbagePod(pod, podd.shared))
      const uids: string[] = []
      for (const { name, restarts, containers } of pods) {
        const { metadata } = await podd.untilPod(name, 'so many restarts', ({ status }) =>
          (status.containerStatuses ?? []).every(
            ({ restartCount, state }) => restartCount >= restarts && state.running !== undefined,
          ),
        )
        uids.push(metadata.uid)
        const expected = Array.from({ length: containers }, () => (restarts === 0 ? 1 : 2))
        await podd.until(
          'one exited container of each at most',
          async () => JSON.stringify(copies(podd, metadata.uid)) === JSON.stringify(expected),
        )
      }
      for (const { name } of pods) podd.removeManifest(name)
      for (const { name } of pods) await podd.untilGone(name)
      for (const uid of uids) expect(podd.containerIds(uid)).toEqual([])
    },
  )
})
