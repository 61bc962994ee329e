import { once } from 'node:events'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { encodeMessage } from '../../../src/api/remote-command.ts'
import { encodeDataHead, encodeOpen, encodePing } from '../../../src/runtime/spdy-session.ts'
import type { CommandRequest, RunningCommand } from '../../../src/server/requests/readers.ts'
import { ApiRig } from '../../support/api-rig.ts'
import { containerStatus, podObject } from '../../support/pod-objects.ts'
import { slowness } from '../../support/slowness.ts'
import { deflateBlocks } from '../../support/spdy-client.ts'
import { clientFrame, handshakeOf } from '../../support/web-sockets.ts'

const pod = '/api/v1/namespaces/default/pods/web'
const execPath = `${pod}/exec?command=sh&container=main&stdin=true&stdout=true&stderr=true`
/** How many malformed streams are sent; a long run sets more. */
const fuzzRounds = Number(process.env['PODD_FUZZ_FRAMES'] ?? 2000)

let rig: ApiRig
let story: string[]
let requests: CommandRequest[]
let stdout: PassThrough
let stderr: PassThrough
let end: (exitCode: number) => void
beforeEach(async () => {
  rig = await ApiRig.start()
  rig.pods.put(
    podObject({ status: { containerStatuses: [containerStatus('main', { containerID: 'c://1' })] } }),
  )
  story = []
  requests = []
  stdout = new PassThrough().setMaxListeners(0)
  stderr = new PassThrough().setMaxListeners(0)
  const command = (): RunningCommand => {
    const ended = new Promise<number>((resolve) => {
      end = (exitCode) => {
        stdout.end()
        stderr.end()
        resolve(exitCode)
      }
    })
    return {
      stdout,
      stderr,
      ended,
      write: async (chunk) => void story.push(`input ${Buffer.from(chunk).toString()}`),
      closeStdin: async () => void story.push('input ended'),
      resize: async ({ columns, rows }) => void story.push(`${columns} x ${rows}`),
      hangUp: async () => void story.push('hung up'),
    }
  }
  rig.reach = {
    ...rig.reach,
    startCommand: async (request) => {
      requests.push(request)
      return command()
    },
    attach: async () => {
      story.push('attached')
      return command()
    },
  }
})
afterEach(async () => {
  await rig[Symbol.asyncDispose]()
})

/** A connection with all that came over it so far. */
function open(): { readonly socket: Socket; readonly received: () => Buffer } {
  const socket = connect({ path: rig.socketPath })
  socket.on('error', () => {})
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  return { socket, received: () => Buffer.concat(chunks) }
}

/** The payloads of the server's frames after the head, each with its opcode; none is fragmented. */
function framesIn(bytes: Buffer): readonly (readonly [opcode: number, payload: Buffer])[] {
  const frames: [number, Buffer][] = []
  let at = bytes.indexOf('\r\n\r\n') + 4
  while (at + 2 <= bytes.length) {
    const opcode = bytes.readUInt8(at) & 0x0f
    let length = bytes.readUInt8(at + 1)
    at += 2
    if (length === 126) {
      length = bytes.readUInt16BE(at)
      at += 2
    }
    frames.push([opcode, bytes.subarray(at, at + length)])
    at += length
  }
  return frames
}

const shown = (bytes: Buffer): readonly string[] =>
  framesIn(bytes).map(([opcode, payload]) => `${opcode} ${JSON.stringify(payload.toString('latin1'))}`)

describe('exec over a WebSocket', () => {
  it('says what the kubelet says, in its order', async () => {
    const { socket, received } = open()
    socket.write(handshakeOf(`${execPath}&tty=true`, 'v5.channel.k8s.io'))
    await expect.poll(() => requests.length).toBe(1)
    expect(requests).toEqual([
      { containerId: '1', command: ['sh'], stdin: true, terminal: true, size: undefined },
    ])
    await expect.poll(() => received().toString()).toContain('\r\n\r\n')
    expect(received().toString()).toMatch(
      /^HTTP\/1\.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\nSec-WebSocket-Protocol: v5\.channel\.k8s\.io\r\n\r\n/u,
    )
    socket.write(clientFrame(encodeMessage('resize', '{"Width":97,"Height":31}\n')))
    socket.write(clientFrame(encodeMessage('stdin', 'ls\n')))
    // As some clients send it: in a text frame.
    socket.write(clientFrame(encodeMessage('stdin', 'ps\n'), 1))
    socket.write(clientFrame(Buffer.from([255, 0])))
    socket.write(clientFrame(Buffer.from('alive'), 9))
    await expect.poll(() => story).toEqual(['97 x 31', 'input ls\n', 'input ps\n', 'input ended'])
    stdout.write('out')
    await expect.poll(() => shown(received())).toContain('2 "\\u0001out"')
    stderr.write('err')
    await expect.poll(() => shown(received())).toContain('2 "\\u0002err"')
    end(3)
    await expect.poll(() => shown(received()).at(-1)).toBe('8 "\\u0003\u00e8"')
    expect(shown(received())).toEqual([
      '2 "\\u0001"',
      '10 "alive"',
      '2 "\\u0001out"',
      '2 "\\u0002err"',
      `2 ${JSON.stringify(`\u0003{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 3","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`)}`,
      '8 "\\u0003\u00e8"',
    ])
    socket.write(clientFrame(Buffer.from([3, 232]), 8))
    await once(socket, 'close')
    expect(requests).toHaveLength(1)
  })

  it.each([
    ['that goes away', (socket: Socket) => socket.destroy()],
    ['that closes the WebSocket', (socket: Socket) => socket.write(clientFrame(Buffer.from([3, 232]), 8))],
    ['that sends no frame', (socket: Socket) => socket.write('nonsense')],
    ['that sends too much at once', (socket: Socket) => socket.write(tooLarge())],
  ])('hangs the command of a client up %s', async (_title, leave) => {
    const { socket } = open()
    socket.write(handshakeOf(execPath, 'v4.channel.k8s.io'))
    await expect.poll(() => requests.length).toBe(1)
    leave(socket)
    await expect.poll(() => story).toEqual(['hung up'])
    socket.destroy()
  })

  it.each([
    [0, ['2 "\\u0001"']],
    [
      3,
      [
        '2 "\\u0001"',
        '2 "\\u0003command terminated with non-zero exit code: command terminated with exit code 3"',
      ],
    ],
  ])('says no outcome but a failure in the oldest protocol: %i', async (exitCode, said) => {
    const { socket, received } = open()
    socket.write(handshakeOf(execPath, 'channel.k8s.io'))
    await expect.poll(() => requests.length).toBe(1)
    await expect.poll(() => received().toString()).toContain('Sec-WebSocket-Protocol: channel.k8s.io\r\n')
    end(exitCode)
    await expect.poll(() => shown(received())).toEqual([...said, '8 "\\u0003\u00e8"'])
    socket.destroy()
  })

  it('says why a command did not start, after the handshake', async () => {
    rig.reach = { ...rig.reach, startCommand: () => Promise.reject(new Error('no such program')) }
    const { socket, received } = open()
    socket.write(handshakeOf(execPath, 'v5.channel.k8s.io'))
    await expect.poll(() => shown(received()).at(-1)).toBe('8 "\\u0003\u00e8"')
    expect(received().toString()).toContain(
      '\u0003{"metadata":{},"status":"Failure","message":"Internal error occurred: no such program","reason":"InternalError","details":{"causes":[{"message":"no such program"}]},"code":500}',
    )
    socket.destroy()
  })

  it.each([
    ['a pod that is not there', execPath.replace('/web/', '/gone/'), 404, 'pods \\"gone\\" not found'],
    ['no such container', execPath.replace('main', 'none'), 400, 'container none is not valid for pod web'],
  ])('refuses in the same words over SPDY: %s', async (_title, path, code, message) => {
    for (const [upgrade, method] of [
      ['websocket', 'GET'],
      ['SPDY/3.1', 'POST'],
    ]) {
      const { socket, received } = open()
      socket.write(handshakeOf(path, 'v5.channel.k8s.io', upgrade, method))
      await once(socket, 'end')
      expect(received().toString()).toMatch(new RegExp(`^HTTP/1\\.1 ${code} `, 'u'))
      expect(received().toString()).toContain(message)
    }
  })

  it('attaches, and needs no command for it', async () => {
    const { socket, received } = open()
    socket.write(handshakeOf(`${pod}/attach?container=main&stdout=true&stdin=true`, 'v5.channel.k8s.io'))
    await expect.poll(() => story).toEqual(['attached'])
    stdout.write('words')
    await expect.poll(() => shown(received())).toContain('2 "\\u0001words"')
    end(0)
    await expect.poll(() => received().toString()).toContain('\u0003{"metadata":{},"status":"Success"}')
    socket.destroy()
  })
})

describe('a log over a WebSocket', () => {
  const path = `${pod}/log?container=main`

  beforeEach(async () => {
    const directory = join(rig.podLogsDir, 'default_web_uid-web', 'main')
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, '0.log'), '2026-01-01T00:00:00.000000001Z stdout F alive\n')
  })

  it.each([
    ['binary.k8s.io', '2 "alive\\n"'],
    ['base64.binary.k8s.io', '1 "YWxpdmUK"'],
  ])('comes to its end with %s', async (protocol, message) => {
    const { socket, received } = open()
    socket.write(handshakeOf(path, protocol))
    await expect.poll(() => shown(received())).toEqual(['2 ""', message, '8 "\\u0003\u00e8"'])
    expect(received().toString()).toContain(`Sec-WebSocket-Protocol: ${protocol}\r\n`)
    socket.destroy()
  })

  it('is binary where the client names no protocol', async () => {
    const { socket, received } = open()
    socket.write(handshakeOf(path, '').replace('Sec-WebSocket-Protocol: \r\n', ''))
    await expect.poll(() => shown(received())).toEqual(['2 ""', '2 "alive\\n"', '8 "\\u0003\u00e8"'])
    expect(received().toString()).not.toContain('Sec-WebSocket-Protocol')
    socket.destroy()
  })

  it('goes on while it is followed, until the client leaves', async () => {
    const { socket, received } = open()
    socket.write(handshakeOf(`${path}&follow=true`, 'binary.k8s.io'))
    await expect.poll(() => shown(received())).toEqual(['2 ""', '2 "alive\\n"'])
    const log = join(rig.podLogsDir, 'default_web_uid-web', 'main', '0.log')
    await appendFile(log, '2026-01-01T00:00:00.000000002Z stdout F well\n')
    await expect.poll(() => shown(received())).toContain('2 "well\\n"')
    socket.write(clientFrame(Buffer.from([3, 232]), 8))
    await once(socket, 'close')
  })

  it('is refused with a Status where there is none', async () => {
    const { socket, received } = open()
    socket.write(handshakeOf(path.replace('main', 'none'), 'binary.k8s.io'))
    await once(socket, 'end')
    expect(received().toString()).toMatch(/^HTTP\/1\.1 400 /u)
    expect(received().toString()).toContain('container none is not valid for pod web')
  })
})

/** The head of a frame beyond every limit. */
function tooLarge(): Buffer {
  return Buffer.from([0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
}

describe('port-forward through a tunnel', () => {
  const path = `${pod}/portforward`
  const spdy = (bytes: Buffer): Buffer => clientFrame(bytes)
  const dialled: number[] = []
  let target: PassThrough
  beforeEach(() => {
    dialled.length = 0
    target = new PassThrough()
    rig.reach = {
      ...rig.reach,
      dial: async (_uid, port) => {
        dialled.push(port)
        if (port !== 80) throw new Error('connection refused')
        return target
      },
    }
  })

  const headersOf = (streamtype: string, port: number, requestid: number) =>
    [
      ['streamtype', streamtype],
      ['port', String(port)],
      ['requestid', String(requestid)],
    ] as const

  it('speaks SPDY/3.1 with compressed headers, cut as the network cuts it', async () => {
    const blocks = await deflateBlocks([
      [...headersOf('error', 80, 0)],
      [...headersOf('data', 80, 0)],
      [...headersOf('error', 81, 1)],
      [...headersOf('data', 81, 1)],
    ])
    const [errorBlock = Buffer.alloc(0), dataBlock = Buffer.alloc(0), ...second] = blocks
    const { socket, received } = open()
    socket.write(handshakeOf(path, 'SPDY/3.1+portforward.k8s.io'))
    const bytes = Buffer.concat([
      encodeOpen(1, errorBlock, true),
      encodeOpen(3, dataBlock),
      encodePing(1),
      encodeDataHead(3, 5, false),
      Buffer.from('hello'),
    ])
    for (let at = 0; at < bytes.length; at += 7) socket.write(spdy(bytes.subarray(at, at + 7)))
    const answers = (): Buffer => Buffer.concat(framesIn(received()).map(([, payload]) => payload))
    // The target gives back what it gets.
    await expect.poll(() => answers().toString('latin1')).toContain('hello')
    expect(received().toString()).toContain('\r\nSec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n')
    expect(answers().includes(encodePing(1))).toBe(true)
    expect(answers().includes(Buffer.from([0x80, 3, 0, 2]))).toBe(true)
    socket.write(spdy(encodeDataHead(3, 0, true)))
    // The end of both streams.
    await expect.poll(() => answers().includes(encodeDataHead(3, 0, true))).toBe(true)
    await expect.poll(() => answers().includes(encodeDataHead(1, 0, true))).toBe(true)
    // One that is refused doesn't end the tunnel.
    const [errorAgain = Buffer.alloc(0), dataAgain = Buffer.alloc(0)] = second
    socket.write(spdy(Buffer.concat([encodeOpen(5, errorAgain, true), encodeOpen(7, dataAgain)])))
    await expect.poll(() => answers().toString('latin1')).toContain('connection refused')
    await expect.poll(() => answers().includes(encodeDataHead(5, 0, true))).toBe(true)
    expect(dialled).toEqual([80, 81])
    socket.destroy()
    await expect.poll(() => target.destroyed).toBe(true)
  })

  it('ends what is open when its client goes away', async () => {
    const [errorBlock = Buffer.alloc(0), dataBlock = Buffer.alloc(0)] = await deflateBlocks([
      [...headersOf('error', 80, 0)],
      [...headersOf('data', 80, 0)],
    ])
    const { socket } = open()
    socket.write(handshakeOf(path, 'SPDY/3.1+portforward.k8s.io'))
    socket.write(spdy(Buffer.concat([encodeOpen(1, errorBlock), encodeOpen(3, dataBlock)])))
    await expect.poll(() => dialled).toEqual([80])
    socket.destroy()
    await expect.poll(() => target.destroyed).toBe(true)
  })

  it.each(['v4.channel.k8s.io', ''])(
    'gives two channels to each port of the query (%s)',
    async (protocol) => {
      const { socket, received } = open()
      socket.write(handshakeOf(`${path}?ports=80&ports=81`, protocol))
      await expect
        .poll(() => shown(received()).toSorted())
        .toEqual([
          '2 "\\u0000P\\u0000"',
          '2 "\\u0001P\\u0000"',
          '2 "\\u0002Q\\u0000"',
          '2 "\\u0003Q\\u0000"',
          '2 "\\u0003error forwarding port 81: connection refused"',
        ])
      // Some clients send text. The target gives back what it gets.
      socket.write(clientFrame(Buffer.from('\u0000hello'), 1))
      await expect.poll(() => shown(received()).at(-1)).toBe('2 "\\u0000hello"')
      expect(dialled).toEqual([80, 81])
      target.end()
      await expect.poll(() => shown(received()).at(-1)).toMatch(/^8 /u)
      socket.destroy()
      await expect.poll(() => target.destroyed).toBe(true)
    },
  )

  it.each([
    ['', 'query parameter \\"ports\\" is required'],
    ['?ports=0', 'as a port'],
    ['?ports=80,70000', 'as a port'],
  ])('is refused without ports that can be (%s)', async (query, message) => {
    const { socket, received } = open()
    socket.write(handshakeOf(`${path}${query}`, 'v4.channel.k8s.io'))
    await once(socket, 'end')
    expect(received().toString()).toMatch(/^HTTP\/1\.1 400 /u)
    expect(received().toString()).toContain(message)
    expect(dialled).toEqual([])
  })

  it('is refused for a pod that does not run', async () => {
    rig.pods.put(podObject({ name: 'late', status: { phase: 'Pending' } }))
    const { socket, received } = open()
    socket.write(handshakeOf(path.replace('/web/', '/late/'), 'SPDY/3.1+portforward.k8s.io'))
    await once(socket, 'end')
    expect(received().toString()).toContain('pod is not running. Current status=Pending')
  })
})

/** Takes all that nothing refers to. */
const collectGarbage: () => void = (() => {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
})()

describe('malformed frames', () => {
  /** The same sequence in each run. */
  function seeded(seed: number): () => number {
    let state = seed
    return () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return state / 2 ** 32
    }
  }

  it(
    'end their connection alone, and leave nothing behind',
    async () => {
      const random = seeded(20_260_101)
      const below = (limit: number): number => Math.floor(random() * limit)
      const held: WeakRef<object>[] = []
      const hold = <T extends object>(made: T): T => {
        held.push(new WeakRef(made))
        return made
      }
      let hungUp = 0
      rig.reach = {
        ...rig.reach,
        dial: async () => hold(new PassThrough()),
        async startCommand(request) {
          requests.push(request)
          const [own, ownErrors] = [hold(new PassThrough()), hold(new PassThrough())]
          const ended = Promise.withResolvers<number>()
          return {
            stdout: own,
            stderr: ownErrors,
            ended: ended.promise,
            write: async () => {},
            closeStdin: async () => {},
            resize: async () => {},
            async hangUp() {
              hungUp += 1
              own.end()
              ownErrors.end()
              ended.resolve(1)
            },
          }
        },
      }
      const handshakes = [
        handshakeOf(`${pod}/portforward`, 'SPDY/3.1+portforward.k8s.io'),
        handshakeOf(execPath, 'v5.channel.k8s.io'),
        handshakeOf(`${pod}/portforward?ports=80&ports=81`, 'v4.channel.k8s.io'),
      ]
      const heapMiB = (): string => (process.memoryUsage().heapUsed / 1024 ** 2).toFixed(1)
      collectGarbage()
      const beforeMiB = heapMiB()
      let sent = 0
      let streams = 0
      for (let stream = 0; sent < fuzzRounds; stream += 1) {
        streams += 1
        const isTunnel = stream % handshakes.length === 0
        const { socket } = open()
        const closed = once(socket, 'close')
        socket.write(handshakes[stream % handshakes.length] ?? '')
        await Promise.race([once(socket, 'data'), closed])
        for (let round = 0; round < 20 && !socket.destroyed; round += 1) {
          const payload = Buffer.from(Array.from({ length: below(64) }, () => below(256)))
          // Control frames of SPDY, more often than chance would have them.
          if (isTunnel && payload.length > 3 && below(2) === 0) payload.set([0x80, 3, 0, below(10)])
          const frame = clientFrame(payload, below(8) === 0 ? below(16) : 2)
          if (below(8) === 0) frame.writeUInt8(below(256), below(frame.length))
          socket.write(frame)
          sent += 1
        }
        // What was sent is read to its end.
        socket.end()
        await closed
      }
      expect((await rig.call('/healthz')).code).toBe(200)
      // Each command that began was hung up.
      await expect.poll(() => hungUp).toBe(requests.length)
      // Nothing that belonged to a stream is held by anything.
      await expect
        .poll(() => {
          collectGarbage()
          return held.filter((made) => made.deref() !== undefined).length
        })
        .toBe(0)
      console.log(
        `${sent} frames in ${streams} streams, live heap ${beforeMiB} MiB before, ${heapMiB()} MiB after; ` +
          `${held.length} streams of commands and ports were collected`,
      )
    },
    Math.max(30_000, fuzzRounds * 20) * slowness,
  )
})
