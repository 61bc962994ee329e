/** The default path of the config file. */
export const defaultConfigPath = '/etc/podd/config.yaml'

/** The default run directory, for sockets and the like. */
export const defaultRunDir = '/run/podd'

/** The API socket of the podd whose runtime directory is `runDir`. */
export function apiSocketPath(runDir: string): string {
  return `${runDir}/podd.sock`
}
