import { spawn } from 'node:child_process'
import { chmodSync, lstatSync, readFileSync, readdirSync, statSync } from 'node:fs'
import type { Dirent } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { errorCode } from '../../src/base/errors.ts'
import { readUmask } from '../../src/host/processes.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { readCgroup } from '../support/read-cgroup.ts'
import { shellContainer, shellPod, wordsOf } from '../support/shell-pods.ts'

const settings = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { key: 'v' } }
const access = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'access' }, stringData: { key: 'v' } }
const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
}

/** Looks all around `/` as a user who is nobody on this host, in an init container too. */
function strangerPod(rig: PoddRig, name: string): object {
  chmodSync(rig.shared, 0o777)
  const init = shellContainer('init', name, 'say init $(ls -d /bin)')
  const look = [
    'say $(cd / && ls -d bin) $(cat /etc/hostname) $(grep -c . /etc/hosts | grep -c .)',
    'cat /etc/resolv.conf >/dev/null && say resolves',
    'say $(cat /new/deep/map/key) $(cat /s/key)',
    'for v in e m c; do echo $v >/$v/mine; done; say $(cat /c/mine /e/mine /m/mine); echo bye >/dev/termination-log && say told',
    'say up; stay',
  ].join('\n')
  return shellPod(name, rig.shared, look, {
    spec: { securityContext: { runAsUser: 4321, runAsGroup: 4321 }, initContainers: [init] },
    volumes: [
      { name: 'map', configMap: { name: 'settings' } },
      { name: 's', secret: { secretName: 'access' } },
      { name: 'e', emptyDir: {} },
      { name: 'm', emptyDir: { medium: 'Memory' } },
      { name: 'c', persistentVolumeClaim: { claimName: 'data' } },
    ],
    mounts: [
      { name: 'map', mountPath: '/new/deep/map' },
      ...['s', 'e', 'm', 'c'].map((volume) => ({ name: volume, mountPath: `/${volume}` })),
    ],
  })
}

/** What belongs to pods and not to podd: volumes, root file systems, and what termination messages are written to. */
const notPodds = /\/(?:volumes|claims\/[^/]+\/[^/]+|snapshots|rootfs|shm|containers\/[^/]+\/\d+)(?:\/|$)/u

/** None where it has gone meanwhile: that of a command that has ended. */
function entriesOf(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}

/** All that lies there and that others than its owner may write to. */
function writableByOthers(directory: string): readonly string[] {
  return entriesOf(directory).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isSymbolicLink() || notPodds.test(path)) return []
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return []
    const mode = found.mode & 0o7777
    // containerd lets root's group use its sockets.
    const writable = entry.isSocket() ? 0o002 : 0o022
    const own = (mode & writable) === 0 ? [] : [`${path} ${mode.toString(8)}`]
    return entry.isDirectory() ? own.concat(writableByOthers(path)) : own
  })
}

for (const umask of ['000', '027', '077']) {
  describePodd(`a podd that is started under umask ${umask}`, { umask }, (rig) => {
    it('runs containers whose user is not root, and leaves no file for others to write to', async () => {
      rig().drop('stranger', settings, access, claim, strangerPod(rig(), 'stranger'))
      const { metadata } = await rig().untilReady('stranger')
      expect(wordsOf(await rig().untilLine('stranger', / up$/u))).toEqual([
        'init /bin',
        'bin stranger 1',
        'resolves',
        'v v',
        'c e m',
        'told',
        'up',
      ])
      expect(await rig().cliOk('exec', 'stranger', '--', 'sh', '-c', 'umask')).toBe('0022\n')
      const { rootDir, runDir, logsDir, linksDir, cgroupRoot } = rig()
      for (const directory of [rootDir, runDir, logsDir, linksDir, readCgroup.directory(cgroupRoot)])
        expect(writableByOthers(directory)).toEqual([])
      const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)
      expect(
        ['cgroups.json', `records/${metadata.uid}.json`].map((name) => modeOf(join(rootDir, name))),
      ).toEqual(['600', '600'])
      expect([runDir, logsDir].map((path) => modeOf(path))).toEqual(['711', '755'])
      expect([readUmask(rig().daemonPid), readUmask(rig().containerdPid)]).toEqual([0o022, 0o022])
    })

    it('mends what an older one made under it', async () => {
      const before = rig().containerdPid
      await rig().stopDaemon()
      process.kill(before, 'SIGKILL')
      await rig().until('the end of containerd', () => rig().containerdPid === 0)
      chmodSync(join(rig().rootDir, 'cgroups.json'), 0o666)
      const words = [
        join(rig().install.binDir, 'containerd'),
        '--config',
        join(rig().rootDir, 'containerd/config.toml'),
      ]
      spawn('sh', ['-c', `umask ${umask}; exec "$@"`, 'sh', ...words], {
        env: rig().env,
        detached: true,
        stdio: 'ignore',
      }).unref()
      const old = await rig().until('the older containerd', () => rig().containerdPid)
      // Until then it is the shell that starts it.
      await rig().until('its umask', () => readUmask(old) === Number.parseInt(umask, 8))
      await rig().startDaemon()
      expect(readUmask(rig().containerdPid)).toBe(0o022)
      expect(readFileSync(join(rig().directory, 'podd.log'), 'utf8')).toContain(`its umask is 0${umask}`)
      // A container that is made now, in a pod that ran on meanwhile.
      rig().drop('after', strangerPod(rig(), 'after'))
      await rig().untilLine('after', / up$/u)
      expect(statSync(join(rig().rootDir, 'cgroups.json')).mode & 0o777).toBe(0o600)
      expect((await rig().findPod('stranger'))?.status.containerStatuses?.[0]?.restartCount).toBe(0)
    })
  })
}
