import { PoddError } from '../base/errors.ts'
import { secretsOfUrl, showUrl } from '../base/http.ts'
import { isJsonObject, asJson } from '../base/json.ts'
import type { Json } from '../base/json.ts'
import { dnsSubdomain } from '../pod/validation/name-rules.ts'
import { apiOptions } from './api-options.ts'
import { imageOptions, pullOptions, registryOptions } from './image-options.ts'
import { logOptions, size } from './log-options.ts'
import { evictionOptions, shutdownOptions } from './node-options.ts'
import {
  addresses,
  duration,
  endpoint,
  flag,
  headers,
  integer,
  networks,
  optionalPath,
  optionalText,
  optionalUrl,
  path,
  redacted,
  withoutValues,
  word,
  kubeletOption,
  poddOption,
} from './option-type.ts'
import type { Option, OptionType } from './option-type.ts'
import { defaultRunDir } from './places.ts'
import { containerOptions, ociRuntimeOptions, podOptions } from './pod-options.ts'
import { sourceOptions, updateOptions } from './source-options.ts'

/** What bounds podd itself; a part of the table below. */
const daemonOptions = {
  daemonMemoryLimitBytes: poddOption('daemonMemoryLimit', 256 * 1024 * 1024, size, {
    flag: 'daemon-memory-limit',
    doc: 'The resident memory of podd itself above which it restarts itself; the pods keep running. A negative number for no limit.',
  }),
} as const

/**
 * All of podd's settings. The config file's reader, the flags, `podd run --help`, docs/OPTIONS.md and the
 * type PoddConfig come from this table alone. Keys name the settings in the code and carry their units.
 */
export const options = {
  staticPodPath: kubeletOption('staticPodPath', '/etc/pods', optionalPath, {
    flag: 'pod-manifest-path',
    secret: false,
    doc: 'The directory of manifests to run, or a single manifest file. An empty value disables it.',
  }),
  staticPodUrl: kubeletOption('staticPodURL', undefined, optionalUrl, {
    flag: 'manifest-url',
    secret: (url) => (url === undefined ? null : showUrl(url)),
    doc: "A URL to read manifests from; through a proxy where `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` in podd's environment say so.",
  }),
  staticPodUrlHeader: kubeletOption('staticPodURLHeader', {}, headers, {
    flag: 'manifest-url-header',
    secret: (list) => withoutValues(list),
    doc: 'Headers to send with each request to the URL. The flag may be repeated; set values that contain a comma in the config file.',
  }),
  containerRuntimeEndpoint: kubeletOption('containerRuntimeEndpoint', 'embedded', endpoint('embedded'), {
    flag: 'container-runtime-endpoint',
    secret: false,
    zeroIsDefault: true,
    doc: "Which container runtime to use: `embedded` for a containerd of podd's own, or the socket of a runtime that implements CRI v1.",
  }),
  imageServiceEndpoint: kubeletOption(
    'imageServiceEndpoint',
    undefined,
    optionalText('ENDPOINT', (value) => (/^unix:\/\/\/./u.test(value) ? undefined : 'must be unix:///PATH')),
    {
      flag: 'image-service-endpoint',
      defaultText: "the runtime's",
      secret: false,
      doc: "The socket of the image service, if it differs from the runtime's.",
    },
  ),
  ...ociRuntimeOptions,
  rootDir: poddOption('rootDir', '/var/lib/podd', path, {
    flag: 'root-dir',
    secret: false,
    doc: "Where podd keeps its state: pod records, volumes, the embedded containerd's images.",
  }),
  runDir: poddOption('runDir', defaultRunDir, path, {
    flag: 'run-dir',
    secret: false,
    doc: 'Where podd keeps sockets and other files that need not survive a reboot. The API socket is `podd.sock` in it.',
  }),
  podLogsDir: kubeletOption('podLogsDir', '/var/log/pods', path, {
    flag: 'pod-logs-dir',
    secret: false,
    zeroIsDefault: true,
    doc: 'The directory of container logs. A change takes effect when no pod is left that logs to the old one.',
  }),
  containerLogsDir: poddOption('containerLogsDir', '/var/log/containers', path, {
    flag: 'container-logs-dir',
    secret: false,
    doc: "The directory of symbolic links to each container's log, for log shippers.",
  }),
  hostnameOverride: poddOption(
    'hostnameOverride',
    undefined,
    optionalText('NAME', (value) =>
      dnsSubdomain(value).length === 0
        ? undefined
        : 'must be a lowercase host name of letters, digits, dots and dashes',
    ),
    {
      flag: 'hostname-override',
      defaultText: "the host's name, in lower case and with dashes for what a DNS name can't have",
      secret: false,
      doc: "The node's name, as pods and events show it.",
    },
  ),
  nodeIps: poddOption('nodeIP', [], addresses, {
    flag: 'node-ip',
    defaultText: 'the address of the default route',
    secret: false,
    doc: "The node's address; two separated by a comma for dual stack.",
  }),
  cgroupRoot: kubeletOption('cgroupRoot', undefined, optionalPath, {
    flag: 'cgroup-root',
    defaultText: "the host's root cgroup",
    secret: false,
    doc: 'The cgroup under which `kubepods` is created. A change takes effect when no pod is left in the old one.',
  }),
  cgroupDriver: kubeletOption('cgroupDriver', 'auto', word('auto', 'cgroupfs', 'systemd'), {
    flag: 'cgroup-driver',
    zeroIsDefault: true,
    doc: 'The driver that manages cgroups. `auto` uses what the runtime reports, or else `systemd` where systemd runs and `cgroupfs` elsewhere. It never changes while pods run.',
  }),
  podCidrs: kubeletOption('podCIDR', [], networks, {
    flag: 'pod-cidr',
    defaultText: 'a free private network, chosen once',
    secret: false,
    doc: "The network of the pods' addresses; two separated by a comma for dual stack.",
  }),
  fileCheckFrequencyMs: kubeletOption('fileCheckFrequency', 20_000, duration(100), {
    flag: 'file-check-frequency',
    zeroIsDefault: true,
    doc: 'How often the manifest directory is read again completely, in case a change was missed.',
  }),
  httpCheckFrequencyMs: kubeletOption('httpCheckFrequency', 20_000, duration(100), {
    flag: 'http-check-frequency',
    zeroIsDefault: true,
    doc: 'How often the URL is fetched.',
  }),
  sourceTrialPeriodMs: poddOption('sourceTrialPeriod', 300_000, duration(0), {
    doc: 'How long podd has to run with what its sources give until that set counts as one that works. After three crashes within this time podd runs the last set that worked of a source that has changed since. 0 disables it.',
  }),
  ...updateOptions,
  syncFrequencyMs: kubeletOption('syncFrequency', 60_000, duration(1000), {
    flag: 'sync-frequency',
    zeroIsDefault: true,
    doc: 'How often each pod is synced with the runtime without an event.',
  }),
  maxContainerRestartPeriodMs: kubeletOption(
    'crashLoopBackOff.maxContainerRestartPeriod',
    300_000,
    duration(1000, 300_000),
    {
      doc: 'The maximum back-off of a crashing container before its next start.',
    },
  ),
  maxPods: kubeletOption('maxPods', 110, integer(0, 100_000), {
    flag: 'max-pods',
    zeroIsDefault: true,
    doc: 'How many pods may run at once; more wait until one has ended.',
  }),
  ...sourceOptions,
  ...pullOptions,
  ...registryOptions,
  fieldValidation: poddOption('fieldValidation', 'Strict', word('Strict', 'Warn'), {
    flag: 'field-validation',
    doc: 'Whether an unknown field is an error, or only a warning, so that an older podd accepts newer manifests. In a securityContext it is always an error.',
  }),
  persistSecrets: poddOption('persistSecrets', true, flag, {
    flag: 'persist-secrets',
    doc: 'Whether the last good copy of a source, and the revisions of what it gives, contain its Secrets (files owned by root, mode 0600). Without them, pods that need a Secret wait after a boot until its source can be read.',
  }),
  podNameSuffix: poddOption('podNameSuffix', 'none', word('none', 'node'), {
    flag: 'pod-name-suffix',
    doc: '`node` names pods `<name>-<node>`, as the kubelet names static pods.',
  }),
  ...containerOptions,
  ...imageOptions,
  ...evictionOptions,
  ...shutdownOptions,
  ...logOptions,
  ...podOptions,
  ...apiOptions,
  ...daemonOptions,
  logLevel: poddOption('logLevel', 'info', word('debug', 'info', 'warn', 'error'), {
    flag: 'log-level',
    doc: 'How much podd writes to its own log, on standard error.',
  }),
} as const

export type OptionKey = keyof typeof options

type ValueOf<O> = O extends { readonly type: OptionType<infer T> } ? T : never

/** podd's settings, complete and checked. Durations are in milliseconds, sizes in bytes, paths absolute. */
export type PoddConfig = { readonly [K in OptionKey]: ValueOf<(typeof options)[K]> }

/** Every option with its key, in the order of the table. */
export function listOptions(): readonly (readonly [OptionKey, Option<unknown>])[] {
  return Object.entries(options).flatMap(([key, described]) =>
    isOptionKey(key) ? [[key, described] as const] : [],
  )
}

function isOptionKey(key: string): key is OptionKey {
  return Object.hasOwn(options, key)
}

/** One flag of `podd run` as it was written. */
interface FlagValue {
  /** Without its dashes. */
  readonly flag: string
  /** Empty for a switch that stands alone. */
  readonly text: string
}

/**
 * The values that flags give. Throws PoddError BAD_FLAG for the first one that is wrong; `warn` is called for values
 * without effect.
 */
export function readConfigFlags(
  flags: readonly FlagValue[],
  warn: (message: string) => void = () => undefined,
): Readonly<Partial<Record<OptionKey, unknown>>> {
  const values: Partial<Record<OptionKey, unknown>> = {}
  for (const { flag, text } of flags) {
    const found = listOptions().find(([, option]) => option.flag === flag)
    if (found === undefined) throw new PoddError('BAD_FLAG', `unknown flag --${flag}`)
    const [key, option] = found
    const decoded = option.type.fromText(text)
    if (decoded.kind === 'bad') throw new PoddError('BAD_FLAG', `--${flag} ${decoded.message}`)
    for (const warning of decoded.warnings ?? []) warn(`--${flag}: ${warning}`)
    const merged = key in values ? option.type.merge?.(values[key], decoded.value) : undefined
    values[key] = merged ?? decoded.value
  }
  return values
}

/** The config that has `values` (each of its option's type) where they are, and the defaults elsewhere. */
export function completeConfig(values: Readonly<Partial<Record<OptionKey, unknown>>>): PoddConfig {
  const config: Record<string, unknown> = {}
  for (const [key, described] of listOptions()) config[key] = key in values ? values[key] : described.default
  if (!isComplete(config)) throw new PoddError('INTERNAL', 'an option is missing from the table')
  return config
}

function isComplete(config: Readonly<Record<string, unknown>>): config is PoddConfig {
  return listOptions().every(([key]) => key in config)
}

/**
 * The settings as they may be shown, by their keys in the code: the one view of them that leaves the process (`/configz`,
 * support bundles), by what the table of options says of each.
 */
export function redactConfig(config: PoddConfig): Readonly<Record<string, Json>> {
  return Object.fromEntries(
    listOptions().flatMap(([key, option]) => {
      const value = config[key]
      return value === undefined ? [] : [[key, redactValue(option, value)]]
    }),
  )
}

/** What may be shown of an option's value; of an option that doesn't say, nothing. */
export function redactValue({ secret }: Pick<Option<unknown>, 'secret'>, value: unknown): Json {
  if (secret === undefined) return redacted
  return secret === false ? asJson(value) : secret(value)
}

/** The settings that a KubeletConfiguration has too, under its fields, as they may be shown. */
export function kubeletConfigOf(config: PoddConfig): Readonly<Record<string, Json>> {
  const shown: Record<string, Json> = {}
  for (const [key, option] of listOptions()) {
    const value = config[key]
    if (option.owner !== 'kubelet' || value === undefined) continue
    const isPlain = typeof value === 'boolean' || (typeof value === 'number' && !key.endsWith('Ms'))
    const isShown = option.secret === false && !isPlain
    shown[option.field] = isShown ? option.type.format(value) : redactValue(option, value)
  }
  return shown
}

/** All texts that the settings hold and `redactConfig` hides, to be taken out of whatever else is shown. */
export function secretTexts(config: PoddConfig): readonly string[] {
  const texts = listOptions().flatMap(([key, option]) => {
    if (option.secret === false) return []
    const shown = new Set(textsIn(redactValue(option, config[key])))
    return textsIn(asJson(config[key])).filter((text) => !shown.has(text))
  })
  return texts.concat(texts.flatMap((text) => secretsOfUrl(text)))
}

function textsIn(value: Json): readonly string[] {
  if (typeof value === 'string') return value === '' ? [] : [value]
  if (Array.isArray(value)) return value.flatMap((item: Json) => textsIn(item))
  return isJsonObject(value) ? Object.values(value).flatMap((item) => textsIn(item ?? null)) : []
}
