import type { PoddConfig } from '../../config/options.ts'
import type { HostInfo } from '../../host/facts/host-info.ts'
import type { ResourceFacts } from '../../translate/resources/resources.ts'

/** What containers' resources are translated by, of the host and of the config. */
export function resourceFacts(config: PoddConfig, hostInfo: HostInfo): ResourceFacts {
  return {
    cgroupVersion: hostInfo.cgroups?.version ?? 1,
    memoryCapacityBytes: hostInfo.memoryBytes,
    minOomScoreAdj: hostInfo.minOomScoreAdj,
    cpuCfsQuota: config.cpuCfsQuota,
    cpuCfsQuotaPeriodUs: config.cpuCfsQuotaPeriodMs * 1000,
    swapController: hostInfo.swapController,
    swapBytes: config.swapBehavior === 'LimitedSwap' ? hostInfo.swapBytes : 0,
    oomKillsGroup: !config.singleProcessOomKill,
    hugePageSizes: hostInfo.hugePageSizes,
  }
}
