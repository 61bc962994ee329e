import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { CgroupError } from './layout.ts'

/** systemd refused; `busName` is the reason (`org.freedesktop.systemd1.UnitExists`). */
export class SystemdError extends CgroupError {
  readonly busName: string

  constructor(member: string, busName: string, message: string) {
    super(`systemd refused ${member}: ${message === '' ? busName : message}`, undefined)
    this.busName = busName
  }
}

/**
 * Whether systemd refused to start a unit because the host is stopping: with the mode `replace` only a job that can't be
 * taken back conflicts, as those of a shutdown (`systemctl(1)`, `--job-mode=replace-irreversibly`).
 */
export function isHostStopping(error: unknown): boolean {
  return (
    error instanceof SystemdError && error.busName === 'org.freedesktop.systemd1.TransactionIsDestructive'
  )
}

/** Calls a method of systemd's manager (org.freedesktop.systemd1.Manager). Throws CgroupError. */
export type CallSystemd = (member: string, ...args: readonly BusArgument[]) => Promise<void>

/** systemd's own socket for root, which exists without a D-Bus daemon too. */
export const managerSocket = '/run/systemd/private'
/** Long, because systemd is busy during the boot of a slow board. */
const callTimeoutMs = 60_000
/** The path of the job of a unit that has none. */
const noJob = '/'
/** Of a question that something else waits for. */
const askTimeoutMs = 5000

/**
 * Calls systemd over its private socket, one connection for each call: a fraction of a millisecond, where
 * starting `busctl` or `systemctl` takes ten.
 */
export function createSystemdCaller(clock: Clock, socketPath = managerSocket): CallSystemd {
  return async (member, ...args) => {
    const call = {
      destination: 'org.freedesktop.systemd1',
      path: '/org/freedesktop/systemd1',
      interface: 'org.freedesktop.systemd1.Manager',
      member,
      arguments: args,
    }
    const reply = await exchange(encodeBusCall(call, 1), clock, socketPath, callTimeoutMs)
    if (reply.errorName !== undefined) throw new SystemdError(member, reply.errorName, reply.text)
  }
}

/**
 * Asks systemd whether the host is going down: whether shutdown.target is queued to start, which is from before the first unit
 * is stopped. The manager's own state doesn't tell: until the boot has finished, it is `starting` whatever is queued
 * (`manager_state()`, systemd 252). Throws CgroupError.
 */
export async function readHostStopping(clock: Clock, socketPath = managerSocket): Promise<boolean> {
  const get = async (path: string, owner: 'Unit' | 'Job', name: string): Promise<string> => {
    const call = {
      destination: 'org.freedesktop.systemd1',
      path,
      interface: 'org.freedesktop.DBus.Properties',
      member: 'Get',
      arguments: [
        { type: 's', value: `org.freedesktop.systemd1.${owner}` },
        { type: 's', value: name },
      ],
    } as const
    const reply = await exchange(encodeBusCall(call, 1), clock, socketPath, askTimeoutMs)
    if (reply.errorName !== undefined) throw new SystemdError('Get', reply.errorName, reply.text)
    return reply.text
  }
  const job = await get('/org/freedesktop/systemd1/unit/shutdown_2etarget', 'Unit', 'Job')
  // After a soft-reboot it may be queued to stop.
  return job !== noJob && (await get(job, 'Job', 'JobType')) === 'start'
}

function exchange(message: Buffer, clock: Clock, socketPath: string, timeoutMs: number): Promise<BusReply> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath)
    const end = (): void => {
      timer.cancel()
      socket.destroy()
    }
    const fail = (reason: string, cause?: unknown): void => {
      end()
      const hint =
        errorCode(cause) === 'ENOENT' ? 'systemd does not run here: set cgroupDriver to cgroupfs.' : undefined
      reject(new CgroupError(`cannot talk to systemd at ${socketPath}: ${reason}`, cause, hint))
    }
    const timer = clock.startTimer(timeoutMs, () => fail(`no answer in ${timeoutMs} ms`))
    socket.on('error', (error) => fail(errorMessage(error), error))
    socket.on('close', () => fail('it closed the connection'))
    readReply(socket, message, (reply) => {
      end()
      resolve(reply)
    })
  })
}

/**
 * Logs in as the user that podd is (systemd verifies it by the socket), then calls. BEGIN goes with the login, as
 * systemctl sends it: a call that reached systemd in one piece with a later BEGIN would lie in its buffer until
 * something else came.
 */
function readReply(socket: Socket, message: Buffer, onReply: (reply: BusReply) => void): void {
  const user = Buffer.from(String(process.getuid?.() ?? 0)).toString('hex')
  socket.write(`\0AUTH EXTERNAL ${user}\r\nBEGIN\r\n`)
  let data = Buffer.alloc(0)
  let loggedIn = false
  socket.on('data', (chunk: Buffer) => {
    data = Buffer.concat([data, chunk])
    if (!loggedIn) {
      const line = data.indexOf('\r\n')
      if (line < 0) return
      if (!data.toString('latin1', 0, line).startsWith('OK ')) {
        socket.destroy(new Error('it refused to log podd in'))
        return
      }
      loggedIn = true
      data = data.subarray(line + 2)
      socket.write(message)
    }
    for (let reply = decodeBusReply(data); reply !== undefined; reply = decodeBusReply(data)) {
      data = data.subarray(reply.bytes)
      if (reply.serial !== undefined) onReply(reply)
    }
  })
}

/*
 * As much of the D-Bus wire protocol as it takes to call systemd's manager: method calls out, replies in
 * (D-Bus specification, "Message Protocol"). Little-endian throughout; systemd answers in the machine's order.
 */

/** A setting of a unit; `t` is an unsigned 64-bit number. */
export type UnitProperty = Scalar & { readonly name: string }

/** One argument of a method of systemd's manager. */
export type BusArgument =
  | { readonly type: 's'; readonly value: string }
  | { readonly type: 'b'; readonly value: boolean }
  /** Properties of the unit. */
  | { readonly type: 'a(sv)'; readonly value: readonly UnitProperty[] }
  /** Auxiliary units; podd never passes any. */
  | { readonly type: 'a(sa(sv))' }

export interface BusCall {
  readonly destination: string
  readonly path: string
  readonly interface: string
  readonly member: string
  readonly arguments: readonly BusArgument[]
}

class Writer {
  readonly #bytes: number[] = []

  get length(): number {
    return this.#bytes.length
  }

  align(size: number): void {
    while (this.#bytes.length % size !== 0) this.#bytes.push(0)
  }

  byte(value: number): void {
    this.#bytes.push(value)
  }

  uint32(value: number): void {
    this.align(4)
    for (const shift of [0, 8, 16, 24]) this.#bytes.push((value >>> shift) & 0xff)
  }

  uint64(value: bigint): void {
    this.align(8)
    for (let shift = 0n; shift < 64n; shift += 8n) this.#bytes.push(Number((value >> shift) & 0xffn))
  }

  text(value: string): void {
    const bytes = Buffer.from(value)
    this.uint32(bytes.length)
    this.#bytes.push(...bytes, 0)
  }

  signature(value: string): void {
    this.#bytes.push(value.length, ...Buffer.from(value), 0)
  }

  /** An array: its length counts neither itself nor what aligns the first element. */
  array(elementAlignment: number, write: () => void): void {
    this.uint32(0)
    const lengthAt = this.#bytes.length - 4
    this.align(elementAlignment)
    const start = this.#bytes.length
    write()
    const length = this.#bytes.length - start
    for (const [index, shift] of [0, 8, 16, 24].entries())
      this.#bytes[lengthAt + index] = (length >>> shift) & 0xff
  }

  toBuffer(): Buffer {
    return Buffer.from(this.#bytes)
  }
}

function writeProperty(writer: Writer, property: UnitProperty): void {
  writer.align(8)
  writer.text(property.name)
  writer.signature(property.type)
  writeScalar(writer, property)
}

type Scalar =
  | { readonly type: 's'; readonly value: string }
  | { readonly type: 'b'; readonly value: boolean }
  | { readonly type: 't'; readonly value: bigint }

function writeScalar(writer: Writer, { type, value }: Scalar): void {
  if (type === 's') writer.text(value)
  else if (type === 'b') writer.uint32(value ? 1 : 0)
  else writer.uint64(value)
}

function writeArgument(writer: Writer, argument: BusArgument): void {
  switch (argument.type) {
    case 's':
    case 'b':
      writeScalar(writer, argument)
      break
    case 'a(sv)':
      writer.array(8, () => {
        for (const property of argument.value) writeProperty(writer, property)
      })
      break
    case 'a(sa(sv))':
      writer.array(8, () => undefined)
      break
  }
}

const methodCall = 1
const headerField = {
  path: 1,
  interface: 2,
  member: 3,
  errorName: 4,
  replySerial: 5,
  destination: 6,
  signature: 8,
}

/** The bytes of a method call; `serial` is what its reply will name. */
export function encodeBusCall(call: BusCall, serial: number): Buffer {
  const body = new Writer()
  for (const argument of call.arguments) writeArgument(body, argument)
  const header = new Writer()
  for (const value of [0x6c, methodCall, 0, 1]) header.byte(value)
  header.uint32(body.length)
  header.uint32(serial)
  header.array(8, () => {
    const field = (code: number, type: 's' | 'o', value: string): void => {
      header.align(8)
      header.byte(code)
      header.signature(type)
      header.text(value)
    }
    field(headerField.path, 'o', call.path)
    field(headerField.interface, 's', call.interface)
    field(headerField.member, 's', call.member)
    field(headerField.destination, 's', call.destination)
    header.align(8)
    header.byte(headerField.signature)
    header.signature('g')
    header.signature(call.arguments.map(({ type }) => type).join(''))
  })
  header.align(8)
  return Buffer.concat([header.toBuffer(), body.toBuffer()])
}

/** A received message. */
interface BusReply {
  /** The call that it answers; undefined for signals and other unsolicited messages. */
  readonly serial: number | undefined
  /** `org.freedesktop.systemd1.UnitExists` and the like, where the call failed. */
  readonly errorName: string | undefined
  /** The first argument, where it is a text: an error's message, or the value of a property; of a job its path. */
  readonly text: string
  /** The length of this message in bytes. */
  readonly bytes: number
}

const errorReply = 3

/** Decodes the first message of the received bytes; undefined while it is incomplete. */
export function decodeBusReply(data: Buffer): BusReply | undefined {
  if (data.length < 16) return undefined
  const little = data[0] === 0x6c
  const uint32 = (at: number): number => (little ? data.readUInt32LE(at) : data.readUInt32BE(at))
  const fieldsEnd = 16 + uint32(12)
  const bodyAt = alignUp(fieldsEnd, 8)
  const bytes = bodyAt + uint32(4)
  if (data.length < bytes) return undefined
  const textAt = (at: number): string => data.toString('utf8', at + 4, at + 4 + uint32(at))
  let serial: number | undefined
  let errorName: string | undefined
  let bodySignature = ''
  const textOfBody = (): string => {
    if (bodySignature.startsWith('s')) return textAt(bodyAt)
    if (bodySignature !== 'v') return ''
    // A variant has its own signature first: its length, its type and a zero.
    const type = data.toString('latin1', bodyAt + 1, bodyAt + 1 + (data[bodyAt] ?? 0))
    if (type === 's') return textAt(bodyAt + 4)
    // A job: its number, aligned as a struct is, and its path.
    return type === '(uo)' ? textAt(bodyAt + 12) : ''
  }
  for (let at = 16; at < fieldsEnd;) {
    at = alignUp(at, 8)
    const code = data[at]
    const typeLength = data[at + 1] ?? 0
    const type = data.toString('latin1', at + 2, at + 2 + typeLength)
    at += 3 + typeLength
    if (type === 'g') {
      const length = data[at] ?? 0
      if (code === headerField.signature) bodySignature = data.toString('latin1', at + 1, at + 1 + length)
      at += length + 2
      continue
    }
    at = alignUp(at, 4)
    if (type === 'u') {
      if (code === headerField.replySerial) serial = uint32(at)
      at += 4
      continue
    }
    if (code === headerField.errorName) errorName = textAt(at)
    at += 4 + uint32(at) + 1
  }
  return {
    serial,
    errorName: data[1] === errorReply ? (errorName ?? 'unknown') : undefined,
    text: textOfBody(),
    bytes,
  }
}

function alignUp(at: number, size: number): number {
  return Math.ceil(at / size) * size
}
