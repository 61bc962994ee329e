/** Where the config file is read from by default. */
export const defaultConfigPath = '/etc/podd/config.yaml'

/** Where sockets and the like live by default. */
export const defaultRunDir = '/run/podd'

/** The API socket of the podd whose runtime directory is `runDir`. */
export function apiSocketPath(runDir: string): string {
  return `${runDir}/podd.sock`
}
