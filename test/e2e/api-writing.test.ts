import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Json, JsonObject } from '../../src/base/json.ts'
import { callApi } from '../support/call-api.ts'
import type { ApiAnswer } from '../support/call-api.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { otherShell, shell } from '../support/podd-program.ts'
import { proves } from '../support/proves.ts'
import { slowness } from '../support/slowness.ts'

const pods = '/api/v1/namespaces/default/pods'
const stay = 'trap "exit 0" TERM; sleep 1000000 & wait'
const configMaps = '/api/v1/namespaces/default/configmaps'

function podOf(name: string, script: string, spec: JsonObject = {}): JsonObject {
  const container = { name: 'main', image: shell, command: ['sh', '-c', script] }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 5, containers: [container], ...spec },
  }
}

function asker(rig: PoddRig) {
  return (method: string, path: string, body?: Json, type?: string): Promise<ApiAnswer> =>
    callApi(rig.socketPath, method, path, body, type)
}

describePodd('writing over the API', {}, (podd) => {
  it(
    'runs a pod that was created, changes it in place, keeps it over a restart, and ends it',
    async () => {
      const rig = podd()
      const ask = asker(rig)
      const created = await ask('POST', pods, podOf('made', stay))
      expect(created).toMatchObject({
        code: 201,
        body: {
          metadata: { name: 'made', annotations: { 'podd.dev/source': 'api' } },
          spec: { restartPolicy: 'Always', serviceAccountName: 'default' },
          status: { phase: 'Pending' },
        },
      })
      const before = await rig.untilReady('made')
      const directory = join(rig.rootDir, 'api')
      expect(readdirSync(directory)).toEqual(['pod.default.made.json'])
      expect(statSync(join(directory, 'pod.default.made.json')).mode & 0o777).toBe(0o600)

      const patched = await ask(
        'PATCH',
        `${pods}/made`,
        {
          metadata: { labels: { tier: 'front' } },
          spec: { containers: [{ name: 'main', image: otherShell }] },
        },
        'application/strategic-merge-patch+json',
      )
      expect(patched).toMatchObject({ code: 200, body: { metadata: { labels: { tier: 'front' } } } })
      const changed = await rig.untilPod(
        'made',
        'restarted with the other image',
        ({ status }) =>
          status.containerStatuses?.[0]?.restartCount === 1 && status.containerStatuses[0].ready,
      )
      expect(changed.metadata.uid).toBe(before.metadata.uid)

      await rig.restartDaemon()
      const after = await rig.untilReady('made')
      expect(after.metadata).toMatchObject({ uid: before.metadata.uid, labels: { tier: 'front' } })
      expect(after.status.containerStatuses?.[0]?.restartCount).toBe(1)

      const deleted = await ask('DELETE', `${pods}/made`)
      expect(deleted.code).toBe(200)
      expect(deleted.body['metadata']).toMatchObject({ deletionGracePeriodSeconds: 5 })
      await rig.untilGone('made')
      await rig.until('its file is removed', async () =>
        readdirSync(directory).length === 0 ? true : undefined,
      )
    },
    120_000 * slowness,
  )

  it(
    'runs a pod once and keeps it until it is deleted and its finalizers are gone, also with what it was given over the API',
    async () => {
      const rig = podd()
      const ask = asker(rig)
      const config = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'words' },
        data: { word: 'hello' },
      }
      expect(await ask('POST', configMaps, config)).toMatchObject({ code: 201 })
      const once = podOf('once', 'test "$WORD" = hello', {
        restartPolicy: 'Never',
        containers: [
          {
            name: 'main',
            image: shell,
            command: ['sh', '-c', 'test "$WORD" = hello'],
            env: [{ name: 'WORD', valueFrom: { configMapKeyRef: { name: 'words', key: 'word' } } }],
          },
        ],
      })
      const finalizers = ['example.com/a']
      const made = await ask('POST', pods, { ...once, metadata: { name: 'once', finalizers } })
      expect(made).toMatchObject({ code: 201 })
      await rig.untilPhase('once', 'Succeeded')
      expect(await ask('POST', pods, once)).toMatchObject({ code: 409, body: { reason: 'AlreadyExists' } })
      await rig.restartDaemon()
      const { uid } = (await rig.untilPhase('once', 'Succeeded')).metadata
      expect(await ask('DELETE', `${pods}/once`)).toMatchObject({ code: 200 })
      await rig.until('no container of it is there', async () => rig.containerIds(uid).length === 0)
      await rig.restartDaemon('SIGKILL')
      expect(await ask('GET', `${pods}/once`)).toMatchObject({
        code: 200,
        body: {
          metadata: { uid, finalizers, deletionTimestamp: expect.any(String) },
          status: { phase: 'Succeeded' },
        },
      })
      const freed = { metadata: { finalizers: null } }
      const merge = 'application/merge-patch+json'
      expect(await ask('PATCH', `${pods}/once`, freed, merge)).toMatchObject({ code: 200 })
      await rig.untilGone('once')
      expect(await ask('DELETE', `${configMaps}/words`)).toMatchObject({
        code: 200,
        body: { status: 'Success' },
      })
      expect(await ask('GET', `${configMaps}/words`)).toMatchObject({ code: 404 })
    },
    120_000 * slowness,
  )

  it(
    'leaves the pods of a directory to their files, and takes edits of its own',
    async () => {
      const rig = podd()
      const ask = asker(rig)
      rig.drop('filed', podOf('filed', stay))
      await rig.untilReady('filed')
      const refused = await ask('DELETE', `${pods}/filed`)
      expect(refused).toMatchObject({ code: 405, body: { reason: 'MethodNotAllowed' } })
      expect(refused.body['message']).toContain('filed.yaml')
      expect(await ask('POST', pods, podOf('filed', 'true'))).toMatchObject({ code: 409 })
      const debugged = await rig.cli(
        'debug',
        'filed',
        '--image',
        shell,
        '-c',
        'looker',
        '--',
        'sh',
        '-c',
        stay,
      )
      expect(debugged.code).toBe(0)
      await rig.untilPod(
        'filed',
        'looked into',
        ({ status }) =>
          status.ephemeralContainerStatuses?.some(({ state }) => state.running !== undefined) === true,
      )

      await ask('POST', pods, podOf('edited', stay))
      await rig.untilReady('edited')
      const file = join(rig.rootDir, 'api', 'pod.default.edited.json')
      const manifest: JsonObject = JSON.parse(readFileSync(file, 'utf8'))
      const metadata = { ...Object(manifest['metadata']), labels: { by: 'hand' } }
      writeFileSync(file, JSON.stringify({ ...manifest, metadata }))
      await rig.untilPod('edited', 'labelled', (pod) => pod.metadata.labels?.['by'] === 'hand')
      await ask('DELETE', `${pods}/edited`, { gracePeriodSeconds: 0 })
      await rig.untilGone('edited')
      rig.removeManifest('filed')
      await rig.untilGone('filed')
    },
    120_000 * slowness,
  )

  it(
    'goes on with its pods where files of the same name or UID come beside theirs, and names these',
    async () => {
      const rig = podd()
      const ask = asker(rig)
      await ask('POST', pods, podOf('web', stay))
      const before = await rig.untilReady('web')
      const directory = join(rig.rootDir, 'api')
      const file = join(directory, 'pod.default.web.json')
      const manifest: JsonObject = JSON.parse(readFileSync(file, 'utf8'))
      const metadata = Object(manifest['metadata'])
      const copies = {
        'a-copy.json': metadata,
        'b-restored.json': { ...metadata, uid: 'of-another-podd' },
        'pod.default.aaa.json': { ...metadata, name: 'aaa' },
      }
      for (const [name, changed] of Object.entries(copies))
        writeFileSync(join(directory, name), JSON.stringify({ ...manifest, metadata: changed }))
      const paths = Object.keys(copies).map((name) => join(directory, name))
      const named = () =>
        rig.until('the copies are named', async () => {
          const { problems } = await rig.status()
          const found = problems.map(({ place }) => place.path).filter((path) => paths.includes(path))
          return found.length === paths.length ? found : undefined
        })
      const goesOn = async (): Promise<void> => {
        const after = await rig.untilReady('web')
        expect(after.metadata.uid).toBe(before.metadata.uid)
        expect(after.status.containerStatuses).toEqual(before.status.containerStatuses)
        expect(await rig.findPod('aaa')).toBeUndefined()
      }
      expect(await named()).toEqual(paths)
      expect(await rig.cliOk('status')).toContain(
        `${paths[0]}: pod default/web stands in ${file} too, which is followed; this one is not`,
      )
      await goesOn()
      await rig.restartDaemon()
      await named()
      await goesOn()
      // The copy gives the same pod.
      rmSync(file)
      await rig.untilPod(
        'web',
        'of the copy',
        ({ metadata: { annotations } }) => annotations?.['podd.dev/path'] === paths[0],
      )
      await goesOn()
      for (const path of paths.slice(1)) rmSync(path)
      await ask('DELETE', `${pods}/web`, { gracePeriodSeconds: 0 })
      await rig.untilGone('web')
      await rig.until('nothing is named', async () =>
        (await rig.status()).problems.length === 0 ? true : undefined,
      )
    },
    120_000 * slowness,
  )

  it(
    'lets its pods go on, and those that have completed, where a backup of their files is restored',
    async () => {
      const rig = podd()
      const ask = asker(rig)
      await ask('POST', pods, podOf('web', stay))
      await ask('POST', pods, podOf('job', 'exit 0', { restartPolicy: 'Never' }))
      const running = await rig.untilReady('web')
      const completed = await rig.untilPhase('job', 'Succeeded')
      const directory = join(rig.rootDir, 'api')
      const archive = `${directory}.tar`
      const run = (command: string, ...args: readonly string[]) => execFileSync(command, args)
      run('tar', 'cf', archive, '-C', directory, '.')
      const late = podOf('late', stay)
      const restore: Readonly<Record<string, () => void>> = {
        tar: () => run('tar', 'xf', archive, '-C', directory),
        'tar -U': () => run('tar', 'xf', archive, '-C', directory, '--unlink-first'),
        rename: () => {
          const file = join(directory, 'pod.default.job.json')
          renameSync(file, join(directory, 'a.json'))
        },
        swap: () => {
          mkdirSync(`${directory}.backup`, { mode: 0o700 })
          run('tar', 'xf', archive, '-C', `${directory}.backup`)
          renameSync(directory, `${directory}.old`)
          renameSync(`${directory}.backup`, directory)
        },
      }
      for (const [way, work] of Object.entries(restore)) {
        // The swap takes it away again.
        if (way === 'swap') await ask('POST', pods, late)
        for (let round = 0; round < (way.startsWith('tar') ? 10 : 1); round += 1) {
          work()
          await setTimeout(100)
        }
        if (way === 'swap') await rig.untilGone('late')
        // A write that comes after all that podd has noticed.
        const label = { metadata: { labels: { way: way.replace(/\W+/gu, '-') } } }
        for (const name of ['web', 'job'])
          expect(
            await ask('PATCH', `${pods}/${name}`, label, 'application/merge-patch+json'),
            `${way} ${name}`,
          ).toMatchObject({ code: 200 })
        await setTimeout(500)
        expect((await rig.findPod('web'))?.status.containerStatuses).toEqual(running.status.containerStatuses)
        const after = await rig.untilPhase('job', 'Succeeded')
        expect(after.metadata.uid).toBe(completed.metadata.uid)
        expect(after.status.containerStatuses).toEqual(completed.status.containerStatuses)
      }
      rmSync(`${directory}.old`, { recursive: true })
      rmSync(join(directory, 'pod.default.web.json'))
      await rig.untilGone('web')
      await ask('DELETE', `${pods}/job`)
      await rig.untilGone('job')
    },
    120_000 * slowness,
  )

  it(
    'admits pods against resources that clients gave the node, and carries a class’s scheduling',
    proves(
      'scheduling',
      'PodSpec: tolerations',
      'Toleration: key operator value effect tolerationSeconds',
      'RuntimeClass: scheduling',
      'Scheduling: nodeSelector tolerations',
    ),
    async () => {
      const rig = podd()
      const ask = asker(rig)
      const strategic = 'application/strategic-merge-patch+json'
      const node = '/api/v1/nodes/box'
      const gpus = { 'example.com/gpu': '1' }
      const given = { status: { capacity: gpus, allocatable: gpus } }
      expect(await ask('PATCH', `${node}/status`, given, strategic)).toMatchObject({
        code: 200,
        body: { status: { capacity: gpus, allocatable: gpus } },
      })
      const toleration = { key: 'gpu', operator: 'Equal', value: 'yes', effect: 'NoExecute' }
      const tolerations = [{ ...toleration, tolerationSeconds: 60 }]
      const scheduling = { nodeSelector: { gpu: 'yes' }, tolerations }
      const runtimeClass = { metadata: { name: 'gpu' }, handler: 'runc', scheduling }
      expect(await ask('POST', '/apis/node.k8s.io/v1/runtimeclasses', runtimeClass)).toMatchObject({
        code: 201,
      })
      const main = { name: 'main', image: shell, command: ['sh', '-c', stay], resources: { limits: gpus } }
      const withGpu = { runtimeClassName: 'gpu', containers: [main] }
      expect(await ask('POST', pods, podOf('placed', stay, withGpu))).toMatchObject({
        code: 201,
        body: { spec: scheduling },
      })
      const before = await rig.untilReady('placed')
      const more = { spec: { tolerations: [...tolerations, { key: 'other', operator: 'Exists' }] } }
      expect(await ask('PATCH', `${pods}/placed`, more, strategic)).toMatchObject({ code: 200 })
      const after = await rig.untilPod(
        'placed',
        'taken',
        ({ metadata: { generation }, status }) => generation === 2 && status.observedGeneration === 2,
      )
      expect(after.status.containerStatuses?.[0]?.containerID).toBe(
        before.status.containerStatuses?.[0]?.containerID,
      )

      await rig.restartDaemon()
      expect(await ask('GET', node)).toMatchObject({ body: { status: { allocatable: gpus } } })
      expect(await ask('POST', pods, podOf('second', stay, withGpu))).toMatchObject({ code: 201 })
      await rig.untilPod(
        'second',
        'its wait',
        ({ status: { phase, message = '' } }) => phase === 'Pending' && message.includes('example.com/gpu'),
      )
      expect(await ask('DELETE', `${pods}/placed`)).toMatchObject({ code: 200 })
      await rig.untilReady('second')
      expect(await ask('DELETE', `${pods}/second`)).toMatchObject({ code: 200 })
      for (const name of ['second', 'placed']) await rig.untilGone(name)
      await ask('DELETE', '/apis/node.k8s.io/v1/runtimeclasses/gpu')
      await ask('PATCH', `${node}/status`, { status: { capacity: { 'example.com/gpu': null } } }, strategic)
    },
  )

  it(
    'debugs, resizes and evicts a pod, and ends a namespace with the pods in it',
    async () => {
      const rig = podd()
      const ask = asker(rig)
      const strategic = 'application/strategic-merge-patch+json'
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } }
      const inTeam = '/api/v1/namespaces/team/pods'
      const read = (name: string) => rig.findPod(name, 'team')
      expect(await ask('POST', inTeam, podOf('early', stay))).toMatchObject({ code: 404 })
      expect(await ask('POST', '/api/v1/namespaces', namespace)).toMatchObject({ code: 201 })
      const limits = { cpu: '200m', memory: '32Mi' }
      const main = { name: 'main', image: shell, command: ['sh', '-c', stay], resources: { limits } }
      for (const name of ['web', 'evicted'])
        expect(await ask('POST', inTeam, podOf(name, stay, { containers: [main] }))).toMatchObject({
          code: 201,
        })
      await rig.until('both run', async () => {
        const both = [await read('web'), await read('evicted')]
        return both.every((pod) => pod?.status.containerStatuses?.[0]?.ready === true) ? true : undefined
      })

      const debug = { name: 'debug', image: shell, command: ['sh', '-c', 'exit 0'] }
      const added = { spec: { ephemeralContainers: [debug] } }
      expect(await ask('PATCH', `${inTeam}/web/ephemeralcontainers`, added, strategic)).toMatchObject({
        code: 200,
      })
      const script = 'read line; echo "got $line"; tr "\\0" " " </proc/1/cmdline; exit 3'
      const options = ['-c', 'looker', '-i', '--image', shell, '--target', 'main', '--env', 'A=b']
      const looker = rig.spawnCli('debug', '-n', 'team', 'web', ...options, '--', 'sh', '-c', script)
      let told = ''
      looker.child.stderr?.on('data', (chunk: Buffer) => (told += chunk.toString()))
      looker.child.stdin?.end('hello\n')
      const [code] = await once(looker.child, 'close')
      expect([code, looker.output(), told]).toEqual([0, expect.stringMatching(/^got hello\nsh -c /u), ''])
      const larger = { name: 'main', resources: { limits: { cpu: '300m' }, requests: { cpu: '300m' } } }
      const resized = { spec: { containers: [larger] } }
      expect(await ask('PATCH', `${inTeam}/web/resize`, resized, strategic)).toMatchObject({ code: 200 })
      await rig.until('the debugger has run and the pod has more', async () => {
        const { status } = (await read('web')) ?? {}
        const debugged = status?.ephemeralContainerStatuses?.find(({ name }) => name === 'debug')
        const [running] = status?.containerStatuses ?? []
        const isDone = debugged?.state.terminated?.exitCode === 0
        return isDone && running?.resources?.limits?.['cpu'] === '300m' && running.restartCount === 0
          ? true
          : undefined
      })

      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'evicted' } }
      expect(await ask('POST', `${inTeam}/evicted/eviction`, eviction)).toMatchObject({ code: 201 })
      await rig.until('it is gone', async () => ((await read('evicted')) === undefined ? true : undefined))
      const deleted = await ask('DELETE', '/api/v1/namespaces/team')
      expect(deleted).toMatchObject({ code: 200, body: { status: { phase: 'Terminating' } } })
      await rig.until('the namespace is gone', async () =>
        (await ask('GET', '/api/v1/namespaces/team')).code === 404 ? true : undefined,
      )
      expect(await read('web')).toBeUndefined()
      expect(readdirSync(join(rig.rootDir, 'api'))).toEqual([])
    },
    120_000 * slowness,
  )
})
