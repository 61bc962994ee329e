import type { MountEntry } from '../../host/mounts.ts'

/** Filesystems on which an overlay can't have its upper layer (Documentation/filesystems/overlayfs.rst). */
const unfit = /^(?:overlay|aufs|nfs4?|cifs|smb3|9p|vfat|exfat|ecryptfs|fuse(?:\..+)?|virtiofs)$/

/**
 * How image layers are put together on the disk that holds `path`: stacked by overlayfs, or copied
 * (`native`) where the disk's filesystem can't carry an overlay, as inside another container.
 */
export function chooseSnapshotter(mounts: readonly MountEntry[], path: string): 'overlayfs' | 'native' {
  const holding = mounts
    .filter(({ mountPoint }) => mountPoint === '/' || `${path}/`.startsWith(`${mountPoint}/`))
    // Of two mounts on one place the later one is visible.
    .reduce<MountEntry | undefined>(
      (best, mount) =>
        best === undefined || mount.mountPoint.length >= best.mountPoint.length ? mount : best,
      undefined,
    )
  return holding !== undefined && unfit.test(holding.fsType) ? 'native' : 'overlayfs'
}
