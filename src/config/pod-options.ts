import { basename } from 'node:path'
import type { SecurityLevel } from '../pod/validation/security-policy.ts'
import { reservedResources, runtimeClasses, textList } from './list-types.ts'
import { bad, duration, flag, integer, optionalPath, word, kubeletOption, poddOption } from './option-type.ts'
import type { OptionType } from './option-type.ts'

const sysctls = textList('SYSCTL', (item) =>
  /^(?:net\.|kernel\.(?:shm|msg|sem)|fs\.mqueue\.)/u.test(item)
    ? undefined
    : 'must be of a namespace that pods have: kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.*, net.*',
)

const paths = textList('PATH', (item) => (item.startsWith('/') ? undefined : 'must be an absolute path'))

const capabilities = textList('CAPABILITY', (item) =>
  /^(?:\*|[A-Z][A-Z_]*)$/u.test(item) ? undefined : 'must be a capability such as NET_ADMIN',
)

const ports = textList('PORT', (item) =>
  item === '*' || isPortRange(item) ? undefined : 'must be a port or a range such as 8000-8099',
)

function isPortRange(item: string): boolean {
  const [first, last = first, ...rest] = item
    .split('-')
    .map((end) => (/^\d{1,5}$/u.test(end) ? Number(end) : 0))
  if (first === undefined || last === undefined || rest.length > 0) return false
  return first >= 1 && first <= last && last <= 65_535
}

const registries = textList('REGISTRY', (item) =>
  /^[^\s,]+$/u.test(item)
    ? undefined
    : 'must be a registry such as registry.example or registry.example/team',
)

const otherSources = textList('SOURCE', (item) =>
  item === 'file' || item === 'url' || item === 'api' ? undefined : 'must be file, url or api',
)

/** The Pod Security Standards for the pods of one source. */
function security(
  where: string,
  source: string,
  {
    level,
    readsObjectsOf = [],
  }: { readonly level: SecurityLevel; readonly readsObjectsOf?: readonly string[] },
) {
  return {
    level: poddOption(`podSecurity.${where}.level`, level, word('privileged', 'baseline', 'restricted'), {
      doc: `The Pod Security Standard that applies to the pods of ${source}. It does not terminate running pods.`,
    }),
    hostPaths: poddOption(`podSecurity.${where}.allowedHostPaths`, [], paths, {
      secret: false,
      doc: `Directories of the host that the pods of ${source} may mount whatever the level, with their contents; podd follows symbolic links there.`,
    }),
    capabilities: poddOption(`podSecurity.${where}.allowedCapabilities`, [], capabilities, {
      secret: false,
      doc: `Capabilities that the containers of ${source} may add whatever the level; \`*\` for any.`,
    }),
    ports: poddOption(`podSecurity.${where}.allowedHostPorts`, [], ports, {
      secret: false,
      doc: `Ports of the host, or ranges of them, that the pods of ${source} may open whatever the level; \`*\` for any.`,
    }),
    registries: poddOption(`podSecurity.${where}.allowedRegistries`, [], registries, {
      defaultText: 'any',
      secret: false,
      doc: `Where the images of ${source} may come from, whatever the level: registries, or paths in them.`,
    }),
    readsObjectsOf: poddOption(`podSecurity.${where}.readsObjectsOf`, readsObjectsOf, otherSources, {
      secret: false,
      doc: `The other sources (\`file\`, \`url\`, \`api\`) whose Secrets, ConfigMaps and claims the pods of ${source} may use in their namespace, beside its own.`,
    }),
  }
}

const directory = security('file', 'the manifest directory', { level: 'privileged' })
const url = security('url', 'the URL', { level: 'baseline' })
const api = security('api', 'the API', { level: 'privileged', readsObjectsOf: ['file'] })

/** What pods may do and get; a part of the table in options.ts. */
export const podOptions = {
  seccompDefault: kubeletOption('seccompDefault', false, flag, {
    flag: 'seccomp-default',
    doc: 'Run containers that name no seccomp profile with `RuntimeDefault` instead of `Unconfined`.',
  }),
  allowedUnsafeSysctls: kubeletOption('allowedUnsafeSysctls', [], sysctls, {
    flag: 'allowed-unsafe-sysctls',
    secret: false,
    doc: 'Sysctls beyond the safe ones that pods may set, by name or by a prefix and `*`.',
  }),
  podPidsLimit: kubeletOption('podPidsLimit', -1, integer(-1, 4_194_304), {
    flag: 'pod-max-pids',
    defaultText: 'no limit',
    doc: 'How many processes and threads one pod may have; -1 for no limit.',
  }),
  cpuCfsQuota: kubeletOption('cpuCFSQuota', true, flag, {
    flag: 'cpu-cfs-quota',
    doc: 'Enforce CPU limits.',
  }),
  cpuCfsQuotaPeriodMs: kubeletOption('cpuCFSQuotaPeriod', 100, duration(1, 1000), {
    flag: 'cpu-cfs-quota-period',
    doc: 'The period over which CPU limits are enforced.',
  }),
  swapBehavior: kubeletOption('memorySwap.swapBehavior', 'NoSwap', word('NoSwap', 'LimitedSwap'), {
    zeroIsDefault: true,
    doc: 'Whether burstable pods may swap, each in proportion to its memory request (cgroup version 2 only).',
  }),
  singleProcessOomKill: kubeletOption('singleProcessOOMKill', false, flag, {
    doc: 'On cgroup version 2, let the kernel kill a single process of a container that is out of memory instead of all its processes.',
  }),
  systemReserved: kubeletOption('systemReserved', {}, reservedResources, {
    flag: 'system-reserved',
    secret: false,
    doc: 'CPU and memory reserved for the system: pods cannot request them.',
  }),
  kubeReserved: kubeletOption('kubeReserved', {}, reservedResources, {
    flag: 'kube-reserved',
    secret: false,
    doc: 'CPU and memory reserved for podd and the container runtime: pods cannot request them.',
  }),
  resolvConf: kubeletOption('resolvConf', '/etc/resolv.conf', optionalPath, {
    flag: 'resolv-conf',
    secret: false,
    doc: 'The resolver configuration of pods; they follow its changes. If it names only servers on the loopback, pods get the servers that systemd-resolved uses. An empty value gives them none.',
  }),
  runtimeClasses: poddOption('runtimeClasses', {}, runtimeClasses, {
    secret: false,
    doc: 'RuntimeClasses by name, each with the `handler` of the container runtime and an `overhead`, before those of RuntimeClass documents: `{gvisor: {handler: runsc, overhead: {memory: 64Mi}}}`.',
  }),
  directorySecurityLevel: directory.level,
  directoryAllowedHostPaths: directory.hostPaths,
  directoryAllowedCapabilities: directory.capabilities,
  directoryAllowedHostPorts: directory.ports,
  directoryAllowedRegistries: directory.registries,
  directoryReadsObjectsOf: directory.readsObjectsOf,
  urlSecurityLevel: url.level,
  urlAllowedHostPaths: url.hostPaths,
  urlAllowedCapabilities: url.capabilities,
  urlAllowedHostPorts: url.ports,
  urlAllowedRegistries: url.registries,
  urlReadsObjectsOf: url.readsObjectsOf,
  apiSecurityLevel: api.level,
  apiAllowedHostPaths: api.hostPaths,
  apiAllowedCapabilities: api.capabilities,
  apiAllowedHostPorts: api.ports,
  apiAllowedRegistries: api.registries,
  apiReadsObjectsOf: api.readsObjectsOf,
  urlGivesClusterObjects: poddOption('podSecurity.url.givesClusterObjects', false, flag, {
    doc: 'Whether the cluster-scoped objects of the URL apply to all pods: its RuntimeClasses, its default PriorityClass, and its other PriorityClasses for the pods of the manifest directory. Those of the config and of the directory always take precedence.',
  }),
} as const

/**
 * How many exited containers are kept; a part of the table in options.ts. The kubelet has flags of these names
 * (`pkg/kubelet/apis/config` has no fields for them), 1.36.
 */
export const containerOptions = {
  maximumDeadContainersPerContainer: poddOption('maximumDeadContainersPerContainer', 1, integer(-1, 1000), {
    flag: 'maximum-dead-containers-per-container',
    doc: 'How many exited containers are kept of each container of a pod, with their logs; -1 for no limit.',
  }),
  maximumDeadContainers: poddOption('maximumDeadContainers', -1, integer(-1, 1_000_000), {
    flag: 'maximum-dead-containers',
    doc: 'How many exited containers are kept of all pods together, the oldest being removed first; -1 for no limit.',
  }),
  minimumContainerTtlMs: poddOption('minimumContainerTTLDuration', 0, duration(0), {
    flag: 'minimum-container-ttl-duration',
    doc: 'How long after its creation an exited container is kept whatever the limits.',
  }),
} as const

const programs = textList('PROGRAM', (item) => {
  if (item.includes('/') && !item.startsWith('/')) return 'must be the name of a program or an absolute path'
  // The handler of a RuntimeClass (`pkg/apis/node/validation/validation.go`, 1.36).
  return /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/u.test(basename(item))
    ? undefined
    : 'must be a program whose name has only lowercase letters, digits and dashes'
})

/** At least one; no two of a name, since each is a handler of that name. */
const ociPrograms: OptionType<readonly string[]> = {
  ...programs,
  fromText: (text) => withoutTwins(programs.fromText(text)),
  fromFile: (json) => withoutTwins(programs.fromFile(json)),
}

function withoutTwins(
  read: ReturnType<OptionType<readonly string[]>['fromText']>,
): ReturnType<OptionType<readonly string[]>['fromText']> {
  if (read.kind === 'bad') return read
  const names = read.value.map((program) => basename(program))
  const twin = names.find((name, index) => names.indexOf(name) !== index)
  if (names.length === 0) return bad('must name at least one program')
  return twin === undefined ? read : bad(`must not name ${twin} twice`)
}

/** Which programs run containers; a part of the table in options.ts. */
export const ociRuntimeOptions = {
  ociRuntimes: poddOption('ociRuntimes', ['runc'], ociPrograms, {
    flag: 'oci-runtimes',
    secret: false,
    doc: 'The OCI runtimes of the embedded containerd, by name or by path: `runc`, `crun`, or another program with the arguments of runc. Each is the handler of its name for RuntimeClasses; the first runs the pods without a RuntimeClass. A change takes effect for new containers. containerd 2 needs crun 1.14.3.',
  }),
} as const
