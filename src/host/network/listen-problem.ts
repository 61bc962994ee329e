import { once } from 'node:events'
import { createServer } from 'node:net'
import { errorMessage } from '../../base/errors.ts'

/** Why a program can't listen at this address; undefined where it can. Listens there for a moment. */
export async function listenProblem(address: {
  readonly host: string
  readonly port: number
}): Promise<string | undefined> {
  const server = createServer((socket) => socket.destroy())
  const listening = once(server, 'listening')
  server.listen({ host: address.host, port: address.port })
  try {
    await listening
  } catch (error) {
    return errorMessage(error)
  }
  server.close()
  await once(server, 'close')
  return undefined
}
