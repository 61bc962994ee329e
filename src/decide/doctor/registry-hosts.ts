import { readToml } from './read-toml.ts'
import type { TomlData, TomlLine } from './read-toml.ts'

/** The parts of a `hosts.toml` that can be wrong. */
export interface HostsFileReading {
  readonly problems: readonly string[]
  /** The files that it names, as it names them. */
  readonly files: readonly string[]
}

type Check = (value: TomlData) => boolean

const isText: Check = (value) => typeof value === 'string'
const isTruth: Check = (value) => typeof value === 'boolean'
const isTextOrList: Check = (value) => isText(value) || (Array.isArray(value) && value.every(isText))
const capabilities: readonly TomlData[] = ['pull', 'resolve', 'push', 'referrers']

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
  const { tables, lines, problem } = readToml(text)
  const problems = problem === undefined ? [] : [problem]
  const hosts = tables.filter(([first, url]) => first === 'host' && url !== undefined)
  if (problem === undefined && hosts.length === 0)
    problems.push('it has no [host."URL"], without which containerd 1.6 passes over it')
  for (const [, url = ''] of hosts) if (!isUrl(url)) problems.push(`[host."${url}"] is no http or https URL`)
  for (const line of lines) problems.push(...checkLine(line))
  const files = lines.flatMap(({ key, value }) => (key === 'ca' || key === 'client' ? textsOf(value) : []))
  return { problems: [...new Set(problems)], files }
}

function checkLine({ table, key, value }: TomlLine): readonly string[] {
  const [first, url, third] = table
  if (first === 'header' || (first === 'host' && third === 'header'))
    return isTextOrList(value) ? [] : [`the header ${key} must be text`]
  if (first === undefined && key === 'server')
    return typeof value === 'string' && isUrl(value) ? [] : ['server must be an http or https URL']
  const isHost = first === undefined || (first === 'host' && url !== undefined && third === undefined)
  const known = isHost ? hostKeys.get(key) : undefined
  if (known === undefined) return [`${[...table, key].join('.')} is not known to containerd`]
  const [check, wanted] = known
  return check(value) ? [] : [`${key} must be ${wanted}`]
}

function isUrl(text: string): boolean {
  return /^https?:\/\/[^\s/]+/u.test(text)
}

function textsOf(value: TomlData): readonly string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.flatMap((item: TomlData) => textsOf(item)) : []
}
