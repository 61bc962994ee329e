import { TomlError, parse } from 'smol-toml'
import type { TomlTable, TomlValue } from 'smol-toml'

/** The parts of a `hosts.toml` that can be wrong. */
export interface HostsFileReading {
  readonly problems: readonly string[]
  /** The files that it names, as it names them. */
  readonly files: readonly string[]
}

type Check = (value: TomlValue) => boolean

const isText: Check = (value) => typeof value === 'string'
const isTruth: Check = (value) => typeof value === 'boolean'
const isTextOrList: Check = (value) => isText(value) || (Array.isArray(value) && value.every(isText))
const capabilities: readonly TomlValue[] = ['pull', 'resolve', 'push', 'referrers']

const hostKeys = new Map<string, readonly [Check, string]>([
  [
    'capabilities',
    [
      (value) => Array.isArray(value) && value.every((item) => capabilities.includes(item)),
      'a list of "pull", "resolve" and "push"',
    ],
  ],
  ['ca', [isTextOrList, 'the path of a file, or a list of them']],
  [
    'client',
    [
      (value) => isText(value) || (Array.isArray(value) && value.every(isTextOrList)),
      'a path, or a list of pairs of a certificate and its key',
    ],
  ],
  ['skip_verify', [isTruth, 'true or false']],
  ['override_path', [isTruth, 'true or false']],
  ['dial_timeout', [isText, 'a duration such as "3s"']],
])

/**
 * Checks a `hosts.toml` (containerd's docs/hosts.md). containerd 1.6 skips a file that it cannot read, and one without
 * a host, with only a line in its log: it then uses the registry as if there were none.
 */
export function readHostsFile(text: string): HostsFileReading {
  if (text.trim() === '') return { problems: [], files: [] }
  let file: TomlTable
  try {
    file = parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    return { problems: [`line ${error.line} is not valid TOML`], files: [] }
  }
  const { server, host, ...own } = file
  const problems: string[] = []
  const hosts = Object.entries(tableOf(host))
  if (hosts.length === 0) problems.push('it has no [host."URL"], without which containerd 1.6 passes over it')
  for (const [url] of hosts) if (!isUrl(url)) problems.push(`[host."${url}"] is no http or https URL`)
  if (server !== undefined && !(typeof server === 'string' && isUrl(server)))
    problems.push('server must be an http or https URL')
  const tables: (readonly [at: string, keys: TomlTable])[] = [
    ['', own],
    ...hosts.map(([url, table]) => [`host.${url}.`, tableOf(table)] as const),
  ]
  for (const [at, { header: headers, ...keys }] of tables) {
    for (const [name, value] of Object.entries(tableOf(headers)))
      if (!isTextOrList(value)) problems.push(`the header ${name} must be text`)
    for (const [key, value] of Object.entries(keys)) problems.push(...checkKey(at, key, value))
  }
  const files = tables.flatMap(([, { ca, client }]) => [ca, client].flatMap((value) => textsOf(value)))
  return { problems: [...new Set(problems)], files }
}

function checkKey(at: string, key: string, value: TomlValue): readonly string[] {
  const known = hostKeys.get(key)
  if (known === undefined) return [`${at}${key} is not known to containerd`]
  const [check, wanted] = known
  return check(value) ? [] : [`${key} must be ${wanted}`]
}

function tableOf(value: TomlValue | undefined): TomlTable {
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date) ? value : {}
}

function isUrl(text: string): boolean {
  return /^https?:\/\/[^\s/]+/u.test(text)
}

function textsOf(value: TomlValue | undefined): readonly string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.flatMap((item: TomlValue) => textsOf(item)) : []
}
