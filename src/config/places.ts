/** The default path of the config file. */
export const defaultConfigPath = '/etc/podd/config.yaml'

/** The default run directory, for sockets and the like. */
export const defaultRunDir = '/run/podd'

/** Where a podd is looked for, and its settings, when nothing is said. */
export interface UsualPlaces {
  readonly configPath: string
  readonly runDir: string
}

export const usualPlaces: UsualPlaces = { configPath: defaultConfigPath, runDir: defaultRunDir }

/** The API socket of the podd whose runtime directory is `runDir`. */
export function apiSocketPath(runDir: string): string {
  return `${runDir}/podd.sock`
}
