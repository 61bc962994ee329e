import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import type {
  AnyDefinition,
  MessageTypeDefinition,
  PackageDefinition,
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

const loaded = new Map<ProtoFile, PackageDefinition>()

/** The definitions, ready for calls. A file is read when it is first asked for. */
export function loadProto(file: ProtoFile): LoadedProto {
  const definitions = loaded.get(file) ?? loadSync(protoPath(file), shapes)
  loaded.set(file, definitions)
  return {
    service(name) {
      const found = definitions[name]
      if (found === undefined || !isService(found)) throw undefinedIn(file, name)
      return found
    },
    decoder(name) {
      const found = definitions[name]
      if (found === undefined || !isMessage(found)) throw undefinedIn(file, name)
      return found.deserialize
    },
  }
}

function isService(definition: AnyDefinition): definition is LoadedService {
  return !('format' in definition)
}

function isMessage(definition: AnyDefinition): definition is MessageTypeDefinition<object, object> {
  return 'deserialize' in definition && 'format' in definition
}

function undefinedIn(file: ProtoFile, name: string): PoddError {
  return new PoddError('INTERNAL', `${file} does not define ${name}`)
}

/** Beside the bundled main.js, or at the repository's root for the sources. */
function protoPath(file: ProtoFile): string {
  const bundled = fileURLToPath(new URL(`proto/${file}`, import.meta.url))
  return existsSync(bundled) ? bundled : fileURLToPath(new URL(`../../proto/${file}`, import.meta.url))
}
