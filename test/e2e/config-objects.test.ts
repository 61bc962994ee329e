import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { podOf, shellContainer, shellPod } from '../support/shell-pods.ts'
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

/** MAX_ARG_STRLEN of the kernel, in bytes. */
const longestString = 32 * Number(spawnSync('getconf', ['PAGESIZE'], { encoding: 'utf8' }).stdout)

/** Prints the variables and goes on. */
const printEnv = 'env | sort >/shared/$LOG; say up; stay'

/** `NAME=value` lines of what a pod printed, without the times. */
async function envOf(rig: PoddRig, pod: string): Promise<ReadonlyMap<string, string>> {
  const lines = await rig.untilLine(pod, / up$/u)
  return new Map(lines.filter((line) => line.includes('=')).map((line) => split(line)))
}

function split(line: string): [string, string] {
  const at = line.indexOf('=')
  return [line.slice(0, at), line.slice(at + 1)]
}

function envPod(
  rig: PoddRig,
  name: string,
  container: { readonly env?: readonly object[]; readonly [field: string]: unknown },
  metadata: Readonly<Record<string, unknown>> = {},
): object {
  const { env = [], ...rest } = container
  return shellPod(name, rig.shared, printEnv, {
    container: { env: [{ name: 'LOG', value: name }, ...env], ...rest },
    metadata,
  })
}

describePodd('environment', {}, (rig) => {
  it(
    'shows the pod’s and the container’s own fields',
    proves(
      'env-fields',
      'ObjectMeta: labels annotations',
      'Container: env',
      'EnvVar: name value valueFrom',
      'EnvVarSource: fieldRef resourceFieldRef',
      'ObjectFieldSelector: fieldPath',
      'ResourceFieldSelector: resource divisor',
    ),
    async () => {
      const field = (name: string, fieldPath: string): object => ({
        name,
        valueFrom: { fieldRef: { fieldPath } },
      })
      const resource = (name: string, resource: string, divisor?: string): object => ({
        name,
        valueFrom: { resourceFieldRef: { resource, ...(divisor !== undefined && { divisor }) } },
      })
      rig().drop(
        'fields',
        envPod(
          rig(),
          'fields',
          {
            env: [
              field('POD_NAME', 'metadata.name'),
              field('POD_NAMESPACE', 'metadata.namespace'),
              field('POD_UID', 'metadata.uid'),
              field('TIER', "metadata.labels['tier']"),
              field('NOTE', "metadata.annotations['example.com/note']"),
              field('NODE', 'spec.nodeName'),
              field('HOST_IP', 'status.hostIP'),
              field('POD_IP', 'status.podIP'),
              field('POD_IPS', 'status.podIPs'),
              resource('CPU_MILLIS', 'limits.cpu', '1m'),
              resource('MEMORY_MI', 'requests.memory', '1Mi'),
              resource('CPUS_OF_HOST', 'requests.cpu'),
              { name: 'GREETING', value: 'I am $(POD_NAME) of $(NOBODY), $$(POD_NAME)' },
            ],
            resources: { limits: { cpu: '250m', memory: '64Mi' } },
          },
          { labels: { tier: 'web' }, annotations: { 'example.com/note': 'two words' } },
        ),
      )
      const env = await envOf(rig(), 'fields')
      const pod = await rig().untilReady('fields')
      expect(Object.fromEntries(env)).toMatchObject({
        POD_NAME: 'fields',
        POD_NAMESPACE: 'default',
        POD_UID: pod.metadata.uid,
        TIER: 'web',
        NOTE: 'two words',
        NODE: 'box',
        HOST_IP: pod.status.hostIP,
        POD_IP: pod.status.podIP,
        POD_IPS: pod.status.podIP,
        CPU_MILLIS: '250',
        MEMORY_MI: '64',
        CPUS_OF_HOST: '1',
        GREETING: 'I am fields of $(NOBODY), $(POD_NAME)',
      })
      rig().removeManifest('fields')
    },
  )

  it(
    'takes ConfigMaps and Secrets as a whole and by key, the later over the earlier',
    proves(
      'env-from',
      'Container: envFrom',
      'EnvFromSource: prefix configMapRef secretRef',
      'ConfigMapEnvSource: name optional',
      'SecretEnvSource: name optional',
      'EnvVarSource: configMapKeyRef secretKeyRef',
      'ConfigMapKeySelector: name key optional',
      'SecretKeySelector: name key optional',
      'ConfigMap: apiVersion kind metadata data',
      'Secret: apiVersion kind metadata stringData',
    ),
    async () => {
      rig().drop(
        'config',
        configMap('settings', { COLOR: 'red', SIZE: 'small' }),
        secret('access', { token: 'hunter2', COLOR: 'green' }),
        envPod(rig(), 'config', {
          envFrom: [
            { configMapRef: { name: 'settings' } },
            { prefix: 'SECRET_', secretRef: { name: 'access' } },
            { configMapRef: { name: 'nowhere', optional: true } },
            { secretRef: { name: 'nowhere', optional: true } },
          ],
          env: [
            { name: 'SIZE', value: 'not $(SIZE)' },
            { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'access', key: 'token' } } },
            { name: 'COLOR_TOO', valueFrom: { configMapKeyRef: { name: 'settings', key: 'COLOR' } } },
            {
              name: 'NONE',
              valueFrom: { configMapKeyRef: { name: 'settings', key: 'none', optional: true } },
            },
            {
              name: 'NONE_EITHER',
              valueFrom: { secretKeyRef: { name: 'none', key: 'none', optional: true } },
            },
          ],
        }),
      )
      const env = await envOf(rig(), 'config')
      expect(Object.fromEntries(env)).toMatchObject({
        COLOR: 'red',
        SIZE: 'not small',
        SECRET_token: 'hunter2',
        SECRET_COLOR: 'green',
        TOKEN: 'hunter2',
        COLOR_TOO: 'red',
      })
      expect([...env.keys()]).not.toContain('NONE')
      expect([...env.keys()]).not.toContain('NONE_EITHER')
      rig().removeManifest('config')
    },
  )

  it.each<[what: string, name: string, variable: object, message: string, document: object]>([
    [
      'a ConfigMap',
      'waits-map',
      { name: 'A', valueFrom: { configMapKeyRef: { name: 'later-map', key: 'a' } } },
      'configmap "later-map" not found',
      configMap('later-map', { a: 'come' }),
    ],
    [
      'a Secret',
      'waits-secret',
      { name: 'A', valueFrom: { secretKeyRef: { name: 'later-secret', key: 'a' } } },
      'secret "later-secret" not found',
      secret('later-secret', { a: 'come' }),
    ],
  ])(
    'a pod that refers to %s that is missing waits for it, and says so',
    async (_what, name, variable, message, document) => {
      rig().drop(name, envPod(rig(), name, { env: [variable] }))
      const waiting = await rig().untilPod(
        name,
        'waiting',
        (pod) => reasonOf(pod) !== undefined && reasonOf(pod) !== 'ContainerCreating',
      )
      expect(waiting.status.containerStatuses?.[0]?.state.waiting).toEqual({
        reason: 'CreateContainerConfigError',
        message,
      })
      await rig().untilEvent(name, 'Failed', new RegExp(message, 'u'))
      rig().drop(`${name}-object`, document)
      const droppedAtMs = performance.now()
      expect((await envOf(rig(), name)).get('A')).toBe('come')
      // Long before the ten seconds of a retry are over.
      expect(performance.now() - droppedAtMs).toBeLessThan(5000 * slowness)
      rig().removeManifest(name)
      rig().removeManifest(`${name}-object`)
    },
  )

  it('names a key that is missing', async () => {
    const variable = { name: 'A', valueFrom: { configMapKeyRef: { name: 'keyed', key: 'missing' } } }
    rig().drop('no-key', configMap('keyed', { there: 'x' }), envPod(rig(), 'no-key', { env: [variable] }))
    const event = await rig().untilEvent('no-key', 'Failed')
    expect(event.message).toBe("Error: couldn't find key missing in ConfigMap default/keyed")
    rig().removeManifest('no-key')
  })

  it(
    'takes what an init container wrote to a file',
    proves('env-file', 'EnvVarSource: fileKeyRef', 'FileKeySelector: volumeName path key optional'),
    async () => {
      const pod = envPod(rig(), 'from-file', {
        env: [
          { name: 'WRITTEN', valueFrom: { fileKeyRef: { volumeName: 'made', path: 'out/env', key: 'KEY' } } },
          {
            name: 'NOT',
            valueFrom: { fileKeyRef: { volumeName: 'made', path: 'none', key: 'KEY', optional: true } },
          },
        ],
      }) as { spec: { volumes: object[] } }
      const init = {
        name: 'init',
        image: 'localhost/podd-test/shell:1',
        command: [
          'sh',
          '-c',
          String.raw`mkdir /made/out; printf "# made\nOTHER='x'\nKEY='two\nlines' # so\n" >/made/out/env; ln -s /etc/passwd /made/escape`,
        ],
        volumeMounts: [{ name: 'made', mountPath: '/made' }],
      }
      rig().drop('from-file', {
        ...pod,
        spec: {
          ...pod.spec,
          initContainers: [init],
          volumes: [...pod.spec.volumes, { name: 'made', emptyDir: {} }],
        },
      })
      const lines = await rig().untilLine('from-file', / up$/u)
      expect(lines).toContain('WRITTEN=two')
      expect(lines).toContain('lines')
      const escape = {
        name: 'WRITTEN',
        valueFrom: { fileKeyRef: { volumeName: 'made', path: 'escape', key: 'root' } },
      }
      const escaping = envPod(rig(), 'escaping', { env: [escape] }) as { spec: { volumes: object[] } }
      rig().drop('escaping', {
        ...escaping,
        spec: {
          ...escaping.spec,
          initContainers: [init],
          volumes: [...escaping.spec.volumes, { name: 'made', emptyDir: {} }],
        },
      })
      await rig().untilEvent('escaping', 'Failed', /path "escape" leads out of its volume/u)
      rig().removeManifest('from-file')
      rig().removeManifest('escaping')
    },
  )

  it('from a file without an end, and one full of unclosed references, hold nobody up', async () => {
    const endless = envPod(rig(), 'endless', {
      env: [
        { name: 'OPEN', value: '$('.repeat(60_000) },
        { name: 'WRITTEN', valueFrom: { fileKeyRef: { volumeName: 'made', path: 'env', key: 'KEY' } } },
      ],
    }) as { spec: { volumes: object[] } }
    const init = {
      name: 'init',
      image: 'localhost/podd-test/shell:1',
      command: ['sh', '-c', String.raw`{ printf "KEY='"; yes A | head -c 900000; } >/made/env`],
      volumeMounts: [{ name: 'made', mountPath: '/made' }],
    }
    rig().drop('endless', {
      ...endless,
      spec: {
        ...endless.spec,
        initContainers: [init],
        volumes: [...endless.spec.volumes, { name: 'made', emptyDir: {} }],
      },
    })
    let longestMs = 0
    const waiting = await rig().until('its refusal', async () => {
      const before = performance.now()
      const pod = await rig().findPod('endless')
      longestMs = Math.max(longestMs, performance.now() - before)
      const found = pod?.status.containerStatuses?.[0]?.state.waiting
      return found?.reason === 'CreateContainerConfigError' ? found : undefined
    })
    expect(waiting.message).toBe(
      "couldn't parse env file env: invalid environment variable format at line 1: unclosed single quote",
    )
    expect(longestMs).toBeLessThan(1000 * slowness)
    rig().removeManifest('endless')
    await rig().untilGone('endless')
  })

  it('that doubles itself keeps its container waiting, and podd small', async () => {
    const peakMiB = (): number => {
      const status = readFileSync(`/proc/${rig().daemonPid}/status`, 'utf8')
      return Number(/^VmHWM:\s+(\d+) kB$/mu.exec(status)?.[1]) / 1024
    }
    const before = peakMiB()
    const env = Array.from({ length: 27 }, (_, at) => ({
      name: `A${at}`,
      value: at === 0 ? 'x'.repeat(16) : `$(A${at - 1})$(A${at - 1})`,
    }))
    rig().drop('doubling', envPod(rig(), 'doubling', { env }))
    const pod = await rig().untilPod(
      'doubling',
      'its refusal',
      ({ status }) => status.containerStatuses?.[0]?.state.waiting?.reason === 'CreateContainerConfigError',
    )
    expect(containerOf(pod, 'main').state.waiting?.message).toBe(
      `environment variable A${Math.log2(longestString / 16)} of container main takes more than ${longestString} bytes`,
    )
    expect(peakMiB() - before).toBeLessThan(64)
    rig().removeManifest('doubling')
    await rig().untilGone('doubling')
  })

  it('takes what the kernel takes at the most, and no more', async () => {
    const most = longestString - 'BIG='.length - 1
    const pod = (length: number): object =>
      shellPod('large', rig().shared, 'say ${#BIG}; stay', {
        container: { env: [{ name: 'BIG', value: 'x'.repeat(length) }] },
      })
    rig().drop('large', pod(most))
    await rig().untilLine('large', new RegExp(` ${most}$`, 'u'))
    rig().drop('large', pod(most + 1))
    await rig().until('the refusal', async () =>
      (await rig().ask('describe', 'pod', 'large')).stdout.includes(`takes more than ${longestString} bytes`),
    )
    expect(
      rig()
        .lines('large')
        .filter((line) => line.endsWith(' end')),
    ).toEqual([])
    rig().removeManifest('large')
    await rig().untilGone('large')
  })

  it('keeps secrets out of podd’s log, its events and its answers', async () => {
    const secretWord = 'c0rrect-horse'
    rig().drop(
      'quiet',
      secret('hidden', { word: secretWord, bad: secretWord }),
      envPod(rig(), 'quiet', { envFrom: [{ secretRef: { name: 'hidden' } }] }),
    )
    await rig().untilReady('quiet')
    rig().dropText(
      'bad-secret.yaml',
      `apiVersion: v1\nkind: Secret\nmetadata: {name: bad}\nstringData: {a: [${secretWord}]}\ndata: {b: "${secretWord}"}\n`,
    )
    await rig().until('the problem', async () => (await rig().status()).problems.length > 0)
    const texts = [
      await rig().cliOk('get', 'pods', '-o', 'yaml'),
      await rig().cliOk('describe', 'pod', 'quiet'),
      await rig().cliOk('events'),
      JSON.stringify(await rig().status()),
      JSON.stringify(await rig().get('/api/v1/events')),
      readFileSync(join(rig().directory, 'podd.log'), 'utf8'),
    ]
    for (const text of texts) expect(text).not.toContain(secretWord)
    rig().removeManifest('quiet')
    rig().removeManifest('bad-secret')
  })
})

describePodd('changed objects', {}, (rig) => {
  it('restart the containers that consume them, where a pod asks for it', async () => {
    const script = (log: string): string => `say has $VALUE $(cat /v/key 2>/dev/null); stay # ${log}`
    const env = [{ name: 'VALUE', valueFrom: { configMapKeyRef: { name: 'settings', key: 'key' } } }]
    const mounts = [{ name: 'v', mountPath: '/v' }]
    const pod = podOf(
      'asking',
      rig().shared,
      [
        shellContainer('by-env', 'by-env', script('env'), { env }),
        shellContainer('by-file', 'by-file', script('file'), { volumeMounts: mounts }),
        shellContainer('without', 'without', 'say up; stay'),
      ],
      {
        metadata: { annotations: { 'podd.dev/restart-on-config-change': 'true' } },
        volumes: [{ name: 'v', secret: { secretName: 'access' } }],
      },
    )
    rig().drop('settings', configMap('settings', { key: '1' }), secret('access', { key: 'a' }))
    rig().drop('asking', pod)
    await rig().untilReady('asking')
    const restarts = async (): Promise<Readonly<Record<string, number>>> => {
      const found = await rig().findPod('asking')
      return Object.fromEntries(
        found?.status.containerStatuses?.map(({ name, restartCount }) => [name, restartCount]) ?? [],
      )
    }
    rig().drop('settings', configMap('settings', { key: '2' }), secret('access', { key: 'a' }))
    await rig().untilLine('by-env', / has 2$/u)
    rig().drop('settings', configMap('settings', { key: '2' }), secret('access', { key: 'b' }))
    await rig().untilLine('by-file', / has b$/u)
    const once = { 'by-env': 1, 'by-file': 1, without: 0 }
    await rig().until('two restarts', async () => JSON.stringify(await restarts()) === JSON.stringify(once))
    await rig().restartDaemon('SIGKILL')
    // What is needed and gone restarts nothing: it could not start again.
    rig().drop('settings', configMap('settings', { other: 'x' }), secret('access', { key: 'b' }))
    await rig().until('the change', async () =>
      (await rig().ask('get', 'configmaps')).stdout.includes('other'),
    )
    rig().drop('settings', configMap('settings', { key: '2' }), secret('access', { key: 'b' }))
    await rig().until('the way back', async () =>
      (await rig().ask('get', 'configmaps')).stdout.includes('key'),
    )
    await rig().untilReady('asking')
    expect(await restarts()).toEqual(once)
    rig().removeManifest('asking')
    rig().removeManifest('settings')
  })

  it('that a new version needs and that are missing leave the old one running', async () => {
    rig().drop('careful', envPod(rig(), 'careful', {}))
    const before = await rig().untilReady('careful')
    const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: 'not-yet', key: 'a' } } }]
    rig().drop('careful', envPod(rig(), 'careful', { env }))
    const problems = await rig().until('the problem', async () => {
      const { problems } = await rig().status()
      return problems.length > 0 && problems
    })
    expect(problems[0]?.message).toBe(
      'the new version is not applied and the old one keeps running: secret "not-yet" not found',
    )
    expect((await rig().untilReady('careful')).metadata.uid).toBe(before.metadata.uid)
    rig().drop('not-yet', secret('not-yet', { a: 'come' }))
    await rig().untilPod('careful', 'replaced', ({ metadata }) => metadata.uid !== before.metadata.uid)
    await rig().untilReady('careful')
    rig().removeManifest('careful')
    rig().removeManifest('not-yet')
  })

  it(
    'that are immutable stay as they are, and that is told',
    proves('immutable', 'ConfigMap: immutable'),
    async () => {
      rig().drop('fixed', configMap('fixed', { VALUE: '1' }, { immutable: true }))
      rig().drop('user', envPod(rig(), 'user', { envFrom: [{ configMapRef: { name: 'fixed' } }] }))
      expect((await envOf(rig(), 'user')).get('VALUE')).toBe('1')
      rig().drop('fixed', configMap('fixed', { VALUE: '2' }, { immutable: true }))
      const problems = await rig().until('the problem', async () => {
        const { problems } = await rig().status()
        return problems.length > 0 && problems
      })
      expect(problems[0]).toMatchObject({
        object: 'ConfigMap/default/fixed',
        message: expect.stringContaining('immutable'),
      })
      rig().removeManifest('user')
      rig().removeManifest('fixed')
    },
  )

  it('stay in their last good form, and are told of, when they turn bad or stand in two places', async () => {
    rig().drop('good', configMap('kept', { VALUE: '1' }))
    rig().drop('first-user', envPod(rig(), 'first-user', { envFrom: [{ configMapRef: { name: 'kept' } }] }))
    await envOf(rig(), 'first-user')
    const copy = join(rig().rootDir, 'sources/file.json')
    await rig().until('the last good copy', () => readFileSync(copy, 'utf8').includes('kept'))
    rig().drop('good', configMap('kept', { 'bad/key': '2' }))
    await rig().until('the problem', async () => (await rig().status()).problems.length > 0)
    await rig().restartDaemon('SIGKILL')
    rig().drop('kept-user', envPod(rig(), 'kept-user', { envFrom: [{ configMapRef: { name: 'kept' } }] }))
    expect((await envOf(rig(), 'kept-user')).get('VALUE')).toBe('1')
    rig().drop('good', configMap('kept', { VALUE: '1' }))
    rig().drop('other', configMap('kept', { VALUE: '3' }))
    const problems = await rig().until('the conflict', async () => {
      const { problems } = await rig().status()
      return problems.find(({ message }) => message.includes('stands in')) && problems
    })
    expect(problems[0]?.message).toMatch(
      /^ConfigMap\/default\/kept stands in .*good\.yaml too, which is followed; this one is not$/u,
    )
    for (const name of ['good', 'other', 'first-user', 'kept-user']) rig().removeManifest(name)
  })
})

describePodd('the command line', {}, (rig) => {
  it('lists ConfigMaps and Secrets, and shows what they hold when it is asked to', async () => {
    rig().drop(
      'objects',
      configMap('settings', { one: '1', two: '2' }),
      secret('access', { password: 'hunter2' }),
    )
    rig().drop('marker', envPod(rig(), 'marker', { envFrom: [{ configMapRef: { name: 'settings' } }] }))
    await rig().untilReady('marker')
    const rows = async (...args: string[]): Promise<readonly string[][]> =>
      (await rig().cliOk('get', ...args))
        .trim()
        .split('\n')
        .map((line) => line.split(/\s+/u))
    const age = expect.stringMatching(/^\d+m?s?/u)
    expect(await rows('configmaps')).toEqual([
      ['NAME', 'DATA', 'AGE', 'KEYS'],
      ['settings', '2', age, 'one,two'],
    ])
    expect(await rows('secrets')).toEqual([
      ['NAME', 'TYPE', 'DATA', 'AGE', 'KEYS'],
      ['access', 'Opaque', '1', age, 'password'],
    ])
    expect(await rig().cliOk('describe', 'secret', 'access')).toContain('password: <7 bytes>')
    const shown = await rig().cliOk('get', 'secret', 'access', '-o', 'yaml')
    expect(shown).toContain(`password: ${Buffer.from('hunter2').toString('base64')}`)
    rig().removeManifest('objects')
    rig().removeManifest('marker')
  })

  it(
    'lists claims, and deletes what they hold only when told to, and never while a pod uses it',
    proves(
      'claims',
      'PersistentVolumeClaim: apiVersion kind metadata spec',
      'PersistentVolumeClaimSpec: accessModes resources',
      'VolumeResourceRequirements: requests',
    ),
    async () => {
      const claim = {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      }
      rig().drop('claim', claim)
      const columns = async (): Promise<readonly string[] | undefined> =>
        (await rig().cliOk('get', 'pvc'))
          .split('\n')
          .find((line) => line.startsWith('data '))
          ?.trim()
          .split(/\s+/u)
      await rig().until('the claim', async () => (await columns())?.[1] === 'Pending')
      rig().drop(
        'user',
        shellPod(
          'claimer',
          rig().shared,
          'dd if=/dev/zero of=/v/x bs=64k count=16 2>/dev/null; say up; stay',
          {
            volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }],
            mounts: [{ name: 'v', mountPath: '/v' }],
          },
        ),
      )
      await rig().untilLine('claimer', / up$/u)
      expect((await columns())?.slice(0, 6)).toEqual(['data', 'Bound', '1Gi', '1Mi', 'RWO', 'podd-local'])
      expect((await rig().cli('delete', 'pvc', 'data')).code).toBe(2)
      const refused = await rig().cli('delete', 'pvc', 'data', '--purge')
      expect([refused.code, refused.stderr]).toEqual([
        1,
        expect.stringContaining('claim data is used by pod claimer'),
      ])
      rig().removeManifest('user')
      rig().removeManifest('claim')
      await rig().untilGone('claimer')
      expect((await columns())?.slice(0, 3)).toEqual(['data', 'Released', '1Mi'])
      expect(await rig().cliOk('delete', 'pvc', 'data', '--purge')).toBe(
        'persistentvolumeclaim "data" purged\n',
      )
      expect(await columns()).toBeUndefined()
    },
  )
})

describePodd('secrets that podd keeps off its disk', { config: { persistSecrets: false } }, (rig) => {
  it('stand in none of its files, and are read anew', async () => {
    const word = 'tr0ub4dor'
    rig().drop(
      'pod',
      secret('hidden', { word }),
      envPod(rig(), 'user', {}),
      shellPod('mounter', rig().shared, 'say $(cat /v/word); stay', {
        volumes: [{ name: 'v', secret: { secretName: 'hidden' } }],
        mounts: [{ name: 'v', mountPath: '/v' }],
      }),
    )
    await rig().untilLine('mounter', new RegExp(word, 'u'))
    await rig().restartDaemon()
    await rig().untilReady('mounter')
    const { stdout: found } = spawnSync(
      'grep',
      [
        '-rlF',
        word,
        '--exclude-dir=containerd',
        '--exclude-dir=pods',
        rig().rootDir,
        join(rig().directory, 'podd.log'),
      ],
      { encoding: 'utf8' },
    )
    expect(found).toBe('')
  })
})

function reasonOf(pod: Awaited<ReturnType<PoddRig['untilReady']>>): string | undefined {
  return pod.status.containerStatuses?.[0]?.state.waiting?.reason
}
