import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import type {
  AnyDefinition,
  MessageTypeDefinition,
  MethodDefinition as LoadedMethod,
  ServiceDefinition as LoadedService,
} from '@grpc/proto-loader'
import { PoddError } from '../base/errors.ts'

/** The files of proto/: what podd says to the runtime, and to containers with gRPC probes. */
export type ProtoFile =
  | 'cri-v1.proto'
  | 'containerd-events.proto'
  | 'containerd-tasks.proto'
  | 'containerd-containers.proto'
  | 'containerd-content.proto'
  | 'containerd-snapshots.proto'
  | 'containerd-leases.proto'
  | 'containerd-images.proto'
  | 'grpc-health.proto'

/** One RPC on the wire. */
export type WireMethod<Request = object, Reply = object> = Pick<
  MethodDefinition<Request, Reply>,
  'path' | 'requestSerialize' | 'responseDeserialize'
>

/** What one proto file defines. Names are full: `runtime.v1.RuntimeService`. */
export interface LoadedProto {
  /** The methods of a service by their proto name (`RunPodSandbox`). Throws PoddError INTERNAL if there is no such service. */
  service(name: string): ServiceDefinition
  /** Decodes one message type; throws where the bytes are none. Throws PoddError INTERNAL if there is no such message. */
  decoder(name: string): (bytes: Buffer) => object
}

/** The shapes that src/cri-types has: 64-bit integers as numbers, exact up to 2^53, and nothing absent but messages. */
const shapes = { longs: Number, enums: String, defaults: true, arrays: true, objects: true }

const loaded = new Map<ProtoFile, LoadedProto>()

/** The definitions, ready for calls. A file is read when it is first asked for. */
export function loadProto(file: ProtoFile): LoadedProto {
  const proto = loaded.get(file) ?? readProto(file)
  loaded.set(file, proto)
  return proto
}

function readProto(file: ProtoFile): LoadedProto {
  const services = new Map<string, ServiceDefinition>()
  const decoders = new Map<string, (bytes: Buffer) => object>()
  for (const [name, definition] of Object.entries(loadSync(protoPath(file), shapes))) {
    if (isService(definition))
      services.set(
        name,
        Object.fromEntries(
          Object.entries(definition).map(([rpc, method]) => [rpc, withoutDescriptors(method)]),
        ),
      )
    else if (isMessage(definition)) decoders.set(name, definition.deserialize)
  }
  return {
    service: (name) => services.get(name) ?? throwUndefined(file, name),
    decoder: (name) => decoders.get(name) ?? throwUndefined(file, name),
  }
}

/** What calls need: descriptors of all messages, which proto-loader gives with each method, take half a mebibyte. */
function withoutDescriptors(method: LoadedMethod<object, object>): MethodDefinition<object, object> {
  const { path, requestStream, responseStream } = method
  const { requestSerialize, requestDeserialize, responseSerialize, responseDeserialize } = method
  return {
    path,
    requestStream,
    responseStream,
    requestSerialize,
    requestDeserialize,
    responseSerialize,
    responseDeserialize,
  }
}

function isService(definition: AnyDefinition): definition is LoadedService {
  return !('format' in definition)
}

function isMessage(definition: AnyDefinition): definition is MessageTypeDefinition<object, object> {
  return 'deserialize' in definition && 'format' in definition
}

function throwUndefined(file: ProtoFile, name: string): never {
  throw new PoddError('INTERNAL', `${file} does not define ${name}`)
}

/** Beside the bundled main.js, or at the repository's root for the sources. */
function protoPath(file: ProtoFile): string {
  const bundled = fileURLToPath(new URL(`proto/${file}`, import.meta.url))
  return existsSync(bundled) ? bundled : fileURLToPath(new URL(`../../proto/${file}`, import.meta.url))
}
