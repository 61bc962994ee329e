import type { MethodDefinition, ServiceDefinition } from '@grpc/proto-loader'
import { PoddError } from '../base/errors.ts'

/** `grpc.health.v1.Health.Check`, ready to be called. */
export type HealthCheckMethod = MethodDefinition<object, object>

/** Reads proto/grpc-health.proto; rejects with PoddError `INTERNAL` when the file isn't what it is taken for. */
export async function loadHealthCheck(protoPath: string): Promise<HealthCheckMethod> {
  const { load } = await import('@grpc/proto-loader')
  const service = (await load(protoPath, { enums: String, defaults: true }))['grpc.health.v1.Health']
  const check = isService(service) ? service['Check'] : undefined
  if (check === undefined)
    throw new PoddError('INTERNAL', `${protoPath} defines no grpc.health.v1.Health.Check`)
  return check
}

function isService(definition: object | undefined): definition is ServiceDefinition {
  return definition !== undefined && !('format' in definition)
}
