import type { Clock } from '../../base/clock.ts'
import { ContainerdRecords } from '../../containerd/client/containerd-records.ts'
import type { ContainerdChannel } from '../../containerd/client/containerd-calls.ts'
import { loadProto } from '../../cri/load-proto.ts'

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
