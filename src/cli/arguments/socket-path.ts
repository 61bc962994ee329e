import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { apiSocketPath, defaultConfigPath, defaultRunDir } from '../../config/places.ts'

/**
 * The socket to talk to: the one that was named, else PODD_SOCKET's, else the default, else, where nothing is
 * there, the one of the default config file's runDir.
 */
export async function findSocket(
  named: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const said = namedSocket(named, env)
  if (said !== undefined) return said.replace(/^unix:\/\//u, '')
  const usual = apiSocketPath(defaultRunDir)
  if (existsSync(usual) || !existsSync(defaultConfigPath)) return usual
  const text = await readFile(defaultConfigPath, 'utf8').catch(() => '')
  if (!text.includes('runDir')) return usual
  const { readConfigFile } = await import('../../config/read-config-file.ts')
  const { runDir } = (await readConfigFile(text, defaultConfigPath)).values
  return typeof runDir === 'string' ? apiSocketPath(runDir) : usual
}

/** The socket that the command line or the environment names, if one does. */
export function namedSocket(
  named: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const said = named ?? env['PODD_SOCKET']
  return said === '' ? undefined : said
}
