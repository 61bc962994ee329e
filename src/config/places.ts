/** Where the config file is read from when nobody says otherwise. */
export const defaultConfigPath = '/etc/podd/config.yaml'

/** Where sockets and the like live when nobody says otherwise. */
export const defaultRunDir = '/run/podd'

/** The API socket of the podd whose runtime directory is `runDir`. */
export function apiSocketPath(runDir: string): string {
  return `${runDir}/podd.sock`
}
