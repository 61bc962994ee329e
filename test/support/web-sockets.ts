import { once } from 'node:events'
import { connect } from 'node:net'
import { WebSocket } from 'ws'

/** Opens a WebSocket at the API's unix socket. Rejects where the handshake is refused. */
export async function openWebSocket(socketPath: string, path: string, protocol: string): Promise<WebSocket> {
  const socket = new WebSocket(`ws://podd${path}`, {
    createConnection: () => connect(socketPath),
    headers: { 'Sec-WebSocket-Protocol': protocol },
    perMessageDeflate: false,
  })
  // `ws` itself takes no protocol whose name has a slash.
  socket.once('upgrade', ({ headers }) => delete headers['sec-websocket-protocol'])
  await once(socket, 'open')
  return socket
}

/** The head of a handshake, as kubectl sends it. */
export function handshakeOf(path: string, protocol: string, upgrade = 'websocket', method = 'GET'): string {
  return [
    `${method} ${path} HTTP/1.1`,
    'Host: podd',
    'Connection: Upgrade',
    `Upgrade: ${upgrade}`,
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    `Sec-WebSocket-Protocol: ${protocol}`,
    '\r\n',
  ].join('\r\n')
}

/** A frame as a client sends it, masked. */
export function clientFrame(payload: Uint8Array, opcode = 2): Buffer {
  const length = payload.length
  const head =
    length < 126
      ? Buffer.from([0x80 | opcode, 0x80 | length])
      : length < 65_536
        ? Buffer.from([0x80 | opcode, 0x80 | 126, length >> 8, length & 0xff])
        : Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | 127, 0, 0, 0, 0]), uint32(length)])
  // A mask of zeros leaves the payload as it is.
  return Buffer.concat([head, Buffer.alloc(4), payload])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
