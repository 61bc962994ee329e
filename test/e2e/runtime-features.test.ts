import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { otherShell } from '../support/podd-program.ts'
import { proves } from '../support/proves.ts'
import { podOf, shellContainer, shellPod, wordsOf } from '../support/shell-pods.ts'

/** What a pod said before it was up. */
async function saidBy(rig: PoddRig, name: string): Promise<readonly string[]> {
  return wordsOf(await rig.untilLine(name, / up$/u)).filter((words) => words !== 'up')
}

/** containerd 2.0 with runc 1.2, which can show a volume's files as the pod's own. */
function canMapUsers({ install, env }: PoddRig): boolean {
  const [, major = '0', minor = '0'] =
    /runc version (\d+)\.(\d+)/u.exec(
      execFileSync('sh', ['-c', 'runc --version'], { env, encoding: 'utf8' }),
    ) ?? []
  return Number(install.release) >= 2 && Number(major) * 1000 + Number(minor) >= 1002
}

/** What 2.x can and 1.x can't: tell whom a container runs as, make mounts read-only all the way down. */
const isModern = (version: string): boolean => Number.parseInt(version, 10) >= 2

/** What one containerd can and another can't. */
describePodd('what the runtime may lack', {}, (rig) => {
  it('tells of each container whom it runs as, as far as the runtime does, and its mounts', async () => {
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

  it(
    'are read-only all the way down where the runtime can, and refused by name where it can’t',
    proves('recursive-read-only', 'VolumeMount: recursiveReadOnly'),
    async () => {
      const top = join(rig().directory, 'recursive')
      mkdirSync(join(top, 'below'), { recursive: true })
      execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(top, 'below')])
      try {
        const canBe = Number(rig().install.release) >= 2
        const pod = (name: string, recursiveReadOnly: string): object =>
          shellPod(name, rig().shared, 'touch /v/below/x && say written || say kept; say up; stay', {
            volumes: [{ name: 'v', hostPath: { path: top } }],
            mounts: [{ name: 'v', mountPath: '/v', readOnly: true, recursiveReadOnly }],
          })
        rig().drop('disabled', pod('disabled', 'Disabled'))
        expect(await saidBy(rig(), 'disabled')).toEqual(['written'])
        rig().drop('possible', pod('possible', 'IfPossible'))
        expect(await saidBy(rig(), 'possible')).toEqual([canBe ? 'kept' : 'written'])
        rig().drop('enabled', pod('enabled', 'Enabled'))
        const answer = canBe
          ? await saidBy(rig(), 'enabled')
          : [
              (await rig().untilPod('enabled', 'refused', ({ status }) => status.message !== undefined))
                .status.message,
            ]
        expect(answer[0]).toMatch(
          canBe ? /^kept$/u : /volumeMounts\.recursiveReadOnly: Enabled needs containerd 2\.0/u,
        )
      } finally {
        for (const name of ['disabled', 'possible', 'enabled']) rig().removeManifest(name)
        for (const name of ['disabled', 'possible', 'enabled']) await rig().untilGone(name)
        execFileSync('umount', [join(top, 'below')])
      }
    },
  )

  it(
    'show the files of an image where the runtime can, and are refused by name where it can’t',
    proves('image-volume', 'Volume: image', 'ImageVolumeSource: reference pullPolicy'),
    async () => {
      const [major = 0, minor = 0] = rig().install.release.split('.').map(Number)
      const canBe = major * 1000 + minor >= 2001
      rig().drop(
        'imaged',
        shellPod(
          'imaged',
          rig().shared,
          'say $(ls /v/bin | grep -xc sh); touch /v/x || say read-only; say up; stay',
          {
            volumes: [{ name: 'v', image: { reference: otherShell, pullPolicy: 'IfNotPresent' } }],
            mounts: [{ name: 'v', mountPath: '/v' }],
          },
        ),
      )
      const answer = canBe
        ? await saidBy(rig(), 'imaged')
        : [
            (await rig().untilPod('imaged', 'refused', ({ status }) => status.message !== undefined)).status
              .message,
          ]
      const wanted = canBe ? /^1,read-only$/u : /volumes\.image needs containerd 2\.1/u
      expect(answer.join(',')).toMatch(wanted)
      rig().removeManifest('imaged')
    },
  )

  it(
    'show a part of an image where the runtime can, and are refused by name where it can’t',
    proves('image-part', 'VolumeMount: subPath'),
    async () => {
      const [major = 0, minor = 0] = rig().install.release.split('.').map(Number)
      const release = major * 1000 + minor
      rig().drop(
        'part',
        shellPod('part', rig().shared, 'say $(ls /v | grep -xc sh); say up; stay', {
          volumes: [{ name: 'v', image: { reference: otherShell, pullPolicy: 'IfNotPresent' } }],
          mounts: [{ name: 'v', mountPath: '/v', subPath: 'bin' }],
        }),
      )
      const answer =
        release >= 2002
          ? await saidBy(rig(), 'part')
          : [
              (await rig().untilPod('part', 'refused', ({ status }) => status.message !== undefined)).status
                .message,
            ]
      const wanted = release >= 2002 ? /^1$/u : /volumeMounts\.subPath of an image needs containerd 2\.2$/u
      expect(answer.join(',')).toMatch(wanted)
      rig().removeManifest('part')
    },
  )

  it(
    'takes supplementalGroupsPolicy Strict where the runtime can, and names what is lacking elsewhere',
    proves('supplemental-groups-policy', 'PodSecurityContext: supplementalGroupsPolicy'),
    async () => {
      const podd = rig()
      chmodSync(podd.shared, 0o777)
      const spec = {
        securityContext: { runAsUser: 1001, supplementalGroups: [4001], supplementalGroupsPolicy: 'Strict' },
      }
      podd.drop('strict', shellPod('strict', podd.shared, 'say $(id -G); say up; stay', { spec }))
      const isOld = podd.install.version.startsWith('1.')
      const outcome = isOld
        ? (await podd.untilPod('strict', 'refusal', ({ status }) => status.reason === 'RuntimeUnsupported'))
            .status.message
        : (await saidBy(podd, 'strict')).join(' ')
      const refusal = `not supported by this container runtime (containerd ${podd.install.version}): spec.securityContext.supplementalGroupsPolicy: Strict needs containerd 2.0`
      expect(outcome).toBe(isOld ? refusal : '0 4001')
      podd.removeManifest('strict')
      await podd.untilGone('strict')
    },
  )

  it(
    'sends the signal that the manifest names where the runtime can, and else says which one could',
    proves('stop-signal', 'Lifecycle: stopSignal'),
    async () => {
      const podd = rig()
      const [major = 0, minor = 0] = podd.install.release.split('.').map(Number)
      const canBe = major * 1000 + minor >= 2003
      podd.drop(
        'signalled',
        shellPod('signalled', podd.shared, 'trap "say usr1; exit 0" USR1; say up; stay', {
          container: { lifecycle: { stopSignal: 'SIGUSR1' } },
          spec: { os: { name: 'linux' }, terminationGracePeriodSeconds: 20 },
        }),
      )
      if (canBe) await podd.untilReady('signalled')
      const { status } = await podd.untilPod(
        'signalled',
        'answered',
        ({ status: said }) => canBe || said.message !== undefined,
      )
      const wanted = canBe ? /^$/u : /lifecycle\.stopSignal needs containerd 2\.3;/u
      expect(status.message ?? '').toMatch(wanted)
      podd.removeManifest('signalled')
      if (canBe) await podd.untilLine('signalled', / usr1$/u)
      await podd.untilGone('signalled')
    },
  )

  const told = `say $(tr -s ' ' </proc/self/uid_map) as $(id -u)
    touch /e/mine /p/mine; say $(stat -c %u /e/mine /p/mine) $(stat -L -c %u /c/key /s/key) $(grep -c ' /proc/kcore ' /proc/mounts); say up; stay`
  const pod = (name: string): object =>
    shellPod(name, rig().shared, told, {
      spec: { hostUsers: false },
      container: {
        securityContext: { procMount: 'Unmasked' },
        readinessProbe: {
          exec: { command: ['test', '-w', '/e/mine'] },
          periodSeconds: 1,
          timeoutSeconds: 10,
        },
      },
      volumes: [
        { name: 'e', emptyDir: {} },
        { name: 'c', configMap: { name: 'settings' } },
        { name: 's', secret: { secretName: 'access', defaultMode: 0o400 } },
      ],
      mounts: [
        { name: 'e', mountPath: '/e' },
        { name: 'e', mountPath: '/p', subPath: 'part' },
        { name: 'c', mountPath: '/c' },
        { name: 's', mountPath: '/s' },
      ],
    })
  const settings = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings' },
    data: { key: 'x' },
  }

  const access = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'access' },
    stringData: { key: 'hunter2' },
  }

  it(
    'are nobody’s on the host where the runtime can, and refused by name where it can’t',
    proves('user-namespace', 'PodSpec: hostUsers'),
    async () => {
      const podd = rig()
      // As podd's own directories: others may go through.
      chmodSync(podd.directory, 0o711)
      chmodSync(podd.shared, 0o777)
      podd.drop('settings', settings, access)
      for (const name of ['one', 'two']) podd.drop(name, pod(name))
      const can = canMapUsers(podd)
      const outcome = await podd.until('an outcome', async () => {
        if (wordsOf(podd.lines('one')).includes('up') && wordsOf(podd.lines('two')).includes('up'))
          return 'up'
        const found = await podd.findPod('one')
        return found?.status.reason === 'RuntimeUnsupported' && found.status.message
      })
      expect(outcome).toMatch(
        can ? /^up$/u : /spec\.hostUsers: false needs containerd 2\.0 with runc 1\.2 or crun 1\.9$/u,
      )
      const seen = ['one', 'two'].map((name) => wordsOf(podd.lines(name)))
      const firstIds = seen.map(([map = '']) => Number(map.split(' ')[1]))
      const wanted = can ? firstIds.map((id) => [`0 ${id} 65536 as 0`, '0 0 0 0 0', 'up']) : [[], []]
      expect(seen).toEqual(wanted)
      expect(new Set(firstIds).size).toBe(can ? 2 : 1)
      const users = can ? await usersOnHost(podd) : []
      expect(users).toEqual(can ? [firstIds[0], 0] : [])
      for (const name of ['one', 'two', 'settings']) podd.removeManifest(name)
      await podd.untilGone('one')
      await podd.untilGone('two')
    },
  )
})

/** Whom the host sees: as the container's process, and as the owner of what it wrote to its emptyDir. */
async function usersOnHost(podd: PoddRig): Promise<readonly number[]> {
  await podd.untilReady('one')
  await podd.restartDaemon('SIGKILL')
  const found = await podd.untilReady('one')
  const pid = podd.pidOf(containerOf(found, 'main').containerID ?? '')
  const directory = join(podd.rootDir, 'pods', found.metadata.uid, 'volumes/kubernetes.io~empty-dir/e')
  return [statSync(`/proc/${pid}`).uid, statSync(join(directory, 'mine')).uid]
}
