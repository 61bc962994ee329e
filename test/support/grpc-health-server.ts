/**
 * A gRPC health server to be run in a pod's network: `grpc-health-server.ts PORT`. It says `listening`, then
 * takes lines like `orders NOT_SERVING` and says each back when it stands; of other services it knows nothing.
 */
import { createInterface } from 'node:readline'
import { Server, ServerCredentials, status } from '@grpc/grpc-js'
import type { handleUnaryCall } from '@grpc/grpc-js'
import { loadProto } from '../../src/grpc/load-proto.ts'

const health = new Map<string, string>()
const check: handleUnaryCall<{ readonly service?: string }, object> = ({ request }, reply) => {
  const known = health.get(request.service ?? '')
  if (known === undefined) reply({ code: status.NOT_FOUND, details: 'unknown service' })
  else reply(null, { status: known })
}
const server = new Server()
server.addService(loadProto('grpc-health.proto').service('grpc.health.v1.Health'), { Check: check })
server.bindAsync(`[::]:${process.argv[2]}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error
  console.log('listening')
})
const input = createInterface({ input: process.stdin })
input.on('line', (line) => {
  const [service = '', state = ''] = line.split(' ')
  health.set(service, state)
  console.log(line)
})
// Whoever started it has gone.
input.on('close', () => process.exit())
