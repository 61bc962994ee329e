import type { Clock } from '../../base/clock.ts'
import { ContainerdRecords } from '../../runtime/containerd/records.ts'
import type { ContainerdChannel } from '../../runtime/containerd/records.ts'
import { ImageRecords } from '../../runtime/containerd/image-records.ts'
import { loadProto } from '../../grpc/load-proto.ts'
import { RuntimeConnection } from '../../runtime/connection.ts'

/** containerd's own records, over a connection to it. */
export function createRecords(channel: ContainerdChannel, clock: Clock): ContainerdRecords {
  const definitions = {
    containers: loadProto('containerd-containers.proto'),
    tasks: loadProto('containerd-tasks.proto'),
    snapshots: loadProto('containerd-snapshots.proto'),
    leases: loadProto('containerd-leases.proto'),
  }
  return new ContainerdRecords({ channel, definitions, clock })
}

/** Its records of images, over a connection of their own. The first call connects; it fails at once where none listens. */
export function openImageRecords(socketPath: string, clock: Clock): ImageRecords {
  const definitions = {
    images: loadProto('containerd-images.proto'),
    leases: loadProto('containerd-leases.proto'),
  }
  const channel = new RuntimeConnection({ endpoint: `unix://${socketPath}`, clock, reconnectWaitMs: 0 })
  return new ImageRecords({ channel, definitions, clock })
}
