import type { PoddConfig } from '../../config/options.ts'
import type { CgroupSystem } from '../../host/cgroups/layout.ts'
import { hasPodsIn, readCgroupChoice } from '../../host/cgroups/layout.ts'

/** The effective config, and a warning about it. */
export interface KeptCgroups {
  readonly config: PoddConfig
  readonly warning: string | undefined
}

/**
 * Keeps the cgroups' root and driver while pods exist, whose cgroups would otherwise be in another place. A changed
 * setting takes effect when no pod is left, after a reboot at the latest. With an external runtime that runtime's
 * driver is used.
 */
export function keepCgroups(config: PoddConfig, system: CgroupSystem): KeptCgroups {
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
export function rootOf({ cgroupRoot }: Pick<PoddConfig, 'cgroupRoot'>): string {
  return cgroupRoot ?? '/'
}
