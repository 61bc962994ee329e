import { forwardProtocol } from '../../api/routes.ts'
import { joinStreams } from '../../base/join-streams.ts'
import { ApiError } from '../requests/api-error.ts'
import { countParam } from '../requests/query.ts'
import type { ForwardCodec } from './codecs.ts'

/** podd's own: each upgraded connection carries the bytes of one connection to `?port`. */
export const poddForward: ForwardCodec = {
  method: 'POST',
  root: '/podd/v1',
  answer: ({ upgrade }) => (upgrade === forwardProtocol ? { Upgrade: forwardProtocol } : undefined),
  async prepare(query, dial) {
    const port = countParam(query, 'port') ?? 0
    if (port < 1 || port > 65_535) throw new ApiError(400, 'port must be a number from 1 to 65535')
    const target = await dial(port)
    return (connection) => joinStreams(connection, target)
  },
}
