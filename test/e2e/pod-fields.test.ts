import { createSocket } from 'node:dgram'
import { readlinkSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { expect, it } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { describePodd } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { shellContainer, shellPod, wordsOf } from '../support/shell-pods.ts'

const ownAddress = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address

describePodd('pods', {}, (rig) => {
  it.concurrent(
    'see the processes and the shared memory of the host where they ask for it',
    proves('host-namespaces', 'PodSpec: hostIPC hostPID'),
    async () => {
      const podd = rig()
      const script = 'say $(readlink /proc/self/ns/ipc) $(readlink /proc/self/ns/pid); stay'
      podd.drop('inside', shellPod('inside', podd.shared, script, { spec: { hostIPC: true, hostPID: true } }))
      podd.drop('apart', shellPod('apart', podd.shared, script))
      const own = ['ipc', 'pid'].map((kind) => readlinkSync(`/proc/self/ns/${kind}`))
      const [inside] = wordsOf(await podd.untilLine('inside', / ipc:/u))
      const [apart] = wordsOf(await podd.untilLine('apart', / ipc:/u))
      expect(inside).toBe(own.join(' '))
      expect(apart?.split(' ').filter((namespace) => own.includes(namespace))).toEqual([])
      for (const name of ['inside', 'apart']) podd.removeManifest(name)
      await podd.untilGone('inside')
    },
  )

  it.concurrent(
    'get datagrams on a UDP port of the host',
    proves('udp-port', 'ContainerPort: protocol'),
    async () => {
      const podd = rig()
      const hostPort = await freePort()
      const ports = [{ name: 'dns', containerPort: 53, hostPort, protocol: 'UDP' }]
      // Nobody listens: the pod's own kernel counts what came for nobody.
      const script = `arrived() { grep '^Udp: [0-9]' /proc/net/snmp | cut -d' ' -f3; }
      say up; until [ $(arrived) -gt 0 ]; do sleep 0.1; done; say arrived; stay`
      podd.drop('udp', shellPod('udp', podd.shared, script, { container: { ports } }))
      const { status } = await podd.untilReady('udp')
      await podd.untilLine('udp', / up$/u)
      const socket = createSocket('udp4')
      socket.on('error', () => undefined)
      try {
        await podd.until('the datagram', () => {
          socket.send('x', hostPort, status.hostIP)
          return wordsOf(podd.lines('udp')).includes('arrived')
        })
      } finally {
        socket.close()
      }
      expect(await podd.untilWords('udp', 2)).toEqual(['up', 'arrived'])
      podd.removeManifest('udp')
      await podd.untilGone('udp')
    },
  )

  it.skipIf(ownAddress === undefined).concurrent(
    'answer on a port of one address of the host alone',
    proves('host-ip', 'ContainerPort: hostIP'),
    async () => {
      const podd = rig()
      const hostPort = await freePort()
      const ports = [{ containerPort: 8080, hostPort, hostIP: ownAddress }]
      const script = 'mkdir -p /www; echo page >/www/index.html; say up; exec httpd -f -p 8080 -h /www'
      podd.drop('bound', shellPod('bound', podd.shared, script, { container: { ports } }))
      const { status } = await podd.untilReady('bound')
      const page = (address: string): Promise<string> =>
        fetch(`http://${address}:${hostPort}/`, { signal: AbortSignal.timeout(2000) }).then((answer) =>
          answer.text(),
        )
      await podd.until('the page', async () => (await page(ownAddress ?? '')) === 'page\n')
      const bridge = status.podIP?.replace(/\d+$/u, '1') ?? ''
      expect(bridge).not.toBe(ownAddress)
      await expect(page(bridge)).rejects.toThrow()
      podd.removeManifest('bound')
      await podd.untilGone('bound')
    },
  )

  it.concurrent('open a port of the host that a sidecar asks for too to the main container', async () => {
    const podd = rig()
    const hostPort = await freePort()
    const serve = (name: string, containerPort: number): string =>
      `mkdir -p /www; echo ${name} >/www/index.html; say ${name}; exec httpd -f -p ${containerPort} -h /www`
    const side = shellContainer('side', 'shared-port', serve('side', 9090), {
      restartPolicy: 'Always',
      ports: [{ containerPort: 9090, hostPort }],
    })
    const container = { ports: [{ containerPort: 8080, hostPort }] }
    const spec = { initContainers: [side] }
    podd.drop('shared-port', shellPod('shared-port', podd.shared, serve('main', 8080), { container, spec }))
    const { status } = await podd.untilReady('shared-port')
    const page = async (): Promise<string> => {
      const url = `http://${status.hostIP}:${hostPort}/`
      return (await fetch(url, { signal: AbortSignal.timeout(2000) })).text()
    }
    await podd.until('the page', async () => (await page()) === 'main\n')
    podd.removeManifest('shared-port')
    await podd.untilGone('shared-port')
    await expect(page()).rejects.toThrow()
  })

  it.concurrent('run an init container with a limit beyond that of the pod', async () => {
    const podd = rig()
    const resources = { requests: { memory: '8Mi' }, limits: { memory: '256Mi' } }
    const spec = {
      resources: { limits: { memory: '128Mi' } },
      initContainers: [shellContainer('first', 'wide-init', 'say first', { resources })],
    }
    podd.drop('wide-init', shellPod('wide-init', podd.shared, 'say main; stay', { spec }))
    await podd.untilReady('wide-init')
    expect(await podd.untilWords('wide-init', 2)).toEqual(['first', 'main'])
    podd.removeManifest('wide-init')
    await podd.untilGone('wide-init')
  })

  it.concurrent(
    'take the system, the priority and the overhead that go with their classes',
    proves(
      'given-classes',
      'PodSpec: os priority preemptionPolicy overhead',
      'PodOS: name',
      'PriorityClass: globalDefault description preemptionPolicy',
    ),
    async () => {
      const podd = rig()
      podd.drop(
        'field-classes',
        {
          apiVersion: 'node.k8s.io/v1',
          kind: 'RuntimeClass',
          metadata: { name: 'heavy' },
          handler: 'runc',
          overhead: { podFixed: { memory: '4Mi' } },
        },
        {
          apiVersion: 'scheduling.k8s.io/v1',
          kind: 'PriorityClass',
          metadata: { name: 'usual' },
          value: 77,
          globalDefault: true,
          description: 'for those that name none',
        },
        {
          apiVersion: 'scheduling.k8s.io/v1',
          kind: 'PriorityClass',
          metadata: { name: 'named' },
          value: 88,
          preemptionPolicy: 'Never',
        },
      )
      const pod = (name: string, spec: Readonly<Record<string, unknown>>): object =>
        shellPod(name, podd.shared, 'say $(uname -s); stay', { spec })
      podd.drop(
        'by-fields',
        pod('by-fields', {
          os: { name: 'linux' },
          priorityClassName: 'named',
          priority: 88,
          preemptionPolicy: 'Never',
          runtimeClassName: 'heavy',
          overhead: { memory: '4Mi' },
        }),
      )
      podd.drop('by-default', pod('by-default', {}))
      podd.drop('pushing', pod('pushing', { preemptionPolicy: 'Never' }))
      podd.drop('at-odds', pod('at-odds', { runtimeClassName: 'heavy', overhead: { memory: '5Mi' } }))
      await podd.untilLine('by-fields', / Linux$/u)
      expect(JSON.stringify(await podd.untilReady('by-fields'))).toContain('"priority":88')
      expect(JSON.stringify(await podd.untilReady('by-default'))).toContain('"priority":77')
      const { status } = await podd.untilPod(
        'at-odds',
        'its refusal',
        (now) => now.status.reason !== undefined,
      )
      expect(status.message).toContain("Pod's Overhead doesn't match RuntimeClass's defined Overhead")
      const pushing = await podd.untilPod('pushing', 'its refusal', (now) => now.status.reason !== undefined)
      expect(pushing.status.message).toContain('computed PreemptLowerPriority from the given PriorityClass')
      for (const name of ['by-fields', 'by-default', 'at-odds', 'pushing', 'field-classes'])
        podd.removeManifest(name)
      await podd.untilGone('by-fields')
    },
  )

  it.concurrent(
    'run an ephemeral container with all that it asks for',
    proves(
      'ephemeral-container',
      'EphemeralContainer: args workingDir env envFrom imagePullPolicy securityContext stdin stdinOnce tty terminationMessagePath terminationMessagePolicy volumeMounts',
    ),
    async () => {
      const podd = rig()
      const settings = {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'looking' },
        data: { FROM: 'a map' },
      }
      const seen =
        'say "$0 $1" of $OWN from $FROM in $(pwd) as $(id -u) at $(ls /v); test -t 1 && say tty; echo -n done >/tmp/words; exit 3'
      const looker = shellContainer('looker', 'looked', seen, {
        args: ['one', 'two'],
        workingDir: '/var/tmp',
        env: [{ name: 'OWN', value: 'mine' }],
        envFrom: [{ configMapRef: { name: 'looking' } }],
        imagePullPolicy: 'IfNotPresent',
        securityContext: { runAsUser: 0 },
        stdin: true,
        stdinOnce: true,
        tty: true,
        terminationMessagePath: '/tmp/words',
        terminationMessagePolicy: 'FallbackToLogsOnError',
        targetContainerName: 'main',
        volumeMounts: [{ name: 'v', mountPath: '/v' }],
      })
      podd.drop(
        'looked',
        settings,
        shellPod('looked', podd.shared, 'touch /v/file; say up; stay', {
          volumes: [{ name: 'v', emptyDir: {} }],
          mounts: [{ name: 'v', mountPath: '/v' }],
          spec: { ephemeralContainers: [looker] },
        }),
      )
      const lines = wordsOf(await podd.untilLine('looked', / tty$/u))
      expect(lines).toContainEqual(
        expect.stringMatching(/^one two of mine from a map in \/var\/tmp as 0 at( file)?$/u),
      )
      const pod = await podd.until('its end', async () => {
        const found = JSON.stringify((await podd.findPod('looked'))?.status)
        return found?.includes('"message":"done"') && found
      })
      expect(pod).toContain('"exitCode":3')
      podd.removeManifest('looked')
      await podd.untilGone('looked')
    },
  )
})
