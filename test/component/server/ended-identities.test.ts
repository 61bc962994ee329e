import { once } from 'node:events'
import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { Duplex } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { issueCertificate } from '../../../src/server/access/own-authority.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { containerStatus, podObject } from '../../support/pod-objects.ts'
import { slowness } from '../../support/slowness.ts'
import { ask, readPair } from '../../support/tls-client.ts'

const pods = '/api/v1/namespaces/default/pods'

let rig: ApiRig
let url: string
let tokens: string
/** What the client's streams held open in the host. */
let held: { readonly hungUp: string[]; readonly dialled: Duplex[] }

beforeEach(async () => {
  rig = new ApiRig(await mkdtemp(join(tmpdir(), 'podd-ended-')))
  tokens = join(rig.directory, 'tokens')
  await writeTokens('one,ann,1,system:masters', 'other,bob,2,system:masters')
  await rig.listen({
    address: { host: '127.0.0.1', port: 0 },
    names: ['127.0.0.1'],
    rootDir: rig.directory,
    tokenFile: tokens,
    report: () => {},
  })
  const kubeconfig = await rig.call('/podd/v1/kubeconfig', 'POST')
  url = /https:\/\/[\d.:]+/u.exec(kubeconfig.text)?.[0] ?? ''
  const main = containerStatus('main', { containerID: 'c://1' })
  rig.pods.put(podObject({ name: 'web', status: { phase: 'Running', containerStatuses: [main] } }))
  const directory = join(rig.podLogsDir, 'default_web_uid-web', 'main')
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, '0.log'), '2026-01-01T00:00:00.000000001Z stdout F begun\n')
  held = { hungUp: [], dialled: [] }
  const start = async (what: string) => ({
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    ended: new Promise<number>(() => {}),
    write: async () => {},
    closeStdin: async () => {},
    resize: async () => {},
    hangUp: async () => void held.hungUp.push(what),
  })
  rig.reach = {
    ...rig.reach,
    startCommand: () => start('exec'),
    attach: () => start('attach'),
    dial: async () => {
      const target = new PassThrough()
      held.dialled.push(target)
      return target
    },
  }
})
afterEach(async () => {
  await rig.close(0)
  await rm(rig.directory, { recursive: true, force: true })
})

async function writeTokens(...lines: readonly string[]): Promise<void> {
  await writeFile(tokens, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 })
}

interface Login {
  readonly headers?: Record<string, string>
  readonly key?: string
  readonly cert?: string
}

const byToken = (token: string): Login => ({ headers: { authorization: `Bearer ${token}` } })

/** A certificate of podd's own authority. */
function byCertificate(untilMs: number): Login {
  const { key, certificate } = issueCertificate(
    {
      subject: { commonName: 'ann', organizations: ['system:masters'] },
      use: { kind: 'client' },
      fromMs: Date.now() - 60_000,
      untilMs,
    },
    readPair(join(rig.directory, 'tls/ca.pem')),
  )
  return { key, cert: certificate }
}

/** Opens every kind of stream, and returns the names of those that have ended. */
async function openAll(login: Login): Promise<readonly string[]> {
  const ended: string[] = []
  const gets = { watch: '/api/v1/secrets?watch=true', log: `${pods}/web/log?follow=true` }
  for (const [name, path] of Object.entries(gets))
    void ask(`${url}${path}`, { ...login, rejectUnauthorized: false }).then(
      ({ code }) => ended.push(`${name} ${code}`),
      () => ended.push(name),
    )
  await expect.poll(() => rig.secrets.watchers).toBeGreaterThan(0)
  const sockets = {
    'watch over WebSocket': [`${pods}?watch=true`, []],
    'log over WebSocket': [`${pods}/web/log?follow=true`, []],
    exec: [`${pods}/web/exec?command=sh&stdin=true&stdout=true`, ['v5.channel.k8s.io']],
    attach: [`${pods}/web/attach?stdout=true`, ['v5.channel.k8s.io']],
    'port-forward': [`${pods}/web/portforward?ports=80`, ['v4.channel.k8s.io']],
  } as const
  for (const [name, [path, protocols]] of Object.entries(sockets)) {
    const socket = new WebSocket(`${url.replace('https', 'wss')}${path}`, [...protocols], {
      ...login,
      rejectUnauthorized: false,
    })
    socket.once('close', () => ended.push(name))
    socket.on('error', () => {})
    await once(socket, 'open')
  }
  await expect.poll(() => held.dialled.length).toBeGreaterThan(0)
  return ended
}

const all = ['attach', 'exec', 'log', 'log over WebSocket', 'port-forward', 'watch', 'watch over WebSocket']

const patience = { timeout: 10_000 * slowness }

describe('watches, logs, commands and forwarded ports', () => {
  it.each<[string, readonly string[]]>([
    ['is removed from its file', ['other,bob,2,system:masters']],
    ['gets other groups', ['one,ann,1,podd:view', 'other,bob,2,system:masters']],
  ])('end within seconds when their token %s, and those of others go on', async (_, lines) => {
    const ended = await openAll(byToken('one'))
    const others = await openAll(byToken('other'))
    await writeTokens(...lines)
    await expect.poll(() => ended.toSorted(), patience).toEqual(all)
    await expect.poll(() => held.hungUp.toSorted()).toEqual(['attach', 'exec'])
    await expect.poll(() => held.dialled.map(({ destroyed }) => destroyed)).toEqual([true, false])
    expect(others).toEqual([])
  })

  it('end when the file of their tokens is gone', async () => {
    const ended = await openAll(byToken('one'))
    await rm(tokens)
    await expect.poll(() => ended.toSorted(), patience).toEqual(all)
  })

  it('end when their certificate expires, and its connection is of nobody then', async () => {
    const login = byCertificate(Date.now() + 3000 * slowness)
    await using agent = Object.assign(
      new Agent({ keepAlive: true, maxSockets: 1, ...login, rejectUnauthorized: false }),
      {
        [Symbol.asyncDispose]: async () => agent.destroy(),
      },
    )
    const again = () => ask(`${url}${pods}`, { agent })
    expect((await again()).code).toBe(200)
    const ended = await openAll(login)
    await expect.poll(() => ended.toSorted(), patience).toEqual(all)
    await expect.poll(async () => (await again()).code).toBe(401)
  })

  it('go on as long as who opened them is who it was', async () => {
    const ended = await openAll(byToken('one'))
    await writeTokens('more,eve,3', 'one,ann,1,system:masters')
    // Longer than the interval of checks: each line of the log comes through.
    const directory = join(rig.podLogsDir, 'default_web_uid-web', 'main')
    const begunMs = performance.now()
    await expect
      .poll(async () => {
        await appendFile(join(directory, '0.log'), '2026-01-01T00:00:01.000000001Z stdout F more\n')
        return performance.now() - begunMs
      }, patience)
      .toBeGreaterThan(4500)
    expect(ended).toEqual([])
  })
})
