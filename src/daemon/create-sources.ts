import { poddVersion } from '../api/version.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { PoddConfig } from '../config/options.ts'
import type { PodAssembly } from '../control/assemble-pods.ts'
import type { SourceName } from '../pod/objects/document.ts'
import { createDecodeSource } from '../sources/decode-source.ts'
import { createDirectorySource } from '../sources/directory.ts'
import { createHttpSource, showUrl } from '../sources/http.ts'
import type { Source } from '../sources/source.ts'
import { fingerprintPath, fingerprintUrl } from '../sources/trial/fingerprint.ts'
import { SourceTrials } from '../sources/trial/source-trials.ts'
import { createLastGoodStore } from '../store/last-good.ts'
import { smallFile } from '../store/small-file.ts'
import type { StateReport } from '../store/state-report.ts'

const warmUpManifest = `apiVersion: v1
kind: Pod
metadata: {name: warm-up}
spec: {containers: [{name: main, image: localhost/warm-up}]}
`

export interface NamedSource {
  readonly name: SourceName
  readonly location: string
  readonly source: Source
  /** Distinguishes what it gives now from what it gave before; undefined where it can't be read. */
  fingerprint(signal: AbortSignal): Promise<string | undefined>
}

/** The sources that are configured. */
export function createSources(
  config: PoddConfig,
  { report, clock, logger }: { report: StateReport; clock: Clock; logger: Logger },
): readonly NamedSource[] {
  const lastGood = createLastGoodStore(`${config.rootDir}/sources`, {
    persistSecrets: config.persistSecrets,
    report,
  })
  const decode = createDecodeSource(clock)
  // The YAML parser is loaded with the first text: now, so that the first manifest dropped need not wait for it.
  void decode(Buffer.from(warmUpManifest), { path: 'warm-up' }).catch(() => undefined)
  const { fieldValidation } = config
  const found: NamedSource[] = []
  if (config.staticPodPath !== undefined) {
    const path = config.staticPodPath
    const rescanMs = config.fileCheckFrequencyMs
    const source = createDirectorySource({
      name: 'file',
      path,
      clock,
      logger,
      lastGood,
      decode,
      fieldValidation,
      rescanMs,
    })
    found.push({ name: 'file', location: path, source, fingerprint: () => fingerprintPath(path) })
  }
  if (config.staticPodUrl !== undefined) {
    const source = createHttpSource({
      name: 'http',
      url: config.staticPodUrl,
      headers: config.staticPodUrlHeader,
      periodMs: config.httpCheckFrequencyMs,
      clock,
      logger,
      lastGood,
      decode,
      fieldValidation,
    })
    const request = { url: new URL(config.staticPodUrl), headers: config.staticPodUrlHeader }
    found.push({
      name: 'http',
      location: showUrl(config.staticPodUrl),
      source,
      fingerprint: (signal) => fingerprintUrl(request, process.env, signal),
    })
  }
  return found
}

/** What watches over changes of these sources. */
export function createTrials(
  config: PoddConfig,
  {
    sources,
    assembly,
    report,
    clock,
    logger,
  }: {
    sources: readonly NamedSource[]
    assembly: PodAssembly
    report: StateReport
    clock: Clock
    logger: Logger
  },
): SourceTrials {
  const { rootDir, persistSecrets } = config
  return new SourceTrials({
    file: smallFile(`${rootDir}/trial.json`),
    copies: createLastGoodStore(`${rootDir}/sources/worked`, { persistSecrets, report }),
    sources,
    bootId: assembly.hostInfo.bootId,
    poddVersion,
    periodMs: config.sourceTrialPeriodMs,
    events: assembly.events,
    report,
    clock,
    logger,
  })
}
