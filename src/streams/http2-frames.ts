/** Types of frames (RFC 9113, 6). */
export const frameTypes = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const frameFlags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const

export const settingIds = { enablePush: 2, mostStreams: 3, initialWindow: 4, mostFrameBytes: 5 } as const

/** The client's connection preface. */
export const connectionPreface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Initial sizes of windows and frames, until the peer's SETTINGS change them. */
export const firstWindowBytes = 65_535
export const firstFrameBytes = 16_384

const headBytes = 9

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly streamId: number
  readonly payload: Buffer
}

/** The peer violated HTTP/2: the connection can't be read any further. */
export class Http2Error extends Error {}

export function encodeFrame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + payload.length)
  frame.writeUIntBE(payload.length, 0, 3)
  frame[3] = type
  frame[4] = flags
  frame.writeUInt32BE(streamId, 5)
  frame.set(payload, headBytes)
  return frame
}

export function encodeSettings(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(6 * settings.length)
  settings.forEach(([id, value], index) => {
    payload.writeUInt16BE(id, 6 * index)
    payload.writeUInt32BE(value, 6 * index + 2)
  })
  return encodeFrame(frameTypes.settings, 0, 0, payload)
}

/** For WINDOW_UPDATE and RST_STREAM, which carry one number. */
export function encodeNumberFrame(type: number, streamId: number, value: number): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(value)
  return encodeFrame(type, 0, streamId, payload)
}

/** Splits received bytes into frames. */
export class FrameReader {
  #rest = Buffer.alloc(0)

  /** The frames that are complete. @throws Http2Error where one is larger than podd allows. */
  read(chunk: Buffer): Frame[] {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const frames: Frame[] = []
    while (bytes.length >= headBytes) {
      const length = bytes.readUIntBE(0, 3)
      if (length > firstFrameBytes) throw new Http2Error(`a frame of ${length} bytes is too large`)
      if (bytes.length < headBytes + length) break
      frames.push({
        type: bytes[3] ?? 0,
        flags: bytes[4] ?? 0,
        streamId: bytes.readUInt32BE(5) & 0x7fff_ffff,
        payload: bytes.subarray(headBytes, headBytes + length),
      })
      bytes = bytes.subarray(headBytes + length)
    }
    // A copy, so that bytes that were read are not kept alive.
    this.#rest = Buffer.from(bytes)
    return frames
  }
}

/** The payload without padding, and without the priority fields of HEADERS. @throws Http2Error */
export function contentOf({ type, flags, payload }: Frame): Buffer {
  let start = 0
  let end = payload.length
  if ((flags & frameFlags.padded) !== 0) {
    start = 1
    end -= payload[0] ?? 0
  }
  if (type === frameTypes.headers && (flags & frameFlags.priority) !== 0) start += 5
  if (start > end) throw new Http2Error('a frame has more padding than bytes')
  return payload.subarray(start, end)
}
