import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { PoddConfig } from '../../config/options.ts'
import { CgroupfsPodCgroups } from '../../host/cgroups/cgroupfs.ts'
import type { PodCgroups, CgroupChoice, CgroupSystem } from '../../host/cgroups/layout.ts'
import { readCgroupChoice, saveCgroupChoice } from '../../host/cgroups/layout.ts'
import { createSystemdCaller } from '../../host/cgroups/systemd-bus.ts'
import { SystemdPodCgroups } from '../../host/cgroups/systemd.ts'
import type { StateReport } from '../../store/state-report.ts'
import { rootOf } from './keep-cgroups.ts'

interface CgroupTreesOptions {
  readonly config: PoddConfig
  readonly system: CgroupSystem
  /** `askCgroupDriver` waits for the runtime. */
  readonly runtime: { askCgroupDriver(): Promise<CgroupChoice['driver']> }
  readonly report: StateReport
  readonly clock: Clock
  readonly logger: Logger
}

/** The trees of cgroups that pods may be in: the one that is used, and one that an earlier podd used. */
export class CgroupTrees {
  readonly #options: CgroupTreesOptions

  constructor(options: CgroupTreesOptions) {
    this.#options = options
  }

  of({ root, driver }: CgroupChoice): PodCgroups {
    const { clock, system } = this.#options
    const where = { system, root, clock }
    return driver === 'systemd'
      ? new SystemdPodCgroups(where, createSystemdCaller(clock))
      : new CgroupfsPodCgroups(where)
  }

  /** Opens the tree to use, and records it. Removes an earlier one, as far as it is empty. */
  async open(): Promise<PodCgroups> {
    const { config, logger, report, runtime } = this.#options
    const root = rootOf(config)
    const driver = await runtime.askCgroupDriver()
    const before = readCgroupChoice(config.rootDir)
    if (before !== undefined && (before.root !== root || before.driver !== driver)) {
      // It has no pods left, or it would still be in use.
      const left = await this.of(before).removeQosTree()
      if (left.length > 0) logger.warn({ path: left.join(', ') }, 'the old cgroups are still in use')
    }
    try {
      saveCgroupChoice(config.rootDir, { root, driver }, report)
    } catch (error) {
      // A full disk must not prevent pods from being terminated, which frees space.
      logger.warn({ err: error, path: config.rootDir }, 'cannot record which cgroups are used')
    }
    return this.of({ root, driver })
  }
}
