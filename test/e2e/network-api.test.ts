import { once } from 'node:events'
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { encodeMessage } from '../../src/api/remote-command.ts'
import { freePort } from '../support/free-port.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shell } from '../support/podd-program.ts'
import { slowness } from '../support/slowness.ts'
import { ask } from '../support/tls-client.ts'

const port = await freePort()
const url = `https://127.0.0.1:${port}`
const pods = '/api/v1/namespaces/default/pods'
const tokenFile = join(tmpdir(), `podd-tokens-${process.pid}`)
const writeTokens = (...lines: readonly string[]): void =>
  writeFileSync(tokenFile, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 })
writeTokens('one,ann,1,system:masters', 'other,bob,2,podd:edit')

/** No other process of the machine sleeps as long. */
const seconds = `4${process.pid}`

const manifest = `
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
    - name: main
      image: ${shell}
      command: [sh, -c, 'trap "exit 0" TERM; httpd -f -p 8080 -h /conf & wait']
      ports: [{containerPort: 8080}]
      volumeMounts: [{name: conf, mountPath: /conf}]
  volumes: [{name: conf, configMap: {name: conf}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {index.html: '<script>document.title = "taken"</script>'}
---
apiVersion: v1
kind: Pod
metadata: {name: host}
spec:
  hostNetwork: true
  containers:
    - {name: main, image: ${shell}, command: [sh, -c, 'trap "exit 0" TERM; sleep 1000000 & wait']}
`

/** Whether a process of the host has this among its words. */
function runs(word: string): boolean {
  return readdirSync('/proc').some((pid) => {
    if (!/^\d+$/u.test(pid)) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(word)
    } catch {
      // It has ended meanwhile.
      return false
    }
  })
}

const call = (path: string, token: string, headers: Record<string, string> = {}) =>
  ask(`${url}${path}`, {
    rejectUnauthorized: false,
    headers: { authorization: `Bearer ${token}`, ...headers },
  })

afterAll(() => rmSync(tokenFile, { force: true }))

const config = { api: { listen: `127.0.0.1:${port}`, tokenFile }, nodeIP: '127.0.0.1' }
describePodd('the API over the network', { config }, (podd) => {
  it('shows a page of a pod without an origin, and reaches nothing of the host by a pod', async () => {
    const rig = podd()
    rig.dropText('web.yaml', manifest)
    await rig.untilReady('web')
    await rig.untilReady('host')
    const page = await call(`${pods}/web/proxy/`, 'other')
    expect(page).toMatchObject({
      code: 200,
      text: '<script>document.title = "taken"</script>',
      headers: {
        'content-security-policy': expect.stringMatching(/^sandbox; default-src 'none';/u),
        'x-content-type-options': 'nosniff',
      },
    })
    // This host has no network as far as podd knows: the address of its own pods is that of the loopback device.
    const own = await call(`${pods}/https:host:${port}/proxy/livez`, 'other')
    expect([own.code, own.text]).toEqual([400, expect.stringContaining('the proxy reaches pods alone')])
  })

  it('ends a command in its container when the token of its client is removed', async () => {
    const rig = podd()
    rig.dropText('web.yaml', manifest)
    await rig.untilReady('web')
    const command = ['sleep', seconds].map((word) => `command=${word}`)
    const socket = new WebSocket(
      `${url.replace('https', 'wss')}${pods}/web/exec?${command.join('&')}&stdin=true&stdout=true`,
      ['v5.channel.k8s.io'],
      { rejectUnauthorized: false, headers: { authorization: 'Bearer one' } },
    )
    await once(socket, 'open')
    socket.send(encodeMessage('stdin', Buffer.from('words')))
    await expect.poll(() => runs(seconds)).toBe(true)
    const ended = once(socket, 'close')
    writeTokens('other,bob,2,podd:edit')
    await ended
    await expect.poll(() => runs(seconds), { timeout: 10_000 * slowness }).toBe(false)
    expect((await call(pods, 'one')).code).toBe(401)
    expect((await call(pods, 'other')).code).toBe(200)
  })
})
