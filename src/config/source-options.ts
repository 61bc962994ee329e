import type { Json, JsonObject } from '../base/json.ts'
import { isJsonObject, objectOrEmpty } from '../base/json.ts'
import { isLoopbackHost, showUrl } from '../base/http.ts'
import { parseSigningKey } from '../base/minisign.ts'
import { nearestName } from '../base/text.ts'
import { whyNotIgnored } from '../pod/decode/judge-kind.ts'
import {
  bad,
  ok,
  onlyInFile,
  withoutValues,
  duration,
  flag,
  headers,
  integer,
  path,
  word,
  poddOption,
} from './option-type.ts'
import type { Decoded, Headers, OptionType } from './option-type.ts'
import { hostValues, textList, valueFiles } from './list-types.ts'

/** The settings common to all sources of the list. */
interface CommonSetting {
  /** Unique. */
  readonly name: string
  /** How often it is read or requested again; by default `fileCheckFrequency` or `httpCheckFrequency`. */
  readonly periodMs: number | undefined
  /** `${NAME}` in its documents stands for the host's values. */
  readonly substitute: boolean
  /** Public keys of minisign, one of which must have signed each manifest; undefined: none need be signed. */
  readonly verify: { readonly keys: readonly string[] } | undefined
  readonly imagePolicy: ImagePolicy
}

/** Which images the pods of a source may name. */
interface ImagePolicy {
  /** Only those with a digest. */
  readonly requireDigest: boolean
}

/** A manifest directory, or a single manifest. */
export interface DirectorySetting extends CommonSetting {
  readonly kind: 'file'
  readonly path: string
  /** Its subdirectories are read too. */
  readonly recursive: boolean
}

/** A server that podd sends requests to, and how. */
interface ServerSetting {
  /** `http:`, `https:`, or `unix:///SOCKET:/PATH`; `${NAME}` in it stands for the host's values. */
  readonly url: string
  /** Whether requests may leave this host unencrypted. */
  readonly allowHttp: boolean
  readonly headers: Headers
  /** Headers with values from files: paths by header name. */
  readonly headerFiles: Readonly<Record<string, string>>
  /** PEM files, read again when they change. */
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
}

export interface UrlSetting extends CommonSetting, ServerSetting {
  readonly kind: 'http'
  readonly push: 'Auto' | 'Off'
}

/** Where podd reports its status. */
export interface ReportSetting extends ServerSetting {
  readonly periodMs: number
}

type SourceSetting = DirectorySetting | UrlSetting

const commonFields = ['name', 'checkFrequency', 'substitute', 'verify', 'imagePolicy']
const directoryFields = [...commonFields, 'path', 'recursive']
const serverFields = ['url', 'headers', 'headerFiles', 'caFile', 'certFile', 'keyFile', 'allowHTTP']
const urlFields = [...commonFields, ...serverFields, 'push']

const sourceList: OptionType<readonly SourceSetting[]> = {
  label: 'LIST',
  fromText: onlyInFile,
  fromFile(json) {
    if (!Array.isArray(json)) return bad('must be a list of sources')
    const sources: SourceSetting[] = []
    for (const [index, entry] of json.entries()) {
      const { name } = objectOrEmpty(entry)
      const source = decoded(() => readSource(entry))
      if (source.kind === 'bad')
        return bad(`${typeof name === 'string' ? name : `[${index}]`}: ${source.message}`)
      const { name: own } = source.value
      if (sources.some((other) => other.name === own)) return bad(`has two sources named ${own}`)
      sources.push(source.value)
    }
    return ok(sources)
  },
  format: (sources) => sources.map(({ name }) => name).join(', '),
}

/** Internal to this file: its message says what is wrong. */
class BadSource extends Error {}

function decoded<T>(read: () => T): Decoded<T> {
  try {
    return ok(read())
  } catch (error) {
    if (error instanceof BadSource) return bad(error.message)
    throw error
  }
}

function readSource(entry: Json): SourceSetting {
  if (!isJsonObject(entry)) throw new BadSource('must be a mapping')
  return 'url' in entry ? readUrl(entry) : readDirectory(entry)
}

function readDirectory(entry: JsonObject): DirectorySetting {
  refuseUnknown(entry, directoryFields)
  return {
    kind: 'file',
    ...readCommon(entry),
    path: need(entry, 'path', path),
    recursive: read(entry, 'recursive', flag) ?? false,
  }
}

function readUrl(entry: JsonObject): UrlSetting {
  if ('path' in entry) throw new BadSource('has a path and a url: it is one of both')
  refuseUnknown(entry, urlFields)
  return {
    kind: 'http',
    ...readCommon(entry),
    ...readServer(entry),
    push: read(entry, 'push', word('Auto', 'Off')) ?? 'Auto',
  }
}

function readServer(entry: JsonObject): ServerSetting {
  const url = entry['url']
  if (typeof url !== 'string') throw new BadSource('url must be text')
  const allowHttp = read(entry, 'allowHTTP', flag) ?? false
  const problem = urlProblem(url, allowHttp)
  if (problem !== undefined) throw new BadSource(`url ${problem}`)
  const certFile = read(entry, 'certFile', path)
  const keyFile = read(entry, 'keyFile', path)
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new BadSource('certFile and keyFile need each other')
  return {
    url,
    allowHttp,
    headers: read(entry, 'headers', headers) ?? {},
    headerFiles: readHeaderFiles(entry['headerFiles']),
    caFile: read(entry, 'caFile', path),
    certFile,
    keyFile,
  }
}

const reportType: OptionType<ReportSetting | undefined> = {
  label: 'MAPPING',
  fromText: onlyInFile,
  fromFile(json) {
    if (!isJsonObject(json)) return bad('must be a mapping: report: {url: https://fleet.example/report}')
    return decoded(() => {
      refuseUnknown(json, ['period', ...serverFields])
      const periodMs = read(json, 'period', duration(1000)) ?? 300_000
      return { ...readServer(json), periodMs }
    })
  },
  format: (report) => (report === undefined ? '' : showUrl(report.url)),
}

function readCommon(entry: JsonObject): CommonSetting {
  const { name } = entry
  if (typeof name !== 'string' || !/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/u.test(name))
    throw new BadSource('name must be of small letters, digits and dashes, 63 at most')
  return {
    name,
    periodMs: read(entry, 'checkFrequency', duration(100)),
    substitute: read(entry, 'substitute', flag) ?? false,
    verify: readVerify(entry['verify']),
    imagePolicy: readImagePolicy(entry['imagePolicy']),
  }
}

function readVerify(json: Json | undefined): CommonSetting['verify'] {
  if (json === undefined || json === null) return undefined
  const example = 'verify: {keys: [RWQ…]}'
  if (!isJsonObject(json)) throw new BadSource(`verify must be a mapping: ${example}`)
  refuseUnknown(json, ['keys'], 'verify ')
  const { keys } = json
  // Without a key nothing could ever be verified; nothing may come to be unverified by an empty list.
  if (!Array.isArray(keys) || keys.length === 0)
    throw new BadSource(`verify.keys must list one or more public keys of minisign: ${example}`)
  return { keys: keys.map((key, index) => readKey(key, index)) }
}

function readKey(key: Json, index: number): string {
  if (typeof key === 'string' && parseSigningKey(key) !== undefined) return key.trim()
  const hint = 'a text that begins with RW, the second line of the .pub file'
  throw new BadSource(`verify.keys[${index}] is no public key of minisign: ${hint}`)
}

function readImagePolicy(json: Json | undefined): ImagePolicy {
  if (json === undefined || json === null) return { requireDigest: false }
  if (!isJsonObject(json))
    throw new BadSource('imagePolicy must be a mapping: imagePolicy: {requireDigest: true}')
  refuseUnknown(json, ['requireDigest'], 'imagePolicy ')
  return { requireDigest: read(json, 'requireDigest', flag, 'imagePolicy.') ?? false }
}

function readHeaderFiles(json: Json | undefined): Readonly<Record<string, string>> {
  if (json === undefined || json === null) return {}
  if (!isJsonObject(json)) throw new BadSource('headerFiles must be a mapping of paths')
  const wrong = headers.fromFile(Object.fromEntries(Object.keys(json).map((name) => [name, []])))
  if (wrong.kind === 'bad') throw new BadSource(`headerFiles: ${wrong.message}`)
  return Object.fromEntries(Object.keys(json).map((name) => [name, need(json, name, path)]))
}

function urlProblem(template: string, mayBeHttp: boolean): string | undefined {
  const url = template.replaceAll(/\$\{[^{}]*\}/gu, 'value')
  if (url.startsWith('unix:'))
    return /^unix:\/\/\/[^:]+:\/./u.test(url) ? undefined : 'must be unix:///SOCKET:/PATH'
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol === 'https:') return undefined
  if (parsed?.protocol !== 'http:') return 'must be an https://, http:// or unix:// URL'
  if (mayBeHttp || isLoopbackHost(parsed.hostname)) return undefined
  return 'is not encrypted and leads off this host: use https, or set allowHTTP: true'
}

function need<T>(entry: JsonObject, field: string, type: OptionType<T>): T {
  const value = read(entry, field, type)
  if (value === undefined) throw new BadSource(`must have a ${field}`)
  return value
}

/** @param of where the entry stands */
function read<T>(entry: JsonObject, field: string, type: OptionType<T>, of = ''): T | undefined {
  const json = entry[field]
  if (json === undefined || json === null) return undefined
  const found = type.fromFile(json)
  if (found.kind === 'bad') throw new BadSource(`${of}${field} ${found.message}`)
  return found.value
}

function refuseUnknown(entry: JsonObject, fields: readonly string[], of = ''): void {
  const unknownField = Object.keys(entry).find((field) => !fields.includes(field))
  if (unknownField === undefined) return
  const near = nearestName(unknownField, fields)
  throw new BadSource(
    `${of}has the unknown field ${unknownField}${near === undefined ? '' : `; did you mean ${near}?`}`,
  )
}

/** What may be shown of a source: a new field of it is shown only once it stands here. */
function showSetting(source: SourceSetting): Json {
  const { kind, name, periodMs = null, substitute, imagePolicy, verify } = source
  const trust = {
    verify: verify === undefined ? null : { keys: verify.keys },
    imagePolicy: { ...imagePolicy },
  }
  const common = { kind, name, periodMs, substitute, ...trust }
  if (source.kind === 'file') return { ...common, path: source.path, recursive: source.recursive }
  return { ...common, ...showServer(source), push: source.push }
}

function showServer(server: ServerSetting): JsonObject {
  const { url, allowHttp, headers, headerFiles, caFile = null, certFile = null, keyFile = null } = server
  const files = { headerFiles: { ...headerFiles }, caFile, certFile, keyFile }
  return { url: showUrl(url), allowHttp, headers: withoutValues(headers), ...files }
}

const ignoredKinds = textList('KIND', whyNotIgnored)

/** Where manifests come from beside `staticPodPath` and `staticPodURL`; a part of the table in options.ts. */
export const sourceOptions = {
  sources: poddOption('sources', [], sourceList, {
    defaultText: 'none',
    secret: (sources) => sources.map((source) => showSetting(source)),
    doc: 'More directories and URLs of manifests, each with a `name`; [SOURCES.md](SOURCES.md) lists their fields. Where two give the same object, the first keeps it: `staticPodPath`, `staticPodURL`, then this list in its order.',
  }),
  values: poddOption('values', {}, hostValues, {
    defaultText: 'none',
    secret: (values) => withoutValues(values),
    doc: 'Values of this host by their names, for `${NAME}` in URLs and in the documents of sources that say `substitute: true`.',
  }),
  valueFiles: poddOption('valueFiles', {}, valueFiles, {
    defaultText: 'none',
    secret: false,
    doc: 'Like `values`, but each value is the content of a file: paths by name.',
  }),
  report: poddOption<ReportSetting | undefined>('report', undefined, reportType, {
    defaultText: 'none',
    secret: (report) => (report === undefined ? null : { ...showServer(report), periodMs: report.periodMs }),
    doc: 'Where podd reports its status, by `period` (5m) and after each change: `url`, with `headers`, `headerFiles`, `caFile`, `certFile`, `keyFile` and `allowHTTP` as a source has them. [FLEET.md](FLEET.md) has what it sends.',
  }),
  ignoreKinds: poddOption('ignoreKinds', [], ignoredKinds, {
    defaultText: 'none',
    secret: false,
    doc: 'Kinds of custom objects, such as `ServiceMonitor`, whose documents are taken without effect and with a warning: others are refused. [SECURITY-MODEL.md](SECURITY-MODEL.md#kinds-that-podd-does-not-run) says what to think of first.',
  }),
  manifestPermissions: poddOption('manifestPermissions', 'Warn', word('Warn', 'Strict'), {
    doc: 'What podd does when users other than root can write a manifest or its directory: warn, or refuse to read it (`Strict`).',
  }),
} as const

/** How new versions of what sources give are judged; a part of the table in options.ts. */
export const updateOptions = {
  updateHistory: poddOption('updates.history', 10, integer(1, 100), {
    doc: 'How many revisions are kept of each file of a directory and of each URL, at most 1 MiB of them beside those that are needed.',
  }),
  updateMinReadyMs: poddOption('updates.minReady', 10_000, duration(0, 3_600_000), {
    doc: 'How long all pods that a revision changed have to be Ready without a break until it counts as healthy.',
  }),
  updateCrashes: poddOption('updates.crashes', 3, integer(1, 1000), {
    doc: 'After so many crashes of a pod that was not Ready for `updates.minReady` meanwhile its revision has failed.',
  }),
  updateProgressDeadlineMs: poddOption('updates.progressDeadline', 600_000, duration(1000), {
    doc: 'How long a changed pod may take to be Ready until its revision has failed. The annotation `podd.dev/progress-deadline` on a pod goes before it.',
  }),
  updateRollback: poddOption('updates.rollback', true, flag, {
    doc: 'Whether the last healthy revision takes the place of one that failed. The annotation `podd.dev/rollback: "false"` on a pod keeps its failure from having that effect.',
  }),
} as const
