import { basename } from 'node:path'
import type { SecurityLevel } from '../pod/validation/security-policy.ts'
import { reservedResources, runtimeClasses, textList } from './list-types.ts'
import { duration, flag, integer, option, optionalPath, word } from './option-type.ts'
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
    level: option({
      field: `podSecurity.${where}.level`,
      type: word('privileged', 'baseline', 'restricted'),
      default: level,
      owner: 'podd',
      secret: false,
      doc: `The Pod Security Standard that applies to the pods of ${source}. It does not terminate running pods.`,
    }),
    hostPaths: option({
      field: `podSecurity.${where}.allowedHostPaths`,
      type: paths,
      default: [],
      owner: 'podd',
      secret: false,
      doc: `Directories of the host that the pods of ${source} may mount whatever the level, with their contents; podd follows symbolic links there.`,
    }),
    capabilities: option({
      field: `podSecurity.${where}.allowedCapabilities`,
      type: capabilities,
      default: [],
      owner: 'podd',
      secret: false,
      doc: `Capabilities that the containers of ${source} may add whatever the level; \`*\` for any.`,
    }),
    ports: option({
      field: `podSecurity.${where}.allowedHostPorts`,
      type: ports,
      default: [],
      owner: 'podd',
      secret: false,
      doc: `Ports of the host, or ranges of them, that the pods of ${source} may open whatever the level; \`*\` for any.`,
    }),
    registries: option({
      field: `podSecurity.${where}.allowedRegistries`,
      type: registries,
      default: [],
      defaultText: 'any',
      owner: 'podd',
      secret: false,
      doc: `Where the images of ${source} may come from, whatever the level: registries, or paths in them.`,
    }),
    readsObjectsOf: option({
      field: `podSecurity.${where}.readsObjectsOf`,
      type: otherSources,
      default: readsObjectsOf,
      owner: 'podd',
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
  seccompDefault: option({
    field: 'seccompDefault',
    flag: 'seccomp-default',
    type: flag,
    default: false,
    owner: 'kubelet',
    secret: false,
    doc: 'Run containers that name no seccomp profile with `RuntimeDefault` instead of `Unconfined`.',
  }),
  allowedUnsafeSysctls: option({
    field: 'allowedUnsafeSysctls',
    flag: 'allowed-unsafe-sysctls',
    type: sysctls,
    default: [],
    owner: 'kubelet',
    secret: false,
    doc: 'Sysctls beyond the safe ones that pods may set, by name or by a prefix and `*`.',
  }),
  podPidsLimit: option({
    field: 'podPidsLimit',
    flag: 'pod-max-pids',
    type: integer(-1, 4_194_304),
    default: -1,
    defaultText: 'no limit',
    owner: 'kubelet',
    secret: false,
    doc: 'How many processes and threads one pod may have; -1 for no limit.',
  }),
  cpuCfsQuota: option({
    field: 'cpuCFSQuota',
    flag: 'cpu-cfs-quota',
    type: flag,
    default: true,
    owner: 'kubelet',
    secret: false,
    doc: 'Enforce CPU limits.',
  }),
  cpuCfsQuotaPeriodMs: option({
    field: 'cpuCFSQuotaPeriod',
    flag: 'cpu-cfs-quota-period',
    type: duration(1, 1000),
    default: 100,
    owner: 'kubelet',
    secret: false,
    doc: 'The period over which CPU limits are enforced.',
  }),
  swapBehavior: option({
    field: 'memorySwap.swapBehavior',
    type: word('NoSwap', 'LimitedSwap'),
    default: 'NoSwap',
    owner: 'kubelet',
    secret: false,
    zeroIsDefault: true,
    doc: 'Whether burstable pods may swap, each in proportion to its memory request (cgroup version 2 only).',
  }),
  singleProcessOomKill: option({
    field: 'singleProcessOOMKill',
    type: flag,
    default: false,
    owner: 'kubelet',
    secret: false,
    doc: 'On cgroup version 2, let the kernel kill a single process of a container that is out of memory instead of all its processes.',
  }),
  systemReserved: option({
    field: 'systemReserved',
    flag: 'system-reserved',
    type: reservedResources,
    default: {},
    owner: 'kubelet',
    secret: false,
    doc: 'CPU and memory reserved for the system: pods cannot request them.',
  }),
  kubeReserved: option({
    field: 'kubeReserved',
    flag: 'kube-reserved',
    type: reservedResources,
    default: {},
    owner: 'kubelet',
    secret: false,
    doc: 'CPU and memory reserved for podd and the container runtime: pods cannot request them.',
  }),
  resolvConf: option({
    field: 'resolvConf',
    flag: 'resolv-conf',
    type: optionalPath,
    default: '/etc/resolv.conf',
    owner: 'kubelet',
    secret: false,
    doc: 'The resolver configuration of pods; they follow its changes. If it names only servers on the loopback, pods get the servers that systemd-resolved uses. An empty value gives them none.',
  }),
  runtimeClasses: option({
    field: 'runtimeClasses',
    type: runtimeClasses,
    default: {},
    owner: 'podd',
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
  urlGivesClusterObjects: option({
    field: 'podSecurity.url.givesClusterObjects',
    type: flag,
    default: false,
    owner: 'podd',
    secret: false,
    doc: 'Whether the cluster-scoped objects of the URL apply to all pods: its RuntimeClasses, its default PriorityClass, and its other PriorityClasses for the pods of the manifest directory. Those of the config and of the directory always take precedence.',
  }),
} as const

/**
 * How many exited containers are kept; a part of the table in options.ts. The kubelet has flags of these names
 * (`pkg/kubelet/apis/config` has no fields for them), 1.36.
 */
export const containerOptions = {
  maximumDeadContainersPerContainer: option({
    field: 'maximumDeadContainersPerContainer',
    flag: 'maximum-dead-containers-per-container',
    type: integer(-1, 1000),
    default: 1,
    owner: 'podd',
    secret: false,
    doc: 'How many exited containers are kept of each container of a pod, with their logs; -1 for no limit.',
  }),
  maximumDeadContainers: option({
    field: 'maximumDeadContainers',
    flag: 'maximum-dead-containers',
    type: integer(-1, 1_000_000),
    default: -1,
    owner: 'podd',
    secret: false,
    doc: 'How many exited containers are kept of all pods together, the oldest being removed first; -1 for no limit.',
  }),
  minimumContainerTtlMs: option({
    field: 'minimumContainerTTLDuration',
    flag: 'minimum-container-ttl-duration',
    type: duration(0),
    default: 0,
    owner: 'podd',
    secret: false,
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
  if (names.length === 0) return { kind: 'bad', message: 'must name at least one program' }
  return twin === undefined ? read : { kind: 'bad', message: `must not name ${twin} twice` }
}

/** Which programs run containers; a part of the table in options.ts. */
export const ociRuntimeOptions = {
  ociRuntimes: option({
    field: 'ociRuntimes',
    flag: 'oci-runtimes',
    type: ociPrograms,
    default: ['runc'],
    owner: 'podd',
    secret: false,
    doc: 'The OCI runtimes of the embedded containerd, by name or by path: `runc`, `crun`, or another program with the arguments of runc. Each is the handler of its name for RuntimeClasses; the first runs the pods without a RuntimeClass. A change takes effect for new containers. containerd 2 needs crun 1.14.3.',
  }),
} as const
