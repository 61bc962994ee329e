import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { appendFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PoddError } from '../../../src/base/errors.ts'
import type { ContainerStatus } from '../../../src/pod/state/status.ts'
import { holdInstanceLock, listenOnSocket } from '../../../src/server/http/listen.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { handshakeOf } from '../../support/web-sockets.ts'
import { containerStatus, eventObject, podObject, terminated } from '../../support/pod-objects.ts'

let rig: ApiRig
beforeEach(async () => {
  rig = await ApiRig.start()
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

const podsPath = '/api/v1/namespaces/default/pods'

/** What a killed process leaves: a socket file without a listener. */
async function leaveDeadSocket(path: string): Promise<void> {
  rmSync(path, { force: true })
  const dead = createServer().listen(path)
  await once(dead, 'listening')
  renameSync(path, `${path}.kept`)
  dead.close()
  await once(dead, 'close')
  renameSync(`${path}.kept`, path)
}

describe('the API server', () => {
  it('lists pods, of all namespaces and of one', async () => {
    rig.pods.put(podObject({ name: 'a' }))
    rig.pods.put(podObject({ name: 'b', namespace: 'shop' }))
    const names = async (path: string): Promise<unknown> => {
      const list = JSON.parse((await rig.call(path)).text) as {
        kind: string
        items: { metadata: { name: string } }[]
      }
      expect(list.kind).toBe('PodList')
      return list.items.map(({ metadata }) => metadata.name)
    }
    expect(await names('/api/v1/pods')).toEqual(['a', 'b'])
    expect(await names('/api/v1/namespaces/shop/pods')).toEqual(['b'])
    expect(JSON.parse((await rig.call(`${podsPath}/a`)).text)).toMatchObject({
      kind: 'Pod',
      metadata: { name: 'a' },
    })
  })

  it('has who asks for pods wait until they are known, and nobody else', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    rig.shownAt = promise
    const answers: string[] = []
    const list = rig.call(podsPath).then(({ text }) => answers.push(text))
    const one = rig.call(`${podsPath}/a`).then(({ code }) => answers.push(String(code)))
    for (const path of ['/healthz', '/podd/v1/status', '/podd/v1/images', '/api/v1/events'])
      expect((await rig.call(path)).code).toBe(200)
    expect(answers).toEqual([])
    rig.pods.put(podObject({ name: 'a' }))
    resolve()
    await Promise.all([list, one])
    expect(answers.toSorted()).toEqual(['200', expect.stringContaining('"name":"a"')])
  })

  it('lists events, images and its own status', async () => {
    rig.events.put(eventObject('e1'))
    rig.images.push({ id: 'sha256:1', tags: ['busybox:1'], digests: [], sizeBytes: 1, pinned: false })
    expect(JSON.parse((await rig.call('/api/v1/namespaces/default/events')).text)).toMatchObject({
      kind: 'EventList',
      items: [{ metadata: { name: 'e1' } }],
    })
    expect(JSON.parse((await rig.call('/podd/v1/images')).text)).toEqual(rig.images)
    expect(JSON.parse((await rig.call('/podd/v1/status')).text)).toEqual(rig.status)
    expect(await rig.call('/healthz')).toMatchObject({ code: 200, text: 'ok' })
  })

  it('tells what came of the probes of a pod', async () => {
    rig.pods.put(podObject({ metadata: { name: 'a' } }))
    rig.probes = [
      {
        container: 'main',
        probe: 'startup',
        result: 'unknown',
        counts: { success: 0, failure: 2, unknown: 1, repeated: 0 },
        lastFailure: { time: '2026-01-01T00:00:00Z', message: 'Startup probe failed: no' },
      },
    ]
    const { code, text } = await rig.call('/podd/v1/namespaces/default/pods/a/probes')
    expect(code).toBe(200)
    expect(JSON.parse(text)).toEqual(rig.probes)
  })

  it.each<[path: string, method: string, code: number, reason: string, message: string]>([
    ['/podd/v1/namespaces/default/pods/gone/probes', 'GET', 404, 'NotFound', 'pods "gone" not found'],
    [`${podsPath}/gone`, 'GET', 404, 'NotFound', 'pods "gone" not found'],
    ['/api/v1/endpoints', 'GET', 404, 'NotFound', 'the server could not find the requested resource'],
    [
      '/api/v1/pods',
      'DELETE',
      405,
      'MethodNotAllowed',
      'the server does not allow this method on the requested resource',
    ],
    ['/api/v1/%zz', 'GET', 400, 'BadRequest', '/api/v1/%zz is not a well-formed path'],
    [
      '/podd/v1/images/import?path=a.tar',
      'POST',
      400,
      'BadRequest',
      'path must be the absolute path of an image archive on this host',
    ],
  ])('answers %s (%s) with a Status', async (path, method, code, reason, message) => {
    const answer = await rig.call(path, method)
    expect(answer.code).toBe(code)
    expect(JSON.parse(answer.text)).toMatchObject({
      kind: 'Status',
      status: 'Failure',
      code,
      reason,
      message,
    })
  })

  it('tells what a failed call was about, with the hint', async () => {
    rig.importImages = () =>
      Promise.reject(
        new PoddError('IMAGE_IMPORT', '/x.tar is no image archive', { hint: 'Make it with docker save.' }),
      )
    const answer = await rig.call('/podd/v1/images/import?path=/x.tar', 'POST')
    expect(answer.code).toBe(500)
    expect(JSON.parse(answer.text)).toMatchObject({
      reason: 'InternalError',
      message: '/x.tar is no image archive',
      details: { causes: [{ reason: 'IMAGE_IMPORT', message: 'Make it with docker save.' }] },
    })
  })

  it('tells of a runtime that is not there as of what may pass', async () => {
    rig.importImages = () => Promise.reject(new PoddError('RUNTIME_UNAVAILABLE', 'containerd is not ready'))
    const answer = await rig.call('/podd/v1/images/import?path=/x.tar', 'POST')
    expect(answer.code).toBe(503)
    expect(JSON.parse(answer.text)).toMatchObject({ reason: 'ServiceUnavailable', code: 503 })
  })

  it('refuses a body that nobody reads', async () => {
    const answer = await rig.call('/podd/v1/images/import?path=/x.tar', 'POST', {
      'content-length': '10000000',
    })
    expect(answer.code).toBe(413)
    expect(rig.imported).toEqual([])
  })

  it('sends what is there and then each change to a watcher', async () => {
    rig.pods.put(podObject({ name: 'a' }))
    rig.pods.put(podObject({ name: 'other', namespace: 'shop' }))
    const response = await rig.open(`${podsPath}?watch=true`)
    const seen: string[] = []
    const lines = (async () => {
      let rest = ''
      for await (const chunk of response) {
        rest += String(chunk)
        for (let end = rest.indexOf('\n'); end !== -1; end = rest.indexOf('\n')) {
          const { type, object } = JSON.parse(rest.slice(0, end)) as {
            type: string
            object: { metadata: { name: string } }
          }
          seen.push(`${type} ${object.metadata.name}`)
          rest = rest.slice(end + 1)
        }
        if (seen.length === 4) response.destroy()
      }
    })().catch(() => {})
    await expect.poll(() => rig.pods.watchers).toBe(1)
    rig.pods.put(podObject({ name: 'b' }))
    rig.pods.put(podObject({ name: 'a', status: { phase: 'Failed' } }))
    rig.pods.remove('a')
    await lines
    expect(seen).toEqual(['ADDED a', 'ADDED b', 'MODIFIED a', 'DELETED a'])
    await expect.poll(() => rig.pods.watchers).toBe(0)
  })

  it('cuts off a watcher that does not read', async () => {
    const response = await rig.open(`${podsPath}?watch=true`)
    response.pause()
    await expect.poll(() => rig.pods.watchers).toBe(1)
    const big = 'x'.repeat(1024 * 1024)
    for (let round = 0; round < 12; round += 1)
      rig.pods.put(podObject({ metadata: { annotations: { big: `${big}${round}` } } }))
    await expect.poll(() => rig.pods.watchers).toBe(0)
    response.destroy()
  })
})

describe('logs over the API', () => {
  const record = (text: string): string => `2026-01-01T00:00:00.000000001Z stdout F ${text}\n`
  let logs: string

  beforeEach(async () => {
    logs = join(rig.podLogsDir, 'default_web_uid-web', 'main')
    await mkdir(logs, { recursive: true })
  })

  it('reads, with the options of the pod log API', async () => {
    rig.pods.put(podObject())
    await writeFile(join(logs, '0.log'), record('one') + record('two'))
    expect(await rig.call(`${podsPath}/web/log`)).toMatchObject({ code: 200, text: 'one\ntwo\n' })
    expect((await rig.call(`${podsPath}/web/log?tailLines=1`)).text).toBe('two\n')
    expect((await rig.call(`${podsPath}/web/log?limitBytes=2`)).text).toBe('on')
    expect((await rig.call(`${podsPath}/web/log?timestamps=true&tailLines=1`)).text).toBe(
      '2026-01-01T00:00:00.000000001Z two\n',
    )
    expect((await rig.call(`${podsPath}/web/log?sinceTime=2027-01-01T00:00:00Z`)).text).toBe('')
  })

  it.each<[what: string, query: string, status: ContainerStatus]>([
    ['runs', '', containerStatus('main', { restartCount: 3 })],
    ['runs, and is followed', '?follow=true', containerStatus('main', { restartCount: 3 })],
    ['has ended', '', containerStatus('main', { restartCount: 3, state: terminated(1) })],
  ])('names the file that was deleted of a container that %s', async (_, query, status) => {
    rig.pods.put(podObject({ status: { containerStatuses: [status] } }))
    const words = String.raw`the log file of container \"main\" in pod \"web\" does not exist: ${logs}/3.log`
    const expected = { code: 400, text: expect.stringContaining(words) }
    expect(await rig.call(`${podsPath}/web/log${query}`)).toMatchObject(expected)
    await rm(logs, { recursive: true })
    expect(await rig.call(`${podsPath}/web/log${query}`)).toMatchObject(expected)
  })

  it.for<[which: string, args: readonly string[]]>([
    ['whose directory is there', ['--directory']],
    ['that has not begun', []],
  ])('says that inotify is used up to who follows a log %s', async ([, args], context) => {
    const asRoot = ['--user', '--map-root-user']
    if (spawnSync('unshare', [...asRoot, 'true']).status !== 0) return context.skip('no user namespaces')
    const script = new URL('../../support/follow-once.ts', import.meta.url).pathname
    // A user namespace has limits of its own.
    const inNamespace = 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"'
    const words = [...asRoot, 'sh', '-c', inNamespace, 'sh', process.execPath, script]
    const { stdout } = await promisify(execFile)('unshare', [...words, ...args])
    expect(stdout).toMatch(/^500 /u)
    expect(JSON.parse(stdout.slice(4))).toMatchObject({
      message: expect.stringMatching(
        /^cannot watch .* no more inotify instances \(fs\.inotify\.max_user_instances\)$/u,
      ),
      details: { causes: [{ reason: 'LOG_WATCH', message: expect.stringContaining('sysctl') }] },
    })
  })

  it('finds the instance before the last restart', async () => {
    await writeFile(join(logs, '1.log'), record('before'))
    await writeFile(join(logs, '2.log'), record('now'))
    const again = containerStatus('main', { restartCount: 2, lastState: terminated(1) })
    rig.pods.put(podObject({ status: { containerStatuses: [again] } }))
    expect((await rig.call(`${podsPath}/web/log`)).text).toBe('now\n')
    expect((await rig.call(`${podsPath}/web/log?previous=true`)).text).toBe('before\n')
    const waiting = { ...again, state: { waiting: { reason: 'CrashLoopBackOff' } } }
    rig.pods.put(podObject({ status: { containerStatuses: [waiting] } }))
    expect((await rig.call(`${podsPath}/web/log?previous=true`)).text).toBe('now\n')
  })

  it('says why a pod ended that never wrote a log', async () => {
    const status = { phase: 'Failed', reason: 'OutOfcpu', message: 'not enough' } as const
    rig.pods.put(podObject({ status }))
    expect(await rig.call(`${podsPath}/web/log`)).toMatchObject({
      code: 400,
      text: expect.stringContaining(
        String.raw`container \"main\" in pod \"web\" has no log; the pod has ended: OutOfcpu: not enough`,
      ),
    })
  })

  it.each<[what: string, query: string, message: string]>([
    [
      'no instance before',
      '?container=main&previous=true',
      'previous terminated container "main" in pod "web" not found',
    ],
    ['a container that is not there', '?container=x', 'container x is not valid for pod web'],
    [
      'no choice among many',
      '',
      'a container name must be specified for pod web, choose one of: [init main side]',
    ],
    [
      'a container that has not started',
      '?container=side',
      'container "side" in pod "web" is waiting to start: trying and failing to pull image',
    ],
    ['a tail that is no number', '?container=main&tailLines=x', 'tailLines must be a whole number'],
  ])('refuses %s', async (_, query, message) => {
    await writeFile(join(logs, '0.log'), record('one'))
    rig.pods.put(
      podObject({
        spec: { containers: [{ name: 'main' }, { name: 'side' }], initContainers: [{ name: 'init' }] },
        status: {
          containerStatuses: [
            containerStatus('main'),
            containerStatus('side', { state: { waiting: { reason: 'ImagePullBackOff' } } }),
          ],
        },
      }),
    )
    const answer = await rig.call(`${podsPath}/web/log${query}`)
    expect(answer.code).toBe(400)
    expect(JSON.parse(answer.text)).toMatchObject({ reason: 'BadRequest', message })
  })

  it('takes the only main container beside others where none is named', async () => {
    await writeFile(join(logs, '0.log'), record('one'))
    const annotations = { 'kubectl.kubernetes.io/default-container': 'init' }
    const spec = {
      containers: [{ name: 'main' }],
      initContainers: [{ name: 'init' }],
      ephemeralContainers: [{ name: 'debug' }],
    }
    rig.pods.put(podObject({ spec, metadata: { annotations } }))
    expect(await rig.call(`${podsPath}/web/log`)).toMatchObject({ code: 200, text: 'one\n' })
    expect((await rig.call(`${podsPath}/web/log?container=`)).text).toBe('one\n')
  })

  it('gives one stream alone', async () => {
    rig.pods.put(podObject())
    const line = (stream: string, tag: string, text: string): string =>
      `2026-01-01T00:00:00.000000001Z ${stream} ${tag} ${text}\n`
    const lines = [
      line('stdout', 'F', 'out 1'),
      line('stderr', 'P', 'err '),
      line('stdout', 'F', 'out 2'),
      line('stderr', 'F', '1'),
      'no record\n',
    ]
    await writeFile(join(logs, '0.log'), lines.join(''))
    const read = async (query: string): Promise<string> =>
      (await rig.call(`${podsPath}/web/log?${query}`)).text
    expect(await read('stream=Stdout')).toBe('out 1\nout 2\n')
    expect(await read('stream=Stderr')).toBe('err 1\n')
    expect(await read('stream=Stderr&limitBytes=4')).toBe('err ')
    expect(await read('stream=All')).toBe('out 1\nout 2\nerr 1\n')
    expect(await read('stream=All&tailLines=1')).toBe('err 1\n')
    const following = await rig.open(`${podsPath}/web/log?follow=true&stream=Stderr`)
    await appendFile(join(logs, '0.log'), line('stdout', 'F', 'out 3') + line('stderr', 'F', 'err 2'))
    let followed = ''
    for await (const chunk of following) {
      followed += String(chunk)
      if (followed.length >= 12) break
    }
    expect(followed).toBe('err 1\nerr 2\n')
  })

  it.each([
    ['stream=stdout', 'stream: Unsupported value: "stdout": supported values: "All", "Stderr", "Stdout"'],
    ['stream=', 'stream: Unsupported value: "": supported values: "All", "Stderr", "Stdout"'],
    [
      'stream=Stdout&tailLines=2',
      'Forbidden: `tailLines` and specific `stream` are mutually exclusive for now',
    ],
    ['tailLines=-1', 'tailLines: Invalid value: -1: must be greater than or equal to 0'],
    ['limitBytes=0', 'limitBytes: Invalid value: 0: must be greater than 0'],
    ['sinceSeconds=0', 'sinceSeconds: Invalid value: 0: must be greater than 0'],
    [
      'sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z',
      'Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
    ],
    [
      'limitBytes=0&sinceSeconds=-1',
      '[limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: Invalid value: -1: must be greater than 0]',
    ],
  ])('refuses options as the API server does: %s', async (query, problem) => {
    rig.pods.put(podObject())
    const answer = await rig.call(`${podsPath}/web/log?${query}`)
    expect(answer.code).toBe(422)
    const message = `PodLogOptions "web" is invalid: ${problem}`
    expect(JSON.parse(answer.text)).toMatchObject({ reason: 'Invalid', message, code: 422 })
  })

  it('tells of the pod that runs while its successor is made ready', async () => {
    await writeFile(join(logs, '0.log'), record('old'))
    rig.pods.put(podObject())
    rig.pods.put(podObject({ uid: 'uid-new', status: { phase: 'Pending', containerStatuses: [] } }))
    expect((await rig.call(`${podsPath}/web/log`)).text).toBe('old\n')
    expect(JSON.parse((await rig.call(`${podsPath}/web`)).text)).toMatchObject({
      metadata: { uid: 'uid-new' },
    })
  })

  it('follows until the container has ended for good', async () => {
    rig.pods.put(podObject({ spec: { restartPolicy: 'OnFailure' } }))
    await writeFile(join(logs, '0.log'), record('one'))
    const response = await rig.open(`${podsPath}/web/log?follow=true`)
    let text = ''
    response.on('data', (chunk) => (text += String(chunk)))
    await expect.poll(() => text).toBe('one\n')
    const crashed = containerStatus('main', { state: { waiting: { reason: 'CrashLoopBackOff' } } })
    rig.pods.put(
      podObject({ spec: { restartPolicy: 'OnFailure' }, status: { containerStatuses: [crashed] } }),
    )
    await writeFile(join(logs, '1.log'), record('two'))
    await expect.poll(() => text).toBe('one\ntwo\n')
    await appendFile(join(logs, '1.log'), record('three'))
    const done = containerStatus('main', { state: terminated(0), restartCount: 1 })
    rig.pods.put(podObject({ spec: { restartPolicy: 'OnFailure' }, status: { containerStatuses: [done] } }))
    await once(response, 'end')
    expect(text).toBe('one\ntwo\nthree\n')
  })

  it('sends a large log no faster than it is read', async () => {
    rig.pods.put(podObject())
    const line = record('x'.repeat(1000))
    await writeFile(join(logs, '0.log'), line.repeat(20_000))
    const before = readBytes()
    const response = await rig.open(`${podsPath}/web/log`)
    await untilReadingRests()
    // 20 MB are in the file; what was read of them is what the sockets and the two ends hold.
    expect(readBytes() - before).toBeLessThan(8_000_000)
    let size = 0
    for await (const chunk of response) size += (chunk as Buffer).length
    expect(size).toBe(1001 * 20_000)
  })
})

/** What this process has read of files and sockets so far. */
function readBytes(): number {
  return Number(/^rchar: (?<bytes>\d+)$/mu.exec(readFileSync('/proc/self/io', 'utf8'))?.groups?.['bytes'])
}

async function untilReadingRests(): Promise<void> {
  let last = 0
  const look = (): number => {
    const grown = readBytes() - last
    last += grown
    return grown
  }
  await expect.poll(look, { interval: 100 }).toBeLessThan(65_536)
}

describe('the socket', () => {
  it('may be opened by its owner alone', () => {
    expect(statSync(rig.socketPath).mode & 0o777).toBe(0o600)
  })

  it('leaves the umask to what else is made while it comes up', async () => {
    const before = process.umask(0o022)
    const server = createServer()
    try {
      const listening = listenOnSocket(server, `${rig.socketPath}.other`)
      expect(process.umask(0o022)).toBe(0o022)
      await listening
      expect(statSync(`${rig.socketPath}.other`).mode & 0o777).toBe(0o600)
    } finally {
      process.umask(before)
      server.close()
    }
  })

  it('is not taken from a podd that answers', async () => {
    await expect(rig.listen()).rejects.toMatchObject({ code: 'ALREADY_RUNNING' })
    expect((await rig.call('/healthz')).code).toBe(200)
  })

  it('is taken over from one that died', async () => {
    await rig.close()
    await leaveDeadSocket(rig.socketPath)
    await rig.listen()
    expect((await rig.call('/healthz')).code).toBe(200)
  })

  it('is removed in the end, with watches and followed logs cut off', async () => {
    const starting = containerStatus('main', { state: { waiting: { reason: 'ContainerCreating' } } })
    rig.pods.put(podObject({ status: { containerStatuses: [starting] } }))
    const watching = await rig.open(`${podsPath}?watch=true`)
    const following = await rig.open(`${podsPath}/web/log?follow=true`)
    const ends = Promise.allSettled([text(watching), text(following)])
    await rig.close()
    expect(await ends).toMatchObject([{ reason: { code: 'ECONNRESET' } }, { reason: { code: 'ECONNRESET' } }])
    expect(() => statSync(rig.socketPath)).toThrow('ENOENT')
    expect(rig.pods.watchers).toBe(0)
  })

  it.each<[string, (path: string) => Promise<void> | void]>([
    ['removed', (path) => rmSync(path)],
    [
      'replaced by another file',
      (path) => {
        rmSync(path)
        writeFileSync(path, 'not a socket')
      },
    ],
    ['replaced by the socket of a process that is gone', leaveDeadSocket],
  ])('is made again where it was %s, and what is open stays', async (_, spoil) => {
    rig.pods.put(podObject())
    const watching = await rig.open(`${podsPath}?watch=true`)
    const lines = createInterface({ input: watching })[Symbol.asyncIterator]()
    expect((await lines.next()).value).toContain('"ADDED"')
    expect(await rig.renewSocket()).toBe(false)
    await spoil(rig.socketPath)
    expect(await rig.renewSocket()).toBe(true)
    expect(statSync(rig.socketPath).mode & 0o777).toBe(0o600)
    expect((await rig.call('/healthz')).code).toBe(200)
    rig.pods.put(podObject({ metadata: { labels: { changed: 'yes' } } }))
    expect((await lines.next()).value).toContain('"MODIFIED"')
    expect(await rig.renewSocket()).toBe(false)
    await rig.close()
    expect(() => statSync(rig.socketPath)).toThrow('ENOENT')
  })

  it('is left to another process that answers there by then, and taken back when that is gone', async () => {
    rmSync(rig.socketPath)
    const other = createServer().listen(rig.socketPath)
    await once(other, 'listening')
    await expect(rig.renewSocket()).rejects.toMatchObject({ code: 'ALREADY_RUNNING' })
    other.close()
    await once(other, 'close')
    expect(await rig.renewSocket()).toBe(true)
    expect((await rig.call('/healthz')).code).toBe(200)
  })

  it('has a path that Linux can bear', async () => {
    const { listenOnSocket } = await import('../../../src/server/http/listen.ts')
    await expect(listenOnSocket(createServer(), `/tmp/${'x'.repeat(120)}`)).rejects.toMatchObject({
      code: 'SOCKET_PATH_TOO_LONG',
    })
    await expect(listenOnSocket(createServer(), '/proc/podd.sock')).rejects.toMatchObject({
      code: 'SOCKET_FAILED',
    })
  })

  it('says why it cannot be replaced, and not that another podd runs', async () => {
    const path = join(rig.directory, 'taken.sock')
    await mkdir(path)
    await expect(listenOnSocket(createServer(), path)).rejects.toMatchObject({ code: 'SOCKET_FAILED' })
  })
})

describe('holdInstanceLock', () => {
  it('lets one in at a time', () => {
    const release = holdInstanceLock(rig.directory)
    expect(() => holdInstanceLock(rig.directory)).toThrow(`another podd works in ${rig.directory}`)
    release()
    holdInstanceLock(rig.directory)()
  })

  it('tells when the directory is not there', () => {
    expect(() => holdInstanceLock(join(rig.directory, 'missing'))).toThrow('cannot open')
  })
})

describe('a request of unusual size', () => {
  it('whose head is too large is told so', async () => {
    const answer = await rig.call(`/api/v1/pods?x=${'x'.repeat(9 * 1024 * 1024)}`)
    expect(answer.code).toBe(431)
    expect(JSON.parse(answer.text)).toMatchObject({
      kind: 'Status',
      message: 'the head of the request is too large',
      code: 431,
    })
  })

  it('that is none is told so', async () => {
    const socket = connect(rig.socketPath)
    socket.write('nonsense\r\n\r\n')
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 .*"message":"the request is not well-formed/su)
  })
})

describe('the words of a command', () => {
  const request = async (words: readonly string[]): Promise<string> => {
    const socket = connect({ path: rig.socketPath, allowHalfOpen: true })
    const query = ['stdout=true', ...words.map((word) => `command=${encodeURIComponent(word)}`)].join('&')
    socket.write(handshakeOf(`${podsPath}/web/exec?${query}`, 'v5.channel.k8s.io'))
    let answer = ''
    for await (const chunk of socket) {
      answer += String(chunk)
      if (answer.includes('"Success"') || answer.includes('"code"')) break
    }
    return answer
  }
  let started: (readonly string[])[]
  beforeEach(() => {
    started = []
    rig.pods.put(
      podObject({ status: { containerStatuses: [containerStatus('main', { containerID: 'c://1' })] } }),
    )
    rig.reach = {
      ...rig.reach,
      startCommand: async ({ command }) => {
        started.push(command)
        return {
          stdout: Readable.from([]),
          stderr: undefined,
          ended: Promise.resolve(0),
          write: async () => {},
          closeStdin: async () => {},
          resize: async () => {},
          hangUp: async () => {},
        }
      },
    }
  })

  it('go to the only main container beside others', async () => {
    const main = containerStatus('main', { containerID: 'c://1' })
    const spec = { containers: [{ name: 'main' }], initContainers: [{ name: 'init' }] }
    rig.pods.put(podObject({ spec, status: { containerStatuses: [main] } }))
    expect(await request(['true'])).toMatch(/^HTTP\/1\.1 101 /u)
    expect(started).toEqual([['true']])
  })

  it('are taken from the query, up to what Linux takes', async () => {
    const words = ['echo', '', 'a b', 'ü\n', ...Array.from({ length: 15 }, () => 'x'.repeat(128 * 1024 - 1))]
    expect(await request(words)).toMatch(/^HTTP\/1\.1 101 /u)
    expect(started).toEqual([words])
  })

  it.each<[what: string, words: readonly string[], answer: RegExp]>([
    ['none', [], /^HTTP\/1\.1 400 .*you must specify at least one command/su],
    [
      'a word that is too long',
      ['echo', 'x'.repeat(131_072)],
      /^HTTP\/1\.1 413 .*word 2 of the command has 131072 bytes, of which Linux takes 131071 at most/su,
    ],
    [
      'too many words',
      Array.from({ length: 300_000 }, () => 'x'),
      /^HTTP\/1\.1 413 .*the command has 3000000 bytes, of which Linux takes 2097152 at most/su,
    ],
  ])('are refused: %s', async (_, words, answer) => {
    expect(await request(words)).toMatch(answer)
    expect(started).toEqual([])
  })
})
