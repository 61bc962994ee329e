import { createServer as createHttpsServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js'
import { afterAll, expect, it } from 'vitest'
import { loadProto } from '../../src/grpc/load-proto.ts'
import { makeBadCertificate } from '../component/probes/bad-certificate.ts'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { shellPod } from '../support/shell-pods.ts'

const closers: (() => void)[] = []
afterAll(() => closers.forEach((close) => close()))

async function portOf(server: Server): Promise<number> {
  closers.push(() => server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

describePodd('a probe that asks the test itself', {}, (rig) => {
  it.concurrent(
    'goes by HTTPS, with its headers, to the host that is given, after its delay',
    proves(
      'https',
      'Probe: initialDelaySeconds successThreshold',
      'HTTPGetAction: scheme host httpHeaders',
      'HTTPHeader: name value',
    ),
    async () => {
      const podd = rig()
      const asked: { readonly atMs: number; readonly url: string; readonly own: unknown }[] = []
      const server = createHttpsServer(
        { ...makeBadCertificate(), ciphers: 'DEFAULT@SECLEVEL=0' },
        ({ url = '', headers }, response) => {
          asked.push({ atMs: Date.now(), url, own: headers['x-own'] })
          response.end()
        },
      )
      const httpGet = {
        scheme: 'HTTPS',
        host: '127.0.0.1',
        port: await portOf(server),
        path: '/ready?now=1',
        httpHeaders: [{ name: 'X-Own', value: 'of the manifest' }],
      }
      const readinessProbe = {
        httpGet,
        initialDelaySeconds: 2,
        periodSeconds: 1,
        timeoutSeconds: 10,
        successThreshold: 3,
      }
      podd.drop('https', shellPod('https', podd.shared, 'stay', { container: { readinessProbe } }))
      const pod = await podd.untilReady('https')
      expect(asked.length).toBeGreaterThanOrEqual(3)
      expect(asked[0]).toMatchObject({ url: '/ready?now=1', own: 'of the manifest' })
      // The time of the start comes in whole seconds, cut off.
      const startedAtMs = Date.parse(containerOf(pod, 'main').state.running?.startedAt ?? '')
      expect((asked[0]?.atMs ?? 0) - startedAtMs).toBeGreaterThanOrEqual(2000)
      podd.removeManifest('https')
      await podd.untilGone('https')
    },
  )

  it.concurrent(
    'asks a gRPC service by its name',
    proves('grpc', 'Probe: grpc', 'GRPCAction: port service'),
    async () => {
      const podd = rig()
      let serves = false
      const services: unknown[] = []
      const server = new GrpcServer()
      closers.push(() => server.forceShutdown())
      server.addService(loadProto('grpc-health.proto').service('grpc.health.v1.Health'), {
        Check: (
          { request }: { readonly request: { readonly service?: unknown } },
          reply: (error: null, answer: object) => void,
        ) => {
          services.push(request.service)
          reply(null, { status: serves ? 'SERVING' : 'NOT_SERVING' })
        },
      })
      const port = await new Promise<number>((resolve, reject) => {
        server.bindAsync('0.0.0.0:0', ServerCredentials.createInsecure(), (error, bound) =>
          error === null ? resolve(bound) : reject(error),
        )
      })
      const readinessProbe = { grpc: { port, service: 'deep' }, periodSeconds: 1, timeoutSeconds: 10 }
      // The pod's address is the host's, where the test answers.
      const spec = { hostNetwork: true }
      podd.drop('grpc', shellPod('grpc', podd.shared, 'stay', { container: { readinessProbe }, spec }))
      await podd.untilEvent('grpc', 'Unhealthy', /service unhealthy \(responded with "NOT_SERVING"\)/u)
      expect(conditionOf((await podd.findPod('grpc'))!, 'Ready')).toBe('False')
      serves = true
      await podd.untilReady('grpc')
      expect(new Set(services)).toEqual(new Set(['deep']))
      podd.removeManifest('grpc')
      await podd.untilGone('grpc')
    },
  )

  it.concurrent(
    'connects to the host that is given',
    proves('tcp-host', 'TCPSocketAction: host'),
    async () => {
      const podd = rig()
      let connected = 0
      const server = createTcpServer((socket) => {
        connected += 1
        socket.on('error', () => undefined).end()
      })
      const tcpSocket = { host: '127.0.0.1', port: await portOf(server) }
      const livenessProbe = { tcpSocket, periodSeconds: 1, timeoutSeconds: 10 }
      podd.drop('tcp', shellPod('tcp', podd.shared, 'stay', { container: { livenessProbe } }))
      await podd.until('connections', () => connected >= 2)
      expect(containerOf(await podd.untilReady('tcp'), 'main').restartCount).toBe(0)
      podd.removeManifest('tcp')
      await podd.untilGone('tcp')
    },
  )
})
