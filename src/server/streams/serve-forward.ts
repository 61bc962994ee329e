import type { Duplex } from 'node:stream'
import { errorMessage } from '../../base/errors.ts'
import { joinStreams } from '../../base/http.ts'
import { SpdySession } from '../../runtime/spdy-session.ts'
import type { SpdyStream } from '../../runtime/spdy-session.ts'

type Dial = (port: number) => Promise<Duplex>

/**
 * Serves forwarded connections over SPDY/3.1: a pair of streams each, for its data and its error, joined by their
 * header `requestid` (`kubelet/pkg/cri/streaming/portforward/httpstream.go`, 1.36). Runs until the client ends the
 * connection; never rejects.
 */
export async function serveForward(connection: Duplex, dial: Dial): Promise<void> {
  const single = new Map<string, SpdyStream>()
  const session = new SpdySession(connection, (stream) => {
    const port = portOf(stream.headers['port'])
    const id = stream.headers['requestid']
    const type = stream.headers['streamtype']
    if (port === undefined || id === undefined || (type !== 'data' && type !== 'error')) {
      stream.destroy()
      return
    }
    const other = single.get(id)
    if (other === undefined) {
      single.set(id, stream)
      stream.once('close', () => {
        if (single.get(id) === stream) single.delete(id)
      })
      return
    }
    single.delete(id)
    if (other.headers['streamtype'] === type) {
      other.destroy()
      stream.destroy()
      return
    }
    const [data, error] = type === 'data' ? [stream, other] : [other, stream]
    void forwardOne({ data, error }, port, dial)
  })
  await session.closed
}

async function forwardOne(
  { data, error }: { readonly data: SpdyStream; readonly error: SpdyStream },
  port: number,
  dial: Dial,
): Promise<void> {
  // The client writes nothing to it.
  error.resume()
  try {
    const target = await dial(port)
    if (data.destroyed) target.destroy()
    else await joinStreams(data, target)
  } catch (problem) {
    error.write(errorMessage(problem))
    data.resume()
    data.end()
  }
  error.end()
}

function portOf(text: string | undefined): number | undefined {
  const port = /^\d{1,5}$/u.test(text ?? '') ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? port : undefined
}
