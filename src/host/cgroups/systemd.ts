import { existsSync } from 'node:fs'
import { pollUntil } from '../../base/clock.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { QosClass } from '../../pod/schema/pod-resources.ts'
import { sharesToWeight } from '../../translate/resources.ts'
import type { PodCgroupResources } from '../../translate/resources.ts'
import { DriverCgroups } from './cgroupfs.ts'
import type { CgroupOptions } from './cgroupfs.ts'
import { childCgroups, podCgroupSettings, writeCgroup } from './files.ts'
import {
  cgroupPath,
  cgroupRootParts,
  podCgroupName,
  qosCgroupName,
  sliceName,
  CgroupError,
  bestEffortShares,
} from './layout.ts'
import type { CgroupName, PodCgroup, PodCgroups, QosShares } from './layout.ts'
import { SystemdError } from './systemd-bus.ts'
import type { CallSystemd, UnitProperty } from './systemd-bus.ts'

/** systemd's `infinity`. */
const infinity = 2n ** 64n - 1n
const realizeTimeoutMs = 30_000
const levelsGoneMs = 2000
const realizePollMs = 1

/**
 * The systemd driver: each cgroup is a transient slice that systemd makes, sets and removes when asked over
 * D-Bus, as the kubelet and runc do (`opencontainers/cgroups/systemd`).
 */
export class SystemdPodCgroups extends DriverCgroups implements PodCgroups {
  readonly #call: CallSystemd

  constructor(options: CgroupOptions, call: CallSystemd) {
    super(options, 'systemd')
    this.#call = call
  }

  async ensureQosTree(shares: QosShares): Promise<void> {
    const levels: readonly (readonly [QosClass, number])[] = [
      ['Guaranteed', shares.kubepods],
      ['Burstable', shares.burstable],
      ['BestEffort', bestEffortShares],
    ]
    for (const [qosClass, cpuShares] of levels) {
      await this.#ensureSlice(qosCgroupName(this.options.root, qosClass), [this.#sharesProperty(cpuShares)])
    }
  }

  async ensurePod(pod: PodCgroup, resources: PodCgroupResources): Promise<void> {
    const name = podCgroupName(this.options.root, pod.qosClass, pod.uid)
    await this.#ensureSlice(name, this.#podProperties(resources))
    this.#writeHugePages(name, resources)
  }

  override async removePod(uid: PodUid): Promise<readonly string[]> {
    for (const pod of this.listPods()) {
      if (pod.uid === uid) await this.#stopSlice(podCgroupName(this.options.root, pod.qosClass, uid))
    }
    return super.removePod(uid)
  }

  override async removeQosTree(): Promise<readonly string[]> {
    const left = this.listPods()
    if (left.length > 0) return left.map((pod) => this.parentOf(pod))
    for (const qosClass of ['BestEffort', 'Burstable', 'Guaranteed'] as const) {
      await this.#stopSlice(qosCgroupName(this.options.root, qosClass))
    }
    await this.#untilLevelsGone()
    await this.#stopRootSlices()
    return super.removeQosTree()
  }

  /** A cgroup root of podd's own goes too, unless it holds other cgroups. */
  async #stopRootSlices(): Promise<void> {
    const { root, system } = this.options
    for (let parts = cgroupRootParts(root); parts.length > 0; parts = parts.slice(0, -1)) {
      const path = cgroupPath(parts, 'systemd')
      if (system.hierarchies.some((hierarchy) => childCgroups(`${hierarchy.path}${path}`).length > 0)) return
      await this.#stopSlice(parts)
    }
  }

  async #ensureSlice(name: CgroupName, properties: readonly UnitProperty[]): Promise<void> {
    const slice = sliceName(name)
    try {
      await this.#call(
        'StartTransientUnit',
        { type: 's', value: slice },
        { type: 's', value: 'replace' },
        { type: 'a(sv)', value: [...this.#sliceProperties(slice), ...properties] },
        { type: 'a(sa(sv))' },
      )
      await this.#untilThere(name)
    } catch (error) {
      if (!(error instanceof SystemdError) || error.busName !== 'org.freedesktop.systemd1.UnitExists')
        throw error
      await this.#call(
        'SetUnitProperties',
        { type: 's', value: slice },
        { type: 'b', value: true },
        { type: 'a(sv)', value: properties },
      )
    }
  }

  /** systemd answers once the job is queued; the directory and its settings follow within a millisecond or two. */
  async #untilThere(name: CgroupName): Promise<void> {
    const { clock, system } = this.options
    const path = cgroupPath(name, 'systemd')
    const isThere = await pollUntil(
      clock,
      () => system.hierarchies.some((hierarchy) => existsSync(`${hierarchy.path}${path}`)),
      { periodMs: realizePollMs, timeoutMs: realizeTimeoutMs },
    )
    if (!isThere)
      throw new CgroupError(`systemd did not make ${sliceName(name)} in ${realizeTimeoutMs} ms`, undefined)
  }

  /** Waits for queued jobs of systemd: on a slow host the root would otherwise not be empty yet. */
  async #untilLevelsGone(): Promise<void> {
    await pollUntil(this.options.clock, () => this.removeQosLevels().length === 0, {
      periodMs: realizePollMs,
      timeoutMs: levelsGoneMs,
    })
  }

  async #stopSlice(name: CgroupName): Promise<void> {
    try {
      await this.#call('StopUnit', { type: 's', value: sliceName(name) }, { type: 's', value: 'replace' })
    } catch (error) {
      if (!(error instanceof SystemdError) || error.busName !== 'org.freedesktop.systemd1.NoSuchUnit')
        throw error
    }
  }

  #sliceProperties(slice: string): readonly UnitProperty[] {
    return [
      { name: 'Description', type: 's', value: `podd ${slice}` },
      { name: 'DefaultDependencies', type: 'b', value: false },
      { name: 'CPUAccounting', type: 'b', value: true },
      { name: 'MemoryAccounting', type: 'b', value: true },
      { name: 'TasksAccounting', type: 'b', value: true },
      {
        name: this.options.system.version === 2 ? 'IOAccounting' : 'BlockIOAccounting',
        type: 'b',
        value: true,
      },
    ]
  }

  #sharesProperty(cpuShares: number): UnitProperty {
    return this.options.system.version === 2
      ? { name: 'CPUWeight', type: 't', value: BigInt(sharesToWeight(cpuShares)) }
      : { name: 'CPUShares', type: 't', value: BigInt(cpuShares) }
  }

  #podProperties(resources: PodCgroupResources): readonly UnitProperty[] {
    const { cpuShares, cpuQuotaUs, cpuPeriodUs, memoryLimitBytes, pidsLimit } = resources
    const memory = this.options.system.version === 2 ? 'MemoryMax' : 'MemoryLimit'
    return [
      this.#sharesProperty(cpuShares),
      { name: 'CPUQuotaPerSecUSec', type: 't', value: quotaPerSecondUs(cpuQuotaUs, cpuPeriodUs) },
      // Supported from systemd 242 on: older ones get it only where they can't do without.
      ...(cpuQuotaUs === undefined || cpuPeriodUs === systemdPeriodUs
        ? []
        : [{ name: 'CPUQuotaPeriodUSec', type: 't', value: BigInt(cpuPeriodUs) } as const]),
      { name: memory, type: 't', value: numberOr(memoryLimitBytes) },
      { name: 'TasksMax', type: 't', value: numberOr(pidsLimit) },
    ]
  }

  /** systemd knows nothing of huge pages. */
  #writeHugePages(name: CgroupName, resources: PodCgroupResources): void {
    const { system } = this.options
    for (const { controller, file, value } of podCgroupSettings(resources, system.version, 'existing')) {
      if (controller !== 'hugetlb') continue
      for (const { path } of system.hierarchies) {
        const directory = `${path}${cgroupPath(name, 'systemd')}`
        if (existsSync(`${directory}/${file}`)) writeCgroup(directory, file, value)
      }
    }
  }
}

/** systemd's default period of a quota. */
const systemdPeriodUs = 100_000

/** Rounded up to what systemd takes, 1 % of a CPU, as runc does. */
function quotaPerSecondUs(quotaUs: number | undefined, periodUs: number): bigint {
  if (quotaUs === undefined) return infinity
  return BigInt(Math.ceil((quotaUs * 1_000_000) / periodUs / 10_000) * 10_000)
}

function numberOr(limit: number | undefined): bigint {
  return limit === undefined ? infinity : BigInt(limit)
}
