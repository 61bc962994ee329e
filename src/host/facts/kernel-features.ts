import { gunzipSync } from 'node:zlib'
import type { KernelFeature } from '../../decide/doctor/host-facts.ts'
import type { HostProbe } from '../host-probe.ts'

interface FeatureSource {
  readonly name: string
  readonly purpose: string
  readonly option: string
  /** The module that provides it, if it can be one. */
  readonly module?: string
  /** A path that exists when the kernel has it. */
  readonly evidence?: string
}

/** The kernel features that pods need. */
const featureSources: readonly FeatureSource[] = [
  {
    name: 'overlayfs',
    purpose: 'image layers are stacked with it',
    option: 'CONFIG_OVERLAY_FS',
    module: 'overlay',
    evidence: '/sys/module/overlay',
  },
  {
    name: 'bridge',
    purpose: "the pods' network is a bridge",
    option: 'CONFIG_BRIDGE',
    module: 'bridge',
    evidence: '/sys/module/bridge',
  },
  {
    name: 'veth',
    purpose: 'pods are plugged into their network with it',
    option: 'CONFIG_VETH',
    module: 'veth',
    evidence: '/sys/module/veth',
  },
  {
    name: 'multiport',
    purpose: 'host ports are forwarded with this match of iptables',
    option: 'CONFIG_NETFILTER_XT_MATCH_MULTIPORT',
    module: 'xt_multiport',
  },
  {
    name: 'comment',
    purpose: "the pods' firewall rules are marked with this match of iptables",
    option: 'CONFIG_NETFILTER_XT_MATCH_COMMENT',
    module: 'xt_comment',
  },
  {
    name: 'seccomp',
    purpose: 'the default seccomp profile of pods needs it',
    option: 'CONFIG_SECCOMP_FILTER',
    evidence: '/proc/sys/kernel/seccomp/actions_avail',
  },
  {
    name: 'user namespaces',
    purpose: 'pods with hostUsers: false need them',
    option: 'CONFIG_USER_NS',
    evidence: '/proc/self/ns/user',
  },
]

/**
 * The features of the kernel: by evidence in /sys and /proc, else by its build config and the modules installed for it.
 * A module that is built but not installed (a kernel updated under the running one) counts as absent.
 */
export function readKernelFeatures(probe: HostProbe, release: string): readonly KernelFeature[] {
  const config = readKernelConfig(probe, release)
  const modules = readModules(probe, release)
  return featureSources.map((source) => ({
    name: source.name,
    purpose: source.purpose,
    option: source.option,
    present: hasFeature(source, probe, { config, modules }),
  }))
}

interface KernelBuild {
  /** Undefined where the kernel doesn't show it. */
  readonly config: string | undefined
  /** modules.dep and modules.builtin; undefined where neither is there. */
  readonly modules: string | undefined
}

function hasFeature(
  source: FeatureSource,
  probe: HostProbe,
  { config, modules }: KernelBuild,
): boolean | undefined {
  if (source.evidence !== undefined && probe.exists(source.evidence)) return true
  const built = new RegExp(`^${source.option}=([ym])$`, 'm').exec(config ?? '')?.[1]
  if (built === 'y') return true
  if (config !== undefined && built === undefined) return false
  const installed =
    modules === undefined || source.module === undefined
      ? undefined
      : new RegExp(`/${source.module}\\.ko`, 'm').test(modules)
  if (built === 'm') return installed ?? false
  return installed
}

function readKernelConfig(probe: HostProbe, release: string): string | undefined {
  const packed = probe.readBytes('/proc/config.gz')
  if (packed !== undefined) return gunzipSync(packed).toString('utf8')
  return probe.readText(`/boot/config-${release}`) ?? probe.readText(`/lib/modules/${release}/config`)
}

function readModules(probe: HostProbe, release: string): string | undefined {
  const lists = ['modules.dep', 'modules.builtin'].map((name) =>
    probe.readText(`/lib/modules/${release}/${name}`),
  )
  const found = lists.filter((list) => list !== undefined)
  return found.length === 0 ? undefined : found.join('\n')
}
