import { once } from 'node:events'
import { createConnection, createServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PoddError } from '../../../src/base/errors.ts'
import type { CommandRequest, RunningCommand } from '../../../src/server/requests/readers.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { callCli, startCli } from '../../support/cli-rig.ts'
import type { CliOptions } from '../../support/cli-rig.ts'
import { containerStatus, podObject, terminated } from '../../support/pod-objects.ts'
import { handshakeOf } from '../../support/web-sockets.ts'

let rig: ApiRig
beforeEach(async () => {
  rig = await ApiRig.start()
  const running = (name: string) => containerStatus(name, { containerID: `containerd://id-${name}` })
  rig.pods.put(
    podObject({
      spec: {
        containers: [{ name: 'main', ports: [{ name: 'http', containerPort: 8080 }] }, { name: 'side' }],
      },
      status: { containerStatuses: [running('main'), running('side')] },
    }),
  )
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

const podd = (argv: readonly string[], options?: CliOptions) => callCli([...withSocket(argv)], options)

function withSocket([verb = '', ...rest]: readonly string[]): readonly string[] {
  return [verb, '--socket', rig.socketPath, ...rest]
}

/** A command that does what the test says; what happened to it is written down. */
class FakeCommand implements RunningCommand {
  readonly stdout = new PassThrough()
  readonly stderr = new PassThrough()
  readonly story: string[] = []
  readonly ended: Promise<number>
  end: (exitCode: number) => void = () => {}
  lose: (error: Error) => void = () => {}

  constructor() {
    this.ended = new Promise((resolve, reject) => {
      this.end = (exitCode) => {
        this.stdout.end()
        this.stderr.end()
        resolve(exitCode)
      }
      this.lose = (error) => {
        this.stdout.destroy()
        this.stderr.destroy()
        reject(error)
      }
    })
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.story.push(`input ${Buffer.from(chunk).toString()}`)
  }

  async closeStdin(): Promise<void> {
    this.story.push('input ended')
    this.end(0)
  }

  async resize(): Promise<void> {
    this.story.push('resize')
  }

  async hangUp(): Promise<void> {
    this.story.push('hung up')
    this.end(143)
  }
}

/** Answers the next command with one that `act` moves. */
function onCommand(act: (command: FakeCommand) => void): {
  requests: CommandRequest[]
  command: FakeCommand
} {
  const requests: CommandRequest[] = []
  const command = new FakeCommand()
  rig.reach = {
    ...rig.reach,
    startCommand: async (request) => {
      requests.push(request)
      act(command)
      return command
    },
  }
  return { requests, command }
}

describe('podd exec', () => {
  it('gives streams and exit code of a command, and asks for it in full', async () => {
    const { requests } = onCommand((command) => {
      command.stdout.write('out\n')
      command.stderr.write('err\n')
      command.end(7)
    })
    expect(await podd(['exec', 'web', '--', 'sh', '-c', 'a & b', '-i', 'ü'])).toEqual({
      exitCode: 7,
      stdout: 'out\n',
      stderr: 'Defaulted container "main" out of: main, side\nerr\ncommand terminated with exit code 7\n',
    })
    expect(requests).toEqual([
      {
        containerId: 'id-main',
        command: ['sh', '-c', 'a & b', '-i', 'ü'],
        stdin: false,
        terminal: false,
        size: undefined,
      },
    ])
  })

  it('passes input on, and its end', async () => {
    const { command, requests } = onCommand(() => {})
    expect(await podd(['exec', '-i', 'web', '-c', 'side', '--', 'cat'], { stdin: 'words' })).toMatchObject({
      exitCode: 0,
      stderr: '',
    })
    expect(command.story).toEqual(['input words', 'input ended'])
    expect(requests).toMatchObject([{ containerId: 'id-side', stdin: true }])
  })

  it('gives no terminal where there is none', async () => {
    const { requests } = onCommand(() => {})
    const { stderr } = await podd(['exec', '-it', 'web', '-c', 'main', '--', 'sh'], { stdin: '' })
    expect(stderr).toBe('Unable to use a TTY - input is not a terminal or the right kind of file\n')
    expect(requests).toMatchObject([{ stdin: true, terminal: false }])
  })

  it('hangs a command up that is interrupted', async () => {
    const { command } = onCommand((started) => started.stdout.write('begun\n'))
    using call = startCli([...withSocket(['exec', 'web', '-q', '--', 'sleep', '1000'])])
    await expect.poll(() => call.stdout()).toBe('begun\n')
    call.interrupt()
    expect(await call.outcome).toMatchObject({ exitCode: 130, stderr: '' })
    await expect.poll(() => command.story).toEqual(['hung up'])
  })

  it('hangs commands up when podd ends, and says that the connection broke', async () => {
    const { command } = onCommand((started) => started.stdout.write('begun\n'))
    using call = startCli([...withSocket(['exec', 'web', '-q', '--', 'sleep', '1000'])])
    await expect.poll(() => call.stdout()).toBe('begun\n')
    await rig.close()
    expect(await call.outcome).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('the connection to podd broke'),
    })
    expect(command.story).toEqual(['hung up'])
  })

  it('does not wait for a client that keeps its connection open', async () => {
    onCommand((command) => command.end(0))
    const socket = createConnection({ path: rig.socketPath, allowHalfOpen: true })
    socket.on('error', () => {})
    const target = '/api/v1/namespaces/default/pods/web/exec?container=main&command=true&stdout=true'
    socket.write(handshakeOf(target, 'v5.channel.k8s.io'))
    let answer = ''
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
    await expect.poll(() => answer).toContain('"status":"Success"')
    await rig.close(5000)
    socket.destroy()
  })

  it('says how a command was lost', async () => {
    onCommand((command) => command.lose(new Error('the runtime forgot it')))
    expect(await podd(['exec', 'web', '-q', '--', 'true'])).toMatchObject({
      exitCode: 1,
      stderr: 'podd: the runtime forgot it\n',
    })
  })

  it('carries output to a slow reader whole', async () => {
    onCommand((command) => {
      for (let count = 0; count < 60; count += 1) command.stdout.write('x'.repeat(65_536))
      command.end(0)
    })
    expect((await podd(['exec', 'web', '-q', '--', 'big'])).stdout).toHaveLength(60 * 65_536)
  })

  it.each<[words: string, message: string]>([
    ['exec', 'exec in which pod?'],
    ['exec web', 'exec needs a command'],
    ['exec web ls', 'the command must stand after --\npodd exec --socket '],
    ['exec web -it ls -la', ' web -it -- ls -la\n'],
    ['exec -c main web sh -c ls', ' -c main web -- sh -c ls\n'],
    ['exec web x -- ls', ' web -- x ls\n'],
    ['exec gone -- ls', 'pods "gone" not found'],
    ['exec web -c none -- ls', 'container none is not valid for pod web'],
    [
      'exec done -c main -- ls',
      'cannot exec into a container in a completed pod; current phase is Succeeded',
    ],
    ['exec slow -c main -- ls', 'container main of pod slow is not running: CrashLoopBackOff'],
    ['exec web -q -- ls', 'exec: "ls": executable file not found'],
    ['exec ended -c main -- ls', 'container main of pod ended is not running'],
  ])('podd %s: %s', async (words, message) => {
    rig.pods.put(
      podObject({
        name: 'ended',
        status: { containerStatuses: [containerStatus('main', { containerID: 'containerd://id-ended' })] },
      }),
    )
    rig.pods.put(
      podObject({
        name: 'done',
        status: {
          phase: 'Succeeded',
          containerStatuses: [containerStatus('main', { state: terminated(0) })],
        },
      }),
    )
    rig.pods.put(
      podObject({
        name: 'slow',
        status: {
          containerStatuses: [
            containerStatus('main', { state: { waiting: { reason: 'CrashLoopBackOff' } } }),
          ],
        },
      }),
    )
    rig.reach = {
      ...rig.reach,
      startCommand: ({ containerId }) =>
        Promise.reject(
          containerId === 'id-ended'
            ? new PoddError('RUNTIME_NOT_FOUND', 'task id-ended not found')
            : new PoddError('EXEC_FAILED', 'exec: "ls": executable file not found'),
        ),
    }
    const { exitCode, stderr } = await podd(words.split(' '))
    expect(stderr).toContain(message)
    expect(exitCode).toBeGreaterThan(0)
  })
})

describe('upgrades', () => {
  const pod = '/api/v1/namespaces/default/pods/web'
  const path = `${pod}/exec?command=ls&stdout=true&container=main`

  it.each<[title: string, upgrade: string, method: string, path: string, code: number]>([
    ['to an unknown protocol are passed over', 'h2c', 'GET', '/healthz', 200],
    ['without a known subprotocol are refused', 'websocket', 'GET', path, 400],
    ['to SPDY are refused', 'SPDY/3.1', 'POST', path, 400],
    ['to SPDY of a pod that is not there say so', 'SPDY/3.1', 'POST', path.replace('/web/', '/gone/'), 404],
    ['are for what is upgraded', 'websocket', 'GET', '/healthz', 404],
    ['need a command', 'websocket', 'GET', `${pod}/exec?container=main&stdout=true`, 400],
    ['need a stream', 'websocket', 'GET', `${pod}/exec?container=main&command=ls`, 400],
    ['need a well-formed path', 'websocket', 'GET', path.replace('/web/', '/%ff/'), 400],
  ])('%s', async (_title, upgrade, method, target, code) => {
    expect((await rig.call(target, method, { connection: 'Upgrade', upgrade })).code).toBe(code)
  })

  it.each(['GET', 'POST'])('are what exec, attach and portforward need: %s', async (method) => {
    for (const resource of ['exec', 'attach', 'portforward']) {
      const answer = await rig.call(`${pod}/${resource}`, method)
      expect([answer.code, answer.text]).toEqual([400, expect.stringContaining('Upgrade request required')])
    }
  })
})

describe('podd port-forward', () => {
  let server: Server
  const dialled: number[] = []
  beforeEach(async () => {
    dialled.length = 0
    // It answers when it has read all.
    server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      let bytes = 0
      socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
      socket.on('end', () => socket.end(`${bytes} bytes`))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    rig.reach = {
      ...rig.reach,
      dial: async (_uid, port) => {
        dialled.push(port)
        if (port !== 8080) throw new PoddError('PORT_REFUSED', 'connection refused: nobody listens')
        const { port: real } = server.address() as AddressInfo
        const socket = createConnection({ port: real, host: '127.0.0.1', allowHalfOpen: true })
        await once(socket, 'connect')
        return socket
      },
    }
  })
  afterEach(() => void server.close())

  it('joins local connections with the pod, each direction by itself', async () => {
    using call = startCli([...withSocket(['port-forward', 'pod/web', ':http', ':9'])])
    await expect.poll(() => call.stdout()).toMatch(/127\.0\.0\.1:\d+ -> 9\n/u)
    const [, first, second] =
      /127\.0\.0\.1:(\d+) -> 8080[^]*127\.0\.0\.1:(\d+) -> 9\n/u.exec(call.stdout()) ?? []
    const answers = await Promise.all(
      ['x', 'y'.repeat(3_000_000), ''].map((text) => talk(Number(first), text)),
    )
    expect(answers).toEqual(['1 bytes', '3000000 bytes', '0 bytes'])
    expect(call.stdout()).toContain(`Handling connection for ${first}\n`)
    expect(await talk(Number(second), '')).toBe('')
    await expect
      .poll(() => call.stderr())
      .toContain('error forwarding port 9: connection refused: nobody listens')
    expect(dialled).toEqual([8080, 8080, 8080, 9])
    call.interrupt()
    expect((await call.outcome).exitCode).toBe(130)
    await expect(talk(Number(first), '')).rejects.toThrow('ECONNREFUSED')
  })

  it('says when it cannot listen', async () => {
    const { port } = server.address() as AddressInfo
    expect(await podd(['port-forward', 'web', `${port}:8080`])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`unable to listen on port ${port}: `),
    })
  })

  it.each<[words: string, message: string]>([
    ['port-forward web', 'port-forward needs a pod and a port'],
    ['port-forward web 80:90:100', '"80:90:100" is not a port'],
    ['port-forward web 70000', '"70000" is not a port'],
    ['port-forward web 70000:80', '"70000:80" is not a port'],
    ['port-forward web 0:80', '"0:80" is not a port'],
    ['port-forward web :grpc', 'pod web has no port named "grpc"'],
    ['port-forward gone 80', 'pods "gone" not found'],
    ['port-forward svc/web 80', 'podd port-forward takes pods only, not "svc/web"'],
    ['logs cj/web', 'podd logs takes pods only, not "cj/web"'],
    ['logs deploy/web', 'deployments.apps "web" not found'],
    ['attach deploy/web', 'podd attach takes pods only, not "deploy/web"'],
    ['exec deploy/web -- ls', 'podd exec takes pods only, not "deploy/web"'],
    ['debug node/web --image i:1', 'podd debug takes pods only, not "node/web"'],
    ['restart deploy/web', 'podd restart takes pods only, not "deploy/web"'],
    ['delete pod cm/web', 'podd delete pod takes pods only, not "cm/web"'],
    ['port-forward late 80', 'unable to forward port because pod is not running. Current status=Pending'],
  ])('podd %s: %s', async (words, message) => {
    rig.pods.put(podObject({ name: 'late', status: { phase: 'Pending' } }))
    const { exitCode, stderr } = await podd(words.split(' '))
    expect(stderr).toContain(message)
    expect(exitCode).toBeGreaterThan(0)
  })
})

describe('podd restart', () => {
  it('names what is restarted', async () => {
    const asked: unknown[] = []
    rig.reach = {
      ...rig.reach,
      restart: async (uid, containers) => {
        asked.push([uid, containers])
        return containers ?? ['main', 'side']
      },
    }
    expect(await podd(['restart', 'web'])).toEqual({
      exitCode: 0,
      stdout: 'pod/web: restarting main, side\n',
      stderr: '',
    })
    expect((await podd(['restart', 'pod/web', '-c', 'side', '-c', 'main'])).stdout).toBe(
      'pod/web: restarting side, main\n',
    )
    expect(asked).toEqual([
      ['uid-web', undefined],
      ['uid-web', ['side', 'main']],
    ])
  })

  it('says why it cannot be', async () => {
    rig.reach = {
      ...rig.reach,
      restart: () => {
        throw new PoddError('RESTART_REFUSED', 'pod web has finished')
      },
    }
    expect(await podd(['restart', 'web'])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('Error from server (Conflict): pod web has finished'),
    })
    expect(await podd(['restart', 'gone'])).toMatchObject({ exitCode: 1 })
    expect(await podd(['restart'])).toMatchObject({ exitCode: 2 })
  })
})

describe('podd top', () => {
  beforeEach(() => {
    rig.pods.put(podObject({ name: 'big', namespace: 'shop' }))
    rig.pods.put(podObject({ name: 'idle' }))
    const at = { atMs: Date.UTC(2026, 0, 1), windowMs: 1002 }
    rig.reach = {
      ...rig.reach,
      usage: async () => [
        { ...at, uid: 'uid-web', container: 'main', cpuNanoCores: 1_200_001, memoryBytes: 3.5 * 1024 ** 2 },
        { ...at, uid: 'uid-web', container: 'side', cpuNanoCores: 250_000_000, memoryBytes: 2 * 1024 ** 2 },
        { ...at, uid: 'uid-big', container: 'main', cpuNanoCores: 1000, memoryBytes: 300 * 1024 ** 2 },
        { ...at, uid: 'uid-other', container: 'main', cpuNanoCores: 1000, memoryBytes: 1 },
      ],
    }
  })

  it.each<[words: string, table: string]>([
    ['top pods', 'NAME   CPU(cores)   MEMORY(bytes)\nweb    252m         5Mi\n'],
    ['top pod/web', 'NAME   CPU(cores)   MEMORY(bytes)\nweb    252m         5Mi\n'],
    [
      'top pods -A --sort-by memory',
      'NAMESPACE   NAME   CPU(cores)   MEMORY(bytes)\nshop        big    1m           300Mi\ndefault     web    252m         5Mi\n',
    ],
    [
      'top pod web --containers --sort-by cpu',
      'POD   NAME   CPU(cores)   MEMORY(bytes)\nweb   side   250m         2Mi\nweb   main   2m           3Mi\n',
    ],
  ])('podd %s', async (words, table) => {
    expect(await podd(words.split(' '))).toEqual({ exitCode: 0, stdout: table, stderr: '' })
  })

  it('says how much of the host is used', async () => {
    rig.nodes.put({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'box', uid: 'uid-box' },
      spec: {},
      status: {
        capacity: { cpu: '2', memory: '4Gi' },
        allocatable: { cpu: '2', memory: '4Gi' },
        conditions: [],
        addresses: [],
        daemonEndpoints: { kubeletEndpoint: { Port: 10255 } },
        nodeInfo: {},
        images: [],
      },
    })
    const head = 'NAME   CPU(cores)   CPU(%)   MEMORY(bytes)   MEMORY(%)\n'
    const expected = {
      exitCode: 0,
      stdout: `${head}box    250m         12%      1024Mi          25%\n`,
      stderr: '',
    }
    expect(await podd(['top', 'nodes'])).toEqual(expected)
    expect(await podd(['top', 'node', 'box'])).toEqual(expected)
  })

  it('gives PodMetrics as metrics-server does', async () => {
    expect(JSON.parse((await podd(['top', 'pod', 'big', '-n', 'shop', '-o', 'json'])).stdout)).toEqual({
      apiVersion: 'metrics.k8s.io/v1beta1',
      kind: 'PodMetrics',
      metadata: { name: 'big', namespace: 'shop', creationTimestamp: '2026-01-01T00:00:00Z' },
      timestamp: '2026-01-01T00:00:00Z',
      window: '1.002s',
      containers: [{ name: 'main', usage: { cpu: '1000n', memory: '307200Ki' } }],
    })
  })

  it.each<[words: string, exitCode: number, message: string]>([
    ['top', 2, 'top shows pods'],
    ['top claims', 2, 'top shows pods, and the node'],
    ['top node other', 1, 'nodes.metrics.k8s.io "other" not found'],
    ['top pods --sort-by age', 2, 'cannot sort by "age"'],
    ['top pod gone', 1, 'pods "gone" not found'],
    ['top pod idle', 1, 'no container of pod idle runs'],
    ['top pods -n empty', 0, 'No running pods found in namespace empty'],
  ])('podd %s: %i %s', async (words, exitCode, message) => {
    const outcome = await podd(words.split(' '))
    expect(outcome.stderr).toContain(message)
    expect(outcome.exitCode).toBe(exitCode)
  })
})

/** Says `text`, ends, and gives all that comes back. */
async function talk(port: number, text: string): Promise<string> {
  const socket = createConnection({ host: '127.0.0.1', port, allowHalfOpen: true })
  const chunks: Buffer[] = []
  socket.end(text)
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
