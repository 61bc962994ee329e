import type { BigIntStats } from 'node:fs'

/**
 * Who beside root (and the user that podd runs as) can write a file or a directory, as text; undefined where there is
 * no such user. Access control lists are not considered.
 */
export function describeOtherWriters({
  uid,
  gid,
  mode,
}: Pick<BigIntStats, 'uid' | 'gid' | 'mode'>): string | undefined {
  const owner = isTrusted(uid, process.geteuid?.()) ? undefined : `its owner (uid ${uid})`
  const group =
    (mode & 0o020n) === 0n || isTrusted(gid, process.getegid?.()) ? undefined : `its group (gid ${gid})`
  const all = (mode & 0o002n) === 0n ? undefined : 'everyone'
  const writers = all === undefined ? [owner, group].filter((who) => who !== undefined) : [all]
  return writers.length === 0 ? undefined : writers.join(' and ')
}

function isTrusted(id: bigint, own: number | undefined): boolean {
  return id === 0n || (own !== undefined && id === BigInt(own))
}
