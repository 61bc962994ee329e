import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { PoddConfig } from '../../config/options.ts'
import { CgroupfsPodCgroups } from '../../host/cgroups/cgroupfs.ts'
import { hasPodsIn, readCgroupChoice, saveCgroupChoice } from '../../host/cgroups/layout.ts'
import type { CgroupChoice, CgroupSystem, PodCgroups } from '../../host/cgroups/layout.ts'
import { createSystemdCaller } from '../../host/cgroups/systemd-bus.ts'
import { SystemdPodCgroups } from '../../host/cgroups/systemd.ts'
import type { StateReport } from '../../store/state-report.ts'
import type { RuntimeAccess } from '../runtime/runtime-access.ts'

/** The tree of cgroups that pods may be in by this choice: the one that is used, or one that an earlier podd used. */
export function cgroupTree(system: CgroupSystem, clock: Clock, { root, driver }: CgroupChoice): PodCgroups {
  const where = { system, root, clock }
  return driver === 'systemd'
    ? new SystemdPodCgroups(where, createSystemdCaller(clock))
    : new CgroupfsPodCgroups(where)
}

/** Opens the tree to use, once the runtime tells its driver, and records it. Removes an earlier one, as far as it is empty. */
export async function openCgroupTree(env: {
  readonly config: PoddConfig
  readonly cgroups: CgroupSystem
  readonly runtime: RuntimeAccess
  readonly report: StateReport
  readonly clock: Clock
  readonly logger: Logger
}): Promise<PodCgroups> {
  const { config, cgroups, runtime, report, clock, logger } = env
  const root = rootOf(config)
  const driver = await runtime.askCgroupDriver()
  const before = readCgroupChoice(config.rootDir)
  if (before !== undefined && (before.root !== root || before.driver !== driver)) {
    // It has no pods left, or it would still be in use.
    const left = await cgroupTree(cgroups, clock, before).removeQosTree()
    if (left.length > 0) logger.warn({ path: left.join(', ') }, 'the old cgroups are still in use')
  }
  try {
    saveCgroupChoice(config.rootDir, { root, driver }, report)
  } catch (error) {
    // A full disk must not prevent pods from being terminated, which frees space.
    logger.warn({ err: error, path: config.rootDir }, 'cannot record which cgroups are used')
  }
  return cgroupTree(cgroups, clock, { root, driver })
}

/**
 * Keeps the cgroups' root and driver while pods exist, whose cgroups would otherwise be in another place. A changed
 * setting takes effect when no pod is left, after a reboot at the latest. With an external runtime that runtime's
 * driver is used. Gives the effective config, and a warning about it.
 */
export function keepCgroups(
  config: PoddConfig,
  system: CgroupSystem,
): { readonly config: PoddConfig; readonly warning: string | undefined } {
  const kept = readCgroupChoice(config.rootDir)
  if (kept === undefined || !hasPodsIn(kept, system, config.rootDir)) return { config, warning: undefined }
  const isOwn = config.containerRuntimeEndpoint === 'embedded'
  const followed = {
    ...config,
    cgroupRoot: kept.root,
    cgroupDriver: isOwn ? kept.driver : config.cgroupDriver,
  }
  const changes = [
    ...(rootOf(config) === kept.root ? [] : [`cgroupRoot ${rootOf(config)}, not ${kept.root}`]),
    ...(!isOwn || config.cgroupDriver === 'auto' || config.cgroupDriver === kept.driver
      ? []
      : [`cgroupDriver ${config.cgroupDriver}, not ${kept.driver}`]),
  ]
  const warning = `pods live in the cgroups of before; this takes effect when they are gone: ${changes.join('; ')}`
  return { config: followed, warning: changes.length === 0 ? undefined : warning }
}

/** The configured root, `/` for the host's own. */
function rootOf({ cgroupRoot }: Pick<PoddConfig, 'cgroupRoot'>): string {
  return cgroupRoot ?? '/'
}
