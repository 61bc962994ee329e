import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { issueCertificate } from '../../../src/server/access/own-authority.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { freePort } from '../../support/free-port.ts'
import { podObject } from '../../support/pod-objects.ts'
import { ask, readKubeconfig, readPair } from '../../support/tls-client.ts'
import type { Login } from '../../support/tls-client.ts'

const dayMs = 24 * 60 * 60 * 1000
const podsPath = '/api/v1/namespaces/default/pods'

let rig: ApiRig
let tokenFile: string
let url: string
let admin: Login

beforeEach(async () => {
  rig = new ApiRig(await mkdtemp(join(tmpdir(), 'podd-tls-')))
  tokenFile = join(rig.directory, 'tokens')
  const port = await freePort()
  await rig.listen({
    address: { host: '127.0.0.1', port },
    names: ['localhost', '127.0.0.1', '::1', 'fd00::1:2'],
    rootDir: rig.directory,
    tokenFile,
    report: () => {},
  })
  url = `https://127.0.0.1:${port}`
  admin = await login('')
})

afterEach(async () => {
  await rig.close(0)
  await rm(rig.directory, { recursive: true, force: true })
})

async function login(query: string): Promise<Login> {
  const { code, text } = await rig.call(`/podd/v1/kubeconfig?${query}`, 'POST')
  expect(code).toBe(200)
  return readKubeconfig(text)
}

const get = (path: string, options: Partial<Login> & { readonly headers?: Record<string, string> } = {}) =>
  ask(`${url}${path}`, { ca: admin.ca, ...options })

describe('the API over TLS', () => {
  it('serves who has a kubeconfig, and says where it is', async () => {
    rig.pods.put(podObject({ name: 'web' }))
    expect(admin.server).toBe(url)
    const answer = await get(podsPath, admin)
    expect(answer.code).toBe(200)
    expect(JSON.parse(answer.text)).toMatchObject({ items: [{ metadata: { name: 'web' } }] })
  })

  it('answers clients that connect first and at once, and one that sends nothing holds up none', async () => {
    const silent = connect({ host: '127.0.0.1', port: Number(new URL(url).port) })
    await once(silent, 'connect')
    const answers = await Promise.all(Array.from({ length: 5 }, () => get(podsPath, admin)))
    expect(answers.map(({ code }) => code)).toEqual([200, 200, 200, 200, 200])
    const ended = once(silent, 'close')
    await rig.close(0)
    await ended
  })

  it('keeps keys where only their owner reads them', async () => {
    const directory = join(rig.directory, 'tls')
    expect((await stat(directory)).mode & 0o777).toBe(0o700)
    const files = await readdir(directory)
    expect(files.sort()).toEqual(['ca.pem', 'server.pem'])
    for (const file of files) expect((await stat(join(directory, file))).mode & 0o777).toBe(0o600)
  })

  it('shows a certificate for each of its names', async () => {
    const shown = new X509Certificate(readPair(join(rig.directory, 'tls/server.pem')).certificate)
    const authority = new X509Certificate(admin.ca)
    expect(shown.verify(authority.publicKey)).toBe(true)
    expect(shown.checkIssued(authority)).toBe(true)
    expect(shown.subjectAltName).toBe(
      'DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:FD00:0:0:0:0:0:1:2',
    )
    expect(authority.ca).toBe(true)
    expect(shown.ca).toBe(false)
  })

  it.each(['/livez', '/readyz', '/version'])('tells everybody %s', async (path) => {
    expect((await get(path)).code).toBe(200)
  })

  it.each([podsPath, '/api', '/healthz', '/podd/v1/status', '/metrics'])(
    'tells nobody %s who is not known',
    async (path) => {
      const { code, text } = await get(path)
      expect([code, JSON.parse(text)]).toMatchObject([401, { kind: 'Status', reason: 'Unauthorized' }])
    },
  )

  it('knows a client by its certificate, and judges by its role', async () => {
    const viewer = await login('user=ann&role=view')
    expect((await get(podsPath, viewer)).code).toBe(200)
    const refused = await get('/api/v1/namespaces/default/secrets', viewer)
    expect(JSON.parse(refused.text)).toMatchObject({
      code: 403,
      message:
        'secrets is forbidden: User "ann" cannot list resource "secrets" in API group "" in the namespace "default"',
    })
  })

  it.each<[string, (authority: ReturnType<typeof readPair>) => { key: string; certificate: string }]>([
    ['of another host', () => issueCertificate(client(-dayMs, dayMs), issueCertificate(authorityRequest()))],
    ['that it made itself', () => issueCertificate(client(-dayMs, dayMs))],
    ['that has expired', (own) => issueCertificate(client(-2 * dayMs, -dayMs), own)],
    ['that has not begun', (own) => issueCertificate(client(dayMs, 2 * dayMs), own)],
    [
      'of a server',
      (own) =>
        issueCertificate({ ...client(-dayMs, dayMs), use: { kind: 'server', names: ['localhost'] } }, own),
    ],
    [
      'without a name',
      (own) => issueCertificate({ ...client(-dayMs, dayMs), subject: { commonName: '' } }, own),
    ],
  ])('refuses a client with a certificate %s', async (_, make) => {
    const { key, certificate: cert } = make(readPair(join(rig.directory, 'tls/ca.pem')))
    for (const path of [podsPath, '/version']) expect((await get(path, { key, cert })).code).toBe(401)
  })

  it('knows a client by its token, and takes a changed file at once', async () => {
    const bearer = (token: string) => get(podsPath, { headers: { authorization: `Bearer ${token}` } })
    expect((await bearer('t1')).code).toBe(401)
    await writeFile(tokenFile, '# tokens\nt1,ann,1,"podd:view,shop"\nt2,bob,2\nbroken\n', { mode: 0o600 })
    expect((await bearer('t1')).code).toBe(200)
    expect((await bearer('t2')).code).toBe(403)
    expect((await bearer('broken')).code).toBe(401)
    await writeFile(tokenFile, 't3,ann,1,system:masters\n', { mode: 0o600 })
    expect((await bearer('t1')).code).toBe(401)
    expect((await bearer('t3')).code).toBe(200)
  })

  it('takes no token of a file that others may read', async () => {
    await writeFile(tokenFile, 't1,ann,1,system:masters\n', { mode: 0o644 })
    expect((await get(podsPath, { headers: { authorization: 'Bearer t1' } })).code).toBe(401)
  })
})

function client(fromMs: number, untilMs: number) {
  const now = Date.now()
  return {
    subject: { commonName: 'eve', organizations: ['system:masters'] },
    use: { kind: 'client' },
    fromMs: now + fromMs,
    untilMs: now + untilMs,
  } as const
}

function authorityRequest() {
  return { ...client(-dayMs, dayMs), use: { kind: 'authority' } } as const
}
