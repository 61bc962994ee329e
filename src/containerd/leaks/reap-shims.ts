import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { listProcesses, selectDescendants, signalProcess, waitForExit } from '../../host/processes.ts'
import type { HostProcess } from '../../host/processes.ts'
import { runCommand } from '../../host/run-command.ts'
import type { ContainerdPlaces } from '../process/containerd-places.ts'
import { findShims } from '../process/containerd-process.ts'

/** CRI's namespace. Whoever uses the others on this containerd (ctr, nerdctl) looks after them. */
const namespace = 'k8s.io'

/** Where containerd keeps a shim's files, below its state and below its root. */
const bundles = `io.containerd.runtime.v2.task/${namespace}`

const shimExitMs = 2000

export interface ReapShimsOptions {
  readonly places: ContainerdPlaces
  /** The ids of all containers in CRI's namespace. */
  readonly listContainers: () => Promise<readonly string[]>
  readonly clock: Clock
  readonly logger: Logger
}

/** Ends the shims whose container containerd doesn't know, with what runs below them. */
export async function reapShims(options: ReapShimsOptions): Promise<void> {
  const { places, clock, logger } = options
  // First the shims, then the containers: a container is in the books before its shim starts.
  const shims = findShims(places)
  if (shims.length === 0) return
  for (const { shim, id } of selectLeakedShims(shims, await options.listContainers())) {
    for (const child of selectDescendants(listProcesses(), [shim.pid])) signalProcess(child, 'SIGKILL')
    signalProcess(shim, 'SIGKILL')
    await waitForExit(shim, shimExitMs, clock)
    const bundle = join(places.stateDir, bundles, id)
    await runCommand('umount', ['-l', join(bundle, 'rootfs')])
    await rm(bundle, { recursive: true, force: true })
    await rm(join(places.rootDir, bundles, id), { recursive: true, force: true })
    logger.warn({ id }, 'killed an orphaned shim')
  }
}

/** The shims of CRI's namespace whose container is not among those that containerd knows there. */
export function selectLeakedShims(
  shims: readonly HostProcess[],
  known: readonly string[],
): readonly { readonly shim: HostProcess; readonly id: string }[] {
  return shims.flatMap((shim) => {
    const id = valueOf(shim.argv, '-id')
    if (id === undefined || valueOf(shim.argv, '-namespace') !== namespace) return []
    return !/^\w[\w-]*$/.test(id) || known.includes(id) ? [] : [{ shim, id }]
  })
}

function valueOf(argv: readonly string[], flag: string): string | undefined {
  const index = argv.indexOf(flag)
  return index === -1 ? undefined : argv[index + 1]
}
