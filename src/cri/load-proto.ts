import type { MethodDefinition, ServiceDefinition } from '@grpc/grpc-js'
import { PoddError } from '../base/errors.ts'
import containerdContainers from '../cri-types/containerd-containers.wire.json' with { type: 'json' }
import containerdContent from '../cri-types/containerd-content.wire.json' with { type: 'json' }
import containerdEvents from '../cri-types/containerd-events.wire.json' with { type: 'json' }
import containerdImages from '../cri-types/containerd-images.wire.json' with { type: 'json' }
import containerdLeases from '../cri-types/containerd-leases.wire.json' with { type: 'json' }
import containerdSnapshots from '../cri-types/containerd-snapshots.wire.json' with { type: 'json' }
import containerdTasks from '../cri-types/containerd-tasks.wire.json' with { type: 'json' }
import criV1 from '../cri-types/cri-v1.wire.json' with { type: 'json' }
import { ProtobufMessages } from '../streams/protobuf-messages.ts'
import type { ProtobufDefinitions } from '../streams/protobuf-messages.ts'

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
  'containerd-images.proto': containerdImages,
}

type Decode = (bytes: Uint8Array) => object

/** What one proto file defines. Names are full: `runtime.v1.RuntimeService`. */
export interface LoadedProto {
  /** The methods of a service by their proto name (`RunPodSandbox`). Throws PoddError INTERNAL if there is no such service. */
  service(name: string): ServiceDefinition
  /** Decodes one message type. The decoder throws PoddError INTERNAL if there is no such message. */
  decoder(name: string): Decode
}

/** The definitions, ready for calls. They come as data that was parsed when podd was built (`npm run generate`). */
export function loadProto(file: ProtoFile): LoadedProto {
  const definitions: ProtobufDefinitions = wires[file]
  const messages = new ProtobufMessages(definitions)
  const shortName = (name: string): string => name.slice(definitions.package.length + 1)
  return {
    service(name) {
      const methods = definitions.services[shortName(name)]
      if (methods === undefined) throw new PoddError('INTERNAL', `${file} does not define ${name}`)
      return Object.fromEntries(
        Object.entries(methods).map(([method, text]) => [
          method,
          toMethod(messages, `/${name}/${method}`, text),
        ]),
      )
    },
    decoder: (name) => (bytes) => messages.decode(shortName(name), bytes),
  }
}

function toMethod(messages: ProtobufMessages, path: string, text: string): MethodDefinition<object, object> {
  const [request = '', reply = '', stream] = text.split(' ')
  return {
    path,
    requestStream: false,
    responseStream: stream !== undefined,
    requestSerialize: (message) => messages.encode(request, message),
    requestDeserialize: (bytes) => messages.decode(request, bytes),
    responseSerialize: (message) => messages.encode(reply, message),
    responseDeserialize: (bytes) => messages.decode(reply, bytes),
  }
}
