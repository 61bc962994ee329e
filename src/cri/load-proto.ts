import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'
import protobuf from 'protobufjs/light.js'
import { PoddError } from '../base/errors.ts'
import { isJsonObject } from '../base/json.ts'
import containerdContainers from '../cri-types/containerd-containers.wire.json' with { type: 'json' }
import containerdContent from '../cri-types/containerd-content.wire.json' with { type: 'json' }
import containerdEvents from '../cri-types/containerd-events.wire.json' with { type: 'json' }
import containerdLeases from '../cri-types/containerd-leases.wire.json' with { type: 'json' }
import containerdSnapshots from '../cri-types/containerd-snapshots.wire.json' with { type: 'json' }
import containerdTasks from '../cri-types/containerd-tasks.wire.json' with { type: 'json' }
import criV1 from '../cri-types/cri-v1.wire.json' with { type: 'json' }

/** The wire definitions in proto/ that podd speaks with the runtime. */
export type ProtoFile = keyof typeof wires

const wires = {
  'cri-v1.proto': criV1,
  'containerd-events.proto': containerdEvents,
  'containerd-tasks.proto': containerdTasks,
  'containerd-containers.proto': containerdContainers,
  'containerd-content.proto': containerdContent,
  'containerd-snapshots.proto': containerdSnapshots,
  'containerd-leases.proto': containerdLeases,
}

type Decode = (bytes: Uint8Array) => object

/** What one proto file defines. Names are full: `runtime.v1.RuntimeService`. */
export interface LoadedProto {
  /** The methods of a service by their proto name (`RunPodSandbox`). Throws PoddError INTERNAL if there is no such service. */
  service(name: string): ServiceDefinition
  /** Decodes one message type. Throws PoddError INTERNAL if there is no such message. */
  decoder(name: string): Decode
}

/**
 * Messages as src/cri-types has them: camelCase names, 64-bit integers as numbers, enums as their
 * names; what is received has all its scalars, lists and maps, and null where a message is absent.
 */
const conversion: protobuf.IConversionOptions = {
  longs: Number,
  enums: String,
  defaults: true,
  arrays: true,
  objects: true,
}

/**
 * The definitions, ready for calls. They come as data that was parsed when podd was built (`npm run
 * generate`), and each message's code is made when it is first used: reading and compiling the proto
 * files here would cost every podd 12 MiB.
 */
export function loadProto(file: ProtoFile): LoadedProto {
  const definitions: unknown = wires[file]
  if (!isNamespace(definitions)) throw new PoddError('INTERNAL', `${file} is not a wire definition`)
  const root = protobuf.Root.fromJSON(definitions)
  return {
    service: (name) =>
      toServiceDefinition(
        lookup(file, name, () => root.lookupService(name)),
        name,
      ),
    decoder: (name) => decoderOf(lookup(file, name, () => root.lookupType(name))),
  }
}

function isNamespace(value: unknown): value is protobuf.INamespace {
  return isJsonObject(value) && isJsonObject(value['nested'])
}

function lookup<T>(file: ProtoFile, name: string, find: () => T): T {
  try {
    return find()
  } catch (error) {
    throw new PoddError('INTERNAL', `${file} does not define ${name}`, { cause: error })
  }
}

function toServiceDefinition(service: protobuf.Service, fullName: string): ServiceDefinition {
  const methods = service.methodsArray.map((method) => {
    method.resolve()
    return [method.name, toMethodDefinition(method, `/${fullName}/${method.name}`)] as const
  })
  return Object.fromEntries(methods)
}

function toMethodDefinition(method: protobuf.Method, path: string): MethodDefinition<object, object> {
  const { resolvedRequestType: request, resolvedResponseType: response } = method
  if (request === null || response === null) throw new PoddError('INTERNAL', `${path} has unknown messages`)
  return {
    path,
    requestStream: method.requestStream === true,
    responseStream: method.responseStream === true,
    requestSerialize: encoderOf(request),
    requestDeserialize: decoderOf(request),
    responseSerialize: encoderOf(response),
    responseDeserialize: decoderOf(response),
  }
}

function encoderOf(type: protobuf.Type): (message: object) => Buffer {
  return (message) => Buffer.from(type.encode(type.fromObject(message)).finish())
}

function decoderOf(type: protobuf.Type): Decode {
  return (bytes) => type.toObject(type.decode(bytes), conversion)
}
