import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import type {
  EventListObject,
  PodListObject,
  PodObject,
  ResourceList,
  WatchEvent,
} from '../../src/api/resource.ts'
import { systemClock } from '../../src/base/clock.ts'
import { ApiClient } from '../../src/cli/client/client.ts'
import { rigImages } from '../support/podd-program.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { podOf, shellContainer, shellPod } from '../support/shell-pods.ts'

function rows(table: string): string[][] {
  return table
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(/ {2,}/u).map((cell) => cell.trim()))
}

describePodd('the command line', {}, (rig) => {
  /** One pod with two containers, for all who only look. */
  const untilWeb = async (podd: PoddRig): Promise<PodObject> => {
    const main = 'echo one; echo two >&2; echo three; stay'
    const pod = podOf(
      'web',
      podd.shared,
      [shellContainer('main', 'web', main), shellContainer('side', 'web', 'echo beside; stay')],
      {
        metadata: { labels: { app: 'web' }, annotations: { note: 'kept' } },
      },
    )
    podd.drop('web', pod)
    return podd.untilReady('web')
  }

  it.concurrent('lists pods as a table, wide, by name, as JSON and as YAML', async () => {
    const podd = rig()
    const pod = await untilWeb(podd)
    const [header, row = []] = rows(await podd.cliOk('get', 'pods', 'web'))
    expect(header).toEqual(['NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE'])
    expect(row.slice(0, 4)).toEqual(['web', '2/2', 'Running', '0'])
    expect(row[4]).toMatch(/^\d+m?s?/u)
    const [wideHeader, wide = []] = rows(await podd.cliOk('get', 'pods', 'web', '-o', 'wide'))
    expect(wideHeader?.slice(5)).toEqual(['IP', 'SOURCE'])
    expect(wide.slice(5)).toEqual([pod.status.podIP, join(podd.manifests, 'web.yaml')])
    expect(await podd.cliOk('get', 'pod/web', '-o', 'name')).toBe('pod/web\n')
    expect((await podd.cliOk('get', 'pods', '-A')).split('\n')[0]).toMatch(/^NAMESPACE +NAME/u)

    const object: PodObject = JSON.parse(await podd.cliOk('get', 'pod', 'web', '-o', 'json'))
    expect(object).toMatchObject({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { uid: pod.metadata.uid, labels: { app: 'web' } },
    })
    expect(object.metadata.annotations).toMatchObject({ note: 'kept' })
    expect(object.status.containerStatuses?.map(({ name, ready }) => [name, ready])).toEqual([
      ['main', true],
      ['side', true],
    ])
    const list: Pick<PodListObject, 'items'> = JSON.parse(await podd.cliOk('get', 'pods', '-o', 'json'))
    expect(list.items.map(({ metadata }) => metadata.name)).toContain('web')
    expect(parse(await podd.cliOk('get', 'pod', 'web', '-o', 'yaml'))).toMatchObject({
      kind: 'Pod',
      metadata: { name: 'web' },
    })
  })

  it.concurrent('watches pods', async () => {
    const podd = rig()
    const watch = podd.spawnCli('get', 'pods', '-w')
    await podd.until('the header', () => watch.output().startsWith('NAME'), 20_000).catch(() => undefined)
    podd.drop('seen', shellPod('seen', podd.shared, 'stay'))
    await podd.until('Running', () => /^seen +1\/1 +Running/mu.test(watch.output()))
    podd.removeManifest('seen')
    await podd.until('Terminating', () => /^seen +.*Terminating/mu.test(watch.output()))
    watch.child.kill('SIGINT')
    const [code] = await once(watch.child, 'exit')
    expect(code).toBe(130)
    expect(
      watch
        .output()
        .split('\n')
        .filter((line) => line.startsWith('NAME')),
    ).toHaveLength(1)
  })

  it.concurrent('describes a pod', async () => {
    const podd = rig()
    const pod = await untilWeb(podd)
    const text = await podd.cliOk('describe', 'pod', 'web')
    for (const part of [
      /^Name: +web$/mu,
      /^Namespace: +default$/mu,
      /^Node: +box/mu,
      /^Labels: +app=web$/mu,
      /^Status: +Running$/mu,
      /^ +Container ID: +containerd:\/\/[0-9a-f]{64}$/mu,
      /^ +State: +Running$/mu,
      /^ +Restart Count: +0$/mu,
      /^Conditions:$/mu,
      /^QoS Class: +BestEffort$/mu,
      /^Events:$/mu,
      /Normal +Started .*Started container main/u,
    ])
      expect(text).toMatch(part)
    expect(text).toContain(pod.status.podIP)
  })

  it.concurrent('shows what turns or hides text, in all but logs', async () => {
    const podd = rig()
    const unseen = 'evil\u202Etxt\u2066\u200B\u2028.\u009B'
    const script = `printf %s '${unseen}' >/dev/termination-log; echo '${unseen}'; exit 3`
    podd.drop(
      'unseen',
      shellPod('unseen', podd.shared, script, {
        spec: { restartPolicy: 'Never' },
        metadata: { annotations: { note: unseen } },
      }),
    )
    const bad = `bad-\u202Elmay.yaml`
    podd.dropText(bad, `apiVersion: v1\nkind: Pod\nmetadata: {name: "${unseen}"}\nspec: {"${unseen}": 1}\n`)
    const failed = await podd.untilPhase('unseen', 'Failed')
    expect(containerOf(failed, 'main').state.terminated?.message).toBe(unseen)
    await podd.until('the problem', async () =>
      (await podd.status()).problems.some(({ place }) => place.path.endsWith(bad)),
    )
    const shown = 'evil\\u202etxt\\u2066\\u200b\\u2028.\\u009b'
    const calls = [
      ['describe', 'pod', 'unseen'],
      ['get', 'pod', 'unseen', '-o', 'json'],
      ['get', 'pod', 'unseen', '-o', 'yaml'],
      ['get', 'pods'],
      ['validate', join(podd.manifests, bad)],
    ]
    const said = await Promise.all(calls.map((call) => podd.cli(...call)))
    for (const { stdout, stderr } of said) {
      expect(`${stdout}${stderr}`).toMatch(/\\u202e/u)
      expect(`${stdout}${stderr}`).not.toMatch(/[\u202E\u2066\u200B\u2028\u009B]/u)
    }
    for (const { stdout } of said.slice(0, 3)) expect(stdout).toContain(shown)
    expect(await podd.cliOk('logs', 'unseen')).toBe(`${unseen}\n`)
    expect(readFileSync(join(podd.directory, 'podd.log'), 'utf8')).not.toContain('\u202E')
    for (const file of ['unseen.yaml', bad]) rmSync(join(podd.manifests, file))
    await podd.untilGone('unseen')
  })

  it.concurrent('shows logs: whole, by tail, with times, of a container, of all', async () => {
    const podd = rig()
    await untilWeb(podd)
    const logs = (...args: string[]) => podd.cli('logs', 'web', ...args)
    await podd.until('all of it', async () => (await logs('-c', 'main')).stdout.split('\n').length === 4)
    expect((await logs('-c', 'main')).stdout.split('\n').toSorted()).toEqual(['', 'one', 'three', 'two'])
    const named = await logs()
    expect(named.stdout).toContain('one\n')
    expect(named.stderr).toContain('Defaulted container "main" out of: main, side')
    expect((await logs('-c', 'main', '--tail', '1')).stdout.split('\n')).toHaveLength(2)
    expect((await logs('-c', 'side', '--timestamps')).stdout).toMatch(
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d) beside\n$/u,
    )
    expect((await logs('--all-containers', '--prefix')).stdout).toContain('[pod/web/side] beside\n')
    expect(await logs('-c', 'none')).toMatchObject({ code: 1, stdout: '' })
    expect(await podd.cli('logs', 'nobody')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('NotFound'),
    })
  })

  it.concurrent('follows logs over a restart, and shows those of the previous instance', async () => {
    const podd = rig()
    const script =
      'n=$(wc -l </shared/talk); say go; i=0; while [ $i -lt 5 ]; do i=$((i+1)); echo "run $n line $i"; sleep 0.1; done; [ $n -ge 1 ] && stay; until [ -e /shared/heard ]; do sleep 0.1; done; exit 1'
    podd.drop('talk', shellPod('talk', podd.shared, `touch /shared/talk; ${script}`))
    await podd.untilPod(
      'talk',
      'its process',
      ({ status }) => status.containerStatuses?.[0]?.containerID !== undefined,
    )
    const follow = podd.spawnCli('logs', '-f', 'talk')
    await podd.until('the first run', () => follow.output().includes('run 0 line 5\n'))
    writeFileSync(join(podd.shared, 'heard'), '')
    await podd.until('the second run', () => follow.output().includes('run 1 line 5\n'))
    follow.child.kill('SIGINT')
    const lines = follow.output().trim().split('\n')
    expect(lines).toEqual([0, 1].flatMap((run) => [1, 2, 3, 4, 5].map((line) => `run ${run} line ${line}`)))
    await podd.untilPod('talk', 'its restart', (pod) => containerOf(pod, 'main').restartCount === 1)
    await podd.until('its words', async () => (await podd.ask('logs', 'talk')).stdout !== '')
    expect(await podd.cliOk('logs', 'talk', '--previous')).toMatch(/^run 0 line 1\n(.*\n)*run 0 line 5\n$/u)
    expect(await podd.cliOk('logs', 'talk')).toMatch(/^run 1 line 1\n/u)
  })

  it.concurrent('lists events, of one pod, by type, as JSON, and as they come', async () => {
    const podd = rig()
    const watch = podd.spawnCli('events', '-w', '--for', 'noisy')
    podd.drop('noisy', shellPod('noisy', podd.shared, 'exit 1'))
    await podd.untilEvent('noisy', 'BackOff')
    const [header, ...list] = rows(await podd.cliOk('events', '--for', 'noisy'))
    expect(header).toEqual(['LAST SEEN', 'TYPE', 'REASON', 'OBJECT', 'MESSAGE'])
    expect(list.map((row) => row[2])).toEqual(
      expect.arrayContaining(['Pulled', 'Created', 'Started', 'BackOff']),
    )
    expect(list.every((row) => row[3] === 'pod/noisy')).toBe(true)
    const warnings = rows(await podd.cliOk('events', '--for', 'noisy', '--types', 'Warning')).slice(1)
    expect(new Set(warnings.map((row) => row[1]))).toEqual(new Set(['Warning']))
    const { items }: EventListObject = JSON.parse(await podd.cliOk('events', '-o', 'json'))
    const started = items.find(
      ({ reason, involvedObject }) => reason === 'Started' && involvedObject.name === 'noisy',
    )
    expect(started).toMatchObject({
      apiVersion: 'v1',
      kind: 'Event',
      type: 'Normal',
      source: { component: 'kubelet', host: 'box' },
      reportingComponent: 'kubelet',
      reportingInstance: 'box',
    })
    expect(started?.involvedObject.fieldPath).toBe('spec.containers{main}')
    await podd.until('the watched event', () => watch.output().includes('BackOff'))
    watch.child.kill('SIGINT')
    podd.removeManifest('noisy')
    await podd.untilGone('noisy')
  })

  it.concurrent('validates files, with places and exit codes', async () => {
    const podd = rig()
    const good = join(podd.directory, 'good.yaml')
    const bad = join(podd.directory, 'bad.yaml')
    writeFileSync(good, JSON.stringify(shellPod('good', podd.shared, 'stay')))
    writeFileSync(
      bad,
      `apiVersion: v1
kind: Pod
metadata: {name: Bad_Name}
spec: {containers: [{name: main, image: localhost/none}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec:
  containers:
  - nam: main
`,
    )
    expect(await podd.cli('validate', good)).toMatchObject({ code: 0, stdout: '' })
    const { code, stdout } = await podd.cli('validate', good, bad)
    expect(code).toBe(1)
    expect(stdout).toMatch(/bad\.yaml:3:\d+: metadata\.name: /u)
    expect(stdout).toMatch(/bad\.yaml:11:5: spec\.containers\[0\]\.nam: .*name/u)
    expect(await podd.cli('validate', join(podd.directory, 'nowhere.yaml'))).toMatchObject({ code: 1 })
    expect(await podd.cli('validate')).toMatchObject({ code: 2 })
  })

  it.concurrent('lists and imports images', async () => {
    const podd = rig()
    const [header, ...list] = rows(await podd.cliOk('images'))
    expect(header).toEqual(['IMAGE', 'TAG', 'IMAGE ID', 'SIZE', 'PINNED'])
    expect(list.map((row) => row.slice(0, 2))).toEqual(
      expect.arrayContaining([
        ['localhost/podd-test/shell', '1'],
        ['localhost/podd-test/shell', '2'],
      ]),
    )
    const archive = join(podd.directory, 'again.tar')
    writeFileSync(archive, rigImages())
    expect(await podd.cliOk('images', 'import', archive)).toContain('imported localhost/podd-test/shell:1\n')
    writeFileSync(archive, 'no archive')
    const failed = await podd.cli('images', 'import', archive)
    expect(failed).toMatchObject({ code: 1, stdout: '' })
    expect(failed.stderr).toContain(archive)
  })

  it.concurrent('checks the host, and tells versions', async () => {
    const podd = rig()
    const doctor = await podd.cli('doctor', ...podd.flags())
    expect(doctor.stdout).toMatch(/containerd/u)
    expect(doctor.stdout).not.toMatch(/^error +containerd/mu)
    // Of the podd at a socket it needs no more than that.
    const named = await podd.cli('doctor')
    expect(named.stdout).toContain(` ${podd.manifests}\n`)
    const status = JSON.parse(await podd.cliOk('get', '--raw', '/podd/v1/status'))
    expect(status).toMatchObject({ nodeName: 'box', places: { staticPodPath: podd.manifests } })
    const version = await podd.cliOk('version')
    expect(version).toMatch(/^podd \d+\.\d+\.\d+ \(Node\.js \d+/u)
    expect(version).toContain(`containerd ${podd.install.version}`)
    expect(version).toContain(`(pid ${podd.daemonPid})`)
    expect(await podd.cliOk('version', '--client')).not.toContain('daemon')
  })

  it.concurrent.each([
    [['get', 'pod', 'nobody'], 1, /Error from server \(NotFound\): pods? "nobody" not found/u],
    [['describe', 'pod', 'nobody'], 1, /NotFound/u],
    [['get', 'gadgets'], 2, /gadgets/u],
    [['gte', 'pods'], 2, /Did you mean get\?/u],
    [['get', 'pods', '--watsh'], 2, /--watsh/u],
    [['get', 'pods', '-o', 'xml'], 2, /xml/u],
    [[], 2, /podd/u],
  ] as const)('answers %j with exit code %i', async (args, code, message) => {
    const podd = rig()
    const result = await podd.cli(...args)
    expect(result.code).toBe(code)
    expect(result.stderr).toMatch(message)
    expect(result.stdout).toBe('')
  })

  it(
    'gives a daemon up that is stopped, while what it has begun goes on afterwards',
    { tags: ['nightly'] },
    async () => {
      const podd = rig()
      await untilWeb(podd)
      const begun = [
        podd.spawnCli('logs', 'web', '-c', 'main', '-f'),
        podd.spawnCli('get', 'pods', '-w'),
        podd.spawnCli('exec', 'web', '-c', 'main', '-i', '--', 'sh', '-c', 'echo begun; cat'),
      ]
      const [logs, , exec] = begun
      await podd.until('the streams', () => begun.every((call) => call.output() !== ''))
      process.kill(podd.daemonPid, 'SIGSTOP')
      try {
        const archive = join(podd.directory, 'images.tar')
        const calls = [
          ['version'],
          ['get', 'pods'],
          ['get', 'pods', '-w'],
          ['get', 'configmaps'],
          ['describe', 'pod', 'web'],
          ['logs', 'web'],
          ['logs', 'web', '-f'],
          ['exec', 'web', '--', 'true'],
          ['port-forward', 'web', ':80'],
          ['restart', 'nobody'],
          ['top', 'pods'],
          ['delete', 'pvc', 'none', '--purge'],
          ['events', '-w'],
          ['images'],
          ['images', 'import', archive],
        ]
        const results = await Promise.all(calls.map((call) => podd.cli(...call)))
        for (const [at, { code, stderr }] of results.entries()) {
          expect({ call: calls[at], code }).toEqual({ call: calls[at], code: 1 })
          expect(stderr).toMatch(/^podd: podd at .*podd\.sock does not answer\n.*fuser/u)
        }
      } finally {
        process.kill(podd.daemonPid, 'SIGCONT')
      }
      await podd.cliOk('exec', 'web', '-c', 'main', '--', 'sh', '-c', 'echo afterwards >/proc/1/fd/1')
      exec?.child.stdin?.end('afterwards')
      await podd.until('the end of the command', () => exec?.output() === 'begun\nafterwards')
      await podd.until('the line after the stop', () => logs?.output().includes('afterwards'))
      for (const { child } of begun) child.kill()
    },
  )

  it('goes on with a watch where it stopped, and never gives a revision twice', async () => {
    const podd = rig()
    const client = new ApiClient(podd.socketPath, systemClock)
    const list = () => podd.get<ResourceList>('/api/v1/pods')
    const before = (await list()).metadata.resourceVersion
    podd.drop('watched', shellPod('watched', podd.shared, 'say start; stay'))
    await podd.untilReady('watched')
    const revisions: string[] = []
    const states: string[] = []
    // Each change over a connection of its own.
    for (let from = before; states.at(-1) !== 'ready'; from = revisions.at(-1) ?? '') {
      const path = `/api/v1/pods?watch=true&fieldSelector=metadata.name=watched&resourceVersion=${from}`
      for await (const { type, object } of client.watch<WatchEvent<PodObject>>(
        path,
        AbortSignal.timeout(20_000),
      )) {
        const isReady = object.status.conditions.some(
          (each) => each.type === 'Ready' && each.status === 'True',
        )
        revisions.push(object.metadata.resourceVersion ?? '')
        states.push(isReady ? 'ready' : type)
        break
      }
    }
    expect(states[0]).toBe('ADDED')
    expect(states.filter((state) => state === 'ADDED')).toHaveLength(1)
    expect(revisions).toEqual([...new Set(revisions)].sort())
    expect(Number(revisions[0])).toBeGreaterThan(Number(before))

    await podd.restartDaemon('SIGKILL')
    const after = (await list()).metadata.resourceVersion
    expect(Number(after)).toBeGreaterThan(Number(revisions.at(-1)))
    const late = client.watch(
      `/api/v1/pods?watch=true&resourceVersion=${before}`,
      AbortSignal.timeout(20_000),
    )
    await expect(late.next()).rejects.toMatchObject({ reason: 'Expired' })
    podd.removeManifest('watched')
    await podd.untilGone('watched')
  })

  it('says so when no daemon runs', async () => {
    const podd = rig()
    await podd.stopDaemon('SIGTERM')
    for (const args of [['get', 'pods'], ['events'], ['logs', 'web']]) {
      const { code, stderr, stdout } = await podd.cli(...args)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/^podd: podd isn't running: no daemon listens at .*podd\.sock\nStart it with /u)
    }
    expect(await podd.cliOk('version')).toContain('no daemon is running')
    expect((await podd.cli('get', '--help')).code).toBe(0)
    await podd.startDaemon()
  })
})
