import { poddVersion } from '../api/resource.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { PoddConfig } from '../config/options.ts'
import type { DirectorySetting, UrlSetting } from '../config/source-options.ts'
import type { PodAssembly } from '../control/assemble.ts'
import type { SourceName } from '../pod/objects/document.ts'
import { createDecodeSource } from '../sources/decode-source.ts'
import { createDirectorySource } from '../sources/directory/directory-source.ts'
import type { HttpSourceOptions } from '../sources/http/http-source.ts'
import { createHttpSource } from '../sources/http/http-source.ts'
import { showUrl } from '../base/http.ts'
import { FollowedHostValues } from '../sources/followed-values.ts'
import { HostValueReader, decodeWithValues, readHostFacts, urlWithValues } from '../sources/host-values.ts'
import { SourceHolds } from '../sources/source-holds.ts'
import type { ReportingSource } from '../sources/source.ts'
import { fingerprintPath, fingerprintUrl } from '../sources/trial/fingerprint.ts'
import { SourceTrials } from '../sources/source-trials.ts'
import { createLastGoodStore } from '../store/last-good.ts'
import type { CrashReport } from '../store/reports.ts'
import { smallFile } from '../store/state-report.ts'
import type { StateReport } from '../store/state-report.ts'

const warmUpManifest = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'warm-up' },
  spec: { containers: [{ name: 'main', image: 'localhost/warm-up' }] },
})

export interface NamedSource {
  readonly name: SourceName
  readonly location: string
  readonly source: ReportingSource
  /** A fingerprint of its content; undefined where it can't be read. */
  fingerprint(signal: AbortSignal): Promise<string | undefined>
}

/** The sources that are configured: where two give the same, the first keeps it. Throws PoddError SOURCE_URL. */
export function createSources(
  config: PoddConfig,
  { report, clock, logger }: { report: StateReport; clock: Clock; logger: Logger },
): readonly NamedSource[] {
  const lastGood = createLastGoodStore(`${config.rootDir}/sources`, {
    persistSecrets: config.persistSecrets,
    report,
  })
  const decode = createDecodeSource(clock)
  // Has V8 compile the decoder now, so that the first new manifest doesn't wait for it. The YAML parser is left to
  // the first text in YAML: it takes 1.3 MiB, and 12 ms to load. The first manifest reports what is wrong with it.
  void decode(Buffer.from(warmUpManifest), { path: 'warm-up' }).catch(() => undefined)
  const given = { ...readHostFacts(config.hostnameOverride), ...config.values }
  const reader = new HostValueReader(given, config.valueFiles)
  const values = new FollowedHostValues({ reader, clock, logger })
  return configuredSources(config).map((configured) => {
    const shared = {
      clock,
      logger,
      lastGood,
      ...(configured.substitute ? { decode: decodeWithValues(decode, reader), values } : { decode }),
      fieldValidation: config.fieldValidation,
    }
    return configured.kind === 'file'
      ? openDirectory(configured, config, shared)
      : openUrl({ ...configured, url: urlWithValues(configured.url, given) }, config, shared)
  })
}

type Shared = Omit<HttpSourceOptions, 'name' | 'url' | 'headers' | 'periodMs'>
type Named<Setting> = Omit<Setting, 'name'> & { readonly name: SourceName }

/** The sources of the kubelet's settings, then those of the list. */
function configuredSources(config: PoddConfig): readonly (Named<DirectorySetting> | Named<UrlSetting>)[] {
  const common = { periodMs: undefined, substitute: false }
  const { staticPodPath: path, staticPodUrl: url, staticPodUrlHeader: headers } = config
  return [
    ...(path === undefined
      ? []
      : [{ ...common, kind: 'file' as const, name: 'file' as const, path, recursive: false }]),
    ...(url === undefined
      ? []
      : [{ ...common, ...noTls, kind: 'http' as const, name: 'http' as const, url, headers }]),
    ...config.sources.map((source) => ({ ...source, name: `${source.kind}:${source.name}` as const })),
  ]
}

const noTls = {
  // As with the kubelet.
  allowHttp: true,
  headerFiles: {},
  caFile: undefined,
  certFile: undefined,
  keyFile: undefined,
  push: 'Auto' as const,
}

function openDirectory(
  { name, path, recursive, periodMs }: Named<DirectorySetting>,
  config: PoddConfig,
  shared: Shared,
): NamedSource {
  const source = createDirectorySource({
    ...shared,
    name,
    path,
    recursive,
    isStrict: config.manifestPermissions === 'Strict',
    rescanMs: periodMs ?? config.fileCheckFrequencyMs,
  })
  return { name, location: path, source, fingerprint: () => fingerprintPath(path, recursive) }
}

function openUrl(setting: Named<UrlSetting>, config: PoddConfig, shared: Shared): NamedSource {
  const { name, url, allowHttp, headers, headerFiles, caFile, certFile, keyFile, push, periodMs } = setting
  const request = { url, allowHttp, headers, headerFiles, tls: { caFile, certFile, keyFile } }
  const source = createHttpSource({
    ...shared,
    ...request,
    name,
    periodMs: periodMs ?? config.httpCheckFrequencyMs,
    mayHold: push === 'Auto',
  })
  return {
    name,
    location: showUrl(url),
    source,
    fingerprint: (signal) => fingerprintUrl(request, process.env, signal),
  }
}

interface GuardParts {
  readonly assembly: PodAssembly
  readonly report: StateReport
  readonly clock: Clock
  readonly logger: Logger
}

/** Creates the holds of sources. */
export function createHolds(
  { rootDir, persistSecrets }: PoddConfig,
  { assembly: { events }, report, clock, logger }: GuardParts,
): SourceHolds {
  const file = smallFile(`${rootDir}/holds.json`)
  const copies = createLastGoodStore(`${rootDir}/sources/held`, { persistSecrets, report })
  return new SourceHolds({ file, copies, persistSecrets, report, events, clock, logger })
}

/** Creates the trials of these sources, as far as they are followed. */
export function createTrials(
  config: PoddConfig,
  {
    sources,
    holds,
    crashes,
  }: { sources: readonly NamedSource[]; holds: SourceHolds; crashes: readonly CrashReport[] },
  { assembly, report, clock, logger }: GuardParts,
): SourceTrials {
  const { rootDir, persistSecrets } = config
  return new SourceTrials({
    file: smallFile(`${rootDir}/trial.json`),
    copies: createLastGoodStore(`${rootDir}/sources/worked`, { persistSecrets, report }),
    sources: sources.map((source) => ({
      ...source,
      source: holds.wrap(source),
      // podd doesn't run what the source gives.
      fingerprint: async (signal) =>
        holds.isHeld(source.name) ? undefined : await source.fingerprint(signal),
    })),
    bootId: assembly.hostInfo.bootId,
    reports: crashes.map(({ atMs }) => atMs),
    poddVersion,
    periodMs: config.sourceTrialPeriodMs,
    events: assembly.events,
    report,
    clock,
    logger,
  })
}
