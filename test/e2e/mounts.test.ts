import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { podOf, shellContainer, shellPod, wordsOf } from '../support/shell-pods.ts'

/** What a pod said before it was up. */
async function saidBy(rig: PoddRig, name: string): Promise<readonly string[]> {
  return wordsOf(await rig.untilLine(name, / up$/u)).filter((words) => words !== 'up')
}

const settings = (data: object): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings' },
  data,
})

/** A pod whose init container fills the emptyDir that its main container mounts at /v. */
function filledPod(
  rig: PoddRig,
  name: string,
  given: { fill: string; script: string; mounts: readonly object[]; container?: object },
): object {
  return podOf(
    name,
    rig.shared,
    [
      shellContainer('main', name, `${given.script}; say up; stay`, {
        volumeMounts: given.mounts,
        ...given.container,
      }),
    ],
    {
      volumes: [{ name: 'v', emptyDir: {} }],
      spec: {
        initContainers: [
          shellContainer('fill', name, given.fill, { volumeMounts: [{ name: 'v', mountPath: '/v' }] }),
        ],
      },
    },
  )
}

describePodd('parts of volumes', {}, (rig) => {
  it(
    'are directories and files, and directories that are made',
    proves('sub-path', 'VolumeMount: subPath'),
    async () => {
      rig().drop(
        'parts',
        filledPod(rig(), 'parts', {
          fill: 'mkdir -p /v/a/b; echo inside >/v/a/b/file; ln -s a /v/link',
          script:
            'say $(ls /directory) $(cat /file) $(cat /linked/file); say $(ls /made) $(stat -c %a /made); touch /made/x; touch /ro/y || say ro',
          mounts: [
            { name: 'v', mountPath: '/directory', subPath: 'a/b' },
            { name: 'v', mountPath: '/file', subPath: 'a/b/file' },
            { name: 'v', mountPath: '/linked', subPath: 'link/b' },
            { name: 'v', mountPath: '/made', subPath: 'new/er' },
            { name: 'v', mountPath: '/ro', subPath: 'a', readOnly: true },
          ],
        }),
      )
      expect(await saidBy(rig(), 'parts')).toEqual(['file inside inside', '777', 'ro'])
      const { metadata } = await rig().untilReady('parts')
      rig().removeManifest('parts')
      await rig().untilGone('parts')
      expect(existsSync(join(rig().rootDir, 'pods', metadata.uid))).toBe(false)
      expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(metadata.uid)
    },
  )

  it.each([
    ['a link to the host', 'ln -s /etc /v/x', 'x'],
    ['a link to a file of the host', 'ln -s /etc/passwd /v/x', 'x'],
    ['a link up', 'ln -s ../../../../.. /v/x', 'x/etc'],
    ['a link on the way', 'mkdir /v/a; ln -s / /v/a/x', 'a/x/etc'],
  ])('never show the host through %s', async (what, fill, subPath) => {
    const name = `escape-${what.replaceAll(' ', '-')}`
    rig().drop(
      name,
      filledPod(rig(), name, {
        fill,
        script: 'say $(ls /p)',
        mounts: [{ name: 'v', mountPath: '/p', subPath }],
      }),
    )
    const event = await rig().untilEvent(name, 'Failed')
    expect(event.message).toContain('failed to prepare subPath for volumeMount "v" of container "main"')
    expect(event.message).toContain('leads out of its volume')
    expect(rig().lines(name)).toEqual([])
    rig().removeManifest(name)
  })

  it('never show the host through a link that was put there before a restart', async () => {
    const script = `say $(ls /p | head -1)
      mv /v/spot /v/was; ln -s /etc /v/spot; exit 1`
    rig().drop(
      'swaps',
      shellPod('swaps', rig().shared, script, {
        volumes: [{ name: 'v', emptyDir: {} }],
        mounts: [
          { name: 'v', mountPath: '/p', subPath: 'spot' },
          { name: 'v', mountPath: '/v' },
        ],
      }),
    )
    const event = await rig().untilEvent('swaps', 'Failed')
    expect(event.message).toContain('path "spot" leads out of its volume')
    expect(wordsOf(rig().lines('swaps'))).toEqual([''])
    rig().removeManifest('swaps')
    await rig().untilGone('swaps')
  })

  it.each(['../up', 'a/../../up', '/etc'])('of the path %s are refused in the manifest', async (subPath) => {
    rig().drop(
      'bad',
      shellPod('bad', rig().shared, 'stay', {
        volumes: [{ name: 'v', emptyDir: {} }],
        mounts: [{ name: 'v', mountPath: '/v', subPath }],
      }),
    )
    const problems = await rig().until('the problem', async () => {
      const { problems } = await rig().status()
      return problems.length > 0 && problems
    })
    expect(problems[0]?.field).toBe('spec.containers[0].volumeMounts.subPath')
    rig().removeManifest('bad')
    await rig().until('no problem', async () => (await rig().status()).problems.length === 0)
  })

  it(
    'come from expressions too, which have to have values',
    proves('sub-path-expr', 'VolumeMount: subPathExpr'),
    async () => {
      const env = [
        { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        { name: 'UP', value: '..' },
      ]
      const pod = (name: string, subPathExpr: string): object =>
        filledPod(rig(), name, {
          fill: 'true',
          script: 'echo mine >/p/file; say done',
          mounts: [
            { name: 'v', mountPath: '/p', subPathExpr },
            { name: 'v', mountPath: '/all' },
          ],
          container: { env },
        })
      rig().drop('expr', pod('expr', 'of/$(POD)'))
      expect(await saidBy(rig(), 'expr')).toEqual(['done'])
      const { metadata } = await rig().untilReady('expr')
      const directory = join(rig().rootDir, 'pods', metadata.uid, 'volumes/kubernetes.io~empty-dir/v')
      expect(readFileSync(join(directory, 'of/expr/file'), 'utf8')).toBe('mine\n')
      rig().drop('no-value', pod('no-value', '$(NOBODY)'))
      expect((await rig().untilEvent('no-value', 'Failed')).message).toContain('missing value for "NOBODY"')
      rig().drop('up', pod('up', 'a/$(UP)/$(UP)'))
      expect((await rig().untilEvent('up', 'Failed')).message).toContain("must not contain '..'")
      for (const name of ['expr', 'no-value', 'up']) rig().removeManifest(name)
    },
  )

  it('of a ConfigMap stay as they are until the container restarts', async () => {
    const pod = shellPod('still', rig().shared, 'say $(cat /one); stay', {
      volumes: [{ name: 'v', configMap: { name: 'settings' } }],
      mounts: [
        { name: 'v', mountPath: '/one', subPath: 'one' },
        { name: 'v', mountPath: '/all' },
      ],
    })
    rig().drop('settings', settings({ one: '1' }))
    rig().drop('still', pod)
    await rig().untilLine('still', / 1$/u)
    const before = await rig().untilReady('still')
    const id = before.status.containerStatuses?.[0]?.containerID ?? ''
    rig().drop('settings', settings({ one: '2' }))
    const root = `/proc/${rig().pidOf(id)}/root`
    await rig().until('the update', () => readFileSync(`${root}/all/one`, 'utf8') === '2')
    expect(readFileSync(`${root}/one`, 'utf8')).toBe('1')
    process.kill(rig().pidOf(id), 'SIGKILL')
    await rig().untilLine('still', / 2$/u)
    rig().removeManifest('still')
    rig().removeManifest('settings')
  })
})

describePodd('parts of volumes that change', {}, (rig) => {
  it('from a directory to a file or back are shown when the container starts again', async () => {
    const says = (path: string): string =>
      `say $(stat -c %F ${path}); if [ -d /v/part ]; then rm -r /v/part; echo x >/v/part; else rm /v/part; mkdir /v/part; fi
       [ -e /v/again ] && { say up; stay; }; touch /v/again; exit 1`
    const container = (name: string, mounts: readonly object[]): object =>
      shellContainer(name, name, says('/p /cfg/part 2>/dev/null'), {
        volumeMounts: [{ name, mountPath: '/v' }, { name, mountPath: '/p', subPath: 'part' }, ...mounts],
      })
    rig().drop('settings', settings({ one: '1' }))
    rig().drop(
      'kinds',
      podOf(
        'kinds',
        rig().shared,
        [
          container('was-directory', [
            { name: 'files', mountPath: '/cfg' },
            { name: 'was-directory', mountPath: '/cfg/part', subPath: 'part' },
          ]),
          container('was-file', []),
        ],
        {
          volumes: [
            { name: 'was-directory', emptyDir: {} },
            { name: 'was-file', emptyDir: {} },
            { name: 'files', configMap: { name: 'settings' } },
          ],
          spec: {
            initContainers: [
              shellContainer('fill', 'fill', 'echo x >/v/part', {
                volumeMounts: [{ name: 'was-file', mountPath: '/v' }],
              }),
            ],
          },
        },
      ),
    )
    expect(await saidBy(rig(), 'was-directory')).toEqual(['directory directory', 'regular file regular file'])
    expect(await saidBy(rig(), 'was-file')).toEqual(['regular file', 'directory'])
    rig().removeManifest('kinds')
    await rig().untilGone('kinds')
  })

  it(
    'are waited for where they are keys that are not there, unless they are optional',
    proves('missing-key', 'VolumeMount: subPath subPathExpr'),
    async () => {
      rig().drop('settings', settings({ one: '1' }))
      rig().drop(
        'late',
        shellPod('late', rig().shared, 'say $(ls /all) $(cat /late) $(stat -c %F /extra); stay', {
          volumes: [
            { name: 'v', configMap: { name: 'settings' } },
            { name: 'o', configMap: { name: 'extra', optional: true } },
          ],
          mounts: [
            { name: 'v', mountPath: '/late', subPathExpr: '$(KEY)' },
            { name: 'v', mountPath: '/all' },
            { name: 'o', mountPath: '/extra', subPath: 'extra.conf' },
          ],
          container: { env: [{ name: 'KEY', value: 'late.conf' }] },
        }),
      )
      const message =
        'failed to prepare subPath for volumeMount "v" of container "main": volume "v" has no file "late.conf": add the key "late.conf" to ConfigMap "settings", or correct the subPath; the container starts by itself then'
      expect((await rig().untilEvent('late', 'Failed')).message).toBe(`Error: ${message}`)
      const waiting = ({ status: { containerStatuses: [main] = [] } }: PodObject): object | undefined =>
        main?.state.waiting
      const held = await rig().untilPod('late', 'its reason', (pod) =>
        JSON.stringify(waiting(pod) ?? {}).includes('CreateContainerConfigError'),
      )
      expect(waiting(held)).toEqual({ reason: 'CreateContainerConfigError', message })
      rig().drop('settings', settings({ one: '1', 'late.conf': 'here' }))
      expect(wordsOf(await rig().untilLine('late', /directory$/u))).toEqual(['late.conf one here directory'])
      const pod = await rig().untilReady('late')
      const extra = settings({ 'extra.conf': 'x' })
      rig().drop('extra', { ...extra, metadata: { name: 'extra' } })
      await rig().until('the ConfigMap', async () => (await rig().cli('get', 'cm', 'extra')).code === 0)
      process.kill(rig().pidOf(pod.status.containerStatuses?.[0]?.containerID ?? ''), 'SIGKILL')
      await rig().untilLine('late', /late\.conf one here regular file$/u)
      for (const name of ['late', 'settings', 'extra']) rig().removeManifest(name)
      await rig().untilGone('late')
    },
  )
})

describePodd('mounts', {}, (rig) => {
  it(
    'see what is mounted below them later, and show what is mounted in them, where they are told to',
    proves('propagation', 'VolumeMount: mountPropagation'),
    async () => {
      const shared = join(rig().directory, 'propagated')
      mkdirSync(shared)
      execFileSync('mount', ['--bind', shared, shared])
      execFileSync('mount', ['--make-shared', shared])
      try {
        for (const name of ['later', 'own']) mkdirSync(join(shared, name))
        const volumes = [{ name: 'v', hostPath: { path: shared } }]
        const waits = 'say up; while ! [ -e /v/later/file ]; do sleep 0.05; done; say seen; stay'
        rig().drop(
          'sees',
          shellPod('sees', rig().shared, waits, {
            volumes,
            mounts: [{ name: 'v', mountPath: '/v', mountPropagation: 'HostToContainer' }],
          }),
        )
        rig().drop(
          'blind',
          shellPod('blind', rig().shared, 'say up; stay', {
            volumes,
            mounts: [{ name: 'v', mountPath: '/v' }],
          }),
        )
        const makes = 'mount -t tmpfs tmpfs /v/own && touch /v/own/file && say up; stay'
        rig().drop(
          'shows',
          shellPod('shows', rig().shared, makes, {
            volumes,
            mounts: [{ name: 'v', mountPath: '/v', mountPropagation: 'Bidirectional' }],
            container: { securityContext: { privileged: true } },
          }),
        )
        for (const name of ['sees', 'blind', 'shows']) await rig().untilLine(name, / up$/u)
        execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(shared, 'later')])
        writeFileSync(join(shared, 'later/file'), '')
        await rig().untilLine('sees', / seen$/u)
        const blind = await rig().untilReady('blind')
        const pid = rig().pidOf(blind.status.containerStatuses?.[0]?.containerID ?? '')
        expect(existsSync(`/proc/${pid}/root/v/later/file`)).toBe(false)
        expect(existsSync(join(shared, 'own/file'))).toBe(true)
      } finally {
        for (const name of ['sees', 'blind', 'shows']) rig().removeManifest(name)
        for (const name of ['sees', 'blind', 'shows']) await rig().untilGone(name)
        for (const path of [join(shared, 'own'), join(shared, 'later'), shared]) {
          try {
            execFileSync('umount', ['--lazy', path], { stdio: 'ignore' })
          } catch {
            // Not mounted: the test failed before.
          }
        }
      }
    },
  )

  it('wait for a mount of the host that is to be shared, and say how', async () => {
    const held = join(rig().directory, 'unshared')
    mkdirSync(held)
    execFileSync('mount', ['--bind', held, held])
    execFileSync('mount', ['--make-private', held])
    try {
      rig().drop(
        'waits',
        shellPod('waits', rig().shared, 'say up; stay', {
          volumes: [{ name: 'v', hostPath: { path: held } }],
          mounts: [{ name: 'v', mountPath: '/v', mountPropagation: 'HostToContainer' }],
        }),
      )
      const waitingOf = ({ status }: PodObject) => status.containerStatuses?.[0]?.state?.waiting
      const pod = await rig().untilPod(
        'waits',
        'its wait',
        (seen) => waitingOf(seen)?.reason === 'CreateContainerConfigError',
      )
      expect(waitingOf(pod)?.message).toContain(`run mount --make-rshared ${held} on the host`)
      execFileSync('mount', ['--make-rshared', held])
      await rig().untilLine('waits', / up$/u)
    } finally {
      rig().removeManifest('waits')
      await rig().untilGone('waits')
      execFileSync('umount', ['--lazy', held])
    }
  })

  it(
    'belong to the pod’s group where the volume is the pod’s own',
    proves('fs-group', 'PodSecurityContext: fsGroupChangePolicy'),
    async () => {
      const claim = {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'grouped' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
      }
      const told =
        'for v in e m c s; do say $v $(stat -c %g:%a /$v); done; say $(stat -L -c %g:%a /s/key); touch /e/new; say $(stat -c %g /e/new)'
      rig().drop(
        'grouped',
        claim,
        settings({ key: 'x' }),
        shellPod('grouped', rig().shared, `${told}; say up; stay`, {
          spec: { securityContext: { fsGroup: 4321, fsGroupChangePolicy: 'OnRootMismatch' } },
          volumes: [
            { name: 'e', emptyDir: {} },
            { name: 'm', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
            { name: 'c', persistentVolumeClaim: { claimName: 'grouped' } },
            { name: 's', configMap: { name: 'settings', defaultMode: 0o400 } },
          ],
          mounts: ['e', 'm', 'c', 's'].map((name) => ({ name, mountPath: `/${name}` })),
        }),
      )
      expect(await saidBy(rig(), 'grouped')).toEqual([
        'e 4321:2777',
        'm 4321:3777',
        'c 4321:2777',
        's 4321:2777',
        '4321:440',
        '4321',
      ])
      rig().removeManifest('grouped')
      await rig().untilGone('grouped')
      expect(statSync(join(rig().rootDir, 'claims/default/grouped')).gid).toBe(4321)
    },
  )

  it('of a claim keep the host’s files out of the group, whatever a pod linked to before', async () => {
    const precious = join(rig().directory, 'precious')
    mkdirSync(precious, { mode: 0o700 })
    writeFileSync(join(precious, 'file'), '', { mode: 0o600 })
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'trapped' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
    }
    const pod = (name: string, script: string, spec: Readonly<Record<string, unknown>>): object =>
      shellPod(name, rig().shared, `${script}; say up; stay`, {
        spec,
        volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'trapped' } }],
        mounts: [{ name: 'v', mountPath: '/v' }],
      })
    rig().drop('trapped', claim)
    rig().drop('traps', pod('traps', `ln -s ${precious} /v/link; touch /v/own`, {}))
    await saidBy(rig(), 'traps')
    rig().removeManifest('traps')
    await rig().untilGone('traps')
    rig().drop('given', pod('given', 'say $(stat -c %g /v/own)', { securityContext: { fsGroup: 4321 } }))
    expect(await saidBy(rig(), 'given')).toEqual(['4321'])
    const untouched = [precious, join(precious, 'file')].map((path) => statSync(path))
    expect(untouched.map(({ gid, mode }) => `${gid}:${(mode & 0o7777).toString(8)}`)).toEqual([
      '0:700',
      '0:600',
    ])
    for (const name of ['given', 'trapped']) rig().removeManifest(name)
    await rig().untilGone('given')
  })

  it(
    'in memory hold no more than their limit',
    proves('size-limit', 'EmptyDirVolumeSource: sizeLimit'),
    async () => {
      rig().drop(
        'limited',
        shellPod(
          'limited',
          rig().shared,
          'say $(df -k /v | tail -1 | tr -s " " | cut -d" " -f2); dd if=/dev/zero of=/v/x bs=64k count=32 2>/dev/null || say full; say up; stay',
          {
            volumes: [{ name: 'v', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } }],
            mounts: [{ name: 'v', mountPath: '/v' }],
          },
        ),
      )
      expect(await saidBy(rig(), 'limited')).toEqual(['1024', 'full'])
      rig().removeManifest('limited')
    },
  )

  it.concurrent('on disk evict a pod that goes over their limit', async () => {
    rig().drop(
      'greedy',
      shellPod('greedy', rig().shared, 'dd if=/dev/zero of=/v/x bs=64k count=32 2>/dev/null; say up; stay', {
        volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Mi' } }],
        mounts: [{ name: 'v', mountPath: '/v' }],
      }),
    )
    const { status } = await rig().untilPhase('greedy', 'Failed')
    expect([status.reason, status.message]).toEqual([
      'Evicted',
      'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
    ])
    rig().removeManifest('greedy')
  })

  it.concurrent('on disk evict with layers a pod that goes over its limits of ephemeral storage, or one container over its own', async () => {
    const limited = (name: string, log: string, script: string, limit: string): object =>
      shellContainer(name, log, `${script}; say up; stay`, {
        resources: { limits: { 'ephemeral-storage': limit } },
        volumeMounts: [{ name: 'v', mountPath: '/v' }],
      })
    const write = (path: string, blocks: number): string =>
      `dd if=/dev/zero of=${path} bs=64k count=${blocks} 2>/dev/null`
    const volumes = [{ name: 'v', emptyDir: {} }]
    const drop = (name: string, containers: readonly object[]): void =>
      rig().drop(name, podOf(name, rig().shared, containers, { volumes }))
    drop('sum', [
      limited('one', 'sum', write('/v/one', 48), '2Mi'),
      limited('two', 'sum', write('/v/two', 48), '2Mi'),
    ])
    drop('layer', [
      limited('one', 'layer', write('/big', 48), '1Mi'),
      limited('two', 'layer', 'true', '64Mi'),
    ])
    drop('modest', [limited('one', 'modest', `${write('/v/one', 4)}; ${write('/big', 4)}`, '8Mi')])
    const messages = await Promise.all(
      ['sum', 'layer'].map(async (name) => {
        const { status } = await rig().untilPhase(name, 'Failed')
        return [status.reason, status.message]
      }),
    )
    expect(messages).toEqual([
      ['Evicted', 'Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. '],
      ['Evicted', 'Container one exceeded its local ephemeral storage limit "1Mi". '],
    ])
    expect(await saidBy(rig(), 'modest')).toEqual([])
    for (const name of ['sum', 'layer', 'modest']) rig().removeManifest(name)
  })

  it('may be mounted inside a directory of files, which follows its object all the same', async () => {
    rig().drop('settings', settings({ 'a.conf': 'one', 'b.conf': 'two' }))
    rig().drop(
      'nested',
      shellPod(
        'nested',
        rig().shared,
        'echo x >/cfg/cache/deep/file; say $(cat /cfg/a.conf /cfg/own.conf) $(ls /cfg /cfg/cache/deep); say up; until grep -q three /cfg/a.conf; do sleep 0.2; done; say $(cat /cfg/a.conf /cfg/own.conf /cfg/cache/deep/file); stay',
        {
          volumes: [
            { name: 'files', configMap: { name: 'settings' } },
            { name: 'cache', emptyDir: {} },
          ],
          mounts: [
            { name: 'cache', mountPath: '/cfg/cache/deep/' },
            { name: 'files', mountPath: '/cfg/' },
            { name: 'files', mountPath: '/cfg/own.conf', subPath: 'b.conf' },
          ],
        },
      ),
    )
    expect(await saidBy(rig(), 'nested')).toEqual([
      'onetwo /cfg: a.conf b.conf cache own.conf /cfg/cache/deep: file',
    ])
    rig().drop('settings', settings({ 'a.conf': 'three', 'b.conf': 'four' }))
    await rig().untilLine('nested', /threetwox$/u)
    rig().removeManifest('nested')
    await rig().untilGone('nested')
  })
})
