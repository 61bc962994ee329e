import { findExecutable } from '../../host/find-executable.ts'

/** The CNI plugins that podd's pod network needs. */
export const neededCniPlugins: readonly string[] = ['bridge', 'host-local', 'loopback', 'portmap']

/** Where distributions put CNI plugins: Debian, upstream's own place, Fedora. */
export const knownCniBinDirs: readonly string[] = ['/usr/lib/cni', '/opt/cni/bin', '/usr/libexec/cni']

/** The directories that hold every needed plugin, in order of preference. */
export function findCniBinDirs(directories = knownCniBinDirs): readonly string[] {
  return directories.filter((directory) => missingCniPlugins(directory).length === 0)
}

/** Which of the needed plugins a directory lacks. */
export function missingCniPlugins(directory: string): readonly string[] {
  return neededCniPlugins.filter((plugin) => findExecutable(plugin, [directory]) === undefined)
}
