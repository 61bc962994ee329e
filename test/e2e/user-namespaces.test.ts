import { execFileSync } from 'node:child_process'
import { chmodSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'

/** containerd 2.0 with runc 1.2, which can show a volume's files as the pod's own. */
function canMapUsers({ install, env }: PoddRig): boolean {
  const [, major = '0', minor = '0'] =
    /runc version (\d+)\.(\d+)/u.exec(
      execFileSync('sh', ['-c', 'runc --version'], { env, encoding: 'utf8' }),
    ) ?? []
  return Number(install.release) >= 2 && Number(major) * 1000 + Number(minor) >= 1002
}

describePodd('users of a pod’s own', {}, (rig) => {
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
