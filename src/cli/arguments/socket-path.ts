import { existsSync, readFileSync } from 'node:fs'
import { apiSocketPath, defaultConfigPath } from '../../config/places.ts'
import type { UsualPlaces } from '../../config/places.ts'
import type { FlagSpec, ParsedArguments } from './parse-arguments.ts'

export const configFlag: FlagSpec = {
  name: 'config',
  label: 'FILE',
  doc: `The config file. ${defaultConfigPath} is read where nothing is said, if it is there.`,
}

/**
 * The socket to use: the given one, else PODD_SOCKET's, else that of the given run directory or config file, else the
 * default, else, where that doesn't exist, the one of the default config file's runDir.
 */
export async function findSocket(
  args: Pick<ParsedArguments, 'value'>,
  { env, usual }: { readonly env: Readonly<Record<string, string | undefined>>; readonly usual: UsualPlaces },
): Promise<string> {
  const said = namedSocket(args.value('socket'), env)
  if (said !== undefined) return said.replace(/^unix:\/\//u, '')
  const runDir = args.value('run-dir')
  if (runDir !== undefined && runDir !== '') return apiSocketPath(runDir)
  const usualPath = apiSocketPath(usual.runDir)
  const config = args.value('config')
  if (config !== undefined) return (await socketOf(config)) ?? usualPath
  if (existsSync(usualPath) || !existsSync(usual.configPath)) return usualPath
  return (await socketOf(usual.configPath)) ?? usualPath
}

/** Undefined where the config file doesn't set it. */
async function socketOf(configPath: string): Promise<string | undefined> {
  const text = readText(configPath)
  if (!text.includes('runDir')) return undefined
  const { readConfigFile } = await import('../../config/read-config-file.ts')
  const { runDir } = (await readConfigFile(text, configPath)).values
  return typeof runDir === 'string' ? apiSocketPath(runDir) : undefined
}

/** Synchronously: Node's files with promises take a millisecond to load. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Without a config file, or the right to read it, the daemon is looked for at the default socket.
    return ''
  }
}

/** The socket of the command line or the environment, if given. */
export function namedSocket(
  named: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const said = named ?? env['PODD_SOCKET']
  return said === '' ? undefined : said
}
