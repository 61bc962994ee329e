import { mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { writeFileAtomicSync } from '../../base/atomic-file.ts'
import { PoddError, errorCode } from '../../base/errors.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { UserRange } from '../../translate/security-context.ts'
import { podDirectory } from './pod-directory.ts'

/** The number of user ids of a pod, and the host's own ids below the first range (the kubelet's defaults, 1.36). */
const length = 65_536
/** The kernel's highest id. */
const lastRange = 65_534

/**
 * The pod's range of user ids: the one recorded in its directory, or else the lowest free one. It is removed with the
 * directory. Synchronous, so that no two pods get the same one.
 * @throws PoddError USER_RANGE
 */
export function claimUserRange(rootDir: string, uid: PodUid): UserRange {
  const own = readRange(rootDir, uid)
  if (own !== undefined) return { firstId: own * length, length }
  const taken = new Set(podsIn(rootDir).map((other) => readRange(rootDir, other)))
  let index = 1
  while (taken.has(index)) index += 1
  if (index > lastRange) throw new PoddError('USER_RANGE', 'every range of user ids is in use by a pod')
  const directory = podDirectory(rootDir, uid)
  mkdirSync(directory, { recursive: true, mode: 0o750 })
  writeFileAtomicSync(`${directory}/user-range`, `${index}\n`, { mode: 0o600 })
  return { firstId: index * length, length }
}

function podsIn(rootDir: string): readonly PodUid[] {
  try {
    return readdirSync(`${rootDir}/pods`)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}

/** @throws PoddError USER_RANGE where the file can't be read: another range would not match running containers */
function readRange(rootDir: string, uid: PodUid): number | undefined {
  try {
    const text = readFileSync(`${podDirectory(rootDir, uid)}/user-range`, 'utf8')
    if (/^[1-9]\d{0,4}\n$/.test(text)) return Number(text)
    throw new PoddError('USER_RANGE', `cannot read the range of user ids of pod ${uid}`)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}
