import { statfs } from 'node:fs/promises'

/** File systems that report no changes made by other hosts, by the magic numbers of statfs(2). */
const types: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x01021997, '9p'],
  [0x65735546, 'FUSE'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
  [0x0bd00bd0, 'Lustre'],
  [0x01161970, 'GFS2'],
  [0x7461636f, 'OCFS2'],
])

/** The network file system that a path is on; undefined where it is on none, or that can't be determined. */
export async function findNetworkFileSystem(path: string): Promise<string | undefined> {
  try {
    const { type } = await statfs(path)
    // A 32-bit number, which may be negative.
    return types.get(type >>> 0)
  } catch {
    // Reading the path reports what is wrong with it.
    return undefined
  }
}
