import { chmodSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { PodObject } from '../../src/api/objects.ts'
import { describePodd } from '../support/podd-rig.ts'
import { otherShell } from '../support/podd-program.ts'
import { podOf, shellContainer } from '../support/shell-pods.ts'

/** What 2.x can and 1.x can't: tell whom a container runs as, make mounts read-only all the way down. */
const isModern = (version: string): boolean => Number.parseInt(version, 10) >= 2

describePodd('the status', {}, (rig) => {
  it.concurrent('tells of each container whom it runs as, as far as the runtime does, and its mounts', async () => {
    chmodSync(rig().shared, 0o777)
    const modern = isModern(rig().install.version)
    const volumeMounts = [
      { name: 'data', mountPath: '/w' },
      { name: 'data', mountPath: '/r', readOnly: true },
      { name: 'data', mountPath: '/rr', readOnly: true, recursiveReadOnly: 'IfPossible' },
    ]
    const securityContext = { runAsUser: 1002, runAsGroup: 2002 }
    const containers = [
      shellContainer('main', 'told', 'say $(id -u):$(id -g):$(id -G); stay', { volumeMounts }),
      shellContainer('own', 'told', 'stay', { volumeMounts, securityContext }),
    ]
    const initContainers = [shellContainer('init', 'told', 'true', { volumeMounts })]
    const debug = shellContainer('debug', 'told', 'stay', { volumeMounts, securityContext })
    const spec = {
      initContainers,
      ephemeralContainers: [debug],
      securityContext: { runAsUser: 1001, runAsGroup: 2001, fsGroup: 3001, supplementalGroups: [4001] },
    }
    const volumes = [{ name: 'data', emptyDir: {} }]
    rig().drop('told', podOf('told', rig().shared, containers, { spec, volumes }))
    const runs = ({ status }: PodObject): boolean =>
      [...(status.containerStatuses ?? []), ...(status.ephemeralContainerStatuses ?? [])].every(
        ({ state }) => state.running !== undefined,
      )
    const { status } = await rig().untilPod('told', 'all of it', (pod) => runs(pod))
    const linux = (uid: number, gid: number): object => ({
      linux: {
        uid,
        gid,
        supplementalGroups: expect.toSatisfy((groups: readonly number[]) => sameGroups(groups, gid)),
      },
    })
    const sameGroups = (groups: readonly number[], gid: number): boolean =>
      [3001, 4001].every((group) => groups.includes(group)) &&
      groups.every((group) => [gid, 3001, 4001].includes(group))
    const all = [
      ...(status.initContainerStatuses ?? []),
      ...(status.containerStatuses ?? []),
      ...(status.ephemeralContainerStatuses ?? []),
    ]
    expect(all.map(({ name, user }) => [name, user])).toEqual([
      ['init', modern ? linux(1001, 2001) : undefined],
      ['main', modern ? linux(1001, 2001) : undefined],
      ['own', modern ? linux(1002, 2002) : undefined],
      ['debug', modern ? linux(1002, 2002) : undefined],
    ])
    for (const container of all)
      expect(container.volumeMounts).toEqual([
        { name: 'shared', mountPath: '/shared' },
        { name: 'data', mountPath: '/w' },
        { name: 'data', mountPath: '/r', readOnly: true, recursiveReadOnly: 'Disabled' },
        {
          name: 'data',
          mountPath: '/rr',
          readOnly: true,
          recursiveReadOnly: modern ? 'Enabled' : 'Disabled',
        },
      ])
    rig().removeManifest('told')
    await rig().untilGone('told')
  })

  it('counts the changes of the spec, over a restart of podd', async () => {
    const drop = (image: string | undefined, metadata: object): void => {
      const main = shellContainer('main', 'counted', 'stay', image === undefined ? {} : { image })
      rig().drop(
        'counted',
        podOf('counted', rig().shared, [main], { metadata: { ...metadata, generation: 7 } }),
      )
    }
    const generations = ({ metadata, status }: PodObject): readonly (number | undefined)[] => [
      metadata.generation,
      status.observedGeneration,
      ...status.conditions.map(({ observedGeneration }) => observedGeneration),
    ]
    drop(undefined, {})
    expect(new Set(generations(await rig().untilReady('counted')))).toEqual(new Set([1]))
    drop(undefined, { labels: { tier: 'front' } })
    const labelled = await rig().untilPod(
      'counted',
      'its label',
      ({ metadata }) => metadata.labels !== undefined,
    )
    expect(new Set(generations(labelled))).toEqual(new Set([1]))
    drop(otherShell, { labels: { tier: 'front' } })
    const changed = await rig().untilPod('counted', 'its image', ({ status }) => {
      const [main] = status.containerStatuses ?? []
      return main?.state.running !== undefined && main.image === otherShell
    })
    expect(new Set(generations(changed))).toEqual(new Set([2]))
    await rig().restartDaemon('SIGKILL')
    expect(new Set(generations(await rig().untilReady('counted')))).toEqual(new Set([2]))
    rig().removeManifest('counted')
    await rig().untilGone('counted')
  })
})
