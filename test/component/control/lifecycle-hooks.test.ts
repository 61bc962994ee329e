import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { createHooks } from '../../../src/control/pod/hooks.ts'
import type { PodEvent } from '../../../src/pod/state/pod-event.ts'
import type { LifecycleHandler } from '../../../src/pod/schema/container-schema.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import { makeBadCertificate } from '../probes/bad-certificate.ts'
import { serveHttp, serveHttps } from '../probes/bad-servers.ts'
import type { RunningServer } from '../probes/bad-servers.ts'
import { freePort } from '../../support/free-port.ts'

const open: RunningServer[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()))
})

async function use(starting: Promise<RunningServer>): Promise<number> {
  const server = await starting
  open.push(server)
  return server.port
}

const pod = { namespace: 'default', name: 'web', uid: 'u1' }

/** Runs a hook against this host; gives the events that it gave rise to. */
async function runHook(handler: LifecycleHandler): Promise<PodEvent[]> {
  const events: PodEvent[] = []
  const { runtime } = new FakeRuntime({ clock: systemClock, images: [] })
  const hooks = createHooks(
    runtime.execSync,
    () => undefined,
    { record: (event) => void events.push(event) },
    systemClock,
  )
  await hooks.run({
    pod,
    handler,
    hook: 'preStop',
    containerId: 'c1',
    podIp: '127.0.0.1',
    ports: [],
    timeoutMs: 30_000,
    signal: new AbortController().signal,
  })
  return events
}

const get = (port: number, scheme: 'HTTP' | 'HTTPS'): LifecycleHandler => ({
  httpGet: { path: '/', port, scheme, httpHeaders: [] },
})

describe('a hook by HTTP', () => {
  it('that asks for HTTPS and is answered by HTTP is told of as the kubelet does', async () => {
    const port = await use(serveHttp((_request, response) => response.end()))
    expect(await runHook(get(port, 'HTTPS'))).toEqual([
      {
        pod,
        type: 'Warning',
        reason: 'LifecycleHTTPFallback',
        message: `request to HTTPS lifecycle hook 127.0.0.1:${port} got HTTP response, retry with HTTP succeeded`,
      },
    ])
  })

  it.each([
    ['HTTP', () => serveHttp((_request, response) => response.end())],
    ['HTTPS', () => serveHttps((_request, response) => response.end(), makeBadCertificate())],
  ] as const)('that is answered by %s as asked is not worth telling', async (scheme, serve) => {
    expect(await runHook(get(await use(serve()), scheme))).toEqual([])
  })

  it('that is not answered fails', async () => {
    await expect(runHook(get(await freePort(), 'HTTPS'))).rejects.toMatchObject({
      code: 'HOOK_FAILED',
      message: expect.stringContaining('connection refused') as string,
    })
  })
})
