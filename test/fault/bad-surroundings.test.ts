import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { isNightly } from '../support/nightly.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { podOf, shellContainer, shellPod } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

/** A root directory on a disk of its own, which a test can fill. */
describePodd('bad surroundings', { rootDisk: { sizeMiB: 48 } }, (rig) => {
  beforeEach(async () => {
    rmSync(join(rig().rootDir, 'filler'), { force: true })
    await rig().ensureDaemon()
  })

  afterAll(() => rmSync(join(rig().rootDir, 'filler'), { force: true }))

  it('lets no second podd work on the same directories', async () => {
    const podd = rig()
    podd.drop('steady', shellPod('steady', podd.shared, 'say start; stay'))
    await podd.untilReady('steady')
    const { code, stdout, stderr } = await podd.cli('run', ...podd.flags())
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.trim().split('\n')).toEqual([
      `podd: another podd works in ${podd.rootDir}`,
      'Stop it first, or give this one a --run-dir and a --root-dir of its own.',
    ])
    // Another run directory makes it no better: the pods are the same.
    const elsewhere = podd
      .flags()
      .map((flag) => (flag === podd.runDir ? join(podd.directory, 'other-run') : flag))
    const second = await podd.cli('run', ...elsewhere)
    expect(second.code).toBe(1)
    expect(second.stderr).toContain(`another podd works in ${podd.rootDir}`)
    expect(await podd.untilWords('steady', 1)).toEqual(['start'])
    expect((await podd.status()).pid).toBe(podd.daemonPid)
  })

  it.each([
    ['an unknown flag', ['--rot-dir', '/x'], 2, /unknown flag .*--rot-dir.*\n.*--root-dir/su],
    ['a value that is none', ['--max-pods', 'many'], 2, /--max-pods/u],
    [
      'a config file that is not there',
      ['--config', '/nowhere/podd.yaml'],
      1,
      /cannot read the config file \/nowhere\/podd\.yaml/u,
    ],
    ['a root directory that is a file', ['--root-dir', '/proc/version'], 1, /\/proc\/version/u],
    [
      'a root directory where none can be made',
      ['--root-dir', '/proc/podd/root'],
      1,
      /cannot create \/proc\/podd\/root: ENOENT/u,
    ],
  ])('says in one message what is wrong with %s', async (_, args, code, message) => {
    const result = await rig().cli('run', ...args)
    expect(result.code).toBe(code)
    expect(result.stderr).toMatch(message)
    expect(result.stderr).not.toMatch(/ at .*\.js:/u)
    expect(result.stderr.trim().split('\n').length).toBeLessThanOrEqual(3)
  })

  it('says what is wrong in a config file, with its place', async () => {
    const podd = rig()
    const path = join(podd.directory, 'bad-config.yaml')
    writeFileSync(path, 'apiVersion: podd.dev/v1\nkind: PoddConfiguration\nmaxPod: 3\n')
    const { code, stderr } = await podd.cli('run', '--config', path)
    expect(code).toBe(1)
    expect(stderr).toMatch(/bad-config\.yaml:3:1: maxPod: .*maxPods/u)
  })

  it('says that the disk is full, keeps what runs, and goes on when there is room', async () => {
    const podd = rig()
    const before = await podd.untilReady('steady')
    const filler = join(podd.rootDir, 'filler')
    fill(filler)
    podd.drop('unlucky', shellPod('unlucky', podd.shared, 'say start; stay'))
    const text = await podd.until('the reason', async () => {
      const events = await podd.events('unlucky')
      return events.find(({ message }) => /ENOSPC|no space left/iu.test(message))?.message
    })
    expect(text).toMatch(/record|write|space/iu)
    expect(podd.lines('unlucky')).toEqual([])
    const during = await podd.untilReady('steady')
    expect(containerOf(during, 'main').containerID).toBe(containerOf(before, 'main').containerID)
    // A crash of podd itself while the disk is full.
    await podd.restartDaemon('SIGKILL')
    const restarted = await podd.untilReady('steady')
    expect(containerOf(restarted, 'main').containerID).toBe(containerOf(before, 'main').containerID)
    expect(restarted.metadata.uid).toBe(before.metadata.uid)

    rmSync(filler)
    await podd.untilReady('unlucky')
    expect(await podd.untilWords('unlucky', 1)).toEqual(['start'])
    expect(await podd.untilWords('steady', 1)).toEqual(['start'])
  })

  it('keeps a pod on a full disk whose manifest is changed, until there is room for the new one', async () => {
    const podd = rig()
    const before = await podd.untilReady('unlucky')
    const filler = join(podd.rootDir, 'filler')
    fill(filler)
    const change = { spec: { hostname: 'changed' } }
    podd.drop('unlucky', shellPod('unlucky', podd.shared, 'say start; stay', change))
    await podd.untilNote(/the old one keeps running.*ENOSPC/u)
    expect((await podd.untilReady('unlucky')).metadata.uid).toBe(before.metadata.uid)
    rmSync(filler)
    await podd.until(
      'the new one',
      async () => (await podd.pods()).some(({ spec }) => spec['hostname'] === 'changed'),
      90_000 * slowness,
    )
    await podd.untilReady('unlucky')
    expect(await podd.untilWords('unlucky', 3)).toEqual(['start', 'end', 'start'])
  })

  it('ends a pod on a full disk, and clears it away when there is room', async () => {
    const podd = rig()
    await podd.untilReady('unlucky')
    const filler = join(podd.rootDir, 'filler')
    fill(filler)
    podd.removeManifest('unlucky')
    await podd.until(
      'the end',
      () => podd.lines('unlucky').filter((line) => line.endsWith(' end')).length === 2,
    )
    rmSync(filler)
    await podd.untilGone('unlucky')
    expect(await podd.untilWords('unlucky', 4)).toEqual(['start', 'end', 'start', 'end'])
  })

  const meanwhiles: readonly (readonly [string, (podd: PoddRig) => Promise<void>])[] = [
    ['', async () => undefined],
    [
      ', although podd is killed meanwhile',
      async (podd: PoddRig) => {
        // The runtime can't write down the end.
        const { containerID = '' } = containerOf(await podd.untilPod('greedy', 'known', () => true), 'main')
        await podd.until('its end', () => podd.pidOf(containerID) === 0)
        await podd.stopDaemon('SIGKILL')
        await podd.startDaemon()
      },
    ],
  ]
  it.each(isNightly ? meanwhiles : meanwhiles.slice(0, 1))(
    'ends a pod that has filled the disk itself, and makes room with that%s',
    async (_title, meanwhile) => {
      const podd = rig()
      await podd.untilReady('steady')
      const volumes = [{ name: 'v', emptyDir: {} }]
      const container = shellContainer(
        'main',
        'greedy',
        'cat /dev/zero >/v/big 2>/dev/null; say full; stay',
        {
          volumeMounts: [{ name: 'v', mountPath: '/v' }],
        },
      )
      const spec = { volumes, terminationGracePeriodSeconds: 1 }
      rmSync(join(podd.shared, 'greedy'), { force: true })
      podd.drop('greedy', podOf('greedy', podd.shared, [container], spec))
      await podd.untilLine('greedy', / full$/u)
      podd.removeManifest('greedy')
      await podd.untilLine('greedy', / end$/u)
      await meanwhile(podd)
      await podd.untilGone('greedy')
      expect(await podd.untilWords('steady', 1)).toEqual(['start'])
    },
  )

  it('keeps what runs on a disk that has become read-only', async () => {
    const podd = rig()
    const before = await podd.untilReady('steady')
    await podd.stopDaemon('SIGTERM')
    const readOnly = `mount --make-rprivate / && mount -o remount,bind,ro '${podd.rootDir}' && exec "$@"`
    const child = podd.launch(['unshare', '--mount', 'sh', '-c', readOnly, 'sh'])
    const [code] = await once(child, 'exit')
    expect(code).toBe(1)
    const log = readFileSync(join(podd.directory, 'podd.log'), 'utf8')
    expect(log.slice(log.lastIndexOf('podd: '))).toMatch(/EROFS|read-only/u)
    await podd.startDaemon()
    const after = await podd.untilReady('steady')
    expect(containerOf(after, 'main').containerID).toBe(containerOf(before, 'main').containerID)
    expect(await podd.untilWords('steady', 1)).toEqual(['start'])
  })
})

/** Takes all that is left of a disk. */
function fill(path: string): void {
  const chunk = Buffer.alloc(256 * 1024)
  for (const size of [chunk.length, 4096, 512]) {
    try {
      for (;;) writeFileSync(path, chunk.subarray(0, size), { flag: 'a' })
    } catch {
      // Full, for pieces of this size.
    }
  }
}
