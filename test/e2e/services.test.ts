import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { JsonObject } from '../../src/base/json.ts'
import { callApi } from '../support/call-api.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shell } from '../support/podd-program.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

/** The stack: each serves its generation at a port, and asks the other two for theirs by name, again and again. */
const stack = { broker: 1883, editor: 1880, database: 5432 } as const
type Member = keyof typeof stack
const members: readonly Member[] = ['broker', 'editor', 'database']

/** Each is asked by another form of its name. */
const addresses: Readonly<Record<Member, string>> = {
  broker: 'broker',
  editor: 'editor.default.svc',
  database: 'database.default.svc.cluster.local',
}

function member(rig: PoddRig, name: Member, generation: number): object {
  const others = members.filter((other) => other !== name)
  // busybox's wget, linked statically, ends with SIGSEGV where it resolves names.
  const ask = others
    .map(
      (other) =>
        `r=$(printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${addresses[other]} ${stack[other]} | tail -n 1); say ${other} \${r:-lost}`,
    )
    .join('; ')
  const serve = `mkdir /tmp/www; echo ${generation} > /tmp/www/index.html; httpd -p ${stack[name]} -h /tmp/www`
  const script = `${serve}; while true; do ${ask}; sleep 0.2; done`
  const readinessProbe = { tcpSocket: { port: stack[name] }, periodSeconds: 1 }
  const metadata = { labels: { app: name } }
  return shellPod(name, rig.shared, script, { metadata, container: { readinessProbe } })
}

function service(name: string, spec: object): object {
  return { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec }
}

const services = members.map((name) =>
  service(name, { type: 'ClusterIP', selector: { app: name }, ports: [{ port: stack[name] }] }),
)

const hostsPath = (rig: PoddRig, uid: string): string => join(rig.rootDir, 'pods', uid, 'etc-hosts')

describePodd('Services as names', {}, (podd) => {
  it('connect a broker, an editor and a database through new versions of each and a kill of podd', async () => {
    const rig = podd()
    const generations = { broker: 1, editor: 1, database: 1 }
    const drop = (): void =>
      rig.drop('stack', ...services, ...members.map((name) => member(rig, name, generations[name])))
    const saidBy = (name: Member): readonly string[] => wordsOf(rig.lines(name))
    /** Until each has got the newest generation of both others. */
    const untilConnected = async (): Promise<void> => {
      for (const name of members) {
        const others = members.filter((other) => other !== name)
        for (const other of others)
          await expect
            .poll(() => saidBy(name).slice(-6), { timeout: 60_000 * slowness })
            .toContain(`${other} ${generations[other]}`)
      }
    }
    drop()
    await untilConnected()
    for (const name of members) {
      const { status: before } = await rig.untilReady(name)
      generations[name] += 1
      drop()
      await rig.untilPod(name, 'has another address', ({ status }) => {
        return status.podIP !== undefined && status.podIP !== before.podIP
      })
      await untilConnected()
    }

    const pods = await rig.pods()
    const files = pods.map(({ metadata }) => hostsPath(rig, metadata.uid))
    const texts = files.map((path) => readFileSync(path, 'utf8'))
    const inodes = files.map((path) => statSync(path).ino)
    await rig.stopDaemon('SIGKILL')
    const before = members.map((name) => saidBy(name).length)
    for (const [at, name] of members.entries())
      await expect
        .poll(() => saidBy(name).length, { timeout: 30_000 * slowness })
        .toBeGreaterThan((before[at] ?? 0) + 8)
    await rig.startDaemon()
    for (const name of members) await rig.untilReady(name)
    for (const [at, name] of members.entries())
      await expect
        .poll(() => saidBy(name).length, { timeout: 30_000 * slowness })
        .toBeGreaterThan((before[at] ?? 0) + 16)
    // Nobody was lost at any moment, and the files are those that the containers have mounted.
    for (const [at, name] of members.entries())
      expect(
        saidBy(name)
          .slice(before[at])
          .filter((word) => word.endsWith('lost')),
      ).toEqual([])
    expect(files.map((path) => readFileSync(path, 'utf8'))).toEqual(texts)
    expect(files.map((path) => statSync(path).ino)).toEqual(inodes)

    const shown = await rig.cliOk('get', 'svc')
    expect(shown).toMatch(/^broker\s+ClusterIP\s+<none>\s+1883\/TCP/mu)
    expect(await rig.cliOk('describe', 'service', 'broker')).toContain('app=broker')
    expect(await rig.cliOk('get', 'endpointslices')).toMatch(/^broker-ipv4\s+IPv4\s+1883\s+\d+\./mu)
    rig.removeManifest('stack')
    for (const name of members) await rig.untilGone(name)
  })

  it(
    'lead to ready pods alone unless they publish others, and to each by its own name; containers get variables',
    proves(
      'services',
      'Service: apiVersion kind spec metadata',
      'ServiceSpec: ports selector clusterIP type publishNotReadyAddresses',
      'ServicePort: name port protocol appProtocol targetPort',
      'PodSpec: enableServiceLinks',
    ),
    async () => {
      const rig = podd()
      const metadata = { labels: { app: 'node' } }
      const readinessProbe = { exec: { command: ['test', '-e', '/shared/is-ready'] }, periodSeconds: 1 }
      const spec = { hostname: 'node-0', subdomain: 'nodes' }
      const ports = [
        { name: 'web', port: 8080, protocol: 'TCP', appProtocol: 'http' },
        { name: 'dns', port: 8053, protocol: 'UDP', targetPort: 8053 },
      ]
      const selector = { app: 'node' }
      rig.drop(
        'node',
        shellPod('node', rig.shared, 'stay', { metadata, spec, container: { readinessProbe } }),
        service('nodes', { type: 'ClusterIP', clusterIP: 'None', selector, ports }),
        service('early', { selector, ports, publishNotReadyAddresses: true }),
      )
      const node = await rig.untilPod('node', 'has an address', ({ status }) => status.podIP !== undefined)
      const look =
        'while true; do cp /etc/hosts /shared/client-hosts; env > /shared/client-env; sleep 0.1; done'
      rig.drop('client', shellPod('client', rig.shared, look))
      rig.drop(
        'other',
        shellPod('other', rig.shared, 'env > /shared/other-env; say done; stay', {
          spec: { enableServiceLinks: false },
        }),
      )
      const hosts = (): string => rig.lines('client-hosts').join('\n')
      const ip = node.status.podIP ?? ''
      await expect
        .poll(hosts, { timeout: 60_000 * slowness })
        .toContain(`${ip}\tearly.default.svc.cluster.local\tearly.default.svc\tearly.default\tearly`)
      expect(hosts()).not.toContain('nodes.default')
      rig.touchShared('is-ready')
      const own = `node-0.nodes.default.svc.cluster.local\tnode-0.nodes.default.svc\tnode-0.nodes.default\tnode-0.nodes`
      await expect.poll(hosts, { timeout: 60_000 * slowness }).toContain(`${ip}\t${own}`)
      expect(hosts()).toContain(
        `${ip}\tnodes.default.svc.cluster.local\tnodes.default.svc\tnodes.default\tnodes`,
      )
      rig.removeShared('is-ready')
      await expect.poll(hosts, { timeout: 60_000 * slowness }).not.toContain('nodes.default')

      const variables = rig.lines('client-env')
      expect(variables).toContain('EARLY_SERVICE_HOST=early.default.svc.cluster.local')
      expect(variables).toContain('EARLY_SERVICE_PORT_DNS=8053')
      expect(variables).toContain('EARLY_PORT_8053_UDP=udp://early.default.svc.cluster.local:8053')
      // Headless ones have none, as in Kubernetes.
      expect(variables.filter((line) => line.startsWith('NODES_'))).toEqual([])
      await rig.untilLine('other', / done$/u)
      expect(rig.lines('other-env').filter((line) => line.startsWith('EARLY_'))).toEqual([])
      for (const name of ['node', 'client', 'other']) rig.removeManifest(name)
      for (const name of ['node', 'client', 'other']) await rig.untilGone(name)
    },
  )

  // As test/e2e/common/node/pods.go of Kubernetes has it: "should contain environment variables for services".
  it('of the API, with another port in their pods, give variables to pods that are created later', async () => {
    const rig = podd()
    const create = async (resource: string, body: JsonObject): Promise<void> => {
      const made = await callApi(rig.socketPath, 'POST', `/api/v1/namespaces/default/${resource}`, body)
      expect(made.code).toBe(201)
    }
    const podOf = (name: string, script: string, restartPolicy: string): JsonObject => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { name } },
      spec: {
        restartPolicy,
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image: shell, command: ['sh', '-c', script] }],
      },
    })
    await create('pods', podOf('server-envvars', 'trap "exit 0" TERM; sleep 1000000 & wait', 'Always'))
    await rig.untilReady('server-envvars')
    await create('services', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'fooservice', labels: { name: 'fooservice' } },
      spec: { ports: [{ port: 8765, targetPort: 8080 }], selector: { name: 'server-envvars' } },
    })
    await create('pods', podOf('client-envvars', 'env', 'Never'))
    await rig.untilPhase('client-envvars', 'Succeeded')
    const printed = await rig.cliOk('logs', 'client-envvars')
    const host = 'fooservice.default.svc.cluster.local'
    for (const line of [
      `FOOSERVICE_SERVICE_HOST=${host}`,
      'FOOSERVICE_SERVICE_PORT=8765',
      `FOOSERVICE_PORT=tcp://${host}:8765`,
      'FOOSERVICE_PORT_8765_TCP_PORT=8765',
      'FOOSERVICE_PORT_8765_TCP_PROTO=tcp',
      `FOOSERVICE_PORT_8765_TCP=tcp://${host}:8765`,
      `FOOSERVICE_PORT_8765_TCP_ADDR=${host}`,
    ])
      expect(printed.split('\n')).toContain(line)
    for (const path of ['services/fooservice', 'pods/server-envvars', 'pods/client-envvars'])
      await callApi(rig.socketPath, 'DELETE', `/api/v1/namespaces/default/${path}`)
    for (const name of ['server-envvars', 'client-envvars']) await rig.untilGone(name)
    expect(await rig.cliOk('get', 'svc', '-o', 'name')).toBe('')
  })
})
