import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { apiSocketPath, defaultConfigPath, defaultRunDir } from '../../config/places.ts'
import type { ParsedArguments } from './parse-arguments.ts'

/**
 * The socket to talk to: the one that was named, else PODD_SOCKET's, else that of the run directory or of the config file
 * that was named, else the default, else, where nothing is there, the one of the default config file's runDir.
 */
export async function findSocket(
  args: Pick<ParsedArguments, 'value'>,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const said = namedSocket(args.value('socket'), env)
  if (said !== undefined) return said.replace(/^unix:\/\//u, '')
  const runDir = args.value('run-dir')
  if (runDir !== undefined && runDir !== '') return apiSocketPath(runDir)
  const usual = apiSocketPath(defaultRunDir)
  const config = args.value('config')
  if (config !== undefined) return (await socketOf(config)) ?? usual
  if (existsSync(usual) || !existsSync(defaultConfigPath)) return usual
  return (await socketOf(defaultConfigPath)) ?? usual
}

/** Undefined where the config file says nothing of it. */
async function socketOf(configPath: string): Promise<string | undefined> {
  const text = await readFile(configPath, 'utf8').catch(() => '')
  if (!text.includes('runDir')) return undefined
  const { readConfigFile } = await import('../../config/read-config-file.ts')
  const { runDir } = (await readConfigFile(text, configPath)).values
  return typeof runDir === 'string' ? apiSocketPath(runDir) : undefined
}

/** The socket that the command line or the environment names, if one does. */
export function namedSocket(
  named: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const said = named ?? env['PODD_SOCKET']
  return said === '' ? undefined : said
}
