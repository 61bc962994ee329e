import { createHash } from 'node:crypto'
import { join } from 'node:path'

/** podd's default directories. */
export const defaultRunDir = '/run/podd'

/**
 * Every path and name that an embedded containerd owns. All of them follow from the root and the run directory, so that
 * podds with different directories never share anything, and a restarted one finds its own.
 */
export interface ContainerdPlaces {
  /** containerd's own root: images, snapshots, metadata. Persistent. */
  readonly rootDir: string
  /** What a reboot removes: socket, state, runc's state, pod addresses. */
  readonly runDir: string
  readonly stateDir: string
  readonly runcStateDir: string
  readonly socketPath: string
  readonly configPath: string
  readonly logPath: string
  /** CRI's files of each container, in a directory named by its id. */
  readonly criContainersDir: string
  readonly cniConfDir: string
  readonly conflistPath: string
  /** host-local's address assignments; they must not outlive a boot, or addresses leak. */
  readonly cniDataDir: string
  /** The record of the chosen subnet. */
  readonly networkRecordPath: string
  /** The record of images whose layers are on the disk, while others are being unpacked. */
  readonly unpackRecordPath: string
  readonly networkName: string
  /** At most 15 characters, the kernel's limit. */
  readonly bridgeName: string
  /** The seccomp profile of sandboxes, where there is one for this architecture. */
  readonly sandboxSeccompPath: string
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
    // Another profile gets another name: one that is there is not written again.
    sandboxSeccompPath: join(run, 'sandbox-seccomp-1.json'),
    unitName: isDefault ? 'podd-containerd' : `podd-containerd-${tag}`,
  }
}
