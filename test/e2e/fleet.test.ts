import { createServer } from 'node:http'
import type { RequestListener, Server } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SourceObject } from '../../src/api/sources.ts'
import { freePort } from '../support/free-port.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { shellPod, yamlPod } from '../support/shell-pods.ts'

/** How a server may misbehave, and what `podd get sources` says then. */
const hostile: Readonly<Record<string, readonly [misbehave: RequestListener, says: RegExp]>> = {
  drip: [
    (_request, response) => {
      const timer = setInterval(() => response.write('# still here\n'), 200)
      response.on('close', () => clearInterval(timer))
    },
    /no full answer within 10 s/u,
  ],
  short: [
    (_request, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('kind: List\n')
      setTimeout(() => response.destroy(), 20)
    },
    /shorter or longer than the server said/u,
  ],
  reset: [(request) => request.socket.resetAndDestroy(), /broke the connection off/u],
  error: [(_request, response) => response.writeHead(500).end(), /the server answered 500/u],
  circle: [
    (request, response) => response.writeHead(302, { location: request.url }).end(),
    /redirects more than 5 times/u,
  ],
  flood: [
    (_request, response) => {
      const pour = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(2 ** 20, '#')));
      }
      response.on('drain', pour)
      pour()
    },
    /the answer is larger than 10 MiB/u,
  ],
  bomb: [
    (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed),
    /the answer is larger than 10 MiB/u,
  ],
  stream: [
    (_request, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n'),
    /the server sends a stream of events/u,
  ],
  stall: [() => undefined, /no full answer within 10 s/u],
}
const packed = gzipSync(Buffer.alloc(100 * 2 ** 20, '#'))

/** The answers by their paths; elsewhere there are no pods. */
const served = new Map<string, RequestListener>()
const sends =
  (text: string, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(200, headers).end(text)
let server: Server
const port = await freePort()

beforeAll(async () => {
  server = createServer((request, response) => {
    const listener = served.get(request.url ?? '') ?? sends('apiVersion: v1\nkind: List\nitems: []\n')
    listener(request, response)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const config = {
  values: { WORD: 'good morning' },
  sources: [
    {
      name: 'host',
      url: `http://127.0.0.1:${port}/\${NODE_NAME}.yaml`,
      checkFrequency: '500ms',
      substitute: true,
    },
    ...['fleet', 'etag', ...Object.keys(hostile)].map((name) => ({
      name,
      url: `http://127.0.0.1:${port}/${name}`,
      checkFrequency: '500ms',
      push: name === 'stall' ? 'Auto' : 'Off',
    })),
  ],
  podSecurity: { url: { level: 'privileged' } },
}

describePodd('sources of a fleet', { config }, (rig) => {
  const sourceOf = async (name: string): Promise<SourceObject['status']> => {
    const object: SourceObject = JSON.parse(await rig().cliOk('get', 'sources', name, '-o', 'json'))
    return object.status
  }

  it('are held at what runs, over a restart too, until they are resumed', async () => {
    const podd = rig()
    const fleetPod = yamlPod('fleet-pod', podd.shared)
    served.set('/fleet', sends(fleetPod))
    podd.drop('local', shellPod('local', podd.shared, 'say start; stay'))
    await podd.untilReady('local')
    await podd.untilReady('fleet-pod')
    expect(await podd.cliOk('hold', 'file', 'fleet')).toBe('source file is held\nsource http:fleet is held\n')
    podd.removeManifest('local')
    podd.drop('late', shellPod('late', podd.shared, 'say start; stay'))
    served.set('/fleet', sends(fleetPod.replace('name: fleet-pod', 'name: other-pod')))
    const pending = await podd.until('what waits', async () => {
      const [local, fleet] = await Promise.all([sourceOf('file'), sourceOf('fleet')])
      const isSeen = local.pending?.added.length === 1 && fleet.pending?.added.length === 1
      return isSeen ? [local, fleet] : undefined
    })
    expect(pending).toMatchObject([
      { state: 'Held', pending: { added: ['Pod default/late'], removed: ['Pod default/local'] } },
      { state: 'Held', pending: { added: ['Pod default/other-pod'], removed: ['Pod default/fleet-pod'] } },
    ])
    await podd.restartDaemon()
    // Both are read again after the restart, and what they give is still not applied.
    await podd.until('both to be read', async () => {
      const states = await Promise.all([sourceOf('file'), sourceOf('fleet')])
      return states.every((status) => status.pending?.added.length === 1)
    })
    const names = (await podd.pods()).map(({ metadata }) => metadata.name).toSorted()
    expect(names).toEqual(['fleet-pod', 'local'])
    for (const name of names) expect(await podd.untilWords(name, 1)).toEqual(['start'])
    expect(await podd.notes()).toMatch(/held since .+pending: 1 added, 1 removed/u)
    expect(await podd.cliOk('status')).toMatch(/^file +yes, held/mu)
    expect((await podd.cli('doctor', '--root-dir', podd.rootDir)).stdout).toMatch(
      /hold +the source file is held/u,
    )
    expect(await podd.cliOk('resume', 'file')).toBe('source file is followed again\n')
    await podd.untilReady('late')
    await podd.untilGone('local')
    expect(await podd.untilWords('fleet-pod', 1)).toEqual(['start'])
    await podd.cliOk('resume')
    await podd.untilReady('other-pod')
    await podd.untilGone('fleet-pod')
    expect(await podd.notes()).not.toContain('held')
  })

  it('keep their pods whatever their servers do, and tell what that is', { tags: ['nightly'] }, async () => {
    const podd = rig()
    const names = Object.keys(hostile)
    for (const name of [...names, 'etag'])
      served.set(`/${name}`, sends(yamlPod(`of-${name}`, podd.shared), { etag: '"always"' }))
    const before = await Promise.all(names.map((name) => podd.untilReady(`of-${name}`)))
    await podd.untilReady('of-etag')
    for (const name of names) served.set(`/${name}`, hostile[name]![0])
    served.set('/etag', sends(`# moved\n${yamlPod('of-etag', podd.shared)}`, { etag: '"always"' }))
    const states = await podd.until('what all of them say', async () => {
      const list: { readonly items: readonly SourceObject[] } = JSON.parse(
        await podd.cliOk('get', 'sources', ...names, '-o', 'json'),
      )
      // A busy host may take longer than the deadline of a request for what is too large, and then less.
      const isDone = list.items.every(
        ({ status }, at) => status.state === 'Failing' && hostile[names[at]!]![1].test(status.message ?? ''),
      )
      return isDone ? list.items : undefined
    })
    expect(states.map(({ metadata }) => metadata.name)).toEqual(names.map((name) => `http:${name}`))
    for (const { status } of states) {
      expect(status).toMatchObject({ lastGood: true, pods: 1, ready: true })
      expect(Date.parse(status.failingSince ?? '')).toBeLessThanOrEqual(Date.now())
    }
    const lie = await podd.until('the ETag to be found out', async () => {
      const found = await sourceOf('etag')
      return found.warnings > 0 ? found : undefined
    })
    expect(lie).toMatchObject({ state: 'Following', etag: '"always"' })
    expect(lie.message).toContain('different answers under the ETag "always"')
    for (const [at, name] of names.entries()) {
      const after = await podd.untilReady(`of-${name}`)
      expect(after.metadata.uid).toBe(before[at]?.metadata.uid)
      expect(containerOf(after, 'main').restartCount).toBe(0)
      expect(await podd.untilWords(`of-${name}`, 1)).toEqual(['start'])
    }
    // What comes back is followed again.
    for (const name of names) served.set(`/${name}`, sends('apiVersion: v1\nkind: List\nitems: []\n'))
    for (const name of names) await podd.untilGone(`of-${name}`)
    expect(await sourceOf('drip')).toMatchObject({ state: 'Following', errors: 0, lastGood: false })
  })

  it('have the values of the host in their URLs and documents, and in nothing else', async () => {
    const podd = rig()
    const pod = (name: string, script: string): string =>
      JSON.stringify(shellPod('values', podd.shared, script, { metadata: { name } }))
    served.set('/box.yaml', sends(pod('on-${NODE_NAME}', 'V=shell; say "${WORD}" "$${V}"; stay')))
    await podd.untilReady('on-box')
    expect(await podd.untilWords('values', 1)).toEqual(['good morning shell'])
    served.set('/box.yaml', sends(pod('on-${NODE_NAME}', 'say "${WROD}"; stay')))
    await podd.untilNote(/box\.yaml:.*this host has no value \$\{WROD\}.*did you mean \$\{WORD\}/u)
    expect(await podd.untilWords('values', 1)).toEqual(['good morning shell'])
  })
})
