import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

const configMap = (name: string, data: object, fields: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
  ...fields,
})

const secret = (name: string, stringData: object): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  stringData,
})

const claim = (name: string): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
})

interface Mounted {
  readonly volume: object
  readonly mount?: object
  readonly spec?: Readonly<Record<string, unknown>>
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly container?: Readonly<Record<string, unknown>>
}

/** A pod with one volume of its own at /v, whose script ends in running on. */
function podWith(rig: PoddRig, name: string, script: string, given: Mounted): object {
  return shellPod(name, rig.shared, `${script}\nsay up; stay`, {
    volumes: [{ name: 'v', ...given.volume }],
    mounts: [{ name: 'v', mountPath: '/v', ...given.mount }],
    ...(given.spec && { spec: given.spec }),
    ...(given.metadata && { metadata: given.metadata }),
    ...(given.container && { container: given.container }),
  })
}

/** What a pod said before it was up. */
async function saidBy(rig: PoddRig, name: string): Promise<readonly string[]> {
  return wordsOf(await rig.untilLine(name, / up$/u)).filter((words) => words !== 'up')
}

/** Says what stands in a file, and how it may be used. */
const tell = (path: string): string => `say $(stat -L -c %a:%g ${path}) $(cat ${path})`

describePodd('volumes that podd fills', {}, (rig) => {
  it(
    'show a ConfigMap, all of it or the items asked for, with their modes',
    proves(
      'config-map',
      'ConfigMap: binaryData',
      'Volume: configMap',
      'ConfigMapVolumeSource: name items defaultMode optional',
      'KeyToPath: key path mode',
    ),
    async () => {
      const binaryData = { bytes: Buffer.from('b').toString('base64') }
      rig().drop(
        'maps',
        configMap('settings', { one: '1', two: '2' }, { binaryData }),
        podWith(
          rig(),
          'whole',
          `say $(ls /v); ${tell('/v/one')}; ${tell('/v/bytes')}; touch /v/new || say kept`,
          {
            volume: { configMap: { name: 'settings', defaultMode: 0o600 } },
          },
        ),
        podWith(
          rig(),
          'items',
          `say $(find /v/ -type l | sort | grep -v data); ${tell('/v/deep/er/uno')}; ${tell('/v/dos')}`,
          {
            volume: {
              configMap: {
                name: 'settings',
                items: [
                  { key: 'one', path: 'deep/er/uno' },
                  { key: 'two', path: 'dos', mode: 0o440 },
                ],
              },
            },
          },
        ),
        podWith(rig(), 'optional', 'say none: $(ls /v)', {
          volume: { configMap: { name: 'nowhere', optional: true } },
        }),
      )
      expect(await saidBy(rig(), 'whole')).toEqual(['bytes one two', '600:0 1', '600:0 b', 'kept'])
      expect(await saidBy(rig(), 'items')).toEqual(['/v/deep /v/dos', '644:0 1', '440:0 2'])
      expect(await saidBy(rig(), 'optional')).toEqual(['none:'])
      rig().removeManifest('maps')
    },
  )

  it(
    'show a Secret, from memory alone, and leave nothing of it behind',
    proves('secret', 'Volume: secret', 'SecretVolumeSource: secretName defaultMode'),
    async () => {
      rig().drop(
        'secrets',
        secret('access', { password: 'hunter2' }),
        podWith(
          rig(),
          'reader',
          `${tell('/v/password')}; say $(grep ' /v ' /proc/mounts | cut -d' ' -f1-3)`,
          {
            volume: { secret: { secretName: 'access', defaultMode: 0o400 } },
          },
        ),
      )
      expect(await saidBy(rig(), 'reader')).toEqual(['400:0 hunter2', 'tmpfs /v tmpfs'])
      const uid = (await rig().untilReady('reader')).metadata.uid
      rig().removeManifest('secrets')
      await rig().untilGone('reader')
      expect(existsSync(join(rig().rootDir, 'pods', uid))).toBe(false)
    },
  )

  it(
    'show the pod’s own fields, and changed labels soon after',
    proves(
      'downward-api',
      'Volume: downwardAPI',
      'DownwardAPIVolumeSource: items',
      'DownwardAPIVolumeFile: path fieldRef resourceFieldRef mode',
      'ResourceFieldSelector: containerName',
    ),
    async () => {
      const items = [
        { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
        { path: 'note', fieldRef: { fieldPath: "metadata.annotations['note']" } },
        { path: 'uid', fieldRef: { fieldPath: 'metadata.uid' } },
        {
          path: 'cpu',
          mode: 0o600,
          resourceFieldRef: { containerName: 'main', resource: 'limits.cpu', divisor: '1m' },
        },
      ]
      const pod = (tier: string): object =>
        podWith(
          rig(),
          'fields',
          `${tell('/v/labels')}; ${tell('/v/note')}; ${tell('/v/uid')}; ${tell('/v/cpu')}; say up; while ! grep -q db /v/labels; do sleep 0.05; done; say changed`,
          {
            volume: { downwardAPI: { items } },
            metadata: { labels: { app: 'shop', tier }, annotations: { note: 'x y' } },
            container: { resources: { limits: { cpu: '200m' } } },
          },
        )
      rig().drop('fields', pod('web'))
      const { metadata } = await rig().untilReady('fields')
      expect(await saidBy(rig(), 'fields')).toEqual([
        '644:0 app="shop" tier="web"',
        '644:0 x y',
        `644:0 ${metadata.uid}`,
        '600:0 200',
      ])
      rig().drop('fields', pod('db'))
      await rig().untilLine('fields', / changed$/u)
      expect((await rig().untilReady('fields')).metadata.uid).toBe(metadata.uid)
      rig().removeManifest('fields')
    },
  )

  it(
    'project several sources into one directory',
    proves(
      'projected',
      'Volume: projected',
      'ProjectedVolumeSource: sources defaultMode',
      'VolumeProjection: secret downwardAPI configMap',
      'SecretProjection: name items optional',
      'ConfigMapProjection: name',
      'DownwardAPIProjection: items',
    ),
    async () => {
      rig().drop(
        'projected',
        configMap('settings', { one: '1', both: 'map' }),
        secret('access', { password: 'hunter2', both: 'secret' }),
        podWith(
          rig(),
          'several',
          `say $(ls /v); ${tell('/v/both')}; ${tell('/v/in/password')}; ${tell('/v/name')}; say $(grep ' /v ' /proc/mounts | cut -d' ' -f3)`,
          {
            volume: {
              projected: {
                defaultMode: 0o444,
                sources: [
                  { configMap: { name: 'settings' } },
                  {
                    secret: {
                      name: 'access',
                      items: [
                        { key: 'password', path: 'in/password', mode: 0o400 },
                        { key: 'both', path: 'both' },
                      ],
                    },
                  },
                  { downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
                  { secret: { name: 'nowhere', optional: true } },
                ],
              },
            },
          },
        ),
      )
      expect(await saidBy(rig(), 'several')).toEqual([
        'both in name one',
        '444:0 secret',
        '400:0 hunter2',
        '444:0 several',
        'tmpfs',
      ])
      rig().removeManifest('projected')
    },
  )

  it(
    'take every form of a source',
    proves(
      'every-form',
      'Secret: type data immutable',
      'SecretVolumeSource: items optional',
      'DownwardAPIVolumeSource: defaultMode',
      'ObjectFieldSelector: apiVersion',
      'ConfigMapProjection: items optional',
    ),
    async () => {
      const forms = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'forms' },
        type: 'Opaque',
        immutable: true,
        data: { key: Buffer.from('bytes').toString('base64') },
        stringData: { text: 'text' },
      }
      const volumes = [
        {
          name: 'secret',
          secret: {
            secretName: 'forms',
            items: [
              { key: 'key', path: './in//key', mode: 0o440 },
              { key: 'none', path: 'none' },
              { key: 'text', path: 'text' },
            ],
            optional: true,
          },
        },
        { name: 'nowhere', secret: { secretName: 'nowhere', optional: true } },
        {
          name: 'downward',
          downwardAPI: {
            defaultMode: 0o400,
            items: [{ path: 'name', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } }],
          },
        },
        {
          name: 'projected',
          projected: {
            sources: [
              { configMap: { name: 'forms', items: [{ key: 'one', path: 'uno', mode: 0o400 }] } },
              { configMap: { name: 'nowhere', optional: true } },
            ],
          },
        },
      ]
      const script = `${tell('/secret/in/key')}; ${tell('/secret/text')}; say none $(ls /nowhere); ${tell('/downward/name')}; ${tell('/projected/uno')}; say up; stay`
      rig().drop(
        'forms',
        forms,
        configMap('forms', { one: '1', two: '2' }),
        shellPod('forms', rig().shared, script, {
          volumes,
          mounts: volumes.map(({ name }) => ({ name, mountPath: `/${name}` })),
        }),
      )
      expect(await saidBy(rig(), 'forms')).toEqual([
        '440:0 bytes',
        '644:0 text',
        'none',
        '400:0 forms',
        '400:0 1',
      ])
      rig().removeManifest('forms')
    },
  )

  it('show a change within a second, also through podd’s restart, and outlast what they came from', async () => {
    const script = `say was $(cat /v/key); while sleep 0.02; do now=$(cat /v/key); [ "$now" = "$last" ] || say now $now; last=$now; done & last=; say up; stay`
    rig().drop('live-map', configMap('live', { key: '1' }))
    rig().drop('live', podWith(rig(), 'live', script, { volume: { configMap: { name: 'live' } } }))
    await rig().untilLine('live', / now 1$/u)
    const before = await rig().untilReady('live')
    rig().drop('live-map', configMap('live', { key: '2' }))
    const droppedAtMs = performance.now()
    await rig().untilLine('live', / now 2$/u)
    expect(performance.now() - droppedAtMs).toBeLessThan(1000 * slowness)
    await rig().stopDaemon('SIGKILL')
    rig().drop('live-map', configMap('live', { key: '3' }))
    await rig().startDaemon()
    await rig().untilLine('live', / now 3$/u)
    rig().removeManifest('live-map')
    await rig().until('the map’s end', async () => (await rig().status()).sources.length > 0)
    process.kill(rig().pidOf(before.status.containerStatuses?.[0]?.containerID ?? ''), 'SIGKILL')
    const after = await rig().untilPod(
      'live',
      'restarted',
      (pod) => pod.status.containerStatuses?.[0]?.restartCount === 1,
    )
    expect(after.metadata.uid).toBe(before.metadata.uid)
    await rig().until(
      'the file',
      () =>
        rig()
          .lines('live')
          .filter((line) => line.endsWith('was 3')).length === 1,
    )
    rig().removeManifest('live')
  })

  it.each<[what: string, volume: object, message: string, document: object]>([
    [
      'a ConfigMap',
      { configMap: { name: 'late' } },
      'configmap "late" not found',
      configMap('late', { k: '1' }),
    ],
    ['a Secret', { secret: { secretName: 'late' } }, 'secret "late" not found', secret('late', { k: '1' })],
    [
      'a key',
      { configMap: { name: 'keyless', items: [{ key: 'k', path: 'p' }] } },
      'configmap references non-existent config key: k',
      configMap('keyless', { k: '1' }),
    ],
    [
      'a claim',
      { persistentVolumeClaim: { claimName: 'late' } },
      'persistentvolumeclaim "late" not found',
      claim('late'),
    ],
  ])(
    'keep a pod waiting while %s is missing, by name, and no longer',
    async (what, volume, message, document) => {
      const name = `waits-${what.split(' ')[1]?.toLowerCase()}`
      rig().drop('keyless', configMap('keyless', {}))
      rig().drop(name, podWith(rig(), name, 'say there', { volume }))
      // Of two files, the one that was put there first may be read last.
      const events = await rig().until(`the event "${message}"`, async () => {
        const messages = (await rig().events(name))
          .filter(({ reason }) => reason === 'FailedMount')
          .map((event) => event.message)
        return messages.some((each) => each.endsWith(message)) ? messages : undefined
      })
      expect(events).toContain(`MountVolume.SetUp failed for volume "v" : ${message}`)
      const pod = await rig().untilPod(
        name,
        'waiting',
        ({ status }) => status.containerStatuses?.[0]?.state.waiting !== undefined,
      )
      expect(pod.status.containerStatuses?.[0]?.state.waiting?.reason).toBe('ContainerCreating')
      rig().removeManifest('keyless')
      rig().drop('late', document)
      const droppedAtMs = performance.now()
      await rig().untilReady(name)
      expect(performance.now() - droppedAtMs).toBeLessThan(5000 * slowness)
      rig().removeManifest(name)
      rig().removeManifest('late')
      await rig().untilGone(name)
    },
  )

  it('have the mode at their top that Kubernetes gives them: /tmp’s in memory, with the pod’s group too', async () => {
    const items = [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }]
    const volumes = [
      { name: 'disk', emptyDir: {} },
      { name: 'map', configMap: { name: 'modes' } },
      { name: 'memory', emptyDir: { medium: 'Memory' } },
      { name: 'secret', secret: { secretName: 'modes' } },
      { name: 'downward', downwardAPI: { items } },
      { name: 'projected', projected: { sources: [{ downwardAPI: { items } }] } },
    ]
    const mounts = volumes.map(({ name }) => ({ name, mountPath: `/v/${name}` }))
    const told = `say $(stat -c %a ${mounts.map(({ mountPath }) => mountPath).join(' ')}); say up; stay`
    rig().drop(
      'modes',
      configMap('modes', { k: 'v' }),
      secret('modes', { k: 'v' }),
      shellPod('modes', rig().shared, told, { volumes, mounts }),
      shellPod('modes-grouped', rig().shared, told, {
        volumes,
        mounts,
        spec: { securityContext: { fsGroup: 4321 } },
      }),
    )
    expect(await saidBy(rig(), 'modes')).toEqual(['777 777 1777 1777 1777 1777'])
    expect(await saidBy(rig(), 'modes-grouped')).toEqual(['2777 2777 3777 3777 3777 3777'])
    rig().removeManifest('modes')
    for (const name of ['modes', 'modes-grouped']) await rig().untilGone(name)
  })

  it('are torn down with the pod although podd was killed meanwhile', async () => {
    rig().drop(
      'killed',
      secret('s', { k: 'v' }),
      podWith(rig(), 'killed', '', { volume: { secret: { secretName: 's' } } }),
    )
    const { metadata } = await rig().untilReady('killed')
    await rig().stopDaemon('SIGKILL')
    rig().removeManifest('killed')
    await rig().startDaemon()
    await rig().untilGone('killed')
    await rig().until('the directory’s end', () => !existsSync(join(rig().rootDir, 'pods', metadata.uid)))
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(metadata.uid)
  })
})

describePodd('a device of the host', {}, (rig) => {
  it('that is not there is waited for, at a restart too, and never made', async () => {
    const path = `/dev/podd-e2e-${process.pid}`
    const plug = (): void => void execFileSync('mknod', [path, 'c', '1', '3'])
    const script = 'if [ -c /v ]; then say found; else say odd; fi'
    try {
      rig().drop('plugged', podWith(rig(), 'plugged', script, { volume: { hostPath: { path } } }))
      await rig().untilEvent('plugged', 'FailedMount', /does not exist, and nothing is made below \/dev/u)
      expect(existsSync(path)).toBe(false)
      plug()
      const pluggedAtMs = performance.now()
      const before = await rig().untilReady('plugged')
      // It is told, and does not look every 10 s alone.
      expect(performance.now() - pluggedAtMs).toBeLessThan(8000 * slowness)
      rmSync(path)
      process.kill(rig().pidOf(containerOf(before, 'main').containerID ?? ''), 'SIGKILL')
      await rig().untilPod('plugged', 'waiting', (pod) =>
        /nothing is made below/u.test(containerOf(pod, 'main').state.waiting?.message ?? ''),
      )
      expect(existsSync(path)).toBe(false)
      plug()
      const after = await rig().untilReady('plugged')
      expect(after.metadata.uid).toBe(before.metadata.uid)
      // Without a probe it is Ready before its script has said so.
      await expect.poll(() => wordsOf(rig().lines('plugged'))).toEqual(['found', 'up', 'found', 'up'])
      rig().removeManifest('plugged')
      await rig().untilGone('plugged')
    } finally {
      rmSync(path, { recursive: true, force: true })
    }
  })
})

describePodd('claims', {}, (rig) => {
  it(
    'outlive pods, and give the next one what the last one wrote',
    proves('claim', 'Volume: persistentVolumeClaim', 'PersistentVolumeClaimVolumeSource: claimName readOnly'),
    async () => {
      rig().drop('data', claim('data'))
      const volume = { persistentVolumeClaim: { claimName: 'data' } }
      rig().drop('writer', podWith(rig(), 'writer', 'echo kept >/v/file; say $(stat -c %a /v)', { volume }))
      expect(await saidBy(rig(), 'writer')).toEqual(['777'])
      rig().removeManifest('writer')
      await rig().untilGone('writer')
      const readOnly = { persistentVolumeClaim: { claimName: 'data', readOnly: true } }
      rig().drop(
        'successor',
        podWith(rig(), 'successor', 'say $(cat /v/file); touch /v/no || say read-only', { volume: readOnly }),
      )
      expect(await saidBy(rig(), 'successor')).toEqual(['kept', 'read-only'])
      rig().removeManifest('successor')
      rig().removeManifest('data')
      await rig().untilGone('successor')
      const directory = join(rig().rootDir, 'claims/default/data')
      expect(readdirSync(directory)).toEqual(['file'])
      expect(statSync(join(rig().rootDir, 'claims')).mode & 0o077).toBe(0)
    },
  )

  it('are mounted where they are asked for, whatever signs are in the path', async () => {
    const ca = '/etc/certs.d/registry.example:5000'
    const port = '/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0'
    const odd = '/a,b:ro c'
    const onHost = join(rig().shared, 'by-path:0')
    writeFileSync(onHost, 'serial')
    rig().drop(
      'colons',
      configMap('ca', { 'ca.crt': 'trust' }),
      shellPod(
        'colons',
        rig().shared,
        `${tell(`${ca}/ca.crt`)}; say $(cat ${port}) $(ls '${odd}'); say up; stay`,
        {
          volumes: [
            { name: 'ca', configMap: { name: 'ca' } },
            { name: 'port', hostPath: { path: onHost, type: 'File' } },
          ],
          mounts: [
            { name: 'ca', mountPath: ca },
            { name: 'ca', mountPath: odd },
            { name: 'port', mountPath: port },
          ],
        },
      ),
    )
    expect(await saidBy(rig(), 'colons')).toEqual(['644:0 trust', 'serial ca.crt'])
    rig().removeManifest('colons')
    await rig().untilGone('colons')
  })

  it(
    'let one pod in at a time under ReadWriteOncePod',
    proves(
      'read-write-once-pod',
      'PersistentVolumeClaimSpec: storageClassName volumeMode',
      'VolumeResourceRequirements: limits',
    ),
    async () => {
      const spec = {
        accessModes: ['ReadWriteOncePod'],
        storageClassName: 'podd-local',
        volumeMode: 'Filesystem',
        resources: { requests: { storage: '1Mi' }, limits: { storage: '2Mi' } },
      }
      rig().drop('alone', { ...claim('alone'), spec })
      const volume = { persistentVolumeClaim: { claimName: 'alone' } }
      rig().drop('first', podWith(rig(), 'first', 'touch /v/mine', { volume }))
      await saidBy(rig(), 'first')
      rig().drop('second', podWith(rig(), 'second', 'say $(ls /v)', { volume }))
      const { status } = await rig().untilPod('second', 'its wait', (pod) => pod.status.reason === 'Blocked')
      expect([status.phase, status.message]).toEqual([
        'Pending',
        'persistentvolumeclaim "alone" uses the ReadWriteOncePod access mode and is already in use by pod default/first',
      ])
      // A new version of the pod that has it takes it over.
      rig().drop('first', podWith(rig(), 'first', 'say again; touch /v/mine', { volume }))
      await rig().untilLine('first', / again$/u)
      rig().removeManifest('first')
      expect(await saidBy(rig(), 'second')).toEqual(['mine'])
      for (const name of ['second', 'alone']) rig().removeManifest(name)
      await rig().untilGone('second')
    },
  )
})
