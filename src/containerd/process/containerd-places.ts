import { createHash } from 'node:crypto'
import { join } from 'node:path'

/** Where podd keeps what it has of its own, unless told otherwise. */
export const defaultRunDir = '/run/podd'

/**
 * Every path and name that an embedded containerd owns. All of them follow from the root and the run
 * directory, so two podds with different directories never meet, and one that is started again finds
 * what it left.
 */
export interface ContainerdPlaces {
  /** containerd's own root: images, snapshots, metadata. Lasts. */
  readonly rootDir: string
  /** All that goes with a reboot: socket, state, runc's state, pod addresses. */
  readonly runDir: string
  readonly stateDir: string
  readonly runcStateDir: string
  readonly socketPath: string
  readonly configPath: string
  readonly logPath: string
  /** Where CRI keeps what it knows of each container, in a directory of its id. */
  readonly criContainersDir: string
  readonly cniConfDir: string
  readonly conflistPath: string
  /** host-local's book of addresses; it must not outlive a boot, or addresses leak. */
  readonly cniDataDir: string
  /** The subnet that was chosen. */
  readonly networkRecordPath: string
  /** Which images are on the disk, while others are being unpacked. */
  readonly unpackRecordPath: string
  readonly networkName: string
  /** At most 15 characters, as the kernel wants it. */
  readonly bridgeName: string
  /** Without `.service`. */
  readonly unitName: string
}

/**
 * @param rootDir podd's root directory (`/var/lib/podd`)
 * @param runDir podd's run directory (`/run/podd`); names other than the default carry a hash of it
 */
export function containerdPlaces(rootDir: string, runDir: string): ContainerdPlaces {
  const root = join(rootDir, 'containerd')
  const run = join(runDir, 'containerd')
  const isDefault = runDir === defaultRunDir
  const tag = createHash('sha256').update(runDir).digest('hex').slice(0, 8)
  const cniConfDir = join(root, 'cni')
  return {
    rootDir: root,
    runDir: run,
    stateDir: join(run, 'state'),
    runcStateDir: join(run, 'runc'),
    socketPath: join(run, 'containerd.sock'),
    configPath: join(root, 'config.toml'),
    logPath: join(root, 'containerd.log'),
    criContainersDir: join(root, 'io.containerd.grpc.v1.cri/containers'),
    cniConfDir,
    conflistPath: join(cniConfDir, '10-podd.conflist'),
    cniDataDir: join(run, 'cni'),
    networkRecordPath: join(root, 'pod-network.json'),
    unpackRecordPath: join(root, 'unpacking.json'),
    networkName: isDefault ? 'podd' : `podd-${tag}`,
    bridgeName: isDefault ? 'podd0' : `podd-${tag}`,
    unitName: isDefault ? 'podd-containerd' : `podd-containerd-${tag}`,
  }
}
