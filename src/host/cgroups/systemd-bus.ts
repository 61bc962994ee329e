import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { decodeBusReply, encodeBusCall } from './systemd-message.ts'
import type { BusArgument, BusReply } from './systemd-message.ts'
import { CgroupError } from './cgroups.ts'

/** systemd refused; `busName` is the reason (`org.freedesktop.systemd1.UnitExists`). */
export class SystemdError extends CgroupError {
  readonly busName: string

  constructor(member: string, busName: string, message: string) {
    super(`systemd refused ${member}: ${message === '' ? busName : message}`, undefined)
    this.busName = busName
  }
}

/** Calls a method of systemd's manager (org.freedesktop.systemd1.Manager). Throws CgroupError. */
export type CallSystemd = (member: string, ...args: readonly BusArgument[]) => Promise<void>

/** systemd's own socket for root, which exists without a D-Bus daemon too. */
const managerSocket = '/run/systemd/private'
/** Long, because systemd is busy during the boot of a slow board. */
const callTimeoutMs = 60_000

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
    const reply = await exchange(encodeBusCall(call, 1), clock, socketPath)
    if (reply.errorName !== undefined) throw new SystemdError(member, reply.errorName, reply.text)
  }
}

function exchange(message: Buffer, clock: Clock, socketPath: string): Promise<BusReply> {
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
    const timer = clock.startTimer(callTimeoutMs, () => fail(`no answer in ${callTimeoutMs} ms`))
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
