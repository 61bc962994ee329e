import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { findRoomProblem } from '../../runtime/containerd/process.ts'
import type { EmbeddedContainerd } from '../../runtime/embedded-containerd.ts'
import { HeldContainers } from '../../runtime/containerd/records.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import { loadProto } from '../../grpc/load-proto.ts'
import type { RuntimeConnection } from '../../runtime/connection.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import { RuntimeComparison } from './runtime-comparison.ts'

/** The comparison of CRI with the containerd behind it, podd's own (`embedded`) or another one. */
export function compareContainerd(options: {
  readonly runtime: RuntimeService
  readonly connection: RuntimeConnection
  readonly embedded: EmbeddedContainerd | undefined
  readonly instance: string
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
}): RuntimeComparison {
  const { runtime, connection, embedded, instance, events, clock, logger } = options
  return new RuntimeComparison({
    connection,
    calls: runtime,
    held: new HeldContainers({
      channel: connection,
      containers: loadProto('containerd-containers.proto'),
      tasks: loadProto('containerd-tasks.proto'),
      instance,
      clock,
    }),
    own: embedded && {
      hasFiles: (id) => existsSync(join(embedded.places.criContainersDir, id)),
      findRoomProblem: (containers) => findRoomProblem(embedded.places.rootDir, containers),
      restart: (reason) => embedded.restart(reason),
    },
    events,
    clock,
    logger,
  })
}
