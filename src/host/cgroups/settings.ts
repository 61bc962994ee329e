import { sharesToWeight } from '../../translate/resources.ts'
import type { PodCgroupResources } from '../../translate/resources.ts'

/** One thing to write to a cgroup. */
export interface CgroupSetting {
  readonly controller: 'cpu' | 'memory' | 'pids' | 'hugetlb'
  readonly file: string
  readonly value: string
}

/**
 * The writes that apply a pod's resources to its cgroup, in an order that the kernel accepts. Absent limits are written
 * only to an existing cgroup, to lift earlier ones.
 */
export function podCgroupSettings(
  resources: PodCgroupResources,
  version: 1 | 2,
  cgroup: 'fresh' | 'existing',
): readonly CgroupSetting[] {
  const { cpuShares, cpuQuotaUs, cpuPeriodUs, memoryLimitBytes, pidsLimit } = resources
  const all: readonly (CgroupSetting & { readonly unlimited: boolean })[] =
    version === 2
      ? [
          setting('cpu', 'cpu.weight', sharesToWeight(cpuShares)),
          setting('cpu', 'cpu.max', `${cpuQuotaUs ?? 'max'} ${cpuPeriodUs}`, cpuQuotaUs === undefined),
          setting('memory', 'memory.max', memoryLimitBytes ?? 'max', memoryLimitBytes === undefined),
          setting('pids', 'pids.max', pidsLimit ?? 'max', pidsLimit === undefined),
          ...resources.hugepageLimits.map(({ pageSize, limitBytes }) =>
            setting('hugetlb', `hugetlb.${pageSize}.max`, limitBytes),
          ),
        ]
      : [
          setting('cpu', 'cpu.shares', cpuShares),
          setting('cpu', 'cpu.cfs_period_us', cpuPeriodUs, cpuQuotaUs === undefined),
          setting('cpu', 'cpu.cfs_quota_us', cpuQuotaUs ?? -1, cpuQuotaUs === undefined),
          setting('memory', 'memory.limit_in_bytes', memoryLimitBytes ?? -1, memoryLimitBytes === undefined),
          setting('pids', 'pids.max', pidsLimit ?? 'max', pidsLimit === undefined),
          ...resources.hugepageLimits.map(({ pageSize, limitBytes }) =>
            setting('hugetlb', `hugetlb.${pageSize}.limit_in_bytes`, limitBytes),
          ),
        ]
  return all
    .filter(({ unlimited }) => cgroup === 'existing' || !unlimited)
    .map(({ controller, file, value }) => ({ controller, file, value }))
}

function setting(
  controller: CgroupSetting['controller'],
  file: string,
  value: string | number,
  unlimited = false,
): CgroupSetting & { readonly unlimited: boolean } {
  return { controller, file, value: String(value), unlimited }
}

/** The shares of one level of the tree. */
export function sharesSetting(cpuShares: number, version: 1 | 2): CgroupSetting {
  return version === 2
    ? { controller: 'cpu', file: 'cpu.weight', value: String(sharesToWeight(cpuShares)) }
    : { controller: 'cpu', file: 'cpu.shares', value: String(cpuShares) }
}
