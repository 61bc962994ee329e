import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { poddVersion } from '../api/resource.ts'
import type { Clock } from '../base/clock.ts'
import { parseSourceUrl, showUrl } from '../base/http.ts'
import type { Logger } from '../base/logger.ts'
import type { PoddConfig } from '../config/options.ts'
import type { DirectorySetting, UrlSetting } from '../config/source-options.ts'
import type { PodAssembly } from '../control/assemble.ts'
import { judgeSource } from '../decide/updates/judge-source.ts'
import type { SourceSight } from '../decide/updates/judge-source.ts'
import { revisionOf } from '../decide/updates/unit-revisions.ts'
import { digestText } from '../pod/values/hash.ts'
import type { SourceName } from '../pod/values/ids.ts'
import { createDecodeSource, decodeBy } from '../sources/decode-source.ts'
import { createDirectorySource } from '../sources/directory/directory-source.ts'
import { FollowedHostValues } from '../sources/followed-values.ts'
import { decodeWithValues, HostValueReader, readHostFacts, urlWithValues } from '../sources/host-values.ts'
import type { HostValues } from '../pod/decode/substitute-values.ts'
import type { ApiReaders } from '../server/requests/readers.ts'
import type { HostReporter } from './host-report.ts'
import { getOnce, readHeaders } from '../sources/http/http-get.ts'
import type { HttpGet } from '../sources/http/http-get.ts'
import { HttpRoutes } from '../sources/http/http-routes.ts'
import type { Environment } from '../sources/http/http-routes.ts'
import { createHttpSource } from '../sources/http/http-source.ts'
import type { HttpSourceOptions } from '../sources/http/http-source.ts'
import { listManifests } from '../sources/read-manifest-file.ts'
import { SourceHolds } from '../sources/source-holds.ts'
import { SourceTrials } from '../sources/source-trials.ts'
import type { ReportingSource } from '../sources/source.ts'
import { AcceptedSignatures, ManifestVerifier } from '../sources/verify-manifest.ts'
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
export function createSources(config: PoddConfig, env: GuardEnv): readonly NamedSource[] {
  const { assembly, report, clock, logger } = env
  const lastGood = createLastGoodStore(`${config.rootDir}/sources`, {
    persistSecrets: config.persistSecrets,
    report,
  })
  const decode = createDecodeSource(clock)
  // Has V8 compile the decoder now, so that the first new manifest doesn't wait for it. The YAML parser is left to
  // the first text in YAML: it takes 1.3 MiB, and 12 ms to load. The first manifest reports what is wrong with it.
  void decode(Buffer.from(warmUpManifest), { path: 'warm-up' }).catch(() => undefined)
  const given = givenValues(config)
  const reader = new HostValueReader(given, config.valueFiles)
  const values = new FollowedHostValues({ reader, clock, logger })
  const accepted = new AcceptedSignatures(smallFile(`${config.rootDir}/signatures.json`), { report, logger })
  return configuredSources(config).map((configured) => {
    const { substitute, verify, imagePolicy } = configured
    const own = decodeBy(decode, { ...imagePolicy, ignoreKinds: config.ignoreKinds })
    const shared = {
      clock,
      logger,
      lastGood,
      ...(substitute ? { decode: decodeWithValues(own, reader), values } : { decode: own }),
      verifier: verify && new ManifestVerifier(locate(configured, given), verify.keys, accepted, clock),
      fieldValidation: config.fieldValidation,
    }
    return configured.kind === 'file'
      ? openDirectory(configured, config, shared)
      : openUrl({ ...configured, url: urlWithValues(configured.url, given) }, config, {
          ...shared,
          describeHost: (failure) => describeHost(assembly, configured.name, failure),
        })
  })
}

/** The name of a source, and where it is: of a URL without what may be secret, but told apart by its query. */
function locate(
  source: Named<DirectorySetting> | Named<UrlSetting>,
  given: HostValues,
): { readonly name: string; readonly location: string } {
  const { name } = source
  if (source.kind === 'file') return { name, location: source.path }
  const url = urlWithValues(source.url, given)
  const [, query = ''] = /[?](?<query>[^#]*)/u.exec(url) ?? []
  return { name, location: query === '' ? showUrl(url) : `${showUrl(url)} ${digestText(query)}` }
}

/**
 * What each request to a source tells its server of this host: which answer it runs, and how that does. Left out while it is
 * not known which.
 * @param failure why the source could not be read last: no fault of what it gave
 */
function describeHost(assembly: PodAssembly, name: SourceName, failure?: string): HttpGet['headers'] {
  const { revision, health } = sightSource(assembly, name, failure)
  return {
    'podd-node': [assembly.hostName],
    'podd-version': [poddVersion],
    ...(revision !== undefined && { 'podd-revision': [revision], 'podd-health': [health] }),
  }
}

/** @param failure see describeHost */
function sightSource(
  { pods, shown }: Pick<PodAssembly, 'pods' | 'shown'>,
  name: string,
  failure: string | undefined,
): SourceSight {
  const snapshot = pods.snapshots().find(({ source }) => source === name)
  const units = pods.gate.units().filter(({ record }) => record.source === name)
  const own = shown.pods.list().filter(({ metadata }) => metadata.annotations?.['podd.dev/source'] === name)
  const isBad = snapshot?.problems.some(
    ({ severity, message }) => severity === 'error' && message !== failure,
  )
  const [unit] = units
  const active = unit && revisionOf(unit.record, unit.record.active)?.digest
  const isOffered = unit === undefined || unit.record.active === unit.record.offered
  return {
    revision: isOffered ? (snapshot?.digest ?? active) : active,
    health: judgeSource({
      shown: own,
      wanted: snapshot?.pods.length ?? 0,
      hasBadDocuments: isBad === true,
      units: units.map(({ record }) => record),
    }),
  }
}

function givenValues({ hostnameOverride, values }: PoddConfig): HostValues {
  return { ...readHostFacts(hostnameOverride), ...values }
}

/** Has this host's status reported, where the config says to; undefined where it doesn't. */
export async function createReporter(
  config: PoddConfig,
  { pods, shown, hostName, hostInfo }: PodAssembly,
  { status, sources, units }: Pick<ApiReaders, 'status' | 'sources' | 'units'>,
  clock: Clock,
): Promise<HostReporter | undefined> {
  const { report } = config
  if (report === undefined) return undefined
  const { HostReporter: Reporter } = await import('./host-report.ts')
  const reporter = new Reporter(
    { ...report, url: urlWithValues(report.url, givenValues(config)) },
    {
      hostName,
      hostInfo,
      shown,
      status: () => status.daemonStatus(),
      sources: () => sources.list(),
      units: () => units.list(),
      sight: ({ metadata, status: { failingSince, message } }) =>
        sightSource({ pods, shown }, metadata.name, failingSince === undefined ? undefined : message),
      wake: () => pods.node.jobs.wake('send-report'),
      clock,
      env: process.env,
    },
  )
  pods.node.jobs.add(reporter.job())
  return reporter
}

/** The names of the sources that `createSources` gives. */
export function sourceNames(config: PoddConfig): readonly SourceName[] {
  return configuredSources(config).map(({ name }) => name)
}

type Shared = Omit<HttpSourceOptions, 'name' | 'url' | 'headers' | 'periodMs'>
type Named<Setting> = Omit<Setting, 'name'> & { readonly name: SourceName }

/** The sources of the kubelet's settings, then those of the list. */
function configuredSources(config: PoddConfig): readonly (Named<DirectorySetting> | Named<UrlSetting>)[] {
  const common = {
    periodMs: undefined,
    substitute: false,
    verify: undefined,
    imagePolicy: { requireDigest: false },
  }
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
  const { describeHost } = shared
  const request = { url, allowHttp, headers, headerFiles, tls: { caFile, certFile, keyFile }, describeHost }
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

interface GuardEnv {
  readonly assembly: PodAssembly
  readonly report: StateReport
  readonly clock: Clock
  readonly logger: Logger
}

export function createHolds(
  { rootDir, persistSecrets }: PoddConfig,
  { assembly: { events }, report, clock, logger }: GuardEnv,
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
  { assembly, report, clock, logger }: GuardEnv,
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

/**
 * A fingerprint of the content of a manifest directory, or of a single manifest, without reading manifests. Undefined
 * where it can't be read.
 */
async function fingerprintPath(path: string, recursive = false): Promise<string | undefined> {
  try {
    const hash = createHash('sha256')
    if ((await stat(path)).isFile()) hash.update(await describeFile(path))
    else
      for (const name of (await listManifests(path, recursive)).toSorted())
        hash.update(`${name}\n${await describeFile(join(path, name))}`)
    return hash.digest('hex')
  } catch {
    // The source itself reports it.
    return undefined
  }
}

/** A file that is gone, or a dangling link, counts only by its name. */
async function describeFile(path: string): Promise<string> {
  // One that can't be read counts the same: the source itself reports why.
  const stats = await stat(path, { bigint: true }).catch(() => undefined)
  return stats === undefined ? 'none\n' : `${stats.size} ${stats.mtimeNs} ${stats.ino}\n`
}

type UrlRequest = Required<
  Pick<HttpSourceOptions, 'url' | 'allowHttp' | 'headers' | 'headerFiles' | 'tls' | 'describeHost'>
>

/** The same for the response of a URL. */
async function fingerprintUrl(
  request: UrlRequest,
  env: Environment,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { url, socketPath } = parseSourceUrl(request.url)
  const allowHttp = request.allowHttp || socketPath !== undefined
  const routes = new HttpRoutes(env, socketPath, request.tls)
  try {
    const given = await readHeaders(request.headers, request.headerFiles)
    const headers = { ...request.describeHost?.(undefined), ...given }
    const answer = await getOnce(routes, { url, headers, validators: undefined, allowHttp }, signal)
    return answer.kind === 'content' ? createHash('sha256').update(answer.bytes).digest('hex') : undefined
  } finally {
    await routes.destroy()
  }
}
