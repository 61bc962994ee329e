import { chmodSync, existsSync, readFileSync, readdirSync, renameSync, statSync } from 'node:fs'
import { unreadableSuffix, writeFileAtomicSync } from '../../base/atomic-file.ts'
import { errorCode } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import { readState } from '../../base/state-file.ts'
import type { Migration, StateReading } from '../../base/state-file.ts'
import { cgroupPath, podCgroupName } from './layout.ts'
import type { CgroupDriver, CgroupSystem } from './layout.ts'

/** The cgroup root and driver of the pods. */
export interface CgroupChoice {
  readonly root: string
  readonly driver: CgroupDriver
}

/** Who can write this file decides where podd limits its pods. */
const choiceMode = 0o600

const qosClasses = ['Guaranteed', 'Burstable', 'BestEffort'] as const

/** Version 1 has no version field. */
const migrations: readonly Migration[] = [
  (content) => {
    if (!isJsonObject(content)) throw new Error('it is not an object')
    return content
  },
]
const version = migrations.length + 1

/** The choice recorded in the state directory, by which its pods were created. Throws the system's error. */
export function readCgroupChoice(rootDir: string): CgroupChoice | undefined {
  const reading = readChoice(rootDir)
  if (reading?.kind !== 'current') return undefined
  const { root, driver } = reading.content
  if (typeof root !== 'string' || (driver !== 'cgroupfs' && driver !== 'systemd')) return undefined
  return { root, driver }
}

/** Saves the choice durably. A file that can't be read is put aside and reported. Throws the system's error. */
export function saveCgroupChoice(
  rootDir: string,
  choice: CgroupChoice,
  report?: (unreadable: { readonly path: string; readonly message: string }) => void,
): void {
  const known = readCgroupChoice(rootDir)
  const path = choicePath(rootDir)
  if (known?.root === choice.root && known.driver === choice.driver) {
    if ((statSync(path).mode & 0o777) !== choiceMode) chmodSync(path, choiceMode)
    return
  }
  const reading = readChoice(rootDir)
  if (reading !== undefined && reading.kind !== 'current') {
    renameSync(path, `${path}${unreadableSuffix}`)
    report?.({ path: `${path}${unreadableSuffix}`, message: reading.message })
  }
  writeFileAtomicSync(path, `${JSON.stringify({ version, ...choice })}\n`, { mode: choiceMode })
}

function readChoice(rootDir: string): StateReading | undefined {
  try {
    return readState(readFileSync(choicePath(rootDir), 'utf8'), migrations)
  } catch (error) {
    // A choice that exists but can't be read must not be replaced: the cgroups of running pods follow it.
    if (errorCode(error) !== 'ENOENT') throw error
    return undefined
  }
}

function choicePath(rootDir: string): string {
  return `${rootDir}/cgroups.json`
}

/** Whether any pod with a directory below podd's root directory has its cgroup by this choice. Throws the system's error. */
export function hasPodsIn({ root, driver }: CgroupChoice, system: CgroupSystem, rootDir: string): boolean {
  return podUids(rootDir).some((uid) =>
    qosClasses.some((qosClass) => {
      const path = cgroupPath(podCgroupName(root, qosClass, uid), driver)
      return system.hierarchies.some((hierarchy) => existsSync(`${hierarchy.path}${path}`))
    }),
  )
}

function podUids(rootDir: string): readonly string[] {
  try {
    return readdirSync(`${rootDir}/pods`)
  } catch (error) {
    // No pod was ever created here.
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}
