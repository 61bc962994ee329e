import { join } from 'node:path'
import { removeTree } from '../../base/atomic-file.ts'
import type { Clock } from '../../base/clock.ts'
import type { OrphanCollector } from '../../decide/node/plan-orphans.ts'
import { listProcesses, selectDescendants, signalProcess, waitForExit } from '../../host/processes.ts'
import type { HostProcess } from '../../host/processes.ts'
import { runCommand } from '../../host/run-command.ts'
import { findShims } from '../process/containerd-process.ts'
import type { ContainerdInventory } from './containerd-inventory.ts'

/** CRI's namespace. The other namespaces belong to other clients (ctr, nerdctl). */
const namespace = 'k8s.io'

/** Where containerd keeps a shim's files, below its state and below its root. */
const bundles = `io.containerd.runtime.v2.task/${namespace}`

const shimExitMs = 2000

/**
 * Sandboxes, and containers without a task, that containerd records and CRI does not list. A containerd that is killed
 * while it creates or removes a sandbox leaves them (1.6 and 2.1); nor does CRI list each sandbox whose creation was
 * cancelled (2.1), or each container whose creation failed on a full disk.
 */
export function containerOrphans(inventory: ContainerdInventory): OrphanCollector {
  return {
    kind: 'runtime-container',
    async list(look) {
      const read = await inventory.read(look)
      if (read === undefined) return []
      const tasks = new Set(read.tasks.map(({ id }) => id))
      const found = [...read.sandboxes, ...read.containers.filter((id) => !tasks.has(id))]
      return found
        .filter((id) => !read.known.has(id))
        .map((id) => ({
          kind: 'runtime-container',
          id,
          message: 'containerd has it, and CRI does not list it',
        }))
    },
    async remove({ id }) {
      // The previous removal may have taken long.
      if ((await inventory.known.list()).has(id)) return false
      if ((await inventory.records.tasks()).some((task) => task.id === id))
        await inventory.ctr(['tasks', 'delete', '--force', id])
      await inventory.ctr(['containers', 'delete', id])
      return true
    },
  }
}

/**
 * Tasks that were created and never started: a podd that is killed during StartContainer leaves one, which CRI reports as
 * exited and then can't remove (1.6).
 */
export function taskOrphans(inventory: ContainerdInventory): OrphanCollector {
  return {
    kind: 'task',
    async list(look) {
      const read = await inventory.read(look)
      return (read?.tasks ?? [])
        .filter(({ status }) => status === 'CREATED')
        .map(({ id }) => ({ kind: 'task', id, message: 'it was created and never started' }))
    },
    async remove({ id }) {
      const task = (await inventory.records.tasks()).find((each) => each.id === id)
      if (task?.status !== 'CREATED') return false
      await inventory.ctr(['tasks', 'delete', '--force', id])
      return true
    },
  }
}

/** Shims whose container containerd does not know, with what runs below them. */
export function shimOrphans(inventory: ContainerdInventory, clock: Clock): OrphanCollector {
  const { places } = inventory
  const find = (all: ReadonlySet<string>) => selectLeakedShims(findShims(places), all)
  return {
    kind: 'shim',
    async list(look) {
      // First the shims, then the containers: a container is recorded before its shim starts.
      const shims = findShims(places)
      const read = shims.length === 0 ? undefined : await inventory.read(look)
      if (read === undefined || selectLeakedShims(shims, read.all).length === 0) return []
      // An earlier collector may have read them before the shims were listed.
      return selectLeakedShims(shims, await inventory.listAll()).map(({ id }) => ({
        kind: 'shim',
        id,
        message: 'its container is unknown to containerd',
      }))
    },
    async remove({ id }) {
      const all = await inventory.listAll()
      const leaked = find(all).find((each) => each.id === id)
      if (leaked === undefined || all.has(id)) return false
      const { shim } = leaked
      for (const child of selectDescendants(listProcesses(), [shim.pid])) signalProcess(child, 'SIGKILL')
      signalProcess(shim, 'SIGKILL')
      await waitForExit(shim, shimExitMs, clock)
      const bundle = join(places.stateDir, bundles, id)
      await runCommand('umount', ['-l', join(bundle, 'rootfs')])
      await removeTree(bundle)
      await removeTree(join(places.rootDir, bundles, id))
      return true
    },
  }
}

/** The shims of CRI's namespace whose container is not among those that containerd knows there. */
export function selectLeakedShims(
  shims: readonly HostProcess[],
  known: ReadonlySet<string>,
): readonly { readonly shim: HostProcess; readonly id: string }[] {
  return shims.flatMap((shim) => {
    const id = valueOf(shim.argv, '-id')
    if (id === undefined || valueOf(shim.argv, '-namespace') !== namespace) return []
    return !/^\w[\w-]*$/.test(id) || known.has(id) ? [] : [{ shim, id }]
  })
}

function valueOf(argv: readonly string[], flag: string): string | undefined {
  const index = argv.indexOf(flag)
  return index === -1 ? undefined : argv[index + 1]
}
