import { createServer } from 'node:http'
import type { Server } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shell } from '../support/podd-program.ts'
import { freePort } from '../support/free-port.ts'

function pod(name: string, spec: object = {}, container: object = {}): object {
  const command = ['sh', '-c', 'echo "word $WORD"; exec sleep 1000000']
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image: shell, command, ...container }],
      ...spec,
    },
  }
}

/** One that the restricted level lets run. */
function confinedPod(name: string, spec: object = {}, container: object = {}): object {
  const securityContext = {
    runAsNonRoot: true,
    runAsUser: 1000,
    allowPrivilegeEscalation: false,
    seccompProfile: { type: 'RuntimeDefault' },
    capabilities: { drop: ['ALL'] },
  }
  return pod(name, spec, { securityContext, ...container })
}

const readsSecret = (name: string) => ({
  env: [{ name: 'WORD', valueFrom: { secretKeyRef: { name, key: 'word' } } }],
})
const mountsSecret = (secretName: string) => ({
  spec: { volumes: [{ name: 'secret', secret: { secretName } }] },
  container: { volumeMounts: [{ name: 'secret', mountPath: '/secret' }] },
})
const withClaim = {
  spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] },
  container: { volumeMounts: [{ name: 'data', mountPath: '/data' }] },
}
const list = (...items: object[]): object => ({ apiVersion: 'v1', kind: 'List', items })
const secret = (name: string, word: string): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  stringData: { word },
})
const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
}
const runtimeClass = (name: string, handler: string): object => ({
  apiVersion: 'node.k8s.io/v1',
  kind: 'RuntimeClass',
  metadata: { name },
  handler,
})

/** A server of manifests, changed by assigning `served`. */
class ManifestServer {
  served: object = list()
  readonly #server: Server

  constructor() {
    this.#server = createServer((_, response) => response.end(JSON.stringify(this.served)))
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve))
  }

  close(): void {
    this.#server.close()
  }
}

async function untilLogged(podd: PoddRig, name: string, line: string): Promise<void> {
  await podd.until(`${line} in the log of ${name}`, async () =>
    (await podd.ask('logs', name)).stdout.includes(line),
  )
}

const ports = [await freePort(), await freePort()] as const
const source = (port: number, url: object) => ({
  staticPodURL: `http://127.0.0.1:${port}/pods`,
  httpCheckFrequency: '200ms',
  podSecurity: { url: { level: 'restricted', ...url } },
})

const strict = {
  ...source(ports[0], {}),
  runtimeClasses: {
    gvisor: { handler: 'runsc' },
    weighed: { handler: 'runc', overhead: { memory: '16Mi' } },
  },
}

describePodd('objects of a URL', { config: strict }, (rig) => {
  const url = new ManifestServer()
  beforeAll(() => url.listen(ports[0]))
  afterAll(() => url.close())

  it('override no RuntimeClass of the configuration', async () => {
    const podd = rig()
    url.served = list(runtimeClass('gvisor', 'runc'), runtimeClass('weighed', 'runc'))
    const notes = await podd.untilNote(/RuntimeClass gvisor/u)
    expect(notes).toContain('podSecurity.url.givesClusterObjects')
    podd.drop('sandboxed', pod('sandboxed', { runtimeClassName: 'gvisor' }))
    podd.drop('weighed', pod('weighed', { runtimeClassName: 'weighed' }))
    const weighed = await podd.untilReady('weighed')
    expect(weighed.spec).toMatchObject({ overhead: { memory: '16Mi' } })
    const refused = await podd.untilPod(
      'sandboxed',
      'its refusal',
      ({ status }) => status.message !== undefined,
    )
    expect(refused.status).toMatchObject({
      phase: 'Pending',
      reason: 'FailedCreatePodSandBox',
      message: expect.stringContaining('has no handler "runsc"'),
    })
    podd.removeManifest('sandboxed')
    await podd.untilGone('sandboxed')
  })

  it('are all that its pods read: no Secret of the directory, by environment or volume, and no claim', async () => {
    const podd = rig()
    podd.drop('secret', secret('tls', 'of-the-directory'))
    podd.drop('claim', claim)
    const mounting = mountsSecret('tls')
    podd.drop('own', pod('own', withClaim.spec, { ...readsSecret('tls'), ...withClaim.container }))
    await podd.untilReady('own')
    url.served = list(
      confinedPod('by-env', {}, readsSecret('tls')),
      confinedPod('by-volume', mounting.spec, mounting.container),
      confinedPod('by-claim', withClaim.spec, withClaim.container),
      secret('mine', 'of-the-url'),
      confinedPod('by-right', {}, readsSecret('mine')),
    )
    await podd.untilReady('by-right')
    await untilLogged(podd, 'by-right', 'word of-the-url')
    const hint = /secret "tls" not found: .*podSecurity\.url\.readsObjectsOf/u
    await podd.untilEvent('by-env', 'Failed', hint)
    await podd.untilEvent('by-volume', 'FailedMount', hint)
    await podd.untilEvent(
      'by-claim',
      'FailedMount',
      /persistentvolumeclaim "data" not found: .*readsObjectsOf/u,
    )
    const waiting = await podd.findPod('by-env')
    expect(waiting?.status.containerStatuses).toMatchObject([
      { state: { waiting: { reason: 'CreateContainerConfigError', message: expect.stringMatching(hint) } } },
    ])
    expect(await podd.cliOk('describe', 'pod', 'by-env')).toContain('podSecurity.url.readsObjectsOf')
  })

  it('take over no data of a claim of the directory', async () => {
    const podd = rig()
    podd.drop('claim', claim)
    podd.drop('writer', pod('writer', withClaim.spec, withClaim.container))
    await podd.untilReady('writer')
    for (const name of ['claim', 'writer', 'own']) podd.removeManifest(name)
    await podd.untilGone('writer')
    await podd.untilGone('own')
    url.served = list(claim, confinedPod('heir', withClaim.spec, withClaim.container))
    await podd.untilEvent('heir', 'FailedMount', /would hold data of the manifest directory/u)
    await podd.restartDaemon('SIGKILL')
    expect((await podd.findPod('heir'))?.status.phase).toBe('Pending')
    url.served = list(claim)
    await podd.untilGone('heir')
    await podd.cliOk('delete', 'pvc', 'data', '--purge')
    url.served = list(claim, confinedPod('heir', withClaim.spec, withClaim.container))
    await podd.untilReady('heir')
  })
})

const open = source(ports[1], { readsObjectsOf: ['file'], givesClusterObjects: true })

describePodd('objects of a URL that is trusted', { config: open }, (rig) => {
  const url = new ManifestServer()
  beforeAll(() => url.listen(ports[1]))
  afterAll(() => url.close())

  it('count for all pods, and its pods read those of the directory', async () => {
    const podd = rig()
    podd.drop('secret', secret('tls', 'of-the-directory'))
    podd.drop('claim', claim)
    podd.drop('classed', pod('classed', { runtimeClassName: 'from-url' }))
    url.served = list(
      runtimeClass('from-url', 'runc'),
      confinedPod('reader', withClaim.spec, { ...readsSecret('tls'), ...withClaim.container }),
    )
    expect((await podd.untilReady('classed')).spec).toMatchObject({ runtimeClassName: 'from-url' })
    await podd.untilReady('reader')
    await untilLogged(podd, 'reader', 'word of-the-directory')
  })
})
