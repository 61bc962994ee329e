import { createServer } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ApiRig } from '../../support/api-rig.ts'
import { freePort } from '../../support/free-port.ts'
import { podObject } from '../../support/pod-objects.ts'
import { request as ask } from '../../support/raw-request.ts'

let server: Server
let port: number
let rig: ApiRig

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

beforeAll(async () => {
  server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const { method, url, headers } = request
      if (url === '/moved') response.writeHead(302, { location: '/there?x=1' })
      else if (url === '/none') response.writeHead(404, { 'content-type': 'text/plain' })
      else response.writeHead(200, { 'content-type': 'application/json', 'set-cookie': ['a=1', 'b=2'] })
      response.end(url === '/none' ? 'nothing' : JSON.stringify({ method, url, headers, body }))
    })
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const address = server.address()
  port = address === null || typeof address === 'string' ? 0 : address.port
})

afterAll(() => server.close())

beforeEach(async () => {
  rig = await ApiRig.start()
  const status = { phase: 'Running', podIP: '127.0.0.1' } as const
  const spec = { containers: [{ name: 'main', ports: [{ containerPort: port }] }] }
  rig.pods.put({ ...podObject({ name: 'web', status }), spec })
  rig.pods.put({ ...podObject({ name: 'done', status: { ...status, phase: 'Succeeded' } }), spec })
})

afterEach(() => rig[Symbol.asyncDispose]())

const proxy = (name: string) => `/api/v1/namespaces/default/pods/${name}/proxy`
const call = (
  method: string,
  path: string,
  options: { headers?: Record<string, string>; body?: string } = {},
) => ask(rig.socketPath, { method, path, ...options })

describe('the proxy of a pod', () => {
  it('passes requests on to the first port, and answers back, without what tells who asks', async () => {
    const path = `${proxy('web')}/a%2Fb/c?x=1&y=%20`
    const ann = { 'impersonate-user': 'ann', 'impersonate-group': 'system:masters' }
    const headers = { authorization: 'Bearer secret', ...ann, 'x-own': 'yes' }
    const { status, headers: told, text } = await call('POST', path, { headers, body: 'hello' })
    expect(status).toBe(200)
    expect(told['set-cookie']).toEqual(['a=1', 'b=2'])
    const seen = JSON.parse(text)
    expect(seen).toMatchObject({
      method: 'POST',
      url: '/a%2Fb/c?x=1&y=%20',
      body: 'hello',
      headers: { 'x-own': 'yes', 'x-forwarded-uri': path.split('?', 1)[0], host: `127.0.0.1:${port}` },
    })
    for (const name of ['authorization', 'impersonate-user']) expect(seen.headers).not.toHaveProperty(name)
  })

  it.each(['web', 'http:web'])('takes a port in the name %s, and all methods', async (name) => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE'])
      expect(JSON.parse((await call(method, `${proxy(`${name}:${port}`)}/`)).text)).toMatchObject({
        method,
        url: '/',
      })
  })

  it('keeps redirects and refusals as they are, within the proxy', async () => {
    expect(await call('GET', proxy('web'))).toMatchObject({
      status: 301,
      headers: { location: `${proxy('web')}/` },
    })
    expect(await call('GET', `${proxy('web')}/moved`)).toMatchObject({
      status: 302,
      headers: { location: `${proxy('web')}/there?x=1` },
    })
    expect(await call('GET', `${proxy('web')}/none`)).toMatchObject({ status: 404, text: 'nothing' })
  })

  it('says what it cannot reach', async () => {
    const closed = await freePort()
    expect(await call('GET', `${proxy(`web:${closed}`)}/`)).toMatchObject({
      status: 503,
      text: expect.stringContaining('error trying to reach service: '),
    })
    expect(await call('GET', `${proxy('done')}/`)).toMatchObject({ status: 503 })
    expect(await call('GET', `${proxy('gone')}/`)).toMatchObject({ status: 404 })
    expect(await call('GET', `${proxy('web:name')}/`)).toMatchObject({ status: 400 })
    expect(await call('GET', `${proxy('ftp:web:80')}/`)).toMatchObject({ status: 400 })
  })
})
